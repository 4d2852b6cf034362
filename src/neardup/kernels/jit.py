"""The ways in which kernels are compiled: called from Python, or from kernels only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from numba import __version__, config, njit

from neardup.kernels.cache import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable


def kernel(function: Callable[..., Any]) -> Any:
    """Called from Python; may allocate. Compiled once a machine: see `cache`."""
    compiled: Any = njit(nogil=True)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        compiled._cache = KernelCache(function)  # noqa: SLF001 - as its enable_caching does
    return compiled


LINKED: Final = ("0.68.",)
"""Versions of Numba that `linked` was tried with; others compile as they do for everybody."""

_USES_LINKED: Final = __version__.startswith(LINKED) and not config.DISABLE_JIT  # type: ignore[attr-defined]


def _called_by_kernels(**options: bool) -> Callable[[Callable[..., Any]], Any]:
    """Compile without the wrappers that Python would need, and keep what kernels link."""
    options |= {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if not _USES_LINKED:
        return cast("Callable[[Callable[..., Any]], Any]", njit(**options))
    from neardup.kernels.linked import Linked, LinkedCache  # other versions may lack what it uses

    def decorate(function: Callable[..., Any]) -> Any:
        compiled: Any = njit(**options, pipeline_class=Linked)(function)
        compiled._cache = LinkedCache(function)  # noqa: SLF001 - as its enable_caching does
        return compiled

    return decorate


inner: Final = _called_by_kernels(_nrt=False)
"""Called from kernels only; must not allocate. Compiled without reference counts, which would cost
an atomic operation for every array that a loop touches or passes on (measured: 3 times slower), and
without the wrappers that Python would need."""


inlined: Final = _called_by_kernels(_nrt=False, forceinline=True)
"""As `inner`, and always compiled into the caller: for what runs once a character."""


making: Final = _called_by_kernels()
"""Called from kernels only; may make arrays, which `inner` must not."""


@inner
def fill(array: Any, begin: int, end: int, value: Any) -> None:
    """Set array[begin:end] to `value`; as a slice assignment it would take seconds to compile."""
    for i in range(begin, end):
        array[i] = value


@inner
def move(source: Any, count: int, target: Any) -> None:
    """Copy the first `count` elements; as a slice assignment it would take seconds to compile."""
    for i in range(count):
        target[i] = source[i]
