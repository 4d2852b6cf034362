"""Entries of a banded search: the rows of one table by their keys, 64 bits a row.

A table of the search takes some bits of every fingerprint for its key and some more for a check.
The fingerprints lie in slices (see `slices`), so that a table reads only the slices of its own
bits, which are turned into one word a row: key, check, zeros. The key's upper bits are the row's
bin; the *entry* in the bin is what is left of the word, and the row's number:

    bits 63...   key without the bin's bits | check | row number   ...bit 0
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from neardup.kernels.bits import compiled_as, popcount, spread
from neardup.kernels.counters import LANES
from neardup.kernels.jit import fill, inner, kernel
from neardup.kernels.squares import BLOCK_ROWS, VECTOR, copy8, turn, vector_at

PADDING = 8
"""Entries behind the last one that are read with it."""

_I8, _I64 = ir.IntType(8), ir.IntType(64)


class Form(NamedTuple):
    """Where the parts of an entry are."""

    bin_bits: int
    rest_bits: int  # of the key, those of the bin left out
    key_mask: Any  # uint64: these bits in an entry
    check_mask: Any  # uint64
    row_mask: Any  # uint64
    allowed: int  # bits of the check that may differ


@intrinsic
def _alike8(
    typingctx: Any, entries: Any, at: Any, entry: Any, key: Any, check: Any, most: Any
) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        those = builder.load(vector_at(context, builder, signature.args[0], args[0], args[1]))
        those.align = 8
        this, key, check, most = (spread(builder, arg, LANES) for arg in args[2:])
        made: Any = cgutils.get_or_insert_function
        count = made(builder.module, ir.FunctionType(VECTOR, [VECTOR]), "llvm.ctpop.v8i64")
        differ = builder.xor(those, this)
        nothing = ir.Constant(VECTOR, [0] * LANES)
        same = builder.icmp_unsigned("==", builder.and_(differ, key), nothing)
        apart = builder.call(count, [builder.and_(differ, check)])
        near = builder.and_(same, builder.icmp_signed("<=", apart, most))
        return builder.zext(builder.bitcast(near, _I8), _I64)

    arguments = types.int64, types.uint64, types.uint64, types.uint64, types.int64
    return types.uint64(entries, *arguments), codegen


@compiled_as(_alike8)
def alike8(entries: Any, at: int, entry: Any, key: Any, check: Any, most: int) -> Any:
    """Mark which of entries at..at+7 agree on the bits of `key`, and but for `most` of `check`."""
    mask = 0
    for i in range(LANES):
        differ = int(entries[at + i]) ^ int(entry)
        near = not differ & int(key) and (differ & int(check)).bit_count() <= most
        mask |= near << i
    return np.uint64(mask)


@inner
def _turn_block(slices: Any, at: int, places: Any, square: Any) -> None:
    """Write the words of 512 rows; row 64 * lane + i is square[8 * i + lane].

    Bit p of a word is the fingerprint's bit places[p], or 0 for -1; `at` is the block's first word.
    """
    for p in range(64):
        if places[p] >= 0:
            copy8(slices, at + places[p] * LANES, square, p * LANES)
        else:
            fill(square, p * LANES, (p + 1) * LANES, np.uint64(0))
    turn(square)


@inner
def _count_block(square: Any, rows: int, shift: Any, counts: Any) -> None:
    for lane in range(LANES):
        for i in range(min(max(rows - 64 * lane, 0), 64)):
            counts[np.int64(square[i * LANES + lane] >> shift)] += 1


@inner
def _scatter_block(
    square: Any, first: int, count: int, form: Any, starts: Any, entries: Any
) -> None:
    kept = np.uint64(form.bin_bits)
    shift = np.uint64(64) - kept
    for lane in range(LANES):
        row = first + 64 * lane
        for i in range(min(max(count - row, 0), 64)):
            word = square[i * LANES + lane]
            bin_ = np.int64(word >> shift)
            place = starts[bin_]
            starts[bin_] = place + 1
            entries[place] = (word << kept) | np.uint64(row + i)


@kernel
def count_entries(
    slices: Any, count: int, first: int, last: int, places: Any, form: Any, counts: Any
) -> None:
    """Count the rows of blocks first..last-1 by bin.

    Args:
        slices: uint64 (blocks * P * 8), from `slice_rows`, every bit at its own place.
        count: Rows.
        first: The first block.
        last: The block after the last.
        places: int64 (64,): the fingerprint's bit that each bit of a word is, -1 for none; the key
            is uppermost, then the check.
        form: A Form.
        counts: int64 (bins,), added to.
    """
    stride = np.int64(len(slices)) // ((count + BLOCK_ROWS - 1) // BLOCK_ROWS)
    shift = np.uint64(64 - form.bin_bits)
    square = np.empty(64 * LANES, np.uint64)
    for block in range(first, last):
        _turn_block(slices, block * stride, places, square)
        _count_block(square, count - block * BLOCK_ROWS, shift, counts)


@kernel
def scatter_entries(
    slices: Any, count: int, first: int, last: int, places: Any, form: Any, starts: Any,
    entries: Any,
) -> None:  # fmt: skip
    """Write the entries of blocks first..last-1 to starts[bin], advancing it; stable.

    Args:
        slices: As for `count_entries`, like the next arguments.
        count: Likewise.
        first: Likewise.
        last: Likewise.
        places: Likewise.
        form: Likewise.
        starts: int64 (bins,).
        entries: uint64 (count,), written.
    """
    stride = np.int64(len(slices)) // ((count + BLOCK_ROWS - 1) // BLOCK_ROWS)
    square = np.empty(64 * LANES, np.uint64)
    for block in range(first, last):
        _turn_block(slices, block * stride, places, square)
        _scatter_block(square, block * BLOCK_ROWS, count, form, starts, entries)


@inner
def slot_bits(form: Any, rows: int) -> int:
    """Bits of an entry by which a bin of so many rows is sorted: no more than its key's."""
    bits = np.int64(0)
    while bits < form.rest_bits and np.int64(1) << bits < rows:
        bits += 1
    return bits


@inner
def slot_of(entry: Any, bits: int) -> int:
    """The upper bits of an entry; `bits` may be 0."""
    return np.int64((entry >> np.uint64(1)) >> np.uint64(63 - bits))


@inner
def sort_bin(entries: Any, low: int, high: int, bits: int, ends: Any, ordered: Any) -> None:
    """Sort entries low..high-1 by their slots, stable.

    Args:
        entries: uint64.
        low: The first.
        high: The one after the last.
        bits: From `slot_bits`.
        ends: int64 (2**bits or more,): where each slot ends in `ordered`, written.
        ordered: uint64 (high - low + PADDING or more,), written.
    """
    fill(ends, 0, np.int64(1) << bits, np.int64(0))
    for i in range(low, high):
        ends[slot_of(entries[i], bits)] += 1
    total = np.int64(0)
    for slot in range(np.int64(1) << bits):
        count = ends[slot]
        ends[slot] = total
        total += count
    for i in range(low, high):
        slot = slot_of(entries[i], bits)
        place = ends[slot]
        ends[slot] = place + 1
        ordered[place] = entries[i]


@inner
def alike(ordered: Any, at: int, end: int, entry: Any, form: Any) -> Any:
    """Mark which of the entries at..at+7 before `end` share the key, and nearly the check."""
    near = alike8(ordered, at, entry, form.key_mask, form.check_mask, form.allowed)
    if end - at < LANES:
        near &= (np.uint64(1) << np.uint64(end - at)) - np.uint64(1)
    return near


@inner
def is_alike(entry: Any, other: Any, form: Any) -> bool:
    """Whether two entries share the key, and nearly the check."""
    differ = entry ^ other
    if differ & form.key_mask:
        return False
    return popcount(differ & form.check_mask) <= form.allowed
