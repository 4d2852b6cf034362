"""Deadlines of slow requests: once a second the loop looks at everything that waits.

A timer for each head and each piece of a body took a tenth of a request's time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Deadlines", "Wait"]

INTERVAL: Final = 1.0
"""Seconds between two looks: so much later than its limit a wait may end."""


class Wait:
    """One that is waited for, and what is done if it does not come in time."""

    __slots__ = ("end", "is_late", "late")

    def __init__(self, end: float, late: Callable[[], object]) -> None:
        """Begin to wait until the loop's time is `end`."""
        self.end, self.late, self.is_late = end, late, False


class Deadlines:
    """The deadlines of all waits of one service; only its event loop uses them.

    Args:
        loop: Whose clock counts.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for nothing yet."""
        self._time = loop.time
        self._waits: set[Wait] = set()

    def begin(self, seconds: float, late: Callable[[], object]) -> Wait:
        """Call `late` unless the wait ends within a number of seconds."""
        wait = Wait(self._time() + seconds, late)
        self._waits.add(wait)
        return wait

    def end(self, wait: Wait) -> None:
        """Remove the deadline: the wait is over."""
        self._waits.discard(wait)

    async def within(self, seconds: float, call: Callable[[], Awaitable[Any]]) -> Any:
        """The result of a call.

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
        """Look at what waits, until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            now = self._time()
            for wait in [each for each in self._waits if each.end <= now]:
                self._waits.discard(wait)
                wait.is_late = True
                wait.late()
