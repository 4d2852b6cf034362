"""Who takes the pairs of a spilled join: a spool of pairs, or a forest of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from neardup.hamming.join.collectors import UniteCollector
from neardup.hamming.join.equal_rows import (
    STEP,
    pairs_between,
    pairs_within,
    products,
    unpacked_pairs,
    within_count,
)

if TYPE_CHECKING:
    from neardup.hamming.join.partition import Groups
    from neardup.hamming.join.problem import Collector, Problem
    from neardup.hamming.spilled.pairs import PairSpool
    from neardup.runtime.types import Codes, Numbers, Packed, RowNumbers

__all__ = ["AcrossPieces", "ForestMerger", "PairMerger", "SlabMerger"]


@dataclass(frozen=True, slots=True)
class PairMerger:
    """Takes the pairs of slabs into a spool."""

    spool: PairSpool

    def slab(self, codes: Codes, numbers: Numbers) -> Collector:
        """A collector for rows that are in memory now."""
        return SlabPairs(self, codes, numbers)

    def finish(self, collector: Collector) -> None:
        """Everything is in the spool already."""

    def expect(self, pairs: int) -> None:
        """Hear that there are at least so many pairs."""
        self.spool.expect(pairs)

    def collapsed(self, groups: list[Numbers], due: bool) -> SlabMerger:
        """A merger that puts all rows of a group in the place of its first."""
        if due:
            for numbers in groups:
                for left, right in products(numbers, numbers):
                    later = left < right
                    none = np.zeros(int(later.sum()), np.int64)
                    self.put(left[later], right[later], none)
        return EqualPairMerger(self.spool, self, {int(numbers[0]): numbers for numbers in groups})

    def put(self, left: Any, right: Any, distance: Any) -> None:
        """Take pairs of row numbers."""
        self.spool.add(left, right, distance)


@dataclass(frozen=True, slots=True)
class EqualPairMerger(PairMerger):
    """Takes pairs where the first row of a group stands for all of it."""

    outer: PairMerger
    groups: dict[int, Numbers]

    def put(self, left: Any, right: Any, distance: Any) -> None:
        """Pass on pairs, those of a group's first row for every row of the group."""
        firsts = np.array(list(self.groups), np.uint64)
        grouped = np.isin(left, firsts) | np.isin(right, firsts)
        self.outer.put(left[~grouped], right[~grouped], distance[~grouped])
        for at in np.flatnonzero(grouped).tolist():
            sides = [self.groups.get(int(x[at]), x[at : at + 1]) for x in (left, right)]
            self.expect(len(sides[0]) * len(sides[1]))
            for lefts, rights in products(*sides):
                self.outer.put(lefts, rights, np.full(len(lefts), distance[at]))


@dataclass(frozen=True, slots=True)
class SlabPairs:
    """Names the pairs of a slab's rows by their numbers, and measures them."""

    merger: PairMerger
    codes: Codes
    numbers: Numbers

    def parent(self, slot: int) -> RowNumbers:  # noqa: ARG002
        """No union-find."""
        return np.empty(0, np.uint32)

    def may_store(self, rows: int) -> bool:  # noqa: ARG002
        """Every pair is stored; too many raise."""
        return True

    def add(self, count: int, pairs: Packed) -> None:  # noqa: ARG002
        """Take pairs of positions."""
        for begin in range(0, len(pairs), STEP):
            left, right = unpacked_pairs(pairs[begin : begin + STEP])
            differ = np.bitwise_count(self.codes[left] ^ self.codes[right])
            distance = differ.sum(axis=1, dtype=np.int64)
            named = self.numbers[left].astype(np.uint64), self.numbers[right].astype(np.uint64)
            self.merger.put(named[0], named[1], distance)

    def collapsed(self, problem: Problem, groups: Groups) -> Collector:
        """A collector of pairs of groups, whose rows come here."""
        return GroupPairs(self, problem, groups)

    def expand(self, inner: Collector, problem: Problem, groups: Groups) -> None:  # noqa: ARG002
        """Take the pairs inside the groups."""
        self.merger.expect(within_count(problem, groups))
        add_within(self, problem, groups)


@dataclass(frozen=True, slots=True)
class GroupPairs:
    """Takes pairs of groups of equal rows, and passes on the pairs of their rows."""

    outer: Any  # a collector of pairs of positions
    problem: Problem
    groups: Groups

    def parent(self, slot: int) -> RowNumbers:  # noqa: ARG002
        """No union-find."""
        return np.empty(0, np.uint32)

    def may_store(self, rows: int) -> bool:  # noqa: ARG002
        """Every pair is stored; too many raise."""
        return True

    def add(self, count: int, pairs: Packed) -> None:  # noqa: ARG002
        """Take pairs of groups."""
        named = self.problem.named(self.groups.members)
        for packed in pairs_between(pairs, named, self.groups):
            self.outer.add(len(packed), packed)

    def collapsed(self, problem: Problem, groups: Groups) -> Collector:
        """A collector of pairs of groups of groups."""
        return GroupPairs(self, problem, groups)

    def expand(self, inner: Collector, problem: Problem, groups: Groups) -> None:  # noqa: ARG002
        """Take the pairs inside the groups."""
        add_within(self, problem, groups)


@dataclass(frozen=True, slots=True)
class AcrossPieces:
    """A collector of the pairs between two pieces of rows, and of those inside a piece if due."""

    inner: Collector
    border: int
    inside: tuple[bool, bool]

    def parent(self, slot: int) -> RowNumbers:
        """No union-find."""
        return self.inner.parent(slot)

    def may_store(self, rows: int) -> bool:
        """As the collector that it stands before."""
        return self.inner.may_store(rows)

    def add(self, count: int, pairs: Packed) -> None:  # noqa: ARG002
        """Pass on the pairs that are due."""
        left, right = unpacked_pairs(pairs)
        left_first, right_first = left < self.border, right < self.border
        due = (left_first != right_first) | np.where(left_first, *self.inside)
        self.inner.add(int(due.sum()), pairs[due])

    def collapsed(self, problem: Problem, groups: Groups) -> Collector:
        """A collector of pairs of groups, whose rows come here."""
        return GroupPairs(self, problem, groups)

    def expand(self, inner: Collector, problem: Problem, groups: Groups) -> None:  # noqa: ARG002
        """Take the pairs inside the groups."""
        add_within(self, problem, groups)


def add_within(collector: Collector, problem: Problem, groups: Groups) -> None:
    """Give every two rows of each group to a collector, if a pair of equal rows is due."""
    if within_count(problem, groups):
        for packed in pairs_within(problem.named(groups.members), groups):
            collector.add(len(packed), packed)


class SlabMerger(Protocol):
    """Takes what is found in the slabs; rows are named by their numbers in the whole collection."""

    def slab(self, codes: Codes, numbers: Numbers) -> Collector:
        """A collector for rows that are in memory now."""

    def finish(self, collector: Collector) -> None:
        """Take what a slab's collector holds; its rows leave the memory."""

    def expect(self, pairs: int) -> None:
        """Hear that there are at least so many pairs; may raise."""

    def collapsed(self, groups: list[Numbers], due: bool) -> SlabMerger:
        """Take groups of equal rows (ascending numbers); the merger for the first row of each."""


@dataclass(frozen=True, slots=True)
class ForestMerger:
    """Unites what is found in slabs in one union-find of all rows."""

    parent: Numbers

    def slab(self, codes: Codes, numbers: Numbers) -> Collector:
        """A collector with a union-find of the slab for each thread."""
        return SlabForests(len(codes), numbers)

    def finish(self, collector: Collector) -> None:
        """Unite the rows that are united in a slab."""
        assert isinstance(collector, SlabForests)  # noqa: S101
        collector.merge_into(self.parent)

    def expect(self, pairs: int) -> None:
        """No pair is stored, so there are never too many."""

    def collapsed(self, groups: list[Numbers], due: bool) -> SlabMerger:  # noqa: ARG002
        """Unite equal rows; the first of each stands for the others."""
        from neardup.kernels.forest import unite_all

        for numbers in groups:
            unite_all(self.parent, np.full(len(numbers), numbers[0]), numbers)
        return self


class SlabForests(UniteCollector):
    """Union-finds of a slab's rows, one for each thread."""

    def __init__(self, rows: int, numbers: Numbers) -> None:
        """Start with every row on its own."""
        super().__init__(rows)
        self._numbers = numbers

    def merge_into(self, parent: Numbers) -> None:
        """Unite the rows in the union-find of all rows, by their numbers."""
        from neardup.kernels.hamming.slabs import unite_numbers

        for forest in self._forests.values():
            unite_numbers(forest, self._numbers, parent)
