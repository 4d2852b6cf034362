"""An index: documents of a kind in a store, added, offered and removed by id.

    kind     what rows hold and how they are searched: by distance, or by similarity
    store    where versions and attachments are: in memory, or in a folder
    index    the rules: which id a document may take, and what becomes of one that is offered

A writer takes the lock of the store, makes the next version, and puts it in the place of the one
that queries read.
"""

from __future__ import annotations

import time
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np
import pyarrow as pa

from neardup.errors import DataError, UsageError
from neardup.index.hits import Answer
from neardup.index.id_columns import (
    ID_KINDS,
    IdColumn,
    check_id_kind,
    id_array,
    is_one_id,
    stored_id,
)
from neardup.index.incoming import as_time
from neardup.index.memory_store import MemoryStore
from neardup.index.queries import Moment, Queries, Source, View
from neardup.index.versions import Version
from neardup.runtime.printed_tables import html_table

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from neardup.index.hits import Id
    from neardup.index.protocol import Contents, Documents, Ids, Payloads, Stored
    from neardup.index.stored_rows import Content, SegmentRows
    from neardup.index.versions import AnyKind, AnyVersion, Place
    from neardup.runtime.types import Rows, Times

__all__ = ["BaseIndex", "Store"]

_EMPTY, _STORED, _NEW, _REPLACED = (
    Answer("empty"), Answer("stored"), Answer("new"), Answer("replaced")
)  # fmt: skip
SMALL_BATCH: Final = 512
WARM_ROWS: Final = 600


class Store(Source, Protocol):
    """Where an index keeps its version and its attachments: in memory, or in a folder.

    All but what Source has is called with the lock held.
    """

    lock: threading.RLock
    version: AnyVersion
    """What the writer has made: its next version goes on from it."""

    is_writable: bool
    """Whether `check_writable` raises nothing."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def check_writable(self) -> None:
        """Raise UsageError if nothing can be written; may be called without the lock."""

    def moment(self) -> Moment:
        """This version and what is kept beside its rows; may be called without the lock."""

    def attachments(self, numbers: list[int]) -> list[bytes | None] | None:
        """The attachments of stored rows."""

    def merged(self, segments: Sequence[SegmentRows]) -> tuple[SegmentRows, ...]:
        """The same rows, merged where that is due and may be done at once."""

    def added(
        self, first: int, ids: pa.Array, contents: Any, attachments: list[bytes | None] | None
    ) -> None:
        """Rows get the numbers from `first` on; `version` follows."""

    def added_one(
        self, number: int, identity: Id, content: Content, attachment: bytes | None
    ) -> None:
        """As `added`, for one row."""

    def removed(self, numbers: Rows) -> None:
        """The rows of these numbers are removed or replaced; `version` follows."""

    def facts(self) -> dict[str, Any]:
        """What `stats` say of it, beside the kind's."""


class BaseIndex(Queries):
    """Documents by id; see Index and DurableIndex.

    Args:
        kind: What rows hold.
        store: Where they are.
        reach: Of Queries.
    """

    def __init__(self, kind: AnyKind, store: Store, reach: float | None = None) -> None:
        """Take the store."""
        super().__init__(kind, store, reach)
        self._store, self._lock = store, store.lock

    @property
    def closed(self) -> bool:
        """Whether it was closed; what is in memory never is."""
        return self._store.closed

    def commit(self) -> None:
        """Bring what was added and removed to the disk; nothing to do in memory."""

    def close(self) -> None:
        """Commit and close; nothing to do in memory."""

    def check(self) -> list[str]:
        """Problems of what is on disk; none in memory."""
        return []

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def __reduce__(self) -> Any:
        """Refuse; the indexes in memory can be pickled.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f"{self!r} cannot be pickled: send its path, and open it there")

    def _repr_html_(self) -> str:
        """For notebooks: what it holds, and its settings and sizes."""
        rows = [
            (key.replace("_", " "), each)
            for key, each in self.stats().items()
            if isinstance(each, str | float | int)
        ]
        return f"<p>{escape(repr(self))}</p>{html_table(rows)}"

    def stats(self) -> dict[str, Any]:
        """Documents, settings, segments, and counters since it was opened."""
        version = self._source.current()
        removed = sum(segment.removed for segment in version.segments) + version.tail.removed
        return {
            "documents": len(version),
            "removed": removed,
            **self._kind.describe(self._reach),
            **self._store.facts(),
            "ids": version.id_kind,
            "segments": [segment.stats(self._kind) for segment in version.segments],
            "tail_rows": len(version.tail),
            "counters": self._counters.to_dict(),
        }

    def warm_up(self) -> float:
        """Load and compile what queries and additions run, and make the tables of what is held.

        Else each does so when it is first called, which takes up to seconds. Nothing is changed.

        Returns:
            The seconds that it took.
        """
        begin = time.perf_counter()
        scratch = BaseIndex(self._kind, MemoryStore(Version.empty(self._kind)))
        many: list[Any] = [self._kind.example(row) for row in range(WARM_ROWS)]
        scratch.add(list(range(WARM_ROWS)), many)
        scratch.add(WARM_ROWS, many[0])
        scratch.add_if_new(0, many[0])
        for index in (scratch, self.snapshot()):
            index.query(many[0])
            index.query_batch(many[:2])
            index.nearest(many[0], 1)
        if self.recipe is not None:
            scratch.query("a text to begin with")
            scratch.query_batch(["a text", "and another one"])
        return time.perf_counter() - begin

    def snapshot(self) -> View:
        """The index as it is now, for several calls that must agree.

        Of an index in a folder it holds on to the commit: space of what is removed meanwhile is
        free again when it is closed.

        Example:
            >>> from neardup import Index
            >>> index = Index()
            >>> before = index.snapshot()
            >>> index.add("a", 0b1011)
            1
            >>> len(before), len(index)
            (0, 1)
        """
        return View(self._kind, self._store.moment(), self._reach)

    def add(
        self, ids: Ids, documents: Documents, contents: Contents | None = None, *,
        payloads: Payloads = None,
    ) -> int:  # fmt: skip
        """Store one document or many; one whose id is present is replaced and counts as new.

        Args:
            ids: A str or int; or many of one kind, as a sequence, NumPy or Arrow array.
            documents: As many: texts if the index has a recipe; else fingerprints (ints, uint64
                (n,) or (n, width)), or of an index by similarity feature hashes (uint64 (n,), of
                many an Arrow list array). Documents without tokens (None, or masked) are left out,
                since they match nothing.
            contents: What an index in a folder keeps beside fingerprints, as many: texts, or arrays
                of uint64 feature hashes. Not needed where texts are given for documents.
            payloads: A small value beside each, given back by `payload`: bytes, or what JSON holds,
                of at most 4,096 bytes; None for none. They go with the document that they came
                with.

        Returns:
            How many were stored; on disk after `commit`.

        Raises:
            UsageError: For ids of mixed kinds or another kind than those stored, a wrong number,
                width or type of documents, texts without a recipe; or contents that are missing,
                or that the index does not keep.
        """
        self._store.check_writable()
        attachments = self._source.codec.attachments
        if is_one_id(ids):
            texts = None if contents is None else [contents]
            small = None if payloads is None else [payloads]
            one_id: Any = ids
            kept = attachments([one_id], [documents], texts, small)
            content = self._kind.one(documents)
            with self._lock:
                self._store.check_writable()
                if content is None:
                    return 0
                identity = stored_id(one_id, self._store.version.id_kind)
                place = self._store.version.place(identity)
                self._add_one(identity, content, kept[0] if kept else None, place)
                return 1
        column = IdColumn(id_array(ids))
        kept = attachments(column.values, documents, contents, payloads)
        many, rows, offered = self._kind.many(documents)
        self._check_count(column, offered)
        if len(rows) < offered:
            column = IdColumn(column.values.take(pa.array(rows)))
            kept = kept and [kept[row] for row in rows.tolist()]
        with self._lock:
            self._store.check_writable()
            return self._add_many(column, many, kept)

    def add_if_new(
        self, identity: Id, document: Documents, content: Any = None, *,
        stored: Stored = "replace", payload: Any = None,
    ) -> tuple[Id, Any] | None:  # fmt: skip
        """Store a document unless another one is near; no other add comes between.

        Args:
            identity: A str or int.
            document: As one of `add`.
            content: As one of `add`.
            stored: What happens if the id is stored with other content: see `offer`.
            payload: A small value kept beside it, as of `add`.

        Returns:
            None if no other is near (`offer` says what became of it), else the closest stored (id,
            distance) or (id, similarity), the first added of equally close ones; never the
            document's own id.

        Raises:
            UsageError, DataError: As `offer`.
        """
        return self.offer(identity, document, stored=stored, content=content, payload=payload).near

    def offer(
        self, identity: Id, document: Documents, *, stored: Stored = "replace",
        content: Any = None, payload: Any = None,
    ) -> Answer:  # fmt: skip
        """As `add_if_new`, with an answer that says what became of the document.

        A document is never near to what its own id has. An id that is stored with the same content
        (an equal fingerprint; by similarity, equal features) stays as it is, with its payload and
        time: "stored". Other content is compared with all other ids: if one is near, it was "seen",
        and the stored version stays; else it is "new", or has "replaced" the stored version.

        Args:
            identity: A str or int.
            document: As of `add`. One without tokens is "empty", and nothing changes.
            stored: What happens if the id is stored with other content: "replace" as above; "keep",
                the stored version stays, "stored" unless another one is near; or "error".
            content: What a durable index keeps beside it, as of its `add`.
            payload: A small value kept beside it, as of `add`.

        Returns:
            Answer: state, near, is_new, is_empty.

        Raises:
            UsageError: As `add`, or for another `stored`.
            DataError: If the id is stored with other content and `stored` is "error".

        Example:
            >>> from neardup import Index
            >>> index = Index(distance=1)
            >>> index.offer("a", 0b1011).state, index.offer("b", 0b1010).near
            ('new', ('a', 1))
            >>> index.offer("a", 0b1011).state, index.offer("a", 0b1010).state
            ('stored', 'replaced')
        """
        if stored not in _STORED_CHOICES:
            raise _wrong_choice(stored)
        # Attachments are made, and the document is read, without the lock: most of the time.
        kept = None
        if content is not None or payload is not None or self._source.codec.is_kept:
            self._store.check_writable()
            contents = None if content is None else [content]
            small = None if payload is None else [payload]
            kept = self._source.codec.attachments([identity], [document], contents, small)
        one = self._kind.one(document)
        with self._lock:
            if not self._store.is_writable:
                self._store.check_writable()
            kept_one = kept[0] if kept else None
            known = stored_id(identity, self._store.version.id_kind)
            return self._offer_one(known, one, kept_one, stored)

    def add_new(
        self, ids: Ids, documents: Documents, contents: Contents | None = None, *,
        stored: Stored = "replace", payloads: Payloads = None,
    ) -> pa.Table:  # fmt: skip
        """As `offer` for each of many documents, one after the other.

        Args:
            ids: As many, of one kind.
            documents: As of `add`.
            contents: What a durable index keeps beside them, as of its `add`.
            stored: As of `offer`; at an "error" the documents before it are stored.
            payloads: Small values kept beside those that are stored, as of `add`.

        Returns:
            pyarrow.Table with a row a document: row (int64), is_new, id (the closest other one's,
            null if none is near), distance or similarity, and state, as of `offer`.

        Raises:
            UsageError, DataError: As `offer`.

        Example:
            >>> from neardup import Index
            >>> table = Index(distance=1).add_new(["a", "b", "c"], [0b1011, 0b1010, None])
            >>> table["id"].to_pylist(), table["state"].to_pylist()
            ([None, 'a', None], ['new', 'seen', 'empty'])
        """
        if stored not in _STORED_CHOICES:
            raise _wrong_choice(stored)
        self._store.check_writable()
        kind, column = self._kind, IdColumn(id_array(ids))
        many, rows, offered = kind.many(documents)
        self._check_count(column, offered)
        names = column.values.to_pylist()
        kept = self._source.codec.attachments(names, documents, contents, payloads)
        answers = [_EMPTY] * offered
        with self._lock:
            self._store.check_writable()
            if offered:
                check_id_kind(column.kind, self._store.version.id_kind)
            for at, row in enumerate(rows.tolist()):
                one = kind.row(many, at)
                answers[row] = self._offer_one(names[row], one, kept[row] if kept else None, stored)
            id_type = ID_KINDS[self._store.version.id_kind or column.kind]
        near = [each.near for each in answers]
        return pa.table(
            {
                "row": pa.array(np.arange(offered)),
                "is_new": pa.array([each.is_new for each in answers], pa.bool_()),
                "id": pa.array([each and each[0] for each in near], id_type),
                kind.name: pa.array([each and each[1] for each in near], kind.scores),
                "state": pa.array([each.state for each in answers], pa.string()),
            }
        )

    def merge(self, other: BaseIndex, *, foreign: bool = False) -> None:
        """Add all documents of another index, in its order; ids that both have are replaced.

        They keep the times at which they were added, their texts or features, and payloads.

        Args:
            other: Which, of the same kind, in memory or in a folder; it is not changed.
            foreign: Take fingerprints of which no recipe is known as those of this one's.

        Raises:
            UsageError: If widths or kinds differ, or the other keeps less than this one.
            RecipeError: If recipes differ, or only this one is known to have one.
        """
        given, mine = type(other).__name__, self._kind.name
        if not isinstance(other, BaseIndex):
            raise UsageError(f"{given} is no index: merge Index or DurableIndex, by {mine}")
        if other.by != mine:
            raise UsageError(f"{given} is no index by {mine}: merge one with {mine}=")
        codec = self._source.codec
        with self._lock, other.snapshot() as seen:
            self._store.check_writable()
            self._kind.check_merging(other._kind, foreign=foreign)
            codec.check_merging(seen.store)
            for ids, stored, contents, times, payloads in seen.rows():
                if not codec.is_kept:
                    contents = None  # noqa: PLW2901
                elif contents is None:
                    contents = [None] * len(ids)  # noqa: PLW2901
                kept = codec.attachments(ids, None, contents, payloads)
                self._add_many(IdColumn(ids), stored, kept, times)

    def remove(self, ids: Ids) -> int:
        """Remove one document by its id, or many.

        Args:
            ids: A str or int, or many of one kind, as of `add`.

        Returns:
            How many were removed.

        Raises:
            KeyError: If an id is not present; then nothing is removed.
        """
        with self._lock:
            self._store.check_writable()
            version = self._store.version
            return self._drop(*version.without(version.present(ids)))

    def expire(self, before: float) -> int:
        """Remove the documents added before a time.

        Args:
            before: Seconds since 1970, as of time.time().

        Returns:
            How many were removed. Times of rows in files are known to the second, old ones to a
            thousandth of their age; none is removed early.
        """
        with self._lock:
            self._store.check_writable()
            limit = as_time("before", before)
            return self._drop(*self._flushed(self._store.version).expired(limit))

    def touch(self, ids: Ids) -> int:
        """Say that documents were seen again: for `expire` they were added now.

        They come last in the order of insertion then, as if they were added again.

        Args:
            ids: One, or many.

        Returns:
            How many.

        Raises:
            KeyError: If an id is not present; then nothing is changed.

        Example:
            >>> from neardup import Index
            >>> index = Index(distance=1)
            >>> index.add(["a", "b"], [1, 7]), index.touch("a"), list(index)
            (2, 1, [('b', 7), ('a', 1)])
        """
        with self._lock:
            self._store.check_writable()
            version = self._store.version
            column = IdColumn(id_array([ids] if is_one_id(ids) else ids))
            places = version.present(ids)
            if not len(column):
                return 0
            kept = self._store.attachments(version.numbers_at(places).tolist())
            return self._add_many(column, version.contents_at(places), kept)

    def compact(self) -> None:
        """Bring everything into one segment and forget removed rows."""
        with self._lock:
            self._store.check_writable()
            self._store.version = self._flushed(self._store.version).compacted(self._store.path)

    def _offer_one(
        self, identity: Id, one: Content | None, attachment: bytes | None, stored: Stored
    ) -> Answer:
        """What becomes of one document: the rule of `offer`, for `add_new` as well."""
        if one is None:
            return _EMPTY
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
        self._counters.asked(1, near is not None)
        if near is not None:
            return Answer("seen", near)
        if is_same or (place is not None and stored == "keep"):
            return _STORED
        self._add_one(identity, one, attachment, place)
        return _NEW if place is None else _REPLACED

    def _add_one(
        self, identity: Id, one: Content, attachment: bytes | None, place: Place | None
    ) -> None:
        """Store one document, in the place of what the id has now."""
        version, store = self._store.version, self._store
        if not version.tail.room:
            version = self._flushed(version)
            place = version.place(identity)
        version, replaced = version.replaced(identity, one, place, time.time())
        store.added_one(version.next - 1, identity, one, attachment)
        if replaced >= 0:
            store.removed(np.array([replaced]))
        store.version = version  # last: who sees the row finds what is kept beside it
        self._counters.added += 1

    def _add_many(
        self, column: IdColumn, many: Any, kept: list[bytes | None] | None = None,
        times: Times | None = None,
    ) -> int:  # fmt: skip
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
                version = version if version.tail.room else self._flushed(version)
                one, place = kind.row(many, row), version.place(identity)
                version, number = version.replaced(identity, one, place, float(times[row]))
                removed += [number] if number >= 0 else []
            gone = np.array(removed, np.int64)
        else:
            version, gone = version.without(version.places(column))
            version = self._flushed(version)
            numbers = np.arange(first, first + len(column))
            segment = kind.build(column, many, numbers)
            segments = store.merged([*version.segments, segment])
            version = version.with_segment(column, times, segments)
        store.added(first, column.values, many, kept)
        store.removed(gone)
        store.version = version  # last, as in `_add_one`
        self._counters.added += len(column)
        return len(column)

    def _drop(self, version: AnyVersion, gone: Rows) -> int:
        """Go on with a version from which rows of these numbers were removed."""
        self._store.removed(gone)
        self._store.version = version
        self._counters.removed += len(gone)
        return len(gone)

    def _flushed(self, version: AnyVersion) -> AnyVersion:
        """A version whose tail has become a segment, merged where that is due."""
        if not len(version.tail):
            return version
        flushed = version.flushed()
        return replace(flushed, segments=self._store.merged(flushed.segments))

    def _check_count(self, column: IdColumn, offered: int) -> None:
        if len(column) != offered:
            raise UsageError(f"{len(column):,} ids for {offered:,} {self._kind.noun}: give as many")


_STORED_CHOICES: Final = ("replace", "keep", "error")


def _wrong_choice(stored: str) -> UsageError:
    return UsageError(f"stored is {stored!r:.60}: use 'replace', 'keep' or 'error'")
