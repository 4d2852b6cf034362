"""`neardup compile`: compiles all kernels before they are needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["compile_kernels"]


def compile_kernels(
    into: Annotated[
        Path | None,
        typer.Option(
            "--into",
            metavar="DIR",
            help="Folder for the compiled kernels, which runs find if NUMBA_CACHE_DIR names"
            " it; by default next to the package.",
        ),
    ] = None,
) -> None:
    """Compile all kernels ahead of the first run, such as when an image is built.

    Later runs only read them, so the folder may be read-only and have another owner. For
    machines with an older CPU than this one, set NUMBA_CPU_NAME=x86-64-v3, or their CPU.

    Example:
    neardup compile --into /tmp/neardup-kernels
    """
    if into is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(into.absolute())

    from neardup.cli.screen import progress
    from neardup.pipeline.compilation import compile_all

    with progress() as reporter:
        compile_all(reporter)
