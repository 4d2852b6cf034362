"""Entries of 256 bits, eight at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import compiled_as, spread
from neardup.kernels.compiler import cgutils, intrinsic, ir, types

if TYPE_CHECKING:
    from neardup.kernels.lowering import Builder, Context, Signature, Type, Typing, Values


WIDE_WORDS: Final = 4

_I64 = ir.IntType(64)
_LANES: Final = 8


@intrinsic
def _near8_wide(typingctx: Typing, entries: Type, at: Type, row: Type, distance: Type) -> Any:
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        vector, entry = ir.VectorType(_I64, _LANES), ir.VectorType(_I64, WIDE_WORDS)
        made: Any = cgutils.get_or_insert_function
        count = made(builder.module, ir.FunctionType(vector, [vector]), "llvm.ctpop.v8i64")
        words = ir.Constant(_I64, WIDE_WORDS)

        def loaded(first: Any, kind: Any) -> Any:
            place = builder.bitcast(builder.gep(array.data, [first]), kind.as_pointer())
            value = builder.load(place)
            value.align = 8
            return value

        def chosen(left: Any, right: Any, lanes: Any) -> Any:
            mask = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), list(lanes))
            return builder.shuffle_vector(left, right, mask)

        def neighbours_added(left: Any, right: Any) -> Any:
            ends = 2 * _LANES
            even, odd = (
                chosen(left, right, range(0, ends, 2)),
                chosen(left, right, range(1, ends, 2)),
            )
            return builder.add(even, odd)

        this = loaded(builder.mul(args[2], words), entry)
        this = chosen(this, this, [*range(WIDE_WORDS)] * 2)
        apart = []
        for part in range(WIDE_WORDS):
            begin = builder.add(builder.mul(args[1], words), ir.Constant(_I64, _LANES * part))
            apart.append(builder.call(count, [builder.xor(loaded(begin, vector), this)]))
        # Two rounds of adding neighbours sum the four words of each entry and keep their order.
        halves = neighbours_added(*apart[:2]), neighbours_added(*apart[2:])
        near = builder.icmp_signed(
            "<=", neighbours_added(*halves), spread(builder, args[3], _LANES)
        )
        return builder.zext(builder.bitcast(near, ir.IntType(8)), _I64)

    return types.uint64(entries, types.int64, types.int64, types.int64), codegen


@compiled_as(_near8_wide)
def near8_wide(entries: Any, at: int, row: int, distance: int) -> Any:
    """Mark which of entries[at:at + 8] are within the distance of entries[row]; uint64.

    `entries` is uint64 (n, WIDE_WORDS), C-contiguous.
    """
    mask = 0
    for i in range(_LANES):
        words = zip(entries[at + i].tolist(), entries[row].tolist(), strict=True)
        mask |= (sum((x ^ y).bit_count() for x, y in words) <= distance) << i
    return np.uint64(mask)
