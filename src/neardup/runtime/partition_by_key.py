"""Partition of rows by key in threads, and ranges of work for them.

The order is stable whatever the number of threads: every thread counts and moves its own range of
rows, and the places of a range come after those of the ranges before it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["balanced_ranges", "by_key", "even_ranges"]


def by_key(
    ranges: list[tuple[int, int]],
    bins: int,
    workers: int,
    count: Callable[[int, int, Any], None],
    scatter: Callable[[int, int, Any], None],
) -> Any:
    """Partition rows by a key that two kernels compute: one counts, the other moves them.

    Args:
        ranges: The rows first..last-1 that are each one thread's, one range or more.
        bins: Keys are 0 to bins - 1.
        workers: Threads.
        count: count(first, last, counts) adds to int64 (bins,) how many rows have each key.
        scatter: scatter(first, last, places) moves each row to places[key], int64 (bins,), and
            advances that by one.

    Returns:
        int64 (bins + 1,): where each key's rows begin.

    Example:
        >>> keys, out = np.array([2, 0, 2, 1]), np.empty(4, np.int64)
        >>> def count(first, last, counts):
        ...     np.add.at(counts, keys[first:last], 1)
        >>> def scatter(first, last, places):
        ...     for row in range(first, last):
        ...         out[places[keys[row]]] = row
        ...         places[keys[row]] += 1
        >>> by_key(even_ranges(4, 2), 3, 2, count, scatter).tolist(), out.tolist()
        ([0, 1, 2, 4], [1, 3, 0, 2])
    """
    counts = np.zeros((len(ranges), bins), np.int64)

    def counted(_: int, part: int) -> None:
        count(*ranges[part], counts[part])

    in_threads(workers, counted, range(len(ranges)))
    # Places go by key, then by range: no two ranges share one, so threads write without locks.
    ends = np.cumsum(counts.T.ravel()).reshape(-1, len(ranges)).T
    places = np.ascontiguousarray(ends - counts)

    def scattered(_: int, part: int) -> None:
        scatter(*ranges[part], places[part])

    in_threads(workers, scattered, range(len(ranges)))
    return np.append(0, ends[-1])


def even_ranges(count: int, pieces: int) -> list[tuple[int, int]]:
    """Ranges of about equal length that cover 0..count-1, at most a number of them.

    Example:
        >>> even_ranges(5, 2), even_ranges(2, 8)
        ([(0, 2), (2, 5)], [(0, 1), (1, 2)])
    """
    edges = np.unique(np.linspace(0, count, min(count, pieces) + 1).astype(np.int64))
    return list(pairwise(edges.tolist()))


def balanced_ranges(starts: Any, pieces: int) -> list[tuple[int, int]]:
    """Ranges of bins with about equally many rows, at most a number of them.

    Args:
        starts: int64 (bins + 1,): where each bin's rows begin.
        pieces: Ranges, 1 or more.

    Example:
        >>> balanced_ranges(np.array([0, 9, 10, 11, 20]), 2)
        [(0, 2), (2, 4)]
    """
    bins, rows = len(starts) - 1, int(starts[-1])
    cuts = np.searchsorted(starts, np.linspace(0, rows, min(bins, pieces) + 1)[1:-1])
    return list(pairwise(np.unique(np.concatenate([[0], cuts, [bins]])).tolist()))
