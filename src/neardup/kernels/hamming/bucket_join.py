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
from neardup.kernels.hamming.hash_partition import Rows, block_key
from neardup.kernels.jit import inlined, inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Codes, Int64s, Offsets, RowNumbers, Uint64s

SLIDE = 8
TILE = 1024
STRIP = 64
"""Rows that are compared one by one if one of them is near."""
VECTOR = 16
MAX_BINS_LOG2 = 16

LOW, HIGH, BLOCK, BIN, BINS = range(5)
"""Columns of the stack. A row of it is a level: its rows LOW..HIGH-1, the BLOCK that it refines by,
the next BIN and the number of BINS; both are NOT_BEGUN before the first block."""
NOT_BEGUN = -1
WEIGHT, PAIRS, HEAVY, HEAVY_ROWS = range(4)
"""Places in the tally of an output."""


class Blocks(NamedTuple):
    """The blocks of a join. The first `rules` rows of masks are conditions from an outer join."""

    masks: Any  # uint64 (rules + blocks, W)
    rules: int
    choose: int
    distance: int
    multipliers: tuple[Any, ...]  # W odd uint64
    direct: Any  # int64 (choose + 1, blocks): a bucket this small is compared without refining
    heavy: int  # a leaf larger than this is handed back
    capacity: int  # so is a first-level bucket


class Output(NamedTuple):
    """The destination of matches: `pairs`, or the union-find `parent` where that is not empty."""

    pairs: Any  # uint64: left << 32 | right
    tally: Any  # int64 (4,): WEIGHT, PAIRS (below 0: left out), HEAVY buckets, HEAVY_ROWS
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


@inlined
def distance_between(a: Uint64s, i: int, b: Uint64s, j: int, lanes: tuple[np.uint64, ...]) -> int:
    """Hamming distance of rows a[i] and b[j]; int64."""
    total = 0
    for w in range(len(lanes)):
        total += popcount(a[i, w] ^ b[j, w])
    return total


@inner
def any_near(
    codes: Codes, row: int, first: int, last: int, distance: int, lanes: tuple[np.uint64, ...]
) -> bool:
    """Whether one of rows first..last-1 is within the distance of codes[row]; vector code."""
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


@inner
def count_apart(
    codes: Codes, first: int, last: int, step: int, distance: int, lanes: tuple[np.uint64, ...]
) -> int:
    """Count the rows first..last-1 that are within the distance of the row `step` further on."""
    these, those = codes[first:last], codes[first + step : last + step]
    hits = 0
    for i in range(len(these)):
        hits += distance_between(these, i, those, i, lanes) <= distance
    return hits


@inner
def emit(left: int, right: int, output: Output) -> None:
    """Unite or emit the rows at positions left and right."""
    weight = np.int64(1)
    if len(output.weights) > 0:
        weight = output.weights[left] * output.weights[right]
    if len(output.rows) > 0:
        left, right = np.int64(output.rows[left]), np.int64(output.rows[right])
    if len(output.parent) > 0:
        unite(output.parent, left, right)
        return
    at = output.tally[PAIRS]
    output.tally[WEIGHT] += weight
    output.tally[PAIRS] = at + 1
    if 0 <= at < len(output.pairs):
        output.pairs[at] = np.uint64(min(left, right)) << np.uint64(32) | np.uint64(
            max(left, right)
        )


@inner
def report(
    rows: Rows, i: int, j: int, ends: int, agree: Bytes, blocks: Blocks, output: Output
) -> None:
    """Unite or emit a pair within the distance, if the first `ends` masks say that it is new."""
    codes = rows.codes
    if len(output.parent) == 0:
        for b in range(ends):
            differs = np.uint64(0)
            for w in range(len(blocks.multipliers)):
                differs |= (codes[i, w] ^ codes[j, w]) & blocks.masks[b, w]
            if (differs == np.uint64(0)) != (agree[b] == 1):
                return
    emit(np.int64(rows.ids[i]), np.int64(rows.ids[j]), output)


@inlined
def _swap(rows: Rows, i: int, j: int, lanes: tuple[np.uint64, ...]) -> None:
    codes, ids = rows.codes, rows.ids
    for w in range(len(lanes)):
        codes[i, w], codes[j, w] = codes[j, w], codes[i, w]
    ids[i], ids[j] = ids[j], ids[i]


@inner
def compare_range(
    rows: Rows, low: int, high: int, skip: int, ends: int, agree: Bytes, blocks: Blocks,
    output: Output,
) -> None:  # fmt: skip
    """Compare all rows low..high-1 with each other; pairs up to `skip` apart are already done.

    When uniting, rows that were reached move to the front, behind those already expanded, and are
    not compared with each other: a dense bucket costs about as much as it has rows.
    """
    lanes, distance, codes = blocks.multipliers, blocks.distance, rows.codes
    uniting = len(output.parent) > 0
    # When uniting, rows low..i-1 are expanded, rows i..reached-1 are united with one of them.
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
                        report(rows, i, j, ends, agree, blocks, output)
                        if uniting:
                            _swap(rows, j, reached, lanes)
                            reached += 1
            start = end


@inner
def hand_back(
    ids: RowNumbers, low: int, high: int, ends: int, agree: Bytes, blocks: Blocks, output: Output
) -> None:
    """Put rows low..high-1 and the prefix of their bucket on the list of heavy buckets."""
    bucket, at = output.tally[HEAVY], output.tally[HEAVY_ROWS]
    output.tally[HEAVY] = bucket + 1
    output.tally[HEAVY_ROWS] = at + high - low
    if bucket >= len(output.heavy_prefix) or output.tally[HEAVY_ROWS] > len(output.heavy_rows):
        return
    for i in range(low, high):
        output.heavy_rows[at + i - low] = ids[i]
    output.heavy_prefix[bucket, 0] = high - low
    depth = 0
    for b in range(blocks.rules, ends):
        if agree[b] == 1:
            output.heavy_prefix[bucket, 2 + depth] = b - blocks.rules
            depth += 1
    output.heavy_prefix[bucket, 1] = depth


@inner
def refine(
    rows: Rows, low: int, high: int, mask: Uint64s, multipliers: tuple[np.uint64, ...],
    starts: Offsets, out: Rows,
) -> tuple[int, int]:  # fmt: skip
    """Partition rows low..high-1 into about as many bins; returns the bins and the widest's rows.

    Bin b is rows starts[b]..starts[b + 1]-1 of `out`.
    """
    codes, ids, out_codes, out_ids = rows.codes, rows.ids, out.codes, out.ids
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
    # starts[b] is where bin b ends; each row written brings it down, at last to where b begins.
    for i in range(high - 1, low - 1, -1):
        key = block_key(codes, i, mask, multipliers, shift)
        place = starts[key] - 1
        starts[key] = place
        for w in range(len(multipliers)):
            out_codes[place, w] = codes[i, w]
        out_ids[place] = ids[i]
    return bins, widest


@inner
def compare_bins(
    rows: Rows, starts: Offsets, bins: int, widest: int, ends: int, agree: Bytes, blocks: Blocks,
    output: Output,
) -> None:  # fmt: skip
    """Compare the rows of every bin: those 1, 2, ... places apart in vector passes, then the rest.

    The passes run over bin borders: `report` refuses a pair that does not agree on the prefix, and
    when uniting any pair within the distance is welcome.
    """
    lanes, distance, codes = blocks.multipliers, blocks.distance, rows.codes
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
                        report(rows, i, i + step, ends, agree, blocks, output)
    if widest <= skip + 1:
        return
    for b in range(bins):
        low, high = starts[b], starts[b + 1]
        if high - low > blocks.heavy:
            hand_back(rows.ids, low, high, ends, agree, blocks, output)
        elif high - low > skip + 1:
            compare_range(rows, low, high, skip, ends, agree, blocks, output)


@inlined
def _open(stack: Int64s, level: int, low: int, high: int, block: int) -> None:
    """Make rows low..high-1, whose bits in `block` are equal, the bucket of a level."""
    stack[level, LOW], stack[level, HIGH], stack[level, BLOCK] = low, high, block
    stack[level, BIN], stack[level, BINS] = NOT_BEGUN, NOT_BEGUN


@inlined
def _next_block(level: int, blocks: Blocks, scratch: Scratch) -> bool:
    """Choose the next block to refine a level's bucket by; False if it has had all."""
    agree, stack = scratch.agree, scratch.stack
    rules, choose = blocks.rules, blocks.choose
    here, is_begun = stack[level, BLOCK], stack[level, BIN] != NOT_BEGUN
    if choose == 1:
        return not is_begun
    if is_begun:
        agree[rules + here] = 0
    here += 1
    if here > len(blocks.masks) - rules - choose + level + 1:
        return False
    agree[rules + here] = 1
    stack[level, BLOCK] = here
    return True


@inlined
def _refine_level(rows: Rows, level: int, blocks: Blocks, output: Output, scratch: Scratch) -> None:
    """Partition the bucket of a level, which is rows of `rows`, by its block.

    The bins of the deepest level are compared, and all others are refined further.
    """
    stack, starts, masks = scratch.stack, scratch.starts[level], scratch.masks
    here, lanes = stack[level, BLOCK], blocks.multipliers
    for w in range(len(lanes)):
        masks[level + 1, w] = masks[level, w] | blocks.masks[blocks.rules + here, w]
    low, high = stack[level, LOW], stack[level, HIGH]
    out = Rows(scratch.codes[level], scratch.ids[level])
    bins, widest = refine(rows, low, high, masks[level + 1], lanes, starts, out)
    stack[level, BIN], stack[level, BINS] = 0, bins
    if level + 1 >= blocks.choose - 1:
        stack[level, BINS] = 0
        ends = blocks.rules + here + 1
        compare_bins(out, starts, bins, widest, ends, scratch.agree, blocks, output)


@inlined
def _join_bucket(
    rows: Rows, low: int, high: int, block: int, blocks: Blocks, output: Output, scratch: Scratch
) -> None:
    """Join rows low..high-1, which `block` brought together; the recursion is an explicit stack.

    With choose = 1 the one level below refines by the same block, with more bits of its hash.
    """
    stack, agree, rules = scratch.stack, scratch.agree, blocks.rules
    none_done = np.int64(0)  # a literal would compile compare_range once more
    level = np.int64(0)
    _open(stack, level, low, high, block)
    # Of each level l, the bins before stack[l, BIN] are done, and so are all blocks before
    # stack[l, BLOCK]; `agree` marks `block` and those that levels 0..level refine by now.
    while level >= 0:
        at, here = stack[level, BIN], stack[level, BLOCK]
        if at == stack[level, BINS]:
            if not _next_block(level, blocks, scratch):
                level -= 1
            elif level == 0:
                _refine_level(rows, level, blocks, output, scratch)
            else:
                above = Rows(scratch.codes[level - 1], scratch.ids[level - 1])
                _refine_level(above, level, blocks, output, scratch)
            continue
        stack[level, BIN] = at + 1
        begin, end = scratch.starts[level, at], scratch.starts[level, at + 1]
        if end - begin < 2:
            continue
        if end - begin <= blocks.direct[level + 2, here]:
            these, ends = Rows(scratch.codes[level], scratch.ids[level]), rules + here + 1
            compare_range(these, begin, end, none_done, ends, agree, blocks, output)
            continue
        level += 1
        _open(stack, level, begin, end, here)


@kernel
def join_buckets(
    rows: Rows, starts: Offsets, first: int, last: int, block: int, blocks: Blocks, output: Output,
    scratch: Scratch,
) -> None:  # fmt: skip
    """Join buckets first..last-1 of a partition by `block`.

    Args:
        rows: The rows; those of a small bucket are reordered when uniting.
        starts: int64 (buckets + 1,): bucket b is rows starts[b]..starts[b + 1]-1.
        first: The first bucket.
        last: The bucket after the last.
        block: The block whose bits the rows of a bucket share, or a hash of them.
        blocks: The blocks of the join.
        output: Where matches and heavy buckets go.
        scratch: Working memory.
    """
    agree, rules, lanes = scratch.agree, blocks.rules, blocks.multipliers
    ends, none_done = rules + block + 1, np.int64(0)
    for w in range(len(lanes)):
        scratch.masks[0, w] = blocks.masks[rules + block, w]
    for bucket in range(first, last):
        low, high = starts[bucket], starts[bucket + 1]
        if high - low < 2:
            continue
        for b in range(rules, len(agree)):
            agree[b] = b == rules + block
        if high - low > blocks.capacity:
            hand_back(rows.ids, low, high, ends, agree, blocks, output)
        elif high - low <= blocks.direct[1, block]:
            compare_range(rows, low, high, none_done, ends, agree, blocks, output)
        else:
            _join_bucket(rows, low, high, block, blocks, output, scratch)
