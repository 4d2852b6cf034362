"""What the index in memory and the durable one share beside queries: adding and removing.

Writers take a lock, make the next snapshot, and put it in the place of the one that queries read.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.index.clock import runs_of
from neardup.index.ids import IdColumn, id_array, id_kind, is_one_id
from neardup.index.incoming import as_time, many_fingerprints
from neardup.index.queries import IndexView, Queries
from neardup.index.segments import TAIL_ROWS, Segment, Tail, merged, settled
from neardup.index.snapshot import Snapshot
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.index.hits import Places

__all__ = ["BaseIndex"]

SMALL_BATCH: Final = 512


class BaseIndex(Queries):
    """Fingerprints by id, searched exactly; see Index and DurableIndex.

    Args:
        state: What it holds at first.
        distance: Of Queries.
    """

    def __init__(self, state: Snapshot, distance: int | None = None) -> None:
        """Hold this."""
        super().__init__(state.settings, distance)
        self._lock = threading.RLock()
        self._state = state

    def _read(self) -> Snapshot:
        return self._state

    def __reduce__(self) -> Any:
        """Refuse; Index can be pickled.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f"{self!r} cannot be pickled: send its path, and open it there")

    def add(self, ids: Any, fingerprints: Any) -> int:
        """Store one document or many; one whose id is present is replaced and counts as new.

        Args:
            ids: A str or int; or many of one kind, as a sequence, NumPy or Arrow array.
            fingerprints: As many: ints, uint64 (n,) or (n, width), or texts if the index has a
                recipe. Documents without a fingerprint (no tokens: None, or masked) are left out,
                since they match nothing.

        Returns:
            How many were stored.

        Raises:
            UsageError: For ids of mixed kinds or another kind than those stored, a wrong number,
                width or type of fingerprints, or texts without a recipe.
        """
        with self._lock:
            if is_one_id(ids):
                codes = self._one(fingerprints)
                if codes is None:
                    return 0
                self._add_one(ids, codes)
                return 1
            return self._add_many(ids, fingerprints)

    def add_if_new(self, identity: Any, fingerprint: Any) -> tuple[Any, int] | None:
        """Store a document unless one within the distance is stored; no other add comes between.

        Returns:
            None if it was stored (or has no tokens), else the nearest stored (id, distance), the
            first added of equally near ones.

        Raises:
            UsageError: As `add`.
        """
        with self._lock:
            self._check_kind(id_kind(identity))
            codes = self._one(fingerprint)
            if codes is None:
                return None
            near, _ = self._state.hits(codes, self.distance, 1)
            if near:
                return near[0][2], near[0][0]
            self._add_one(identity, codes)
            return None

    def remove(self, ids: Any) -> int:
        """Remove one document by its id, or many.

        Returns:
            How many were removed.

        Raises:
            KeyError: If an id is not present; then nothing is removed.
        """
        with self._lock:
            places = self._state.present(ids)
            state, gone = _without(self._state, places)
            self._removed(gone)
            self._state = state
            return len(gone)

    def expire(self, before: float) -> int:
        """Remove the documents added before a time.

        Args:
            before: Seconds since 1970, as of time.time().

        Returns:
            How many were removed.
        """
        with self._lock:
            limit = as_time("before", before)
            state, gone = self._settled(self._state), [_NONE]
            old = state.clock.before(limit, state.next)
            segments = list(state.segments)
            for i, segment in enumerate(segments):
                bounds = np.searchsorted(segment.numbers, old)
                rows = np.concatenate([_NONE, *(np.arange(*each) for each in bounds.tolist())])
                rows = rows[~segment.dead[rows]]
                if len(rows):
                    segments[i] = segment.without(rows)
                    gone.append(segment.numbers[rows])
            numbers = np.concatenate(gone)
            self._removed(numbers)
            self._state = replace(state, segments=tuple(segments))
            return len(numbers)

    def merge(self, other: BaseIndex, *, foreign: bool = False) -> None:
        """Add all documents of another index, in its order; ids that both have are replaced.

        They keep the times at which they were added, and their texts or features.

        Args:
            other: Which.
            foreign: Take fingerprints of which no recipe is known as those of this one's.

        Raises:
            UsageError: If widths or recipes differ, or the other keeps less than this one.
        """
        if not isinstance(other, BaseIndex):
            raise UsageError(f"{type(other).__name__} is no index: merge Index or DurableIndex")
        with self._lock, other.snapshot() as seen:
            self._check_merging(seen, foreign=foreign)
            for ids, codes, contents, times in seen.rows():
                self._merge_rows(ids, codes, contents, times)

    def snapshot(self) -> IndexView:
        """The index as it is now, for several calls that must agree.

        Example:
            >>> from neardup import Index
            >>> index = Index()
            >>> before = index.snapshot()
            >>> index.add("a", 0b1011)
            1
            >>> len(before), len(index)
            (0, 1)
        """
        return IndexView(self._read(), self.distance)

    def compact(self) -> None:
        """Bring everything into one segment and forget removed rows."""
        with self._lock:
            state = self._settled(self._state)
            if len(state.segments) > 1 or any(each.removed for each in state.segments):
                whole = merged(list(state.segments))
                state = replace(state, segments=(whole,) if len(whole) else ())
            self._state = state

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def _check_merging(self, other: IndexView, *, foreign: bool) -> None:
        mine, theirs = self.recipe, other.recipe
        if self.bits != other.bits:
            raise UsageError(f"the other index has {other.bits} bits, this one {self.bits}")
        if mine and theirs and mine.digest != theirs.digest:
            raise UsageError(
                f"the other index's recipe is {theirs.digest}, this one's {mine.digest}:"
                " fingerprints of two recipes cannot be compared"
            )
        if mine and not theirs and not foreign:
            raise UsageError(
                f"this index has recipe {mine.digest}, the other none, so nothing says that its"
                " fingerprints are of that recipe: if they are, pass foreign=True"
            )

    def _merge_rows(self, ids: Any, codes: Any, _: list[Any] | None, times: Any) -> None:
        self._add_many(ids, codes, times)

    def _check_kind(self, kind: str) -> None:
        if self._state.kind not in {None, kind}:
            raise UsageError(f"the index has ids of kind {self._state.kind}, not {kind}")

    def _add_one(self, identity: Any, codes: Any) -> None:
        kind = id_kind(identity)
        self._check_kind(kind)
        identity = str(identity) if kind == "str" else int(identity)
        gone: list[int] = []
        state = self._with_one(self._state, identity, codes, gone)
        state.clock.note(state.next - 1, time.time())
        self._added_one(state.next - 1, identity, codes)
        if gone:
            self._removed(np.array(gone))
        self._state = state

    def _with_one(self, state: Snapshot, identity: Any, codes: Any, gone: list[int]) -> Snapshot:
        """A state with a document more; the number of the one that it replaces goes to `gone`."""
        if len(state.tail) == TAIL_ROWS:
            state = self._settled(state)
        tail, segments = state.tail, state.segments
        before = tail.find(identity)
        if before >= 0:
            gone.append(int(tail.numbers[before]))
            tail = tail.without(before)
        else:
            for i, segment in enumerate(segments):
                row = segment.find(identity)
                if row >= 0:
                    gone.append(int(segment.numbers[row]))
                    changed = segment.without(np.array([row]))
                    segments = (*segments[:i], changed, *segments[i + 1 :])
                    break
        tail = tail.appended(identity, codes, state.next)
        kind = state.kind or id_kind(identity)
        return Snapshot(state.settings, segments, tail, kind, state.next + 1, state.clock)

    def _add_many(self, ids: Any, fingerprints: Any, times: Any = None) -> int:
        column = IdColumn(id_array(ids))
        codes, rows = many_fingerprints(fingerprints, self._settings)
        offered = len(fingerprints)
        if len(column) != offered:
            raise UsageError(f"{len(column):,} ids for {offered:,} fingerprints: give as many")
        if len(rows) < offered:
            column = IdColumn(column.values.take(pa.array(rows)))
        if not len(column):
            return 0
        self._check_kind(column.kind)
        repeated = column.repeated()
        if repeated is not None:
            keep = np.flatnonzero(~repeated)
            column, codes = IdColumn(column.values.take(pa.array(keep))), codes[keep]
            times = None if times is None else times[keep]
        first = self._state.next
        removed: list[int] = []
        if len(column) <= SMALL_BATCH:
            state = self._state
            for identity, each in zip(column.values.to_pylist(), codes, strict=True):
                state = self._with_one(state, identity, each, removed)
            gone = np.array(removed, np.int64)
        else:
            state, gone = _without(self._state, self._state.places(column))
            state = self._with_segment(state, column, frozen(codes))
        if times is None:
            state.clock.note(first, time.time())
        else:
            state.clock.extend(*runs_of(first, times))
        self._added(first, column.values, codes)
        self._removed(gone)
        self._state = state
        return len(column)

    def _with_segment(self, state: Snapshot, ids: IdColumn, codes: Any) -> Snapshot:
        """A state with a segment more."""
        state, end = self._settled(state), state.next + len(codes)
        segment = Segment(codes, ids, np.arange(state.next, end))
        arranged = self._arranged([*state.segments, segment])
        return Snapshot(state.settings, arranged, state.tail, ids.kind, end, state.clock)

    def _settled(self, state: Snapshot) -> Snapshot:
        """A state whose tail has become a segment."""
        if not len(state.tail):
            return state
        arranged = self._arranged([*state.segments, state.tail.segment(state.kind)])
        return replace(state, segments=arranged, tail=Tail.empty(self._settings.width))

    def _arranged(self, segments: list[Segment]) -> tuple[Segment, ...]:
        """Merge segments where it is time to."""
        return tuple(settled(segments))

    def _added(self, first: int, ids: Any, codes: Any) -> None:
        """Called with rows that were stored and the number of the first; the durable index logs."""

    def _added_one(self, number: int, identity: Any, codes: Any) -> None:
        """As `_added`, for one row."""

    def _removed(self, numbers: Any) -> None:
        """Called with the numbers of rows that were removed or replaced."""


_NONE: Final = np.empty(0, np.int64)


def _without(state: Snapshot, places: Places) -> tuple[Snapshot, Any]:
    """A state without what is stored at places, and the numbers of the rows that are gone."""
    segments, tail, gone = list(state.segments), state.tail, [_NONE]
    for i, segment in enumerate(segments):
        rows = np.unique(places.rows[places.segments == i])
        if len(rows):
            segments[i] = segment.without(rows)
            gone.append(segment.numbers[rows])
    rows = np.unique(places.rows[places.segments == len(segments)])
    if len(rows):
        gone.append(tail.numbers[rows])
        tail = tail.without(rows)
    return replace(state, segments=tuple(segments), tail=tail), np.concatenate(gone)
