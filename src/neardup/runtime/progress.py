"""Progress of long work, reported as steps that begin, advance and end."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Progress", "Quiet", "Stopwatch", "shown"]


class Progress(Protocol):
    """The interface to which the pipeline reports progress."""

    def begin(self, step: str, total: int | None = None) -> None:
        """Begin a step of `total` units (bytes where they are known), or of unknown length."""

    def advance(self, units: int) -> None:
        """Report progress in the current step."""


class Quiet:
    """A Progress that reports nothing."""

    def begin(self, step: str, total: int | None = None) -> None:
        """Do nothing."""

    def advance(self, units: int) -> None:
        """Do nothing."""


class Stopwatch:
    """A Progress that also times the steps.

    Example:
        >>> watch = Stopwatch(Quiet())
        >>> watch.begin("read")
        >>> list(watch.stop())
        ['read', 'total']
    """

    def __init__(self, progress: Progress) -> None:
        """Start the clock of the whole run."""
        self._progress = progress
        self._started = self._step_start = time.perf_counter()
        self._step: str | None = None
        self._seconds: dict[str, float] = {}

    def begin(self, step: str, total: int | None = None) -> None:
        """End the current step and begin the next."""
        self._end_step()
        self._step = step
        self._progress.begin(step, total)

    def stop(self) -> dict[str, float]:
        """End the last step; returns the seconds of each step and, as `total`, of all."""
        self._end_step()
        return self._seconds | {"total": round(time.perf_counter() - self._started, 4)}

    def _end_step(self) -> None:
        now = time.perf_counter()
        if self._step is not None:
            before = self._seconds.get(self._step, 0.0)
            self._seconds[self._step] = round(before + now - self._step_start, 4)
        self._step_start, self._step = now, None


def shown(text: str, *, lines: bool = False) -> str:
    r"""A text with control characters and line ends escaped, safe on a terminal.

    Args:
        text: Of anybody: an id, a path, a document.
        lines: Whether line ends stay, in a text of several lines.

    Example:
        >>> shown("a\x1b[2Jb\u202ec\n")
        'a\\x1b[2Jb\\u202ec\\n'
    """
    if text.isprintable():
        return text
    kept = "\n" if lines else ""
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)
