"""Sorting hashes in place, and looking for a place among ascending values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.jit import fill, inner

if TYPE_CHECKING:
    from neardup.kernels.array_types import Uint64s

_FEW: Final = 8
"""The largest number of values that are sorted by insertion alone."""
_CROWDED: Final = np.uint64(32)
"""The hashes of one place that show an uneven spread; a power of two."""
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)


@inner
def shell_sort(values: Any, begin: int, end: int) -> None:
    """Sort values[begin:end]; O(n^1.5)."""
    step = 1
    while step < (end - begin) // 3:
        step = 3 * step + 1
    while step:
        for i in range(begin + step, end):
            value, j = values[i], i
            while j >= begin + step and values[j - step] > value:
                values[j] = values[j - step]
                j -= step
            values[j] = value
        step //= 3


@inner
def _insertion_sort(values: Uint64s, begin: int, end: int) -> None:
    for i in range(begin + 1, end):
        value, j = values[i], i
        while j > begin and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@inner
def sort_hashes(values: Uint64s, begin: int, end: int, places: Uint64s, spare: Uint64s) -> None:
    """Sort values[begin:end]: each to a place by its first bits, then past its larger neighbours.

    O(n) for hashes that are evenly spread, as those of features are, O(n^1.5) for others.

    Args:
        values: uint64, sorted in place.
        begin: First.
        end: Last + 1.
        places: uint64, scratch, 2 or longer; best twice as long as there are hashes.
        spare: uint64 (at least end - begin,), scratch.
    """
    size, bits, crowded, place = end - begin, 1, _ZERO, _ZERO
    if size <= _FEW:
        _insertion_sort(values, begin, end)
        return
    while 1 << bits < size and 2 << bits <= places.size:
        bits += 1
    shift = np.uint64(64 - bits)
    fill(places, 0, 1 << bits, _ZERO)
    for i in range(begin, end):
        places[values[i] >> shift] += _ONE
    for at in range(1 << bits):
        count = places[at]
        crowded |= count
        places[at] = place
        place += count
    # Nothing has been moved yet: the values are as they came, whichever way sorts them.
    if crowded >= _CROWDED:
        shell_sort(values, begin, end)
        return
    for i in range(begin, end):
        value = values[i]
        spare[places[value >> shift]] = value
        places[value >> shift] += _ONE
    # Places ascend by their first bits, so a value passes only neighbours of its own place.
    for i in range(size):
        value, to = spare[i], begin + i
        while to > begin and values[to - 1] > value:
            values[to] = values[to - 1]
            to -= 1
        values[to] = value


@inner
def drop_repeats(values: Any, begin: int, end: int, to: int) -> int:
    """Move the distinct ones of the ascending values[begin:end] to `to`; returns where they end."""
    first = to
    for at in range(begin, end):
        value = values[at]
        if to == first or value != values[to - 1]:
            values[to] = value
            to += 1
    return to


@inner
def first_from(values: Any, low: int, high: int, value: Any) -> int:
    """The first place from `low` to `high` of ascending values that is not below `value`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
