"""Adding to an index by similarity, and removing; what the one in memory and the durable share.

New documents wait in a tail. A full tail becomes a segment, and when as many of one level as
SEGMENTS_A_LEVEL stand at the end, they become one: so an index has few segments, and a document is
copied once a level in its life.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.errors import DataError, RecipeError, UsageError
from neardup.index.ids import IdColumn, id_array, id_kind, is_one_id
from neardup.index.incoming import as_time
from neardup.index.similar.incoming import many_sets
from neardup.index.similar.queries import SimilarQueries, State
from neardup.index.similar.segment import Rows, Segment, build, merged, no_order
from neardup.index.similar.tail import TAIL_ROWS, Tail

if TYPE_CHECKING:
    from neardup.index.similar.sets import Sets
    from neardup.kernels.index.sets import Order

__all__ = ["SimilarWriting"]

_LOGGER: Final = logging.getLogger("neardup")

SMALL_BATCH: Final = 512
SEGMENTS_A_LEVEL: Final = 4


class SimilarWriting(SimilarQueries):
    """Documents by id, searched exactly by similarity."""

    def __reduce__(self) -> Any:
        """Refuse; the index in memory can be pickled.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f"{self!r} cannot be pickled: send its path, and open it there")

    def add(self, ids: Any, documents: Any) -> int:
        """Store one document or many; one whose id is present is replaced and counts as new.

        Args:
            ids: A str or int; or many of one kind, as a sequence, NumPy or Arrow array.
            documents: As many: texts if the index has a recipe, or feature hashes (uint64 (n,), of
                many an Arrow list array). Documents without features are left out, since they
                match nothing.

        Returns:
            How many were stored.

        Raises:
            UsageError: For ids of mixed kinds or another kind than those stored, a wrong number
                of documents, or texts without a recipe.
        """
        if is_one_id(ids):
            features = self._one(documents)
            with self._lock:
                if not len(features):
                    return 0
                self._add_one(ids, features)
                return 1
        column = IdColumn(id_array(ids))
        sets = many_sets(documents, self._settings)
        if len(column) != sets.size:
            raise UsageError(f"{len(column):,} ids for {sets.size:,} documents: give as many")
        with self._lock:
            return self._add_many(column, sets)

    def add_if_new(self, identity: Any, document: Any) -> tuple[Any, float] | None:
        """Store a document unless a similar one is stored; no other add comes between.

        Returns:
            None if it was stored (or has no features), else the most similar stored
            (id, similarity), the first added of equally similar ones.

        Raises:
            UsageError: As `add`.
        """
        features = self._one(document)
        with self._lock:
            self._check_kind(id_kind(identity))
            if not len(features):
                return None
            near, _ = self._hits(features, float(self.similarity), 1)
            if near:
                return near[0]
            self._add_one(identity, features)
            return None

    def remove(self, ids: Any) -> int:
        """Remove one document by its id, or many.

        Returns:
            How many were removed.

        Raises:
            KeyError: If an id is not present; then nothing is removed.
        """
        with self._lock:
            wanted = id_array([ids] if is_one_id(ids) else ids).to_pylist()
            places = []
            for identity in wanted:
                kind = id_kind(identity)
                place = self._place(self._state, identity) if kind == self._kind else None
                if place is None:
                    raise KeyError(identity)
                places.append(place)
            return self._remove_places(places)

    def expire(self, before: float) -> int:
        """Remove the documents added before a time.

        Args:
            before: Seconds since 1970, as of time.time().

        Returns:
            How many were removed.
        """
        with self._lock:
            old = self._clock.before(as_time("before", before), self._next).tolist()
            segments, tail, count, *_ = self._state
            parts = [*(each.numbers for each in segments), tail.numbers[:count]]
            places = [
                (i, row)
                for i, numbers in enumerate(parts)
                for first, last in old
                for row in range(*np.searchsorted(numbers, (first, last)))
            ]
            return self._remove_places(places)

    def merge(self, other: SimilarWriting) -> None:
        """Add all documents of another index, in its order; ids that both have are replaced.

        Raises:
            UsageError: If the other is no index by similarity.
            RecipeError: If the recipes differ.
        """
        if not isinstance(other, SimilarWriting):
            raise UsageError(
                f"{type(other).__name__} is no index by similarity: merge one with similarity="
            )
        mine, theirs = self._settings.recipe, other._settings.recipe
        if mine and theirs and mine.digest != theirs.digest:
            raise RecipeError(
                f"the other index's recipe is {theirs.digest}, this one's {mine.digest}: features"
                " of two recipes cannot be compared"
            )
        with self._lock:
            for ids, sets in list(other.batches()):
                self._add_many(IdColumn(ids), sets)

    def compact(self) -> None:
        """Bring everything into one segment and forget removed rows."""
        with self._lock:
            self._settle()
            segments = self._state.segments
            if len(segments) > 1 or any(each.removed for each in segments):
                self._publish(self._compacted(segments))

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def _check_kind(self, kind: str) -> None:
        if self._kind not in {None, kind}:
            raise UsageError(f"the index has ids of kind {self._kind}, not {kind}")

    def _add_one(self, identity: Any, features: Any) -> None:
        kind = id_kind(identity)
        self._check_kind(kind)
        self._kind = kind
        identity = str(identity) if kind == "str" else int(identity)
        if self._state.tail_rows == TAIL_ROWS:
            self._settle()
        state = self._state
        before = self._place(state, identity)
        number = self._numbered(1)
        row = state.tail.append(identity, features, number, self._settings)
        gone = 0
        if before is not None:
            gone = self._mark([before], state.stamp + 1)
        self._state = State(
            state.segments, state.tail, row + 1, state.stamp + 1, state.living + 1 - gone
        )
        self._added_one(identity, features)

    def _add_many(self, column: IdColumn, sets: Sets) -> int:
        full = np.flatnonzero(np.diff(sets.offsets))
        if len(full) < len(column):
            column, sets = IdColumn(column.values.take(pa.array(full))), sets.take(full)
        if not len(column):
            return 0
        self._check_kind(column.kind)
        self._kind = column.kind
        repeated = column.repeated()
        if repeated is not None:
            keep = np.flatnonzero(~repeated)
            column, sets = IdColumn(column.values.take(pa.array(keep))), sets.take(keep)
        if len(column) <= SMALL_BATCH:
            for row, identity in enumerate(column.values.to_pylist()):
                self._add_one(identity, sets.of(row))
            return len(column)
        self._settle()
        places = self._places(column)
        first = self._numbered(len(column))
        numbers = np.arange(first, first + len(column))
        segment = build(Rows(sets, np.arange(len(column)), column, numbers), self._settings)
        state = self._state
        gone = self._mark(places, state.stamp + 1)
        segments = (*state.segments, segment)
        living = state.living + len(column) - gone
        self._state = State(segments, state.tail, state.tail_rows, state.stamp + 1, living)
        self._added(column.values, sets)
        self._publish(self._arranged(list(segments)))
        return len(column)

    def _numbered(self, count: int) -> int:
        """The first of `count` new numbers, inserted now."""
        first = self._next
        self._clock.note(first, time.time())
        self._next = first + count
        return first

    def _places(self, column: IdColumn) -> list[tuple[int, int]]:
        """The parts and rows of those of these ids that are stored."""
        state, places = self._state, []
        for i, segment in enumerate(state.segments):
            rows = segment.ids.find(column)
            rows = rows[rows >= 0]
            alive = segment.alive(state.stamp)
            places += [(i, row) for row in rows.tolist() if alive is None or alive[row]]
        if state.tail.row_of:
            found = (state.tail.row_of.get(each) for each in column.values.to_pylist())
            places += [(len(state.segments), row) for row in found if row is not None]
        return places

    def _remove_places(self, places: list[tuple[int, int]]) -> int:
        state = self._state
        gone = self._mark(places, state.stamp + 1)
        self._state = State(
            state.segments, state.tail, state.tail_rows, state.stamp + 1, state.living - gone
        )
        return gone

    def _mark(self, places: list[tuple[int, int]], stamp: int) -> int:
        """Mark rows as removed from a stamp on; how many were there."""
        segments, tail, *_ = self._state
        numbers = []
        for i, segment in enumerate(segments):
            rows = np.array(sorted({row for part, row in places if part == i}), np.int64)
            if len(rows):
                numbers += segment.numbers[segment.remove(rows, stamp)].tolist()
        for row in sorted({row for part, row in places if part == len(segments)}):
            if tail.died[row] > stamp:
                tail.remove(row, stamp)
                numbers.append(int(tail.numbers[row]))
        if numbers:
            self._removed(np.array(numbers, np.int64))
        return len(numbers)

    def _settle(self) -> None:
        """Make a segment of the tail, and merge segments."""
        segments, tail, count, *_ = self._state
        if count:
            rows = tail.living_rows(count, self._kind or "int")
            fresh = [merged([rows], self._settings)] if len(rows.ids) else []
            self._publish(self._arranged([*segments, *fresh]), Tail(self._tail_order()))

    def _tail_order(self) -> Order:
        """Of the largest segment, so that what is heavy there comes last in the tail too."""
        segments = self._state.segments
        return max(segments, key=len).order if segments else no_order()

    def _publish(self, segments: list[Segment], tail: Tail | None = None) -> None:
        """Go on with these segments, which hold the same documents."""
        state = self._state
        count = state.tail_rows if tail is None else 0
        self._state = State(tuple(segments), tail or state.tail, count, state.stamp, state.living)

    def _arranged(self, segments: list[Segment]) -> list[Segment]:
        """Merge segments where it is time to; a damaged one is left as it is."""
        stack = [segment for segment in segments if segment.living]
        for i, segment in enumerate(stack):
            if 2 * segment.removed > len(segment):
                (stack[i],) = self._merged_if_sound([segment])
        while len(stack) >= SEGMENTS_A_LEVEL:
            last = stack[-SEGMENTS_A_LEVEL:]
            if max(map(_level, last)) > _level(last[-1]):
                break
            first = len(stack) - SEGMENTS_A_LEVEL
            while first and _level(stack[first - 1]) <= _level(last[-1]):
                first -= 1
            rest = self._merged_if_sound(stack[first:])
            if len(rest) == len(stack) - first:
                break
            stack[first:] = rest
        return stack

    def _merged_if_sound(self, segments: list[Segment]) -> list[Segment]:
        """The same rows, merged; up to the last damaged segment as they are."""
        sound = 0
        for i, each in enumerate(segments):
            try:
                each.verify()
            except DataError as error:
                _LOGGER.warning("not merged: %s", error)
                sound = i + 1
        rest = segments[sound:]
        if not rest or (len(rest) == 1 and sound > 0):
            return segments
        rows = [each.living_rows() for each in rest]
        return [*segments[:sound], merged(rows, self._settings)]

    def _compacted(self, segments: tuple[Segment, ...]) -> list[Segment]:
        rows = [each.living_rows() for each in segments if each.living]
        return [merged(rows, self._settings)] if rows else []

    def _added(self, ids: Any, sets: Sets) -> None:
        """Called with rows that were stored; the durable index logs."""

    def _added_one(self, identity: Any, features: Any) -> None:
        """As `_added`, for one row."""

    def _removed(self, numbers: Any) -> None:
        """Called with the numbers of rows that were removed or replaced."""


def _level(segment: Segment) -> int:
    level = 0
    while segment.living > TAIL_ROWS * SEGMENTS_A_LEVEL**level:
        level += 1
    return level
