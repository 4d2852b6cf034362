"""Who takes the pairs of a join: one lists them, one unites them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import TooManyPairsError
from neardup.hamming.join.equal_rows import LOW_WORD, pairs_between, pairs_within, within_count

if TYPE_CHECKING:
    from neardup.hamming.join.partition import Groups
    from neardup.hamming.join.problem import Collector, Problem
    from neardup.runtime.types import Packed, RowNumbers

__all__ = ["PairCollector", "UniteCollector", "merge"]


class PairCollector:
    """Collects pairs up to a limit, and counts them beyond it."""

    def __init__(self, limit: int) -> None:
        """Start empty."""
        self.limit, self.count, self.stored = limit, 0, 0
        self.parts: list[Packed] = []
        self._lock = threading.Lock()

    def parent(self, slot: int) -> RowNumbers:  # noqa: ARG002
        """No union-find."""
        return np.empty(0, np.uint32)

    def may_store(self, rows: int) -> bool:
        """Whether `rows` more stay within the limit."""
        return max(self.count, self.stored) + rows <= self.limit

    def add(self, count: int, pairs: Packed) -> None:
        """Take pairs and how many rows they stand for."""
        with self._lock:
            self.count += count
            if self.count > self.limit:
                self.parts.clear()
            elif len(pairs):
                self.parts.append(pairs)
                self.stored += len(pairs)

    def collapsed(self, problem: Problem, groups: Groups) -> PairCollector:  # noqa: ARG002
        """A collector of pairs of groups."""
        return PairCollector(max(0, self.limit - self.count))

    def expand(self, inner: Collector, problem: Problem, groups: Groups) -> None:
        """Take the pairs between groups, and those inside them unless a condition refuses them."""
        assert isinstance(inner, PairCollector)  # noqa: S101
        within = within_count(problem, groups)
        if not self.may_store(inner.count + within):
            self.add(inner.count + within, np.empty(0, np.uint64))
            return
        named = problem.named(groups.members)
        between = np.concatenate([*inner.parts, np.empty(0, np.uint64)])
        for packed in pairs_between(between, named, groups):
            self.add(len(packed), packed)
        for packed in pairs_within(named, groups) if within else ():
            self.add(len(packed), packed)

    def sorted_pairs(self) -> tuple[Any, Any]:
        """All pairs as int64 arrays, sorted.

        Raises:
            TooManyPairsError: If there were more than the limit.
        """
        if self.count > self.limit:
            raise TooManyPairsError(self.count, self.limit)
        packed = np.concatenate([*self.parts, np.empty(0, np.uint64)])
        self.parts.clear()
        packed.sort()
        right = (packed & LOW_WORD).view(np.int64)
        packed >>= np.uint64(32)
        return packed.view(np.int64), right


def merge(first: Any, second: Any) -> Any:
    """Unite two groupings of the same rows: the finest one in which both are contained.

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


class UniteCollector:
    """Unites matches in one union-find per thread."""

    def __init__(self, n: int) -> None:
        """Start with n rows on their own."""
        self._n = n
        self._forests: dict[int, RowNumbers] = {0: np.arange(n, dtype=np.uint32)}

    def parent(self, slot: int) -> RowNumbers:
        """The union-find of a thread."""
        if slot not in self._forests:
            self._forests[slot] = np.arange(self._n, dtype=np.uint32)
        return self._forests[slot]

    def may_store(self, rows: int) -> bool:  # noqa: ARG002
        """No pair is ever stored."""
        return False

    def add(self, count: int, pairs: Packed) -> None:
        """No pair comes."""

    def collapsed(self, problem: Problem, groups: Groups) -> Collector:
        """Unite equal rows; their representatives go on as rows of the same forests."""
        from neardup.kernels.forest import unite_all

        firsts = np.repeat(groups.firsts, groups.sizes)
        unite_all(self.parent(0), problem.named(groups.members), problem.named(firsts))
        return self

    def expand(self, inner: Collector, problem: Problem, groups: Groups) -> None:
        """Everything is united already."""

    def labels(self) -> Any:
        """The smallest row of each row's group: int64 (n,)."""
        from neardup.kernels.forest import flatten

        forest = self._forests.pop(0)
        while self._forests:
            merge(forest, self._forests.popitem()[1])
        labels = np.empty(self._n, np.int64)
        flatten(forest, labels)
        return labels
