"""Machine instructions that Numba does not offer: bit counts, loads, wide products, lanes.

Each is a plain Python function, so that kernels also run with the JIT off, and an intrinsic that
takes its place in compiled code. (As overloads they made every kernel compile a third longer.)
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.kernels.compiler import IS_PLAIN, cgutils, intrinsic, ir, types

if TYPE_CHECKING:
    from neardup.kernels.lowering import Builder, Context, Signature, Type, Typing, Values


_MASK64 = (1 << 64) - 1
_UNDERSCORE = ord("_")
_I8 = ir.IntType(8)
_I64 = ir.IntType(64)
_I128 = ir.IntType(128)


def compiled_as(instruction: Any) -> Any:
    """Put an intrinsic in the place of the plain function, unless the JIT is off."""
    return lambda plain: plain if IS_PLAIN else instruction


@intrinsic
def _ctpop(typingctx: Typing, x: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def _cttz(typingctx: Typing, x: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@intrinsic
def _mul_fold(typingctx: Typing, a: Type, b: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        wide = [builder.zext(arg, _I128) for arg in args]
        product = builder.mul(*wide)
        high = builder.lshr(product, ir.Constant(_I128, 64))
        return builder.trunc(builder.xor(product, high), _I64)

    return types.uint64(types.uint64, types.uint64), codegen


def pointer(
    context: Context, builder: Builder, array_type: Any, array: Any, at: Any, pointee: Any
) -> Any:
    """A pointer to a `pointee` at byte `at` of an array, inside an intrinsic."""
    data = context.make_array(array_type)(context, builder, array).data
    start = builder.gep(builder.bitcast(data, cgutils.voidptr_t), [at])
    return builder.bitcast(start, pointee.as_pointer())


def _load_lanes(
    context: Context, builder: Builder, array_type: Any, array: Any, at: Any, lanes: int
) -> Any:
    place = pointer(context, builder, array_type, array, at, ir.VectorType(_I8, lanes))
    value = builder.load(place)
    value.align = 1
    return value


def spread(builder: Builder, value: Any, lanes: int) -> Any:
    """A vector that repeats a value, inside an intrinsic."""
    i32 = ir.IntType(32)
    nothing = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(i32, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(i32, lanes), [0] * lanes))


def _splat(value: int, lanes: int) -> Any:
    return ir.Constant(ir.VectorType(_I8, lanes), [value] * lanes)


def _between(builder: Builder, value: Any, low: int, count: int, lanes: int) -> Any:
    shifted = builder.sub(value, _splat(low, lanes))
    return builder.icmp_unsigned("<", shifted, _splat(count, lanes))


@intrinsic
def _word_mask64(typingctx: Typing, data: Type, at: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        value = _load_lanes(context, builder, signature.args[0], args[0], args[1], 64)
        folded = builder.or_(value, _splat(0x20, 64))
        letters = _between(builder, folded, ord("a"), 26, 64)
        digits = _between(builder, value, ord("0"), 10, 64)
        underscores = builder.icmp_unsigned("==", value, _splat(_UNDERSCORE, 64))
        return builder.bitcast(builder.or_(builder.or_(letters, digits), underscores), _I64)

    return types.uint64(data, types.int64), codegen


@intrinsic
def _high_mask64(typingctx: Typing, data: Type, at: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        value = _load_lanes(context, builder, signature.args[0], args[0], args[1], 64)
        return builder.bitcast(builder.icmp_signed("<", value, _splat(0, 64)), _I64)

    return types.uint64(data, types.int64), codegen


@intrinsic
def _equal_mask64(typingctx: Typing, data: Type, at: Type, byte: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        value = _load_lanes(context, builder, signature.args[0], args[0], args[1], 64)
        pattern = spread(builder, args[2], 64)
        return builder.bitcast(builder.icmp_unsigned("==", value, pattern), _I64)

    return types.uint64(data, types.int64, types.uint8), codegen


@intrinsic
def _json_masks64(typingctx: Typing, data: Type, at: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        value = _load_lanes(context, builder, signature.args[0], args[0], args[1], 64)
        folded = builder.or_(value, _splat(0x20, 64))

        def equal(bytes_: Any, *characters: str) -> Any:
            equalities = [
                builder.icmp_unsigned("==", bytes_, _splat(ord(x), 64)) for x in characters
            ]
            return functools.reduce(builder.or_, equalities)

        masks = (
            equal(value, '"'),
            equal(value, "\\"),
            builder.or_(equal(folded, "{", "}"), equal(value, ":", ",")),
            equal(value, "\n"),
            equal(value, " ", "\t", "\r"),
            _between(builder, value, 0, 0x20, 64),
        )
        pack: Any = cgutils.pack_array
        return pack(builder, [builder.bitcast(mask, _I64) for mask in masks])

    six: Any = types.UniTuple
    return six(types.uint64, 6)(data, types.int64), codegen


@intrinsic
def _pack_words64(
    typingctx: Typing, target: Type, to: Type, data: Type, at: Type, case_bit: Type, words: Type,
    kept: Type,
) -> Any:  # fmt: skip
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        vector, lanes = ir.VectorType(_I8, 64), ir.VectorType(ir.IntType(1), 64)
        value = _load_lanes(context, builder, signature.args[2], args[2], args[3], 64)
        nothing = ir.Constant(vector, ir.Undefined)
        case = spread(builder, args[4], 64)
        capitals = _between(builder, value, ord("A"), 26, 64)
        value = builder.add(value, builder.select(capitals, case, _splat(0, 64)))
        value = builder.select(builder.bitcast(args[5], lanes), value, _splat(ord(" "), 64))
        kind = ir.FunctionType(vector, [vector, lanes, vector])
        made: Any = cgutils.get_or_insert_function
        compress = made(builder.module, kind, "llvm.experimental.vector.compress.v64i8")
        packed = builder.call(compress, [value, builder.bitcast(args[6], lanes), nothing])
        place = pointer(context, builder, signature.args[0], args[0], args[1], vector)
        builder.store(packed, place).align = 1
        blank = builder.icmp_unsigned("==", packed, _splat(ord(" "), 64))
        return builder.bitcast(blank, _I64)

    arguments = target, types.int64, data, types.int64, types.uint8, types.uint64, types.uint64
    return types.uint64(*arguments), codegen


def _loader(width: int) -> Any:
    @intrinsic
    def load(typingctx: Typing, data: Type, at: Type) -> Any:
        def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
            integer = ir.IntType(width)
            value = builder.load(
                pointer(context, builder, signature.args[0], args[0], args[1], integer)
            )
            value.align = 1
            return builder.zext(value, _I64) if width < 64 else value

        return types.uint64(data, types.int64), codegen

    return load


@intrinsic
def _copy64(typingctx: Typing, data: Type, at: Type, target: Type, to: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        kinds = signature.args
        value = _load_lanes(context, builder, kinds[0], args[0], args[1], 64)
        place = pointer(context, builder, kinds[2], args[2], args[3], value.type)
        builder.store(value, place).align = 1
        return context.get_dummy_value()

    return types.void(data, types.int64, target, types.int64), codegen


@intrinsic
def _store32(typingctx: Typing, data: Type, at: Type, value: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        narrow = ir.IntType(32)
        place = pointer(context, builder, signature.args[0], args[0], args[1], narrow)
        builder.store(builder.trunc(args[2], narrow), place).align = 1
        return context.get_dummy_value()

    return types.void(data, types.int64, types.uint64), codegen


_load64 = _loader(64)
_load32 = _loader(32)


@intrinsic
def _prefetch(typingctx: Typing, data: Type, at: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        offset = builder.mul(args[1], ir.Constant(_I64, size))
        place = pointer(context, builder, signature.args[0], args[0], offset, _I8)
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, i32, i32, i32])
        find: Any = cgutils.get_or_insert_function
        function = find(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, *(ir.Constant(i32, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(data, types.int64), codegen


@intrinsic
def _near8(
    typingctx: Typing, columns: Type, at: Type, row: Type, distance: Type, lanes: Type
) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        stride = builder.extract_value(array.shape, 1)
        vector = ir.VectorType(_I64, 8)
        made: Any = cgutils.get_or_insert_function
        count = made(builder.module, ir.FunctionType(vector, [vector]), "llvm.ctpop.v8i64")

        total: Any = ir.Constant(vector, [0] * 8)
        for lane in range(len(signature.args[4])):
            begin = builder.mul(stride, ir.Constant(_I64, lane))
            place = builder.gep(array.data, [builder.add(begin, args[1])])
            those = builder.load(builder.bitcast(place, vector.as_pointer()))
            those.align = 8
            this = builder.load(builder.gep(array.data, [builder.add(begin, args[2])]))
            differing = builder.xor(those, spread(builder, this, 8))
            total = builder.add(total, builder.call(count, [differing]))
        near = builder.icmp_signed("<=", total, spread(builder, args[3], 8))
        return builder.zext(builder.bitcast(near, _I8), _I64)

    return types.uint64(columns, types.int64, types.int64, types.int64, lanes), codegen


def _at_address(kind: Any) -> Any:
    @intrinsic
    def at_address(typingctx: Typing, address: Type) -> Any:
        def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        pointer_to: Any = types.CPointer
        return pointer_to(kind)(types.uint64), codegen

    return at_address


words_at = _at_address(types.uint64)
"""A pointer to uint64 at an address; compiled code only."""
integers_at = _at_address(types.int64)
"""A pointer to int64 at an address; compiled code only."""
halves_at = _at_address(types.uint32)
"""A pointer to uint32 at an address; compiled code only."""


def _mask(data: Any, at: int, is_member: Any) -> Any:
    return np.uint64(sum(1 << i for i in range(64) if is_member(int(data[at + i]))))


@compiled_as(_ctpop)
def popcount(x: Any) -> int:
    """Count the 1 bits of a uint64; int64."""
    return int(x).bit_count()


@compiled_as(_cttz)
def trailing_zeros(x: Any) -> int:
    """Count the 0 bits below the lowest 1 bit of a uint64; 64 for 0; int64."""
    value = int(x)
    return (value & -value).bit_length() - 1 if value else 64


@compiled_as(_mul_fold)
def multiply_fold(a: Any, b: Any) -> Any:
    """Multiply two uint64 to 128 bits and xor the halves (the mixing step of XXH3); uint64."""
    product = int(a) * int(b)
    return np.uint64((product & _MASK64) ^ (product >> 64))


@compiled_as(_load64)
def load64(data: Any, at: int) -> Any:
    """Read 8 bytes of a uint8 array from index `at` on, little-endian; unaligned; uint64."""
    return np.uint64(int.from_bytes(bytes(data[at : at + 8]), "little"))


@compiled_as(_load32)
def load32(data: Any, at: int) -> Any:
    """Read 4 bytes of a uint8 array from index `at` on, little-endian, widened to uint64."""
    return np.uint64(int.from_bytes(bytes(data[at : at + 4]), "little"))


@compiled_as(_copy64)
def copy64(data: Any, at: int, target: Any, to: int) -> None:
    """Copy 64 bytes from data[at] on to target[to] and on; uint8 arrays."""
    target[to : to + 64] = data[at : at + 64]


@compiled_as(_store32)
def store32(data: Any, at: int, value: Any) -> None:
    """Write the low 4 bytes of a uint64 to a uint8 array from index `at` on, little-endian."""
    for i in range(4):
        data[at + i] = int(value) >> 8 * i & 0xFF


@compiled_as(_word_mask64)
def word_mask64(data: Any, at: int) -> Any:
    """Mark which of the 64 bytes from index `at` on are ASCII letters, digits or `_`; uint64."""
    return _mask(
        data, at, lambda byte: byte < 0x80 and (chr(byte).isalnum() or byte == _UNDERSCORE)
    )


@compiled_as(_high_mask64)
def high_mask64(data: Any, at: int) -> Any:
    """Mark which of the 64 bytes from index `at` on are not ASCII; uint64."""
    return _mask(data, at, lambda byte: byte >= 0x80)


@compiled_as(_equal_mask64)
def equal_mask64(data: Any, at: int, byte: Any) -> Any:
    """Mark which of the 64 bytes from index `at` on are this uint8; uint64."""
    return _mask(data, at, int(byte).__eq__)


@compiled_as(_json_masks64)
def json_masks64(data: Any, at: int) -> Any:
    """Mark the 64 bytes from index `at` on by their role in JSON; six uint64.

    The masks are of quotes, backslashes, the marks of structure {}[]:, line ends, other white
    space, and control characters, line ends among them.
    """
    sets = b'"', b"\\", b"{}[]:,", b"\n", b" \t\r", bytes(range(0x20))
    return tuple(_mask(data, at, members.__contains__) for members in sets)


@compiled_as(_pack_words64)
def pack_words64(
    target: Any, to: int, data: Any, at: int, case_bit: Any, words: Any, kept: Any
) -> Any:
    """Write the bytes that `kept` marks among the 64 from data[at] on to target[to] and on.

    Bytes outside `words` become blanks, and uint8 `case_bit` is added to ASCII capitals. All of
    target[to : to + 64] may be overwritten.

    Returns:
        uint64, which of the written bytes are blanks; bits behind the last of them mean nothing.
    """
    blanks, written = 0, 0
    for i in range(64):
        if int(kept) >> i & 1:
            byte = data[at + i] if int(words) >> i & 1 else 0x20
            target[to + written] = byte + case_bit if 0x41 <= byte <= 0x5A else byte
            blanks |= int(byte == 0x20) << written
            written += 1
    return np.uint64(blanks)


@compiled_as(_near8)
def near8(columns: Any, at: int, row: int, distance: int, lanes: Any) -> Any:
    """Mark which of columns at..at+7 are within the distance of column `row`; uint64.

    `columns` is uint64 (W, n), C-contiguous: a fingerprint is a column; `lanes` is a tuple of W.
    One-word fingerprints may be (n, 1) as well.
    """
    flat, step = columns.reshape(-1), columns.shape[1]
    mask = 0
    for i in range(8):
        words = range(0, step * len(lanes), step)
        apart = sum((int(flat[w + at + i]) ^ int(flat[w + row])).bit_count() for w in words)
        mask |= (apart <= distance) << i
    return np.uint64(mask)


@compiled_as(_prefetch)
def prefetch(data: Any, at: int) -> None:
    """Prefetch the cache line of data[at] (1-D, contiguous); `at` may lie beyond its end."""
