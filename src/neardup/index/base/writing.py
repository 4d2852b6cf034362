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

from neardup.errors import UsageError
from neardup.index.base.keeping import Keeping
from neardup.index.base.payloads import Beside
from neardup.index.base.types import Answer
from neardup.index.clock import runs_of
from neardup.index.ids import ID_KINDS, IdColumn, id_array, id_kind, is_one_id
from neardup.runtime.markup import html_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.index.base.held import Held
    from neardup.index.base.types import Documents, Ids
    from neardup.index.hits import Id
    from neardup.runtime.types import Rows, Times

__all__ = ["Writing"]

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
        self, identity: Id, document: Documents, *, ignore_self: bool = False, content: Any = None,
        payload: Any = None,
    ) -> Answer:  # fmt: skip
        """As `add_if_new`, with an answer that tells new documents from those without tokens.

        Args:
            identity: A str or int.
            document: As of `add`.
            ignore_self: What is stored under this id is not asked: a document that is like its own
                older version only replaces it, and is new.
            content: What a durable index keeps beside it, as of its `add`.
            payload: A small value kept beside it, as of `add`.

        Returns:
            Answer: is_new, is_empty, near.

        Raises:
            UsageError: As `add`.

        Example:
            >>> from neardup import Index
            >>> index = Index(distance=1)
            >>> index.offer("a", 0b1011).is_new, index.offer("b", 0b1010).near
            (True, ('a', 1))
            >>> index.offer("a", 0b1010, ignore_self=True).is_new
            True
        """
        self._writing()
        contents = None if content is None else [content]
        kept = self._kept([identity], [document], contents, None if payload is None else [payload])
        one = self._one(document)
        with self._lock:
            self._writing()
            self._check_kind(id_kind(identity))
            if one is None:
                return Answer(is_new=False, is_empty=True, near=None)
            near = self._add_unless_near(identity, one, kept and kept[0], ignore_self=ignore_self)
            return Answer(is_new=near is None, is_empty=False, near=near)

    def add_new(
        self, ids: Ids, documents: Documents, contents: Any = None, *, ignore_self: bool = False,
        payloads: Any = None,
    ) -> pa.Table:  # fmt: skip
        """Store each of many documents that none is near that is stored, or comes before it.

        Args:
            ids: As many, of one kind.
            documents: As of `add`.
            contents: What a durable index keeps beside them, as of its `add`.
            ignore_self: As of `offer`.
            payloads: Small values kept beside those that are stored, as of `add`.

        Returns:
            pyarrow.Table with a row a document: row (int64), is_new (whether it was stored), id
            (the closest stored one's, null if none was near) and distance or similarity. A document
            without tokens is not stored, and near to nothing.

        Raises:
            UsageError: As `add`.

        Example:
            >>> from neardup import Index
            >>> Index(distance=1).add_new(["a", "b", "c"], [0b1011, 0b1010, None]).to_pylist()[:2]
            [{'row': 0, 'is_new': True, 'id': None, 'distance': None}, {'row': 1, 'is_new': False, 'id': 'a', 'distance': 1}]
        """  # noqa: E501  # an answer in a line
        self._writing()
        column = IdColumn(id_array(ids))
        many, rows, offered = self._many(documents)
        self._check_count(column, offered)
        names = column.values.to_pylist()
        kept = self._kept(names, documents, contents, payloads)
        near: list[Any] = [None] * offered
        is_new = np.zeros(offered, np.bool_)
        with self._lock:
            self._writing()
            if offered:
                self._check_kind(column.kind)
            for at, row in enumerate(rows.tolist()):
                near[row] = self._add_unless_near(
                    names[row], self._state.row(many, at), kept and kept[row],
                    ignore_self=ignore_self,
                )  # fmt: skip
                is_new[row] = near[row] is None
            kind = ID_KINDS[self._state.kind or column.kind]
        name, closeness = self._CLOSENESS
        return pa.table(
            {
                "row": pa.array(np.arange(offered)),
                "is_new": pa.array(is_new),
                "id": pa.array([each and each[0] for each in near], kind),
                name: pa.array([each and each[1] for each in near], closeness),
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
                self._add_one(ids, one, kept and kept[0])
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

    def _add_unless_near(
        self, identity: Any, one: Any, kept: Any, *, ignore_self: bool = False
    ) -> tuple[Any, Any] | None:
        """The closest document that is near; None if the document was stored."""
        near = self._near(one, identity if ignore_self else None)
        self._counters.asked(1, near is not None)
        if near is None:
            self._add_one(identity, one, kept)
        return near

    def _add_one(self, identity: Any, one: Any, kept: Any = None) -> None:
        kind = id_kind(identity)
        self._check_kind(kind)
        identity = str(identity) if kind == "str" else int(identity)
        state, replaced = self._replaced(self._state, identity, one, time.time())
        self._added_one(state.next - 1, identity, one, kept)
        if replaced >= 0:
            self._removed(np.array([replaced]))
        self._state = state
        self._counters.added += 1

    def _replaced(self, state: Any, identity: Any, one: Any, now: float) -> Any:
        """As Held.replaced, and the tail has room."""
        return (state if state.tail.room else self._settled(state)).replaced(identity, one, now)

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
                one = state.row(many, row)
                state, number = self._replaced(state, identity, one, float(times[row]))
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
