"""Numba and LLVM, for all kernels; neither is loaded where kernels run as plain Python.

A small run of the command line runs them so: loading the two would take a fifth of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

__all__ = [
    "IS_PLAIN",
    "carray",
    "cgutils",
    "intrinsic",
    "ir",
    "njit",
    "numba_version",
    "populate_array",
    "typeof",
    "types",
]

IS_PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "") not in {"", "0"}
"""Whether kernels are plain Python functions."""

if TYPE_CHECKING or not IS_PLAIN:
    from llvmlite import ir
    from numba import __version__ as numba_version
    from numba import carray, config, njit, typeof, types  # type: ignore[attr-defined]
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np.arrayobj import populate_array

    IS_PLAIN = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]
else:

    class _Absent:
        """What intrinsics name as they are defined; nobody calls them."""

        def __getattr__(self, _name: str) -> Any:
            return self

        def __call__(self, *_arguments: Any) -> Any:
            return self

    carray = cgutils = intrinsic = ir = populate_array = typeof = types = _Absent()

    numba_version = ""

    def njit(*functions: Any, **_options: Any) -> Any:
        """A function as it is, or a decorator that leaves it so."""
        return functions[0] if functions else njit
