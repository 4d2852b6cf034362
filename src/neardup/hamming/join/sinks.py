"""Sinks for the pairs of a join: a list, or a union-find for each thread; groups of equal rows.

A join finds pairs of groups of equal fingerprints; every row of the one goes with every row of the
other, and every two rows of a group are a pair as well. There may be more of these than memory
holds, so `Expanding` makes some at a time.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from neardup.errors import TooManyPairsError
from neardup.runtime.arrays import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.hamming.join.problem import Problem
    from neardup.hamming.join.row_partition import Groups
    from neardup.runtime.types import Packed, RowNumbers, Rows

__all__ = [
    "NO_FOREST",
    "NO_PAIRS",
    "STEP",
    "Expanding",
    "PairList",
    "Sink",
    "UnionFinds",
    "merge",
    "packed_pairs",
    "products",
    "unpacked_pairs",
]

STEP: Final = 1 << 18
"""The number of pairs handled at a time."""
LOW_WORD: Final = np.uint64(2**32 - 1)
NO_PAIRS: Final = np.empty(0, np.uint64)
NO_FOREST: Final = np.empty(0, np.uint32)


class Sink(Protocol):
    """The interface for the matches that kernels find, from any thread."""

    def parent(self, slot: int) -> RowNumbers:
        """The union-find of a thread; an empty array means that pairs are emitted."""

    def may_store(self, pairs: int) -> bool:
        """Whether a number of further pairs may be stored; otherwise they are only counted."""

    def add(self, packed: Packed, count: int) -> None:
        """Add pairs (uint64, left << 32 | right), and their number including those left out."""

    def expect(self, pairs: int) -> bool:
        """Announce further pairs; returns whether they may be stored, and not only counted.

        Raises:
            TooManyPairsError: If it is known by now, where too many are refused at once.
        """


class PairList:
    """A sink that stores pairs up to a limit, and counts them beyond it."""

    def __init__(self, limit: int) -> None:
        """Start empty."""
        self.limit, self.count = limit, 0
        self._parts: list[Packed] = []
        self._lock = threading.Lock()

    def parent(self, slot: int) -> RowNumbers:  # noqa: ARG002
        """An empty array, since pairs are emitted."""
        return NO_FOREST

    def may_store(self, pairs: int) -> bool:
        """Whether `pairs` more stay within the limit."""
        return self.count + pairs <= self.limit

    def add(self, packed: Packed, count: int) -> None:
        """Add pairs, or only their number."""
        with self._lock:
            self.count += count
            if self.count > self.limit:
                self._parts.clear()
            elif len(packed):
                self._parts.append(packed)

    def expect(self, pairs: int) -> bool:
        """Count announced pairs that would not be stored."""
        fits = self.may_store(pairs)
        if not fits:
            self.add(NO_PAIRS, pairs)
        return fits

    def sorted_pairs(self) -> tuple[Rows, Rows]:
        """All pairs in order, removed from the list: left and right.

        Raises:
            TooManyPairsError: If there were more than the limit.
        """
        if self.count > self.limit:
            raise TooManyPairsError(self.count, self.limit)
        packed = np.concatenate([*self._parts, NO_PAIRS])
        self._parts.clear()
        packed.sort()
        right = (packed & LOW_WORD).view(np.int64)
        packed >>= np.uint64(32)
        return packed.view(np.int64), right


class Expanding:
    """A sink for pairs of groups of equal rows, which passes on the pairs of rows they stand for.

    Args:
        outer: Takes the pairs of the problem's rows.
        problem: The rows.
        groups: Those with equal fingerprints; their numbers are what the pairs name.
    """

    def __init__(self, outer: Sink, problem: Problem, groups: Groups) -> None:
        """Start empty."""
        self._outer, self._problem, self._groups = outer, problem, groups
        self._named = problem.named(groups.members)
        self._parts: list[Packed] = []
        self._stored = self._count = 0
        self._refused = False
        self._lock = threading.Lock()

    def parent(self, slot: int) -> RowNumbers:  # noqa: ARG002
        """An empty array, since pairs are emitted."""
        return NO_FOREST

    def may_store(self, pairs: int) -> bool:
        """Whether as many row pairs may be stored: a pair of groups stands for at least one."""
        # While the lock is held no count moves to the outer sink, so none is seen twice: what is
        # refused here is more than the limit in truth, and stays refused.
        with self._lock:
            self._refused = self._refused or not self._outer.may_store(self._count + pairs)
            return not self._refused

    def expect(self, pairs: int) -> bool:
        """Announce pairs to the outer sink."""
        return self._outer.expect(pairs)

    def add(self, packed: Packed, count: int) -> None:
        """Add pairs of groups, and the number of row pairs that they stand for."""
        with self._lock:
            self._parts.append(packed)
            self._count += count
            self._stored += len(packed)
            if self._stored < STEP:
                return
            taken = self._take()
        self._pass_on(*taken)  # outside the lock, so that other threads may add

    def add_within(self) -> None:
        """Pass on the pairs inside the groups, unless a condition refuses equal rows."""
        within = within_count(self._problem, self._groups)
        if within and self._outer.expect(within):
            for packed in pairs_within(self._named, self._groups):
                self._outer.add(packed, len(packed))

    def flush(self) -> None:
        """Pass on the remaining pairs, after every thread has ended."""
        self._pass_on(*self._take())

    def _take(self) -> tuple[list[Packed], int]:
        taken = self._parts, self._count
        self._parts, self._stored, self._count = [], 0, 0
        return taken

    def _pass_on(self, parts: list[Packed], count: int) -> None:
        if self._refused:  # a part may lack pairs, so its number is all that it says
            self._outer.add(NO_PAIRS, count)
        elif self._outer.expect(count):
            packed = np.concatenate([*parts, NO_PAIRS])
            for pairs in pairs_between(packed, self._named, self._groups):
                self._outer.add(pairs, len(pairs))


class UnionFinds:
    """A sink that unites matches in one union-find for each thread."""

    def __init__(self, n: int) -> None:
        """Start with n rows on their own."""
        self._n = n
        self._forests: dict[int, RowNumbers] = {0: np.arange(n, dtype=np.uint32)}

    def parent(self, slot: int) -> RowNumbers:
        """The union-find of a thread, which no other thread touches until all have ended."""
        if slot not in self._forests:
            self._forests[slot] = np.arange(self._n, dtype=np.uint32)
        return self._forests[slot]

    def may_store(self, pairs: int) -> bool:  # noqa: ARG002
        """False: no pair is ever stored."""
        return False

    def add(self, packed: Packed, count: int) -> None:
        """Do nothing: no pair is emitted."""

    def expect(self, pairs: int) -> bool:  # noqa: ARG002
        """Do nothing: no pair is emitted."""
        return False

    @property
    def forests(self) -> Iterable[RowNumbers]:
        """The union-find of each thread."""
        return self._forests.values()

    def labels(self) -> Rows:
        """The smallest row of each row's group; int64 (n,)."""
        from neardup.kernels.forest import flatten

        forest = self._forests.pop(0)
        while self._forests:
            merge(forest, self._forests.popitem()[1])
        labels = np.empty(self._n, np.int64)
        flatten(forest, labels)
        return labels


def merge(first: RowNumbers, second: RowNumbers) -> RowNumbers:
    """The union of two groupings of the same rows: the finest grouping that contains both.

    Args:
        first: uint32 (n,), a union-find forest: the parent of each row, a root's being itself.
        second: Another, for the same rows.

    Returns:
        `first`, changed in place. The grouping does not depend on order or nesting of merges.

    Example:
        >>> merge(np.array([0, 0, 2], np.uint32), np.array([0, 1, 1], np.uint32)).tolist()
        [0, 0, 0]
    """
    from neardup.kernels.forest import merge_forests

    merge_forests(first, second)
    return first


def packed_pairs(a: Any, b: Any) -> Any:
    """Pairs of rows below 2**32 as one uint64 each: the smaller << 32 | the larger."""
    low, high = np.minimum(a, b).astype(np.uint64), np.maximum(a, b).astype(np.uint64)
    return low << np.uint64(32) | high


def unpacked_pairs(packed: Any) -> tuple[Any, Any]:
    """The smaller and the larger rows of packed pairs: int64, int64.

    Example:
        >>> [x.tolist() for x in unpacked_pairs(packed_pairs(np.array([7]), np.array([3])))]
        [[3], [7]]
    """
    return (packed >> np.uint64(32)).view(np.int64), (packed & LOW_WORD).view(np.int64)


def pairs_between(packed: Any, named: Any, groups: Groups) -> Iterator[Any]:
    """All pairs of a row of one group with a row of the other, packed, up to STEP at a time.

    Args:
        packed: Pairs of groups.
        named: The rows' names in the order of `groups.members`.
        groups: Of equal rows.
    """
    one, two = unpacked_pairs(packed)
    starts, sizes = groups.starts, groups.sizes
    each = sizes[one] * sizes[two]
    ends = np.cumsum(each)
    for begin in range(0, int(ends[-1]) if len(ends) else 0, STEP):
        end = min(begin + STEP, int(ends[-1]))
        first, last = np.searchsorted(ends, (begin, end - 1), side="right")
        chosen = np.arange(first, last + 1)
        before = ends[chosen] - each[chosen]
        at = np.repeat(chosen, np.minimum(ends[chosen], end) - np.maximum(before, begin))
        within = np.arange(begin, end) - (ends - each)[at]
        left, right = np.divmod(within, sizes[two[at]])
        yield packed_pairs(named[starts[one[at]] + left], named[starts[two[at]] + right])


def within_count(problem: Problem, groups: Groups) -> int:
    """The number of pairs of equal rows; 0 if a condition of the problem excludes them."""
    if problem.agree is not None and not np.all(problem.agree):
        return 0
    sizes = groups.sizes
    return int((sizes * (sizes - 1) // 2).sum())


def pairs_within(named: Any, groups: Groups) -> Iterator[Any]:
    """All pairs of rows in a group, packed, about STEP at a time; `named` as `pairs_between`."""
    sizes = groups.sizes
    for first, last in cut(sizes * (sizes - 1) // 2, STEP):
        starts = groups.starts[first : last + 1]
        rows = named[starts[0] : starts[-1]]
        if last - first > 1 or len(rows) ** 2 <= STEP:
            yield _every_two(rows, starts - starts[0])
            continue
        for left, right in products(rows, rows):
            later = left < right
            yield packed_pairs(left[later], right[later])


def products(left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """All pairs of a value of `left` and one of `right`, about STEP at a time."""
    rows = max(1, STEP // max(1, len(right)))
    for begin in range(0, len(left), rows):
        some = left[begin : begin + rows]
        yield np.repeat(some, len(right)), np.tile(right, len(some))


def _every_two(rows: Any, starts: Any) -> Any:
    place = np.arange(len(rows))
    later = np.repeat(starts[1:], np.diff(starts)) - place - 1
    one = np.repeat(place, later)
    two = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    return packed_pairs(rows[one], rows[two])
