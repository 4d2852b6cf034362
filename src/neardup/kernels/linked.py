"""Functions that only kernels call are compiled as far as they are linked into these, no further.

Numba optimises each function by itself and makes machine code of it, as if Python called it; then
it does the same to each caller, with all that the caller links. For these functions that is lost:
nobody runs their own code, and what they are linked into is optimised as a whole. Without it the
first start takes a quarter less, and the kernels are as fast (decision 0009).
"""

from __future__ import annotations

from typing import Any, Final

import numba.core.codegen
import numba.core.compiler
import numba.core.compiler_machinery
import numba.core.typed_passes
from numba import _dynfunc  # type: ignore[attr-defined]

__all__ = ["Linked"]

codegen: Final[Any] = numba.core.codegen
compiler: Final[Any] = numba.core.compiler
machinery: Final[Any] = numba.core.compiler_machinery
typed_passes: Final[Any] = numba.core.typed_passes

_NO_CODE: Final = 0


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into that of others, and neither optimised nor run by itself."""

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 - there is none
        self._ensure_finalized()
        return _NO_CODE

    def _optimize_final_module(self) -> None:
        """Leave it to whoever links it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(typed_passes.NativeLowering):  # type: ignore[misc]
    """As Numba's own last pass, into a `_Library`."""

    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        context, flags = state.targetctx, state.flags
        state.library = library = _Library(context.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        state.flags = flags.copy()
        state.flags.no_compile = True
        done: bool = super().run_pass(state)
        state.flags = flags
        lowered = state["cr"]
        library.finalize()
        what = lowered.fndesc
        entry = _dynfunc.make_function(
            what.lookup_module(), what.qualname, "", _NO_CODE, lowered.env, (library,)
        )
        context.insert_user_function(entry, what, [library])
        state.reload_init.extend(library._reload_init)  # noqa: SLF001 - as the pass does
        state["cr"] = lowered._replace(cfunc=entry)
        return done


class Linked(compiler.CompilerBase):  # type: ignore[misc]
    """A compiler for `njit(pipeline_class=)`: Numba's, but for its last pass."""

    def define_pipelines(self) -> list[Any]:
        """Give the one list of passes."""
        passes = machinery.PassManager("linked")
        make = compiler.DefaultPassBuilder
        for part in (
            make.define_untyped_pipeline(self.state),
            make.define_typed_pipeline(self.state),
            make.define_nopython_lowering_pipeline(self.state),
        ):
            for each, why in part.passes:
                ours = _LinkedLowering if each is typed_passes.NativeLowering else each
                passes.add_pass(ours, why)
        passes.finalize()
        return [passes]
