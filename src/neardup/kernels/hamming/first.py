"""Of many matches of each query, the first ones."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from neardup.kernels.jit import inner, kernel

KEY_ROW_BITS: Final = 40
"""A match is ordered by distance, then by row: distance << KEY_ROW_BITS | row."""


@inner
def sink(heap: Any, begin: int, size: int) -> None:
    """Bring heap[begin] down to its place, of a heap of `size` with the largest on top."""
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
def rise(heap: Any, begin: int, at: int) -> None:
    """Bring heap[begin + at] up to its place."""
    while at and heap[begin + (at - 1) // 2] < heap[begin + at]:
        parent = (at - 1) // 2
        heap[begin + at], heap[begin + parent] = heap[begin + parent], heap[begin + at]
        at = parent


@kernel
def first_of_each(queries: Any, keys: Any, count: int, most: int) -> Any:
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
            rise(heap, begin, size)
            sizes[q] = size + 1
        elif key < heap[begin]:
            heap[begin] = key
            sink(heap, begin, size)
    chosen = np.empty(queries.size, np.bool_)
    for i in range(queries.size):
        chosen[i] = keys[i] <= heap[starts[queries[i]]]
    return chosen
