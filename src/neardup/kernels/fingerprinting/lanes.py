"""Add weights to 64 sums at a time, which is where the weighted fold spends its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.kernels.bits import compiled_as, pointer
from neardup.kernels.compiler import intrinsic, ir, types

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s
    from neardup.kernels.lowering import Builder, Context, Signature, Type, Typing, Values


_I32 = ir.IntType(32)
_SUMS = ir.VectorType(ir.IntType(64), 64)
_ZEROS = ir.Constant(_SUMS, [0] * 64)
_NOTHING = ir.Constant(_SUMS, ir.Undefined)
_TO_ALL = ir.Constant(ir.VectorType(_I32, 64), [0] * 64)


@intrinsic
def _add_weights(
    typingctx: Typing, sums: Type, hashes: Type, weights: Type,  # noqa: ARG001 - Numba's protocol
) -> Any:  # fmt: skip
    def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
        start = ir.Constant(ir.IntType(64), 0)
        place = pointer(context, builder, signature.args[0], args[0], start, _SUMS)
        total = builder.load(place)
        total.align = 8
        for i in range(4):
            chosen = builder.extract_value(args[1], i)
            weight = builder.extract_value(args[2], i)
            lanes = builder.insert_element(_NOTHING, weight, ir.Constant(_I32, 0))
            lanes = builder.shuffle_vector(lanes, _NOTHING, _TO_ALL)
            chosen = builder.bitcast(chosen, ir.VectorType(ir.IntType(1), 64))
            total = builder.add(total, builder.select(chosen, lanes, _ZEROS))
        builder.store(total, place).align = 8
        return context.get_dummy_value()

    four: Any = types.UniTuple
    return types.void(sums, four(types.uint64, 4), four(types.int64, 4)), codegen


@compiled_as(_add_weights)
def add_weights(sums: Int64s, hashes: Any, weights: Any) -> None:
    """Add the weights of four hashes to the sums of their set bits.

    Args:
        sums: int64 (64,), added to.
        hashes: Four uint64.
        weights: Four int64.
    """
    for h, weight in zip(hashes, weights, strict=True):
        for bit in range(64):
            if int(h) >> bit & 1:
                sums[bit] += weight
