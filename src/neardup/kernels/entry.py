"""Calls of kernels that take microseconds: types are named once, not looked up at each call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.kernels.compiler import IS_PLAIN, njit

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["entry_point", "short_kernel"]


def short_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that keeps Python's lock, for work of microseconds: other threads wait for it.

    A thread that releases the lock waits, up to 5 ms, for each thread that takes and keeps it.
    """
    compiled: Any = njit(function)
    if not IS_PLAIN:
        from neardup.kernels.cache import KernelCache  # which loads Numba

        compiled._cache = KernelCache(function)  # noqa: SLF001 - as its enable_caching does
    return compiled


def entry_point(compiled: Any, *kinds: Any) -> Any:
    """The compiled code of a kernel for arguments of these types; with the JIT off the function.

    It does not check the types of its arguments: the caller does. Numbers that it
    returns are Python's.

    Args:
        compiled: A kernel of `short_kernel` or of `neardup.kernels.jit.kernel`.
        kinds: Numba's types of its arguments, such as int64.
    """
    if IS_PLAIN:
        return _with_numbers_of_python(compiled)
    compiled.compile(kinds)
    return compiled.get_overload(kinds)


def _with_numbers_of_python(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*arguments: Any) -> Any:
        value = function(*arguments)
        return value.item() if isinstance(value, np.generic) else value

    return called
