"""Vertical counters: 512 of them count 8 bits each at once, in carry-save adders.

Bit planes hold the counters' bits, 8 words of 64 counters a plane: one cache line, and one vector
of AVX-512, two of AVX2 and four of NEON. Written as vectors since a compiler left alone makes none.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import compiled_as, pointer
from neardup.kernels.compiler import cgutils, intrinsic, ir, types
from neardup.kernels.splitmix import SPLITMIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.kernels.array_types import Uint64s
    from neardup.kernels.lowering import Builder, Context, Signature, Type, Typing, Values


GROUP: Final = 8
LANES: Final = 8
SUM_BITS: Final = 11
"""Bits of the sum of 8 counters of 8 bits."""

_I32: Final = ir.IntType(32)
_I64: Final = ir.IntType(64)
_VECTOR: Final = ir.VectorType(_I64, LANES)


@dataclass(frozen=True)
class _Operations:
    """The operations of adders on vectors of bits: NumPy arrays by default, or LLVM values."""

    and_: Callable[[Any, Any], Any] = operator.and_
    or_: Callable[[Any, Any], Any] = operator.or_
    xor: Callable[[Any, Any], Any] = operator.xor

    def full(self, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
        """The ones and the twos of a + b + c, bit by bit."""
        differ = self.xor(a, b)
        return self.xor(differ, c), self.or_(self.and_(a, b), self.and_(differ, c))


def _added(bits: list[Any], counters: list[Any], on: _Operations) -> list[Any]:
    """The planes after adding 8 bits; the last one marks the counters that ever overflowed."""
    a, two_a = on.full(*bits[0:3])
    b, two_b = on.full(*bits[3:6])
    c, two_c = on.full(*bits[6:8], counters[0])
    one, two_d = on.full(a, b, c)
    d, four_a = on.full(two_a, two_b, two_c)
    two, four_b = on.full(d, two_d, counters[1])
    four, carry = on.full(four_a, four_b, counters[2])
    planes = [one, two, four]
    for plane in counters[3:-1]:
        planes.append(on.xor(plane, carry))
        carry = on.and_(plane, carry)
    return [*planes, on.or_(counters[-1], carry)]


def _load(
    context: Context, builder: Builder, kind: Any, array: Any, at: Any, word: int
) -> tuple[Any, Any]:
    """The vector that begins `word` words behind array[at]: its pointer and its value."""
    byte = builder.mul(builder.add(at, ir.Constant(_I64, word)), ir.Constant(_I64, 8))
    place = pointer(context, builder, kind, array, byte, _VECTOR)
    value = builder.load(place)
    value.align = 8
    return place, value


def _add_to(
    context: Context, builder: Builder, bits: list[Any], kind: Any, planes: Uint64s, counters: int
) -> Any:
    """Add 8 vectors of bits to the planes in memory; returns the last plane."""
    zero = ir.Constant(_I64, 0)
    digits = [
        _load(context, builder, kind, planes, zero, plane * LANES) for plane in range(counters + 1)
    ]
    on = _Operations(builder.and_, builder.or_, builder.xor)
    sums = _added(bits, [value for _, value in digits], on)
    for (place, _), value in zip(digits, sums, strict=True):
        builder.store(value, place).align = 8
    return sums[-1]


def _spread(builder: Builder, vector: Any) -> Any:
    """The words of a vector, each in all lanes of a vector of its own."""
    for lane in range(LANES):
        chosen = ir.Constant(ir.VectorType(_I32, LANES), [lane] * LANES)
        yield builder.shuffle_vector(vector, vector, chosen)


def _in_all_lanes(builder: Builder, value: Any) -> Any:
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(
        one, nothing, ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    )


def _adder(counters: int) -> Any:
    """The intrinsic that adds 8 bits to counters of a width in bits."""

    @intrinsic
    def add(
        typingctx: Typing, slices: Type, at: Type, flips: Type, first: Type, planes: Type,  # noqa: ARG001 - Numba's protocol
    ) -> Any:  # fmt: skip
        def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
            kinds = signature.args
            flips = _load(context, builder, kinds[2], args[2], args[3], 0)[1]
            lines = _lines(context, builder, kinds[0], args[0], args[1])
            turns = _spread(builder, flips)
            bits = [builder.xor(line, turn) for line, turn in zip(lines, turns, strict=True)]
            last = _add_to(context, builder, bits, kinds[4], args[4], counters)
            over = builder.bitcast(last, ir.IntType(64 * LANES))
            return builder.icmp_unsigned("!=", over, ir.Constant(over.type, -1))

        return types.boolean(slices, types.int64, flips, types.int64, planes), codegen

    return add


_add4, _add15 = _adder(4), _adder(15)


def _splitmix(builder: Builder, value: Any) -> Any:
    """The finaliser of splitmix64 on each lane."""
    for shift, factor in ((30, SPLITMIX[1]), (27, SPLITMIX[2]), (31, 1)):
        by = ir.Constant(_VECTOR, [shift] * LANES)
        value = builder.xor(value, builder.lshr(value, by))
        if factor != 1:
            value = builder.mul(value, ir.Constant(_VECTOR, [factor] * LANES))
    return value


def _lines(context: Context, builder: Builder, kind: Any, array: Any, at: Any) -> list[Any]:
    return [_load(context, builder, kind, array, at, i * LANES)[1] for i in range(GROUP)]


def _lines_upto(
    context: Context, builder: Builder, kind: Any, array: Any, at: Any, end: Any, step: Any
) -> Any:
    """The lines of `_lines`, 0 from array[end] on; with a step, each word is mixed first."""
    i1 = ir.VectorType(ir.IntType(1), LANES)
    made: Any = cgutils.get_or_insert_function
    function = ir.FunctionType(_VECTOR, [_VECTOR.as_pointer(), _I32, i1, _VECTOR])
    masked = made(builder.module, function, f"llvm.masked.load.v{LANES}i64.p0")
    left, zeros = _in_all_lanes(builder, builder.sub(end, at)), ir.Constant(_VECTOR, [0] * LANES)
    for i in range(GROUP):
        places = ir.Constant(_VECTOR, [i * LANES + lane for lane in range(LANES)])
        inside = builder.icmp_signed("<", places, left)
        begin = builder.mul(builder.add(at, ir.Constant(_I64, i * LANES)), ir.Constant(_I64, 8))
        place = pointer(context, builder, kind, array, begin, _VECTOR)
        line = builder.call(masked, [place, ir.Constant(_I32, 8), inside, zeros])
        if step is not None:
            mixed = _splitmix(builder, builder.add(line, _in_all_lanes(builder, step)))
            line = builder.select(inside, mixed, zeros)
        yield line


@intrinsic
def _add_words8(
    typingctx: Typing, words: Type, at: Type, end: Type, planes: Type,  # noqa: ARG001 - Numba's protocol
) -> Any:  # fmt: skip
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        kinds = signature.args
        lines = _lines_upto(context, builder, kinds[0], args[0], args[1], args[2], None)
        _add_to(context, builder, list(lines), kinds[3], args[3], 8)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64, planes), codegen


@intrinsic
def _add_widened8(
    typingctx: Typing, words: Type, at: Type, end: Type, step: Type, planes: Type,  # noqa: ARG001 - Numba's protocol
) -> Any:  # fmt: skip
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        kinds = signature.args
        lines = _lines_upto(context, builder, kinds[0], args[0], args[1], args[2], args[3])
        _add_to(context, builder, list(lines), kinds[4], args[4], 8)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64, types.uint64, planes), codegen


@intrinsic
def _sum_lanes8(typingctx: Typing, planes: Type) -> Any:  # noqa: ARG001
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        zero, on = ir.Constant(_I64, 0), _Operations(builder.and_, builder.or_, builder.xor)
        numbers = [
            _load(context, builder, signature.args[0], args[0], zero, level * LANES)[1]
            for level in range(8)
        ]
        lanes = LANES
        while lanes > 1:
            lanes //= 2
            halves = [
                [
                    builder.shuffle_vector(
                        number, number, ir.Constant(ir.VectorType(_I32, lanes), chosen)
                    )
                    for number in numbers
                ]
                for chosen in (list(range(lanes)), list(range(lanes, 2 * lanes)))
            ]
            carry = ir.Constant(ir.VectorType(_I64, lanes), [0] * lanes)
            numbers = []
            for a, b in zip(*halves, strict=True):
                number, carry = on.full(a, b, carry)
                numbers.append(number)
            numbers.append(carry)
        words = [builder.extract_element(number, ir.Constant(_I32, 0)) for number in numbers]
        return context.make_tuple(builder, signature.return_type, words)

    many: Any = types.UniTuple
    return many(types.uint64, SUM_BITS)(planes), codegen


def _add_plainly(
    slices: Any, at: int, flips: Any, first: int, planes: Uint64s, counters: int
) -> bool:
    lines = slices[at : at + GROUP * LANES].reshape(GROUP, LANES)
    bits = list(lines ^ flips[first : first + GROUP, None])
    totals = planes[: (counters + 1) * LANES].reshape(counters + 1, LANES)
    totals[:] = _added(bits, list(totals.copy()), _Operations())
    return bool((~totals[-1]).any())


@compiled_as(_add4)
def count4(slices: Any, at: int, flips: Any, first: int, planes: Uint64s) -> bool:
    """Add 8 bits to each of 512 counters of 4 bits; returns whether one never overflowed.

    Args:
        slices: uint64, contiguous: from slices[at] on 8 lines of LANES words, the bits to be added.
        at: See `slices`.
        flips: uint64, contiguous: line i is xored with flips[first + i].
        first: See `flips`.
        planes: uint64 (5 * LANES,), contiguous, changed: the counters' bits, the lowest first, and
            then which of them ever overflowed.
    """
    return _add_plainly(slices, at, flips, first, planes, 4)


@compiled_as(_add15)
def count15(slices: Any, at: int, flips: Any, first: int, planes: Uint64s) -> bool:
    """As `count4`, for counters of 15 bits: planes uint64 (16 * LANES,)."""
    return _add_plainly(slices, at, flips, first, planes, 15)


@compiled_as(_add_words8)
def count_words8(words: Any, at: int, end: int, planes: Uint64s) -> None:
    """Add words[at : at + 64], but none from `end` on, to 8 counters of 8 bits for each bit.

    Args:
        words: uint64, contiguous.
        at: Index of the first word.
        end: Index behind the last word; may be less than `at` + 64.
        planes: uint64 (9 * LANES or more,), contiguous, changed: as those of `count4`.
    """
    lines = np.zeros(GROUP * LANES, np.uint64)
    group = words[at : min(end, at + GROUP * LANES)]
    lines[: group.size] = group
    _add_plainly(lines, 0, np.zeros(GROUP, np.uint64), 0, planes, 8)


@compiled_as(_add_widened8)
def count_widened8(words: Any, at: int, end: int, step: Any, planes: Uint64s) -> None:
    """As `count_words8`, of the splitmix64 of each word + uint64 `step`."""
    mixed = words[at : min(end, at + GROUP * LANES)] + step
    for shift, factor in ((30, SPLITMIX[1]), (27, SPLITMIX[2])):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    count_words8(mixed ^ (mixed >> np.uint64(31)), 0, mixed.size, planes)


@compiled_as(_sum_lanes8)
def sum_lanes8(planes: Uint64s) -> Any:
    """Sum the 8 counters of `count_words8` for each bit: SUM_BITS words, word p the bits p."""
    counts = sum(
        (planes[level * LANES + lane] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(int)
        << level
        for level in range(8)
        for lane in range(LANES)
    )
    return tuple(
        np.uint64(sum((int(count) >> bit & 1) << i for i, count in enumerate(counts)))
        for bit in range(SUM_BITS)
    )
