"""Machine instructions that Numba does not offer: population count, unaligned loads, wide products.

Each is a plain Python function with the compiled form as an overload, so that kernels also run with
the JIT off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

_MASK64 = (1 << 64) - 1
_I8 = ir.IntType(8)
_I64 = ir.IntType(64)
_I128 = ir.IntType(128)


def popcount(x: Any) -> int:
    """Count the 1 bits of a uint64; int64."""
    return int(x).bit_count()


def trailing_zeros(x: Any) -> int:
    """Count the 0 bits below the lowest 1 bit of a uint64; 64 for 0; int64."""
    value = int(x)
    return (value & -value).bit_length() - 1 if value else 64


def multiply_fold(a: Any, b: Any) -> Any:
    """Multiply two uint64 to 128 bits and xor the halves (the mixing step of XXH3); uint64."""
    product = int(a) * int(b)
    return np.uint64((product & _MASK64) ^ (product >> 64))


def load64(data: Any, at: int) -> Any:
    """Read 8 bytes of a uint8 array from index `at` as a little-endian uint64; unaligned, unchecked."""
    return np.uint64(int.from_bytes(bytes(data[at : at + 8]), "little"))


def load32(data: Any, at: int) -> Any:
    """Read 4 bytes of a uint8 array from index `at` as a little-endian uint32, widened to uint64."""
    return np.uint64(int.from_bytes(bytes(data[at : at + 4]), "little"))


@intrinsic
def _ctpop(typingctx: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def _cttz(typingctx: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@intrinsic
def _mul_fold(typingctx: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = [builder.zext(arg, _I128) for arg in args]
        product = builder.mul(*wide)
        high = builder.lshr(product, ir.Constant(_I128, 64))
        return builder.trunc(builder.xor(product, high), _I64)

    return types.uint64(types.uint64, types.uint64), codegen


def _loader(width: int) -> Any:
    @intrinsic
    def load(typingctx: Any, data: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            start = builder.gep(builder.bitcast(array.data, cgutils.voidptr_t), [args[1]])
            pointer = builder.bitcast(start, ir.IntType(width).as_pointer())
            value = builder.load(pointer)
            value.align = 1
            return builder.zext(value, _I64) if width < 64 else value

        return types.uint64(data, types.int64), codegen

    return load


_load64 = _loader(64)
_load32 = _loader(32)


@overload(popcount, inline="always")
def _popcount(x):
    return lambda x: _ctpop(x)


@overload(trailing_zeros, inline="always")
def _trailing_zeros(x):
    return lambda x: _cttz(x)


@overload(multiply_fold, inline="always")
def _multiply_fold(a, b):
    return lambda a, b: _mul_fold(a, b)


@overload(load64, inline="always")
def _load64_overload(data, at):
    return lambda data, at: _load64(data, at)


@overload(load32, inline="always")
def _load32_overload(data, at):
    return lambda data, at: _load32(data, at)
