"""Transpose eight 64 x 64 bit matrices at a time (Hacker's Delight, 7-3).

Eight matrices are uint64 (512,): row i of matrix `lane` is word 8 * i + lane. So each step works on
vectors: a cache line, and one vector of AVX-512, two of AVX2 and four of NEON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.kernels.bit_counters import LANES
from neardup.kernels.bits import compiled_as, spread
from neardup.kernels.compiler import intrinsic, ir, types
from neardup.kernels.jit import inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Uint64s
    from neardup.kernels.lowering import Builder, Context, Signature, Type, Typing, Values

VECTOR = ir.VectorType(ir.IntType(64), LANES)


def vector_at(context: Context, builder: Builder, array_type: Any, array: Any, at: Any) -> Any:
    """A pointer to the 8 words from array[at] on, inside an intrinsic."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), VECTOR.as_pointer())


@intrinsic
def _copy8(typingctx: Typing, source: Type, at: Type, target: Type, to: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        value = builder.load(vector_at(context, builder, signature.args[0], args[0], args[1]))
        value.align = 8
        place = vector_at(context, builder, signature.args[2], args[2], args[3])
        builder.store(value, place).align = 8
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), codegen


@intrinsic
def _exchange8(
    typingctx: Typing, square: Type, at: Type, other: Type, shift: Type, mask: Type
) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        kind = signature.args[0]
        places = [vector_at(context, builder, kind, args[0], arg) for arg in args[1:3]]
        low, high = (builder.load(place) for place in places)
        low.align = high.align = 8
        by, chosen = (spread(builder, arg, LANES) for arg in args[3:])
        differ = builder.and_(builder.xor(builder.lshr(low, by), high), chosen)
        low, high = builder.xor(low, builder.shl(differ, by)), builder.xor(high, differ)
        for value, place in zip((low, high), places, strict=True):
            builder.store(value, place).align = 8
        return context.get_dummy_value()

    arguments = types.int64, types.int64, types.uint64, types.uint64
    return types.void(square, *arguments), codegen


@compiled_as(_copy8)
def copy8(source: Any, at: int, target: Any, to: int) -> None:
    """Copy 8 uint64 from source[at] on to target[to] on."""
    target[to : to + LANES] = source[at : at + LANES]


@compiled_as(_exchange8)
def exchange8(matrices: Any, at: int, other: int, shift: Any, mask: Any) -> None:
    """Exchange bits `mask` << `shift` of 8 words from `at` on with bits `mask` from `other` on."""
    low, high = matrices[at : at + LANES], matrices[other : other + LANES]
    differ = ((low >> shift) ^ high) & mask
    low ^= differ << shift
    high ^= differ


@inner
def turn(matrices: Uint64s) -> None:
    """Transpose eight matrices in place: bit i of row j becomes bit j of row i."""
    half = np.int64(32)
    mask = np.uint64(0xFFFFFFFF)
    # Each round exchanges bits that are `half` apart, so after 32, 16, ... 1 each is in its place.
    while half:
        row = np.int64(0)
        while row < 64:
            exchange8(matrices, row * LANES, (row + half) * LANES, np.uint64(half), mask)
            row = (row + half + 1) & ~half
        half >>= 1
        mask ^= mask << np.uint64(half)


BLOCK_ROWS = 64 * LANES


@inner
def _load_matrices(
    words: Uint64s, width: int, w: int, first: int, count: int, matrices: Uint64s
) -> None:
    """Copy word w of 512 rows from `first` on to eight matrices; rows from `count` on are 0."""
    for lane in range(LANES):
        low = first + 64 * lane
        square_rows = min(max(count - low, 0), 64)
        for i in range(square_rows):
            matrices[i * LANES + lane] = words[(low + i) * width + w]
        for i in range(square_rows, 64):
            matrices[i * LANES + lane] = np.uint64(0)


@kernel
def slice_rows(
    words: Uint64s, width: int, first: int, last: int, places: Int64s, slices: Uint64s
) -> None:
    """Write the slices of blocks first..last-1; O(rows * width).

    Args:
        words: uint64 (n * width), may be read-only.
        width: Words of a fingerprint.
        first: The first block; `last` is the one after the last.
        last: See `first`.
        places: int64 (64 * width,): each bit position's place in a block, -1 for unused ones.
        slices: uint64 (blocks * P * LANES), zeros, written; P, the places, a multiple of GROUP.
    """
    count = np.int64(len(words) // width)
    blocks = (count + BLOCK_ROWS - 1) // BLOCK_ROWS
    stride = np.int64(len(slices)) // blocks
    matrices = np.empty(BLOCK_ROWS, np.uint64)
    for block in range(first, last):
        for w in range(width):
            _load_matrices(words, width, w, block * BLOCK_ROWS, count, matrices)
            turn(matrices)
            for bit in range(64):
                place = places[64 * w + bit]
                if place >= 0:
                    copy8(matrices, bit * LANES, slices, block * stride + place * LANES)
