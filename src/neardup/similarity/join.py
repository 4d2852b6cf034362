"""Similarity mode: find the documents whose feature sets are similar, exactly.

The flow: count in how many documents each feature is; choose the rare features by which each
document is found; walk the documents in order of priority, look up who was kept under the same
features, and verify the similarity on the features themselves. Nothing is missed, and nothing below
the threshold is matched: recall and precision are 1 by construction.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.runtime.threads import worker_count
from neardup.similarity.feature_sets import ANY_DISTANCE, MEASURES, FeatureSets, Match, Work
from neardup.similarity.spilled import BYTES_A_KEY, KeyFile, batches_of_groups

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["similar_components", "similar_greedy", "similar_sets"]

CHUNK_FEATURES: Final = 1 << 20
"""Documents are matched in chunks of about this many features."""

COUNT_FEATURES: Final = 1 << 24
"""Features are counted in slices of this many, so that those on disk need little memory."""

MOST_ROWS: Final = 1 << 32
BYTES_AT_ONCE: Final = 1 << 29
"""The index is asked for at once, up to so much: memory is taken when it is written to, and copying
to a larger array would take it twice."""

CELLS_A_FEATURE: Final = 2
SAMPLE_STEP: Final = 16
LEAST_CELL_BITS: Final = 10


def similar_greedy(
    sets: FeatureSets,
    order: Any,
    match: Match,
    workers: int | None = None,
    work: Work | None = None,
    first_new: int = 0,
) -> tuple[Any, Any]:
    """Keep documents in order of priority; drop one only if it is similar to a kept one.

    Args:
        sets: The documents; one without features is always kept.
        order: int64: the documents from the highest priority to the lowest; one that is left out
            matches nothing.
        match: When two documents match.
        workers: Threads; the processors at hand unless given.
        work: Told what the search took.
        first_new: So many documents, the first in order, are kept whatever they are similar to.

    Returns:
        kept_of: int64 (n,): for a dropped document the kept one of highest priority that it is
        similar to, for a kept one itself; and score: float64 (n,), the similarity of the two.
    """
    from neardup.kernels.similarity.join import GREEDY

    run = _Run(sets, order, match, worker_count(workers), first_new)
    for batch in run.batches_of_groups():
        run.restrict(batch)
        run.match_all(GREEDY)
    if work is not None:
        work.postings, work.candidates = run.used[2:4].tolist()
    return run.match, run.score


def similar_components(
    sets: FeatureSets, match: Match, workers: int | None = None, among: Any = None
) -> Any:
    """Label transitive groups of similar documents; int64 (n,), the group's first document.

    `among` (int64, ascending) are the documents that may match; None: all.
    """
    from neardup.kernels.similarity.join import COMPONENTS

    documents = np.arange(len(sets)) if among is None else among
    run = _Run(sets, documents, match, worker_count(workers))
    parts = run.parts()
    if parts > 1:
        run.unite_parts(parts)
    else:
        run.match_all(COMPONENTS)
    return _roots(run.match)


def similar_sets(
    sets: FeatureSets, match: Match, workers: int | None = None, among: Any = None
) -> Iterator[Any]:
    """Find every similar pair; yields int64 (p, 2): left, right; left < right.

    `among` (int64, ascending) are the documents that may match; None: all.
    """
    from neardup.kernels.similarity.join import PAIRS

    documents = np.arange(len(sets)) if among is None else among
    return _Run(sets, documents, match, worker_count(workers)).chunks(PAIRS)


class _Run:
    """One walk over the documents with the index of those before."""

    def __init__(
        self, sets: FeatureSets, order: Any, match: Match, workers: int, first_new: int = 0
    ) -> None:
        from neardup.kernels.similarity.postings import USED

        n = len(sets)
        self._first_new = first_new
        self._sets = sets
        self._order = np.ascontiguousarray(order, np.int64)
        self._measure = MEASURES.index(match.measure)
        self._similarity = float(match.similarity)
        self._groups = np.zeros(0, np.int32) if sets.groups is None else sets.groups
        self._distance = ANY_DISTANCE if match.distance is None else match.distance
        self._workers = workers
        self._cells, self._shift = _count(sets, workers)
        self.used = np.zeros(USED, np.int64)
        self._empty_index()
        self._rank = np.empty(n, np.int64)
        self._rank[self._order] = np.arange(self._order.size)
        self._seen, self._found = np.full(n, -1, np.int64), np.empty(n, np.int64)
        self.match, self.score = np.arange(n), np.ones(n)

    def match_all(self, mode: int) -> None:
        """Match all documents, for what is found in `match`, `score` and `used`."""
        for _ in self.chunks(mode):
            pass

    def chunks(self, mode: int) -> Iterator[Any]:
        """Match chunk by chunk; keys of the next chunk are chosen in threads meanwhile."""
        with ThreadPoolExecutor(1) as matcher:
            for documents, selected in self._selected():
                yield self._match(matcher, mode, documents, *selected)

    def restrict(self, order: Any) -> None:
        """Begin again with an empty index, for some of the documents in their order of priority."""
        self._order = order
        self._empty_index()

    def parts(self) -> int:
        """How many parts the index is to be cut in, from the keys of a sample of documents."""
        spill = self._sets.spill
        if spill is None or spill.parts(int(self._prefixes()[self._order].sum())) == 1:
            return 1
        sample = np.ascontiguousarray(self._order[::SAMPLE_STEP])
        return spill.parts(SAMPLE_STEP * self._select(sample)[0].size)

    def batches_of_groups(self) -> Iterator[Any]:
        """All documents at once, or, where their index is too large, whole groups of them."""
        parts, spill = self.parts(), self._sets.spill
        if parts == 1 or spill is None:
            yield self._order
            return
        self.unite_parts(parts)
        labels = _roots(self.match)
        self.match, order = np.arange(labels.size), self._order
        self._seen[:] = -1
        yield from batches_of_groups(
            labels, order, self._prefixes(), max(1, spill.limit // BYTES_A_KEY)
        )

    def unite_parts(self, parts: int) -> None:
        """Unite similar documents, as COMPONENTS does, with a part of the index at a time."""
        from neardup.kernels.similarity.join import COMPONENTS

        tmp = None if self._sets.spill is None else self._sets.spill.tmp
        with KeyFile(parts, tmp) as file, ThreadPoolExecutor(1) as matcher:
            for documents, selected in self._selected():
                file.add(documents, *selected)
                self._sets.forget()
            for number in range(parts):
                self._empty_index()
                self._match(matcher, COMPONENTS, *file.part(number, self.match))

    def _match(
        self,
        matcher: ThreadPoolExecutor,
        mode: int,
        documents: Any,
        keys: Any,
        before: Any,
        key_offsets: Any,
    ) -> Any:
        from neardup.kernels.similarity.join import match_chunk

        stop = np.zeros(1, np.uint8)
        self._make_room(keys.size)
        matching = matcher.submit(
            match_chunk,
            mode, documents, self._sets.features, self._sets.offsets, self._groups,
            self._measure, self._similarity, keys, before, key_offsets, self._table,
            self._rows, self.used, self._rank, self._first_new, self._seen, self._found,
            self._sets.codes, self._distance, self.match, self.score, stop,
        )  # fmt: skip
        try:
            found = matching.result()
        except BaseException:  # an interrupt must not wait for the kernel
            stop[0] = 1
            raise
        self._sets.forget()
        return found.reshape(-1, 2)

    def _selected(self) -> Iterator[tuple[Any, tuple[Any, Any, Any]]]:
        running: deque[tuple[Any, Future[tuple[Any, Any, Any]]]] = deque()
        with ThreadPoolExecutor(self._workers) as pool:
            for documents in self._parts():
                running.append((documents, pool.submit(self._select, documents)))
                if len(running) > self._workers:
                    done, selecting = running.popleft()
                    yield done, selecting.result()
            for documents, selecting in running:
                yield documents, selecting.result()

    def _prefixes(self) -> Any:
        """How many keys each document has at most, about; int64 (n,)."""
        sizes = np.diff(self._sets.offsets)
        if self._measure == MEASURES.index("containment"):
            return sizes
        power = 2 if self._measure == MEASURES.index("cosine") else 1
        return sizes - np.ceil(self._similarity**power * sizes).astype(np.int64) + (sizes > 0)

    def _empty_index(self) -> None:
        from neardup.kernels.similarity.postings import COLUMNS

        self._table = np.zeros((1 << 10, 2), np.uint64)
        self._rows = np.empty((1 << 10, COLUMNS), np.uint32)
        self.used[:3] = 0

    def _parts(self) -> Iterator[Any]:
        sizes = np.diff(self._sets.offsets)[self._order]
        bounds = np.searchsorted(
            np.cumsum(sizes), np.arange(CHUNK_FEATURES, sizes.sum(), CHUNK_FEATURES), side="left"
        )
        return (part for part in np.split(self._order, np.unique(bounds)) if part.size)

    def _select(self, documents: Any) -> tuple[Any, Any, Any]:
        from neardup.kernels.similarity.rare_keys import select_keys

        key_offsets = np.empty(documents.size + 1, np.int64)
        keys, before = select_keys(
            self._sets.features, self._sets.offsets, documents, self._cells, self._shift,
            self._measure, self._similarity, key_offsets,
        )  # fmt: skip
        return keys, before, key_offsets

    def _make_room(self, keys: int) -> None:
        from neardup.kernels.similarity.postings import ROWS_A_KEY, rehash

        used, needed = int(self.used[0]) + 1, ROWS_A_KEY * (int(self.used[2]) + keys) + 1
        if max(needed, len(self._sets)) > MOST_ROWS:
            raise UsageError(
                f"the index would have {needed:,} rows, and {MOST_ROWS:,} is the most: give"
                " less --memory, so that a part of it is held at a time"
            )
        if needed > len(self._rows):
            most = ROWS_A_KEY * int(self._prefixes()[self._order].sum()) + 1
            spill, bytes_a_row = self._sets.spill, self._rows.strides[0]
            at_once = (BYTES_AT_ONCE if spill is None else spill.limit) // bytes_a_row
            room = min(most, at_once if needed <= at_once else needed + needed // 2)
            larger = np.empty((max(needed, room), self._rows.shape[1]), np.uint32)
            larger[:used] = self._rows[:used]
            self._rows = larger
        slots = int(self.used[1]) + keys
        if 2 * slots > len(self._table):
            table = np.zeros((1 << (2 * slots).bit_length(), 2), np.uint64)
            rehash(self._table, table)
            self._table = table


def _roots(forest: Any) -> Any:
    """The first document of each one's group."""
    while not np.array_equal(forest, forest[forest]):
        forest = forest[forest]
    return forest


def _count(sets: FeatureSets, workers: int) -> tuple[Any, Any]:
    from neardup.kernels.similarity.rare_keys import count_features

    wanted = CELLS_A_FEATURE * max(1, sets.features.size)
    bits = max(LEAST_CELL_BITS, min((wanted - 1).bit_length(), sets.cell_limit.bit_length() - 1))
    cells = np.zeros(1 << bits, np.uint8)
    shift = np.uint64(64 - bits)
    with ThreadPoolExecutor(min(2, workers)) as pool:
        for begin in range(0, sets.features.size, COUNT_FEATURES):
            part = sets.features[begin : begin + COUNT_FEATURES]
            halves = [
                pool.submit(count_features, part, shift, np.uint64(half), cells) for half in (0, 1)
            ]
            for half in halves:
                half.result()
            sets.forget()
    return cells, shift
