"""The pairs of one block of bits: a share of all pairs, for a join on several machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.all_pairs import BYTES_PER_PAIR
from neardup.hamming.join.join_engine import (
    DUPLICATE_SHARE,
    duplicate_share,
    join_block,
    sample_of,
    solve,
)
from neardup.hamming.join.problem import Engine, Problem
from neardup.hamming.join.row_partition import Partition
from neardup.hamming.join.sinks import PairList, UnionFinds
from neardup.hamming.plans.blocks import agreement, block_masks
from neardup.hamming.plans.join_costs import join_pair_seconds, join_row_seconds
from neardup.hamming.plans.join_plan import JoinPlan, bins_log2, plan_pairs
from neardup.runtime.arrays import frozen
from neardup.runtime.free_memory import free_memory

if TYPE_CHECKING:
    from neardup.hamming.join.sinks import Sink
    from neardup.runtime.types import Rows

__all__ = ["labels_of_block", "pairs_of_block"]

FEW_ROWS: Final = 256
DOUBT: Final = 2.0
"""The factor by which the block's own plan must seem cheaper: the rows of a block are alike, which
costs more."""


def pairs_of_block(codes: Any, masks: Any, distance: int, bits: int) -> tuple[Any, Any, Any]:
    """Every pair within the distance that agrees on the last mask and on none before it.

    Where the masks are distance + 1 disjoint blocks, the pairs of masks[:1], masks[:2] and so on
    together are all pairs, each once. One thread.

    Args:
        codes: uint64 (n, width).
        masks: uint64 (m, width).
        distance: Largest Hamming distance, 0 or more.
        bits: Width of a fingerprint.

    Returns:
        left and right, int64 rows, left < right, sorted; and distances, int64.

    Raises:
        TooManyPairsError: For more than half of the free memory holds.

    Example:
        >>> codes, masks = np.array([[0], [1], [3]], np.uint64), np.array([[1], [2]], np.uint64)
        >>> [pairs_of_block(codes, masks[:m], 1, 2)[:2] for m in (1, 2)]
        [(array([1]), array([2])), (array([0]), array([1]))]
    """
    pairs = PairList(free_memory() // 2 // BYTES_PER_PAIR)
    _join(frozen(codes), masks, Engine(distance, bits, 1), pairs)
    left, right = pairs.sorted_pairs()
    apart = np.bitwise_count(codes[left] ^ codes[right]).sum(axis=1, dtype=np.int64)
    return left, right, apart


def labels_of_block(codes: Any, masks: Any, distance: int, bits: int) -> Rows:
    """Label groups that matches join, those of `pairs_of_block` at least, without a list of them.

    One thread. The labels of all blocks together join what all pairs join, and no more.

    Args:
        codes: As for `pairs_of_block`, like all that follow.
        masks: uint64 (m, width).
        distance: Largest Hamming distance.
        bits: Width of a fingerprint.

    Returns:
        int64 (n,): for each row the smallest row of its group.

    Example:
        >>> codes, masks = np.array([[0], [1], [3]], np.uint64), np.array([[1], [2]], np.uint64)
        >>> [labels_of_block(codes, masks[:m], 1, 2).tolist() for m in (1, 2)]
        [[0, 0, 0], [0, 0, 0]]
    """
    groups = UnionFinds(len(codes))
    _join(frozen(codes), masks, Engine(distance, bits, 1), groups)
    return groups.labels()


def _join(codes: Any, masks: Any, engine: Engine, sink: Sink) -> None:
    own, distance, bits, sample = masks[-1], engine.distance, engine.bits, sample_of(codes)
    plan = _plan(len(codes), own, distance, bits, sample)
    if plan is None or duplicate_share(sample) > DUPLICATE_SHARE:
        agree = np.arange(len(masks)) == len(masks) - 1
        name = "auto" if distance < bits else "scan"
        solve(Problem(codes, rules=masks, agree=agree), engine, sink, name)
    else:
        # A pair that agrees on an earlier mask is that block's: the rules refuse it here.
        before = masks[:-1]
        problem = Problem(codes, rules=before, agree=np.zeros(len(before), np.bool_))
        parts = Partition.empty(*codes.shape)
        parts.fill(codes, own, 1)
        bins = min(bins_log2(*codes.shape), int(np.bitwise_count(own).sum()))
        join_block(problem, parts, 0, engine, sink, plan, len(codes) / 2**bins)


def _plan(n: int, own: Any, distance: int, bits: int, sample: Any) -> JoinPlan | None:
    """A plan of the block and distance + 1 parts of the other bits, one of which agrees as well.

    None where the plan for all pairs is cheaper.
    """
    inside = np.unpackbits(own.astype("<u8").view(np.uint8), bitorder="little", count=bits)
    if n < FEW_ROWS or distance >= bits or not inside.any():
        return None
    information, width, parts = agreement(sample, bits), len(own), distance + 1
    rest = np.where(inside == 1, 0.0, information)
    key_bits = information.sum() - rest.sum() + rest.sum() / parts
    compared = parts * n * n / 2**key_bits / 2 * join_pair_seconds(width)
    seconds = n * (1 + parts) * join_row_seconds(width) + compared
    if DOUBT * seconds > plan_pairs(n, distance, bits, sample).seconds:
        return None
    masks = np.concatenate([own[None], block_masks(bits, parts, rest)[0] & ~own])
    return JoinPlan("block", masks, 2, seconds, 0.0)
