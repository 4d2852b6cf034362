"""Writes rows to a store: numbers of documents, and outcomes of offers.

Everything but `offer_many` and `add_many` is called with the lock of the store held. Each call
makes the next version, tells the store which rows are added and removed, and then replaces the
store's version.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.errors import DataError
from neardup.index.clock import runs_of
from neardup.index.hits import ABSENT, OTHER, Answer
from neardup.index.id_columns import IdColumn, check_id_kind, id_array, stored_id

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
"""The most rows of an addition that go to the tail; more become a segment at once."""
CUT: Final = 512
"""Documents that are offered under one lock."""


class Batch(NamedTuple):
    """Documents with tokens, that are offered together.

    Args:
        ids: Of the documents.
        column: The same as an Arrow array.
        contents: Of the documents.
        attachments: Of the documents; None if there are none.
    """

    ids: list[Id]
    column: pa.Array
    contents: Any
    attachments: list[bytes | None] | None


class Addition(NamedTuple):
    """Rows that are added together.

    Args:
        column: Their ids, all different.
        contents: Of the rows.
        times: When they were added, float64.
        attachments: Of the rows; None if there are none.
    """

    column: IdColumn
    contents: Any
    times: Times
    attachments: list[bytes | None] | None


class _Whole:
    """A context of one change: what an error or interrupt left of it in the store is taken back."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._store.take_back()


class RowWriter:
    """Writes rows of a kind to a store.

    Args:
        kind: What rows hold.
        store: Where versions are.
        reach: The distance or similarity at which two documents are near.
    """

    def __init__(self, kind: AnyKind, store: Store, reach: float) -> None:
        """Take the store."""
        self._kind, self._store, self._reach = kind, store, reach
        self._queries, self._whole = 0, _Whole(store)

    def offer_many(self, prepared: Prepared, stored: Stored) -> list[Answer]:
        """The answers to many documents, one after the other: see `offer`.

        The lock is taken for one part of them after the other, so that no thread waits for all.
        """
        answers = [EMPTY] * len(prepared)
        for row in prepared.problems:
            answers[row] = REFUSED
        if len(prepared) > len(prepared.problems):
            check_id_kind(prepared.id_kind, self._store.version.id_kind)
        kept, rows, column = prepared.attachments, prepared.rows, prepared.column
        if len(rows) < len(prepared):
            column = column.take(pa.array(rows))
        for begin in range(0, len(rows), CUT):
            those = rows[begin : begin + CUT].tolist()
            contents = prepared.contents
            if len(rows) > CUT:
                contents = self._kind.taken(contents, np.arange(begin, begin + len(those)))
            batch = Batch(
                [prepared.ids[row] for row in those], column.slice(begin, len(those)), contents,
                [kept[row] for row in those] if kept else None,
            )  # fmt: skip
            with self._store.lock:
                self._store.check_writable()
                check_id_kind(prepared.id_kind, self._store.version.id_kind)
                for row, answer in zip(those, self._offer_batch(batch, stored), strict=True):
                    answers[row] = answer
        return answers

    def _offer_batch(self, batch: Batch, stored: Stored) -> list[Answer]:
        """The answers to the documents of a batch.

        Documents with new ids are offered together, up to one whose id is stored with other content
        or is repeated: the outcome of that one affects those after it.
        """
        count, answers = len(batch.ids), list[Answer]()
        states = self._states(batch) if count > 1 else np.array([OTHER])
        alone = np.flatnonzero(states == OTHER).tolist()
        at = 0
        for end in [*alone, count]:
            while at < end:
                if not self._store.version.tail.room:
                    self._store.version = self.flushed(self._store.version)
                last = min(end, at + self._store.version.tail.room)
                answers += self._offer_new(batch, states, at, last)
                at = last
            if at < count:
                one = self._kind.row(batch.contents, at)
                attachment = batch.attachments[at] if batch.attachments else None
                answers.append(self.offer(batch.ids[at], one, attachment, stored))
                at += 1
        return answers

    def _states(self, batch: Batch) -> Any:
        """The state of each id; OTHER also where it comes a second time in the batch."""
        states = self._store.version.states(IdColumn(batch.column), batch.contents)
        if len(set(batch.ids)) < len(batch.ids):
            names: set[Id] = set()
            for at, each in enumerate(batch.ids):
                if each in names:
                    states[at] = OTHER
                names.add(each)
        return states

    def _offer_new(self, batch: Batch, states: Any, begin: int, end: int) -> list[Answer]:
        """The answers to the documents from `begin` to `end`: new ids, or stored as they are."""
        store, answers = self._store, [_STORED] * (end - begin)
        chosen = begin + np.flatnonzero(states[begin:end] == ABSENT)
        store.counters.count_queries(end - begin, 0)
        if not len(chosen):
            return answers
        ids, contents = batch.ids, batch.contents
        if len(chosen) < len(ids):
            ids = [ids[at] for at in chosen.tolist()]
            contents = self._kind.taken(contents, chosen)
        version, before = store.version, store.version
        closest = self._kind.closest(version, contents, self._reach)
        version, near, added = version.offered(ids, contents, closest, self._reach, time.time())
        for at in (chosen - begin).tolist():
            answers[at] = _NEW
        tail, scores = len(before.segments), closest.scores
        seen = np.flatnonzero((near >= 0) | (closest.segments >= 0)).tolist()
        for at in seen:
            place = (tail, int(near[at])) if near[at] >= 0 else (
                int(closest.segments[at]), int(closest.rows[at])
            )  # fmt: skip
            answers[int(chosen[at]) - begin] = Answer(
                "seen", (version.id_at(place), scores[at].item())
            )
        store.counters.hits += len(seen)
        if len(added):
            column, kept, rows = batch.column, batch.attachments, chosen[added].tolist()
            if len(added) < len(ids):
                contents = self._kind.taken(contents, added)
            if len(rows) < len(column):
                column = id_array([batch.ids[row] for row in rows])
                kept = kept and [kept[row] for row in rows]
            with self._whole:
                store.added(before.next, column, contents, kept)
                store.version = version  # last, as in `_put`
            store.counters.added += len(added)
        return answers

    def offer(
        self, identity: Id, one: Content | None, attachment: bytes | None, stored: Stored
    ) -> Answer:
        """The answer to one document: see `BaseIndex.offer`.

        Args:
            identity: As it is stored.
            one: Its content; None if it has no tokens.
            attachment: Its attachment.
            stored: What happens if the id is stored with other content.

        Raises:
            DataError: If the id is stored with other content and `stored` is "error".
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
        self._store.counters.count_queries(1, near is not None)
        if near is not None:
            return Answer("seen", near)
        if is_same or (place is not None and stored == "keep"):
            return _STORED
        self._put(identity, one, attachment, place)
        return _NEW if place is None else _REPLACED

    def add_one(self, identity: Id, one: Content, attachment: bytes | None) -> None:
        """Store one document, replacing the version of its id, which is as callers give it."""
        key = stored_id(identity, self._store.version.id_kind)
        self._put(key, one, attachment, self._store.version.place(key))

    def add_many(
        self, column: IdColumn, many: Any, kept: list[bytes | None] | None = None,
        times: Times | None = None,
    ) -> int:  # fmt: skip
        """Store documents, each replacing the version of its id; of equal ids the last counts.

        Args:
            column: Their ids.
            many: Their contents.
            kept: Their attachments.
            times: When they were added; by default now.

        Returns:
            How many were stored.
        """
        if not len(column):
            return 0
        check_id_kind(column.kind, self._store.version.id_kind)
        if times is None:
            times = np.broadcast_to(time.time(), len(column))
        repeated = column.repeated()
        if repeated is not None:  # of equal ids the last one counts
            keep = np.flatnonzero(~repeated)
            column = IdColumn(column.values.take(pa.array(keep)))
            many, times = self._kind.taken(many, keep), times[keep]
            kept = kept and [kept[row] for row in keep.tolist()]
        write = self._add_few if len(column) <= SMALL_BATCH else self._add_segment
        write(Addition(column, many, times, kept))
        return len(column)

    def _add_few(self, added: Addition) -> None:
        """Add rows to the tail."""
        with self._store.lock:
            version = self._version_for(added)
            version, removals = version.without(version.places(added.column))
            first = version.next
            clock = version.clock.extended(*runs_of(first, added.times))
            version = replace(version, clock=clock)
            version = version.extended(added.column, added.contents, self.flushed)
            self._put_many(added, first, removals, version)

    def _add_segment(self, added: Addition) -> None:
        """Add rows as one segment, with the lock held only briefly.

        The segment is made, and ids are looked up, in a version that may be outdated when the lock
        is taken. So replaced rows are identified by their numbers, which no merge changes, and the
        few rows that were added since are looked up again.
        """
        store, column = self._store, added.column
        segment = self._kind.build(column, added.contents, np.arange(len(column)))
        queries = store.counters.queries
        if queries != self._queries or store.is_searched_alone(len(column)):
            # Queries run while rows are added, and would have to wait for it.
            segment.make_ready()
            self._queries = queries
        undone, seen = store.undone, store.version  # in this order
        replaced = seen.numbers_of(column)
        with store.lock:
            version = self._version_for(added)
            if store.undone != undone:  # numbers may have been used again
                seen, replaced = version, version.numbers_of(column)
            if version is not seen:
                since = version.added_since(seen.next, column)
                replaced = np.concatenate([replaced, since])
            version, removals = version.without(version.numbered(replaced))
            version = self.flushed(version)
            segments = store.merged([*version.segments, segment.numbered(version.next)])
            first, version = version.next, version.with_segment(column, added.times, segments)
            self._put_many(added, first, removals, version)

    def _version_for(self, added: Addition) -> AnyVersion:
        """The version of the store to which these rows can be added."""
        self._store.check_writable()
        check_id_kind(added.column.kind, self._store.version.id_kind)
        return self._store.version

    def _put_many(self, added: Addition, first: int, gone: Rows, version: AnyVersion) -> None:
        """Install a version with the added rows, from number `first` on, without `gone`."""
        store = self._store
        with self._whole:
            store.added(first, added.column.values, added.contents, added.attachments)
            store.removed(gone)
            store.version = version  # last, as in `_put`
        store.counters.added += len(added.column)

    def drop(self, version: AnyVersion, gone: Rows) -> int:
        """Install a version from which rows of these numbers were removed."""
        with self._whole:
            self._store.removed(gone)
            self._store.version = version
        self._store.counters.removed += len(gone)
        return len(gone)

    def flushed(self, version: AnyVersion) -> AnyVersion:
        """A version whose tail has become a segment, merged if a merge is due."""
        if not len(version.tail):
            return version
        flushed = version.flushed()
        return replace(flushed, segments=self._store.merged(flushed.segments))

    def _put(
        self, identity: Id, one: Content, attachment: bytes | None, place: Place | None
    ) -> None:
        """Store one document, replacing the version of its id."""
        version, store = self._store.version, self._store
        if not version.tail.room:
            version = self.flushed(version)
            place = version.place(identity)
        version, replaced = version.replaced(identity, one, place, time.time())
        try:
            store.added_one(version.next - 1, identity, one, attachment)
            if replaced >= 0:
                store.removed(np.array([replaced]))
            store.version = version  # last: a reader that sees the row finds its attachment
        except BaseException:  # as `_Whole`, whose calls would take a twentieth of the time
            store.take_back()
            raise
        store.counters.added += 1
