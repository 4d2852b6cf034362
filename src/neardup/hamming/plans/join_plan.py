"""The choice of a join plan: blocks of bits, and how many of them agree.

A plan is m disjoint blocks of bits; two fingerprints within k bits differ in at most k of them, so
they agree on at least c = m - k (the pigeonhole principle). More blocks mean more tables of fewer
candidates; c = 0 compares all pairs. Of m blocks that may be fewer than k, one differs in at most
k // m bits: `mih:M` flips up to that number. `join_costs` has the time of each step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, inf
from typing import Any, Final

import numpy as np

from neardup.hamming.plans.blocks import (
    agreement,
    block_masks,
    block_radii,
    share_near,
    shares_agreeing,
    signatures,
    symmetric_sum,
)
from neardup.hamming.plans.join_costs import (
    EXTRA_BLOCKS,
    JOIN_BUCKET_BYTES,
    JOIN_MIH_COMPARE_SECONDS,
    JOIN_MIH_MOST_FLIPS,
    JOIN_MIH_MOST_KEY_BITS,
    JOIN_MIH_NEAR_SECONDS,
    JOIN_MIH_SORT_SECONDS,
    JOIN_MIH_START_SECONDS,
    JOIN_MIH_VISIT_SECONDS,
    JOIN_MOST_BINS_LOG2,
    JOIN_MOST_TABLES,
    JOIN_NEAR_SECONDS,
    JOIN_PARTITION_SECONDS,
    JOIN_REFINE_SECONDS,
    JOIN_RUN_SECONDS,
    KEEP_CANDIDATE_SECONDS,
    KEEP_MOST_TABLES,
    KEEP_PROBE_SECONDS,
    SPILL_GATHER_SECONDS,
    SPILL_SELECT_SECONDS,
    join_pair_seconds,
    join_row_seconds,
)
from neardup.hamming.plans.plan_checks import check_join_plan, join_flips

__all__ = [
    "JoinPlan",
    "MihBlock",
    "bins_log2",
    "direct_sizes",
    "plan_pairs",
    "plan_tables",
    "seconds_at",
    "spilled_seconds",
]

HOPELESS_TIMES: Final = 3  # beyond a plan so much slower, more blocks are not tried
KEY_BITS_BELOW_ROWS: Final = (0, 2, 4, 6)


@dataclass(frozen=True, slots=True)
class MihBlock:
    """A block of consecutive bits of which at most `radius` differ; a negative radius: unused."""

    first: int
    length: int
    key_bits: int
    radius: int


@dataclass(frozen=True, slots=True, eq=False)
class JoinPlan:
    """A plan of a join: every pair agrees on `choose` of `masks` (uint64, blocks x words).

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
        """The number of times that the rows are partitioned."""
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
    """The plan for all pairs of n fingerprints within `distance` bits.

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
    plan_name, scan = check_join_plan(plan, distance, bits), _listing(_scan(n, bits), near)
    if plan_name.kind == "scan" or (plan_name.kind == "blocks" and distance >= bits):
        return scan
    information = agreement(sample_fps, bits)
    if plan_name.kind == "mih":
        nothing = replace(scan, seconds=inf)
        m = plan_name.blocks
        return _best_keys(n, distance, bits, m, information, nothing, near)
    if plan_name.kind != "auto":
        m = plan_name.blocks or distance + 1
        return _listing(_blocks(n, distance, bits, m, information, plan), near)
    best = scan
    for m in range(distance + 1, min(bits, distance + EXTRA_BLOCKS) + 1):
        if comb(m, m - distance) > JOIN_MOST_TABLES:
            break
        rival = _listing(_blocks(n, distance, bits, m, information, f"multi:{m}"), near)
        if rival.seconds < best.seconds:
            best = rival
        elif m > distance + 2 and rival.seconds > HOPELESS_TIMES * best.seconds:
            break
    for m in range(1, distance + 2) if mih and distance < bits else ():
        least = min(m, distance + 1) * (JOIN_MIH_START_SECONDS + n * JOIN_MIH_SORT_SECONDS)
        if least < best.seconds and join_flips(bits, distance, m) <= JOIN_MIH_MOST_FLIPS:
            best = _best_keys(n, distance, bits, m, information, best, near)
    return best


def seconds_at(plan: JoinPlan, candidates: float) -> float:
    """The estimated time of a plan of flipped bits that compares a number of pairs."""
    width: int = plan.masks.shape[1]
    return plan.seconds + (candidates - plan.candidates) * JOIN_MIH_COMPARE_SECONDS * width


def plan_tables(n: int, distance: int, bits: int, sample_fps: Any) -> tuple[Any, int]:
    """The blocks of hash tables that are queried with n rows, among up to n rows.

    Returns:
        The masks, uint64 (blocks, width), and how many agree: one table for each such choice of
        blocks. No masks and 0 where comparing with every row is cheaper.
    """
    width = -(-bits // 64)
    nothing = np.zeros((0, width), np.uint64)
    best, least = (nothing, 0), n * join_pair_seconds(width)
    information = agreement(sample_fps, bits)
    for m in range(distance + 1, min(bits, distance + EXTRA_BLOCKS) + 1):
        tables = comb(m, m - distance)
        if tables > KEEP_MOST_TABLES:
            break
        masks, block = block_masks(bits, m, information)
        together = shares_agreeing(block, m, information)
        candidates = n * symmetric_sum(together, m - distance)
        seconds = tables * KEEP_PROBE_SECONDS + candidates * KEEP_CANDIDATE_SECONDS * width
        if seconds < least:
            best, least = (masks, m - distance), seconds
    return best


def spilled_seconds(
    n: int, distance: int, bits: int, slab_rows: int, workers: int, plan: JoinPlan | None = None
) -> float:
    """The estimated seconds of a join that reads its rows from a file for every slab.

    Args:
        n: Fingerprints to be joined.
        distance: Largest Hamming distance.
        bits: Width of a fingerprint.
        slab_rows: Rows that fit in memory at once.
        workers: Threads, each on a core of its own.
        plan: The plan; by default the cheapest for random fingerprints.

    Returns:
        Seconds; the reading is as quick as from the page cache, or from a disk of 2 GB/s.

    Example:
        >>> spilled_seconds(10**9, 3, 64, 2**29, 2) < 300
        True
    """
    chosen = plan or plan_pairs(n, distance, bits, mih=False)
    width, first_blocks = -(-bits // 64), len(chosen.masks) - chosen.choose + 1
    slabs = -(-n // slab_rows)
    selected = slabs * SPILL_SELECT_SECONDS * width
    passes = first_blocks * (selected + SPILL_GATHER_SECONDS)
    return (chosen.seconds + n * passes) / workers


def bins_log2(n: int, width: int) -> int:
    """The bits of the top-level key with which the buckets of n rows fit the cache."""
    return max(1, min(JOIN_MOST_BINS_LOG2, (n * (8 * width + 4) // JOIN_BUCKET_BYTES).bit_length()))


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
    """The rows of a bucket for which comparing costs as much as refining it."""
    spare = tables * join_row_seconds(width) - JOIN_RUN_SECONDS
    by_rows = 2 * spare / join_pair_seconds(width)
    by_start = tables * JOIN_REFINE_SECONDS / JOIN_RUN_SECONDS
    return int(min(max(by_rows, 16, by_start), 1 << 20))


def _listing(plan: JoinPlan, near: float) -> JoinPlan:
    """The plan with the time to list near pairs added, in each table where they meet."""
    met = JOIN_MIH_NEAR_SECONDS if plan.mih else JOIN_NEAR_SECONDS
    return replace(plan, seconds=plan.seconds + near * plan.tables * met)


def _scan(n: int, bits: int) -> JoinPlan:
    width = -(-bits // 64)
    candidates = n * (n - 1) / 2
    seconds = candidates * join_pair_seconds(width)
    return JoinPlan("scan", np.zeros((0, width), np.uint64), 0, seconds, candidates)


def _blocks(n: int, distance: int, bits: int, m: int, information: Any, name: str) -> JoinPlan:
    choose = m - distance
    masks, block = block_masks(bits, m, information)
    together = shares_agreeing(block, m, information)
    width = masks.shape[1]
    seconds = (distance + 1) * (JOIN_PARTITION_SECONDS + n * join_row_seconds(width))
    for depth in range(1, choose + 1):
        tables = comb(distance + depth, depth)
        equal = symmetric_sum(together[: distance + depth], depth)
        if depth > 1 or choose == 1:
            seconds += tables * n * join_row_seconds(width)
        size = n * equal / tables
        if depth == 1 < choose:
            size = max(size, n / 2 ** bins_log2(n, width))
        later = comb(max(m - 1 - depth, 0), choose - depth)
        if depth < choose and size < _direct_size(max(later, 1), width):
            break
        if depth < choose:
            seconds += tables * n / max(size, 1) * JOIN_REFINE_SECONDS
    candidates = tables * n * size / 2
    seconds += candidates * join_pair_seconds(width)
    seconds += tables * n * min(1, size / 16) * JOIN_RUN_SECONDS
    return JoinPlan(name, masks, choose, seconds, candidates)


def _best_keys(
    n: int, distance: int, bits: int, m: int, information: Any, best: JoinPlan, near: float
) -> JoinPlan:
    """The better of a plan and that of m blocks with flipped bits, at its best key length."""
    masks, block = block_masks(bits, m, information)
    sizes, differ = np.bincount(block, minlength=m), 1 - 2.0**-information
    most = max(1, min(JOIN_MIH_MOST_KEY_BITS, n.bit_length()))
    lengths = {max(1, min(most - below, int(sizes.max()))) for below in KEY_BITS_BELOW_ROWS}
    for key_bits in sorted(lengths):
        below = best.seconds - near * m * JOIN_MIH_NEAR_SECONDS
        plan = _mih_plan(n, distance, masks, (sizes, differ), key_bits, below)
        best = best if plan is None else _listing(plan, near)
    return best


def _mih_plan(
    n: int, distance: int, masks: Any, block_bits: tuple[Any, Any], key_bits: int, below: float
) -> JoinPlan | None:
    """The plan of m blocks, one of which differs in at most its radius.

    Args:
        n: Fingerprints.
        distance: Largest Hamming distance.
        masks: uint64 (m, width), of consecutive bits.
        block_bits: How many bits each has, int64 (m,), and how likely each bit differs in two rows.
        key_bits: Most bits of a key.
        below: Seconds; None is returned for a plan that takes as long or longer.
    """
    (m, codes), (sizes, differ) = masks.shape, block_bits
    blocks, candidates, seconds, first = [], 0.0, JOIN_PARTITION_SECONDS, 0
    for length, radius in zip(sizes.tolist(), block_radii(distance, m), strict=True):
        key = max(1, min(key_bits, length))
        blocks.append(MihBlock(first, length, key, radius))
        if radius >= 0:
            flipped = signatures(key, radius)
            seconds += JOIN_MIH_START_SECONDS + n * JOIN_MIH_SORT_SECONDS * codes
            seconds += min(n, 1 << key) * flipped / 2 * JOIN_MIH_VISIT_SECONDS
            if seconds >= below:
                return None
            near = n * n / 2 * share_near(differ[first : first + length], key, radius)
            candidates += near
            seconds += near * JOIN_MIH_COMPARE_SECONDS * codes
        first += length
    if seconds >= below:
        return None
    return JoinPlan(f"mih:{m}", masks, 0, seconds, candidates, tuple(blocks))
