"""Interrupts: the first ends a run in good order, a second at once; some code holds the first off.

A process that is ended by SIGINT gives 130, by SIGTERM 143, as shells say of such a process. What
is loaded before the first handler is there is kept small: until then a signal ends Python its way.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import time

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Final, Self, TypeVar

    T = TypeVar("T")

__all__ = [
    "INTERRUPTED",
    "Interrupts",
    "note_what_is_there",
    "removes_what_is_left",
    "uninterrupted",
]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED: Final = 128 + signal.SIGINT
AGAIN_SECONDS: Final = 0.01
"""The seconds after which a postponed or lost interrupt comes again."""
MOST_PUT_OFF: Final = 500
LOADERS: Final = (
    "importlib._bootstrap",
    "neardup.kernels.cache",
    "numba.core.caching",
    "numba.core.codegen",
)
"""Code that must not be interrupted: a module would stay half loaded, and LLVM, whose callbacks let
no exception through, would leave out a kernel's code, so that Numba writes to address 0."""

_at_work: list[Interrupts] = []


class Interrupts:
    """The handler of SIGINT and SIGTERM in a process, from its first line to its last.

    - First there is nothing to put in order: each ends the process at once.
    - While `during` works, the first raises KeyboardInterrupt, but not while a module or a kernel
      is loaded, which is finished first; a second ends the process at once.
    - Then the exit code is decided, and a first one changes nothing; a second ends it at once.

    As a context it puts back, at its end, what was handled before. Signals that were ignored
    before, as those of a background job, stay so; so do all outside the main thread.
    """

    def __init__(self) -> None:
        """Set the initial state; no signal is handled yet."""
        self.exit_code: int | None = None
        """The exit code, once it is decided."""
        self.error = KeyboardInterrupt()
        """The raised interrupt, whose notes name what the run leaves behind."""
        self.what_is_there: list[str] = []
        """The message about what exists by now, whatever comes."""
        self.removals: list[Callable[[], None]] = []
        """Calls to make when `during` ends, since the end of a context may be interrupted."""
        self.number: int | None = None
        """The number of the signal that interrupted `during`."""
        self._is_working = self._is_done = self._is_told = self._is_due = False
        self._may_put_off = MOST_PUT_OFF
        self._before: dict[Any, Any] = {}
        self._thread, self._unraisable = _thread.get_ident(), sys.unraisablehook

    def begin(self) -> None:
        """Handle signals from now on."""
        for each in SIGNALS:
            if signal.getsignal(each) != signal.SIG_IGN:
                try:
                    self._before[each] = signal.signal(each, self._handle)
                except ValueError:  # not the main thread
                    return
        self._unraisable = sys.unraisablehook
        sys.unraisablehook = self._look_at_unraisable

    def __enter__(self) -> Self:
        """Call `begin`."""
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the former handlers."""
        for each, handler in self._before.items():
            signal.signal(each, handler)
        if self._before:
            sys.unraisablehook = self._unraisable

    @property
    def code(self) -> int:
        """The exit code of a process ended by the signal."""
        return 128 + self.number if self.number else INTERRUPTED

    def during(self, work: Callable[[], T]) -> T:
        """Run a call, and raise KeyboardInterrupt in it if a signal comes, but not after it."""
        _at_work.append(self)
        try:
            try:
                self._is_working = True
                return work()
            finally:
                self._is_done, self._is_working = True, False
        finally:  # a signal may have come as the other began, but none is raised from here on
            self._is_done, self._is_working = True, False
            _at_work.remove(self)
            for remove in reversed(self.removals):
                remove()

    def decide(self, code: int) -> int:
        """Fix the exit code: the process ends with it, whatever comes."""
        self.exit_code = code
        return code

    def leave(self) -> None:
        """End the process if its exit code is decided; the last of Python's exit handlers.

        By then threads are done and temporary files are gone. What would follow no signal may meet:
        Python gives signals back to the system, which kills; it kills itself where an interrupt
        came within `exec` of a text, such as a dataclass, although it was handled long ago; and
        libraries take down what an interrupt left half made.
        """
        if self.exit_code is None:
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):  # none, or none any more
                stream.flush()
        os._exit(self.exit_code)

    def _handle(self, number: int, frame: Any) -> None:
        if self._is_due:
            self._is_due = False
        elif self._is_told or not (self._is_working or self._is_done):
            os._exit(128 + number if self.exit_code is None else self.exit_code)
        self._is_told = True
        if not self._is_working or (_is_loading(frame) and self._put_off(number)):
            return
        self.number = number
        raise self.error

    def _put_off(self, number: int) -> bool:
        """Repeat the signal after AGAIN_SECONDS; returns whether that is possible."""
        self._may_put_off -= 1
        if self._may_put_off < 0:
            return False
        try:
            _thread.start_new_thread(self._send_again, (number,))
        except RuntimeError:  # no more threads
            return False
        return True

    def _send_again(self, number: int) -> None:
        time.sleep(AGAIN_SECONDS)
        if not self._is_working:
            return
        self._is_due = True
        if hasattr(signal, "pthread_kill"):  # it ends a call of the system that waits
            signal.pthread_kill(self._thread, number)
        else:
            signal.raise_signal(number)

    def _look_at_unraisable(self, problem: Any) -> None:
        """Raise again an interrupt that Python swallowed, as in a weakref's callback."""
        if problem.exc_value is not self.error or not self._put_off(self.code - 128):
            self._unraisable(problem)


def _is_loading(frame: Any) -> bool:
    """Whether the current code loads a module or a kernel."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name in LOADERS or name.startswith("llvmlite."):
            return True
        frame = frame.f_back
    return False


def note_what_is_there(what: str) -> None:
    """Set the message that the user gets if a signal ends this process's command."""
    for each in _at_work:
        each.what_is_there.append(what)


def removes_what_is_left(remove: Callable[[], None]) -> None:
    """Register a removal for the end of this process's command; it may run twice."""
    for each in _at_work:
        each.removals.append(remove)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A context that holds back the first SIGINT or SIGTERM; the second comes through."""
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = {each: signal.getsignal(each) for each in SIGNALS}

    def hold(number: int, frame: Any) -> None:
        handler = before[signal.Signals(number)]
        if received and callable(handler):
            handler(number, frame)
        received.append(number)

    caught = [each for each in SIGNALS if callable(before[each])]
    for each in caught:
        signal.signal(each, hold)
    try:
        yield
    finally:
        for each in caught:
            signal.signal(each, before[each])
    if received:
        signal.raise_signal(received[0])
