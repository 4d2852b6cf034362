"""Mergers of the pairs in a spilled join: into a spool of pairs, or a forest of groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from neardup.hamming.join.sinks import NO_FOREST, STEP, UnionFinds, products, unpacked_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neardup.hamming.join.sinks import Sink
    from neardup.hamming.spilled.pair_spool import PairSpool
    from neardup.runtime.types import Codes, Flags, Numbers, Packed, RowNumbers, Rows

__all__ = ["ForestMerger", "PairMerger", "Pieces", "SlabMerger"]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Two pieces of rows in memory, whose pairs are due: between them, and optionally inside."""

    border: int  # rows of the first piece
    inside: tuple[bool, bool]

    def due(self, left: Rows, right: Rows) -> Flags:
        """Whether each pair of positions is to be reported."""
        left_first, right_first = left < self.border, right < self.border
        due: Flags = (left_first != right_first) | np.where(left_first, *self.inside)
        return due


class SlabMerger(Protocol):
    """The interface for results of slabs; rows are named by their numbers in the collection."""

    def slab(self, codes: Codes, numbers: Numbers, pieces: Pieces | None = None) -> Sink:
        """A sink for the rows in memory."""

    def finish(self, sink: Sink, numbers: Numbers) -> None:
        """Merge the content of a slab's sink, whose rows then leave memory."""

    def expect(self, pairs: int) -> None:
        """Announce at least `pairs` more pairs; may raise."""

    def collapsed(self, groups: list[Numbers], due: bool) -> SlabMerger:
        """The merger for the first rows of groups of equal rows (ascending numbers)."""


@dataclass(frozen=True, slots=True)
class PairMerger:
    """A merger that writes pairs to a spool; a row may stand for all equal ones."""

    spool: PairSpool
    groups: Mapping[int, Numbers] = field(default_factory=dict)  # by the first row of each

    def slab(self, codes: Codes, numbers: Numbers, pieces: Pieces | None = None) -> Sink:
        """A sink that names pairs by row numbers and measures them."""
        return SlabPairs(self, codes, numbers, pieces)

    def finish(self, sink: Sink, numbers: Numbers) -> None:
        """Do nothing: all pairs are in the spool."""

    def expect(self, pairs: int) -> None:
        """Announce at least `pairs` more pairs."""
        self.spool.expect(pairs)

    def collapsed(self, groups: list[Numbers], due: bool) -> SlabMerger:
        """A merger that replaces the first row of each group by all its rows."""
        for numbers in groups if due else ():
            for left, right in products(numbers, numbers):
                later = left < right
                self.spool.add(left[later], right[later], np.zeros(int(later.sum()), np.int64))
        # A row that stands for others is the only one left with its value: it joins no later group.
        firsts = {int(numbers[0]): numbers for numbers in groups}
        return PairMerger(self.spool, {**self.groups, **firsts})

    def put(self, left: Any, right: Any, distance: Any) -> None:
        """Add pairs of row numbers; a group's first row stands for all its rows."""
        if not self.groups:
            self.spool.add(left, right, distance)
            return
        firsts = np.array(list(self.groups), np.uint64)
        grouped = np.isin(left, firsts) | np.isin(right, firsts)
        self.spool.add(left[~grouped], right[~grouped], distance[~grouped])
        for at in np.flatnonzero(grouped).tolist():
            sides = [self.groups.get(int(x[at]), x[at : at + 1]) for x in (left, right)]
            self.expect(len(sides[0]) * len(sides[1]))
            for lefts, rights in products(*sides):
                self.spool.add(lefts, rights, np.full(len(lefts), distance[at]))


@dataclass(frozen=True, slots=True)
class SlabPairs:
    """A sink that names the pairs of a slab by row numbers and measures them; for any thread."""

    merger: PairMerger
    codes: Codes
    numbers: Numbers
    pieces: Pieces | None

    def parent(self, slot: int) -> RowNumbers:  # noqa: ARG002
        """An empty array, since pairs are emitted."""
        return NO_FOREST

    def may_store(self, pairs: int) -> bool:  # noqa: ARG002
        """True: every pair is stored, and too many raise."""
        return True

    def expect(self, pairs: int) -> bool:
        """Announce `pairs` more pairs; those inside a piece may not be reported."""
        if self.pieces is None:
            self.merger.expect(pairs)
        return True

    def add(self, packed: Packed, count: int) -> None:  # noqa: ARG002
        """Add pairs of positions."""
        for begin in range(0, len(packed), STEP):
            left, right = unpacked_pairs(packed[begin : begin + STEP])
            if self.pieces is not None:
                due = self.pieces.due(left, right)
                left, right = left[due], right[due]
            differ = np.bitwise_count(self.codes[left] ^ self.codes[right])
            distance = differ.sum(axis=1, dtype=np.int64)
            named = self.numbers[left].astype(np.uint64), self.numbers[right].astype(np.uint64)
            self.merger.put(*named, distance)


@dataclass(frozen=True, slots=True)
class ForestMerger:
    """A merger that unites matches in one union-find of all rows."""

    parent: Numbers

    def slab(self, codes: Codes, numbers: Numbers, pieces: Pieces | None = None) -> Sink:  # noqa: ARG002
        """A sink with a union-find for each thread; uniting a pair twice is harmless."""
        return UnionFinds(len(codes))

    def finish(self, sink: Sink, numbers: Numbers) -> None:
        """Unite the rows that a slab united, by their numbers."""
        from neardup.kernels.hamming.slabs import unite_numbers

        assert isinstance(sink, UnionFinds)  # noqa: S101
        for forest in sink.forests:
            unite_numbers(forest, numbers, self.parent)

    def expect(self, pairs: int) -> None:
        """Do nothing: no pair is stored."""

    def collapsed(self, groups: list[Numbers], due: bool) -> SlabMerger:  # noqa: ARG002
        """Unite equal rows; returns the merger for the first of each."""
        from neardup.kernels.forest import unite_all

        for numbers in groups:
            unite_all(self.parent, np.full(len(numbers), numbers[0]), numbers)
        return self
