"""Times at which documents were added: runs of insertion numbers, each with its time."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.runtime.types import Rows, Times

__all__ = ["Clock", "runs_of"]

EXACT_SECONDS: Final = 1024
"""The last seconds for which a coarse clock tells each second; of twice as many every two, and so
on."""


class Clock:
    """A table of runs: documents from a run's first number on were added at the run's time.

    Times follow the system's clock, also where it is set back. A clock does not change: `noted` and
    `extended` make another, at the cost of the new runs. It appends to the arrays of the previous
    clock, behind what that one reads; where another clock did so already, as after a rollback, it
    copies them. Only one thread at a time may extend clocks that share arrays: the writer, under
    its lock.

    Args:
        numbers: int64, ascending: the first of each run.
        times: float64: seconds since 1970.

    Example:
        >>> clock = Clock().noted(0, 100.0)
        >>> later = clock.noted(5, 200.0)
        >>> clock.before(150.0, 9).tolist(), later.before(150.0, 9).tolist()
        ([[0, 9]], [[0, 5]])
    """

    __slots__ = ("_count", "_numbers", "_times")

    def __init__(self, numbers: Iterable[int] = (), times: Iterable[float] = ()) -> None:
        """Take the runs."""
        self._numbers = array("q", numbers)
        self._times = array("d", times)
        self._count = len(self._times)

    @classmethod
    def joined(cls, runs: list[tuple[Rows, Times]]) -> Clock:
        """One clock of consecutive runs, each from `since`."""
        clock = cls()
        for numbers, times in runs:
            clock = clock.extended(numbers, times)
        return clock

    def __len__(self) -> int:
        """Runs."""
        return self._count

    def noted(self, number: int, now: float) -> Clock:
        """A clock with one more run: documents from this number on are added now."""
        if self._count and now == self._times[self._count - 1]:
            return self
        return self._followed_by((number,), (now,))

    def extended(self, numbers: Rows, times: Times) -> Clock:
        """A clock with later runs, from `since`; the first may continue the last run."""
        goes_on = bool(len(times) and self._count and times[0] == self._times[self._count - 1])
        numbers, times = numbers[goes_on:], times[goes_on:]
        return self._followed_by(numbers.tolist(), times.tolist()) if len(times) else self

    def before(self, time: float, end: int) -> Rows:
        """The ranges of numbers below `end` that were added before a time: int64 (ranges, 2)."""
        numbers, times = self.since(0, end)
        edges = np.append(numbers, end)
        old = np.flatnonzero(times < time)
        return np.stack([edges[old], edges[old + 1]], axis=1)

    def times_of(self, numbers: Rows) -> Times:
        """The times at which documents were added: float64, for int64 numbers."""
        firsts, times = self.since(0)
        return times[np.searchsorted(firsts, numbers, side="right") - 1]

    def since(self, number: int, end: int | None = None) -> tuple[Rows, Times]:
        """The numbers and times of the runs from `number` to `end`, the first cut to it."""
        last = self._count if end is None else bisect_left(self._numbers, end, 0, self._count)
        last = 0 if end is not None and number >= end else last
        at = max(bisect_right(self._numbers, number, 0, last) - 1, 0)
        numbers = np.maximum(np.array(self._numbers[at:last], np.int64), number)
        return numbers, np.array(self._times[at:last], np.float64)

    def coarse(self, first: int, end: int) -> Clock:
        """A clock for the numbers from `first` to `end`, with few runs for any length of time.

        Times of the last EXACT_SECONDS are exact to the second, older ones to a thousandth of their
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

    def _followed_by(self, numbers: Iterable[int], times: Iterable[float]) -> Clock:
        """A clock with more runs, in the same arrays if they are free behind its own."""
        mine, my_times, count = self._numbers, self._times, self._count
        if len(mine) != count or len(my_times) != count:
            mine, my_times = mine[:count], my_times[:count]
        mine.extend(numbers)
        my_times.extend(times)
        following: Clock = Clock.__new__(Clock)  # takes no arrays of its own
        following._numbers, following._times = mine, my_times
        following._count = len(my_times)
        return following


def runs_of(first: int, times: Times) -> tuple[Rows, Times]:
    """Runs, as `Clock.since` gives them, of documents with numbers from `first` on.

    Args:
        first: The number of the first.
        times: float64 (n,): when each was added.
    """
    is_first = np.append(True, times[1:] != times[:-1])[: len(times)]
    begins = np.flatnonzero(is_first)
    return first + begins, times[begins]
