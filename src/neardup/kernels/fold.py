"""Fold feature hashes into a fingerprint: the majority of each bit.

Feature hashes are 64 bits wide; word j of a wider fingerprint folds the j-th mix of each hash.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from neardup.kernels.jit import fill, inner
from neardup.kernels.lanes import add_weights

PLANES: Final = 48
"""Bit planes of a vertical counter: it counts up to 2**48 features."""

WEIGHT_ONE: Final = 1 << 16
"""The integer that stands for weight 1: weights are multiples of 2**-16."""

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)


@inner
def widened(h: Any, word: int) -> Any:
    """Give word `word` of a feature hash: itself, then its splitmix64 successors; uint64."""
    if word == 0:
        return h
    z = h + np.uint64(word) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@inner
def _add_plane(planes: Any, level: int, carry: Any) -> None:
    while carry != _ZERO:
        kept = planes[level]
        planes[level] = kept ^ carry
        carry &= kept
        level += 1


@inner
def _majority(planes: Any, levels: int, total: int, ties: Any) -> Any:
    half = total >> 1
    above, equal = _ZERO, ~_ZERO
    for level in range(levels - 1, -1, -1):
        plane = planes[level]
        if (half >> level) & 1:
            equal &= plane
        else:
            above |= equal & plane
            equal &= ~plane
    if total & 1:
        return above
    return above | (equal & ties)


@inner
def fold_equal(hashes: Any, count: int, tie_one: bool, planes: Any, out: Any) -> None:
    """Fold `count` hashes of weight 1 each; writes out[word].

    A vertical counter: lane i of planes[p] is bit p of the number of hashes that have bit i set.
    Carry-save adders take eight hashes at a time, so a hash costs about six operations a word.

    Args:
        hashes: uint64 (at least count,), read only.
        count: Number of hashes, 1 or more.
        tie_one: The bit where exactly half of the hashes have it set.
        planes: uint64 (PLANES,), scratch.
        out: uint64 (words,), written.
    """
    ties = ~_ZERO if tie_one else _ZERO
    levels = np.int64(3)
    while count >> levels:
        levels += 1
    for word in range(out.size):
        fill(planes, 0, levels, _ZERO)
        ones, twos, fours = _ZERO, _ZERO, _ZERO
        full = count & ~7
        for at in range(0, full, 8):
            a, b = widened(hashes[at], word), widened(hashes[at + 1], word)
            half = ones ^ a
            carry_a, ones = (ones & a) | (half & b), half ^ b
            a, b = widened(hashes[at + 2], word), widened(hashes[at + 3], word)
            half = ones ^ a
            carry_b, ones = (ones & a) | (half & b), half ^ b
            half = twos ^ carry_a
            four_a, twos = (twos & carry_a) | (half & carry_b), half ^ carry_b
            a, b = widened(hashes[at + 4], word), widened(hashes[at + 5], word)
            half = ones ^ a
            carry_a, ones = (ones & a) | (half & b), half ^ b
            a, b = widened(hashes[at + 6], word), widened(hashes[at + 7], word)
            half = ones ^ a
            carry_b, ones = (ones & a) | (half & b), half ^ b
            half = twos ^ carry_a
            four_b, twos = (twos & carry_a) | (half & carry_b), half ^ carry_b
            half = fours ^ four_a
            eight, fours = (fours & four_a) | (half & four_b), half ^ four_b
            _add_plane(planes, np.int64(3), eight)
        planes[0], planes[1], planes[2] = ones, twos, fours
        for at in range(full, count):
            _add_plane(planes, np.int64(0), widened(hashes[at], word))
        out[word] = _majority(planes, levels, count, ties)


@inner
def fold_weighted(
    hashes: Any, weights: Any, count: int, tie_one: bool, sums: Any, out: Any
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
def distinct(hashes: Any, count: int, table: Any, slots: Any, weights: Any) -> int:
    """Move the distinct hashes to the front, in order of first occurrence, and weigh each.

    Open addressing in a table of at least twice `count` slots; a hash of 0 is kept aside.

    Args:
        hashes: uint64 (at least count,), reordered in place.
        count: Number of hashes.
        table: uint64, scratch, a power of two long and at least 2 * count.
        slots: int64 (table.size,), scratch; only used where there are weights.
        weights: int64, one a hash, those of equal hashes are added up in place; or empty.

    Returns:
        How many distinct hashes there are.
    """
    size = 2
    while size < 2 * count:
        size *= 2
    mask = np.uint64(size - 1)
    fill(table, 0, size, _ZERO)
    weighing = weights.size > 0
    found, zero_at = 0, -1
    for at in range(count):
        h = hashes[at]
        if h == _ZERO:
            if zero_at >= 0:
                if weighing:
                    weights[zero_at] += weights[at]
                continue
            zero_at = found
        else:
            slot = np.int64(h & mask)
            while table[slot] != _ZERO and table[slot] != h:
                slot = np.int64(np.uint64(slot + 1) & mask)
            if table[slot] == h:
                if weighing:
                    weights[slots[slot]] += weights[at]
                continue
            table[slot] = h
            if weighing:
                slots[slot] = found
        hashes[found] = h
        if weighing:
            weights[found] = weights[at]
        found += 1
    return found
