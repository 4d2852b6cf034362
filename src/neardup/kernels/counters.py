"""Vertical counters: 512 of them count 8 bits each at once, in carry-save adders.

Bit planes hold the counters' bits, 8 words of 64 counters a plane: one cache line, and one vector
of AVX-512, two of AVX2 and four of NEON. Written as vectors since a compiler left alone makes none.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels.bits import compiled_as, pointer

if TYPE_CHECKING:
    from collections.abc import Callable

GROUP: Final = 8
LANES: Final = 8
_I32: Final = ir.IntType(32)
_I64: Final = ir.IntType(64)
_VECTOR: Final = ir.VectorType(_I64, LANES)


@dataclass(frozen=True)
class _Operations:
    """What adders need of a vector of bits: NumPy's arrays have it, and so do LLVM's values."""

    and_: Callable[[Any, Any], Any] = operator.and_
    or_: Callable[[Any, Any], Any] = operator.or_
    xor: Callable[[Any, Any], Any] = operator.xor

    def full(self, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
        """The ones and the twos of a + b + c, bit by bit."""
        differ = self.xor(a, b)
        return self.xor(differ, c), self.or_(self.and_(a, b), self.and_(differ, c))


def _added(bits: list[Any], held: list[Any], on: _Operations) -> list[Any]:
    """The planes after 8 bits were added; the last one marks which counters ever overflowed."""
    a, two_a = on.full(*bits[0:3])
    b, two_b = on.full(*bits[3:6])
    c, two_c = on.full(*bits[6:8], held[0])
    one, two_d = on.full(a, b, c)
    d, four_a = on.full(two_a, two_b, two_c)
    two, four_b = on.full(d, two_d, held[1])
    four, carry = on.full(four_a, four_b, held[2])
    planes = [one, two, four]
    for plane in held[3:-1]:
        planes.append(on.xor(plane, carry))
        carry = on.and_(plane, carry)
    return [*planes, on.or_(held[-1], carry)]


def _vector_at(context: Any, builder: Any, kind: Any, array: Any, at: Any, word: int) -> Any:
    place = builder.mul(builder.add(at, ir.Constant(_I64, word)), ir.Constant(_I64, 8))
    return pointer(context, builder, kind, array, place, _VECTOR)


def _spread(builder: Any, vector: Any) -> Any:
    """The words of a vector, each in all lanes of a vector of its own."""
    for lane in range(LANES):
        chosen = ir.Constant(ir.VectorType(_I32, LANES), [lane] * LANES)
        yield builder.shuffle_vector(vector, vector, chosen)


def _adder(counters: int) -> Any:
    """The intrinsic for counters of so many bits."""

    @intrinsic
    def add(typingctx: Any, slices: Any, at: Any, turned: Any, first: Any, planes: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def load(argument: int, start: Any, word: int) -> Any:
                kind, array = signature.args[argument], args[argument]
                place = _vector_at(context, builder, kind, array, start, word)
                value = builder.load(place)
                value.align = 8
                return place, value

            turns = _spread(builder, load(2, args[3], 0)[1])
            lines = [load(0, args[1], i * LANES)[1] for i in range(GROUP)]
            bits = [builder.xor(line, turn) for line, turn in zip(lines, turns, strict=True)]
            zero = ir.Constant(_I64, 0)
            held = [load(4, zero, plane * LANES) for plane in range(counters + 1)]
            on = _Operations(builder.and_, builder.or_, builder.xor)
            sums = _added(bits, [value for _, value in held], on)
            for (place, _), value in zip(held, sums, strict=True):
                builder.store(value, place).align = 8
            over = builder.bitcast(sums[-1], ir.IntType(64 * LANES))
            return builder.icmp_unsigned("!=", over, ir.Constant(over.type, -1))

        return types.boolean(slices, types.int64, turned, types.int64, planes), codegen

    return add


_add4, _add15 = _adder(4), _adder(15)


def _add_plainly(slices: Any, at: int, turned: Any, first: int, planes: Any, counters: int) -> bool:
    lines = slices[at : at + GROUP * LANES].reshape(GROUP, LANES)
    bits = list(lines ^ turned[first : first + GROUP, None])
    held = planes[: (counters + 1) * LANES].reshape(counters + 1, LANES)
    held[:] = _added(bits, list(held.copy()), _Operations())
    return bool((~held[-1]).any())


@compiled_as(_add4)
def count4(slices: Any, at: int, turned: Any, first: int, planes: Any) -> bool:
    """Add 8 bits to each of 512 counters of 4 bits; whether one of them never overflowed.

    Args:
        slices: uint64, contiguous: from slices[at] on 8 lines of LANES words, the bits to be added.
        at: See `slices`.
        turned: uint64, contiguous: line i is xored with turned[first + i].
        first: See `turned`.
        planes: uint64 (5 * LANES,), contiguous, changed: the counters' bits, the lowest first, and
            then which of them ever overflowed.
    """
    return _add_plainly(slices, at, turned, first, planes, 4)


@compiled_as(_add15)
def count15(slices: Any, at: int, turned: Any, first: int, planes: Any) -> bool:
    """As `count4`, for counters of 15 bits: planes uint64 (16 * LANES,)."""
    return _add_plainly(slices, at, turned, first, planes, 15)
