"""Numba kernels: arrays in, arrays out; they import only numpy and numba.

Every kernel is plain Python as well: with NUMBA_DISABLE_JIT=1 the same source runs uncompiled.
Import a kernel inside the function that calls it, so that `import neardup` does not import Numba.
At a prompt or in a notebook, one line says why the first call of a fresh install takes seconds;
programs print nothing, and the command line has a message of its own.
"""

from __future__ import annotations

import sys
from typing import Any

__all__: list[str] = []


def _tell_of_compiling() -> None:
    from numba.core import event

    has_said: list[bool] = []

    class Once(event.Listener):
        def on_start(self, event: Any) -> None:
            dispatcher = event.data.get("dispatcher")
            is_ours = str(getattr(dispatcher, "py_func", None) and dispatcher.py_func.__module__)
            if is_ours.startswith(__name__) and not has_said:
                has_said.append(True)
                sys.stderr.write(
                    "neardup: compiling kernels for this processor; once, the next is quick\n"
                )

        def on_end(self, event: Any) -> None:
            pass

    register: Any = event.register
    register("numba:compile", Once())


if hasattr(sys, "ps1"):
    _tell_of_compiling()
