"""The two ways in which kernels are compiled."""

from __future__ import annotations

from typing import Any, Final

from numba import njit

kernel: Final[Any] = njit(cache=True, nogil=True)
"""Called from Python; may allocate."""

inner: Final[Any] = njit(nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Called from kernels only; must not allocate. Compiled without reference counts, which would cost
an atomic operation for every array that a loop touches or passes on (measured: 3 times slower), and
without the wrappers that Python would need."""
