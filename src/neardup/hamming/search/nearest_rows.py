"""The nearest rows of each query, at any distance: one scan on every core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.plans.blocks import multipliers_of
from neardup.hamming.search.searchers import Neighbours
from neardup.runtime.arrays import frozen
from neardup.runtime.partition_by_key import even_ranges
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from neardup.runtime.types import Codes, Flags, Words

__all__ = ["nearest_neighbours"]

ROWS_OF_A_THREAD: Final = 1 << 18
"""The least rows for a thread: fewer are scanned in less time than a thread takes to start."""
SPARE_ROOM: Final = 1024
ROOM_AT_ONCE: Final = 1 << 21
"""The places for hits, for all queries of a thread together."""
ALL: Final = frozen(np.empty(0, np.bool_))


def nearest_neighbours(
    codes: Codes, queries: Codes, n: int, workers: int = 1, dead: Flags | None = None
) -> Neighbours:
    """The n nearest rows of each query; of equally near rows the first ones.

    Args:
        codes: uint64 (rows, width).
        queries: uint64 (q, width).
        n: How many, 1 or more.
        workers: Threads at most.
        dead: bool (rows,): rows that are left out; None: none.

    Returns:
        Rows of each query, in no order; all of them where there are fewer than n.
    """
    limit = min(n, len(codes))
    if not limit or not len(queries):
        return Neighbours.joined([])
    capacity = 2 * limit + SPARE_ROOM
    at_once = max(1, ROOM_AT_ONCE // capacity)
    threads = max(1, min(workers, len(codes) * len(queries) // ROWS_OF_A_THREAD))
    parts = 1 if len(queries) >= threads else -(-threads // len(queries))
    size = min(at_once, -(-len(queries) * parts // threads))
    tasks = [
        (first, min(first + size, len(queries)), bound)
        for first in range(0, len(queries), size)
        for bound in even_ranges(len(codes), parts)
    ]
    results: list[Any] = [None] * len(tasks)
    flat, flat_queries = frozen(codes).reshape(-1), frozen(queries)

    def run(_: int, i: int) -> None:
        first, last, bound = tasks[i]
        results[i] = _scan(flat, flat_queries[first:last], bound, limit, capacity, first, dead)

    # Ranges of rows are scanned apart, each with a bound of its own: `joined` may hold more than n
    # rows of a query, and its callers cut to the nearest, the first of equal ones.
    in_threads(threads, run, range(len(tasks)))
    return Neighbours.joined(results)


def _scan(
    flat: Words,
    queries: Codes,
    bound: tuple[int, int],
    limit: int,
    capacity: int,
    first: int,
    dead: Flags | None,
) -> Neighbours:
    """The nearest rows in a range of rows; the numbers of the queries begin with `first`."""
    from neardup.kernels.hamming.nearest_scan import BOUND, COUNT, LivingRows, nearest_rows

    width = queries.shape[1]
    nearest = np.empty((len(queries), 2, capacity), np.int64)
    states = np.zeros((len(queries), 2), np.int64)
    states[:, BOUND] = 64 * width + 1
    left_out = ALL if dead is None else frozen(dead)
    words = frozen(queries).reshape(-1)
    rows = LivingRows(flat, left_out, multipliers_of(width))
    nearest_rows(words, rows, *bound, limit, nearest, states)
    counts = states[:, COUNT]
    there = np.arange(capacity) < counts[:, None]
    return Neighbours(
        np.repeat(np.arange(first, first + len(queries)), counts), nearest[:, 0][there],
        nearest[:, 1][there],
    )  # fmt: skip
