"""What each way to search costs: its tables, the rows it compares, its seconds and its recall.

A plan is a set of masks. Rows that agree with the query on all bits of a mask share a bucket of
that mask's table; blocks of bits make the masks, so that by the pigeonhole principle every row
within k bits shares a bucket in one of the tables (m blocks, all choices of m - k of them: Manku,
Jain and Das Sarma, WWW 2007, section 3.1). The seconds were calibrated with bench/run.py
search_plans; docs/search-plans.md compares them with what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, log2
from typing import Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.planner import block_masks

__all__ = [
    "MOST_TABLES",
    "PERMUTE_WINDOW",
    "SearchPlan",
    "bands_plan",
    "bits_plan",
    "block_plan",
    "mih_lookups",
    "mih_plan",
    "nested_plan",
    "permute_plan",
    "probe_plan",
    "scan_plan",
    "signatures",
]

MOST_TABLES: Final = 128
MOST_KEY_BITS: Final = 32
ROWS_PER_KEY: Final = 4
PERMUTE_WINDOW: Final = 64

SECONDS_QUERY: Final = 100e-9  # what every query costs
SCAN_SECONDS: Final = 0.2e-9  # one comparison, one word, in a run that streams from cache
CACHED_BYTES: Final = 1 << 21
SECONDS_LOOKUP: Final = 50e-9  # one bucket of tables of CACHED_BYTES
SECONDS_LOOKUP_DOUBLING: Final = 10e-9  # more for every doubling of the tables beyond that
SECONDS_CANDIDATE: Final = 0.3e-9  # one row of a bucket, one word, likewise
SECONDS_CANDIDATE_DOUBLING: Final = 0.15e-9
MOST_CANDIDATE_SECONDS: Final = 1.5e-9
BITS_BLOCK: Final = 512  # rows that are counted together, bit-sliced
BITS_GROUP: Final = 8  # bits after which a block may be left
SECONDS_BITS_BLOCK: Final = 20e-9
SECONDS_BITS_GROUP: Final = 15e-9
BITS_SMALL_DISTANCE: Final = 16  # from here on wider counters take twice the time
PERMUTE_SECONDS: Final = 1000e-9  # one binary search and its window


@dataclass(frozen=True, slots=True, eq=False)
class SearchPlan:
    """How to search, and what that is expected to cost.

    Args:
        name: As it is asked for, such as "multi:4".
        masks: uint64 (tables, words): the bits of each table's key; empty where there is no table.
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


def scan_plan(n: int, bits: int) -> SearchPlan:
    """Compare with every row."""
    words = -(-bits // 64)
    seconds = SECONDS_QUERY + n * SCAN_SECONDS * words
    return SearchPlan("scan", np.zeros((0, words), np.uint64), 0, n, 0.0, seconds)


def bits_plan(n: int, distance: int, bits: int) -> SearchPlan:
    """One list of rows a bit, kept as bitmaps: the classic teaching design, bit-sliced.

    A block of rows is left once none of them can be within the distance: of random rows, when the
    share within the distance on the bits so far is less than one row of a block.
    """
    groups = 1
    while (
        groups * BITS_GROUP < bits and _share_within(groups * BITS_GROUP, distance) > 1 / BITS_BLOCK
    ):
        groups += 1
    each = SECONDS_BITS_GROUP * (1 if distance < BITS_SMALL_DISTANCE else 2)
    seconds = SECONDS_QUERY + -(-n // BITS_BLOCK) * (SECONDS_BITS_BLOCK + groups * each)
    masks = np.zeros((0, -(-bits // 64)), np.uint64)
    return SearchPlan("bits", masks, 0, n, bits / 8, seconds, lookups=bits)


def _share_within(bits: int, distance: int) -> float:
    """The share of random rows that differ from a query in at most `distance` of so many bits."""
    return float(signatures(bits, distance) / 2**bits)


def probe_plan(n: int, distance: int, bits: int) -> SearchPlan:
    """Look every signature within the distance up in one table of whole fingerprints."""
    words = -(-bits // 64)
    mask = np.full((1, words), 2**64 - 1, np.uint64)
    if bits % 64:
        mask[0, -1] = 2 ** (bits % 64) - 1
    lookups = signatures(bits, distance)
    key_bits = _key_bits(n, bits)
    return _of_tables("probe", n, mask, key_bits, lookups * n / 2**key_bits, lookups)


def block_plan(n: int, distance: int, bits: int, m: int, information: Any) -> SearchPlan:
    """All choices of m - distance of m blocks: one table each."""
    masks = _chosen_masks(block_masks(bits, m, information)[0], distance)
    return _of_masks(f"multi:{m}", n, bits, masks, information)


def nested_plan(n: int, distance: int, bits: int, value: str, information: Any) -> SearchPlan:
    """As `block_plan` twice: the bits that a first choice leaves out are cut into blocks again.

    Of 4 blocks one agrees, and of 4 blocks of the other bits one does: 16 tables of 28 bits (Manku,
    Jain and Das Sarma, section 3.1).
    """
    outer, inner = (int(part) for part in value.split("x"))
    masks = []
    for mask in _chosen_masks(block_masks(bits, outer, information)[0], distance):
        taken = _bits_of(mask, bits)
        rest = np.flatnonzero(~taken)
        blocks, _ = block_masks(len(rest), inner, information[rest])
        for choice in _chosen_masks(blocks, distance):
            both = taken.copy()
            both[rest[_bits_of(choice, len(rest))]] = True
            masks.append(_packed(both))
    return _of_masks(f"multi:{value}", n, bits, np.array(masks), information)


def _chosen_masks(blocks: Any, distance: int) -> Any:
    """The bits of each choice of all blocks but `distance`: uint64 (choices, words)."""
    chosen = combinations(range(len(blocks)), len(blocks) - distance)
    return np.array([np.bitwise_or.reduce(blocks[list(each)], axis=0) for each in chosen])


def _of_masks(name: str, n: int, bits: int, masks: Any, information: Any) -> SearchPlan:
    key_bits = _key_bits(n, min(int(np.bitwise_count(mask).sum()) for mask in masks))
    shares = [2.0 ** -float(information[_bits_of(mask, bits)].sum()) for mask in masks]
    together = sum(max(share, 2.0**-key_bits) for share in shares)
    return _of_tables(name, n, masks, key_bits, n * together)


def _bits_of(mask: Any, bits: int) -> Any:
    """Which bits a mask has: bool (bits,)."""
    return np.unpackbits(mask.view(np.uint8), bitorder="little", count=bits).astype(bool)


def _packed(chosen: Any) -> Any:
    """The mask of bool (..., bits): uint64 (..., words)."""
    bits = chosen.shape[-1]
    padded = np.zeros((*chosen.shape[:-1], -(-bits // 64) * 64), np.uint8)
    padded[..., :bits] = chosen
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def mih_plan(n: int, distance: int, bits: int, m: int, information: Any) -> SearchPlan:
    """Few blocks, looked up with some of their bits turned: large distances in little memory.

    Of m blocks, one differs in at most distance // m bits (multi-index hashing: Norouzi, Punjani
    and Fleet, CVPR 2012).
    """
    masks, block = block_masks(bits, m, information)
    key_bits = _key_bits(n, min(int(np.bitwise_count(mask).sum()) for mask in masks))
    share = np.maximum(2.0 ** -np.bincount(block, weights=information, minlength=m), 2.0**-key_bits)
    lookups = mih_lookups(bits, distance, m)
    candidates = lookups * n * float(share.mean())
    return _of_tables(f"mih:{m}", n, masks, key_bits, candidates, lookups)


def mih_lookups(bits: int, distance: int, m: int) -> int:
    """How many buckets `mih_plan` opens: distance % m + 1 blocks have one more turned bit."""
    radius, rest = divmod(distance, m)
    size = -(-bits // m)
    wide, narrow = signatures(size, radius), signatures(size, radius - 1)
    return min(rest + 1, m) * wide + max(m - rest - 1, 0) * narrow


def bands_plan(n: int, distance: int, bits: int, recall: float) -> SearchPlan:
    """Tables over sampled bits, as many as the recall *at* the distance needs; approximate.

    A row exactly `distance` bits away agrees on r sampled bits with p = C(b - d, r) / C(b, r); of
    independent samples, L tables find it with 1 - (1 - p)^L.
    """
    best = None
    for r in range(1, bits - distance + 1):
        p = comb(bits - distance, r) / comb(bits, r)
        tables = int(np.ceil(np.log(1 - recall) / np.log1p(-p))) if p < 1 else 1
        if tables > MOST_TABLES:
            break
        key_bits = _key_bits(n, r)
        candidates = tables * n * 2.0**-key_bits
        masks = np.zeros((tables, -(-bits // 64)), np.uint64)
        plan = _of_tables(f"bands:{recall:g}", n, masks, key_bits, candidates)
        if best is None or plan.seconds < best[0].seconds:
            best = (plan, r, 1 - (1 - p) ** tables)
    if best is None:
        raise UsageError(
            f"bands of recall {recall:g} at distance {distance} of {bits} bits need more than"
            f" {MOST_TABLES} tables: lower the recall, or use auto"
        )
    plan, r, reached = best
    masks = _sampled_masks(len(plan.masks), r, bits)
    return replace(plan, masks=masks, recall=reached)


def permute_plan(n: int, distance: int, bits: int, permutations: int) -> SearchPlan:
    """Sorted lists of permuted bits, a window of neighbours in each; approximate.

    The recall that is stated is that of a row in random data whose differing bits all lie below
    the first log2(n / window) permuted ones.
    """
    words = -(-bits // 64)
    prefix = max(0, min(bits, int(np.ceil(np.log2(max(n / PERMUTE_WINDOW, 1))))))
    p = comb(bits - distance, prefix) / comb(bits, prefix) if prefix <= bits - distance else 0.0
    masks = np.zeros((0, words), np.uint64)
    return SearchPlan(
        f"permute:{permutations}",
        masks,
        0,
        permutations * 2 * PERMUTE_WINDOW,
        permutations * (8 * words + 4),
        SECONDS_QUERY + permutations * PERMUTE_SECONDS,
        recall=1 - (1 - p) ** permutations,
        lookups=permutations,
    )


def _of_tables(
    name: str, n: int, masks: Any, key_bits: int, candidates: float, lookups: int = 0
) -> SearchPlan:
    """A plan by these tables; each is looked up once unless said."""
    tables, words = masks.shape
    size = tables * _table_bytes(n, words, key_bits)
    doublings = max(0.0, log2(max(size * n, 1) / CACHED_BYTES))
    lookup = SECONDS_LOOKUP + doublings * SECONDS_LOOKUP_DOUBLING
    row = SECONDS_CANDIDATE + doublings * SECONDS_CANDIDATE_DOUBLING
    opened = lookups or tables
    compared = candidates * min(row, MOST_CANDIDATE_SECONDS) * words
    seconds = SECONDS_QUERY + opened * lookup + compared
    return SearchPlan(name, masks, key_bits, candidates, size, seconds, lookups=opened)


def _table_bytes(n: int, words: int, key_bits: int) -> float:
    return 8 * words + 4 + 4 * (1 << key_bits) / max(n, 1)


def _key_bits(n: int, mask_bits: int) -> int:
    """Bits of the key that leave a few rows a bucket, if the mask has as many."""
    wanted = max(n // ROWS_PER_KEY, 1).bit_length()
    return max(1, min(mask_bits, wanted, MOST_KEY_BITS))


def signatures(bits: int, distance: int) -> int:
    """How many values are within the distance of one of so many bits."""
    return sum(comb(bits, flips) for flips in range(min(distance, bits) + 1))


def _sampled_masks(tables: int, r: int, bits: int) -> Any:
    """For each table r of the bits, drawn at random, always the same."""
    draw = np.random.default_rng(20070508)
    picked = np.argsort(draw.random((tables, bits)), axis=1)[:, :r]
    chosen = np.zeros((tables, bits), np.bool_)
    np.put_along_axis(chosen, picked, values=True, axis=1)
    return _packed(chosen)
