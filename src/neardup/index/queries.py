"""Queries of an index, or of a snapshot of one: near documents, closest ones, stored ones.

Each call converts its documents to contents of the index's kind, takes one version, and searches
that one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.fingerprinting.question import Question
from neardup.fingerprinting.recipe import recipe_of
from neardup.index.attachments import content_in, payload_in
from neardup.index.distance_kind import ByDistance
from neardup.index.hits import Hits
from neardup.index.id_columns import IdColumn, id_array
from neardup.index.incoming import as_count, codes_of, fingerprint_of_text, many_sets
from neardup.index.similarity_kind import BySimilarity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.attachments import ContentCodec
    from neardup.index.hits import Id
    from neardup.index.protocol import Documents, Ids
    from neardup.index.set_arrays import Sets
    from neardup.index.versions import AnyKind, AnyVersion
    from neardup.runtime.types import Codes, Times

__all__ = ["Attached", "Counters", "Queries", "Snapshot", "Source", "View"]

DOCUMENTS_A_BATCH: Final = 1 << 14


@dataclass(slots=True)
class Counters:
    """Counters of an index, without a lock: concurrent threads may lose a count now and then.

    Args:
        queries: Documents in queries and offers.
        hits: Documents found.
        added: Documents stored.
        removed: Documents removed or expired.
        commits: Commits with changes.
        commit_seconds: Of all commits.
        longest_commit: Seconds.
        merges: Background jobs that wrote files.
        merge_seconds: Of these.
    """

    queries: int = 0
    hits: int = 0
    added: int = 0
    removed: int = 0
    commits: int = 0
    commit_seconds: float = 0.0
    longest_commit: float = 0.0
    merges: int = 0
    merge_seconds: float = 0.0

    def count_queries(self, queries: int, hits: int) -> None:
        """Count queries."""
        self.queries += queries
        self.hits += hits

    def committed(self, seconds: float) -> None:
        """Count a commit."""
        self.commits += 1
        self.commit_seconds += seconds
        self.longest_commit = max(self.longest_commit, seconds)

    def to_dict(self) -> dict[str, Any]:
        """All counters by name."""
        return asdict(self)


class Attached(Protocol):
    """The attachments of the rows of one version."""

    def of(self, numbers: list[int]) -> list[bytes | None] | None:
        """The attachment of each row; None if no row has any."""

    def close(self) -> None:
        """Release it."""


class Source(Protocol):
    """A source of versions for queries: a store, which changes, or a snapshot, which does not."""

    codec: ContentCodec

    @property
    def path(self) -> Path | None:
        """The folder; None in memory."""

    def current(self) -> AnyVersion:
        """The version that a call searches."""

    def committed(self) -> AnyVersion:
        """The last version that no crash can undo."""

    def attachments_at(self, ids: Ids) -> list[bytes | None]:
        """The attachments of stored documents; KeyError if one is not stored."""


class Snapshot:
    """One version and the attachments of its rows: a source that does not change.

    Args:
        version: The version.
        attached: The attachments of its rows.
        codec: For decoding contents.
        path: The folder; None in memory.
        on_disk: The last committed version; by default the same.
    """

    def __init__(
        self, version: AnyVersion, attached: Attached, codec: ContentCodec,
        path: Path | None = None, on_disk: AnyVersion | None = None,
    ) -> None:  # fmt: skip
        """Take them; `attached` is closed with it."""
        self.version, self.attached, self.codec, self.path = version, attached, codec, path
        self._on_disk = on_disk or version

    def current(self) -> AnyVersion:
        """See Source."""
        return self.version

    def committed(self) -> AnyVersion:
        """See Source."""
        return self._on_disk

    def attachments_at(self, ids: Ids) -> list[bytes | None]:
        """See Source."""
        version = self.version
        numbers = version.numbers_at(version.present(ids)).tolist()
        return self.attached.of(numbers) or [None] * len(numbers)


class Queries:
    """All queries of an index.

    Args:
        kind: Of the index.
        source: The source of versions.
        reach: The distance or similarity of queries that name none; by default the kind's.
    """

    def __init__(self, kind: AnyKind, source: Source, reach: float | None = None) -> None:
        """Take the source."""
        self._kind, self._source = kind, source
        self._reach = kind.reach if reach is None else kind.within(reach, kind.reach)
        self._counters = Counters()

    @property
    def recipe(self) -> Recipe | None:
        """The recipe that reads texts; None if only fingerprints or feature hashes are accepted."""
        return self._kind.recipe

    @property
    def distance(self) -> int:
        """The default and largest distance of queries."""
        self._by_distance("distance")
        return int(self._reach)

    @property
    def bits(self) -> int:
        """Width of the fingerprints."""
        return self._by_distance("bits").bits

    @property
    def similarity(self) -> float:
        """The default and least similarity of queries."""
        self._by_similarity("similarity")
        return self._reach

    @property
    def measure(self) -> str:
        """The measure of similarity: "jaccard", "cosine", "containment" or "dice"."""
        return self._by_similarity("measure").measure

    @property
    def question(self) -> Question:
        """Recipe, similarity and measure, as `nd.dedup(..., question=)` takes them."""
        measure = self._by_similarity("question").measure
        return Question(recipe_of(self.recipe), self.similarity, measure)

    @property
    def by(self) -> str:
        """The kind of comparison: "distance" or "similarity"."""
        return self._kind.name

    @property
    def store(self) -> str:
        """The stored content of documents: "none", "features" or "text"."""
        codec = self._source.codec
        return codec.kind if codec.is_kept else self._kind.keeps or "none"

    @property
    def extract(self) -> str | None:
        """The part of raw HTML that it compares, as in `DurableIndex.open`; None if none is set."""
        return self._kind.extract

    @property
    def id_kind(self) -> str | None:
        """The type of the ids, "int" or "str"; None before the first one."""
        return self._source.current().id_kind

    @property
    def added(self) -> int:
        """The number of documents ever added, which is the number of the next one."""
        return self._source.current().next

    @property
    def next_id(self) -> int:
        """A number above every id that is a number."""
        version = self._source.current()
        return max(version.next, version.largest_number() + 1)

    def __repr__(self) -> str:
        """A line for people: the index, its documents and reach."""
        name, count = type(self).__name__, len(self)
        return f"<{name} of {count:,} documents, {self._kind.title(self._reach)}>"

    def __len__(self) -> int:
        """Documents stored."""
        return len(self._source.current())

    def __contains__(self, identity: Any) -> bool:
        """Whether a document of this id is stored."""
        return identity in self._source.current()

    def __iter__(self) -> Iterator[tuple[Id, Any]]:
        """Each document's (id, content), in order of insertion, as they were at the start.

        The content is a fingerprint, an int, or its features: uint64, ascending.
        """
        for ids, contents in self.batches():
            yield from zip(ids.to_pylist(), self._kind.values(contents), strict=True)

    def batches(self) -> Iterator[tuple[pa.Array, Any]]:
        """All ids (an Arrow array) and fingerprints or Sets of features, in order of insertion."""
        return self._kind.batches(self._source.current())

    def number(self, identity: Id) -> int | None:
        """The number of documents added before this one; None if the id is not present."""
        return self._source.current().number(identity)

    def times(self, ids: Ids) -> npt.NDArray[np.float64]:
        """The times when documents were added or last touched: seconds since 1970, float64 (n,).

        Raises:
            KeyError: If an id is not present.
        """
        version = self._source.current()
        times: Times = version.clock.times_of(version.numbers_at(version.present(ids)))
        return times

    def payload(self, identity: Id) -> Any:
        """The payload of a document; None if it has none.

        Raises:
            KeyError: If the id is not present.

        Example:
            >>> from neardup import Index
            >>> index = Index(distance=1)
            >>> index.add("a", 0b1011, payloads={"url": "https://example.org/", "status": 200})
            1
            >>> index.payload("a")
            {'url': 'https://example.org/', 'status': 200}
        """
        return self.payloads([identity])[0]

    def payloads(self, ids: Ids) -> list[Any]:
        """The payloads of many documents in one version, as `payload`.

        Raises:
            KeyError: If an id is not present.
        """
        return [payload_in(each) for each in self._source.attachments_at(ids)]

    def content(self, identity: Id) -> Any:
        """The stored content of a document: its text, or uint64 feature hashes; None without any.

        Raises:
            KeyError: If the id is not present.
        """
        return self.contents([identity])[0]

    def contents(self, ids: Ids) -> list[Any]:
        """The stored contents of many documents in one version, as `content`.

        Raises:
            KeyError: If an id is not present.
        """
        codec = self._source.codec
        if self._kind.keeps and not codec.is_kept:
            return self._kind.values(self.stored(ids))
        return [codec.decoded(content_in(each)) for each in self._source.attachments_at(ids)]

    def stored(self, ids: Ids) -> Any:
        """The fingerprints, uint64 (n, width), or Sets of features of one document or many.

        Raises:
            KeyError: If an id is not present.
        """
        version = self._source.current()
        return version.contents_at(version.present(ids))

    def fingerprints_by_id(self, ids: Ids) -> Codes:
        """The stored fingerprints of one document or many, uint64 (n, width).

        Raises:
            KeyError: If an id is not present.
        """
        self._by_distance("fingerprints_by_id")
        codes: Codes = self.stored(ids)
        return codes

    def sets_by_id(self, ids: Ids) -> Sets:
        """The features of one stored document or many.

        Raises:
            KeyError: If an id is not present.
        """
        self._by_similarity("sets_by_id")
        sets: Sets = self.stored(ids)
        return sets

    def features(self, identity: Id) -> npt.NDArray[np.uint64]:
        """The features of a document that is stored in an index by similarity: uint64, ascending.

        Raises:
            KeyError: If the id is not present.
        """
        return self.sets_by_id([identity]).of(0)

    def fingerprint_of(self, text: str) -> int | None:
        """Fingerprint a text by the recipe of an index by distance, as neardup.fingerprint.

        Raises:
            UsageError: If the index has no recipe.
        """
        return fingerprint_of_text(text, self._by_distance("fingerprint_of"))

    def fingerprints_of(self, texts: Documents) -> Codes:
        """Fingerprint texts by the recipe of an index by distance, as neardup.fingerprints.

        Raises:
            UsageError: If the index has no recipe.
        """
        return codes_of(texts, self._by_distance("fingerprints_of"))

    def sets_of(self, documents: Documents, workers: int | None = None) -> Sets:
        """The features of many texts, or hashes made distinct, as an index by similarity takes.

        Args:
            documents: As in `query_batch`.
            workers: Threads; by default one per core.

        Returns:
            Sets: of each document its features, uint64, ascending.

        Raises:
            UsageError: As `query_batch`.
        """
        return many_sets(documents, self._by_similarity("sets_of"), workers)

    def versions(self, ids: Ids, contents: Any) -> npt.NDArray[np.int8]:
        """The state of each id: ABSENT, with OTHER content than given, or with the SAME.

        Args:
            ids: Arrow array, of the index's kind.
            contents: uint64 (n, width) of an index of fingerprints, Sets of one by similarity.
        """
        return self._source.current().states(IdColumn(id_array(ids)), contents)

    def query(
        self, document: Documents, reach: float | None = None, limit: int | None = None, *,
        distance: int | None = None, similarity: float | None = None, committed: bool = False,
    ) -> Hits[Any]:  # fmt: skip
        """Find every stored document within the distance, or that is similar enough.

        Args:
            document: A text if the index has a recipe; else a fingerprint (an int, or uint64
                (width,)), or of an index by similarity feature hashes: uint64 (n,).
            reach: The distance or similarity; by default the index's.
            limit: The most to return.
            distance: The same as `reach` of an index by distance: at most the index's.
            similarity: The same as `reach` of an index by similarity: at least the index's.
            committed: Search only committed documents, which no crash can undo.

        Returns:
            A list of (id, distance) or (id, similarity), the closest first, then by insertion; its
            `total` says how many there are, more than returned where `limit` cut.

        Raises:
            UsageError: For a larger distance or smaller similarity than that of the index, or a
                value that is not a document.
        """
        content, within = self._kind.one(document), self._reach
        if not (reach is None and distance is None and similarity is None):
            within = self._within(reach, distance, similarity)
        if limit is not None:
            limit = as_count("limit", limit)
        if content is None:
            return Hits([], 0)
        source = self._source
        version = source.committed() if committed else source.current()
        hits = self._kind.hits(version, content, within, limit)
        self._counters.count_queries(1, hits.total)
        return hits

    def query_batch(
        self, documents: Documents, reach: float | None = None, limit: int | None = None,
        workers: int | None = None, *, distance: int | None = None, similarity: float | None = None,
        committed: bool = False,
    ) -> pa.Table:  # fmt: skip
        """Find the matches of each of many documents.

        Args:
            documents: Texts, or fingerprints: uint64 (q,) or (q, width), a list of ints, Arrow; or
                of an index by similarity lists of feature hashes.
            reach: As in `query`.
            limit: The most for one document.
            workers: Threads; by default one per core where that pays.
            distance: As in `query`.
            similarity: As in `query`.
            committed: As in `query`.

        Returns:
            pyarrow.Table with row (int64: which document), id, and distance (int16) or similarity
            (float64), sorted by row, closeness and insertion. Its schema's metadata says under
            "cut" how many `limit` cut.

        Raises:
            UsageError: As `query`.
        """
        within = self._within(reach, distance, similarity)
        most = None if limit is None else as_count("limit", limit)
        source = self._source
        version = source.committed() if committed else source.current()
        table, count = self._kind.search(version, documents, within, most, workers)
        self._counters.count_queries(count, len(table))
        return table

    def first_within(
        self, documents: Documents, reach: float | None = None, limit: int = 1, *,
        distance: int | None = None, similarity: float | None = None,
    ) -> pa.Table:  # fmt: skip
        """Find for each of many the document within reach that was added first.

        Args:
            documents: As in `query_batch`.
            reach: As in `query_batch`.
            limit: The most for one row; those added first.
            distance: As in `query`.
            similarity: As in `query`.

        Returns:
            The columns of `query_batch`, but in order of insertion: at most `limit` for a row.
        """
        within, most = self._within(reach, distance, similarity), as_count("limit", limit)
        version = self._source.current()
        table, count = self._kind.search(version, documents, within, most, None, by_age=True)
        self._counters.count_queries(count, len(table))
        return table

    def nearest(
        self, document: Documents, n: int = 10, by: str | None = None
    ) -> list[tuple[Id, Any]]:
        """The n closest stored documents, at any distance.

        By similarity these are documents that share at least one feature.

        Args:
            document: As in `query`.
            n: How many.
            by: Of an index by similarity: "similarity", the index's; or "cosine", for related
                documents: the cosine of vectors in which each distinct feature has the recipe's
                weight, by `idf` if the recipe weighs by "tfidf".

        Returns:
            A list of (id, distance) or (id, similarity), the closest first, then by insertion;
            exact.

        Raises:
            UsageError: For n below 0, another `by`, a recipe whose weights depend on counts, or a
                value that is not a document.
            RecipeError: If the recipe's document frequencies are not loaded.
        """
        n, content = as_count("n", n), self._kind.one(document)
        if content is None or not n:
            return []
        return self._kind.nearest(self._source.current(), content, n, self._reach, by)

    def nearest_batch(
        self, documents: Documents, n: int = 10, by: str | None = None, workers: int | None = None
    ) -> pa.Table:
        """The n closest stored documents of each of many, as `nearest`.

        Args:
            documents: As in `query_batch`.
            n: How many for one document.
            by: As in `nearest`.
            workers: Threads; by default one per core.

        Returns:
            pyarrow.Table with the columns of `query_batch`, sorted by row, closeness and insertion.

        Raises:
            UsageError: As `nearest`.
        """
        n, version = as_count("n", n), self._source.current()
        return self._kind.nearest_batch(version, documents, n, self._reach, by, workers)

    def _within(self, reach: float | None, distance: int | None, similarity: float | None) -> float:
        """The checked reach of a call."""
        mine, other = distance, similarity
        if self._kind.name == "similarity":
            mine, other = similarity, distance  # type: ignore[assignment]
        if other is not None:
            raise UsageError(
                f"the query asks for {other!r:.60}, but the index is by {self._kind.name}: use"
                f" {self._kind.name}="
            )
        limit = reach if mine is None else mine
        return self._reach if limit is None else self._kind.within(limit, self._reach)

    def _by_distance(self, name: str) -> ByDistance:
        """The kind; AttributeError if it has no attribute of this name, as hasattr requires."""
        if isinstance(self._kind, ByDistance):
            return self._kind
        raise AttributeError(f"an index by {self._kind.name} has no {name}")

    def _by_similarity(self, name: str) -> BySimilarity:
        if isinstance(self._kind, BySimilarity):
            return self._kind
        raise AttributeError(f"an index by {self._kind.name} has no {name}")


class View(Queries):
    """An index as it was at one time: every call sees the same documents.

    A view of an index in a folder keeps its commit: close it, or use it in a `with` statement.

    Args:
        kind: Of the index.
        snapshot: The version and the attachments that it holds.
        reach: Of the index.
    """

    def __init__(self, kind: AnyKind, snapshot: Snapshot, reach: float | None = None) -> None:
        """Take the snapshot, which is closed with the view."""
        super().__init__(kind, snapshot, reach)
        self._snapshot = snapshot

    @property
    def path(self) -> Path | None:
        """The folder; None of an index in memory."""
        return self._snapshot.path

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Release the commit; contents and payloads cannot be read afterwards."""
        self._snapshot.attached.close()

    def documents(self) -> Iterator[tuple[pa.Array, Any, list[Any]]]:
        """Ids, fingerprints or Sets, and contents of all documents, in batches.

        Returns:
            Arrow array, contents as from `stored`, a list as from `content`; in order of insertion.
        """
        for ids, stored, contents, *_ in self.rows():
            if self._kind.keeps and not self._snapshot.codec.is_kept:
                yield ids, stored, self._kind.values(stored)
            else:
                yield ids, stored, [None] * len(ids) if contents is None else contents

    def rows(self) -> Iterator[tuple[pa.Array, Any, list[Any] | None, Any, list[Any] | None]]:
        """All stored rows in batches, in order of insertion.

        Returns:
            Ids (an Arrow array), fingerprints or Sets, contents if any are stored with them, the
            times of addition, float64 (n,), and payloads if there are any.
        """
        version, codec = self._snapshot.version, self._snapshot.codec
        for part in version.parts():
            live = part.live_rows()
            if not len(live):
                continue
            for rows in np.split(live, range(DOCUMENTS_A_BATCH, len(live), DOCUMENTS_A_BATCH)):
                numbers = part.numbers[rows]
                times = version.clock.times_of(numbers)
                ids = part.ids.values.take(pa.array(rows))
                kept = self._snapshot.attached.of(numbers.tolist())
                payloads = None if kept is None else [payload_in(each) for each in kept]
                contents = None
                if kept is not None and codec.is_kept:
                    contents = [codec.decoded(content_in(each)) for each in kept]
                yield ids, part.contents(rows), contents, times, payloads
