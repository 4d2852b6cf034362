"""Asking an index by similarity: what is similar enough, what is most similar, what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.index.attachments import Beside
from neardup.index.base.asking import Asking, Moment
from neardup.index.hits import Hits
from neardup.index.id_columns import ID_KINDS
from neardup.index.incoming import as_count, many_sets, one_set
from neardup.index.ranking import Ranking
from neardup.runtime.threads import in_threads, worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from neardup.index.kind_settings import SimilarSettings
    from neardup.index.protocol import Documents, Id, Ids
    from neardup.index.set_arrays import Sets
    from neardup.index.similar.snapshot import SimilarSnapshot

__all__ = ["SimilarQueries", "SimilarView"]


class SimilarQueries(Asking):
    """Every question about an index by similarity; what it holds is what `_read` says.

    Args:
        settings: Of the index.
        similarity: The least that queries ask for unless they say more; the settings' unless said.
    """

    def __init__(self, settings: SimilarSettings, similarity: float | None = None) -> None:
        """Ask nothing yet."""
        super().__init__(settings)
        least = settings.similarity if similarity is None else similarity
        self._least = settings.reach(least)

    @property
    def similarity(self) -> float:
        """The similarity that queries ask for unless they say a larger one."""
        return self._least

    @property
    def measure(self) -> str:
        """How similarity is measured: "jaccard", "cosine", "containment" or "dice"."""
        return str(self._settings.measure)

    def __repr__(self) -> str:
        """What it holds, for people."""
        kind, count = type(self).__name__, len(self)
        return f"<{kind} of {count:,} documents, {self.measure} from {self.similarity}>"

    def __iter__(self) -> Iterator[tuple[Id, npt.NDArray[np.uint64]]]:
        """Each document's (id, features: uint64, ascending), in order of insertion."""
        for ids, sets in self.batches():
            for row, identity in enumerate(ids.to_pylist()):
                yield identity, sets.of(row)

    def batches(self) -> Iterator[tuple[Any, Sets]]:
        """All ids (an Arrow array) and Sets of features, in order of insertion."""
        for rows in self._read().living_parts():
            yield rows.ids.values, rows.sets.take(rows.set_of)

    def features(self, identity: Id) -> npt.NDArray[np.uint64]:
        """The features of a stored document: uint64, ascending.

        Args:
            identity: Its id.

        Raises:
            KeyError: If the id is not present.
        """
        found: npt.NDArray[np.uint64] = self.contents([identity])[0]
        return found

    def contents(self, ids: Ids) -> list[Any]:
        """What is kept of each of many documents: its features, uint64, ascending.

        Args:
            ids: As of `add`.

        Raises:
            KeyError: If an id is not present.
        """
        sets = self.sets_by_id(ids)
        return [sets.of(row) for row in range(sets.size)]

    def sets_by_id(self, ids: Any) -> Sets:
        """The features of one stored document or many.

        Raises:
            KeyError: If an id is not present.
        """
        held: SimilarSnapshot = self._read()
        return held.contents_at(held.present(ids))

    def query(
        self, document: Documents, similarity: float | None = None, limit: int | None = None
    ) -> Hits[float]:
        """Find every stored document that is similar enough.

        Args:
            document: A text if the index has a recipe, or its feature hashes: uint64 (n,).
            similarity: At least the index's, which it is unless said.
            limit: The most to return.

        Returns:
            A list of (id, similarity), the most similar first, then by insertion; its `total` says
            how many there are, more than returned where `limit` cut.

        Raises:
            UsageError: For a smaller similarity than the index was made for, or something else
                than a document.
        """
        reach = self._reach(similarity)
        most = None if limit is None else as_count("limit", limit)
        features = one_set(document, self._settings)
        found = Hits(*self._read().hits(features, reach, most))
        self._counters.asked(1, found.total)
        return found

    def query_batch(
        self,
        documents: Documents,
        similarity: float | None = None,
        limit: int | None = None,
        workers: int | None = None,
    ) -> pa.Table:
        """Find every stored document that is similar enough to each of many.

        Args:
            documents: Texts as for `neardup.fingerprints`, or lists of feature hashes.
            similarity: As of `query`.
            limit: The most for one document.
            workers: Threads; one per core unless said.

        Returns:
            pyarrow.Table with row (int64: which document), id, similarity (float64), sorted by
            row, similarity (the largest first) and insertion. Its schema's metadata says under
            "cut" how many `limit` cut.

        Raises:
            UsageError: As `query`.
        """
        reach, threads = self._reach(similarity), worker_count(workers)
        most = None if limit is None else as_count("limit", limit)
        queries = many_sets(documents, self._settings, threads)
        found = self._read().table(queries, reach, threads, most)
        self._counters.asked(queries.size, len(found))
        return found

    def first_within(
        self, documents: Documents, similarity: float | None = None, limit: int = 1
    ) -> pa.Table:
        """Find for each of many the similar enough document that was added first.

        Args:
            documents: As of `query_batch`.
            similarity: As of `query_batch`.
            limit: So many that were added first.

        Returns:
            row, id, similarity as of `query_batch`, but in order of insertion: at most `limit` for
            a row.
        """
        queries, held = many_sets(documents, self._settings), self._read()
        reach, most = self._reach(similarity), as_count("limit", limit)
        return held.table(queries, reach, worker_count(None), most, by_age=True)

    def nearest(
        self, document: Documents, n: int = 10, by: str = "similarity"
    ) -> list[tuple[Id, float]]:
        """The n stored documents that are most similar and share a feature, however little.

        Args:
            document: As of `query`.
            n: How many.
            by: "similarity", the index's; or "cosine", for related documents: the cosine of vectors
                in which each distinct feature weighs what the recipe says, by `idf` if it weighs
                by "tfidf".

        Returns:
            A list of (id, similarity), the most similar first, then by insertion; exact.

        Raises:
            UsageError: For n below 0, another `by`, a recipe whose weights depend on counts, or
                something else than a document.
            RecipeError: If the recipe's document frequencies are not loaded.
        """
        n, ranking = as_count("n", n), Ranking.of(self._settings, by)
        return self._nearest(self._read(), one_set(document, self._settings), n, ranking)

    def nearest_batch(
        self,
        documents: Documents,
        n: int = 10,
        by: str = "similarity",
        workers: int | None = None,
    ) -> pa.Table:
        """As `nearest`, for many documents.

        Args:
            documents: As of `query_batch`.
            n: How many for one document.
            by: As of `nearest`.
            workers: Threads; one per core unless said.

        Returns:
            pyarrow.Table with row (int64: which document), id, similarity (float64), sorted by
            row, similarity (the largest first) and insertion.

        Raises:
            UsageError: As `nearest`.
        """
        n, ranking, threads = (
            as_count("n", n),
            Ranking.of(self._settings, by),
            worker_count(workers),
        )
        queries, held = many_sets(documents, self._settings, threads), self._read()
        found: list[list[tuple[Any, float]]] = [[]] * queries.size

        def run(_: int, row: int) -> None:
            found[row] = self._nearest(held, queries.of(row), n, ranking)

        in_threads(threads, run, range(queries.size))
        rows = np.repeat(np.arange(queries.size), [len(hits) for hits in found])
        hits = [hit for each in found for hit in each]
        columns = {
            "row": pa.array(rows, pa.int64()),
            "id": pa.array([hit[0] for hit in hits], ID_KINDS[held.kind or "int"]),
            "similarity": pa.array([hit[1] for hit in hits], pa.float64()),
        }
        return pa.table(columns)

    def _nearest(
        self, held: SimilarSnapshot, features: npt.NDArray[np.uint64], n: int, ranking: Ranking
    ) -> list[tuple[Id, float]]:
        if ranking.measure is self._settings.kind and ranking.weights is None:
            found, total = held.hits(features, float(self.similarity), n)
            if total >= n:
                return found
        return held.nearest(features, n, ranking)

    def sets_of(self, documents: Any, workers: int | None = None) -> Sets:
        """The features of many texts, or hashes made distinct, as `add` and `query_batch` take.

        Args:
            documents: As of `query_batch`.
            workers: Threads; one per core unless said.

        Returns:
            Sets: of each document its features, uint64, ascending.

        Raises:
            UsageError: As `query_batch`.
        """
        return many_sets(documents, self._settings, workers)

    def _reach(self, similarity: float | None) -> float:
        found: float = self._settings.reach(self.similarity if similarity is None else similarity)
        return found


class SimilarView(Moment, SimilarQueries):
    """An index by similarity as it was at one moment: every call sees the same.

    Args:
        held: What it held.
        similarity: Of the index.
        beside: What is kept beside rows in memory.
    """

    def __init__(
        self, held: SimilarSnapshot, similarity: float, beside: Beside | None = None
    ) -> None:
        """Keep it."""
        SimilarQueries.__init__(self, held.settings, similarity)
        self._held, self._beside = held, beside or Beside()

    @property
    def store(self) -> str:
        """What is kept of a document: "features"."""
        return "features"

    def documents(self) -> Iterator[tuple[Any, Any, list[Any]]]:
        """Ids (an Arrow array), Sets of features, and the features of each, some at a time."""
        for ids, sets, *_ in self.rows():
            yield ids, sets, [sets.of(row) for row in range(sets.size)]
