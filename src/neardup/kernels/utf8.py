"""UTF-8, read and written character by character."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.kernels.jit import inlined

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes

_REPLACEMENT: Final = 0xFFFD


@inlined
def encode(cp: int, buffer: Bytes, to: int) -> int:
    """Write a code point to a uint8 array from `to` on; gives the place behind it."""
    if cp < 0x80:
        buffer[to] = cp
        return to + 1
    if cp < 0x800:
        buffer[to] = 0xC0 | cp >> 6
        buffer[to + 1] = 0x80 | cp & 0x3F
        return to + 2
    if cp < 0x10000:
        buffer[to] = 0xE0 | cp >> 12
        buffer[to + 1] = 0x80 | cp >> 6 & 0x3F
        buffer[to + 2] = 0x80 | cp & 0x3F
        return to + 3
    buffer[to] = 0xF0 | cp >> 18
    buffer[to + 1] = 0x80 | cp >> 12 & 0x3F
    buffer[to + 2] = 0x80 | cp >> 6 & 0x3F
    buffer[to + 3] = 0x80 | cp & 0x3F
    return to + 4


@inlined
def decode(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Read a character that begins at data[at] and ends before `end`: code point and bytes."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, 1
    if 0xC2 <= lead < 0xE0 and at + 1 < end:
        return (lead & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F), 2
    if 0xE0 <= lead < 0xF0 and at + 2 < end:
        middle = (np.int64(data[at + 1]) & 0x3F) << 6
        return (lead & 0x0F) << 12 | middle | (np.int64(data[at + 2]) & 0x3F), 3
    if 0xF0 <= lead < 0xF5 and at + 3 < end:
        high = (lead & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
        low = (np.int64(data[at + 2]) & 0x3F) << 6 | (np.int64(data[at + 3]) & 0x3F)
        return min(high | low, 0x10FFFF), 4
    return _REPLACEMENT, 1
