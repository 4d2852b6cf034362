"""Progress where there is no terminal: a line now and then, for logs and pipes."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Annotated, Any, Final

import typer

from neardup.cli.options import run_option
from neardup.cli.signatures import join_options, option

__all__ = ["Lines", "lines_wanted", "tells_progress"]

_LINE_SECONDS: Final = 30.0
lines_wanted: Final[ContextVar[bool]] = ContextVar("lines_wanted", default=False)
_ProgressLines = Annotated[
    bool,
    run_option(
        "--progress",
        help="Print a line for each step and each half minute, also in a pipe or a log.",
        show_default=False,
    ),
]


def tells_progress(command: Callable[..., None]) -> Any:
    """Decorate a command: it takes --progress."""

    @functools.wraps(command)
    def run(*, progress: bool = False, **given: Any) -> None:
        token = lines_wanted.set(progress)
        try:
            command(**given)
        finally:
            lines_wanted.reset(token)

    return join_options(command, run, [option("progress", _ProgressLines, default=False)])


class Lines:
    """A line on the standard error at each step, and each half minute within one."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began = self._told = time.monotonic()
        self._step, self._done = "", 0
        self._total: int | None = None

    def begin(self, step: str, total: int | None = None) -> None:
        """Say where the step before ended, and that this one begins."""
        self.end()
        self._step, self._total, self._done = step, total, 0
        self._tell()

    def advance(self, units: int) -> None:
        """Count, and say so now and then."""
        self._done += units
        if time.monotonic() - self._told >= _LINE_SECONDS:
            self._tell()

    def end(self) -> None:
        """Say where the last step ended."""
        if self._step and (self._done or time.monotonic() - self._told >= 1):
            self._tell()

    def _tell(self) -> None:
        self._told = time.monotonic()
        share = f" of {self._total:,}" if self._total else ""
        done = f" {self._done:,}{share} bytes" if self._done or self._total else ""
        seconds = self._told - self._began
        typer.echo(f"neardup: {seconds:,.0f} s: {self._step}{done}", err=True)
