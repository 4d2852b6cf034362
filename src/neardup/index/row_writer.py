"""Writes rows to a store: which number a document gets, and what becomes of one that is offered.

Everything here runs with the lock of the store held. Each call makes the next version, tells the
store which rows come and go, and then puts the version in its place.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import DataError
from neardup.index.hits import Answer
from neardup.index.id_columns import IdColumn, check_id_kind, stored_id

if TYPE_CHECKING:
    from neardup.index.hits import Id
    from neardup.index.prepared import Prepared
    from neardup.index.protocol import Stored
    from neardup.index.store import Store
    from neardup.index.stored_rows import Content
    from neardup.index.versions import AnyKind, AnyVersion, Place
    from neardup.runtime.types import Rows, Times

__all__ = ["EMPTY", "REFUSED", "RowWriter"]

EMPTY: Final = Answer("empty")
REFUSED: Final = Answer("refused")
_STORED, _NEW, _REPLACED = Answer("stored"), Answer("new"), Answer("replaced")
SMALL_BATCH: Final = 512
"""Rows of an addition that go to the tail; more become a segment at once."""


class RowWriter:
    """Writes rows of a kind to a store.

    Args:
        kind: What rows hold.
        store: Where versions are.
        reach: The distance or similarity at which a document that is offered is near another.
    """

    def __init__(self, kind: AnyKind, store: Store, reach: float) -> None:
        """Write nothing yet."""
        self._kind, self._store, self._reach = kind, store, reach

    def offer_many(self, prepared: Prepared, stored: Stored) -> list[Answer]:
        """What becomes of each of many documents, one after the other: see `offer`."""
        answers = [EMPTY] * len(prepared)
        for row in prepared.problems:
            answers[row] = REFUSED
        if len(prepared):
            check_id_kind(prepared.id_kind, self._store.version.id_kind)
        kept = prepared.attachments
        for at, row in enumerate(prepared.rows.tolist()):
            one = self._kind.row(prepared.contents, at)
            attachment = kept[row] if kept else None
            answers[row] = self.offer(prepared.ids[row], one, attachment, stored)
        return answers

    def offer(
        self, identity: Id, one: Content | None, attachment: bytes | None, stored: Stored
    ) -> Answer:
        """What becomes of one document: see `BaseIndex.offer`.

        Args:
            identity: As it is stored.
            one: Its content; None: it has no tokens.
            attachment: What is kept beside it.
            stored: What happens if the id is stored with other content.

        Raises:
            DataError: If it is, and `stored` is "error".
        """
        if one is None:
            return EMPTY
        version = self._store.version
        place = version.place(identity)
        is_same = place is not None and version.is_same(place, one)
        if place is not None and not is_same and stored == "error":
            raise DataError(
                f"the id {identity!r:.60} is stored with other content: choose 'replace' or 'keep'"
                " for stored, or give the document another id"
            )
        near: tuple[Id, Any] | None = None
        if not is_same:
            most = 1 if place is None else 2  # its own id may be one of them
            hits = self._kind.hits(version, one, self._reach, most)
            near = next((hit for hit in hits if hit[0] != identity), None) if hits else None
        self._store.counters.asked(1, near is not None)
        if near is not None:
            return Answer("seen", near)
        if is_same or (place is not None and stored == "keep"):
            return _STORED
        self._put(identity, one, attachment, place)
        return _NEW if place is None else _REPLACED

    def add_one(self, identity: Id, one: Content, attachment: bytes | None) -> None:
        """Store one document, whose id is as callers give it, in the place of what it has now."""
        known = stored_id(identity, self._store.version.id_kind)
        self._put(known, one, attachment, self._store.version.place(known))

    def add_many(
        self, column: IdColumn, many: Any, kept: list[bytes | None] | None = None,
        times: Times | None = None,
    ) -> int:  # fmt: skip
        """Store documents, each in the place of what its id has; of equal ids the last one counts.

        Args:
            column: Their ids.
            many: Their contents.
            kept: What is kept beside them.
            times: When they were added; now unless said.

        Returns:
            How many were stored.
        """
        if not len(column):
            return 0
        check_id_kind(column.kind, self._store.version.id_kind)
        kind, store = self._kind, self._store
        version, removed = store.version, list[int]()
        if times is None:
            times = np.broadcast_to(time.time(), len(column))
        repeated = column.repeated()
        if repeated is not None:  # of equal ids the last one counts
            keep = np.flatnonzero(~repeated)
            column, many = IdColumn(column.values.take(pa.array(keep))), kind.taken(many, keep)
            times = times[keep]
            kept = kept and [kept[row] for row in keep.tolist()]
        first = version.next
        if len(column) <= SMALL_BATCH:
            for row, identity in enumerate(column.values.to_pylist()):
                version = version if version.tail.room else self.flushed(version)
                one, place = kind.row(many, row), version.place(identity)
                version, number = version.replaced(identity, one, place, float(times[row]))
                removed += [number] if number >= 0 else []
            gone = np.array(removed, np.int64)
        else:
            version, gone = version.without(version.places(column))
            version = self.flushed(version)
            numbers = np.arange(first, first + len(column))
            segment = kind.build(column, many, numbers)
            segments = store.merged([*version.segments, segment])
            version = version.with_segment(column, times, segments)
        store.added(first, column.values, many, kept)
        store.removed(gone)
        store.version = version  # last, as in `_put`
        store.counters.added += len(column)
        return len(column)

    def drop(self, version: AnyVersion, gone: Rows) -> int:
        """Go on with a version from which rows of these numbers were removed."""
        self._store.removed(gone)
        self._store.version = version
        self._store.counters.removed += len(gone)
        return len(gone)

    def flushed(self, version: AnyVersion) -> AnyVersion:
        """A version whose tail has become a segment, merged where that is due."""
        if not len(version.tail):
            return version
        flushed = version.flushed()
        return replace(flushed, segments=self._store.merged(flushed.segments))

    def _put(
        self, identity: Id, one: Content, attachment: bytes | None, place: Place | None
    ) -> None:
        """Store one document, in the place of what the id has now."""
        version, store = self._store.version, self._store
        if not version.tail.room:
            version = self.flushed(version)
            place = version.place(identity)
        version, replaced = version.replaced(identity, one, place, time.time())
        store.added_one(version.next - 1, identity, one, attachment)
        if replaced >= 0:
            store.removed(np.array([replaced]))
        store.version = version  # last: who sees the row finds what is kept beside it
        store.counters.added += 1
