"""What an index holds at one moment, unchanging.

Readers take it once a call, without a lock. Writers make the next one and put it in its place,
under a lock. So a call sees what was there when it began, whatever happens meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from neardup.index.clock import Clock
from neardup.index.hits import ABSENT, OTHER, SAME, Places
from neardup.index.id_columns import IdColumn, id_array, id_kind, is_one_id

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import numpy.typing as npt

    from neardup.runtime.types import Flags, Rows

__all__ = ["Held"]


@dataclass(frozen=True, slots=True)
class Held:
    """Segments and the tail, in order of insertion; a subclass says what rows hold.

    Args:
        settings: Of the index.
        segments: Each with what is removed from it.
        tail: The newest rows.
        kind: Of the ids; None before the first one.
        next: The number that the next row gets.
        clock: When rows were added.
    """

    settings: Any
    segments: tuple[Any, ...]
    tail: Any
    kind: str | None
    next: int
    clock: Clock

    @classmethod
    def empty(cls, settings: Any) -> Self:
        """Without a document."""
        return cls(settings, (), cls.new_tail(settings, ()), None, 0, Clock())

    @classmethod
    def of_segments(cls, settings: Any, segments: tuple[Any, ...], end: int, clock: Clock) -> Self:
        """Segments, and an empty tail."""
        kind = segments[0].ids.kind if segments else None
        return cls(settings, segments, cls.new_tail(settings, segments), kind, end, clock)

    @classmethod
    def new_tail(cls, settings: Any, segments: Iterable[Any]) -> Any:
        """A tail without rows, to stand behind these segments."""
        raise NotImplementedError

    @classmethod
    def new_segment(cls, settings: Any, ids: IdColumn, contents: Any, numbers: Rows) -> Any:
        """Rows as a segment in memory."""
        raise NotImplementedError

    @classmethod
    def joined(cls, settings: Any, segments: list[Any]) -> Any:
        """The living rows of segments that stand one after the other, as one.

        Raises:
            DataError: If one of them is damaged: what is copied gets a new checksum.
        """
        raise NotImplementedError

    @classmethod
    def due(cls, segments: list[Any], most: int | None = None) -> tuple[int, int] | None:
        """Which segments it is time to merge, the first and one behind the last; None: none.

        Args:
            segments: In order of insertion.
            most: Rows of a segment that is made of several, at most; None: any number.
        """
        raise NotImplementedError

    @classmethod
    def merging_bytes(cls, stored: float) -> float:
        """What a merge takes of memory for a row at most.

        Args:
            stored: Bytes of a row in files.
        """
        raise NotImplementedError

    @classmethod
    def arranged(cls, settings: Any, segments: list[Any]) -> list[Any]:
        """The same rows, merged where it is time to.

        A damaged segment is left as it is, so that the damage stays where its checksum shows it.
        """
        raise NotImplementedError

    @classmethod
    def stored(
        cls, file: Any, dead: Flags | None = None, changed: frozenset[int] = frozenset()
    ) -> Any:
        """The segment of a SegmentFile."""
        raise NotImplementedError

    @classmethod
    def write(cls, settings: Any, segment: Any, path: Path) -> None:
        """Write a segment to a file: aside, synced, renamed.

        Raises:
            FileError: If it cannot be written.
        """
        raise NotImplementedError

    @staticmethod
    def none(settings: Any) -> Any:
        """The contents of no rows."""
        raise NotImplementedError

    @staticmethod
    def concatenated(parts: list[Any]) -> Any:
        """The contents of several runs of rows, one after the other."""
        raise NotImplementedError

    @staticmethod
    def taken(contents: Any, rows: Rows) -> Any:
        """The contents of some of many rows."""
        raise NotImplementedError

    @staticmethod
    def row(contents: Any, row: int) -> Any:
        """The content of one of many rows."""
        raise NotImplementedError

    @staticmethod
    def bunched(contents: list[Any]) -> Any:
        """The contents of rows, of which each is given as `row` gives it."""
        raise NotImplementedError

    @staticmethod
    def equal(left: Any, right: Any) -> Flags:
        """Which rows of two runs of contents have the same content: bool (n,).

        The only definition of it: equal fingerprints, or equal sets of features.
        """
        raise NotImplementedError

    def contents_at(self, places: Places) -> Any:
        """What is stored at places."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Documents."""
        return int(sum(each.living for each in self.segments) + self.tail.living)

    def __contains__(self, identity: Any) -> bool:
        """Whether a document of this id is there."""
        return self.number(identity) is not None

    def parts(self) -> tuple[Any, ...]:
        """All rows as segments."""
        tail = self.tail
        return (*self.segments, tail.segment(self.kind)) if len(tail) else self.segments

    def oldest(self) -> int:
        """A number that no living row is below."""
        numbers = self.segments[0].numbers if self.segments else self.tail.numbers
        return int(numbers[0]) if len(numbers) else self.next

    def number(self, identity: Any) -> int | None:
        """How many documents were added before this one; None if the id is not present."""
        place = self.place(identity) if id_kind(identity) == self.kind else None
        if place is None:
            return None
        part, row = place
        return int((*self.segments, self.tail)[part].numbers[row])

    def place(self, identity: Any) -> tuple[int, int] | None:
        """Where an id of the index's kind is: the segment, the tail being the last, and the row."""
        row = self.tail.find(identity)
        if row >= 0:
            return len(self.segments), row
        for i, segment in enumerate(self.segments):
            row = segment.find(identity)
            if row >= 0:
                return i, row
        return None

    def is_same(self, place: tuple[int, int], content: Any) -> bool:
        """Whether a document with this content is stored there."""
        stored = self.contents_at(Places.of_one(*place))
        return bool(self.equal(stored, self.bunched([content]))[0])

    def versions(self, column: IdColumn, contents: Any) -> npt.NDArray[np.int8]:
        """How each id is stored: ABSENT, with OTHER content than this, or with the SAME."""
        places = self.places(column)
        here = np.flatnonzero(places.present)
        versions = np.full(len(column), ABSENT, np.int8)
        if len(here):
            stored = self.contents_at(Places(places.segments[here], places.rows[here]))
            versions[here] = np.where(self.equal(stored, self.taken(contents, here)), SAME, OTHER)
        return versions

    def places(self, column: IdColumn) -> Places:
        """Where each id is stored."""
        places = Places.nowhere(len(column))
        if column.kind != self.kind:
            return places
        for i, segment in enumerate(self.segments):
            rows = segment.ids.find(column)
            here = np.flatnonzero(rows >= 0)
            if segment.removed:
                here = here[~segment.dead[rows[here]]]
            places.put(here, i, rows[here])
        if self.tail.living:
            found = np.array([self.tail.find(each) for each in column.values.to_pylist()], np.int64)
            here = np.flatnonzero(found >= 0)
            places.put(here, len(self.segments), found[here])
        return places

    def present(self, ids: Any) -> Places:
        """Where one id or each of many is stored.

        Raises:
            KeyError: If one is not.
        """
        wanted = id_array([ids] if is_one_id(ids) else ids)
        places = self.places(IdColumn(wanted))
        absent = np.flatnonzero(~places.present)
        if len(absent):
            raise KeyError(wanted[int(absent[0])].as_py())
        return places

    def numbers_at(self, places: Places) -> Rows:
        """The numbers of stored documents."""
        numbers = np.empty(len(places.rows), np.int64)
        stored = [*(segment.numbers for segment in self.segments), self.tail.numbers]
        for i, part in enumerate(stored):
            here = places.segments == i
            numbers[here] = part[places.rows[here]]
        return numbers

    def settled(self) -> Self:
        """The same, with a segment in the place of a tail that has rows; nothing is merged."""
        if not len(self.tail):
            return self
        segments = self.segments
        if self.tail.living:
            segments = (*segments, self.tail.segment(self.kind))
        return replace(self, segments=segments, tail=self.new_tail(self.settings, segments))

    def appended(self, identity: Any, content: Any, kind: str) -> Self:
        """This and a row more in the tail, which must have room."""
        tail = self.tail.appended(identity, content, self.next)
        return type(self)(
            self.settings, self.segments, tail, self.kind or kind, self.next + 1, self.clock
        )

    def replaced(
        self, identity: Any, content: Any, place: tuple[int, int] | None, now: float
    ) -> tuple[Self, int]:
        """This and a row more, added now, without the row at `place`; and that one's number, or -1.

        Args:
            identity: Of the row.
            content: Of the row.
            place: Where the id is stored now, as of `place`.
            now: Seconds since 1970.
        """
        tail, segments, gone = self.tail, self.segments, -1
        if place is not None:
            part, row = place
            if part == len(segments):
                gone = int(tail.numbers[row])
                tail = tail.without(row)
            else:
                gone = int(segments[part].numbers[row])
                changed = segments[part].without(np.array([row]))
                segments = (*segments[:part], changed, *segments[part + 1 :])
        tail = tail.appended(identity, content, self.next)
        kind, clock = self.kind or id_kind(identity), self.clock.noted(self.next, now)
        return type(self)(self.settings, segments, tail, kind, self.next + 1, clock), gone

    def expired(self, before: float) -> tuple[Self, Rows]:
        """Without what was added before a time, and its numbers; the tail must be empty."""
        segments, gone = list(self.segments), [_NONE]
        old = self.clock.before(before, self.next)
        for i, segment in enumerate(segments):
            bounds = np.searchsorted(segment.numbers, old)
            rows = np.concatenate([_NONE, *(np.arange(*each) for each in bounds.tolist())])
            if segment.removed:
                rows = rows[~segment.dead[rows]]
            if len(rows):
                segments[i] = segment.without(rows)
                gone.append(segment.numbers[rows])
        return replace(self, segments=tuple(segments)), np.concatenate(gone)

    def compacted(self) -> Self:
        """The same in one segment, without removed rows; the tail must be empty."""
        if len(self.segments) <= 1 and not any(each.removed for each in self.segments):
            return self
        living = [each for each in self.segments if each.living]
        return replace(self, segments=(self.joined(self.settings, living),) if living else ())

    def without(self, places: Places) -> tuple[Self, Rows]:
        """Without what is stored at places, and the numbers of the rows that are gone."""
        segments, tail, gone = list(self.segments), self.tail, [_NONE]
        for i, segment in enumerate(segments):
            rows = np.unique(places.rows[places.segments == i])
            if len(rows):
                segments[i] = segment.without(rows)
                gone.append(segment.numbers[rows])
        rows = np.unique(places.rows[places.segments == len(segments)])
        if len(rows):
            gone.append(tail.numbers[rows])
            tail = tail.without(rows)
        return replace(self, segments=tuple(segments), tail=tail), np.concatenate(gone)

    def without_numbers(self, numbers: Rows) -> Self:
        """Without the rows of these numbers, where they are."""
        if not len(numbers):
            return self
        segments, tail = list(self.segments), self.tail
        for i, segment in enumerate(segments):
            rows = _rows_of(segment.numbers, numbers)
            if segment.removed:
                rows = rows[~segment.dead[rows]]
            if len(rows):
                segments[i] = segment.without(rows)
        rows = _rows_of(tail.numbers, numbers)
        rows = rows[tail.alive(rows)]
        if len(rows):
            tail = tail.without(rows)
        return replace(self, segments=tuple(segments), tail=tail)


_NONE = np.empty(0, np.int64)


def _rows_of(stored: Rows, numbers: Rows) -> Rows:
    """The rows of ascending numbers that are among these, each once."""
    if not len(stored):
        return _NONE
    rows = np.minimum(np.searchsorted(stored, numbers), len(stored) - 1)
    return np.unique(rows[stored[rows] == numbers])
