"""Pairs of rows, packed in one word, and what pairs of groups of equal rows stand for.

A join finds pairs of groups; every row of the one goes with every row of the other, and every two
rows of a group are a pair as well. There may be more of these than memory holds, so they are made
some at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.runtime.arrays import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.hamming.join.partition import Groups
    from neardup.hamming.join.problem import Problem

__all__ = [
    "STEP",
    "packed_pairs",
    "pairs_between",
    "pairs_within",
    "products",
    "unpacked_pairs",
    "within_count",
]

STEP: Final = 1 << 18
"""Pairs at a time."""
LOW_WORD: Final = np.uint64(2**32 - 1)


def packed_pairs(a: Any, b: Any) -> Any:
    """Pack pairs of rows below 2**32 into one uint64 each: the smaller << 32 | the larger."""
    low, high = np.minimum(a, b).astype(np.uint64), np.maximum(a, b).astype(np.uint64)
    return low << np.uint64(32) | high


def unpacked_pairs(packed: Any) -> tuple[Any, Any]:
    """The smaller rows and the larger ones: int64, int64.

    Example:
        >>> [x.tolist() for x in unpacked_pairs(packed_pairs(np.array([7]), np.array([3])))]
        [[3], [7]]
    """
    return (packed >> np.uint64(32)).view(np.int64), (packed & LOW_WORD).view(np.int64)


def pairs_between(packed: Any, named: Any, groups: Groups) -> Iterator[Any]:
    """Every row of the one group with every row of the other, packed, at most STEP at a time.

    Args:
        packed: Pairs of groups.
        named: The rows' names in the order of `groups.members`.
        groups: Of equal rows.
    """
    one, two = unpacked_pairs(packed)
    starts, sizes = groups.starts, groups.sizes
    each = sizes[one] * sizes[two]
    ends = np.cumsum(each)
    for begin in range(0, int(ends[-1]) if len(ends) else 0, STEP):
        end = min(begin + STEP, int(ends[-1]))
        first, last = np.searchsorted(ends, (begin, end - 1), side="right")
        chosen = np.arange(first, last + 1)
        before = ends[chosen] - each[chosen]
        at = np.repeat(chosen, np.minimum(ends[chosen], end) - np.maximum(before, begin))
        within = np.arange(begin, end) - (ends - each)[at]
        left, right = np.divmod(within, sizes[two[at]])
        yield packed_pairs(named[starts[one[at]] + left], named[starts[two[at]] + right])


def within_count(problem: Problem, groups: Groups) -> int:
    """How many pairs of equal rows there are; 0 where a condition of the problem refuses them."""
    if problem.agree is not None and not np.all(problem.agree):
        return 0
    sizes = groups.sizes
    return int((sizes * (sizes - 1) // 2).sum())


def pairs_within(named: Any, groups: Groups) -> Iterator[Any]:
    """Every two rows of a group, packed, about STEP at a time; `named` as for `pairs_between`."""
    sizes = groups.sizes
    for first, last in cut(sizes * (sizes - 1) // 2, STEP):
        starts = groups.starts[first : last + 1]
        rows = named[starts[0] : starts[-1]]
        if last - first > 1 or len(rows) ** 2 <= STEP:
            yield _every_two(rows, starts - starts[0])
            continue
        for left, right in products(rows, rows):
            later = left < right
            yield packed_pairs(left[later], right[later])


def products(left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of `left` with every one of `right`, about STEP at a time."""
    rows = max(1, STEP // max(1, len(right)))
    for begin in range(0, len(left), rows):
        some = left[begin : begin + rows]
        yield np.repeat(some, len(right)), np.tile(right, len(some))


def _every_two(rows: Any, starts: Any) -> Any:
    place = np.arange(len(rows))
    later = np.repeat(starts[1:], np.diff(starts)) - place - 1
    one = np.repeat(place, later)
    two = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    return packed_pairs(rows[one], rows[two])
