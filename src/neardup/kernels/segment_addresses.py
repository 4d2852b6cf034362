"""Arrays by address: those of many segments are one argument, which costs one unboxing.

The caller keeps each array alive until the kernel returns.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.kernels.bits import compiled_as
from neardup.kernels.compiler import intrinsic, ir, populate_array, types

if TYPE_CHECKING:
    from neardup.kernels.lowering import Builder, Context, Signature, Type, Typing, Values


def _array(kind: Any) -> Any:
    @intrinsic
    def array(typingctx: Typing, address: Type, size: Type) -> Any:
        made = types.Array(kind, 1, "C")

        def codegen(context: Context, builder: Builder, signature: Signature, args: Values) -> Any:
            whole = context.make_array(made)(context, builder)
            element = context.get_data_type(kind)
            step = ir.Constant(ir.IntType(64), kind.bitwidth // 8)
            # Without meminfo the array owns nothing: dropping it neither counts nor frees.
            fill: Any = populate_array
            fill(
                whole, data=builder.inttoptr(args[0], element.as_pointer()), shape=[args[1]],
                strides=[step], itemsize=step, meminfo=None,
            )  # fmt: skip
            return whole._getvalue()  # noqa: SLF001 - as Numba's own carray does

        return made(types.int64, types.int64), codegen

    return array


_bytes, _uint16s, _uint32s, _int64s, _uint64s, _float64s = map(
    _array,
    (
        types.uint8,
        types.uint16,
        types.uint32,
        types.int64,
        types.uint64,
        types.float64,
    ),
)


def _plain(address: int, size: int, kind: Any) -> Any:
    memory = (ctypes.c_char * (int(size) * np.dtype(kind).itemsize)).from_address(int(address))
    return np.ndarray((int(size),), kind, memory)


@compiled_as(_bytes)
def bytes_at(address: int, size: int) -> Any:
    """The uint8 array of this size at an address."""
    return _plain(address, size, np.uint8)


@compiled_as(_uint16s)
def uint16s(address: int, size: int) -> Any:
    """The uint16 array of this size at an address."""
    return _plain(address, size, np.uint16)


@compiled_as(_uint32s)
def uint32s(address: int, size: int) -> Any:
    """The uint32 array of this size at an address."""
    return _plain(address, size, np.uint32)


@compiled_as(_int64s)
def int64s(address: int, size: int) -> Any:
    """The int64 array of this size at an address."""
    return _plain(address, size, np.int64)


@compiled_as(_uint64s)
def uint64s(address: int, size: int) -> Any:
    """The uint64 array of this size at an address."""
    return _plain(address, size, np.uint64)


@compiled_as(_float64s)
def float64s(address: int, size: int) -> Any:
    """The float64 array of this size at an address."""
    return _plain(address, size, np.float64)


def addresses_of(arrays: list[tuple[Any, Any]]) -> Any:
    """The address and the size of each array, one array after the other; int64.

    Args:
        arrays: Pairs of an array and the type that a kernel takes it for.

    Raises:
        TypeError: If one has another type, or is not contiguous.
    """
    for array, kind in arrays:
        if array.dtype != kind or not array.flags.c_contiguous:
            raise TypeError(f"{array.dtype} of strides {array.strides} is no {kind} array")
    places = [(array.__array_interface__["data"][0], array.size) for array, _ in arrays]
    return np.array(places, np.int64).reshape(-1)
