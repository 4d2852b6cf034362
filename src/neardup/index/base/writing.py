"""Adding to an index and removing from it, whatever its rows hold.

Writers take a lock, make the next moment, and put it in the place of the one that queries read.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.errors import DataError, UsageError
from neardup.index.attachments import Beside
from neardup.index.base.keeping import Keeping
from neardup.index.clock import runs_of
from neardup.index.id_columns import ID_KINDS, IdColumn, id_array, id_kind, is_one_id
from neardup.index.protocol import Answer
from neardup.runtime.markup import html_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.index.base.held import Held
    from neardup.index.hits import Id
    from neardup.index.protocol import Documents, Ids, Stored
    from neardup.runtime.types import Rows, Times

__all__ = ["Writing"]

_EMPTY, _STORED, _NEW, _REPLACED = (
    Answer("empty"), Answer("stored"), Answer("new"), Answer("replaced")
)  # fmt: skip
SMALL_BATCH: Final = 512
WARM_ROWS: Final = 600


class Writing(Keeping):
    """Documents by id.

    Args:
        state: What it holds at first.
        beside: What is kept beside its rows in memory.
    """

    _NOUN: str
    _CLOSENESS: tuple[str, Any]
    """What a table calls how near a document is, and the Arrow type."""

    def __init__(self, state: Held, beside: Beside | None = None) -> None:
        """Hold this."""
        self._lock = threading.RLock()
        self._state: Any = state
        self._beside = beside or Beside()

    @property
    def closed(self) -> bool:
        """Whether it was closed; what is in memory never is."""
        return False

    def commit(self) -> None:
        """Bring what was added and removed to the disk; nothing to do in memory."""

    def close(self) -> None:
        """Commit and close; nothing to do in memory."""

    def check(self) -> list[str]:
        """Problems of what is on disk; none in memory."""
        return []

    def warm_up(self) -> float:
        """Load and compile what queries and additions run, and make the tables of what is held.

        Else each does so when it is first called, which takes up to seconds. Nothing is changed.

        Returns:
            The seconds that it took.
        """
        begin = time.perf_counter()
        scratch = self._scratch()
        code = self._example()
        many = [code(row) for row in range(WARM_ROWS)]
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
        held = self._read()
        removed = sum(segment.removed for segment in held.segments) + held.tail.removed
        return {
            "documents": len(held),
            "removed": removed,
            **self._facts(),
            "ids": held.kind,
            "segments": [segment.stats(held.settings) for segment in held.segments],
            "tail_rows": len(held.tail),
            "counters": self._counters.to_dict(),
        }

    def _read(self) -> Any:
        return self._state

    def __reduce__(self) -> Any:
        """Refuse; the indexes in memory can be pickled.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f"{self!r} cannot be pickled: send its path, and open it there")

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
        _check_stored(stored)
        self._writing()
        contents = None if content is None else [content]
        kept = self._kept([identity], [document], contents, None if payload is None else [payload])
        one = self._one(document)
        with self._lock:
            self._writing()
            return self._offer_one(self._id(identity), one, kept[0] if kept else None, stored)

    def add_new(
        self, ids: Ids, documents: Documents, contents: Any = None, *, stored: Stored = "replace",
        payloads: Any = None,
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
        _check_stored(stored)
        self._writing()
        column = IdColumn(id_array(ids))
        many, rows, offered = self._many(documents)
        self._check_count(column, offered)
        names = column.values.to_pylist()
        kept = self._kept(names, documents, contents, payloads)
        answers = [_EMPTY] * offered
        with self._lock:
            self._writing()
            if offered:
                self._check_kind(column.kind)
            for at, row in enumerate(rows.tolist()):
                one = self._state.row(many, at)
                answers[row] = self._offer_one(names[row], one, kept[row] if kept else None, stored)
            kind = ID_KINDS[self._state.kind or column.kind]
        name, closeness = self._CLOSENESS
        near = [each.near for each in answers]
        return pa.table(
            {
                "row": pa.array(np.arange(offered)),
                "is_new": pa.array([each.is_new for each in answers], pa.bool_()),
                "id": pa.array([each and each[0] for each in near], kind),
                name: pa.array([each and each[1] for each in near], closeness),
                "state": pa.array([each.state for each in answers], pa.string()),
            }
        )

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
            self._writing()
            state, gone = self._state.without(self._state.present(ids))
            self._removed(gone)
            self._state = state
            self._counters.removed += len(gone)
            return len(gone)

    def expire(self, before: float) -> int:
        """Remove the documents added before a time.

        Args:
            before: Seconds since 1970, as of time.time().

        Returns:
            How many were removed. Times of rows in files are known to the second, old ones to a
            thousandth of their age; none is removed early.
        """
        from neardup.index.incoming import as_time

        with self._lock:
            self._writing()
            limit = as_time("before", before)
            state, gone = self._settled(self._state).expired(limit)
            self._removed(gone)
            self._state = state
            self._counters.removed += len(gone)
            return len(gone)

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
            self._writing()
            state = self._state
            column = IdColumn(id_array([ids] if is_one_id(ids) else ids))
            places = state.present(ids)
            if not len(column):
                return 0
            kept = self._kept_of(state.numbers_at(places).tolist())
            return self._add_many(column, state.contents_at(places), kept)

    def compact(self) -> None:
        """Bring everything into one segment and forget removed rows."""
        with self._lock:
            self._writing()
            self._state = self._settled(self._state).compacted()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def _add(self, ids: Any, documents: Any, contents: Any = None, payloads: Any = None) -> int:
        """Store one document or many; see `add`."""
        self._writing()
        if is_one_id(ids):
            contents = None if contents is None else [contents]
            payloads = None if payloads is None else [payloads]
            kept = self._kept([ids], [documents], contents, payloads)
            one = self._one(documents)
            with self._lock:
                self._writing()
                if one is None:
                    return 0
                identity = self._id(ids)
                self._add_one(identity, one, kept[0] if kept else None, self._state.place(identity))
                return 1
        column = IdColumn(id_array(ids))
        kept = self._kept(column.values, documents, contents, payloads)
        many, rows, offered = self._many(documents)
        self._check_count(column, offered)
        if len(rows) < offered:
            column = IdColumn(column.values.take(pa.array(rows)))
            kept = kept and [kept[row] for row in rows.tolist()]
        with self._lock:
            self._writing()
            return self._add_many(column, many, kept)

    def _check_count(self, column: IdColumn, offered: int) -> None:
        if len(column) != offered:
            raise UsageError(f"{len(column):,} ids for {offered:,} {self._NOUN}: give as many")

    def _check_kind(self, kind: str) -> None:
        if self._state.kind not in {None, kind}:
            raise UsageError(f"the index has ids of kind {self._state.kind}, not {kind}")

    def _id(self, identity: Any) -> Id:
        """An id as it is stored; UsageError if it is of another kind than the index's."""
        kind = id_kind(identity)
        self._check_kind(kind)
        return str(identity) if kind == "str" else int(identity)

    def _offer_one(self, identity: Id, one: Any, kept: bytes | None, stored: Stored) -> Answer:
        """What becomes of one document: the rule of `offer`."""
        if one is None:
            return _EMPTY
        place = self._state.place(identity)
        is_same = place is not None and self._state.is_same(place, one)
        if place is not None and not is_same and stored == "error":
            raise DataError(
                f"the id {identity!r:.60} is stored with other content: choose 'replace' or 'keep'"
                " for stored, or give the document another id"
            )
        near = None if is_same else self._near(one, None if place is None else identity)
        self._counters.asked(1, near is not None)
        if near is not None:
            return Answer("seen", near)
        if is_same or (place is not None and stored == "keep"):
            return _STORED
        self._add_one(identity, one, kept, place)
        return _NEW if place is None else _REPLACED

    def _add_one(
        self, identity: Id, one: Any, kept: bytes | None, place: tuple[int, int] | None
    ) -> None:
        """Store one document, in the place of what the id has now."""
        state = self._state
        if not state.tail.room:
            state = self._settled(state)
            place = state.place(identity)
        state, replaced = state.replaced(identity, one, place, time.time())
        self._added_one(state.next - 1, identity, one, kept)
        if replaced >= 0:
            self._removed(np.array([replaced]))
        self._state = state
        self._counters.added += 1

    def _add_many(
        self, column: IdColumn, many: Any, kept: Any = None, times: Times | None = None
    ) -> int:
        if not len(column):
            return 0
        self._check_kind(column.kind)
        state, removed = self._state, list[int]()
        if times is None:
            times = np.broadcast_to(time.time(), len(column))
        repeated = column.repeated()
        if repeated is not None:
            keep = np.flatnonzero(~repeated)
            column, many = IdColumn(column.values.take(pa.array(keep))), state.taken(many, keep)
            times = times[keep]
            kept = kept and [kept[row] for row in keep.tolist()]
        first = state.next
        if len(column) <= SMALL_BATCH:
            for row, identity in enumerate(column.values.to_pylist()):
                state = state if state.tail.room else self._settled(state)
                one, place = state.row(many, row), state.place(identity)
                state, number = state.replaced(identity, one, place, float(times[row]))
                removed += [number] if number >= 0 else []
            gone = np.array(removed, np.int64)
        else:
            state, gone = state.without(state.places(column))
            state = self._with_segment(state, column, many, times)
        self._added(first, column.values, many, kept)
        self._removed(gone)
        self._state = state
        self._counters.added += len(column)
        return len(column)

    def _with_segment(self, state: Any, ids: IdColumn, many: Any, times: Times) -> Any:
        """A state with a segment more."""
        state, end = self._settled(state), state.next + len(ids)
        segment = state.new_segment(state.settings, ids, many, np.arange(state.next, end))
        arranged = self._arranged([*state.segments, segment])
        tail = state.new_tail(state.settings, arranged)
        clock = state.clock.extended(*runs_of(state.next, times))
        return type(state)(state.settings, arranged, tail, ids.kind, end, clock)

    def _settled(self, state: Any) -> Any:
        """A state whose tail has become a segment."""
        if not len(state.tail):
            return state
        state = state.settled()
        return replace(state, segments=self._arranged(list(state.segments)))

    def _merge_rows(self, ids: Any, many: Any, contents: Any, times: Times, payloads: Any) -> None:
        """Add what another index holds."""
        kept = self._kept(ids, None, contents, payloads)
        self._add_many(IdColumn(ids), many, kept, times)

    def _arranged(self, segments: list[Any]) -> tuple[Any, ...]:
        """Merge segments where it is time to."""
        return tuple(self._state.arranged(self._state.settings, segments))

    if TYPE_CHECKING:

        def _one(self, document: Any) -> Any:
            """Bring one document into what a row holds; None for one without tokens."""

        def snapshot(self) -> Any:
            """The index as it is now."""

        def _scratch(self) -> Any:
            """An empty index in memory, of the same settings."""

        def _example(self) -> Callable[[int], Any]:
            """What gives a document by its number."""

        def _facts(self) -> dict[str, Any]:
            """What it is made for, for `stats`."""

    def _many(self, documents: Any) -> tuple[Any, Rows, int]:
        """Contents of those documents that have tokens, their rows, and how many all are."""
        raise NotImplementedError

    def _near(self, one: Any, but: Any) -> tuple[Any, Any] | None:
        """The closest document that is near, but not the one of this id."""
        raise NotImplementedError

    def _writing(self) -> None:
        """Raise UsageError if nothing can be written."""


def _check_stored(stored: str) -> None:
    if stored not in {"replace", "keep", "error"}:
        raise UsageError(f"stored is {stored!r:.60}: use 'replace', 'keep' or 'error'")
