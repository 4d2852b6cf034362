"""Counting partition of fingerprints by a hash of some of their bits; and union-find over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.jit import inlined, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Codes, Int64s, Offsets, RowNumbers, Uint64s


class Rows(NamedTuple):
    """The rows of a partition, bucket after bucket."""

    codes: Any  # uint64 (n, W)
    ids: Any  # uint32 (n,): positions in the source


@inlined
def block_key(
    codes: Codes, row: int, mask: Uint64s, multipliers: tuple[np.uint64, ...], shift: np.uint64
) -> int:
    """Hash the bits of codes[row] under `mask` to 64 - shift bits; int64.

    `multipliers` is a tuple of one odd uint64 per word: its length is a constant to the compiler,
    which unrolls the loop.
    """
    total = np.uint64(0)
    for w in range(len(multipliers)):
        total += (codes[row, w] & mask[w]) * multipliers[w]
    return np.int64(total >> shift)


@kernel
def key_of_each(codes: Any, mask: Any, multipliers: Any, shift: Any) -> Any:
    """The `block_key` of every row; int64 (n,)."""
    keys = np.empty(len(codes), np.int64)
    for row in range(len(codes)):
        keys[row] = block_key(codes, row, mask, multipliers, shift)
    return keys


@kernel
def count_keys(
    codes: Codes, first: int, last: int, mask: Uint64s, multipliers: tuple[np.uint64, ...],
    shift: np.uint64, counts: Int64s,
) -> None:  # fmt: skip
    """Add how many of rows first..last-1 have each key to `counts` (int64, 2**(64 - shift))."""
    for row in range(first, last):
        counts[block_key(codes, row, mask, multipliers, shift)] += 1


@kernel
def scatter_rows(
    codes: Codes, first: int, last: int, mask: Uint64s, multipliers: tuple[np.uint64, ...],
    shift: np.uint64, places: Int64s, out: Rows,
) -> None:  # fmt: skip
    """Copy rows first..last-1 and their numbers to `places[key]`, advancing it; stable."""
    out_codes, out_ids = out.codes, out.ids
    for row in range(first, last):
        key = block_key(codes, row, mask, multipliers, shift)
        place = places[key]
        places[key] = place + 1
        for w in range(len(multipliers)):
            out_codes[place, w] = codes[row, w]
        out_ids[place] = row


@kernel
def first_equal(
    codes: Codes, ids: RowNumbers, starts: Offsets, first: int, last: int,
    lanes: tuple[np.uint64, ...], table: Int64s, out: Int64s,
) -> None:  # fmt: skip
    """Write `out[row]` = the smallest row with the same words, for buckets first..last-1.

    Rows of a bucket stand in ascending order. `table` (int64, a power of two at least twice the
    largest bucket, all -1) is an open-addressing hash table, left all -1 again.
    """
    # A bucket's rows ascend, as the partition is stable: the first one met is the smallest.
    for bucket in range(first, last):
        low, high = starts[bucket], starts[bucket + 1]
        size = 2
        while size < 2 * (high - low):
            size *= 2
        size_mask = size - 1
        for i in range(low, high):
            mixed = np.uint64(0)
            for w in range(len(lanes)):
                mixed = (mixed ^ codes[i, w]) * lanes[w]
                mixed ^= mixed >> np.uint64(32)
            slot = np.int64(mixed) & size_mask
            while True:
                other = table[slot]
                if other < 0:
                    table[slot] = i
                    out[ids[i]] = ids[i]
                    break
                same = True
                for w in range(len(lanes)):
                    same &= codes[i, w] == codes[other, w]
                if same:
                    out[ids[i]] = ids[other]
                    break
                slot = (slot + 1) & size_mask
        for slot in range(size):
            table[slot] = -1
