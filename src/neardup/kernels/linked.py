"""Compile functions that only kernels call just as far as is needed to link them into kernels.

Numba optimises each function by itself and makes machine code of it, as if Python called it; then
it does the same to each caller, with all that the caller links. For these functions that is lost:
nobody runs their own code, and what they are linked into is optimised as a whole. Without it the
first start takes a quarter less, and the kernels are as fast (decision 0009).

The cache keeps them too, so that each is compiled once for all kernels that call it: a kernel of
another command is mostly made of functions that an earlier command has compiled (decision 0024).
"""

from __future__ import annotations

import itertools
import secrets
from typing import TYPE_CHECKING, Any, Final

import llvmlite.binding
import numba.core.bytecode
import numba.core.codegen
import numba.core.compiler
import numba.core.compiler_machinery
import numba.core.typed_passes
from numba import _dynfunc, njit, types  # type: ignore[attr-defined]

from neardup.kernels.cache import Implementation, KernelCache
from neardup.kernels.passes import KernelCompiler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["linked", "without_literals"]

bytecode: Final[Any] = numba.core.bytecode
codegen: Final[Any] = numba.core.codegen
compiler: Final[Any] = numba.core.compiler
machinery: Final[Any] = numba.core.compiler_machinery
typed_passes: Final[Any] = numba.core.typed_passes

_NO_CODE: Final = 0

# Numba counts functions from 1 in each process, and their numbers are in the names of symbols. Code
# of two processes meets here in one module, where equal names must mean equal code: two closures of
# one line of Numba's, as those of min and max, differ in nothing else.
bytecode.FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))  # noqa: SLF001


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into that of others, and neither optimised nor run by itself."""

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 - there is none
        self._ensure_finalized()
        return _NO_CODE

    def _optimize_final_module(self) -> None:
        """Do nothing: code is optimised with the kernel that links it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        """The name and the bitcode, which can be linked, since there is no object code."""
        return self.name, self._final_module.as_bitcode()

    @classmethod
    def read(cls, generator: Any, name: str, bitcode: bytes) -> _Library:
        """Make a library from the results of `serialize_using_object_code`."""
        library = cls(generator, name)
        library._final_module = llvmlite.binding.parse_bitcode(bitcode)
        library._finalize_final_module()
        return library


@machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(typed_passes.NativeLowering):  # type: ignore[misc]
    """Numba's own lowering pass, but into a `_Library`."""

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
        entry = _entry(what, lowered.env, library)
        context.insert_user_function(entry, what, [library])
        state.reload_init.extend(library._reload_init)  # noqa: SLF001 - as the pass does
        state["cr"] = lowered._replace(cfunc=entry)
        return done


def _entry(what: Any, environment: Any, library: _Library) -> Any:
    module = what.lookup_module()
    return _dynfunc.make_function(module, what.qualname, "", _NO_CODE, environment, (library,))


class _Implementation(Implementation):
    """A Numba implementation that its library serialises."""

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        (name, bitcode), what, environment, signature, *_, reload_init, environments = payload
        for function in reload_init:
            function()
        library = _Library.read(target_context.codegen(), name, bitcode)
        return compiler.compile_result(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=_entry(what, environment, library),
            fndesc=what,
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=reload_init,
            referenced_envs=environments,
        )


class _LinkedCache(KernelCache):
    """The linked forms of a function. Nobody waits: two processes may compile the same one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Look at no file yet."""
        super().__init__(function, _Implementation(function))

    def _wait_for_others(self) -> bool:
        return False


class _Linked(KernelCompiler):
    """A compiler for what is linked."""

    LOWERING = _LinkedLowering


def linked(function: Callable[..., Any], options: Mapping[str, bool]) -> Any:
    """Compile a function for kernels to call."""
    compiled: Any = njit(**options, pipeline_class=_Linked)(function)
    compiled._cache = _LinkedCache(function)  # noqa: SLF001 - as its enable_caching does
    return compiled


def without_literals(compiled: Any) -> Any:
    """Compile a function once for all literal numbers in the source of its callers.

    By default it has a form for each. That matters where a loop runs a constant number of times:
    fingerprints took a sixth longer without.
    """
    form_for = compiled.get_call_template
    compiled.get_call_template = lambda given, named: form_for(
        tuple(types.unliteral(each) for each in given),
        {name: types.unliteral(each) for name, each in named.items()},
    )
    return compiled
