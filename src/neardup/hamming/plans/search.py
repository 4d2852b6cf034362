"""What each way to search costs: its tables, the rows it compares, its seconds and its recall.

A plan is a set of masks. Rows that agree with the query on all bits of a mask share a bucket of
that mask's table; blocks of bits make the masks, so that by the pigeonhole principle every row
within k bits shares a bucket in one of the tables (m blocks, all choices of m - k of them: Manku,
Jain and Das Sarma, WWW 2007, section 3.1). What each step takes is in `costs`;
docs/design/search-plans.md compares plans with what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, log2
from typing import Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.hamming.plans.blocks import block_masks, block_radii, shares_within, signatures
from neardup.hamming.plans.costs import (
    PERMUTE_LIST_SECONDS,
    PERMUTE_WINDOW,
    SEARCH_CACHED_BYTES,
    SEARCH_CANDIDATE_DOUBLING,
    SEARCH_CANDIDATE_MOST_SECONDS,
    SEARCH_CANDIDATE_SECONDS,
    SEARCH_HIT_SECONDS,
    SEARCH_LOOKUP_DOUBLING,
    SEARCH_LOOKUP_SECONDS,
    SEARCH_MOST_KEY_BITS,
    SEARCH_MOST_TABLES,
    SEARCH_NEAR_BYTES,
    SEARCH_QUERY_SECONDS,
    SEARCH_ROWS_A_KEY,
    SEARCH_SCAN_AGAIN_SECONDS,
    SEARCH_SCAN_RUN,
    SEARCH_SCAN_SECONDS,
    SEARCH_TABLE_HIT_SECONDS,
    SLICES_BLOCK,
    SLICES_BLOCK_SECONDS,
    SLICES_GROUP,
    SLICES_GROUP_SECONDS,
    SLICES_SMALL_DISTANCE,
    SLICES_TURN_SECONDS,
)

__all__ = [
    "SearchPlan",
    "bands_plan",
    "bits_plan",
    "block_plan",
    "matches",
    "mih_plan",
    "nested_plan",
    "permute_plan",
    "probe_plan",
    "scan_plan",
]

BANDS_MOST_WAYS: Final = 1 << 13
"""Ways to differ, at most, over which the recall of bands is counted."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchPlan:
    """How to search, and what that is expected to cost.

    Args:
        name: As it is asked for, such as "multi:4".
        masks: uint64 (tables, width): the bits of each table's key; empty where there is no table.
        key_bits: Bits of the hashed key.
        candidates: Rows that a query is expected to be compared with.
        bytes_per_row: Memory that the search needs beside the fingerprints.
        seconds: Expected for one query of a batch, on one thread.
        recall: The least share of what is within the distance that is found; 1 is exact.
        lookups: Buckets that a query opens.
    """

    name: str
    masks: Any
    key_bits: int
    candidates: float
    bytes_per_row: float
    seconds: float
    recall: float = 1.0
    lookups: int = 0

    @property
    def kind(self) -> str:
        """The name without its parameter."""
        return self.name.partition(":")[0]


def scan_plan(n: int, bits: int, near: float = 0.0) -> SearchPlan:
    """Compare with every row; runs of rows that hold one of `near` matches are looked at twice."""
    width = -(-bits // 64)
    twice = min(near + 1, n / SEARCH_SCAN_RUN) * SEARCH_SCAN_RUN * SEARCH_SCAN_AGAIN_SECONDS
    compared = (n * SEARCH_SCAN_SECONDS + twice) * width
    seconds = SEARCH_QUERY_SECONDS + compared + near * SEARCH_HIT_SECONDS
    return SearchPlan("scan", np.zeros((0, width), np.uint64), 0, n, 0.0, seconds)


def bits_plan(n: int, distance: int, bits: int, information: Any) -> SearchPlan:
    """One list of rows a bit, kept as bitmaps: the classic teaching design, bit-sliced.

    A block of rows is left once none of them can be within the distance, on the bits that vary most
    first: when the share within the distance on the bits so far is less than one row of a block.
    """
    differ = 1 - 2.0 ** -np.sort(information)[::-1]
    within = shares_within(differ, min(distance, bits))
    at_ends = within[SLICES_GROUP:bits:SLICES_GROUP]
    reached = 1 + float((1 - (1 - np.minimum(at_ends, 1.0)) ** SLICES_BLOCK).sum())
    each = SLICES_GROUP_SECONDS * (1 if distance < SLICES_SMALL_DISTANCE else 2)
    blocks = -(-n // SLICES_BLOCK) * (SLICES_BLOCK_SECONDS + reached * each)
    hits = (1 + n * float(within[-1])) * SEARCH_HIT_SECONDS
    seconds = SEARCH_QUERY_SECONDS + bits * SLICES_TURN_SECONDS + blocks + hits
    masks = np.zeros((0, -(-bits // 64)), np.uint64)
    return SearchPlan("bits", masks, 0, n, bits / 8, seconds, lookups=bits)


def matches(n: int, distance: int, information: Any) -> float:
    """How many of n rows are within the distance of a row like them, if bits are independent."""
    return n * float(shares_within(1 - 2.0**-information, min(distance, len(information)))[-1])


def probe_plan(n: int, distance: int, bits: int, information: Any) -> SearchPlan:
    """Look every signature within the distance up in one table of whole fingerprints."""
    width = -(-bits // 64)
    mask = np.full((1, width), 2**64 - 1, np.uint64)
    if bits % 64:
        mask[0, -1] = 2 ** (bits % 64) - 1
    buckets = _bucket_shares(n, mask, bits, information, [distance])
    near = matches(n, distance, information)
    return _of_tables("probe", n, mask, buckets, near, signatures(bits, distance))


def block_plan(n: int, distance: int, bits: int, m: int, information: Any) -> SearchPlan:
    """All choices of m - distance of m blocks: one table each."""
    masks = _chosen_masks(block_masks(bits, m, information)[0], distance)
    near = matches(n, distance, information)
    return _of_masks(f"multi:{m}", n, bits, masks, information, near)


def nested_plan(
    n: int, distance: int, bits: int, blocks: tuple[int, int], information: Any
) -> SearchPlan:
    """As `block_plan` twice: the bits that a first choice leaves out are cut into blocks again.

    Of 4 blocks one agrees, and of 4 blocks of the other bits one does: 16 tables of 28 bits (Manku,
    Jain and Das Sarma, section 3.1).
    """
    outer, inner = blocks
    masks = []
    for mask in _chosen_masks(block_masks(bits, outer, information)[0], distance):
        taken = _bits_of(mask, bits)
        rest = np.flatnonzero(~taken)
        blocks, _ = block_masks(len(rest), inner, information[rest])
        for choice in _chosen_masks(blocks, distance):
            both = taken.copy()
            both[rest[_bits_of(choice, len(rest))]] = True
            masks.append(_packed(both))
    near = matches(n, distance, information)
    return _of_masks(f"multi:{outer}x{inner}", n, bits, np.array(masks), information, near)


def _chosen_masks(blocks: Any, distance: int) -> Any:
    """The bits of each choice of all blocks but `distance`: uint64 (choices, width)."""
    chosen = combinations(range(len(blocks)), len(blocks) - distance)
    return np.array([np.bitwise_or.reduce(blocks[list(each)], axis=0) for each in chosen])


def _of_masks(
    name: str, n: int, bits: int, masks: Any, information: Any, near: float
) -> SearchPlan:
    buckets = _bucket_shares(n, masks, bits, information, [0] * len(masks))
    return _of_tables(name, n, masks, buckets, near)


def _bucket_shares(
    n: int, masks: Any, bits: int, information: Any, radii: list[int]
) -> tuple[int, Any]:
    """Bits of the key, and the share of the rows in the buckets that a query opens in each table.

    Rows are there since they differ from the query in at most the radius of the mask's bits, or,
    where the mask has more bits than the key, by chance. Bits are taken as independent.
    """
    sizes = [int(np.bitwise_count(mask).sum()) for mask in masks]
    key_bits = _key_bits(n, min(sizes))
    shares = np.zeros(len(masks))
    for i, (mask, size, radius) in enumerate(zip(masks, sizes, radii, strict=True)):
        known = information[_bits_of(mask, bits)]
        same = 2.0 ** -known.sum() if radius == 0 else shares_within(1 - 2.0**-known, radius)[-1]
        chance = signatures(size, radius) * 2.0**-key_bits if size > key_bits else 0.0
        shares[i] = min(same + chance, 1.0)
    return key_bits, shares


def _bits_of(mask: Any, bits: int) -> Any:
    """Which bits a mask has: bool (bits,)."""
    return np.unpackbits(mask.view(np.uint8), bitorder="little", count=bits).astype(bool)


def _packed(chosen: Any) -> Any:
    """The mask of bool (..., bits): uint64 (..., width)."""
    bits = chosen.shape[-1]
    padded = np.zeros((*chosen.shape[:-1], -(-bits // 64) * 64), np.uint8)
    padded[..., :bits] = chosen
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def mih_plan(n: int, distance: int, bits: int, m: int, information: Any) -> SearchPlan:
    """Few blocks, looked up with some of their bits turned: large distances in little memory.

    Of m blocks, one differs in at most distance // m bits (multi-index hashing: Norouzi, Punjani
    and Fleet, CVPR 2012).
    """
    masks, _ = block_masks(bits, m, information)
    radii = block_radii(distance, m)
    sizes = [int(np.bitwise_count(mask).sum()) for mask in masks]
    lookups = sum(map(signatures, sizes, radii))
    buckets = _bucket_shares(n, masks, bits, information, radii)
    return _of_tables(f"mih:{m}", n, masks, buckets, matches(n, distance, information), lookups)


def bands_plan(n: int, distance: int, bits: int, recall: float, information: Any) -> SearchPlan:
    """Tables over sampled bits, as many as the recall *at* the distance needs; approximate.

    A row exactly `distance` bits away agrees on r sampled bits with p = C(b - d, r) / C(b, r); of
    independent samples, L tables find it with 1 - (1 - p)^L. That is the mean over all draws; the
    tables drawn here may find less, so there are as many as find enough.
    """
    best = None
    for r in range(1, bits - distance + 1):
        p = comb(bits - distance, r) / comb(bits, r)
        tables = int(np.ceil(np.log(1 - recall) / np.log1p(-p))) if p < 1 else 1
        masks = _sampled_masks(min(SEARCH_MOST_TABLES, 2 * tables), r, bits)
        shares = _found_shares(masks, distance, bits)
        while tables < len(masks) and shares[tables - 1] < recall:
            tables += 1
        if tables > len(masks) or shares[tables - 1] < recall:
            break
        masks = masks[:tables]
        buckets = _bucket_shares(n, masks, bits, information, [0] * tables)
        near = matches(n, distance, information)
        plan = _of_tables(f"bands:{recall:g}", n, masks, buckets, near)
        if best is None or plan.seconds < best.seconds:
            best = replace(plan, recall=float(shares[tables - 1]))
    if best is None:
        raise UsageError(
            f"bands of recall {recall:g} at distance {distance} of {bits} bits need more than"
            f" {SEARCH_MOST_TABLES} tables: lower the recall, or use auto"
        )
    return best


def permute_plan(n: int, distance: int, bits: int, permutations: int) -> SearchPlan:
    """Sorted lists of permuted bits, a window of neighbours in each; approximate.

    The recall that is stated is that of a row in random data whose differing bits all lie below
    the first log2(n / window) permuted ones.
    """
    width = -(-bits // 64)
    prefix = max(0, min(bits, int(np.ceil(np.log2(max(n / PERMUTE_WINDOW, 1))))))
    p = comb(bits - distance, prefix) / comb(bits, prefix) if prefix <= bits - distance else 0.0
    masks = np.zeros((0, width), np.uint64)
    return SearchPlan(
        f"permute:{permutations}",
        masks,
        0,
        permutations * 2 * PERMUTE_WINDOW,
        permutations * (8 * width + 4),
        SEARCH_QUERY_SECONDS + permutations * PERMUTE_LIST_SECONDS,
        recall=1 - (1 - p) ** permutations,
        lookups=permutations,
    )


def _of_tables(
    name: str, n: int, masks: Any, buckets: tuple[int, Any], near: float, lookups: int = 0
) -> SearchPlan:
    """A plan by these tables; each is looked up once unless said."""
    tables, width = masks.shape
    key_bits, shares = buckets
    candidates, opened = n * float(shares.sum()), lookups or tables
    size = tables * _table_bytes(n, width, key_bits)
    far = _doublings(size * n, SEARCH_CACHED_BYTES)
    farther = _doublings(size * n, SEARCH_NEAR_BYTES)
    lookup = SEARCH_LOOKUP_SECONDS + far * SEARCH_LOOKUP_DOUBLING
    row = SEARCH_CANDIDATE_SECONDS + farther * SEARCH_CANDIDATE_DOUBLING
    compared = candidates * min(row, SEARCH_CANDIDATE_MOST_SECONDS) * width
    seconds = SEARCH_QUERY_SECONDS + opened * lookup + compared + near * SEARCH_TABLE_HIT_SECONDS
    return SearchPlan(name, masks, key_bits, candidates, size, seconds, lookups=opened)


def _doublings(nbytes: float, since: int) -> float:
    return max(0.0, log2(max(nbytes, 1) / since))


def _table_bytes(n: int, width: int, key_bits: int) -> float:
    return 8 * width + 4 + 4 * (1 << key_bits) / max(n, 1)


def _key_bits(n: int, mask_bits: int) -> int:
    """Bits of the key that leave a few rows a bucket, if the mask has as many."""
    wanted = max(n // SEARCH_ROWS_A_KEY, 1).bit_length()
    return max(1, min(mask_bits, wanted, SEARCH_MOST_KEY_BITS))


def _found_shares(masks: Any, distance: int, bits: int) -> Any:
    """Share of rows at this distance that agree on one of the first 1, 2... masks: float (m,).

    Over all ways to differ where they are few, else over some drawn at random.
    """
    if comb(bits, distance) <= BANDS_MOST_WAYS:
        turned = np.array(list(combinations(range(bits), distance)), np.int64)
    else:
        draw = np.random.default_rng(17).random((BANDS_MOST_WAYS, bits))
        turned = np.argpartition(draw, distance, axis=1)[:, :distance]
    ways = np.zeros((len(turned), bits), np.bool_)
    np.put_along_axis(ways, turned.reshape(len(turned), distance), values=True, axis=1)
    differ = _packed(ways)
    missed = np.ones(len(differ), np.bool_)
    shares = np.empty(len(masks))
    for i, mask in enumerate(masks):
        missed &= (differ & mask).any(axis=1)
        shares[i] = 1 - missed.mean()
    return shares


def _sampled_masks(tables: int, r: int, bits: int) -> Any:
    """For each table r of the bits, drawn at random, always the same."""
    draw = np.random.default_rng(20070508)
    picked = np.argsort(draw.random((tables, bits)), axis=1)[:, :r]
    chosen = np.zeros((tables, bits), np.bool_)
    np.put_along_axis(chosen, picked, values=True, axis=1)
    return _packed(chosen)
