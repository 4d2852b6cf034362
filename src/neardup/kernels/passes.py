"""Numba's compiler with the passes that kernels need, and without work that it repeats.

Most of a first start is Numba's own Python: passes that find nothing to do (kernels have no
closures, no generators, no parallel loops), an analysis of all variables after each of them, and
what the same operators give for the same types. All of that is left out; the compiled code is the
same (decision 0024).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numba.core.compiler
import numba.core.compiler_machinery
import numba.core.typed_passes
import numba.core.typing.context
import numba.core.untyped_passes
from numba import types

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KernelCompiler"]

compiler: Final[Any] = numba.core.compiler
machinery: Final[Any] = numba.core.compiler_machinery
typed: Final[Any] = numba.core.typed_passes
typing_context: Final[Any] = numba.core.typing.context
untyped: Final[Any] = numba.core.untyped_passes

_PLAIN: Final = (types.Number, types.Boolean, types.Array)
"""Types for which Numba alone declares operators and functions, once for all."""
_Context: Final[Any] = typing_context.Context
_OWN: Final = "resolve_function_type"
_signatures: Final[dict[tuple[Any, ...], Any]] = {}


class KernelCompiler(compiler.CompilerBase):  # type: ignore[misc]
    """A compiler for `njit(pipeline_class=)`."""

    LOWERING: Any = typed.NativeLowering

    def define_pipelines(self) -> list[Any]:
        """The one list of passes."""
        passes = _Passes("kernel")
        for each in (
            untyped.TranslateByteCode,
            untyped.FixupArgs,
            untyped.IRProcessing,
            untyped.RewriteSemanticConstants,
            untyped.DeadBranchPrune,
            untyped.GenericRewrites,
            untyped.ReconstructSSA,
            untyped.DeadBranchPrune,
            typed.NopythonTypeInference,
            typed.PreLowerStripPhis,
            typed.InlineOverloads,
            typed.NopythonRewrites,
            typed.IRLegalization,
            self.LOWERING,
            typed.NoPythonBackend,
        ):
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]

    def _compile_core(self) -> Any:
        with _functions_resolved_once():
            return super()._compile_core()


class _Passes(machinery.PassManager):  # type: ignore[misc]
    """A manager that runs passes one after the other; each makes its own analysis."""

    def _runPass(self, index: int, each: Any, state: Any) -> None:  # noqa: ARG002, N802 - Numba's
        each.analysis = self._analysis
        each.run_pass(state)


@contextmanager
def _functions_resolved_once() -> Iterator[None]:
    """Let Numba resolve each of its own functions for plain types once in a process.

    A thread that compiles holds Numba's lock, so no other thread meets the change.
    """
    if _OWN in vars(_Context):  # for a function that calls this one
        yield
        return
    setattr(_Context, _OWN, _resolve_once)
    try:
        yield
    finally:
        delattr(_Context, _OWN)


def _resolve_once(context: Any, function: Any, given: Any, named: Any) -> Any:
    resolve = typing_context.BaseContext.resolve_function_type
    if named or not isinstance(function, types.Function) or not _are_plain(given):
        return resolve(context, function, given, named)
    key = function, *given
    if key not in _signatures:
        _signatures[key] = resolve(context, function, given, named)
    return _signatures[key]


def _are_plain(given: Any) -> bool:
    return all(isinstance(each, _PLAIN) for each in given)
