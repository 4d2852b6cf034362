"""Segments: stored fingerprints that do not change, with their ids; and how segments are merged.

New fingerprints wait in a tail of at most TAIL_ROWS, which queries scan. A full tail becomes a
segment, and two neighbouring segments of one level are merged, a level being GROWTH times as large
as the one below: so an index has few segments, and a row is copied a few times a level in its life.
Segments stand in order of insertion. Removed rows are only marked, and left out by the next merge.
Neither a segment nor a tail changes: what is added or removed makes another, which shares the rows.
"""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.errors import DataError
from neardup.hamming.plans.blocks import multipliers_of
from neardup.hamming.search.build import build_searcher, plan_for
from neardup.index.ids import ID_KINDS, IdColumn
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from neardup.hamming.search.searchers import Neighbours, Searcher
    from neardup.index.settings import Settings

__all__ = ["TAIL_ROWS", "Segment", "Tail", "merged", "settled", "threads_for"]

TAIL_ROWS: Final = 4096
GROWTH: Final = 16
RECENT: Final = 256
"""Removed rows of a segment that wait to be marked together."""
WORTH_THREADS: Final = 0.005
"""Seconds of work from which on threads are started, which takes up to a millisecond."""
NEVER: Final = 1 << 62
_LOGGER: Final = logging.getLogger("neardup")


class Segment:
    """Rows in order of insertion; what is removed from them makes another segment of the same rows.

    Args:
        codes: uint64 (n, width).
        ids: Their ids, all different.
        numbers: int64 (n,), ascending: the place of each in the order of all insertions.
        dead: bool (n,), True for removed rows; taken over, and not changed.
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
        self.removed = 0 if dead is None else int(np.count_nonzero(dead))
        self.gone: tuple[Any, frozenset[int]] = (dead if self.removed else None, frozenset())
        """Marks of removal, and removed rows without one: marks are copied for many at a time."""
        self._made = [searcher]  # one list for all segments of these rows

    def __len__(self) -> int:
        """Rows, removed ones included."""
        return len(self.codes)

    @property
    def living(self) -> int:
        """Rows that are not removed."""
        return len(self) - self.removed

    @property
    def dead(self) -> Any:
        """Which rows are removed: bool (n,), not to be changed."""
        marks, recent = self.gone
        if recent or marks is None:
            marks = self._marked()
            self.gone = marks, frozenset()
        return marks

    def live_rows(self) -> Any:
        """The rows that are not removed, ascending: int64."""
        return np.flatnonzero(~self.dead) if self.removed else np.arange(len(self))

    def find(self, identity: Any) -> int:
        """The row of a living document of an id of the column's kind, or -1."""
        row = self.ids.find_one(identity)
        return row if row >= 0 and not self.is_dead(row) else -1

    def is_dead(self, row: int) -> bool:
        """Whether a row is removed."""
        marks, recent = self.gone
        return row in recent or (marks is not None and bool(marks[row]))

    def searcher(self, settings: Settings) -> Searcher:
        """What finds rows in it; made when it is first asked for."""
        made = self._made[0]
        if made is None:
            memory = settings.table_memory()
            plan = plan_for(self.codes, settings.distance, settings.bits, settings.plan, memory)
            made = build_searcher(self.codes, plan, settings.distance, settings.bits)
            self._made[0] = made
        return made

    def search(
        self, queries: Any, distance: int, settings: Settings, workers: int | None
    ) -> Neighbours:
        """Living rows within the distance of each query."""
        searcher = self.searcher(settings)
        threads = threads_for(workers, searcher.plan.seconds * len(queries))
        found = searcher.search(queries, distance, threads)
        return found.only(~self.dead[found.rows]) if self.removed else found

    def search_once(
        self, query: Any, distance: int, settings: Settings, most: int | None = None
    ) -> tuple[list[tuple[int, int, Any]], int]:
        """The (distance, number, id) of the living rows within the distance of one query.

        Of many, at least the first `most`; and how many there are.
        """
        searcher = self._made[0] or self.searcher(settings)
        marks, recent = self.gone
        room = most + len(recent) if recent and most is not None else most
        hits, count = searcher.search_once(query, distance, room, marks)
        if not count:
            return [], 0
        if recent and len(hits) < count:
            hits, count = searcher.search_once(query, distance, most, self.dead)
        elif recent:
            hits = [hit for hit in hits if hit[1] not in recent]
            count = len(hits)
        return [(d, int(self.numbers[row]), self.ids.value(row)) for d, row in hits], count

    def verify(self) -> None:
        """Raise DataError if the rows are not as they were written; those in memory are."""

    def without(self, rows: Any) -> Self:
        """The same rows, with more of them removed; these were living."""
        found = copy.copy(self)
        found.removed += len(rows)
        marks, recent = self.gone
        if len(rows) + len(recent) <= RECENT:
            found.gone = marks, recent.union(rows.tolist())
        else:
            marks = self._marked()
            marks[rows] = True
            found.gone = marks, frozenset()
        return found

    def _marked(self) -> Any:
        """A copy of the marks, all of them."""
        marks, recent = self.gone
        copied = np.zeros(len(self), np.bool_) if marks is None else marks.copy()
        copied[np.fromiter(recent, np.int64, len(recent))] = True
        return copied


class _TailRows:
    """What all tails share of which each is the one before with a row more or fewer."""

    def __init__(self, width: int) -> None:
        self.codes = np.zeros((TAIL_ROWS, width), np.uint64)
        self.flat = frozen(self.codes).reshape(-1)
        self.multipliers = multipliers_of(width)
        self.numbers = np.zeros(TAIL_ROWS, np.int64)
        self.ended = np.full(TAIL_ROWS, NEVER, np.int64)
        """The version from which on a row is removed."""
        self.ids: list[Any] = []
        self.before: list[int] = []
        """The row that an id had when it got the row of this place, or -1."""
        self.places: dict[Any, int] = {}
        self.version = 0


class Tail:
    """The newest rows, which queries scan: at most TAIL_ROWS.

    A tail does not change. Rows behind its own, and removals of later versions, are not its.

    Args:
        rows: Shared with the tails before and after.
        count: Rows of this one, removed ones included.
        version: How many changes there were.
        removed: How many of the rows are removed.
    """

    __slots__ = ("_count", "_rows", "_version", "removed")

    def __init__(self, rows: _TailRows, count: int, version: int, removed: int) -> None:
        """Take a state; `Tail.empty` makes the first."""
        self._rows, self._count, self._version, self.removed = rows, count, version, removed

    @classmethod
    def empty(cls, width: int) -> Tail:
        """Without rows, for fingerprints of so many words."""
        return cls(_TailRows(width), 0, 0, 0)

    def __len__(self) -> int:
        """Rows, removed ones included."""
        return self._count

    @property
    def living(self) -> int:
        """Rows that are not removed."""
        return self._count - self.removed

    @property
    def codes(self) -> Any:
        """uint64 (rows, width)."""
        return self._rows.codes[: self._count]

    @property
    def flat(self) -> Any:
        """The words of all fingerprints one after the other, and of rows that are not there yet."""
        return self._rows.flat

    @property
    def multipliers(self) -> tuple[Any, ...]:
        """As kernels take them, for fingerprints of this width."""
        return self._rows.multipliers

    @property
    def numbers(self) -> Any:
        """int64 (rows,): the place of each in the order of all insertions."""
        return self._rows.numbers[: self._count]

    @property
    def ids(self) -> list[Any]:
        """The id of each row; maybe of more."""
        return self._rows.ids

    @property
    def dead(self) -> Any:
        """Which rows are removed: bool (rows,)."""
        return self._rows.ended[: self._count] <= self._version

    def live_rows(self) -> Any:
        """The rows that are not removed, ascending: int64."""
        return np.flatnonzero(~self.dead)

    def find(self, identity: Any) -> int:
        """The row of a living document, or -1."""
        rows = self._rows
        row = rows.places.get(identity, -1)
        while row >= self._count:
            row = rows.before[row]
        return row if row >= 0 and not self.is_dead(row) else -1

    def is_dead(self, row: int) -> bool:
        """Whether a row is removed."""
        return bool(self._rows.ended[row] <= self._version)

    def appended(self, identity: Any, fingerprint: Any, number: int) -> Tail:
        """This and a row more; its place must be free."""
        rows, row = self._own(), self._count
        rows.codes[row] = fingerprint
        rows.numbers[row] = number
        rows.before.append(rows.places.get(identity, -1))
        rows.ids.append(identity)
        rows.places[identity] = row
        rows.version = self._version + 1
        return Tail(rows, row + 1, rows.version, self.removed)

    def without(self, chosen: Any) -> Tail:
        """This without rows that are living: one, or int64 of many, each once."""
        rows = self._own()
        rows.version = self._version + 1
        rows.ended[chosen] = rows.version
        return Tail(rows, self._count, rows.version, self.removed + np.size(chosen))

    def segment(self, kind: str | None) -> Segment:
        """Its living rows."""
        live = self.live_rows()
        ids = pa.array([self.ids[row] for row in live.tolist()], ID_KINDS[kind or "int"])
        return Segment(self.codes[live], IdColumn(ids), self.numbers[live])

    def _own(self) -> _TailRows:
        """The rows, to go on from: copied if another tail went on from this one before."""
        rows = self._rows
        if rows.version == self._version and len(rows.ids) == self._count:
            return rows
        copied = _TailRows(rows.codes.shape[1])
        copied.codes[: self._count], copied.numbers[: self._count] = self.codes, self.numbers
        copied.ended[: self._count][self.dead] = self._version
        copied.ids = rows.ids[: self._count]
        for row, identity in enumerate(copied.ids):
            copied.before.append(copied.places.get(identity, -1))
            copied.places[identity] = row
        return copied


def threads_for(workers: int | None, seconds: float) -> int:
    """So many as said; else as many as are worth it for work that takes so long."""
    return worker_count(workers) if workers or seconds > WORTH_THREADS else 1


def merged(segments: list[Segment]) -> Segment:
    """The living rows of several segments that stand one after the other.

    Raises:
        DataError: If one of them is damaged: what is copied gets a new checksum.
    """
    for each in segments:
        each.verify()
    keep = [each.live_rows() if each.removed else None for each in segments]
    codes = [_kept(each.codes, rows) for each, rows in zip(segments, keep, strict=True)]
    numbers = [_kept(each.numbers, rows) for each, rows in zip(segments, keep, strict=True)]
    ids = [
        each.ids.values if rows is None else each.ids.values.take(pa.array(rows))
        for each, rows in zip(segments, keep, strict=True)
    ]
    column = IdColumn(pa.concat_arrays(ids))
    return Segment(np.concatenate(codes), column, np.concatenate(numbers))


def settled(segments: list[Segment]) -> list[Segment]:
    """The same rows in segments of falling levels, none mostly of removed rows.

    A damaged segment is left as it is, so that the damage stays where its checksum shows it.
    """
    stack: list[Segment] = []
    for segment in segments:
        if not segment.living:
            continue
        stack += _merged_if_sound([segment]) if 2 * segment.removed > len(segment) else [segment]
        first = len(stack) - 1
        while first > 0 and _level(stack[first - 1]) <= _level_of(stack[first:]):
            first -= 1
        if first < len(stack) - 1:
            stack[first:] = _merged_if_sound(stack[first:])
    return stack


def _merged_if_sound(segments: list[Segment]) -> list[Segment]:
    """The same rows, merged if there are several; up to the last damaged segment as they are."""
    sound = 0
    for i, each in enumerate(segments):
        try:
            each.verify()
        except DataError as error:
            _LOGGER.warning("not merged: %s", error)
            sound = i + 1
    rest = segments[sound:]
    is_whole = len(rest) == 1 and sound > 0
    return [*segments[:sound], *(rest if is_whole or not rest else [merged(rest)])]


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
