"""Choose how to find all pairs within a Hamming distance: which blocks of bits, and how many agree.

A plan is m disjoint blocks of bits; two fingerprints within k bits differ in at most k of them, so
they agree on at least c = m - k (the pigeonhole principle). More blocks mean more tables of fewer
candidates; c = 0 compares all pairs. Of m blocks that may be fewer than k, one differs in at most
k // m bits: `mih:M` turns so many. The seconds per row and per comparison below were calibrated
with bench/run.py pair_plans.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import comb, inf
from typing import Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.hamming.plans.blocks import (
    agreement,
    block_masks,
    share_near,
    symmetric_sum,
)

__all__ = [
    "BUCKET_BYTES",
    "EXTRA_BLOCKS",
    "MOST_BINS_LOG2",
    "PLANS",
    "SEARCHED_PLANS",
    "JoinPlan",
    "MihBlock",
    "bins_log2",
    "check_plan",
    "direct_sizes",
    "plan_pairs",
    "plan_tables",
    "seconds_at",
    "spilled_seconds",
]

PLANS: Final = ("auto", "scan", "blocks", "multi:M", "mih:M")
SEARCHED_PLANS: Final = ("bits", "probe")
"""Plans of `pairs` that ask an index for the neighbours of each row."""
MOST_TABLES: Final = 50_000
EXTRA_BLOCKS: Final = 10
HOPELESS_TIMES: Final = 3  # beyond a plan so much slower, more blocks are not tried
BUCKET_BYTES: Final = 1 << 17
MOST_BINS_LOG2: Final = 13

MOST_HASH_TABLES: Final = 500
SECONDS_PROBE: Final = 45e-9  # one look into a hash table
SECONDS_CANDIDATE: Final = 4.5e-9  # one row of a hash table's chain, one word
SECONDS_TABLE: Final = 150e-6  # starting one top-level partition
SECONDS_BUCKET: Final = 150e-9  # starting to refine one bucket
SECONDS_SELECT: Final = 5e-9  # reading one word of a row from a file, and whether it is in a slab
SECONDS_GATHER: Final = 24e-9  # bringing one row of a slab to its place

MOST_KEY_BITS: Final = 22
MOST_FLIPS: Final = 4096
KEY_BITS_BELOW_ROWS: Final = (0, 2, 4, 6)
SECONDS_SORT: Final = 31e-9  # sorting one row by a block
SECONDS_SORTING: Final = 500e-6  # starting to sort by a block, and to join its buckets
SECONDS_VISIT: Final = 25e-9  # two buckets that meet
SECONDS_NEAR: Final = 0.085e-9  # one comparison of two buckets, one word
SECONDS_MET: Final = 15e-9  # a near pair, in each table
SECONDS_MET_MIH: Final = 4e-9  # and in each block that is turned


def seconds_per_row(width: int) -> float:
    """One row of a partition in cache and of the first passes over it; at the top level alike."""
    return (5 + 4 * width) * 1e-9


def seconds_per_pair(width: int) -> float:
    """One comparison of a long run; one word is the vector units' best case."""
    return 0.08e-9 if width == 1 else (0.33 + 0.27 * width) * 1e-9


SECONDS_SHORT_RUN: Final = (
    15e-9  # starting the comparisons of one row in a bucket of more than a few
)


@dataclass(frozen=True, slots=True)
class MihBlock:
    """A block of consecutive bits of which at most `radius` differ; below 0: the block is idle."""

    first: int
    length: int
    key_bits: int
    radius: int


@dataclass(frozen=True, slots=True, eq=False)
class JoinPlan:
    """How to search: `masks` (uint64, blocks x words), of which every pair agrees on `choose`.

    Where there are `mih` blocks, one of them differs in at most its radius, and choose is 0.
    """

    name: str
    masks: Any
    choose: int
    seconds: float
    candidates: float
    mih: tuple[MihBlock, ...] = ()

    @property
    def tables(self) -> int:
        """How many times the rows are put into buckets."""
        return len(self.mih) or comb(len(self.masks), self.choose)


def plan_pairs(
    n: int,
    distance: int,
    bits: int,
    sample_fps: Any = None,
    plan: str = "auto",
    mih: bool = True,
    near: float = 0.0,
) -> JoinPlan:
    """Choose the plan for all pairs of n fingerprints within `distance` bits.

    Args:
        n: Fingerprints to be joined.
        distance: Largest Hamming distance, 0 or more.
        bits: Width of a fingerprint.
        sample_fps: Some of the fingerprints, uint64 (s, width): the bits that vary little in it are
            spread over the blocks. Without it all bits count the same.
        plan: "auto" for the cheapest, or "scan", "blocks", "multi:M" or "mih:M".
        mih: Whether "auto" may be a plan with bits turned, which needs all rows in memory.
        near: Pairs that will be listed, as far as known: every table meets them again.

    Returns:
        The plan, with its estimated seconds on one thread and the comparisons it expects.

    Raises:
        UsageError: For a plan that does not exist or cannot work for this distance and width.

    Example:
        >>> plan_pairs(10_000_000, 10, 64).name
        'mih:4'
    """
    wanted, scan = check_plan(plan, distance, bits), _listing(_scan(n, bits), near)
    if wanted == 0:
        return scan
    information = agreement(sample_fps, bits)
    if wanted is not None:
        if plan.startswith("mih"):
            nothing = replace(scan, seconds=inf)
            return _best_keys(n, distance, bits, wanted, information, nothing, near)
        return _listing(_blocks(n, distance, bits, wanted, information, plan), near)
    best = scan
    for m in range(distance + 1, min(bits, distance + EXTRA_BLOCKS) + 1):
        if comb(m, m - distance) > MOST_TABLES:
            break
        rival = _listing(_blocks(n, distance, bits, m, information, f"multi:{m}"), near)
        if rival.seconds < best.seconds:
            best = rival
        elif m > distance + 2 and rival.seconds > HOPELESS_TIMES * best.seconds:
            break
    for m in range(1, distance + 2) if mih and distance < bits else ():
        least = min(m, distance + 1) * (SECONDS_SORTING + n * SECONDS_SORT)
        if least < best.seconds and _flips_at(bits, distance, m) <= MOST_FLIPS:
            best = _best_keys(n, distance, bits, m, information, best, near)
    return best


def seconds_at(plan: JoinPlan, candidates: float) -> float:
    """Estimated time of a plan of turned blocks if it compares so many pairs."""
    width: int = plan.masks.shape[1]
    return plan.seconds + (candidates - plan.candidates) * SECONDS_NEAR * width


def plan_tables(n: int, distance: int, bits: int, sample_fps: Any) -> tuple[Any, int]:
    """Choose blocks for hash tables that are asked for n rows among up to n rows.

    Returns:
        The masks, uint64 (blocks, width), and how many agree: one table for each such choice of
        blocks. No masks and 0 where comparing with every row is cheaper.
    """
    width = -(-bits // 64)
    nothing = np.zeros((0, width), np.uint64)
    best, least = (nothing, 0), n * seconds_per_pair(width)
    information = agreement(sample_fps, bits)
    for m in range(distance + 1, min(bits, distance + EXTRA_BLOCKS) + 1):
        tables = comb(m, m - distance)
        if tables > MOST_HASH_TABLES:
            break
        masks, block = block_masks(bits, m, information)
        together = 2.0 ** -np.bincount(block, weights=information, minlength=m)
        found = n * symmetric_sum(together, m - distance)
        seconds = tables * SECONDS_PROBE + found * SECONDS_CANDIDATE * width
        if seconds < least:
            best, least = (masks, m - distance), seconds
    return best


def spilled_seconds(
    n: int, distance: int, bits: int, slab_rows: int, workers: int, plan: JoinPlan | None = None
) -> float:
    """Estimate the seconds of a join that reads its rows from a file for every slab.

    Args:
        n: Fingerprints to be joined.
        distance: Largest Hamming distance.
        bits: Width of a fingerprint.
        slab_rows: Rows that fit in memory at once.
        workers: Threads, each on a core of its own.
        plan: The plan; the cheapest for random fingerprints unless said.

    Returns:
        Seconds; the reading is as quick as from the page cache, or from a disk of 2 GB/s.

    Example:
        >>> spilled_seconds(10**9, 3, 64, 2**29, 2) < 300
        True
    """
    chosen = plan or plan_pairs(n, distance, bits, mih=False)
    width, first_blocks = -(-bits // 64), len(chosen.masks) - chosen.choose + 1
    slabs = -(-n // slab_rows)
    passes = first_blocks * slabs * SECONDS_SELECT * width + first_blocks * SECONDS_GATHER
    return (chosen.seconds + n * passes) / workers


def check_plan(plan: str, distance: int, bits: int) -> int | None:
    """How many blocks the plan asks for: 0 for a scan, None for "auto".

    Raises:
        UsageError: For an unknown plan, one that only `pairs` has, "multi:M" with M <= distance or
            M > bits, or "mih:M" with M so small that too many bits would be turned.
    """
    if plan == "auto":
        return None
    if plan == "scan":
        return 0
    if plan == "blocks":
        return distance + 1 if distance < bits else 0
    found = re.fullmatch(r"(multi|mih):(\d{1,9})", plan) if isinstance(plan, str) else None
    if not found:
        listed = ", ".join(PLANS)
        if plan in SEARCHED_PLANS:
            raise UsageError(f"plan {plan!r} is for nd.pairs and indexes: use one of {listed}")
        searched = ", ".join(SEARCHED_PLANS)
        raise UsageError(
            f"plan {plan!r} is unknown: use one of {listed} (nd.pairs: {searched} too)"
        )
    m = int(found[2])
    if found[1] == "mih":
        _check_turned(plan, m, distance, bits)
        return m
    if m <= distance:
        raise UsageError(
            f"plan {plan!r} has too few blocks for distance {distance}:"
            f" use multi:{distance + 1} or more"
        )
    if m > bits:
        raise UsageError(
            f"plan {plan!r} has more blocks than the {bits} bits: use multi:{bits} or less"
        )
    return m


def _check_turned(plan: str, m: int, distance: int, bits: int) -> None:
    if not 1 <= m <= bits:
        raise UsageError(f"plan {plan!r}: use 1 to {bits} blocks, as in mih:4")
    if distance < bits and _flips_at(bits, distance, m) > MOST_FLIPS:
        raise UsageError(
            f"plan {plan!r} would turn too many bits at distance {distance}: use more blocks"
        )


def bins_log2(n: int, width: int) -> int:
    """Bits of the top-level key that make the buckets of n rows fit the cache."""
    return max(1, min(MOST_BINS_LOG2, (n * (8 * width + 4) // BUCKET_BYTES).bit_length()))


def direct_sizes(m: int, choose: int, width: int, most: int) -> Any:
    """Bucket sizes up to which comparing is cheaper than refining: int64 (choose + 1, m).

    Indexed by the length of the bucket's prefix and the prefix's last block.
    """
    sizes = np.zeros((choose + 1, m), np.int64)
    for depth in range(1, choose + 1):
        for last in range(m):
            tables = max(1, comb(m - 1 - last, choose - depth))
            sizes[depth, last] = min(_direct_size(tables, width), most)
    return sizes


def _direct_size(tables: int, width: int) -> int:
    """Rows of a bucket for which comparing costs as much as refining it for so many tables."""
    spare = tables * seconds_per_row(width) - SECONDS_SHORT_RUN
    by_rows = 2 * spare / seconds_per_pair(width)
    by_start = tables * SECONDS_BUCKET / SECONDS_SHORT_RUN
    return int(min(max(by_rows, 16, by_start), 1 << 20))


def _listing(plan: JoinPlan, near: float) -> JoinPlan:
    """The plan with the time that so many near pairs take, in each table in which they meet."""
    met = SECONDS_MET_MIH if plan.mih else SECONDS_MET
    return replace(plan, seconds=plan.seconds + near * plan.tables * met)


def _scan(n: int, bits: int) -> JoinPlan:
    width = -(-bits // 64)
    candidates = n * (n - 1) / 2
    seconds = candidates * seconds_per_pair(width)
    return JoinPlan("scan", np.zeros((0, width), np.uint64), 0, seconds, candidates)


def _blocks(n: int, distance: int, bits: int, m: int, information: Any, name: str) -> JoinPlan:
    choose = m - distance
    masks, block = block_masks(bits, m, information)
    together = 2.0 ** -np.bincount(block, weights=information, minlength=m)
    width = masks.shape[1]
    seconds = (distance + 1) * (SECONDS_TABLE + n * seconds_per_row(width))
    for depth in range(1, choose + 1):
        tables = comb(distance + depth, depth)
        equal = symmetric_sum(together[: distance + depth], depth)
        if depth > 1 or choose == 1:
            seconds += tables * n * seconds_per_row(width)
        size = n * equal / tables
        if depth == 1 < choose:
            size = max(size, n / 2 ** bins_log2(n, width))
        later = comb(max(m - 1 - depth, 0), choose - depth)
        if depth < choose and size < _direct_size(max(later, 1), width):
            break
        if depth < choose:
            seconds += tables * n / max(size, 1) * SECONDS_BUCKET
    candidates = tables * n * size / 2
    seconds += candidates * seconds_per_pair(width)
    seconds += tables * n * min(1, size / 16) * SECONDS_SHORT_RUN
    return JoinPlan(name, masks, choose, seconds, candidates)


def _flips_at(bits: int, distance: int, m: int) -> int:
    """Keys that meet in a block of the most bits and the largest radius, at the longest keys."""
    length, radius = min(-(-bits // m), MOST_KEY_BITS), distance // m
    return sum(comb(length, flipped) for flipped in range(radius + 1))


def _best_keys(
    n: int, distance: int, bits: int, m: int, information: Any, best: JoinPlan, near: float
) -> JoinPlan:
    """The better of a plan and that of m blocks with bits turned, at its best length of keys."""
    masks, block = block_masks(bits, m, information)
    sizes, differ = np.bincount(block, minlength=m), 1 - 2.0**-information
    most = max(1, min(MOST_KEY_BITS, n.bit_length()))
    lengths = {max(1, min(most - below, int(sizes.max()))) for below in KEY_BITS_BELOW_ROWS}
    for key_bits in sorted(lengths):
        below = best.seconds - near * m * SECONDS_MET_MIH
        plan = _turned(n, distance, masks, (sizes, differ), key_bits, below)
        best = best if plan is None else _listing(plan, near)
    return best


def _turned(
    n: int, distance: int, masks: Any, block_bits: tuple[Any, Any], key_bits: int, below: float
) -> JoinPlan | None:
    """M blocks of which one differs in distance // m bits, or one less beyond the first few.

    Args:
        n: Fingerprints.
        distance: Largest Hamming distance.
        masks: uint64 (m, width), of consecutive bits.
        block_bits: How many bits each has, int64 (m,), and how likely each bit differs in two rows.
        key_bits: Most bits of a key.
        below: None is returned for a plan of so many seconds or more.
    """
    (m, codes), (sizes, differ) = masks.shape, block_bits
    blocks, candidates, seconds, first = [], 0.0, SECONDS_TABLE, 0
    for number, length in enumerate(sizes.tolist()):
        radius = distance // m - (number > distance % m)
        key = max(1, min(key_bits, length))
        blocks.append(MihBlock(first, length, key, radius))
        if radius >= 0:
            flipped = sum(comb(key, some) for some in range(radius + 1))
            seconds += SECONDS_SORTING + n * SECONDS_SORT * codes
            seconds += min(n, 1 << key) * flipped / 2 * SECONDS_VISIT
            if seconds >= below:
                return None
            near = n * n / 2 * share_near(differ[first : first + length], key, radius)
            candidates += near
            seconds += near * SECONDS_NEAR * codes
        first += length
    if seconds >= below:
        return None
    return JoinPlan(f"mih:{m}", masks, 0, seconds, candidates, tuple(blocks))
