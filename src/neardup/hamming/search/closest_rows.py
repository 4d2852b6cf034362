"""The closest row of each query in several parts, by one kernel call for all parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.plans.blocks import multipliers_of
from neardup.hamming.search.searchers import First, ScanSearcher
from neardup.hamming.search.table_search import TableSearcher
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.hamming.search.searchers import Searcher
    from neardup.kernels.hamming.closest import Nearest
    from neardup.runtime.types import Codes, Flags

__all__ = ["closest_rows"]

RANGE: Final = 1024
"""The number of queries that a thread takes at a time."""


def closest_rows(
    queries: Codes, parts: Sequence[tuple[Searcher, Flags | None]], distance: int, workers: int
) -> Nearest:
    """The closest living row of each query, the first of equally close ones.

    Args:
        queries: uint64 (q, width).
        parts: What searches each, and bool (n,): which of its rows are removed; None: none.
        distance: The largest at which a row is near.
        workers: Threads.

    Returns:
        int64 (q,) each: distances, `distance` + 1 where no row is near; parts, -1 there; rows.

    Raises:
        DataError: If a given table does not agree with its rows.
    """
    from neardup.kernels.hamming.closest import Nearest

    count, flat = len(queries), frozen(queries).reshape(-1)
    none = np.full(count, -1)
    nearest = Nearest(np.full(count, distance + 1), none, none.copy())
    ranges = [(begin, min(begin + RANGE, count)) for begin in range(0, count, RANGE)]
    looked_up = [at for at, (each, _) in enumerate(parts) if isinstance(each, TableSearcher)]
    done = np.ones((len(ranges), len(looked_up)), np.bool_)
    looking_up = _Lookup(parts, looked_up, queries.shape[1])
    scanned = [at for at, (each, _) in enumerate(parts) if isinstance(each, ScanSearcher)]

    def search(_: int, some: int) -> None:  # each range has queries of its own
        looking_up(flat, ranges[some], nearest, done[some])
        for at in scanned:
            _scan(flat, ranges[some], at, *parts[at], nearest)

    in_threads(workers, search, range(len(ranges)))
    heavy = np.array(looked_up, np.int64)[~done.all(axis=0)].tolist()
    rows = {*looked_up, *scanned}
    for at in [*heavy, *(at for at in range(len(parts)) if at not in rows)]:
        _search(queries, at, parts[at], nearest, distance)
    return nearest


class _Lookup:
    """The tables of some parts, in the form that the kernel takes."""

    def __init__(
        self, parts: Sequence[tuple[Searcher, Flags | None]], chosen: list[int], width: int
    ) -> None:
        from neardup.kernels.hamming.hash_tables import stacked

        self._views = stacked([parts[at][0].view for at in chosen])  # type: ignore[attr-defined]
        self._dead = [_marks(parts[at][1]) for at in chosen]
        places = [(x.__array_interface__["data"][0], x.size) for x in self._dead]
        rows = [(at, *place) for at, place in zip(chosen, places, strict=True)]
        self._parts = np.array(rows, np.int64).reshape(-1, 3)
        self._multipliers = multipliers_of(width)

    def __call__(self, flat: Any, some: tuple[int, int], nearest: Nearest, done: Flags) -> None:
        from neardup.kernels.hamming.closest import closest_in_tables

        if len(self._parts):
            closest_in_tables(
                flat, *some, self._views, self._parts, self._multipliers, nearest, done
            )


def _scan(
    flat: Any, some: tuple[int, int], at: int, searcher: Any, dead: Flags | None, nearest: Nearest
) -> None:
    from neardup.kernels.hamming.closest import Part, closest_in_rows

    codes, count, multipliers = searcher.compared
    closest_in_rows(flat, *some, codes, count, Part(at, _marks(dead)), multipliers, nearest)


def _search(
    queries: Codes, at: int, part: tuple[Searcher, Flags | None], nearest: Nearest, distance: int
) -> None:
    """The closest rows in one part that has heavy buckets or a plan unknown to the joint kernel."""
    searcher, dead = part
    neighbours = searcher.search(queries, distance, 1, First(1, dead))
    order = np.lexsort((neighbours.rows, neighbours.distances, neighbours.queries))
    numbers, begins = np.unique(neighbours.queries[order], return_index=True)
    rows, distances = neighbours.rows[order[begins]], neighbours.distances[order[begins]]
    best, parts = nearest.distances[numbers], nearest.parts[numbers]
    is_first = (at < parts) | ((at == parts) & (rows < nearest.rows[numbers]))
    closer = np.flatnonzero((distances < best) | ((distances == best) & is_first))
    chosen = numbers[closer]
    nearest.distances[chosen], nearest.parts[chosen] = distances[closer], at
    nearest.rows[chosen] = rows[closer]


def _marks(dead: Flags | None) -> Any:
    """Removal marks as kernels take them: uint8 (n,), of size 0 without any."""
    return _NONE if dead is None else frozen(dead).view(np.uint8)


_NONE: Final = frozen(np.empty(0, np.uint8))
