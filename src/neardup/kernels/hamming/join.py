"""The Hamming join inside buckets: refine by more blocks in cache, then compare by popcount.

Blocks are disjoint sets of bits. A pair within the distance agrees on at least `choose` of them;
let E be the ascending list of all blocks on which it agrees. A bucket holds the rows that share a
hash of a prefix (b1 < b2 < ...) of blocks, and whether it is compared or refined depends only on
the bucket. A pair found in a bucket of prefix length d is reported if and only if the first d
entries of E are that prefix: of the prefixes E[:1], E[:2], ... exactly one is compared, so every
pair is reported exactly once, and hash collisions do no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.bits import near8, popcount
from neardup.kernels.forest import unite
from neardup.kernels.hamming.partition import block_key
from neardup.kernels.jit import kernel

if TYPE_CHECKING:
    from neardup.kernels.hamming.partition import Rows

SLIDE = 8
TILE = 1024
STRIP = 64
"""Rows that are compared one by one if one of them is near."""
VECTOR = 16
MAX_BINS_LOG2 = 16

LOW, HIGH, BLOCK, BIN, BINS = range(5)
"""A level of the stack: its rows, the block chosen last, the next bin and how many; -1: none."""


class Blocks(NamedTuple):
    """What to look for. The first `rules` rows of masks are conditions from an outer join."""

    masks: Any  # uint64 (rules + blocks, W)
    rules: int
    choose: int
    distance: int
    multipliers: tuple[Any, ...]  # W odd uint64
    direct: Any  # int64 (choose + 1, blocks): a bucket this small is compared without refining
    heavy: int  # a leaf larger than this is handed back
    capacity: int  # so is a first-level bucket


class Sink(NamedTuple):
    """Where matches go: to `pairs`, or to the union-find `parent` where that is not empty."""

    pairs: Any  # uint64: left << 32 | right
    tally: Any  # int64 (4): pairs by weight, pairs (below 0: left out), heavy buckets, rows
    parent: Any  # uint32, or empty
    rows: Any  # uint32: names of the rows, or empty for their positions
    weights: Any  # int64: how many equal rows each stands for, or empty for 1
    heavy_rows: Any  # uint32: positions of the rows of heavy buckets, one bucket after another
    heavy_prefix: Any  # int64 (h, 2 + choose): rows, length of the prefix, its blocks


class Scratch(NamedTuple):
    """One thread's working memory, a slice for each level of refinement."""

    codes: Any  # uint64 (levels, capacity, W)
    ids: Any  # uint32 (levels, capacity)
    starts: Any  # int64 (levels, bins + 1)
    masks: Any  # uint64 (levels + 1, W): union of the prefix's masks
    agree: Any  # uint8 (rules + blocks): 1 where a reported pair agrees
    stack: Any  # int64 (levels + 1, 5): LOW, HIGH, BLOCK, BIN, BINS


@kernel
def distance_between(a: Any, i: int, b: Any, j: int, lanes: Any) -> int:
    """Hamming distance of rows a[i] and b[j]; int64."""
    total = 0
    for w in range(len(lanes)):
        total += popcount(a[i, w] ^ b[j, w])
    return total


@kernel
def any_near(codes: Any, row: int, first: int, last: int, distance: int, lanes: Any) -> bool:
    """Whether one of rows first..last-1 is within the distance of words[row]; vector code."""
    at = np.int64(first)
    if len(lanes) == 1:  # the rows are a column too
        while at + 8 <= last:
            if near8(codes, at, row, distance, lanes) != np.uint64(0):
                return True
            at += 8
    others = codes[at:last]
    hits = 0
    for i in range(len(others)):
        hits += distance_between(codes, row, others, i, lanes) <= distance
    return hits > 0


@kernel
def count_apart(codes: Any, first: int, last: int, step: int, distance: int, lanes: Any) -> int:
    """How many of rows first..last-1 are within the distance of the row `step` further on."""
    these, those = codes[first:last], codes[first + step : last + step]
    hits = 0
    for i in range(len(these)):
        hits += distance_between(these, i, those, i, lanes) <= distance
    return hits


@kernel
def emit(left: int, right: int, sink: Any) -> None:
    """Unite or emit the rows at positions left and right."""
    weight = np.int64(1)
    if len(sink.weights) > 0:
        weight = sink.weights[left] * sink.weights[right]
    if len(sink.rows) > 0:
        left, right = np.int64(sink.rows[left]), np.int64(sink.rows[right])
    if len(sink.parent) > 0:
        unite(sink.parent, left, right)
        return
    at = sink.tally[1]
    sink.tally[0] += weight
    sink.tally[1] = at + 1
    if 0 <= at < len(sink.pairs):
        sink.pairs[at] = np.uint64(min(left, right)) << np.uint64(32) | np.uint64(max(left, right))


@kernel
def report(
    codes: Any, ids: Any, i: int, j: int, ends: int, agree: Any, blocks: Any, sink: Any
) -> None:
    """Unite or emit a pair within the distance, if the first `ends` masks say it is due here."""
    if len(sink.parent) == 0:
        for b in range(ends):
            differs = np.uint64(0)
            for w in range(len(blocks.multipliers)):
                differs |= (codes[i, w] ^ codes[j, w]) & blocks.masks[b, w]
            if (differs == np.uint64(0)) != (agree[b] == 1):
                return
    emit(np.int64(ids[i]), np.int64(ids[j]), sink)


@kernel
def compare_range(
    codes: Any,
    ids: Any,
    low: int,
    high: int,
    skip: int,
    ends: int,
    agree: Any,
    blocks: Any,
    sink: Any,
) -> None:
    """Compare all rows low..high-1 with each other; pairs up to `skip` apart are already done.

    When uniting, rows that were reached move to the front, behind those already expanded, and are
    not compared with each other: a dense bucket costs about as much as it has rows.
    """
    lanes, distance = blocks.multipliers, blocks.distance
    uniting = len(sink.parent) > 0
    reached = low
    for i in range(low, high):
        start = i + 1 + skip
        if uniting:
            reached = max(reached, i + 1)
            start = reached
        while start < high:
            end = min(start + STRIP, high)
            if end - start < VECTOR or any_near(codes, i, start, end, distance, lanes):
                for j in range(start, end):
                    if distance_between(codes, i, codes, j, lanes) <= distance:
                        report(codes, ids, i, j, ends, agree, blocks, sink)
                        if uniting:
                            for w in range(len(lanes)):
                                codes[j, w], codes[reached, w] = codes[reached, w], codes[j, w]
                            ids[j], ids[reached] = ids[reached], ids[j]
                            reached += 1
            start = end


@kernel
def hand_back(ids: Any, low: int, high: int, ends: int, agree: Any, blocks: Any, sink: Any) -> None:
    """Put rows low..high-1 and the prefix of their bucket on the list of heavy buckets."""
    bucket, at = sink.tally[2], sink.tally[3]
    sink.tally[2] = bucket + 1
    sink.tally[3] = at + high - low
    if bucket >= len(sink.heavy_prefix) or sink.tally[3] > len(sink.heavy_rows):
        return
    for i in range(low, high):
        sink.heavy_rows[at + i - low] = ids[i]
    sink.heavy_prefix[bucket, 0] = high - low
    depth = 0
    for b in range(blocks.rules, ends):
        if agree[b] == 1:
            sink.heavy_prefix[bucket, 2 + depth] = b - blocks.rules
            depth += 1
    sink.heavy_prefix[bucket, 1] = depth


@kernel
def refine(
    codes: Any,
    ids: Any,
    low: int,
    high: int,
    mask: Any,
    multipliers: Any,
    starts: Any,
    out_codes: Any,
    out_ids: Any,
) -> tuple[int, int]:
    """Partition rows low..high-1 into about as many bins; returns the bins and the widest's rows.

    Bin b is rows starts[b]..starts[b + 1]-1 of `out_words` and `out_ids`.
    """
    size = high - low
    bits = 1
    while (1 << bits) < size and bits < MAX_BINS_LOG2:
        bits += 1
    bins = 1 << bits
    shift = np.uint64(64 - bits)
    for b in range(bins):
        starts[b] = 0
    for i in range(low, high):
        starts[block_key(codes, i, mask, multipliers, shift)] += 1
    total, widest = 0, 0
    for b in range(bins):
        count = starts[b]
        widest = max(widest, count)
        total += count
        starts[b] = total
    starts[bins] = total
    for i in range(high - 1, low - 1, -1):
        key = block_key(codes, i, mask, multipliers, shift)
        place = starts[key] - 1
        starts[key] = place
        for w in range(len(multipliers)):
            out_codes[place, w] = codes[i, w]
        out_ids[place] = ids[i]
    return bins, widest


@kernel
def compare_bins(
    codes: Any,
    ids: Any,
    starts: Any,
    bins: int,
    widest: int,
    ends: int,
    agree: Any,
    blocks: Any,
    sink: Any,
) -> None:
    """Compare the rows of every bin: those 1, 2, ... places apart in vector passes, then the rest.

    The passes run over bin borders: `report` refuses a pair that does not agree on the prefix, and
    when uniting any pair within the distance is welcome.
    """
    lanes, distance = blocks.multipliers, blocks.distance
    size = starts[bins]
    skip = 0
    if widest <= blocks.heavy:
        skip = min(widest - 1, SLIDE)
    for step in range(1, skip + 1):
        for tile in range(0, size - step, TILE):
            end = min(tile + TILE, size - step)
            if count_apart(codes, tile, end, step, distance, lanes) > 0:
                for i in range(tile, end):
                    if distance_between(codes, i, codes, i + step, lanes) <= distance:
                        report(codes, ids, i, i + step, ends, agree, blocks, sink)
    if widest <= skip + 1:
        return
    for b in range(bins):
        low, high = starts[b], starts[b + 1]
        if high - low > blocks.heavy:
            hand_back(ids, low, high, ends, agree, blocks, sink)
        elif high - low > skip + 1:
            compare_range(codes, ids, low, high, skip, ends, agree, blocks, sink)


@kernel
def join_buckets(
    rows: Rows,
    starts: Any,
    first: int,
    last: int,
    block: int,
    blocks: Any,
    sink: Any,
    scratch: Any,
) -> None:
    """Join buckets first..last-1 of a partition by `block`; the recursion is an explicit stack.

    With choose = 1 the one level below refines by the same block, with more bits of its hash.
    """
    codes, ids = rows.codes, rows.ids
    agree, stack = scratch.agree, scratch.stack
    rules, choose = blocks.rules, blocks.choose
    blocks_count = len(blocks.masks) - rules
    none_done = np.int64(0)  # a literal would compile compare_range once more
    deepest = max(choose - 1, 1)
    lanes = blocks.multipliers
    for w in range(len(lanes)):
        scratch.masks[0, w] = blocks.masks[rules + block, w]
    for bucket in range(first, last):
        low, high = starts[bucket], starts[bucket + 1]
        if high - low < 2:
            continue
        for b in range(rules, len(agree)):
            agree[b] = b == rules + block
        if high - low > blocks.capacity:
            hand_back(ids, low, high, rules + block + 1, agree, blocks, sink)
            continue
        if high - low <= blocks.direct[1, block]:
            compare_range(codes, ids, low, high, none_done, rules + block + 1, agree, blocks, sink)
            continue
        level = 0
        stack[0, LOW], stack[0, HIGH], stack[0, BLOCK] = low, high, block
        stack[0, BIN], stack[0, BINS] = -1, -1
        # Bins before stack[l, BIN] of each level l are done, and all blocks before stack[l, BLOCK];
        # `agree` marks the first block and, above the top level, the one that each refines by.
        while level >= 0:
            here = stack[level, BLOCK]
            if stack[level, BIN] == stack[level, BINS]:
                begun = stack[level, BIN] >= 0
                if choose == 1:
                    done = begun
                else:
                    if begun:
                        agree[rules + here] = 0
                    here += 1
                    done = here > blocks_count - choose + level + 1
                if done:
                    level -= 1
                    continue
                agree[rules + here] = 1
                stack[level, BLOCK] = here
                source_codes = codes if level == 0 else scratch.codes[level - 1]
                source_ids = ids if level == 0 else scratch.ids[level - 1]
                for w in range(len(lanes)):
                    scratch.masks[level + 1, w] = (
                        scratch.masks[level, w] | blocks.masks[rules + here, w]
                    )
                into_codes, into_ids = scratch.codes[level], scratch.ids[level]
                bins, widest = refine(
                    source_codes,
                    source_ids,
                    stack[level, LOW],
                    stack[level, HIGH],
                    scratch.masks[level + 1],
                    lanes,
                    scratch.starts[level],
                    into_codes,
                    into_ids,
                )
                stack[level, BIN] = 0
                stack[level, BINS] = 0
                if level + 1 == deepest:
                    compare_bins(
                        into_codes,
                        into_ids,
                        scratch.starts[level],
                        bins,
                        widest,
                        rules + here + 1,
                        agree,
                        blocks,
                        sink,
                    )
                else:
                    stack[level, BINS] = bins
                continue
            at = stack[level, BIN]
            stack[level, BIN] = at + 1
            low, high = scratch.starts[level, at], scratch.starts[level, at + 1]
            if high - low < 2:
                continue
            if high - low <= blocks.direct[level + 2, here]:
                compare_range(
                    scratch.codes[level],
                    scratch.ids[level],
                    low,
                    high,
                    none_done,
                    rules + here + 1,
                    agree,
                    blocks,
                    sink,
                )
                continue
            level += 1
            stack[level, LOW], stack[level, HIGH], stack[level, BLOCK] = low, high, here
            stack[level, BIN], stack[level, BINS] = -1, -1
