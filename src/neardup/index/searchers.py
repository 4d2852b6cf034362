"""Search some rows that do not change: one class a kind of plan, all with the same answers.

A bucket that holds far more rows than the plan expects (a million equal pages, or a million whose
block of bits is the same) is not compared row by row: its distinct fingerprints get a searcher of
their own, planned on their own bits.
"""

from __future__ import annotations

import threading
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from neardup.index.tables import build_tables, probes_of
from neardup.partition import (
    Groups,
    frozen,
    group_equal,
    in_threads,
    multipliers,
    workers_or_default,
)
from neardup.search_planner import SearchPlan, plan_search

__all__ = ["Found", "Searcher", "build_searcher"]

SAMPLE_ROWS: Final = 1024
QUERIES_PER_TASK: Final = 4096
FEW_HITS: Final = 256


class Found(NamedTuple):
    """Matches in no particular order, each once."""

    queries: Any  # int64
    rows: Any  # int64
    distances: Any  # int64

    @classmethod
    def joined(cls, parts: list[Found]) -> Found:
        """The matches of several parts."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*parts, strict=True) if parts else [()] * 3
        return cls(*(np.concatenate([*each, np.empty(0, np.int64)]) for each in columns))

    def only(self, chosen: Any) -> Found:
        """The matches that a bool array or positions choose."""
        return Found(*(column[chosen] for column in self))

    def first(self, most: int | None, dead: Any) -> tuple[list[tuple[int, int]], int]:
        """What `Searcher.search_once` returns, of the matches of one query."""
        return first_hits(np.stack([self.rows, self.distances]), most, dead)


class Searcher(Protocol):
    """What every kind of search can do."""

    plan: SearchPlan

    def search(self, queries: Any, distance: int, workers: int) -> Found:
        """The rows within the distance of each query, uint64 (q, words)."""

    def search_once(
        self, query: Any, distance: int, most: int | None = None, dead: Any = None
    ) -> tuple[list[tuple[int, int]], int]:
        """The (distance, row) of one query, uint64 (words,), unsorted, and how many there are.

        Of many, only the `most` that are first by distance and row; rows marked in `dead`, bool,
        are left out.
        """

    @property
    def nbytes(self) -> int:
        """Memory beside the fingerprints."""


def build_searcher(
    words: Any,
    plan: SearchPlan,
    distance: int,
    bits: int,
    workers: int | None = None,
    tables: Any = None,
) -> Searcher:
    """Make what the plan needs to search uint64 (n, words), n < 2**32, by the distance.

    `tables` are the plan's tables of these rows, if they were made before.
    """
    flat = frozen(words)
    threads = workers_or_default(workers)
    if len(plan.masks) and len(flat):
        return TableSearcher(flat, plan, distance, bits, threads, tables)
    if plan.kind == "bits":
        from neardup.index.bit_slices import SlicesSearcher

        return SlicesSearcher(flat, plan, bits, threads)
    if plan.kind == "permute" and plan.lookups:
        from neardup.index.permuted import PermutedSearcher

        return PermutedSearcher(flat, plan, distance, bits, threads)
    return ScanSearcher(flat, plan)


class ScanSearcher:
    """Compares each query with every row."""

    def __init__(self, words: Any, plan: SearchPlan) -> None:
        """Take uint64 (n, words)."""
        self.plan = plan
        self._count, width = words.shape
        self._words, self._odd = words.reshape(-1), multipliers(width)

    @property
    def nbytes(self) -> int:
        """None."""
        return 0

    def search(self, queries: Any, distance: int, workers: int) -> Found:
        """See Searcher."""
        from neardup.kernels.tables import search_rows

        flat = frozen(queries).reshape(-1)
        return in_parts(
            len(queries),
            workers,
            lambda first, last: Found(
                *search_rows(flat, first, last, self._words, self._count, self._odd, distance)
            ),
        )

    def search_once(
        self, query: Any, distance: int, most: int | None = None, dead: Any = None
    ) -> tuple[list[tuple[int, int]], int]:
        """See Searcher."""
        from neardup.kernels.tables import search_rows_once

        arguments = (query, self._words, self._count, self._odd, distance)
        return first_hits(within_room(search_rows_once, *arguments), most, dead)


class TableSearcher:
    """Looks a query up in tables of rows by some of their bits."""

    def __init__(
        self,
        words: Any,
        plan: SearchPlan,
        distance: int,
        bits: int,
        workers: int,
        tables: Any = None,
    ) -> None:
        """Build every table of the plan for uint64 (n, words), unless they are given."""
        from neardup.kernels.tables import search_tables_once, view_of

        self.plan = plan
        self._words, self._bits, self._distance = words, bits, distance
        self._tables = tables or build_tables(words, plan, workers)
        self._probes = probes_of(plan, distance)
        self._view, self._odd = view_of(self._tables, self._probes), self._tables.odd
        self._once = search_tables_once
        self._children: dict[tuple[int, int], _HeavyBucket] = {}
        self._lock = threading.Lock()

    @property
    def tables(self) -> Any:
        """The kernels' Tables."""
        return self._tables

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return sum(x.nbytes for x in self._tables[:3])

    def search(self, queries: Any, distance: int, workers: int) -> Found:
        """See Searcher."""
        flat = frozen(queries).reshape(-1)
        heavy: list[Any] = []

        def part(first: int, last: int) -> Found:
            hits, too_heavy = self._search(flat, first, last, distance)
            heavy.append(too_heavy)
            return Found(*hits)

        found = in_parts(len(queries), workers, part)
        waiting = np.concatenate([*heavy, np.empty((0, 4), np.int64)])
        return self._with_heavy(found, waiting, queries, distance, workers)

    def _search(self, flat: Any, first: int, last: int, distance: int) -> Any:
        from neardup.kernels.tables import search_tables

        return search_tables(flat, first, last, self._tables, self._probes, distance)

    def search_once(
        self, query: Any, distance: int, most: int | None = None, dead: Any = None
    ) -> tuple[list[tuple[int, int]], int]:
        """See Searcher."""
        hits = within_room(self._once, query, self._view, self._odd, distance)
        if hits is NOTHING:
            return [], 0
        if hits is None:
            return self.search(query[None, :], distance, 1).first(most, dead)
        return first_hits(hits, most, dead)

    def _with_heavy(
        self, found: Found, waiting: Any, queries: Any, distance: int, workers: int
    ) -> Found:
        """Add what the heavy buckets hold for the queries that came to them."""
        if not len(waiting):
            return found
        waiting = waiting[np.lexsort((waiting[:, 2], waiting[:, 1]))]
        edges = np.flatnonzero(np.any(waiting[1:, 1:3] != waiting[:-1, 1:3], axis=1)) + 1
        parts = [found]
        for group in np.split(waiting, edges):
            probe, low, high = group[0, 1:].tolist()
            asked = queries[group[:, 0]]
            child = self._child(int(self._probes.tables[probe]), low, high)
            inside = child.search(asked, distance, workers)
            due = self._due(asked[inside.queries] ^ self._words[inside.rows], probe)
            named = inside._replace(queries=group[:, 0][inside.queries])
            parts.append(named.only(due))
        return Found.joined(parts)

    def _due(self, differ: Any, probe: int) -> Any:
        """Which rows this probe reports, as the kernel's `due_here`: bool."""
        masks, table = self._tables.masks, self._probes.tables[probe]
        due = ~((differ ^ self._probes.flips[probe]) & masks[table]).any(axis=1)
        for mask, radius in zip(masks[:table], self._probes.radii[:table], strict=True):
            due &= np.bitwise_count(differ & mask).sum(axis=1) > radius
        return due

    def _child(self, table: int, low: int, high: int) -> _HeavyBucket:
        with self._lock:
            child = self._children.get((table, low))
            if child is None:
                rows = self._tables.rows[table, low:high].astype(np.int64)
                child = _HeavyBucket(self._words, rows, self._distance, self._bits)
                self._children[table, low] = child
            return child


class _HeavyBucket:
    """The rows of a heavy bucket: their distinct fingerprints, and which rows have each."""

    def __init__(self, words: Any, rows: Any, distance: int, bits: int) -> None:
        self._rows = rows
        self._groups = Groups.of(group_equal(words[rows], 1))
        distinct = words[rows[self._groups.firsts]]
        plan = plan_for(distinct, distance, bits, "auto")
        self._searcher = build_searcher(distinct, plan, distance, bits, 1)

    def search(self, queries: Any, distance: int, workers: int) -> Found:
        """As of a Searcher; rows are those of the whole."""
        found = self._searcher.search(queries, distance, workers)
        sizes, starts = self._groups.sizes[found.rows], self._groups.starts[found.rows]
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        within = np.arange(total) - np.repeat(ends - sizes, sizes)
        members = self._groups.members[np.repeat(starts, sizes) + within]
        return Found(
            np.repeat(found.queries, sizes),
            self._rows[members],
            np.repeat(found.distances, sizes),
        )


def plan_for(
    words: Any, distance: int, bits: int, plan: str, memory: float = float("inf")
) -> SearchPlan:
    """The plan for these rows, on a sample of them."""
    step = max(1, len(words) // SAMPLE_ROWS)
    return plan_search(len(words), distance, bits, words[::step], plan, memory)


def in_parts(count: int, workers: int, search: Any) -> Found:
    """Search ranges of the queries on threads."""
    size = max(1, min(QUERIES_PER_TASK, -(-count // (4 * workers))))
    ranges = [(first, min(first + size, count)) for first in range(0, count, size)]
    parts: list[Any] = [None] * len(ranges)

    def run(_: int, i: int) -> None:
        parts[i] = search(*ranges[i])

    in_threads(workers, run, range(len(ranges)))
    return Found.joined(parts)


NOTHING: Final = frozen(np.empty((2, 0), np.int64))


class _Room(threading.local):
    """A thread's room for the rows and distances of one query's hits."""

    def __init__(self) -> None:
        self.few = np.empty((2, FEW_HITS), np.int64)


_room = _Room()


def within_room(search: Any, *arguments: Any) -> Any:
    """Search one query into this thread's room, or if that is too small into more.

    Returns:
        int64 (2, hits), rows and distances, valid until the thread's next search, NOTHING for
        none; None if the search returns less than 0.
    """
    room = _room.few
    count = search(*arguments, room)
    if count == 0:
        return NOTHING
    if count < 0:
        return None
    if count > FEW_HITS:
        room = np.empty((2, count), np.int64)
        search(*arguments, room)
    return room[:, :count]


def first_hits(hits: Any, most: int | None, dead: Any) -> tuple[list[tuple[int, int]], int]:
    """The (distance, row) of living int64 (2, hits), of many the first `most`; and how many."""
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
