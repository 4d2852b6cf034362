"""Hash tables of features with their values, and a sieve that rules out most other features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import trailing_zeros
from neardup.kernels.jit import inlined, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Uint64s

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_LOW_6: Final = np.uint64(63)
_SIEVE_BITS: Final = 16
_CACHED_KEYS: Final = 1 << 16


def hash_table(keys: Any, units: Int64s) -> Any:
    """Lay out a table for `find`: open addressing, at most half full, O(keys).

    Args:
        keys: uint64, distinct, may be read-only.
        units: int64 (keys.size,), 1 or more.

    Returns:
        uint64 (2 * slots,), slots a power of two: key and units of each; 0 units: free.
    """
    size = 2
    while size < 2 * keys.size:
        size *= 2
    # NumPy asks for large pages, without which most look-ups would also miss the page tables.
    slots = np.zeros(2 * size, np.uint64)
    _fill_table(keys, units, slots)
    return slots


@kernel
def hash_sieve(keys: Uint64s) -> Any:
    """Mark each key's high bits in a bit map of 16 bits a key or more; uint64 (words,), or none."""
    if keys.size <= _CACHED_KEYS:
        return np.zeros(0, np.uint64)
    size = 64
    while size < _SIEVE_BITS * keys.size:
        size *= 2
    sieve = np.zeros(size // 64, np.uint64)
    shift = np.uint64(64 - trailing_zeros(np.uint64(size)))
    for i in range(keys.size):
        bit = keys[i] >> shift
        sieve[np.int64(bit >> np.uint64(6))] |= _ONE << (bit & _LOW_6)
    return sieve


@kernel
def _fill_table(keys: Uint64s, units: Int64s, slots: Uint64s) -> None:
    mask = np.uint64(slots.size // 2 - 1)
    for i in range(keys.size):
        at = np.int64(keys[i] & mask)
        while slots[2 * at + 1] != _ZERO:
            at = np.int64(np.uint64(at + 1) & mask)
        slots[2 * at] = keys[i]
        slots[2 * at + 1] = np.uint64(units[i])


@inlined
def find(slots: Uint64s, mask: np.uint64, key: np.uint64, missing: int) -> int:
    """Look `key` up in a `hash_table`; its units, or `missing`."""
    at = np.int64(key & mask)
    while slots[2 * at + 1] != _ZERO:
        if slots[2 * at] == key:
            return np.int64(slots[2 * at + 1])
        at = np.int64(np.uint64(at + 1) & mask)
    return missing
