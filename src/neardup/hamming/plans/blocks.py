"""Blocks of bits: their masks, their information, and the number of near keys."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, combinations
from math import comb
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "SAMPLE_ROWS",
    "agreement",
    "bits_of",
    "block_masks",
    "block_radii",
    "choices",
    "flips",
    "mih_lookups",
    "multipliers_of",
    "share_near",
    "shares_agreeing",
    "shares_within",
    "signatures",
    "symmetric_sum",
]


SAMPLE_ROWS: Final = 1024
"""The number of sampled rows from which plans learn the distribution of bits."""


def multipliers_of(width: int, family: int = 0) -> tuple[Any, ...]:
    """Odd constants for hashing fingerprints of `width` words.

    Rows in a bucket of one family's hash are spread by the other's.
    """
    start = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)[family]
    values = [(start * (2 * w + 1) ^ (w << 40)) & (2**64 - 1) | 1 for w in range(width)]
    return tuple(np.uint64(value) for value in values)


def agreement(sample: Any, bits: int) -> Any:
    """The information of each bit, -log2 of how often two rows agree on it: float64 (bits,)."""
    if sample is None or len(sample) < 2:
        return np.ones(bits)
    rows = np.ascontiguousarray(sample[:SAMPLE_ROWS], dtype="<u8")
    table = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little", count=bits)
    share = table.mean(axis=0)
    noise = 3 * 0.5 / np.sqrt(len(rows))
    share = np.where(np.abs(share - 0.5) < noise, 0.5, share)
    return -np.log2(share**2 + (1 - share) ** 2)


def block_masks(bits: int, m: int, information: Any) -> Any:
    """Cut the bits into m ranges of about equal information; masks uint64 (m, width)."""
    total = information.sum()
    if total <= 0:
        information, total = np.ones(bits), bits
    middle = np.cumsum(information) - information / 2
    block = np.minimum((middle * m / total).astype(np.int64), m - 1)
    table = np.zeros((m, -(-bits // 64) * 64), np.uint8)
    table[block, np.arange(bits)] = 1
    return np.packbits(table, axis=1, bitorder="little").view("<u8").astype(np.uint64), block


def shares_agreeing(block: Any, m: int, information: Any) -> Any:
    """The share of pairs of rows that agree on all bits of each of m blocks: float64 (m,)."""
    return 2.0 ** -np.bincount(block, weights=information, minlength=m)


def block_radii(distance: int, m: int) -> list[int]:
    """The bits in which each of m blocks may differ, so that near rows meet in one block.

    If each block differed in more, all would differ in more than the distance: distance // m, and
    one less beyond the first distance % m + 1 (multi-index hashing: Norouzi, Punjani and Fleet,
    CVPR 2012). Below 0: the block is idle.

    Example:
        >>> block_radii(10, 4)
        [2, 2, 2, 1]
    """
    radius, rest = divmod(distance, m)
    return [radius - (block > rest) for block in range(m)]


def mih_lookups(bits: int, distance: int, m: int) -> int:
    """The most look-ups of a query: the number of keys within their block's radius."""
    size = -(-bits // m)
    return sum(signatures(size, radius) for radius in block_radii(distance, m))


def symmetric_sum(values: Any, degree: int) -> float:
    """The sum, over all sets of `degree` values, of their product."""
    sums = np.zeros(degree + 1)
    sums[0] = 1
    for value in values:
        sums[1:] += sums[:-1] * value
    return float(sums[degree])


def share_near(differ: Any, key_bits: int, radius: int) -> float:
    """The share of pairs of rows whose keys differ in at most `radius` bits.

    Args:
        differ: How likely each bit of the block differs.
        key_bits: Bits of a key; bit i of the block is folded into bit i % key_bits.
        radius: 0 or more.
    """
    if len(differ) >= key_bits and np.all(differ == differ[0]) and differ[0] == 0.5:
        return signatures(key_bits, radius) / (1 << key_bits)
    padded = np.zeros(-(-len(differ) // key_bits) * key_bits)
    padded[: len(differ)] = differ
    odds = (1 - np.prod(1 - 2 * padded.reshape(-1, key_bits), axis=0)) / 2
    shares = [1.0] + [0.0] * radius
    for odd in odds.tolist():
        for count in range(radius, 0, -1):
            shares[count] += (shares[count - 1] - shares[count]) * odd
        shares[0] *= 1 - odd
    return sum(shares)


def shares_within(differ: Any, distance: int) -> Any:
    """The share of rows that differ in at most `distance` of the first 0, 1, 2, ... bits.

    Args:
        differ: float64 (bits,): in which share of the rows each bit differs, independently.
        distance: -1 or more.

    Returns:
        float64 (bits + 1,).
    """
    exactly = np.zeros((len(differ) + 1, distance + 2))  # in 0, 1, ...; the first column stays 0
    exactly[0, 1:2] = 1.0
    for share, before, after in zip(differ.tolist(), exactly, exactly[1:], strict=False):
        after[1:] = before[1:] + share * (before[:-1] - before[1:])
    return exactly.sum(axis=1)


def signatures(bits: int, distance: int) -> int:
    """The number of values of a width within the distance of a value."""
    return sum(comb(bits, flips) for flips in range(min(distance, bits) + 1))


@lru_cache(64)
def flips(bits: int, radius: int) -> Any:
    """The keys of a width that are at most `radius` from key 0, which comes first: int64.

    Example:
        >>> flips(3, 1).tolist()
        [0, 1, 2, 4]
    """
    chosen = (each for some in range(radius + 1) for each in combinations(range(bits), some))
    return np.array([sum(1 << bit for bit in each) for each in chosen], np.int64)


def choices(items: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """Every choice of up to `most` items; none for a negative number."""
    return chain.from_iterable(combinations(items, size) for size in range(most + 1))


def bits_of(mask: Any) -> list[int]:
    """The positions of the set bits in uint64 (width,)."""
    return [
        int(bit) for bit in np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
    ]
