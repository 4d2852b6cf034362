"""Costs of each search plan: its tables, compared rows, seconds and recall.

A plan is a set of masks. Rows that agree with the query on all bits of a mask share a bucket of
that mask's table; blocks of bits make the masks, so that by the pigeonhole principle every row
within k bits shares a bucket in one of the tables (m blocks, all choices of m - k of them: Manku,
Jain and Das Sarma, WWW 2007, section 3.1). docs/design/search-plans.md compares the estimates with
measured times.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, log2
from typing import Any

import numpy as np

from neardup.hamming.plans.blocks import block_masks, block_radii, shares_within, signatures
from neardup.hamming.plans.join_costs import (
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
    "bits_plan",
    "block_plan",
    "matches",
    "mih_plan",
    "permute_plan",
    "probe_plan",
    "scan_plan",
]


@dataclass(frozen=True, slots=True, eq=False)
class SearchPlan:
    """A plan of a search, and its expected cost.

    Args:
        name: As it is asked for, such as "multi:4".
        masks: uint64 (tables, width): the bits of each table's key; empty where there is no table.
        key_bits: Bits of the hashed key.
        candidates: Rows that a query is expected to be compared with.
        bytes_per_row: Memory that the search needs in addition to the fingerprints.
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
        """The plan's name without its parameter."""
        return self.name.partition(":")[0]


def scan_plan(n: int, bits: int, near: float = 0.0) -> SearchPlan:
    """The plan that compares every row; runs with one of `near` matches are compared twice."""
    width = -(-bits // 64)
    twice = min(near + 1, n / SEARCH_SCAN_RUN) * SEARCH_SCAN_RUN * SEARCH_SCAN_AGAIN_SECONDS
    compared = (n * SEARCH_SCAN_SECONDS + twice) * width
    seconds = SEARCH_QUERY_SECONDS + compared + near * SEARCH_HIT_SECONDS
    return SearchPlan("scan", np.zeros((0, width), np.uint64), 0, n, 0.0, seconds)


def bits_plan(n: int, distance: int, bits: int, information: Any) -> SearchPlan:
    """The plan of one bitmap of rows for each bit: the classic teaching design, bit-sliced.

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
    """The expected number of n rows within the distance of a query, for independent bits."""
    return n * float(shares_within(1 - 2.0**-information, min(distance, len(information)))[-1])


def probe_plan(n: int, distance: int, bits: int, information: Any, near: float) -> SearchPlan:
    """The plan that looks up every signature within the distance in a table of fingerprints."""
    width = -(-bits // 64)
    mask = np.full((1, width), 2**64 - 1, np.uint64)
    if bits % 64:
        mask[0, -1] = 2 ** (bits % 64) - 1
    buckets = _bucket_shares(n, mask, bits, information, [distance])
    return _of_tables("probe", n, mask, buckets, near, signatures(bits, distance))


def block_plan(
    n: int, distance: int, bits: int, m: int, information: Any, near: float
) -> SearchPlan:
    """The plan of a table for every choice of m - distance of m blocks."""
    masks = _chosen_masks(block_masks(bits, m, information)[0], distance)
    buckets = _bucket_shares(n, masks, bits, information, [0] * len(masks))
    return _of_tables(f"multi:{m}", n, masks, buckets, near)


def _chosen_masks(blocks: Any, distance: int) -> Any:
    """The bits of each choice of all blocks but `distance`: uint64 (choices, width)."""
    chosen = [*combinations(range(len(blocks)), len(blocks) - distance)]
    return np.bitwise_or.reduce(blocks[np.array(chosen)], axis=1)


def _bucket_shares(
    n: int, masks: Any, bits: int, information: Any, radii: list[int]
) -> tuple[int, Any]:
    """The bits of the key, and the share of rows in the buckets a query opens, by table.

    Rows are there since they differ from the query in at most the radius of the mask's bits, or,
    where the mask has more bits than the key, by chance. Bits are taken as independent.
    """
    bytes_of_masks = np.ascontiguousarray(masks).view(np.uint8)
    has = np.unpackbits(bytes_of_masks, axis=1, bitorder="little", count=bits).astype(bool)
    sizes = has.sum(axis=1).tolist()
    key_bits = _key_bits(n, min(sizes))
    shares = 2.0 ** -(has @ information)
    for i, (size, radius) in enumerate(zip(sizes, radii, strict=True)):
        if radius:
            shares[i] = shares_within(1 - 2.0 ** -information[has[i]], radius)[-1]
        if size > key_bits:
            shares[i] += signatures(size, radius) * 2.0**-key_bits
    return key_bits, np.minimum(shares, 1.0)


def mih_plan(n: int, distance: int, bits: int, m: int, information: Any, near: float) -> SearchPlan:
    """The plan of few blocks with some flipped bits: large distances in little memory.

    Of m blocks, one differs in at most distance // m bits (multi-index hashing: Norouzi, Punjani
    and Fleet, CVPR 2012).
    """
    masks, _ = block_masks(bits, m, information)
    radii = block_radii(distance, m)
    sizes = [int(np.bitwise_count(mask).sum()) for mask in masks]
    lookups = sum(map(signatures, sizes, radii))
    buckets = _bucket_shares(n, masks, bits, information, radii)
    return _of_tables(f"mih:{m}", n, masks, buckets, near, lookups)


def permute_plan(n: int, distance: int, bits: int, permutations: int) -> SearchPlan:
    """The plan of sorted lists of permuted bits, with a window in each; approximate.

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
    """A plan by tables; by default each is looked up once."""
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
    """The bits of the key that leave a few rows in a bucket, if the mask has enough."""
    key_bits = max(n // SEARCH_ROWS_A_KEY, 1).bit_length()
    return max(1, min(mask_bits, key_bits, SEARCH_MOST_KEY_BITS))
