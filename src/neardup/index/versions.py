"""Versions, each the content of an index at one time, and the kinds of index.

A version does not change. Readers take one for each call, without a lock; the writer makes the next
one and replaces it, under the lock of its store. So a call sees the documents that were stored when
it began, in spite of writes during it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from neardup.index.clock import Clock, runs_of
from neardup.index.hits import ABSENT, OTHER, SAME, Places
from neardup.index.id_columns import (
    IdColumn,
    IdColumns,
    id_array,
    id_kind,
    is_one_id,
)
from neardup.index.stored_rows import sound_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt
    import pyarrow as pa

    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.hits import Closest, Hits, Id
    from neardup.index.protocol import Documents, Ids
    from neardup.index.segment_files import SegmentFile
    from neardup.index.stored_rows import Content, SegmentRows, Tail
    from neardup.runtime.types import Flags, Rows, Times

__all__ = ["AnyKind", "AnyVersion", "Kind", "Place", "Version", "merge_due"]

M = TypeVar("M")
"""The contents of many rows: uint64 (n, width), or Sets."""
Place: TypeAlias = tuple[int, int]
"""The place of a row: its segment, the tail being the last, and the row in it."""


class Kind(Protocol[M]):
    """A kind of index: the contents of its rows and their search; a value, which does not change.

    Settings, conversion of documents (`one`, `many`), segments and the tail (`tail`, `build`,
    `merge`,
    `next_merge`), files (`read`, `write`), answers (`hits`, `search`, `nearest`), and the
    contents of many rows (`none` to `equal`).
    """

    @property
    def name(self) -> str:
        """The name of its scores: "distance" or "similarity", also the column of tables."""

    @property
    def noun(self) -> str:
        """The noun for the documents that it accepts."""

    @property
    def scores(self) -> pa.DataType:
        """The Arrow type of its scores."""

    @property
    def recipe(self) -> Recipe | None:
        """The recipe that reads texts; None if only fingerprints or feature hashes are accepted."""

    @property
    def extract(self) -> str | None:
        """The part of an HTML text that is compared: "main", "all" or "none"; None: not named."""

    @property
    def keeps(self) -> str:
        """The part of a document's content that rows hold: "features", or "" for nothing."""

    @property
    def reach(self) -> float:
        """The distance or similarity for which it was made."""

    def settings(self) -> dict[str, Any]:
        """The description in a file: JSON values."""

    def describe(self, reach: float) -> dict[str, Any]:
        """The kind's part of `stats`, in an index that searches to this reach."""

    def title(self, reach: float) -> str:
        """The description in a few words, for people."""

    def within(self, limit: float, reach: float) -> float:
        """Check the reach of a query, in an index that searches to `reach`.

        Raises:
            UsageError: If it is out of range, or beyond that of the index.
        """

    def one(self, document: Documents) -> Content | None:
        """Convert one document to the content of a row; None for one without tokens."""

    def many(self, documents: Documents, workers: int | None = None) -> tuple[M, Rows, int]:
        """Contents of the documents that have tokens, their rows, and the number of all."""

    def tail(self, segments: Sequence[SegmentRows]) -> Tail[Any]:
        """A tail without rows, to follow these segments."""

    def build(self, ids: IdColumn, contents: M, numbers: Rows) -> SegmentRows:
        """Rows as a segment in memory, whose arrays are made at the first search."""

    def merge(self, segments: list[Any], folder: Path | None = None) -> SegmentRows:
        """The living rows of segments that stand one after the other, as one.

        Args:
            segments: In order of insertion.
            folder: For arrays too large for memory, in files without a name.

        Raises:
            DataError: If one of them is damaged: what is copied gets a new checksum.
        """

    def next_merge(
        self, segments: Sequence[SegmentRows], most: int | None = None
    ) -> tuple[int, int] | None:
        """The segments that the merge policy merges next: the first, and the one after the last.

        Args:
            segments: In order of insertion.
            most: Rows of a segment that is made of several, at most; None: any number.
        """

    def merging_bytes(self, stored: float) -> float:
        """The most memory that a merge takes for a row, given its bytes in files."""

    def read(
        self, file: SegmentFile, dead: Flags | None = None, changed: frozenset[int] = frozenset()
    ) -> SegmentRows:
        """The segment of a file."""

    def write(self, segment: Any, path: Path) -> None:
        """Write a segment to a file: aside, synced, renamed.

        Raises:
            FileError: If it cannot be written.
        """

    def save(
        self, version: Version[M], path: Path, header: dict[str, Any], arrays: dict[str, Any]
    ) -> None:
        """Write all living rows to one file, with further header entries and arrays."""

    def numbers(self, version: Version[M]) -> Rows:
        """The numbers of the rows that `save` writes."""

    def packed(self, version: Version[M]) -> list[Any]:
        """All living rows as plain arrays, to be pickled."""

    def unpacked(self, packed: list[Any]) -> tuple[SegmentRows, ...]:
        """The segments for the arrays of `packed`."""

    def hits(
        self, version: Version[M], content: Content, reach: float, most: int | None
    ) -> Hits[Any]:
        """The documents within the reach of one document, the closest first, at most `most`."""

    def closest(self, version: Version[M], contents: M, reach: float) -> Closest:
        """The closest stored document within the reach of each of some documents."""

    def search(
        self, version: Version[M], documents: Documents, reach: float, limit: int | None,
        workers: int | None, *, by_age: bool = False,
    ) -> tuple[pa.Table, int]:  # fmt: skip
        """The documents within the reach of each of many documents, and the number of queries.

        With `by_age` the first ones are the oldest, not the closest.
        """

    def nearest(
        self, version: Version[M], content: Content, n: int, reach: float, by: str | None
    ) -> list[tuple[Id, Any]]:
        """The n closest documents, at any distance."""

    def nearest_batch(
        self, version: Version[M], documents: Documents, n: int, reach: float, by: str | None,
        workers: int | None,
    ) -> pa.Table:  # fmt: skip
        """As `nearest`, for many."""

    def example(self, row: int) -> Documents:
        """A document by its number, to warm up with."""

    def check_merging(self, other: Any, *, foreign: bool) -> None:
        """Compare with another index of this kind before a merge.

        Raises:
            UsageError: If widths differ.
            RecipeError: If recipes differ, or may differ and `foreign` is false.
        """

    def batches(self, version: Version[M]) -> Iterator[tuple[pa.Array, M]]:
        """All ids and contents, in order of insertion."""

    def values(self, contents: M) -> list[Any]:
        """Contents as callers see them: an int, or uint64 (n,), for each row."""

    def none(self) -> M:
        """The contents of no rows."""

    def joined(self, parts: list[M]) -> M:
        """The contents of several runs of rows, one after the other."""

    def taken(self, contents: M, rows: Rows) -> M:
        """The contents of some of many rows."""

    def row(self, contents: M, row: int) -> Content:
        """The content of one of many rows."""

    def bunched(self, contents: list[Content]) -> M:
        """The contents of rows, from the value of `row` for each."""

    def equal(self, left: M, right: M) -> Flags:
        """Whether rows of two runs of contents have the same content: bool (n,).

        It is the only definition of equal: equal fingerprints, or equal sets of features.
        """


@dataclass(frozen=True, slots=True)
class Version(Generic[M]):
    """Segments and the tail, in order of insertion.

    Args:
        kind: Of the index.
        segments: Each with its removed rows.
        tail: The newest rows.
        id_kind: Of the ids, "int" or "str"; None before the first one.
        next: The number that the next row gets.
        clock: When rows were added.
    """

    kind: Kind[M]
    segments: tuple[Any, ...]
    tail: Any
    id_kind: str | None
    next: int
    clock: Clock

    @classmethod
    def empty(cls, kind: Kind[M]) -> Version[M]:
        """A version without a document."""
        return cls(kind, (), kind.tail(()), None, 0, Clock())

    @classmethod
    def of_segments(
        cls, kind: Kind[M], segments: tuple[Any, ...], end: int, clock: Clock
    ) -> Version[M]:
        """Segments, and an empty tail."""
        name = segments[0].ids.kind if segments else None
        return cls(kind, segments, kind.tail(segments), name, end, clock)

    def __len__(self) -> int:
        """Documents."""
        return int(sum(each.living for each in self.segments) + self.tail.living)

    def __contains__(self, identity: Id) -> bool:
        """Whether a document with this id is stored."""
        return self.number(identity) is not None

    def parts(self) -> tuple[Any, ...]:
        """All rows as segments."""
        tail = self.tail
        return (*self.segments, tail.segment(self.id_kind)) if len(tail) else self.segments

    def oldest(self) -> int:
        """A lower bound of the numbers of living rows."""
        numbers = self.segments[0].numbers if self.segments else self.tail.numbers
        return int(numbers[0]) if len(numbers) else self.next

    def number(self, identity: Id) -> int | None:
        """The number of documents added before this one; None if the id is not present."""
        place = self.place(identity) if id_kind(identity) == self.id_kind else None
        if place is None:
            return None
        part, row = place
        return int((*self.segments, self.tail)[part].numbers[row])

    def largest_number(self) -> int:
        """The largest whole number that is an id of any row, removed ones included; -1 for none."""
        if self.id_kind != "int":
            return -1
        numbers = [int(each.ids.values.to_numpy().max()) for each in self.segments if len(each)]
        return int(max([-1, *numbers, *self.tail.ids[: len(self.tail)]]))

    def place(self, identity: Id) -> Place | None:
        """The place of an id of the index's kind."""
        row = self.tail.find(identity)
        if row >= 0:
            return len(self.segments), row
        for i, row in self._ids_before_tail().places_of(identity):
            if not self.segments[i].is_dead(row):
                return i, row
        return None

    def contents_at(self, places: Places) -> M:
        """The contents at places."""
        parts, order = [self.kind.none()], []
        for i, part in enumerate([*self.segments, self.tail]):
            here = np.flatnonzero(places.segments == i)
            if len(here):
                parts.append(part.contents(places.rows[here]))
                order.append(here)
        if len(parts) == 2:  # all in one segment, in their order
            return parts[1]
        rows = np.concatenate([*order, _NONE])
        return self.kind.taken(self.kind.joined(parts), np.argsort(rows))

    def is_same(self, place: Place, content: Content) -> bool:
        """Whether a document with this content is stored there."""
        stored = self.contents_at(Places.of_one(*place))
        return bool(self.kind.equal(stored, self.kind.bunched([content]))[0])

    def states(self, column: IdColumn, contents: M) -> npt.NDArray[np.int8]:
        """The state of each id: ABSENT, with OTHER content than this, or with the SAME."""
        places = self.places(column)
        here = np.flatnonzero(places.present)
        states = np.full(len(column), ABSENT, np.int8)
        if len(here):
            stored = self.contents_at(Places(places.segments[here], places.rows[here]))
            same = self.kind.equal(stored, self.kind.taken(contents, here))
            states[here] = np.where(same, SAME, OTHER)
        return states

    def places(self, column: IdColumn) -> Places:
        """The place of each id."""
        places = Places.nowhere(len(column))
        if column.kind != self.id_kind:
            return places
        every = self._ids_before_tail().rows_of(column)
        for i in np.flatnonzero((every >= 0).any(axis=1)).tolist():
            rows = every[i]
            here = np.flatnonzero(rows >= 0)
            here = here[self.segments[i].alive(rows[here])]
            places.put(here, i, rows[here])
        if self.tail.living:
            in_tail = self.tail.rows_of(column.values.to_pylist())
            rows = np.array([*in_tail.values()], np.int64)
            places.put(np.array([*in_tail], np.int64), len(self.segments), rows)
        return places

    def _ids_before_tail(self) -> IdColumns:
        """The ids of the segments, which the tail caches as long as these stay."""
        counts = self.tail.rows.ids_before
        if counts is not None and counts[0] is self.segments:
            columns: IdColumns = counts[1]
            return columns
        columns = IdColumns([each.ids for each in self.segments])
        self.tail.rows.ids_before = self.segments, columns
        return columns

    def present(self, ids: Ids) -> Places:
        """The place of an id, or of each of many ids.

        Raises:
            KeyError: If an id is not present.
        """
        array = id_array([ids] if is_one_id(ids) else ids)
        places = self.places(IdColumn(array))
        absent = np.flatnonzero(~places.present)
        if len(absent):
            raise KeyError(array[int(absent[0])].as_py())
        return places

    def numbers_at(self, places: Places) -> Rows:
        """The numbers of stored documents."""
        numbers = np.empty(len(places.rows), np.int64)
        stored = [*(segment.numbers for segment in self.segments), self.tail.numbers]
        for i, part in enumerate(stored):
            here = places.segments == i
            numbers[here] = part[places.rows[here]]
        return numbers

    def flushed(self) -> Self:
        """The same rows, with a non-empty tail made a segment; nothing is merged."""
        if not len(self.tail):
            return self
        segments = self.segments
        if self.tail.living:
            segments = (*segments, self.tail.segment(self.id_kind))
        return replace(self, segments=segments, tail=self.kind.tail(segments))

    def extended(
        self, column: IdColumn, contents: M, flushed: Callable[[Version[M]], Version[M]]
    ) -> Version[M]:
        """A version with more rows in the tail; the clock has their times.

        Args:
            column: Their ids, all different, none of them stored.
            contents: Of them.
            flushed: Makes a segment of a full tail.
        """
        version, ids, begin = self, column.values.to_pylist(), 0
        while begin < len(ids):
            version = version if version.tail.room else flushed(version)
            end = min(len(ids), begin + version.tail.room)
            some = contents
            if end - begin < len(ids):
                some = self.kind.taken(contents, np.arange(begin, end))
            tail = version.tail.extended(ids[begin:end], some, version.next)
            after = version.next + end - begin
            version = replace(version, tail=tail, next=after, id_kind=column.kind)
            begin = end
        return version

    def replaced(
        self, identity: Id, content: Content, place: Place | None, now: float
    ) -> tuple[Version[M], int]:
        """A version with one more row, without the row at `place`, and that row's number, or -1.

        Args:
            identity: Of the row.
            content: Of the row.
            place: The current place of the id, as from `place`.
            now: Seconds since 1970.
        """
        tail, segments, old_number = self.tail, self.segments, -1
        if place is not None:
            part, row = place
            if part == len(segments):
                old_number = int(tail.numbers[row])
                tail = tail.without(row)
            else:
                old_number = int(segments[part].numbers[row])
                changed = segments[part].without(np.array([row]))
                segments = (*segments[:part], changed, *segments[part + 1 :])
        tail = tail.appended(identity, content, self.next)
        ids, clock = self.id_kind or id_kind(identity), self.clock.noted(self.next, now)
        return Version(self.kind, segments, tail, ids, self.next + 1, clock), old_number

    def offered(
        self, ids: list[Id], contents: M, closest: Closest, reach: float, now: float
    ) -> tuple[Version[M], Rows, Rows]:
        """A version with those of many documents that are not near an earlier one.

        Args:
            ids: All different, none of them stored; at most as many as fit into the tail.
            contents: Of the documents.
            closest: The closest stored documents; its scores are changed to those of the closest of
                all, new ones included.
            reach: The distance or similarity at which one is near.
            now: Seconds since 1970.

        Returns:
            The version; int64 (n,): the new row of the tail that is closer than all stored rows, or
            -1; and the documents that are stored now, ascending.
        """
        tail, near, added = self.tail.offered(ids, contents, closest.scores, reach, self.next)
        if not len(added):
            return self, near, added
        name, clock = self.id_kind or id_kind(ids[0]), self.clock.noted(self.next, now)
        end = self.next + len(added)
        return Version(self.kind, self.segments, tail, name, end, clock), near, added

    def id_at(self, place: Place) -> Id:
        """The id of a row."""
        part, row = place
        if part == len(self.segments):
            return self.tail.ids[row]  # type: ignore[no-any-return]
        return self.segments[part].ids.value(row)  # type: ignore[no-any-return]

    def with_segment(self, ids: IdColumn, times: Times, segments: tuple[Any, ...]) -> Version[M]:
        """A version with more rows, added at these times, in the last segment, and no tail."""
        clock = self.clock.extended(*runs_of(self.next, times))
        end, tail = self.next + len(ids), self.kind.tail(segments)
        return Version(self.kind, segments, tail, ids.kind, end, clock)

    def expired(self, before: float) -> tuple[Self, Rows]:
        """A version without rows added before a time, and their numbers; the tail must be empty."""
        segments, removals = list(self.segments), [_NONE]
        old = self.clock.before(before, self.next)
        for i, segment in enumerate(segments):
            bounds = np.searchsorted(segment.numbers, old)
            rows = np.concatenate([_NONE, *(np.arange(*each) for each in bounds.tolist())])
            if segment.removed:
                rows = rows[~segment.dead[rows]]
            if len(rows):
                segments[i] = segment.without(rows)
                removals.append(segment.numbers[rows])
        return replace(self, segments=tuple(segments)), np.concatenate(removals)

    def compacted(self, folder: Path | None = None) -> Self:
        """The same rows in one segment, without removed rows; the tail must be empty.

        Args:
            folder: As in Kind.merge.
        """
        if len(self.segments) <= 1 and not any(each.removed for each in self.segments):
            return self
        living = [each for each in self.segments if each.living]
        return replace(self, segments=(self.kind.merge(living, folder),) if living else ())

    def without(self, places: Places) -> tuple[Self, Rows]:
        """A version without the rows at some places, and the numbers of the removed rows."""
        segments, tail, removals = list(self.segments), self.tail, [_NONE]
        for i, segment in enumerate(segments):
            rows = np.unique(places.rows[places.segments == i])
            if len(rows):
                segments[i] = segment.without(rows)
                removals.append(segment.numbers[rows])
        rows = np.unique(places.rows[places.segments == len(segments)])
        if len(rows):
            removals.append(tail.numbers[rows])
            tail = tail.without(rows)
        return replace(self, segments=tuple(segments), tail=tail), np.concatenate(removals)

    def without_numbers(self, numbers: Rows) -> Self:
        """A version without the rows of these numbers, if they exist."""
        return self.without(self.numbered(numbers))[0] if len(numbers) else self

    def numbers_of(self, column: IdColumn) -> Rows:
        """The numbers of those ids that are stored."""
        places = self.places(column)
        here = places.present
        return self.numbers_at(Places(places.segments[here], places.rows[here]))

    def numbered(self, numbers: Rows) -> Places:
        """The places of the living rows with these numbers."""
        places = Places.nowhere(len(numbers))
        for i, part in enumerate([*self.segments, self.tail] if len(numbers) else []):
            if len(part):
                rows = np.minimum(np.searchsorted(part.numbers, numbers), len(part) - 1)
                here = np.flatnonzero(part.numbers[rows] == numbers)
                here = here[part.alive(rows[here])]
                places.put(here, i, rows[here])
        return places

    def added_since(self, number: int, ids: IdColumn) -> Rows:
        """The numbers, from `number` on, of living rows with one of these ids."""
        numbers = [_NONE]
        for part in (*self.segments, self.tail):
            first = int(np.searchsorted(part.numbers, number))
            if first < len(part):
                column = (
                    part.ids[first : len(part)] if part is self.tail else part.ids.values[first:]
                )
                (rows,) = IdColumns([ids]).rows_of(IdColumn(id_array(column)))
                places = first + np.flatnonzero(rows >= 0)
                numbers.append(part.numbers[places[part.alive(places)]])
        return np.concatenate(numbers)


AnyKind: TypeAlias = Kind[Any]
AnyVersion: TypeAlias = Version[Any]


def merge_due(
    kind: Kind[M], segments: Sequence[SegmentRows], most: int | None = None
) -> list[SegmentRows]:
    """The same rows, merged as long as the merge policy names segments; see Kind.next_merge.

    A damaged segment stays as it is, so that its checksum still shows the damage.
    """
    stack = [segment for segment in segments if segment.living]
    begin = 0
    while range_ := kind.next_merge(stack[begin:], most):
        first, last = begin + range_[0], begin + range_[1]
        sound = sound_from(stack[first:last])
        if sound:
            begin = first + sound
            continue
        stack[first:last] = [kind.merge(stack[first:last])]
    return stack


_NONE = np.empty(0, np.int64)
