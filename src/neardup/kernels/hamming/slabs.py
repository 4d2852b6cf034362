"""Passes over fingerprints that lie on disk, one chunk of rows at a time.

A bin holds the rows whose bits under a mask have the same hash; a slab is a range of bins. A row's
number is its place in the whole collection. `present` has one bit for each row of a chunk, 1
where the row takes part, or is empty for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.forest import unite
from neardup.kernels.hamming.hash_partition import block_key
from neardup.kernels.jit import inlined, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Masks, Numbers, RowNumbers, Uint64s

TILE = 2048
LINE = 8
"""Rows that are held back for each bin and written together: a cache line of 64-bit words."""


class Chunk(NamedTuple):
    """A run of rows that was read at once."""

    codes: Any  # uint64 (rows, W)
    numbers: Any  # uint64 (rows,), or empty for base + 0, 1, 2...
    present: Any  # uint8 (ceil(rows / 8)), or empty
    base: int


class SlabKey(NamedTuple):
    """The hash that names a row's bin."""

    mask: Any  # uint64 (W,)
    multipliers: tuple[Any, ...]  # W odd uint64
    shift: Any  # uint64: 64 less the bits of a bin's number


class Slab(NamedTuple):
    """Memory for the rows of bins first..last-1; each thread has its own but for the last two."""

    first: int
    last: int
    starts: Any  # int64 (last - first): the thread's first place in each bin; -1: leave the bin out
    places: Any  # int64 (last - first): its next place
    held_codes: Any  # uint64 ((last - first) * LINE, W)
    held_numbers: Any  # as numbers, (last - first) * LINE
    codes: Any  # uint64 (capacity, W)
    numbers: Any  # uint32 or uint64 (capacity,)


@inlined
def is_present(present: Any, row: int) -> Any:
    """1 where the row takes part, else 0; int64."""
    if len(present) == 0:
        return np.int64(1)
    return np.int64(present[row >> 3] >> np.uint8(row & 7)) & np.int64(1)


@inlined
def number_of(chunk: Chunk, row: int) -> Any:
    """The number of a row of the chunk; uint64."""
    if len(chunk.numbers) > 0:
        return chunk.numbers[row]
    return np.uint64(chunk.base + row)


@kernel
def count_bins(chunk: Chunk, masks: Masks, multipliers: Any, shift: Any, counts: Int64s) -> None:
    """Add how many rows lie in each bin of each mask to `counts`; O(rows * blocks).

    Args:
        chunk: A Chunk.
        masks: uint64 (blocks, W).
        multipliers: A tuple of W odd uint64.
        shift: uint64, 64 less the bits of a bin's number.
        counts: int64 (blocks, bins), changed in place.
    """
    for tile in range(0, len(chunk.codes), TILE):
        end = min(tile + TILE, len(chunk.codes))
        for block in range(len(masks)):
            mask = masks[block]
            for row in range(tile, end):
                key = block_key(chunk.codes, row, mask, multipliers, shift)
                counts[block, key] += is_present(chunk.present, row)


@inlined
def flush(slab: Slab, at: int, begin: int, place: int, lanes: Any) -> None:
    """Write the held rows of bin first + at to their places, begin..place."""
    filled = at * LINE - (place & ~np.int64(LINE - 1))
    for to in range(begin, place + 1):
        for w in range(len(lanes)):
            slab.codes[to, w] = slab.held_codes[filled + to, w]
    for to in range(begin, place + 1):
        slab.numbers[to] = slab.held_numbers[filled + to]


@kernel
def gather_rows(chunk: Chunk, key: Any, slab: Slab, scratch: Int64s) -> None:
    """Copy the rows of a slab's bins to their places, stable; `flush_rows` writes the last ones.

    Rows go to memory by cache lines, because thousands of bins are written in turn (measured: half
    the time of writing each row at once).

    Args:
        chunk: A Chunk.
        key: A Key.
        slab: A Slab; its places advance.
        scratch: int64 (2, TILE).
    """
    lanes = key.multipliers
    keys, rows = scratch[0], scratch[1]
    width, places = chunk.codes, slab.places
    for tile in range(0, len(width), TILE):
        kept = np.int64(0)
        for row in range(tile, min(tile + TILE, len(width))):
            at = block_key(width, row, key.mask, lanes, key.shift)
            keys[kept] = at - slab.first
            rows[kept] = row
            kept += np.int64(slab.first <= at < slab.last) & is_present(chunk.present, row)
        for i in range(kept):
            at, row = keys[i], rows[i]
            place = places[at]
            if place < 0:
                continue
            places[at] = place + 1
            filled = at * LINE + (place & np.int64(LINE - 1))
            for w in range(len(lanes)):
                slab.held_codes[filled, w] = width[row, w]
            slab.held_numbers[filled] = number_of(chunk, row)
            if place & np.int64(LINE - 1) == LINE - 1:
                begin = place - np.int64(LINE - 1)
                # A line may begin before the thread's own places, among those of another.
                if begin >= slab.starts[at]:
                    flush(slab, at, begin, begin + np.int64(LINE - 1), lanes)
                else:
                    flush(slab, at, slab.starts[at], place, lanes)


@kernel
def flush_rows(slab: Slab, lanes: Any) -> None:
    """Write the rows that are still held; `lanes` is a tuple of W."""
    for at in range(len(slab.places)):
        last = slab.places[at] - 1
        if last >= slab.starts[at] >= 0 and last & np.int64(LINE - 1) != LINE - 1:
            flush(slab, at, max(last & ~np.int64(LINE - 1), slab.starts[at]), last, lanes)


@kernel
def select_rows(chunk: Chunk, key: Any, bins: Int64s, out_rows: Int64s, out_bins: Int64s) -> int:
    """List the rows of some bins: positions in the chunk and bins; returns how many.

    Args:
        chunk: A Chunk.
        key: A Key.
        bins: int64 (bins,): a number to list for each bin, or -1.
        out_rows: int64 (at least rows + 1).
        out_bins: int64 (at least rows + 1).
    """
    kept = np.int64(0)
    for row in range(len(chunk.codes)):
        into = bins[block_key(chunk.codes, row, key.mask, key.multipliers, key.shift)]
        out_rows[kept] = row
        out_bins[kept] = into
        kept += np.int64(into >= 0) & is_present(chunk.present, row)
    return kept


@kernel
def match_values(
    chunk: Chunk, key: Any, values: Uint64s, table: Int64s, out_rows: Int64s, out_values: Int64s
) -> int:
    """List the rows that equal one of a few values: positions and values; returns how many.

    Args:
        chunk: A Chunk.
        key: A Key, of a mask of ones.
        values: uint64 (values, W).
        table: int64 (bins,): index of the value with such a hash, or -1; no two share a bin.
        out_rows: int64 (at least rows + 1).
        out_values: int64 (at least rows + 1).
    """
    kept = np.int64(0)
    for row in range(len(chunk.codes)):
        at = table[block_key(chunk.codes, row, key.mask, key.multipliers, key.shift)]
        if at < 0:
            continue
        equal = is_present(chunk.present, row)
        for w in range(len(key.multipliers)):
            equal &= np.int64(chunk.codes[row, w] == values[at, w])
        out_rows[kept] = row
        out_values[kept] = at
        kept += equal
    return kept


@kernel
def unite_numbers(forest: RowNumbers, numbers: Numbers, parent: Numbers) -> None:
    """Unite in `parent` the rows that are united in a slab's forest.

    Args:
        forest: uint32 (rows,): the slab's union-find.
        numbers: uint32 or uint64 (rows,): the rows' numbers.
        parent: uint32 or uint64 (n,): the union-find of the whole collection, in place.
    """
    for place in range(len(forest)):
        above = forest[place]
        if above != place:
            unite(parent, np.int64(numbers[place]), np.int64(numbers[above]))
