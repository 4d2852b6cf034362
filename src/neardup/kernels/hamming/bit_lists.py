"""Search bit slices: one list of rows for each bit position, kept as a bitmap.

Rows stand in blocks of 512. A block holds, for each bit position, the 512 rows' values of that bit
as 8 words, one cache line; so a query adds up the differences of 512 rows at once, in vertical
counters (bit planes), by carry-save adders, and leaves a block as soon as every row in it is too
far. The caller chooses the order of the positions: best those first that vary most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.kernels.bit_counters import GROUP, LANES, count4, count15
from neardup.kernels.bits import popcount, trailing_zeros
from neardup.kernels.hamming.first import KEY_ROW_BITS, FirstRule, keep_first
from neardup.kernels.hamming.hash_tables import FIRST_ROOM, HitBuffer, more_room
from neardup.kernels.jit import fill, inner, kernel
from neardup.kernels.transpose64 import BLOCK_ROWS

if TYPE_CHECKING:
    from neardup.kernels.array_types import Codes, Int64s, Uint64s

FEW_PLANES = 4
MOST_PLANES = 15


@inner
def begin_block(planes: Uint64s, counters: int, start: int, rows: int) -> None:
    """Set all counters to `start`; those of rows that the last block lacks to an overflow."""
    for plane in range(counters):
        bit = np.uint64(0) - np.uint64((start >> plane) & 1)
        fill(planes, plane * LANES, (plane + 1) * LANES, bit)
    for lane in range(LANES):
        lane_rows = min(max(rows - 64 * lane, 0), 64)
        missing = np.uint64(0)
        if lane_rows < 64:
            missing = np.uint64(0xFFFFFFFFFFFFFFFF) << np.uint64(lane_rows)
        planes[counters * LANES + lane] = missing


@inner
def count_block(slices: Uint64s, at: int, broadcast: Uint64s, planes: Uint64s, few: bool) -> bool:
    """Add the differences at places until every row is too far; returns whether one is not."""
    for place in range(0, len(broadcast), GROUP):
        if few:
            near = count4(slices, at + place * LANES, broadcast, place, planes)
        else:
            near = count15(slices, at + place * LANES, broadcast, place, planes)
        if not near:
            return False
    return True


@kernel
def broadcast_bits(queries: Codes, order: Int64s, places: int, first: int, last: int) -> Any:
    """Spread each bit of queries first..last-1 to a whole word: uint64 (last - first, places).

    The word at a place is of the bit that `order` puts there.
    """
    broadcast = np.zeros((last - first, places), np.uint64)
    for q in range(first, last):
        for place in range(len(order)):
            bit = order[place]
            value = (queries[q, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1)
            broadcast[q - first, place] = np.uint64(0) - value
    return broadcast


@kernel
def search_slices(
    slices: Uint64s, count: int, queries: Codes, order: Int64s, places: int, first: int, last: int,
    distance: int,
) -> Any:  # fmt: skip
    """Find the rows within the distance of queries first..last-1, block by block.

    A counter starts so high that it overflows when it has counted `distance` + 1 differences.
    O(rows * P / 512) vector steps a query; on random rows less than half the places are read.

    Args:
        slices: uint64 (blocks * P * LANES), may be read-only.
        count: Rows.
        queries: uint64 (q, W), may be read-only.
        order: int64 (bits,): the bit position at each place.
        places: P.
        first: The first query; `last` is the one after the last.
        last: See `first`.
        distance: Less than 2**15.

    Returns:
        Hits.
    """
    broadcast = broadcast_bits(queries, order, places, first, last)
    few = distance < 1 << FEW_PLANES
    counters = np.int64(FEW_PLANES if few else MOST_PLANES)
    start = (np.int64(1) << counters) - 1 - distance
    planes = np.empty((counters + 1) * LANES, np.uint64)
    hits = HitBuffer(
        np.empty(FIRST_ROOM, np.int64), np.empty(FIRST_ROOM, np.int64),
        np.empty(FIRST_ROOM, np.int64),
    )  # fmt: skip
    total = np.int64(0)
    for low in range(0, count, BLOCK_ROWS):
        at = low // BLOCK_ROWS * places * LANES
        for q in range(first, last):
            begin_block(planes, counters, start, count - low)
            if not count_block(slices, at, broadcast[q - first], planes, few):
                continue
            if total + BLOCK_ROWS > len(hits.rows):
                hits = more_room(hits, total, total + BLOCK_ROWS)
            for lane in range(LANES):
                near = ~planes[counters * LANES + lane]
                while near:
                    bit = np.uint64(trailing_zeros(near))
                    near &= near - np.uint64(1)
                    counter = np.int64(0)
                    for plane in range(counters):
                        one = (planes[plane * LANES + lane] >> bit) & np.uint64(1)
                        counter |= np.int64(one) << plane
                    hits.queries[total], hits.rows[total] = q, low + 64 * lane + np.int64(bit)
                    hits.distances[total] = counter - start
                    total += 1
    return HitBuffer(hits.queries[:total], hits.rows[:total], hits.distances[:total])


@inner
def _counter(planes: Any, counters: int, lane: int, bit: Any) -> int:
    total = np.int64(0)
    for plane in range(counters):
        total |= np.int64((planes[plane * LANES + lane] >> bit) & np.uint64(1)) << plane
    return total


@inner
def _lower(planes: Any, counters: int, lane: int, most: int) -> Any:
    """A mask of the lane's counters below `most`, without their overflow."""
    less, equal = np.uint64(0), ~np.uint64(0)
    for plane in range(counters - 1, -1, -1):
        ones = planes[plane * LANES + lane]
        if (most >> plane) & 1:
            less |= equal & ~ones
            equal &= ones
        else:
            equal &= ~ones
    return less


@kernel
def first_in_slices(
    slices: Uint64s, count: int, broadcast: Uint64s, places: int, distance: int, rule: FirstRule,
    keys: Int64s, sizes: Int64s,
) -> int:  # fmt: skip
    """Find the first rows within the distance of each query; the others are only counted.

    Args:
        slices: As of `search_slices`.
        count: Rows.
        broadcast: uint64 (q, P), from `broadcast_bits`.
        places: P.
        distance: Less than 2**15.
        rule: FirstRule.
        keys: int64 (q, most of each), written: distance << KEY_ROW_BITS | row of the matches.
        sizes: int64 (q,), zeros; how many of each query, written.

    Returns:
        How many living rows within the distance of a query are not among the keys.
    """
    few = distance < 1 << FEW_PLANES
    counters = np.int64(FEW_PLANES if few else MOST_PLANES)
    start = (np.int64(1) << counters) - 1 - distance
    planes = np.empty((counters + 1) * LANES, np.uint64)
    heap, capacity, living = keys.reshape(-1), np.int64(keys.shape[1]), np.int64(0)
    dead, by_age = rule.dead, rule.by_age
    for low in range(0, count, BLOCK_ROWS):
        at = low // BLOCK_ROWS * places * LANES
        for q in range(len(broadcast)):
            begin_block(planes, counters, start, count - low)
            if not count_block(slices, at, broadcast[q], planes, few):
                continue
            begin = q * capacity
            for lane in range(LANES):
                near = ~planes[counters * LANES + lane]
                if dead.size and low + 64 * lane < count:
                    near &= ~dead[low // 64 + lane]
                living += popcount(near)
                if near and sizes[q] == capacity:
                    # Of equal distance the rows before are first.
                    worst = np.int64(0) if by_age else heap[begin] >> KEY_ROW_BITS
                    near &= _lower(planes, counters, lane, start + worst)
                while near:
                    bit = np.uint64(trailing_zeros(near))
                    near &= near - np.uint64(1)
                    apart = _counter(planes, counters, lane, bit) - start
                    row = low + 64 * lane + np.int64(bit)
                    keep_first(heap, begin, capacity, sizes, q, apart << KEY_ROW_BITS | row, by_age)
    for q in range(len(broadcast)):
        living -= sizes[q]
    return living
