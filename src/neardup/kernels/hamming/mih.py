"""The Hamming join by few blocks of which some bits may differ (multi-index hashing).

Of m blocks of two rows within k bits, one differs in at most its *radius*: k // m bits, or one less
beyond the first k % m + 1 (Norouzi, Punjani and Fleet, CVPR 2012, proposition 2). Rows are sorted
by the bits of a block, folded to a key by exclusive or; equal keys are a bucket. A flipped bit of a
block flips one bit of its key, so the rows of a bucket are compared with those of the buckets whose
keys are at most the radius away. A pair is reported for the first block whose bits differ in at
most its radius; so it is reported once, as two buckets meet once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.bits import near8, popcount, trailing_zeros
from neardup.kernels.hamming.bucket_join import emit
from neardup.kernels.jit import inlined, inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Codes, Int64s, RowNumbers, Uint32s, Uint64s
    from neardup.kernels.hamming.bucket_join import Blocks, Output

ROWS = 4
"""Rows that are compared together with eight others."""


class BlockKey(NamedTuple):
    """A block of bits and the length of its key."""

    first: int  # the block's lowest bit
    length: int  # its bits, consecutive; 0: every key is 0
    bits: int  # of the key


class Ball(NamedTuple):
    """A block among the blocks, and how far the keys of rows that are compared may differ."""

    block: int
    flips: Any  # int64: keys that are at most the radius from key 0; 0 is the first one
    radii: Any  # int64 (blocks,)


class ReportRule(NamedTuple):
    """The rule that says which pairs within the distance are reported for a block."""

    ball: Ball
    agree: Any  # uint8 (rules,): whether a pair agrees on each of the problem's conditions
    blocks: Any  # Blocks, of `bucket_join`


class Sorted(NamedTuple):
    """Rows in the order of their keys."""

    columns: Any  # uint64 (W, n + 8): each row is a column; the last 8 are padding
    ids: Any  # uint32 (n,): positions in the source
    starts: Any  # int64 (2**bits + 1,)


@inlined
def key_of(codes: Codes, row: int, key: Any) -> int:
    """The key of words[row]; int64."""
    folded = np.uint64(0)
    at, left = np.int64(key.first), np.int64(key.length)
    while left > 0:
        taken = min(left, np.int64(key.bits))
        word, shift = at >> 6, at & 63
        bits = codes[row, word] >> np.uint64(shift)
        if shift + taken > 64:
            bits |= codes[row, word + 1] << np.uint64(64 - shift)
        folded ^= bits & ((np.uint64(1) << np.uint64(taken)) - np.uint64(1))
        at += taken
        left -= taken
    return np.int64(folded)


@kernel
def count_blocks(
    codes: Codes, first: int, last: int, key: BlockKey, low: int, counts: Int64s
) -> None:
    """Count rows first..last-1 by their keys without the lowest `low` bits (int64), in place."""
    for row in range(first, last):
        counts[key_of(codes, row, key) >> low] += 1


@kernel
def scatter_blocks(
    codes: Codes, first: int, last: int, key: BlockKey, low: int, places: Int64s,
    out_codes: Uint64s, out_ids: Uint32s,
) -> None:  # fmt: skip
    """Copy rows first..last-1 and their numbers to places[key >> low], advancing it; stable."""
    for row in range(first, last):
        bin_ = key_of(codes, row, key) >> low
        place = places[bin_]
        places[bin_] = place + 1
        for w in range(codes.shape[1]):
            out_codes[place, w] = codes[row, w]
        out_ids[place] = row


@kernel
def order_bins(
    codes: Codes, ids: RowNumbers, bins: Int64s, first: int, last: int, key: BlockKey, low: int,
    into: Sorted,
) -> None:  # fmt: skip
    """Sort the rows of bins first..last-1, of equal keys but for `low` bits, by their keys.

    Args:
        codes: uint64 (n, W), from `scatter_blocks`.
        ids: uint32 (n,), likewise.
        bins: int64 (2**(bits - low) + 1,): where each begins.
        first: The first bin.
        last: The bin after the last.
        key: A Key.
        low: Bits of a key that differ within a bin.
        into: A Sorted; its parts for these bins are written.
    """
    width = np.int64(1) << np.int64(low)
    columns, out_ids, starts = into.columns, into.ids, into.starts
    for bin_ in range(first, last):
        begin, end = bins[bin_], bins[bin_ + 1]
        least = bin_ * width
        for at in range(least, least + width):
            starts[at] = 0
        for row in range(begin, end):
            starts[key_of(codes, row, key)] += 1
        total = begin
        for at in range(least, least + width):
            total += starts[at]
            starts[at] = total
        for row in range(end - 1, begin - 1, -1):
            at = key_of(codes, row, key)
            place = starts[at] - 1
            starts[at] = place
            for w in range(codes.shape[1]):
                columns[w, place] = codes[row, w]
            out_ids[place] = ids[row]


@kernel
def count_near_keys(codes: Codes, rows: Sorted, key: Any, flips: Any, counts: Int64s) -> int:
    """Count the rows of the buckets that some rows' buckets meet, their own included; int64.

    Args:
        codes: uint64 (n, W).
        rows: int64: the rows whose buckets are counted.
        key: A Key.
        flips: int64, as in Ball.
        counts: int64 (2**bits): rows of each key.
    """
    total = np.int64(0)
    for i in range(len(rows)):
        own = key_of(codes, rows[i], key)
        for f in range(len(flips)):
            total += counts[own ^ flips[f]]
    return total


@inner
def first_near4(
    columns: Uint64s, row: int, begin: int, end: int, distance: int, lanes: tuple[np.uint64, ...]
) -> int:
    """The first of begin, begin + 8... from which on one of eight columns is near row..row+3.

    `end` or more if there is none; columns beyond `end` are read too.
    """
    at = begin
    while at < end:
        near = near8(columns, at, row, distance, lanes)
        near |= near8(columns, at, row + 1, distance, lanes)
        near |= near8(columns, at, row + 2, distance, lanes)
        near |= near8(columns, at, row + 3, distance, lanes)
        if near != np.uint64(0):
            return at
        at += 8
    return at


@inner
def first_near(
    columns: Uint64s, row: int, begin: int, end: int, distance: int, lanes: tuple[np.uint64, ...]
) -> int:
    """As `first_near4` for one column."""
    at = begin
    while at < end:
        if near8(columns, at, row, distance, lanes) != np.uint64(0):
            return at
        at += 8
    return at


@inner
def is_reported(columns: Uint64s, i: int, j: int, rule: ReportRule) -> bool:
    """Whether a pair is reported for this block and by the problem's conditions."""
    ball, agree, blocks = rule
    for b in range(blocks.rules):
        differs = np.uint64(0)
        for w in range(len(blocks.multipliers)):
            differs |= (columns[w, i] ^ columns[w, j]) & blocks.masks[b, w]
        if (differs == np.uint64(0)) != (agree[b] == 1):
            return False
    for b in range(ball.block + 1):
        apart = np.int64(0)
        for w in range(len(blocks.multipliers)):
            mask = blocks.masks[blocks.rules + b, w]
            apart += popcount((columns[w, i] ^ columns[w, j]) & mask)
        if (apart <= ball.radii[b]) != (b == ball.block):
            return False
    return True


@inner
def check_pairs(
    rows: Sorted, first: int, last: int, low: int, high: int, rule: ReportRule, output: Output
) -> None:
    """Unite or emit rows first..last-1 with later ones of low..high-1, if near and reported here.

    At most eight rows from `low` on.
    """
    columns, lanes, distance = rows.columns, rule.blocks.multipliers, rule.blocks.distance
    for i in range(first, last):
        near = near8(columns, low, i, distance, lanes)
        while near != np.uint64(0):
            j = low + trailing_zeros(near)
            near &= near - np.uint64(1)
            if not i < j < high:
                continue
            if len(output.parent) > 0 or is_reported(columns, i, j, rule):
                emit(np.int64(rows.ids[i]), np.int64(rows.ids[j]), output)


@kernel
def join_flipped(
    rows: Sorted, first: int, last: int, ball: Ball, agree: Bytes, blocks: Blocks, output: Output
) -> None:
    """Compare the rows of keys first..last-1 with those of larger or equal keys in the ball.

    Args:
        rows: A Sorted, by the key of the ball's block.
        first: The first key.
        last: The key after the last.
        ball: A Ball.
        agree: uint8 (rules,): whether a pair agrees on each of the problem's conditions.
        blocks: Blocks.
        output: Output.
    """
    columns, starts, flips = rows.columns, rows.starts, ball.flips
    distance, lanes, rule = blocks.distance, blocks.multipliers, ReportRule(ball, agree, blocks)
    for key in range(first, last):
        begin, end = starts[key], starts[key + 1]
        if begin == end:
            continue
        for f in range(len(flips)):
            other = key ^ flips[f]
            # Keys of a pair meet from both sides; the smaller key takes it.
            if other < key:
                continue
            low, high = starts[other], starts[other + 1]
            i = np.int64(begin)
            while i < end and low < high:
                taken = np.int64(ROWS if end - i >= ROWS else 1)
                if other == key:
                    low = i + taken
                    for row in range(i, low - 1):
                        if first_near(columns, row, row + 1, low, distance, lanes) < low:
                            check_pairs(rows, row, row + 1, row, low, rule, output)
                at = np.int64(low)
                while at < high:
                    if taken == ROWS:
                        at = first_near4(columns, i, at, high, distance, lanes)
                    else:
                        at = first_near(columns, i, at, high, distance, lanes)
                    if at < high:
                        end_at = min(at + 8, high)
                        check_pairs(rows, i, i + taken, at, end_at, rule, output)
                        at += 8
                i += taken
