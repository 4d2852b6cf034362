"""Arrays as kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["cut", "frozen"]


def frozen(words: Any) -> Any:
    """A read-only, contiguous view, so that kernels are compiled for one type only."""
    view = np.ascontiguousarray(words).view()
    view.flags.writeable = False
    return view


def cut(totals: Any, most: int) -> list[tuple[int, int]]:
    """Cut bins into ranges of at most `most` rows, or of one bin that has more: first, last + 1.

    Args:
        totals: int64 (bins,): rows of each bin.
        most: Rows of a range.

    Example:
        >>> cut(np.array([3, 3, 0, 5, 1]), 6)
        [(0, 3), (3, 5)]
    """
    sums = np.cumsum(totals)
    found, first, before = [], 0, 0
    while first < len(totals) and before < sums[-1]:
        last = max(first + 1, int(np.searchsorted(sums, before + most, side="right")))
        found.append((first, last))
        first, before = last, int(sums[last - 1])
    return found
