"""What the parsers of text formats share: the next marked byte, and copying up to it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from neardup.kernels.bits import copy64, trailing_zeros
from neardup.kernels.jit import inner

_ONE: Final = np.uint64(1)
_SIX: Final = np.uint64(6)
_LOW_6: Final = np.uint64(63)


@inner
def next_bit(bits: Any, begin: int, end: int) -> int:
    """The first set bit from `begin` on in a map of uint64, or `end`."""
    if begin >= end:
        return end
    word, low = np.uint64(begin) >> _SIX, np.uint64(begin) & _LOW_6
    left = bits[word] >> low << low
    last = np.uint64(end - 1) >> _SIX
    while not left and word < last:
        word += _ONE
        left = bits[word]
    if not left:
        return end
    return min(end, np.int64(word << _SIX) + trailing_zeros(left))


@inner
def copy_span(data: Any, begin: int, end: int, out: Any, to: int) -> int:
    """Copy data[begin:end] to out[to:]; gives the place behind it.

    Up to 64 bytes behind that place may be overwritten.
    """
    while begin < end:
        if begin + 64 <= data.size:
            copy64(data, begin, out, to)
            to += min(64, end - begin)
            begin += 64
        else:
            out[to] = data[begin]
            to += 1
            begin += 1
    return to
