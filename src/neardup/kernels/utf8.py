"""UTF-8, written character by character."""

from __future__ import annotations

from typing import Any

from neardup.kernels.jit import inlined


@inlined
def encode(cp: int, buffer: Any, to: int) -> int:
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
