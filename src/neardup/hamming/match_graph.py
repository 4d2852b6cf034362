"""Groups, greedy keep and shortest paths of a list of matches, from any search.

For matches that are listed as pairs of rows. Where there are too many to list, `clusters` (by
distance) and the joins by similarity decide the same while they search; this is their definition in
arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.runtime.types import Rows

__all__ = ["greedy_of_pairs", "labels_of_pairs", "paths_of_pairs"]


def labels_of_pairs(rows: int, left: Rows, right: Rows) -> Rows:
    """The transitive groups of pairs of rows: int64 (n,), each group's smallest row.

    Args:
        rows: How many there are.
        left: int64 (p,): one row of each pair.
        right: int64 (p,): the other.

    Example:
        >>> labels_of_pairs(5, np.array([1, 3]), np.array([4, 4])).tolist()
        [0, 1, 2, 1, 1]
    """
    from neardup.kernels.forest import flatten, unite_all

    forest, labels = np.arange(rows, dtype=np.uint32), np.empty(rows, np.int64)
    unite_all(forest, left, right)
    flatten(forest, labels)
    return labels


def greedy_of_pairs(order: Rows, left: Rows, right: Rows) -> Rows:
    """Keep rows in order of priority; drop a row only if it is paired with a kept one.

    Args:
        order: int64 (n,): the rows from the highest priority down.
        left: int64 (p,): one row of each pair.
        right: int64 (p,): the other.

    Returns:
        int64 (n,): for a dropped row the kept row of highest priority that it is in a pair with; a
        kept row names itself.

    Example:
        >>> greedy_of_pairs(np.array([2, 1, 0]), np.array([0, 1]), np.array([1, 2])).tolist()
        [0, 2, 2]
    """
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    earlier = np.minimum(rank[left], rank[right])
    later = np.maximum(rank[left], rank[right])
    # By the later row, then the earlier: when a pair comes, its earlier row is decided for good,
    # and the first kept row that the later one meets is that of highest priority.
    by_later = np.lexsort((earlier, later))
    kept = list(range(len(order)))
    for low, high in zip(earlier[by_later].tolist(), later[by_later].tolist(), strict=True):
        if kept[high] == high and kept[low] == low:
            kept[high] = low
    decided = np.empty(len(order), np.int64)
    decided[order] = order[np.array(kept, np.int64)]
    return decided


def paths_of_pairs(
    left: Rows, right: Rows, cost: npt.NDArray[np.int64], representative: Rows, kept_by: Rows
) -> Rows:
    """The next row on a shortest path of pairs from each row to the one kept for it.

    Args:
        left: int64 (p,): one row of each pair; representatives only.
        right: int64 (p,): the other.
        cost: int64 (p,): of several next rows the path takes that of least cost, then the first.
        representative: int64 (n,): for each row the one that it is equal to.
        kept_by: int64 (n,): the row that is kept for each; the two are joined by pairs.

    Returns:
        int64 (n,): the predecessor on the path; a kept row names itself.

    Example:
        >>> rows, kept_by = np.arange(3), np.zeros(3, np.int64)
        >>> paths_of_pairs(np.array([0, 1]), np.array([1, 2]), np.zeros(2), rows, kept_by).tolist()
        [0, 0, 1]
    """
    size = len(representative)
    # A predecessor is named by the first of its equal rows, but a kept row by itself.
    name = np.full(size, size, np.int64)
    np.minimum.at(name, representative, np.arange(size))
    via, is_reached = kept_by.copy(), np.zeros(size, np.bool_)
    is_reached[representative[kept_by]] = True
    near, far = np.concatenate([left, right]), np.concatenate([right, left])
    cost = np.concatenate([cost, cost])
    name = np.where(is_reached, kept_by, name)
    is_new = is_reached.copy()
    while is_new.any():
        # One level at a time: a row that is reached first is reached by fewest pairs.
        steps = is_new[near] & ~is_reached[far]
        low, high = near[steps], far[steps]
        by_end = np.lexsort((name[low], cost[steps], high))
        ends, starts = np.unique(high[by_end], return_index=True)
        via[ends] = name[low[by_end[starts]]]
        is_new[:] = False
        is_new[ends] = is_reached[ends] = True
        near, far, cost = near[~steps], far[~steps], cost[~steps]
    is_far = ~np.isin(representative, representative[kept_by])
    return np.where(is_far, via[representative], kept_by)
