"""When documents were added: runs of insertion numbers, each with its time."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from neardup.runtime.types import Rows, Times

__all__ = ["Clock", "runs_of"]

EXACT_SECONDS: Final = 1024
"""Of so much time, a coarse clock tells each second; of twice as much, every two, and so on."""


class Clock:
    """From each run's first number on, documents were added at the run's time.

    Times follow the system's clock, also where it is set back. Runs are only added, so one clock
    serves all snapshots of an index: the numbers say what is whose.

    Args:
        numbers: int64, ascending: the first of each run.
        times: float64: seconds since 1970.

    Example:
        >>> clock = Clock()
        >>> clock.note(0, 100.0), clock.note(5, 200.0)
        (None, None)
        >>> clock.before(150.0, 9).tolist()
        [[0, 5]]
    """

    def __init__(self, numbers: Any = (), times: Any = ()) -> None:
        """Take the runs."""
        self._numbers = array("q", numbers)
        self._times = array("d", times)

    @classmethod
    def joined(cls, runs: list[tuple[Rows, Times]]) -> Clock:
        """One clock of runs that follow each other, as `since` gives them."""
        clock = cls()
        for numbers, times in runs:
            clock.extend(numbers, times)
        return clock

    def __len__(self) -> int:
        """Runs."""
        return len(self._numbers)

    def note(self, number: int, now: float) -> None:
        """Documents from this number on are added now."""
        while self._numbers and self._numbers[-1] >= number:  # of an addition that failed
            self._numbers.pop()
            self._times.pop()
        if not self._times or now != self._times[-1]:
            self._numbers.append(number)
            self._times.append(now)

    def extend(self, numbers: Rows, times: Times) -> None:
        """Runs that come after, as `since` gives them; the first may go on with the last."""
        if len(numbers):
            self.note(int(numbers[0]), float(times[0]))
            self._numbers.extend(numbers[1:].tolist())
            self._times.extend(times[1:].tolist())

    def before(self, time: float, end: int) -> Rows:
        """The ranges of numbers below `end` that were added before a time: int64 (ranges, 2)."""
        numbers, times = self.since(0, end)
        edges = np.append(numbers, end)
        old = np.flatnonzero(times < time)
        return np.stack([edges[old], edges[old + 1]], axis=1)

    def times_of(self, numbers: Rows) -> Times:
        """When documents were added: float64, for int64 numbers."""
        firsts, times = self.since(0)
        return times[np.searchsorted(firsts, numbers, side="right") - 1]

    def since(self, number: int, end: int | None = None) -> tuple[Rows, Times]:
        """The numbers and times of the runs from `number` to `end`, the first cut to it."""
        count = len(self._times)  # a writer may be adding
        last = count if end is None else bisect_left(self._numbers, end, 0, count)
        at = max(bisect_right(self._numbers, number, 0, last) - 1, 0)
        numbers = np.maximum(np.array(self._numbers[at:last], np.int64), number)
        return numbers, np.array(self._times[at:last], np.float64)

    def coarse(self, first: int, end: int) -> Clock:
        """The same for numbers from `first` to `end`, with few runs, however long it went.

        Times of the last EXACT_SECONDS are told to the second, older ones to a thousandth of their
        age. A run has the last of its documents' times, so that nothing expires early.
        """
        numbers, times = self.since(first, end)
        if not len(times):
            return Clock()
        age = np.maximum(times[-1] - times, EXACT_SECONDS)
        width = np.exp2(np.floor(np.log2(age / EXACT_SECONDS)))
        bucket = np.floor(times / width)
        is_first = np.append(True, (bucket[1:] != bucket[:-1]) | (width[1:] != width[:-1]))
        begins = np.flatnonzero(is_first)
        return Clock(numbers[begins].tolist(), np.maximum.reduceat(times, begins).tolist())


def runs_of(first: int, times: Times) -> tuple[Rows, Times]:
    """Runs, as `Clock.since` gives them, of documents with numbers from `first` on.

    Args:
        first: The number of the first.
        times: float64 (n,): when each was added.
    """
    is_first = np.append(True, times[1:] != times[:-1])[: len(times)]
    begins = np.flatnonzero(is_first)
    return first + begins, times[begins]
