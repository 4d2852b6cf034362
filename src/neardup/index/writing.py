"""What the index in memory and the durable one share beside queries: adding and removing.

Writers take a lock, and replace the state that queries read.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.index.ids import IdColumn, id_array, id_kind, is_one_id
from neardup.index.incoming import as_time, many_fingerprints
from neardup.index.queries import Queries
from neardup.index.segments import TAIL_ROWS, Segment, Tail, merged, settled, successors
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.index.hits import Places

__all__ = ["BaseIndex"]

SMALL_BATCH: Final = 512


class BaseIndex(Queries):
    """Fingerprints by id, searched exactly; see Index and DurableIndex."""

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
            near, _ = self._hits(codes, self.distance, 1)
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
            wanted = id_array([ids] if is_one_id(ids) else ids)
            places = self._places(IdColumn(wanted))
            absent = np.flatnonzero(~places.present)
            if len(absent):
                raise KeyError(wanted[int(absent[0])].as_py())
            return self._remove_places(places, wanted)

    def expire(self, before: float) -> int:
        """Remove the documents added before a time.

        Args:
            before: Seconds since 1970, as of time.time().

        Returns:
            How many were removed.
        """
        with self._lock:
            until = self._clock.first_since(as_time("before", before), self._next)
            self._settle(force=True)
            return sum(
                self._remove_rows(i, np.arange(np.searchsorted(segment.numbers, until)))
                for i, segment in enumerate(self._state[0])
            )

    def merge(self, other: BaseIndex) -> None:
        """Add all documents of another index, in its order; ids that both have are replaced.

        Raises:
            UsageError: If widths or recipes differ.
        """
        if not isinstance(other, BaseIndex):
            raise UsageError(f"{type(other).__name__} is no index: merge Index or DurableIndex")
        mine, theirs = self._settings, other._settings
        if mine.bits != theirs.bits:
            raise UsageError(f"the other index has {theirs.bits} bits, this one {mine.bits}")
        if mine.recipe and theirs.recipe and mine.recipe.digest != theirs.recipe.digest:
            raise UsageError(
                f"the other index's recipe is {theirs.recipe.digest}, this one's"
                f" {mine.recipe.digest}: fingerprints of two recipes cannot be compared"
            )
        with self._lock:
            for ids, codes in list(other.batches()):
                self.add(ids, codes)

    def compact(self) -> None:
        """Bring everything into one segment and forget removed rows."""
        with self._lock:
            self._settle(force=True)
            segments, tail = self._state
            if len(segments) > 1 or any(each.removed for each in segments):
                self._state = (tuple(self._compacted(segments)), tail)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def _check_kind(self, kind: str) -> None:
        if self._kind not in {None, kind}:
            raise UsageError(f"the index has ids of kind {self._kind}, not {kind}")

    def _add_one(self, identity: Any, codes: Any) -> None:
        kind = id_kind(identity)
        self._check_kind(kind)
        self._kind = kind
        identity = str(identity) if kind == "str" else int(identity)
        if len(self._state[1]) == TAIL_ROWS:
            self._settle()
        segments, tail = self._state
        before = tail.rows.get(identity)
        places = []
        if before is None:
            found = ((i, each.ids.find_one(identity)) for i, each in enumerate(segments))
            places = [(i, row) for i, row in found if row >= 0 and not segments[i].dead[row]]
        number = self._numbered(1)
        tail.append(identity, codes, number)
        self._added_one(number, identity, codes)
        # The old row goes last: a query in another thread finds one of the two, or both.
        if before is not None:
            tail.dead.add(before)
            self._removed(tail.numbers[before : before + 1].copy())
        for i, row in places:
            self._remove_rows(i, np.array([row]))

    def _add_many(self, ids: Any, fingerprints: Any) -> int:
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
        self._kind = column.kind
        repeated = column.repeated()
        if repeated is not None:
            keep = np.flatnonzero(~repeated)
            column, codes = IdColumn(column.values.take(pa.array(keep))), codes[keep]
        if len(column) <= SMALL_BATCH:
            for identity, each in zip(column.values.to_pylist(), codes, strict=True):
                self._add_one(identity, each)
            return len(column)
        self._settle(force=True)
        places = self._places(column)
        first = self._numbered(len(column))
        numbers = np.arange(first, first + len(column))
        segment = Segment(frozen(codes), column, numbers)
        self._state = ((*successors(self._state[0]), segment), self._state[1])
        self._added(first, column.values, segment.codes)
        self._remove_places(places, column.values)  # last, as in _add_one
        segments, tail = self._state
        self._state = (self._arranged(list(segments)), tail)
        return len(column)

    def _numbered(self, count: int) -> int:
        """The first of `count` new numbers, inserted now."""
        first = self._next
        self._clock.note(first, time.time())
        self._next = first + count
        return first

    def _remove_places(self, places: Places, ids: Any) -> int:
        """Remove what is stored at these places."""
        segments, tail = self._state
        count = 0
        for i in range(len(segments)):
            rows = np.unique(places.rows[places.segments == i])
            count += self._remove_rows(i, rows) if len(rows) else 0
        for at in np.flatnonzero(places.segments == len(segments)).tolist():
            number = tail.remove(ids[at].as_py())
            if number is not None:
                self._removed(np.array([number]))
                count += 1
        return count

    def _remove_rows(self, segment: int, rows: Any) -> int:
        """Mark rows of a segment as removed."""
        part = self._state[0][segment]
        fresh = part.remove(rows)
        self._removed(part.numbers[fresh])
        return len(fresh)

    def _settle(self, *, force: bool = False) -> None:
        """Make a segment of a full tail, or with `force` of any, and merge segments."""
        segments, tail = self._state
        if len(tail) and (force or len(tail) == TAIL_ROWS):
            segment = tail.segment(self._kind or "int")
            arranged = self._arranged([*segments, segment])
            self._state = (successors(arranged), Tail(self._settings.width))

    def _arranged(self, segments: list[Segment]) -> tuple[Segment, ...]:
        """Merge segments where it is time to."""
        return tuple(settled(segments))

    def _whole(self) -> Segment:
        """All living rows in one segment."""
        segments, tail = self._state
        kind = self._kind or "int"
        if not len(tail) and len(segments) == 1 and not segments[0].removed:
            return segments[0]
        return merged([*segments, tail.segment(kind)])

    def _compacted(self, segments: tuple[Segment, ...]) -> list[Segment]:
        whole = merged(list(segments))
        return [whole] if len(whole) else []

    def _added(self, first: int, ids: Any, codes: Any) -> None:
        """Called with rows that were stored and the number of the first; the durable index logs."""

    def _added_one(self, number: int, identity: Any, codes: Any) -> None:
        """As `_added`, for one row."""

    def _removed(self, numbers: Any) -> None:
        """Called with the numbers of rows that were removed or replaced."""
