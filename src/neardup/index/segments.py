"""Segments: stored fingerprints that do not change, with their ids; and how segments are merged.

New fingerprints wait in a tail of at most TAIL_ROWS, which queries scan. A full tail becomes a
segment, and two neighbouring segments of one level are merged, a level being GROWTH times as large
as the one below: so an index has few segments, and a row is copied a few times a level in its life.
Segments stand in order of insertion. Removed rows are only marked, and left out by the next merge.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.hamming.search.build import build_searcher, plan_for
from neardup.index.ids import ID_KINDS, IdColumn
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.hamming.search.searchers import Neighbours, Searcher
    from neardup.index.settings import Settings

__all__ = ["TAIL_ROWS", "Segment", "Tail", "merged", "settled", "successors"]

TAIL_ROWS: Final = 4096
GROWTH: Final = 16


class Segment:
    """Rows in order of insertion.

    Args:
        codes: uint64 (n, width).
        ids: Their ids, all different.
        numbers: int64 (n,), ascending: the place of each in the order of all insertions.
        dead: bool (n,), True for removed rows; changed in place, but see `successor`.
        searcher: What finds rows in it, if it was made before.
    """

    def __init__(
        self,
        codes: Any,
        ids: IdColumn,
        numbers: Any,
        dead: Any = None,
        searcher: Searcher | None = None,
    ) -> None:
        """Make no searcher yet."""
        self.codes, self.ids, self.numbers = codes, ids, numbers
        self.dead = np.zeros(len(codes), np.bool_) if dead is None else dead
        self.removed = int(np.count_nonzero(self.dead))
        self._searcher = searcher
        self.is_shared = False

    def __len__(self) -> int:
        """Rows, removed ones included."""
        return len(self.codes)

    @property
    def living(self) -> int:
        """Rows that are not removed."""
        return len(self) - self.removed

    def searcher(self, settings: Settings) -> Searcher:
        """What finds rows in it; made when it is first asked for."""
        if self._searcher is None:
            memory = settings.table_memory()
            plan = plan_for(self.codes, settings.distance, settings.bits, settings.plan, memory)
            self._searcher = build_searcher(self.codes, plan, settings.distance, settings.bits)
        return self._searcher

    @property
    def searchable(self) -> Searcher | None:
        """The searcher, if it was made."""
        return self._searcher

    def search(self, queries: Any, distance: int, settings: Settings, workers: int) -> Neighbours:
        """Living rows within the distance of each query."""
        found = self.searcher(settings).search(queries, distance, workers)
        return found.only(~self.dead[found.rows]) if self.removed else found

    def search_once(
        self, query: Any, distance: int, settings: Settings, most: int | None = None
    ) -> tuple[list[tuple[int, int, Any]], int]:
        """The (distance, number, id) of the living rows within the distance of one query.

        Of many, only the first `most`; and how many there are.
        """
        dead = self.dead if self.removed else None
        searcher = self._searcher or self.searcher(settings)
        hits, count = searcher.search_once(query, distance, most, dead)
        if not count:
            return [], 0
        return [(d, int(self.numbers[row]), self.ids.value(row)) for d, row in hits], count

    def successor(self) -> Self:
        """The same rows; what is removed from it later stays in this one.

        A query that began before newer rows were there does not know what replaces the removed.
        """
        found = copy.copy(self)
        found.is_shared = True
        return found

    def remove(self, rows: Any) -> Any:
        """Mark rows as removed; returns those that were not before."""
        if self.is_shared:
            self.dead, self.is_shared = self.dead.copy(), False
        fresh = rows[~self.dead[rows]]
        self.dead[fresh] = True
        self.removed += len(fresh)
        return fresh


class Tail:
    """The newest rows, which queries scan: at most TAIL_ROWS."""

    def __init__(self, width: int) -> None:
        """Start empty, for fingerprints of so many words."""
        self.codes = np.zeros((TAIL_ROWS, width), np.uint64)
        self.flat = frozen(self.codes).reshape(-1)
        self.numbers = np.zeros(TAIL_ROWS, np.int64)
        self.ids: list[Any] = []
        self.rows: dict[Any, int] = {}
        self.dead: set[int] = set()

    def __len__(self) -> int:
        """Rows, removed ones included."""
        return len(self.ids)

    def append(self, identity: Any, fingerprint: Any, number: int) -> None:
        """Add a row; its place must be free."""
        row = len(self.ids)
        self.codes[row] = fingerprint
        self.numbers[row] = number
        self.rows[identity] = row
        self.ids.append(identity)

    def remove(self, identity: Any) -> int | None:
        """Remove a row and give its number; None where the id is not here."""
        row = self.rows.pop(identity, None)
        if row is None:
            return None
        self.dead.add(row)
        return int(self.numbers[row])

    def segment(self, kind: str) -> Segment:
        """Its living rows."""
        live = [row for row in range(len(self.ids)) if row not in self.dead]
        ids = pa.array([self.ids[row] for row in live], ID_KINDS[kind])
        return Segment(self.codes[live], IdColumn(ids), self.numbers[live])


def merged(segments: list[Segment]) -> Segment:
    """The living rows of several segments that stand one after the other."""
    keep = [np.flatnonzero(~each.dead) if each.removed else None for each in segments]
    codes = [_kept(each.codes, rows) for each, rows in zip(segments, keep, strict=True)]
    numbers = [_kept(each.numbers, rows) for each, rows in zip(segments, keep, strict=True)]
    ids = [
        each.ids.values if rows is None else each.ids.values.take(pa.array(rows))
        for each, rows in zip(segments, keep, strict=True)
    ]
    column = IdColumn(pa.concat_arrays(ids))
    return Segment(np.concatenate(codes), column, np.concatenate(numbers))


def settled(segments: list[Segment]) -> list[Segment]:
    """The same rows in segments of falling levels, none mostly of removed rows."""
    stack: list[Segment] = []
    for segment in segments:
        if not segment.living:
            continue
        stack.append(merged([segment]) if 2 * segment.removed > len(segment) else segment)
        first = len(stack) - 1
        while first > 0 and _level(stack[first - 1]) <= _level_of(stack[first:]):
            first -= 1
        if first < len(stack) - 1:
            stack[first:] = [merged(stack[first:])]
    return stack


def _kept(values: Any, rows: Any) -> Any:
    return values if rows is None else values[rows]


def _level(segment: Segment) -> int:
    return _level_of([segment])


def _level_of(segments: list[Segment]) -> int:
    living = sum(each.living for each in segments)
    level = 0
    while living > TAIL_ROWS * GROWTH**level:
        level += 1
    return level


def successors(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """What follows segments that queries may be looking at; see Segment.successor."""
    return tuple(each.successor() for each in segments)
