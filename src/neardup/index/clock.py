"""When documents were added: runs of insertion numbers, each with its time."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

__all__ = ["Clock"]


class Clock:
    """From each run's first number on, documents were added at the run's time.

    Args:
        numbers: int64, ascending: the first of each run.
        times: float64, ascending: seconds since 1970.

    Example:
        >>> clock = Clock()
        >>> clock.note(0, 100.0), clock.note(5, 200.0)
        (None, None)
        >>> clock.first_since(150.0, 9)
        5
    """

    def __init__(self, numbers: Any = (), times: Any = ()) -> None:
        """Take the runs."""
        self._numbers = array("q", numbers)
        self._times = array("d", times)

    @classmethod
    def joined(cls, runs: list[tuple[Any, Any]]) -> Clock:
        """One clock of runs that follow each other, as `since` gives them."""
        clock = cls()
        for numbers, times in runs:
            for number, time in zip(numbers.tolist(), times.tolist(), strict=True):
                clock.note(number, time)
        return clock

    def __len__(self) -> int:
        """Runs."""
        return len(self._numbers)

    def note(self, number: int, now: float) -> None:
        """Documents from this number on are added now."""
        if not self._times or now > self._times[-1]:
            self._numbers.append(number)
            self._times.append(now)

    def first_since(self, before: float, end: int) -> int:
        """The first number that was added at this time or later; `end` if there is none."""
        at = bisect_left(self._times, before)
        return self._numbers[at] if at < len(self._numbers) else end

    def since(self, number: int) -> tuple[Any, Any]:
        """The numbers and times of the runs that reach beyond `number`, the first cut to it."""
        at = max(bisect_right(self._numbers, number) - 1, 0)
        numbers = np.maximum(np.array(self._numbers[at:], np.int64), number)
        return numbers, np.array(self._times[at:], np.float64)

    def to_the_second(self, first: int) -> Clock:
        """The same for numbers from `first` on, with one run for all of a second.

        It has the last of their times, so that nothing expires early.
        """
        numbers, times = self.since(first)
        seconds = np.floor(times)
        begins = np.flatnonzero(np.append(True, seconds[1:] != seconds[:-1])[: len(times)])
        ends = np.append(begins[1:], len(times))[: len(begins)] - 1
        return Clock(numbers[begins].tolist(), times[ends].tolist())
