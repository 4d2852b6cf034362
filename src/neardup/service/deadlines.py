"""Deadlines of slow requests: the event loop checks everything that waits once a second.

A timer for each head and each piece of a body took a tenth of a request's time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Deadlines", "Wait"]

INTERVAL: Final = 1.0
"""Seconds between two checks: a wait may exceed its limit by this time."""


class Wait:
    """A pending wait, and the call to make when it takes too long."""

    __slots__ = ("end", "is_late", "late")

    def __init__(self, end: float, late: Callable[[], object]) -> None:
        """Start a wait that may last until the loop's time is `end`."""
        self.end, self.late, self.is_late = end, late, False


class Deadlines:
    """The deadlines of all waits of one service; only its event loop uses them.

    Args:
        loop: Whose clock counts.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start without any wait."""
        self._time = loop.time
        self._waits: set[Wait] = set()

    def begin(self, seconds: float, late: Callable[[], object]) -> Wait:
        """Start a wait: `late` is called unless it ends within a number of seconds."""
        wait = Wait(self._time() + seconds, late)
        self._waits.add(wait)
        return wait

    def end(self, wait: Wait) -> None:
        """Remove the deadline of a wait that is over."""
        self._waits.discard(wait)

    async def within(self, seconds: float, call: Callable[[], Awaitable[Any]]) -> Any:
        """The result of a call that must end within a number of seconds.

        Raises:
            TimeoutError: If it takes longer.
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        wait = self.begin(seconds, task.cancel)
        try:
            return await call()
        except asyncio.CancelledError:
            if not wait.is_late or task.uncancel():  # somebody else cancelled it as well
                raise
            raise TimeoutError from None
        finally:
            self.end(wait)

    async def watch(self) -> None:
        """Check the deadlines once each INTERVAL, until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            now = self._time()
            for wait in [each for each in self._waits if each.end <= now]:
                self._waits.discard(wait)
                wait.is_late = True
                wait.late()
