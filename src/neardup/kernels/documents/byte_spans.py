"""Steps that the parsers of text formats share: quoted stretches, the next marked byte, copying."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import copy64, trailing_zeros
from neardup.kernels.jit import fill, inlined, inner

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Uint64s

_ONE: Final = np.uint64(1)
_SIX: Final = np.uint64(6)
_LOW_6: Final = np.uint64(63)
_ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_BLANK: Final = np.uint8(ord(" "))


@inlined
def between_quotes(quotes: np.uint64, inside: np.uint64) -> Any:
    """Mark the bytes from each opening quote up to the closing one, of 64; uint64.

    `inside` is all ones if the 64 bytes begin between quotes, else 0 (see `carried`).
    """
    for shift in (_ONE, np.uint64(2), np.uint64(4), np.uint64(8), np.uint64(16), np.uint64(32)):
        quotes ^= quotes << shift
    return quotes ^ inside


@inlined
def carried(between: np.uint64) -> Any:
    """The value of `inside` that `between_quotes` needs for the next 64 bytes; uint64."""
    return _ALL if between >> _LOW_6 else np.uint64(0)


@inner
def load_tail(data: Bytes, begin: int, tail: Bytes) -> None:
    """Copy the rest of the data, less than 64 bytes, to `tail`, with blanks behind it."""
    fill(tail, 0, 64, _BLANK)
    for i in range(begin, data.size):
        tail[i - begin] = data[i]


@inner
def next_bit(bits: Uint64s, begin: int, end: int) -> int:
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
def copy_span(data: Bytes, begin: int, end: int, out: Bytes, to: int) -> int:
    """Copy data[begin:end] to out[to:]; gives the place behind it.

    Up to 64 bytes behind that place may be overwritten.
    """
    while begin < end:
        # 64 bytes are read at once only where the data has as many left.
        if begin + 64 <= data.size:
            copy64(data, begin, out, to)
            to += min(64, end - begin)
            begin += 64
        else:
            out[to] = data[begin]
            to += 1
            begin += 1
    return to
