"""Decorators that compile kernels: for calls from Python, or from other kernels only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from neardup.kernels.compiler import IS_PLAIN, njit, numba_version

if TYPE_CHECKING:
    from collections.abc import Callable


LINKED: Final = ("0.68.",)
"""Versions of Numba that `linked` and `passes` were tested with; others compile the usual way."""

_USES_LINKED: Final = numba_version.startswith(LINKED) and not IS_PLAIN


def _lighter() -> dict[str, Any]:
    if not _USES_LINKED:
        return {}
    from neardup.kernels.passes import KernelCompiler  # other versions may lack what it uses

    return {"pipeline_class": KernelCompiler, "no_cfunc_wrapper": True}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, once a machine: see `cache`. It may allocate."""
    compiled: Any = njit(nogil=True, **_lighter())(function)
    if not IS_PLAIN:
        from neardup.kernels.cache import KernelCache  # which loads Numba

        compiled._cache = KernelCache(function)  # noqa: SLF001 - as its enable_caching does
    return compiled


def _called_by_kernels(**options: bool) -> Callable[[Callable[..., Any]], Any]:
    """Compile without the wrappers that Python would need, and keep what kernels link."""
    options |= {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if not _USES_LINKED:
        return cast("Callable[[Callable[..., Any]], Any]", njit(**options))
    from neardup.kernels.linked import linked  # other versions may lack what it builds upon

    return lambda function: linked(function, options)


inner: Final = _called_by_kernels(_nrt=False)
"""The decorator of functions that only kernels call and that must not allocate.

They are compiled without reference counts, which would cost an atomic operation for every array
that a loop touches or passes on (measured: 3 times slower), and without the wrappers that Python
would need."""


inlined: Final = _called_by_kernels(_nrt=False, forceinline=True)
"""As `inner`, and always compiled into the caller: for what runs once a character."""


def general(function: Callable[..., Any]) -> Any:
    """As `inner`, compiled once for all literal numbers that callers pass, such as columns."""
    compiled = inner(function)
    if not _USES_LINKED:
        return compiled
    from neardup.kernels.linked import without_literals

    return without_literals(compiled)


making: Final = _called_by_kernels()
"""The decorator of functions that only kernels call and that may make arrays, unlike `inner`."""


@inner
def fill(array: Any, begin: int, end: int, value: Any) -> None:
    """Set array[begin:end] to `value`; as a slice assignment it would take seconds to compile."""
    for i in range(begin, end):
        array[i] = value


@inner
def move(source: Any, count: int, target: Any) -> None:
    """Copy source[:count] to `target`; as a slice assignment it would take seconds to compile."""
    for i in range(count):
        target[i] = source[i]
