"""The nearest rows of each query: one scan, with a bound that falls as rows are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.hamming.hash_tables import RUN_ROWS, TILE_ROWS, apart, count_within
from neardup.kernels.jit import fill, inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Rows, Words

COUNT, BOUND = 0, 1


class LivingRows(NamedTuple):
    """Rows, and which of them are left out of the search."""

    codes: Any  # uint64 (n * W), may be read-only
    dead: Any  # bool (n,): rows that are left out; empty: none
    multipliers: tuple[Any, ...]  # of length W


@inner
def _keep_nearest(rows: Rows, distances: Int64s, state: Int64s, limit: int, sizes: Int64s) -> None:
    """Keep the `limit` nearest of state[COUNT] rows, the first of ties; lower the bound."""
    count = state[COUNT]
    if count <= limit:
        return
    fill(sizes, 0, len(sizes), np.int64(0))
    for i in range(count):
        sizes[distances[i]] += 1
    last, nearer = np.int64(0), np.int64(0)
    while nearer + sizes[last] < limit:
        nearer += sizes[last]
        last += 1
    kept, places = np.int64(0), limit - nearer
    for i in range(count):
        d = distances[i]
        if d < last or (d == last and places > 0):
            places -= np.int64(d == last)
            rows[kept], distances[kept] = rows[i], d
            kept += 1
    state[COUNT], state[BOUND] = kept, last


@kernel
def nearest_rows(
    queries: Words, rows: LivingRows, first: int, last: int, limit: int, nearest: Int64s,
    states: Int64s,
) -> None:  # fmt: skip
    """Find the nearest of rows first..last-1 for each query; O(rows) a query, a tile at a time.

    Args:
        queries: uint64 (q * W), may be read-only.
        rows: LivingRows.
        first: See above.
        last: See above.
        limit: How many, 1 or more.
        nearest: int64 (q, 2, room), written: rows and distances, of equal distances the first rows,
            ascending; with room for more than `limit` and RUN_ROWS.
        states: int64 (q, 2), written: COUNT of the rows found so far, initially 0, and BOUND: rows
            as far as that or farther are left out, initially what is farther than any.
    """
    codes, dead, multipliers = rows.codes, rows.dead, rows.multipliers
    width = len(multipliers)
    sizes = np.zeros(64 * width + 1, np.int64)
    for low in range(first, last, TILE_ROWS):
        high = min(low + TILE_ROWS, last)
        for q in range(len(states)):
            state, places, distances = states[q], nearest[q, 0], nearest[q, 1]
            for begin in range(low, high, RUN_ROWS):
                end = min(begin + RUN_ROWS, high)
                most = state[BOUND] - 1
                if count_within(queries, q * width, codes, begin, end, most, multipliers) == 0:
                    continue
                if state[COUNT] + RUN_ROWS > len(places):
                    _keep_nearest(places, distances, state, limit, sizes)
                    most = state[BOUND] - 1
                for row in range(begin, end):
                    d = apart(queries, q * width, codes, row * width, multipliers)
                    if d <= most and not (len(dead) and dead[row]):
                        places[state[COUNT]], distances[state[COUNT]] = row, d
                        state[COUNT] += 1
    for q in range(len(states)):
        _keep_nearest(nearest[q, 0], nearest[q, 1], states[q], limit, sizes)
