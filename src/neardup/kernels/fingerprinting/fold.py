"""Fold feature hashes into a fingerprint: the majority of each bit.

Feature hashes are 64 bits wide; word j of a wider fingerprint folds the j-th mix of each hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bit_counters import (
    GROUP,
    LANES,
    SUM_BITS,
    count_widened8,
    count_words8,
    sum_lanes8,
)
from neardup.kernels.fingerprinting.lanes import add_weights
from neardup.kernels.jit import fill, inner
from neardup.kernels.splitmix import SPLITMIX, widened

if TYPE_CHECKING:
    from neardup.kernels.array_types import Hashes, Int64s, Uint64s

_LANES_SIZE: Final = 9 * LANES
_TOTALS_AT: Final = np.uint64(_LANES_SIZE)
_MOST: Final = ((1 << 8) - 1) // GROUP * GROUP * LANES
PLANES: Final = _LANES_SIZE + 48
"""Words of scratch: the lanes' counters, and totals of up to 2**48 features."""

WEIGHT_ONE: Final = 1 << 16
"""The integer that stands for weight 1: weights are multiples of 2**-16."""

_FEW_LEVELS: Final = 4
_SPARSE: Final = 4
_GOLDEN: Final = np.uint64(SPLITMIX[0])
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)


@inner
def _count_in_lanes(hashes: Hashes, first: int, last: int, word: int, scratch: Uint64s) -> None:
    """Count the bits of hashes[first:last], at most _MOST, in 8 lanes."""
    fill(scratch, 0, _LANES_SIZE, _ZERO)
    for at in range(first, last, GROUP * LANES):
        if word:
            count_widened8(hashes, at, last, np.uint64(word) * _GOLDEN, scratch)
        else:
            count_words8(hashes, at, last, scratch)


@inner
def _add_lanes(scratch: Uint64s, levels: int) -> None:
    """Add the sums of the 8 lanes to the totals."""
    carry, to = _ZERO, _TOTALS_AT
    for count in sum_lanes8(scratch):
        total = scratch[to]
        half = total ^ count
        scratch[to] = half ^ carry
        carry = (total & count) | (half & carry)
        to += _ONE
    for _ in range(SUM_BITS, levels):
        total = scratch[to]
        scratch[to] = total ^ carry
        carry &= total
        to += _ONE


@inner
def _majority(scratch: Uint64s, levels: int, total: int, ties: np.uint64) -> Any:
    half = total >> 1
    above, equal = _ZERO, ~_ZERO
    for level in range(levels - 1, -1, -1):
        plane, half_bit = scratch[_TOTALS_AT + np.uint64(level)], -np.uint64(half >> level & 1)
        above |= equal & plane & ~half_bit
        equal &= ~(plane ^ half_bit)
    if total & 1:
        return above
    return above | (equal & ties)


@inner
def _count_few(hashes: Hashes, count: int, word: int, scratch: Uint64s) -> None:
    """Count the bits of fewer than 2**_FEW_LEVELS hashes; the totals stay in registers."""
    ones = twos = fours = eights = _ZERO
    for i in range(count):
        bits = widened(hashes[i], word)
        ones, bits = ones ^ bits, ones & bits
        twos, bits = twos ^ bits, twos & bits
        fours, bits = fours ^ bits, fours & bits
        eights ^= bits
    for level, total in enumerate((ones, twos, fours, eights)):
        scratch[_TOTALS_AT + np.uint64(level)] = total


@inner
def fold_equal(hashes: Hashes, count: int, tie_one: bool, scratch: Uint64s, out: Uint64s) -> None:
    """Fold `count` hashes of weight 1 each; writes out[word].

    Vertical counters: bit i of plane p is bit p of the number of hashes that have bit i set. 64
    hashes at a time are added, 8 in each of 8 lanes (kernels/bit_counters.py), and the lanes last;
    for a few that takes longer than one after the other.

    Args:
        hashes: uint64 (at least count,), read only.
        count: Number of hashes, 1 or more.
        tie_one: The bit where exactly half of the hashes have it set.
        scratch: uint64 (PLANES,).
        out: uint64 (words,), written.
    """
    ties = ~_ZERO if tie_one else _ZERO
    if count >> _FEW_LEVELS == 0:
        for word in range(out.size):
            _count_few(hashes, count, word, scratch)
            out[word] = _majority(scratch, _FEW_LEVELS, count, ties)
        return
    levels = np.int64(SUM_BITS)
    while count >> levels:
        levels += 1
    for word in range(out.size):
        for level in range(levels):
            scratch[_TOTALS_AT + np.uint64(level)] = _ZERO
        for first in range(0, count, _MOST):
            last = min(first + _MOST, count)
            _count_in_lanes(hashes, first, last, word, scratch)
            _add_lanes(scratch, levels)
        out[word] = _majority(scratch, levels, count, ties)


@inner
def fold_weighted(
    hashes: Hashes, weights: Int64s, count: int, tie_one: bool, sums: Int64s, out: Uint64s
) -> None:
    """Fold `count` hashes with int64 weights (units of 2**-16); writes out[word].

    Args:
        hashes: uint64 (at least count,), read only.
        weights: int64 (at least count,), read only.
        count: Number of hashes.
        tie_one: The bit where the sum is exactly 0.
        sums: int64 (64,), scratch.
        out: uint64 (words,), written.
    """
    total = np.int64(0)
    for at in range(count):
        total += weights[at]
    full = count & ~3
    for word in range(out.size):
        fill(sums, 0, 64, 0)
        # The weights of the set bits alone, four hashes at a time: fewer passes over the sums.
        for at in range(0, full, 4):
            a, b = widened(hashes[at], word), widened(hashes[at + 1], word)
            c, d = widened(hashes[at + 2], word), widened(hashes[at + 3], word)
            four = weights[at], weights[at + 1], weights[at + 2], weights[at + 3]
            add_weights(sums, (a, b, c, d), four)
        for at in range(full, count):
            h, none = widened(hashes[at], word), np.int64(0)
            add_weights(sums, (h, h, h, h), (weights[at], none, none, none))
        bits = _ZERO
        for bit in range(64):
            difference = 2 * sums[bit] - total
            if difference > 0 or (tie_one and difference == 0):
                bits |= _ONE << np.uint64(bit)
        out[word] = bits


@inner
def distinct(hashes: Hashes, count: int, table: Uint64s, weights: Int64s) -> int:
    """Move the distinct hashes to the front, in order of first occurrence, and weigh each.

    Open addressing. A slot names the place of its hash among the distinct ones, and a free slot a
    place behind them all: so the smaller of that and the next place is where the hash is or will
    be, and a new hash takes the same way through the code as one that was seen before. Only a
    collision branches.

    Args:
        hashes: uint64 (at least count,), reordered in place.
        count: Number of hashes.
        table: uint64, scratch, a power of two long and at least 2 * count.
        weights: int64, one a hash, those of equal hashes are added up in place; or empty.

    Returns:
        How many distinct hashes there are.
    """
    size = np.int64(2)
    while size < _SPARSE * count and size < table.size:
        size *= 2
    fill(table, 0, size, ~_ZERO)
    mask = np.uint64(size - 1)
    weighing = weights.size > 0
    different = _ZERO
    for at in range(count):
        h = hashes[at]
        hashes[different] = h
        slot = h & mask
        place = min(table[slot], different)
        while hashes[place] != h:
            slot = (slot + _ONE) & mask
            place = min(table[slot], different)
        table[slot] = place
        if weighing:
            weight, weights[different] = weights[at], 0
            weights[place] += weight
        different += np.uint64(place == different)
    return np.int64(different)
