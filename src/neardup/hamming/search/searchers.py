"""Searchers of rows that do not change: a class for each kind of plan, all with the same answers.

A bucket that holds far more rows than the plan expects (a million equal pages, or a million whose
block of bits is the same) is not compared row by row: its distinct fingerprints get a searcher of
their own, planned on their own bits.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np

from neardup.hamming.plans.blocks import multipliers_of
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from neardup.hamming.plans.search_plan import SearchPlan
    from neardup.runtime.types import Code, Codes, Flags, Rows, Words

__all__ = [
    "NOTHING",
    "First",
    "Neighbours",
    "ScanSearcher",
    "Searcher",
    "first_hits",
    "in_parts",
    "in_workspace",
]

QUERIES_PER_TASK: Final = 4096
QUERIES_CUT_AT_ONCE: Final = 64
"""The most queries whose matches are in memory at a time, with a limit."""
MATCHES_AT_ONCE: Final = 1 << 22
"""The most matches in memory at a time with a limit, unless one query has more."""
FEW_HITS: Final = 256
QUERIES_KEPT_AT_ONCE: Final = 256
MOST_KEPT: Final = 4096
"""The largest limit with which the first matches are collected during a search."""


class Neighbours(NamedTuple):
    """Matches in no particular order, each once."""

    queries: Rows
    rows: Rows
    distances: Rows

    @classmethod
    def joined(cls, parts: list[Neighbours]) -> Neighbours:
        """The matches of several parts."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*parts, strict=True) if parts else [()] * 3
        return cls(*(np.concatenate([*each, np.empty(0, np.int64)]) for each in columns))

    def only(self, chosen: Flags | Rows) -> Neighbours:
        """The matches that a bool array or positions choose."""
        return Neighbours(*(column[chosen] for column in self))

    def first(self, most: int | None, dead: Flags | None) -> tuple[list[tuple[int, int]], int]:
        """The first of one query's matches, as `Searcher.search_once` returns them."""
        return first_hits(np.stack([self.rows, self.distances]), most, dead)


class First:
    """A limit on the matches of a query: only the first living ones are returned.

    Args:
        most: How many of each query, 1 or more.
        dead: bool (n,): rows that are left out; None: none.
        by_age: The first by row, not by distance and row.
    """

    def __init__(self, most: int, dead: Flags | None = None, *, by_age: bool = False) -> None:
        """Store the rule; no match is cut before the first search."""
        self.most, self.dead, self.by_age = most, dead, by_age
        self._cuts: list[int] = []

    @property
    def cut(self) -> int:
        """The number of living matches that were left out."""
        return sum(self._cuts)

    def is_kept(self, count: int) -> bool:
        """Whether a search of `count` rows collects the first matches, which takes memory."""
        return min(self.most, count) <= MOST_KEPT

    def note(self, cut: int) -> None:
        """Count matches that a searcher left out itself."""
        self._cuts.append(cut)

    def of(self, neighbours: Neighbours, count: int) -> Neighbours:
        """The first living matches of each query, for queries 0 to count - 1."""
        from neardup.kernels.hamming.first import KEY_ROW_BITS, first_of_each

        if self.dead is not None:
            neighbours = neighbours.only(~self.dead[neighbours.rows])
        if len(neighbours.rows) <= self.most:
            return neighbours
        by_distance = neighbours.distances << np.int64(KEY_ROW_BITS) | neighbours.rows
        keys = neighbours.rows if self.by_age else by_distance
        chosen = first_of_each(frozen(neighbours.queries), frozen(keys), count, self.most)
        first = neighbours.only(chosen)
        self.note(len(neighbours.rows) - len(first.rows))
        return first


class Searcher(Protocol):
    """The interface of every searcher."""

    plan: SearchPlan

    def search(
        self, queries: Codes, distance: int, workers: int, first: First | None = None
    ) -> Neighbours:
        """The rows within the distance of each query, uint64 (q, width).

        With `first` only the living ones, and at least those that it asks; it counts the others.
        """

    def search_once(
        self, query: Code, distance: int, most: int | None = None, dead: Flags | None = None
    ) -> tuple[list[tuple[int, int]], int]:
        """The (distance, row) of a query's matches, uint64 (width,), unsorted, and their number.

        Of many, only the `most` that are first by distance and row; rows marked in `dead`, bool,
        are left out.
        """

    @property
    def nbytes(self) -> int:
        """The memory of the searcher in addition to the fingerprints."""


class ScanSearcher:
    """A searcher that compares each query with every row."""

    def __init__(self, codes: Codes, plan: SearchPlan) -> None:
        """Store the fingerprints, uint64 (n, width)."""
        self.plan = plan
        self._count, width = codes.shape
        self._codes, self._multipliers = codes.reshape(-1), multipliers_of(width)

    @property
    def compared(self) -> tuple[Words, int, tuple[Any, ...]]:
        """The fingerprints as kernels take them: flat, their number, multipliers."""
        return self._codes, self._count, self._multipliers

    @property
    def nbytes(self) -> int:
        """Zero: a scan needs no tables."""
        return 0

    def search(
        self, queries: Codes, distance: int, workers: int, first: First | None = None
    ) -> Neighbours:
        """See Searcher."""
        from neardup.kernels.hamming.first import first_in_rows
        from neardup.kernels.hamming.hash_tables import search_rows

        flat = frozen(queries).reshape(-1)
        if first is not None and first.is_kept(self._count):
            width = queries.shape[1]
            where = (self._codes, self._count, self._multipliers, distance)
            return kept_first(
                len(queries),
                workers,
                lambda begin, end, *wanted: first_in_rows(
                    flat[begin * width : end * width], *where, *wanted
                ),
                first,
                self._count,
            )
        return in_parts(
            len(queries),
            workers,
            lambda begin, end: Neighbours(
                *search_rows(
                    flat, begin, end, self._codes, self._count, self._multipliers, distance
                )
            ),
            first,
            self._count,
        )

    def search_once(
        self, query: Code, distance: int, most: int | None = None, dead: Flags | None = None
    ) -> tuple[list[tuple[int, int]], int]:
        """See Searcher."""
        from neardup.kernels.hamming.hash_tables import search_rows_once

        arguments = (query, self._codes, self._count, self._multipliers, distance)
        return first_hits(in_workspace(search_rows_once, *arguments), most, dead)


def in_parts(
    count: int, workers: int, search: Any, first: First | None = None, matches: int = 1
) -> Neighbours:
    """Search ranges of the queries in threads; matches beyond the limit are dropped range by range.

    A query has up to `matches` matches.
    """
    at_once = min(QUERIES_CUT_AT_ONCE, MATCHES_AT_ONCE // max(matches, 1))
    most = QUERIES_PER_TASK if first is None else at_once
    size = _range_size(count, workers, most)
    ranges = [(begin, min(begin + size, count)) for begin in range(0, count, size)]
    parts: list[Any] = [None] * len(ranges)

    def run(_: int, i: int) -> None:
        hits = search(*ranges[i])
        parts[i] = hits if first is None else first.of(hits, count)

    in_threads(workers, run, range(len(ranges)))
    return Neighbours.joined(parts)


def _range_size(count: int, workers: int, most: int) -> int:
    """The most queries in a range: several ranges for each thread, so that none waits for long."""
    return max(1, min(most, count if workers == 1 else -(-count // (4 * workers))))


def kept_first(count: int, workers: int, search: Any, first: First, rows: int) -> Neighbours:
    """Search ranges of the queries in threads, which keep the first matches and count the others.

    Args:
        count: Queries.
        workers: Threads.
        search: Called with the begin and end of a range, FirstRule, keys and sizes (see
            `first_in_rows`); returns how many matches it left out.
        first: Told these.
        rows: That are searched.
    """
    from neardup.kernels.hamming.first import KEY_ROW_BITS, FirstRule

    room, rule = min(first.most, rows), FirstRule(first.by_age, _as_words(first.dead))
    size = _range_size(count, workers, QUERIES_KEPT_AT_ONCE)
    begins = range(0, count, size)
    parts: list[Any] = [None] * len(begins)

    def run(_: int, begin: int) -> None:
        end = min(begin + size, count)
        keys, sizes = np.empty((end - begin, room), np.int64), np.zeros(end - begin, np.int64)
        first.note(search(begin, end, rule, keys, sizes))
        queries, at = np.nonzero(np.arange(room) < sizes[:, None])
        key = keys[queries, at]
        matched = key & np.int64((1 << KEY_ROW_BITS) - 1)
        parts[begin // size] = Neighbours(queries + begin, matched, key >> KEY_ROW_BITS)

    in_threads(workers, run, begins)
    return Neighbours.joined(parts)


def _as_words(flags: Flags | None) -> Any:
    """Flags as bits, uint64 (n / 64, rounded up); None for None."""
    if flags is None:
        return frozen(np.empty(0, np.uint64))
    words = np.zeros(-(-len(flags) // 64), np.uint64)
    packed = np.packbits(flags, bitorder="little")
    words.view(np.uint8)[: len(packed)] = packed
    return frozen(words)


NOTHING: Final = frozen(np.empty((2, 0), np.int64))


class _Workspace(threading.local):
    """A thread's arrays for the rows and distances of one query's hits."""

    def __init__(self) -> None:
        self.few = np.empty((2, FEW_HITS), np.int64)


_workspace = _Workspace()


def in_workspace(search: Any, *arguments: Any) -> Any:
    """The hits of one query, searched in this thread's workspace, or a larger one if needed.

    Returns:
        int64 (2, hits), rows and distances, valid until the thread's next search, NOTHING for
        none; None if the search returns less than 0.
    """
    workspace = _workspace.few
    count = search(*arguments, workspace)
    if count == 0:
        return NOTHING
    if count < 0:
        return None
    if count > FEW_HITS:
        workspace = np.empty((2, count), np.int64)
        search(*arguments, workspace)
    return workspace[:, :count]


def first_hits(
    hits: Any, most: int | None, dead: Flags | None
) -> tuple[list[tuple[int, int]], int]:
    """The (distance, row) of the first `most` living hits of int64 (2, hits), and their number."""
    count = hits.shape[1]
    if count == 0:
        return [], 0
    if dead is not None:
        hits = hits[:, ~dead[hits[0]]]
        count = hits.shape[1]
    if most is not None and most < count and count > FEW_HITS:
        order = hits[1] << np.int64(32) | hits[0]
        hits = hits[:, np.argpartition(order, most)[:most]]
    rows, distances = hits.tolist()
    return list(zip(distances, rows, strict=True)), count
