"""Build the tables of a plan: which hash their keys have, and which buckets a query opens."""

from __future__ import annotations

import re
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.partition import frozen, in_threads, multipliers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.search_plans import SearchPlan

__all__ = ["build_tables", "key_factors", "probes_of"]

HEAVY_BUCKET: Final = 1 << 16
"""Rows from which a searcher of their own costs less than comparing them all (some 20 us)."""
HEAVY_TIMES: Final = 32
FINE_FROM: Final = 12


def probes_of(plan: SearchPlan, distance: int) -> Any:
    """The buckets that a query of this distance opens.

    Where the m masks are disjoint and share the distance (mih, probe), rows within k bits differ
    from the query in at most k // m bits of one of the first k % m + 1 blocks, or in less of
    another (Norouzi, Punjani and Fleet, CVPR 2012). Else they agree with it on one mask.
    """
    from neardup.kernels.tables import Probes

    number, width = plan.masks.shape
    radii = np.zeros(number, np.int64)
    if plan.kind in {"mih", "probe"}:
        radii[:] = distance // number
        radii[distance % number + 1 :] -= 1
    flips = [
        (table, chosen)
        for table, mask in enumerate(plan.masks)
        for chosen in choices(bits_of(mask), int(radii[table]))
    ]
    turned = np.zeros((len(flips), width), np.uint64)
    for i, (_, chosen) in enumerate(flips):
        for bit in chosen:
            turned[i, bit // 64] ^= np.uint64(1 << bit % 64)
    tables = np.array([table for table, _ in flips], np.int64)
    return Probes(turned, tables, radii)


def choices(items: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """Every choice of up to `most` items; none at all for less than 0."""
    return chain.from_iterable(combinations(items, size) for size in range(most + 1))


def bits_of(mask: Any) -> list[int]:
    """The bits that are set in uint64 (words,)."""
    return [
        int(bit) for bit in np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
    ]


def key_factors(masks: Any, key_bits: int) -> Any:
    """What the words under each mask are multiplied by; the top bits of the sum are the key.

    A mask of no more bits than the key has them moved there side by side, so that different bits
    have different keys (almost, where a word has several runs of them). More bits are spread by the
    generalised golden ratio, brought to the mask's lowest bit: the multiples of other numbers, such
    as of the ratio times a power of two, may stand in clumps (the three-gap theorem).

    Args:
        masks: uint64 (tables, words).
        key_bits: Bits of the keys.

    Returns:
        uint64 (tables, words).
    """
    spread = _golden(masks.shape[1])
    rows = [
        _side_by_side(mask, key_bits)
        or [
            ratio >> max((bits & -bits).bit_length() - 1, 0) | 1
            for ratio, bits in zip(spread, mask, strict=True)
        ]
        for mask in masks.tolist()
    ]
    return np.array(rows, np.uint64)


def _side_by_side(mask: list[int], key_bits: int) -> list[int] | None:
    """Factors that move the mask's runs of ones to the top, one below the other; None if none do.

    A product only moves bits up.
    """
    if sum(bits.bit_count() for bits in mask) > key_bits:
        return None
    factors, end = [0] * len(mask), 64
    for word, bits in enumerate(mask):
        for low, length in reversed(_runs(bits)):
            end -= length
            if end < low:
                return None
            factors[word] |= 1 << end - low
    return factors


def _golden(width: int) -> list[int]:
    """Powers of 1 / x as fractions of 2**64, where x ** (width + 1) = x + 1."""
    x = 2.0
    for _ in range(64):
        x = (1 + x) ** (1 / (width + 1))
    return [int(x ** -(w + 1) * 2**64) for w in range(width)]


def _runs(bits: int) -> list[tuple[int, int]]:
    """The lowest bit and the length of each run of ones."""
    return [(found.start(), len(found[0])) for found in re.finditer("1+", f"{bits:b}"[::-1])]


def build_tables(words: Any, plan: SearchPlan, workers: int) -> Any:
    """Build the plan's tables of uint64 (n, words) rows, each thread whole tables."""
    from neardup.kernels.tables import Tables, build_table

    count, width = words.shape
    number, keys = len(plan.masks), 1 << plan.key_bits
    tables = Tables(
        np.empty((number, count * width), np.uint64),
        np.empty((number, count), np.uint32),
        np.empty((number, keys + 1), np.uint32),
        frozen(plan.masks),
        np.uint64(64 - plan.key_bits),
        frozen(key_factors(plan.masks, plan.key_bits)),
        multipliers(width),
        max(HEAVY_BUCKET, HEAVY_TIMES * int(plan.candidates) // max(plan.lookups, 1)),
    )
    threads = min(workers, number)
    spare = [
        (np.empty(count * width, np.uint64), np.empty(count, np.uint32)) for _ in range(threads)
    ]
    fine = np.uint64(plan.key_bits // 2 if plan.key_bits > FINE_FROM else 0)
    flat = words.reshape(-1)

    def build(slot: int, t: int) -> None:
        build_table(
            flat, tables.masks[t], tables.factors[t], tables.shift, tables.odd, fine,
            *spare[slot], tables.starts[t], tables.words[t], tables.rows[t],
        )  # fmt: skip

    in_threads(threads, build, range(number))
    return tables._replace(**{x: frozen(getattr(tables, x)) for x in ("words", "rows", "starts")})
