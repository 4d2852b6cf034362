"""Interrupts: one ends a run in good order, a second one at once; a stretch can hold the first off.

A process that is ended by SIGINT gives 130, by SIGTERM 143, as shells say of such a process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "EXIT_CODE_OF",
    "Interrupts",
    "end_with",
    "last_of_all",
    "leave_at_once",
    "uninterrupted",
]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
EXIT_CODE_OF: Final = {each: 128 + each for each in SIGNALS}


def leave_at_once(number: int, _: Any = None) -> None:
    """Handle a signal while there is nothing to put in order, or when nobody wants to wait."""
    os._exit(128 + number)


def end_with(code: int) -> None:
    """From now on a first SIGINT or SIGTERM ends the process with this code, which is decided."""
    if threading.current_thread() is threading.main_thread():
        for each in SIGNALS:
            if signal.getsignal(each) != signal.SIG_IGN:
                signal.signal(each, lambda *_: os._exit(code))


def last_of_all() -> None:
    """Let signals be: the interpreter, as it ends, would give them back to the system, which kills.

    For `atexit`: by then the exit code is decided and threads are done.
    """
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


class Interrupts:
    """A context in which the first SIGINT or SIGTERM raises KeyboardInterrupt, and a second ends.

    Signals that were ignored before, as those of a background job, stay so.
    """

    def __init__(self) -> None:
        """Handle nothing yet."""
        self.exit_code = EXIT_CODE_OF[signal.SIGINT]
        self.error = KeyboardInterrupt()
        """What is raised: notes of it say what the interrupted left behind."""
        self._before: dict[Any, Any] = {}

    def __enter__(self) -> Self:
        """Begin to handle them, in the main thread."""
        if threading.current_thread() is threading.main_thread():
            for each in SIGNALS:
                if signal.getsignal(each) != signal.SIG_IGN:
                    self._before[each] = signal.signal(each, self._first)
        return self

    def __exit__(self, *_: object) -> None:
        """Handle them as before."""
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def _first(self, number: int, _: Any) -> None:
        self.exit_code = 128 + number
        for each in self._before:
            signal.signal(each, leave_at_once)
        raise self.error


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold a first SIGINT or SIGTERM off until the body is done; a second one comes through."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = {each: signal.getsignal(each) for each in SIGNALS}

    def hold(number: int, frame: Any) -> None:
        handler = before[signal.Signals(number)]
        if held and callable(handler):
            handler(number, frame)
        held.append(number)

    caught = [each for each in SIGNALS if callable(before[each])]
    for each in caught:
        signal.signal(each, hold)
    try:
        yield
    finally:
        for each in caught:
            signal.signal(each, before[each])
    if held:
        signal.raise_signal(held[0])
