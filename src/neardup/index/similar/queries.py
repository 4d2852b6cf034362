"""Asking an index by similarity: what is similar enough, what is most similar, what is there.

Every change has a stamp. A state is what is there at a stamp: a tuple that writers replace, so
queries take no lock, and see each change whole or not at all.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.index.clock import Clock
from neardup.index.hits import Hits
from neardup.index.ids import ID_KINDS, IdColumn, id_kind
from neardup.index.incoming import as_count
from neardup.index.similar.incoming import many_sets, one_set
from neardup.index.similar.segment import Segment, no_order
from neardup.index.similar.sets import Sets
from neardup.index.similar.tail import Tail
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.similar.segment import FoundRows, Rows
    from neardup.index.similar.settings import SimilarSettings

__all__ = ["SimilarQueries", "State"]


class State(NamedTuple):
    """What is there at a stamp: segments, and the first `tail_rows` rows of the tail."""

    segments: tuple[Segment, ...]
    tail: Tail
    tail_rows: int
    stamp: int
    living: int


class SimilarQueries:
    """The state of an index, and every question about it."""

    def __init__(self, settings: SimilarSettings) -> None:
        """Start empty."""
        self._settings = settings
        self._lock = threading.RLock()
        self._kind: str | None = None
        self._next = 0
        self._clock = Clock()
        self._state = State((), Tail(no_order()), 0, 1, 0)

    @property
    def similarity(self) -> float:
        """The least similarity that a query may ask for, which it does unless it says more."""
        return self._settings.similarity

    @property
    def measure(self) -> str:
        """How similarity is measured: "jaccard", "cosine" or "containment"."""
        return self._settings.measure

    @property
    def recipe(self) -> Recipe | None:
        """How texts become features; None if only feature hashes are taken."""
        return self._settings.recipe

    @property
    def id_kind(self) -> str | None:
        """What the ids are, "int" or "str"; None before the first one."""
        return self._kind

    def __repr__(self) -> str:
        """What it holds, for people."""
        kind, count = type(self).__name__, self._state.living
        return f"<{kind} of {count:,} documents, {self.measure} from {self.similarity}>"

    def __len__(self) -> int:
        """Documents stored."""
        return self._read().living

    def __contains__(self, identity: Any) -> bool:
        """Whether a document of this id is stored."""
        state = self._read()
        return id_kind(identity) == self._kind and self._place(state, identity) is not None

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Each document's (id, features: uint64, ascending), in order of insertion."""
        for ids, sets in self.batches():
            for row, identity in enumerate(ids.to_pylist()):
                yield identity, sets.of(row)

    def batches(self) -> Iterator[tuple[Any, Sets]]:
        """All ids (an Arrow array) and Sets of features, in order of insertion."""
        for rows in self._parts(self._read()):
            yield rows.ids.values, rows.sets.take(rows.set_of)

    def features(self, identity: Any) -> Any:
        """The features of a stored document: uint64, ascending.

        Raises:
            KeyError: If the id is not present.
        """
        state = self._read()
        place = self._place(state, identity) if id_kind(identity) == self._kind else None
        if place is None:
            raise KeyError(identity)
        part, row = place
        if part == len(state.segments):
            return state.tail.sets(row + 1).of(row)
        segment = state.segments[part]
        return segment.sets.of(int(segment.arrays["set_of"][row]))

    def query(
        self, document: Any, similarity: float | None = None, limit: int | None = None
    ) -> Hits:
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
        found, total = self._hits(self._one(document), reach, most)
        return Hits(found, total)

    def query_batch(
        self,
        documents: Any,
        similarity: float | None = None,
        limit: int | None = None,
        workers: int | None = None,
    ) -> Any:
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
        parts = list(self._found(self._read(), queries, reach, threads, most))
        return _table(parts, ID_KINDS[self._kind or "int"], most)

    def nearest(self, document: Any, n: int = 10) -> list[tuple[Any, float]]:
        """The n most similar stored documents that share a feature, however little.

        Args:
            document: As of `query`.
            n: How many.

        Returns:
            A list of (id, similarity), the most similar first, then by insertion.

        Raises:
            UsageError: For n below 0, or something else than a document.
        """
        n = as_count("n", n)
        features = self._one(document)
        found, total = self._hits(features, float(self.similarity), n)
        if total >= n or not len(features):
            return found
        return self._nearest_by_scan(self._read(), features, n)

    def sets_of(self, documents: Any, workers: int | None = None) -> Sets:
        """The features of many texts, or hashes made distinct, as `add` and `query_batch` take.

        Raises:
            UsageError: As `query_batch`.
        """
        return many_sets(documents, self._settings, workers)

    def _reach(self, similarity: float | None) -> float:
        return self._settings.reach(self.similarity if similarity is None else similarity)

    def _read(self) -> State:
        """What a query looks at."""
        return self._state

    def _one(self, document: Any) -> Any:
        return one_set(document, self._settings)

    def _hits(
        self, features: Any, similarity: float, most: int | None
    ) -> tuple[list[tuple[Any, float]], int]:
        """The first (id, similarity), sorted, and how many there are."""
        if not len(features):
            return [], 0
        queries = Sets(features, _one_offsets(len(features)))
        found: list[tuple[float, int, Any, int]] = []
        total = 0
        for rows, numbers, ids in self._found(self._read(), queries, similarity, 1, most):
            total += len(rows.rows) + rows.cut
            found += [
                (-score, number, ids, row)
                for score, number, row in zip(
                    rows.scores.tolist(), numbers.tolist(), rows.rows.tolist(), strict=True
                )
            ]
        found.sort(key=_by_score)
        return [(_id(ids, row), -score) for score, _, ids, row in found[:most]], total

    def _found(
        self, state: State, queries: Sets, similarity: float, workers: int, most: int | None
    ) -> Iterator[tuple[FoundRows, Any, Any]]:
        """For each part what was found in it, the numbers of these rows, and the part's ids."""
        from neardup.index.similar.segment import FoundRows

        for segment in state.segments:
            found = segment.search(queries, self._settings, similarity, workers)
            if len(found[0]):
                rows = segment.rows(found, state.stamp, most)
                yield rows, segment.numbers[rows.rows], segment.ids
        if state.tail_rows:
            tail = state.tail
            asked, rows, scores = tail.search(queries, state.tail_rows, self._settings, similarity)
            keep = tail.died[rows] > state.stamp
            if keep.any():
                kept = FoundRows(asked[keep], rows[keep], scores[keep], 0)
                yield kept, tail.numbers[kept.rows], tail.ids

    def _nearest_by_scan(self, state: State, features: Any, n: int) -> list[tuple[Any, float]]:
        """As `nearest`, by comparing with every set."""
        from neardup.kernels.index.similar import score_sets

        best: list[tuple[float, int, Any, int]] = []

        def offer(reached: Any, numbers: Any, ids: Any) -> None:
            rows = np.argsort(-reached, kind="stable")[:n]
            best.extend(
                (-float(reached[row]), int(numbers[row]), ids, row)
                for row in rows.tolist()
                if reached[row] > 0
            )

        for segment in state.segments:
            scores = np.empty(segment.sets.size, np.float64)
            score_sets(features, *segment.sets, self._settings.code, scores)
            reached, alive = scores[segment.arrays["set_of"]], segment.alive(state.stamp)
            reached = reached if alive is None else np.where(alive, reached, 0.0)
            offer(reached, segment.numbers, segment.ids)
        scores = np.empty(state.tail_rows, np.float64)
        score_sets(features, *state.tail.sets(state.tail_rows), self._settings.code, scores)
        scores[state.tail.died[: state.tail_rows] <= state.stamp] = 0.0
        offer(scores, state.tail.numbers, state.tail.ids)
        best.sort(key=_by_score)
        return [(_id(ids, row), -score) for score, _, ids, row in best[:n]]

    def _parts(self, state: State) -> list[Rows]:
        """The documents of each part, in order of insertion."""
        parts = [segment.living_rows(state.stamp) for segment in state.segments]
        if state.tail_rows:
            parts.append(state.tail.living_rows(state.tail_rows, self._kind or "int", state.stamp))
        return [part for part in parts if len(part.ids)]

    def _place(self, state: State, identity: Any) -> tuple[int, int] | None:
        """The part and row where an id of the index's kind is; the tail is the last part."""
        row = state.tail.row_of.get(identity)
        if row is not None and row < state.tail_rows and state.tail.died[row] > state.stamp:
            return len(state.segments), row
        if row is not None and row >= state.tail_rows:  # it was replaced after this state
            ids, died = state.tail.ids, state.tail.died
            for at in range(state.tail_rows):
                if ids[at] == identity and died[at] > state.stamp:
                    return len(state.segments), at
        if not state.segments:
            return None
        column = IdColumn(pa.array([identity], ID_KINDS[self._kind or "int"]))
        for part, segment in enumerate(state.segments):
            row = segment.find(column, state.stamp)
            if row >= 0:
                return part, row
        return None


def _one_offsets(count: int) -> Any:
    return frozen(np.array([0, count], np.int64))


def _id(ids: Any, row: int) -> Any:
    return ids.value(row) if isinstance(ids, IdColumn) else ids[row]


def _by_score(hit: tuple[float, int, Any, int]) -> tuple[float, int]:
    return hit[0], hit[1]


def _table(parts: list[tuple[FoundRows, Any, Any]], kind: Any, limit: int | None) -> pa.Table:
    """One table of what was found in the parts."""
    queries = np.concatenate([np.empty(0, np.int64), *(rows.queries for rows, _, _ in parts)])
    scores = np.concatenate([np.empty(0), *(rows.scores for rows, _, _ in parts)])
    numbers = np.concatenate([np.empty(0, np.int64), *(numbers for _, numbers, _ in parts)])
    ids = [pa.array([], kind)]
    for rows, _, held in parts:
        if isinstance(held, IdColumn):
            ids.append(held.values.take(pa.array(rows.rows)))
        else:
            ids.append(pa.array([held[row] for row in rows.rows.tolist()], kind))
    order = np.lexsort((numbers, -scores, queries))
    cut = sum(rows.cut for rows, _, _ in parts)
    if limit is not None:
        ordered = queries[order]
        keep = np.arange(len(ordered)) - np.searchsorted(ordered, ordered, side="left") < limit
        cut += int(len(keep) - np.count_nonzero(keep))
        order = order[keep]
    columns = {
        "row": pa.array(queries[order]),
        "id": pa.concat_arrays(ids).take(pa.array(order)),
        "similarity": pa.array(scores[order]),
    }
    return pa.table(columns).replace_schema_metadata({"cut": str(cut)})
