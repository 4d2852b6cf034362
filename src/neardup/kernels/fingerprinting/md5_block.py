"""MD5 of one block of 16 features at once.

Source: Rivest, RFC 1321. One feature a lane: 16 lanes of 32 bits are one vector of AVX-512, two of
AVX2 and four of NEON, written as such since a compiler left alone takes the narrower ones.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import compiled_as, pointer
from neardup.kernels.compiler import intrinsic, ir, types

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neardup.kernels.array_types import Uint32s
    from neardup.kernels.lowering import Builder, Context, Signature, Type, Typing, Values


LANES: Final = 16
_I64: Final = ir.IntType(64)
_LANES_32: Final = ir.VectorType(ir.IntType(32), LANES)
_LANES_64: Final = ir.VectorType(_I64, LANES)
_START: Final = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_SINES: Final = tuple(int(abs(math.sin(step + 1)) * 2**32) for step in range(64))
_SHIFTS: Final = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_PLACES: Final = ((1, 0), (5, 1), (3, 5), (7, 0))
"""Factor and offset of each round: step i takes word (factor * i + offset) % 16 of the block."""


@dataclass(frozen=True)
class _Operations:
    """The operations of MD5 on vectors of uint32: NumPy arrays by default, or LLVM values."""

    add: Callable[[Any, Any], Any] = operator.add
    and_: Callable[[Any, Any], Any] = operator.and_
    or_: Callable[[Any, Any], Any] = operator.or_
    xor: Callable[[Any, Any], Any] = operator.xor
    shl: Callable[[Any, Any], Any] = operator.lshift
    lshr: Callable[[Any, Any], Any] = operator.rshift
    splat: Callable[[int], Any] = lambda value: np.full(LANES, value, np.uint32)


def _mixed(turn: int, b: Any, c: Any, d: Any, on: _Operations) -> Any:
    """The function of a round, from 0 to 3: F, G, H or I."""
    if turn == 0:
        return on.xor(d, on.and_(b, on.xor(c, d)))
    if turn == 1:
        return on.xor(c, on.and_(d, on.xor(b, c)))
    if turn == 2:
        return on.xor(on.xor(b, c), d)
    return on.xor(c, on.or_(b, on.xor(d, on.splat(0xFFFFFFFF))))


def _digest(words: Sequence[Any], on: _Operations) -> list[Any]:
    """The four words of the digest of one padded block a lane, given the block's 16 words."""
    start = [on.splat(value) for value in _START]
    a, b, c, d = start
    for step in range(64):
        turn = step // 16
        factor, offset = _PLACES[turn]
        constant = on.add(words[(factor * step + offset) % 16], on.splat(_SINES[step]))
        total = on.add(on.add(a, constant), _mixed(turn, b, c, d, on))
        shift = _SHIFTS[turn][step % 4]
        left, right = on.shl(total, on.splat(shift)), on.lshr(total, on.splat(32 - shift))
        a, b, c, d = d, on.add(b, on.or_(left, right)), b, c
    return [on.add(first, last) for first, last in zip(start, (a, b, c, d), strict=True)]


def _lane_operations(builder: Builder) -> _Operations:
    return _Operations(
        builder.add, builder.and_, builder.or_, builder.xor, builder.shl, builder.lshr,
        lambda value: ir.Constant(_LANES_32, [value] * LANES),
    )  # fmt: skip


@intrinsic
def _lanes_block(
    typingctx: Typing, words: Type, high: Type, high_at: Type, low: Type, low_at: Type
) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        array, *arrays = (signature.args[i] for i in (0, 1, 3))
        loaded = []
        for k in range(16):
            at = ir.Constant(_I64, 4 * LANES * k)
            word = builder.load(pointer(context, builder, array, args[0], at, _LANES_32))
            word.align = 4
            loaded.append(word)
        a, b, c, d = (
            builder.zext(word, _LANES_64) for word in _digest(loaded, _lane_operations(builder))
        )
        shift = ir.Constant(_LANES_64, [32] * LANES)
        halves = builder.or_(builder.shl(a, shift), b), builder.or_(builder.shl(c, shift), d)
        for half, target, i in zip(halves, arrays, (1, 3), strict=True):
            at = builder.mul(args[i + 1], ir.Constant(_I64, 8))
            builder.store(half, pointer(context, builder, target, args[i], at, _LANES_64)).align = 8
        return context.get_dummy_value()

    return types.void(words, high, types.int64, low, types.int64), codegen


@compiled_as(_lanes_block)
def md5_block(words: Uint32s, high: Any, high_at: int, low: Any, low_at: int) -> None:
    """MD5 of one padded block a lane.

    Args:
        words: uint32 (16 * LANES,), the block's words by lane: word k of lane i at LANES * k + i.
        high: uint64, LANES are written from `high_at` on: digest bytes 0 to 7,
            each half as a little-endian word.
        high_at: Index.
        low: uint64, LANES are written from `low_at` on: digest bytes 8 to 15.
        low_at: Index.
    """
    a, b, c, d = (
        word.astype(np.uint64) for word in _digest(words.reshape(16, LANES), _Operations())
    )
    shift = np.uint64(32)
    high[high_at : high_at + LANES] = (a << shift) | b
    low[low_at : low_at + LANES] = (c << shift) | d
