"""The first ones of many matches of each query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.hamming.hash_tables import RUN_ROWS, TILE_ROWS, apart, count_within
from neardup.kernels.jit import inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Codes, Int64s

KEY_ROW_BITS: Final = 40
"""Bits of the row in the key of a match, by which matches are ordered by distance, then by row:
distance << KEY_ROW_BITS | row."""


class FirstRule(NamedTuple):
    """The rule for the first matches of a query; the room for keys says how many are kept."""

    by_age: bool  # the first by row, not by distance and row
    dead: Any  # uint64 (rows / 64, rounded up) or (0,), read-only: rows that are left out


@inner
def _sink(heap: Any, begin: int, size: int) -> None:
    """Move heap[begin] down to its place in a heap of `size`, which has the largest on top."""
    at = np.int64(0)
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[begin + child + 1] > heap[begin + child]:
            child += 1
        if heap[begin + at] >= heap[begin + child]:
            return
        heap[begin + at], heap[begin + child] = heap[begin + child], heap[begin + at]
        at = child


@inner
def _rise(heap: Any, begin: int, at: int) -> None:
    """Move heap[begin + at] up to its place in the heap that begins at `begin`."""
    while at and heap[begin + (at - 1) // 2] < heap[begin + at]:
        parent = (at - 1) // 2
        heap[begin + at], heap[begin + parent] = heap[begin + parent], heap[begin + at]
        at = parent


@inner
def keep_first(
    heap: Any, begin: int, capacity: int, sizes: Int64s, q: int, key: int, by_age: bool
) -> None:
    """Put the key of a later row in the heap of query q, if it is among the first so far."""
    size = sizes[q]
    if size < capacity:
        heap[begin + size] = key
        _rise(heap, begin, size)
        sizes[q] = size + 1
    elif not by_age and key < heap[begin]:
        heap[begin] = key
        _sink(heap, begin, size)


@inner
def _is_marked(flags: Any, row: int) -> bool:
    if not flags.size:
        return False
    return (flags[row >> 6] >> np.uint64(row & 63)) & np.uint64(1) != np.uint64(0)


@kernel
def first_in_rows(
    queries: Codes, codes: Codes, count: int, multipliers: Any, distance: int, rule: FirstRule,
    keys: Int64s, sizes: Int64s,
) -> int:  # fmt: skip
    """Find the first rows within the distance of each query; the others are only counted.

    Args:
        queries: uint64 (q * W,), may be read-only.
        codes: uint64 (rows * W,), may be read-only.
        count: Rows.
        multipliers: A tuple of W.
        distance: The largest distance of a match.
        rule: FirstRule.
        keys: int64 (q, most of each), written: distance << KEY_ROW_BITS | row of the matches.
        sizes: int64 (q,), zeros; how many of each query, written.

    Returns:
        How many living rows within the distance of a query are not among the keys.
    """
    width, heap, capacity, living = len(multipliers), keys.reshape(-1), np.int64(keys.shape[1]), 0
    dead, by_age = rule.dead, rule.by_age
    for low in range(0, count, TILE_ROWS):
        high = min(low + TILE_ROWS, count)
        for q in range(len(sizes)):
            begin = q * capacity
            for first in range(low, high, RUN_ROWS):
                last = min(first + RUN_ROWS, high)
                reach = np.int64(distance)
                near = count_within(queries, q * width, codes, first, last, reach, multipliers)
                if near and not dead.size and sizes[q] == capacity:
                    living += near
                    # Of equal distance the rows before are first.
                    reach = np.int64(-1) if by_age else (heap[begin] >> KEY_ROW_BITS) - 1
                    near = count_within(queries, q * width, codes, first, last, reach, multipliers)
                    living -= near
                if near == 0:
                    continue
                for row in range(first, last):
                    d = apart(queries, q * width, codes, row * width, multipliers)
                    if d <= reach and not _is_marked(dead, row):
                        living += 1
                        keep_first(heap, begin, capacity, sizes, q, d << KEY_ROW_BITS | row, by_age)
    for q in range(len(sizes)):
        living -= sizes[q]
    return living


@kernel
def first_of_each(queries: Int64s, keys: Int64s, count: int, most: int) -> Any:
    """Mark the matches of the `most` smallest keys of each query; O(matches), log(most) at worst.

    Args:
        queries: int64 (m,), from 0 to count - 1.
        keys: int64 (m,), all different for one query.
        count: Queries.
        most: 1 or more.

    Returns:
        bool (m,).
    """
    sizes, starts = np.zeros(count, np.int64), np.zeros(count + 1, np.int64)
    for i in range(queries.size):
        sizes[queries[i]] += 1
    for q in range(count):
        starts[q + 1] = starts[q] + min(sizes[q], most)
        sizes[q] = 0
    heap = np.empty(starts[count], np.int64)
    for i in range(queries.size):
        q, key = queries[i], keys[i]
        begin, size = starts[q], sizes[q]
        if size < starts[q + 1] - begin:
            heap[begin + size] = key
            _rise(heap, begin, size)
            sizes[q] = size + 1
        elif key < heap[begin]:
            heap[begin] = key
            _sink(heap, begin, size)
    chosen = np.empty(queries.size, np.bool_)
    for i in range(queries.size):
        chosen[i] = keys[i] <= heap[starts[queries[i]]]
    return chosen
