"""An index: documents of a kind in a store, added, offered and removed by id.

    kind     what rows hold and how they are searched: by distance, or by similarity
    store    where versions and attachments are: in memory, or in a folder
    writer   the rules: which id a document may take, and what becomes of one that is offered
    index    the calls

A call that writes reads its arguments, takes the lock of the store and lets the writer make the
next version, which replaces the one that queries read.
"""

from __future__ import annotations

import contextlib
import time
from html import escape
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.index.hits import NEW_STATES
from neardup.index.id_columns import (
    ID_KINDS,
    IdColumn,
    id_array,
    id_kind,
    is_one_id,
    stored_id,
)
from neardup.index.incoming import as_time
from neardup.index.memory_store import MemoryStore
from neardup.index.prepared import Prepared
from neardup.index.preparing import Preparer
from neardup.index.queries import Queries, View
from neardup.index.row_writer import RowWriter
from neardup.index.versions import Version
from neardup.index.warming import call_everything
from neardup.runtime.printed_tables import html_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from neardup.index.hits import Answer, Id
    from neardup.index.protocol import (
        Calls,
        Contents,
        Documents,
        Ids,
        Missing,
        OnBad,
        Payloads,
        Stored,
    )
    from neardup.index.store import Store
    from neardup.index.versions import AnyKind

__all__ = ["BaseIndex"]

WARM_ROWS: Final = 600


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
        self._store, self._lock, self._counters = store, store.lock, store.counters
        self._writer = RowWriter(kind, store, self._reach)
        self._preparer = Preparer(kind, store.codec)
        self._in_transaction = False

    @property
    def closed(self) -> bool:
        """Whether it was closed; an index in memory never is."""
        return self._store.closed

    def commit(self) -> None:
        """Write additions and removals to the disk; nothing to do in memory."""

    def close(self) -> None:
        """Commit and close; nothing to do in memory."""

    def check(self) -> list[str]:
        """Problems of the files; none in memory."""
        return []

    def __enter__(self) -> Self:
        """Return the index."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: an index in memory holds no file."""

    def __reduce__(self) -> Any:
        """Refuse; the indexes in memory can be pickled.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f"{self!r} cannot be pickled: send its path, and open it there")

    def _repr_html_(self) -> str:
        """A table for notebooks: the documents, settings and sizes."""
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
            "store": self.store,
            "extract": self.extract,
            **self._store.facts(),
            "ids": version.id_kind,
            "segments": [segment.stats(self._kind) for segment in version.segments],
            "tail_rows": len(version.tail),
            "counters": self._counters.to_dict(),
        }

    def warm_up(self, calls: Calls = "usual") -> float:
        """Load and compile what queries and additions run, and make the search tables.

        Otherwise each does so at its first call, which takes up to seconds. Nothing in the index
        changes.

        Args:
            calls: "usual": additions and queries, one by one and many at once. "all": every call,
                with ids of the kind that it has, or of both; nothing compiles afterwards.

        Returns:
            The seconds that it took.
        """
        check_choice("calls", calls, CALLS)
        begin = time.perf_counter()
        scratch = BaseIndex(self._kind, MemoryStore(Version.empty(self._kind)))
        many: list[Any] = [self._kind.example(row) for row in range(WARM_ROWS)]
        scratch.add(list(range(WARM_ROWS)), many)
        scratch.add([WARM_ROWS, WARM_ROWS + 1], many[:2])
        scratch.add(WARM_ROWS, many[0])
        scratch.add_if_new(0, many[0])
        for index in (scratch, self.snapshot()):
            index.query(many[0])
            index.query_batch(many[:2])
            index.nearest(many[0], 1)
        if self.recipe is not None:
            scratch.query("a text to begin with")
            scratch.query_batch(["a text", "and another one"])
        if calls == "all":
            with self._scratches() as make:
                call_everything(
                    make, self._kind.example, takes_texts=self.recipe is not None,
                    id_kind=self.id_kind,
                )  # fmt: skip
        return time.perf_counter() - begin

    @contextlib.contextmanager
    def _scratches(self) -> Iterator[Callable[[], BaseIndex]]:
        """Functions that make indexes with these settings, without documents."""
        yield lambda: BaseIndex(self._kind, MemoryStore(Version.empty(self._kind)))

    def snapshot(self, *, committed: bool = False) -> View:
        """A snapshot of the index, for several calls that must agree.

        A snapshot of an index in a folder keeps its commit: the space of documents that are removed
        later becomes free when the snapshot is closed.

        Args:
            committed: Only what the last commit has, which a crash cannot take back.

        Example:
            >>> from neardup import Index
            >>> index = Index()
            >>> before = index.snapshot()
            >>> index.add("a", 0b1011)
            1
            >>> len(before), len(index)
            (0, 1)
        """
        return View(self._kind, self._store.snapshot(committed=committed), self._reach)

    def add(
        self, ids: Ids | Prepared, documents: Documents = None, contents: Contents | None = None, *,
        payloads: Payloads = None,
    ) -> int:  # fmt: skip
        """Store one document or many; one whose id is present is replaced and counts as new.

        Args:
            ids: A str or int; or many of one kind, as a sequence, NumPy or Arrow array; or what
                `prepare` gave, without anything else.
            documents: As many: texts if the index has a recipe; else fingerprints (ints, uint64
                (n,) or (n, width)), or of an index by similarity feature hashes (uint64 (n,), of
                many an Arrow list array). Documents without tokens (an empty text, None, or
                masked) are left out, since they match nothing; a stored version of their id stays.
            contents: The contents that an index in a folder stores with fingerprints, as many:
                texts, or arrays of uint64 feature hashes. Not needed where documents are texts.
            payloads: A small value for each, returned by `payload`: bytes or a JSON value, of at
                most 4,096 bytes; None for none. A payload is removed with its document.

        Returns:
            How many were stored; on disk after `commit`.

        Raises:
            UsageError: For ids of mixed kinds or another kind than those stored, a wrong number,
                width or type of documents, texts without a recipe; or contents that are missing,
                or that the index does not keep.
        """
        self._store.check_writable()
        if isinstance(ids, Prepared):
            prepared = self._prepared(ids, documents, contents, payloads)
            rows, kept = prepared.rows, prepared.attachments
            column = IdColumn(prepared.column.take(pa.array(rows)))
            kept = kept and [kept[row] for row in rows.tolist()]
            return self._writer.add_many(column, prepared.contents, kept)
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
                self._writer.add_one(one_id, content, kept[0] if kept else None)
                return 1
        column = IdColumn(id_array(ids))
        kept = attachments(column.values, documents, contents, payloads)
        many, rows, offered = self._kind.many(documents)
        self._check_count(column, offered)
        if len(rows) < offered:
            column = IdColumn(column.values.take(pa.array(rows)))
            kept = kept and [kept[row] for row in rows.tolist()]
        return self._writer.add_many(column, many, kept)

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
            payload: A small value stored with it, as in `add`.

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
        """Store a document as `add_if_new` does, and return an answer that says what became of it.

        A document is never near to what its own id has. An id that is stored with the same content
        (an equal fingerprint; by similarity, equal features) stays as it is, with its payload and
        time: "stored". Other content is compared with all other ids: if one is near, it was "seen",
        and the stored version stays; else it is "new", or has "replaced" the stored version.

        Args:
            identity: A str or int.
            document: As in `add`. One without tokens is "empty", and nothing changes.
            stored: What happens if the id is stored with other content: "replace" as above; "keep",
                the stored version stays, "stored" unless another one is near; or "error".
            content: What a durable index stores with it, as in its `add`.
            payload: A small value stored with it, as in `add`.

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
        check_choice("stored", stored, STORED)
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
            key = stored_id(identity, self._store.version.id_kind)
            return self._writer.offer(key, one, kept_one, stored)

    def add_new(
        self, ids: Ids | Prepared, documents: Documents = None, contents: Contents | None = None, *,
        stored: Stored = "replace", payloads: Payloads = None,
    ) -> pa.Table:  # fmt: skip
        """Offer many documents, one after the other, each as in `offer`.

        Args:
            ids: As many, of one kind; or what `prepare` gave, and nothing else.
            documents: As in `add`.
            contents: What a durable index stores with them, as in its `add`.
            stored: As in `offer`; at an "error" the documents before it are stored.
            payloads: Small values stored with them, as in `add`.

        Returns:
            pyarrow.Table with a row a document: row (int64), is_new, id (the closest other one's,
            null if none is near), distance or similarity, and state, as from `offer`; "refused" for
            one that `prepare` reported.

        Raises:
            UsageError, DataError: As `offer`.

        Example:
            >>> from neardup import Index
            >>> table = Index(distance=1).add_new(["a", "b", "c"], [0b1011, 0b1010, None])
            >>> table["id"].to_pylist(), table["state"].to_pylist()
            ([None, 'a', None], ['new', 'seen', 'empty'])
        """
        answers, kind = self._offered(ids, documents, contents, payloads, stored)
        near, id_type = [each.near for each in answers], ID_KINDS[kind]
        columns = [
            pa.array(np.arange(len(answers))),
            pa.array([each.state in NEW_STATES for each in answers], pa.bool_()),
            pa.array([each and each[0] for each in near], id_type),
            pa.array([each and each[1] for each in near], self._kind.scores),
            pa.array([each.state for each in answers], pa.string()),
        ]
        names = ["row", "is_new", "id", self._kind.name, "state"]
        return pa.Table.from_arrays(columns, names)

    def offer_many(
        self, ids: Ids | Prepared, documents: Documents = None, contents: Contents | None = None, *,
        stored: Stored = "replace", payloads: Payloads = None,
    ) -> list[Answer]:  # fmt: skip
        """Offer many documents as `add_new` does, and return a list of answers.

        Args:
            ids: As in `add_new`.
            documents: As in `add_new`.
            contents: As in `add_new`.
            stored: As in `add_new`.
            payloads: As in `add_new`.

        Returns:
            An Answer for each document, as from `offer`.

        Raises:
            UsageError, DataError: As `offer`.
        """
        return self._offered(ids, documents, contents, payloads, stored)[0]

    def prepare(
        self, ids: Ids, documents: Documents, contents: Contents | None = None, *,
        payloads: Payloads = None, bad: OnBad = "error",
    ) -> Prepared:  # fmt: skip
        """Compute features or fingerprints of documents, to be offered with `add_new` later.

        No lock is taken and nothing is stored, so any thread may do it while others write; another
        process may, with an index that has the same settings, and send what it gets.

        Args:
            ids: One, or many, as in `add_new`.
            documents: As in `add_new`.
            contents: As in `add_new`.
            payloads: As in `add_new`.
            bad: What happens if a document, id or payload is not valid: "error", or "report": the
                others are prepared, and `problems` says by row what is wrong.

        Returns:
            The argument of `add_new` and `offer_many`; `Prepared.joined` joins several.

        Raises:
            UsageError: As `add_new`.

        Example:
            >>> from neardup import Index
            >>> index = Index(distance=1)
            >>> ready = index.prepare(["a", "b"], [0b1011, "no number"], bad="report")
            >>> index.add_new(ready)["state"].to_pylist(), list(ready.problems)
            (['new', 'refused'], [1])
        """
        check_choice("bad", bad, BAD)
        if bad == "error":
            return self._preparer.prepared(ids, documents, contents, payloads)
        return self._preparer.sifted(ids, documents, contents, payloads, self.id_kind)

    def check_rows(
        self, ids: Ids, documents: Documents, contents: Contents | None = None, *,
        payloads: Payloads = None,
    ) -> list[str | None]:  # fmt: skip
        """The problem of each of many documents; None for those that `add_new` accepts.

        Args:
            ids: As in `add_new`.
            documents: As in `add_new`.
            contents: As in `add_new`.
            payloads: As in `add_new`.

        Raises:
            UsageError: If there are not as many documents as ids.
        """
        ready = self.prepare(ids, documents, contents, payloads=payloads, bad="report")
        return [ready.problems.get(row) for row in range(len(ready))]

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction: committed at the end of the body, rolled back if it raises.

        Uncommitted changes from before are committed first. Other threads that write wait. Threads
        that query see what the body writes at once, unless they query with `committed`.

        Raises:
            UsageError: If one is open already, or if the body commits, rolls back, compacts or
                closes the index.
            FileError: As `commit`: then nothing of the body is stored.

        Example:
            >>> from neardup import Index
            >>> index = Index(distance=1)
            >>> with index.transaction() as t:
            ...     t.add("a", 0b1011), t.offer("b", 0b1010).state
            (1, 'seen')
        """
        with self._lock:
            self._store.check_writable()
            self._check_no_transaction("transaction")
            undo = self._store.begin()
            self._in_transaction = True
            try:
                yield self
                self._in_transaction = False
                self.commit()
            except BaseException:
                undo()
                raise
            finally:
                self._in_transaction = False

    def refresh(self) -> bool:
        """Follow the last commit of the process that writes, as each query does; True if it is new.

        Only an index in a folder that was opened with readonly=True has anything to follow.
        """
        return False

    def merge(self, other: BaseIndex, *, foreign: bool = False) -> None:
        """Add all documents of another index, in its order; ids that both have are replaced.

        They keep the times at which they were added, their texts or features, and payloads.

        Args:
            other: An index of the same kind, in memory or in a folder; it does not change.
            foreign: Take fingerprints or features of no known recipe as those of this one's.

        Raises:
            UsageError: If widths or kinds differ, or the other stores less than this one.
            RecipeError: If recipes differ, or only this one is known to have one.
        """
        theirs, mine = type(other).__name__, self._kind.name
        if not isinstance(other, BaseIndex):
            raise UsageError(f"{theirs} is not an index: merge Index or DurableIndex, by {mine}")
        if other.by != mine:
            raise UsageError(f"{theirs} is not an index by {mine}: merge one with {mine}=")
        codec = self._source.codec
        with other.snapshot() as seen:  # without the lock, which each addition takes for itself
            self._store.check_writable()
            self._kind.check_merging(other._kind, foreign=foreign)
            codec.check_merging(seen.store)
            for ids, stored, contents, times, payloads in seen.rows():
                if not codec.is_kept:
                    contents = None  # noqa: PLW2901
                elif contents is None:
                    contents = [None] * len(ids)  # noqa: PLW2901
                kept = codec.attachments(ids, None, contents, payloads)
                self._writer.add_many(IdColumn(ids), stored, kept, times)

    def remove(self, ids: Ids, *, missing: Missing = "error") -> int:
        """Remove one document by its id, or many.

        Args:
            ids: A str or int, or many of one kind, as in `add`.
            missing: What happens if an id is not present: "error", or "ignore".

        Returns:
            How many were removed.

        Raises:
            KeyError: If an id is not present and `missing` is "error"; then nothing is removed.
        """
        check_choice("missing", missing, MISSING)
        with self._lock:
            self._store.check_writable()
            version = self._store.version
            if missing == "error":
                return self._writer.drop(*version.without(version.present(ids)))
            column = IdColumn(id_array([ids] if is_one_id(ids) else ids))
            return self._writer.drop(*version.without(version.places(column)))

    def expire(self, before: float) -> int:
        """Remove the documents added before a time.

        Args:
            before: Seconds since 1970, as from time.time().

        Returns:
            How many were removed. Times of rows in files are known to the second, old ones to a
            thousandth of their age; none is removed early.
        """
        with self._lock:
            self._store.check_writable()
            limit = as_time("before", before)
            return self._writer.drop(*self._writer.flushed(self._store.version).expired(limit))

    def touch(self, ids: Ids) -> int:
        """Mark documents as seen again: for `expire` they were added now.

        They then come last in the order of insertion, as if they were added again.

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
            return self._writer.add_many(column, version.contents_at(places), kept)

    def compact(self) -> None:
        """Merge everything into one segment, without removed rows."""
        with self._lock:
            self._store.check_writable()
            self._check_no_transaction("compact")
            self._store.version = self._writer.flushed(self._store.version).compacted(
                self._store.path
            )

    def _offered(
        self, ids: Ids | Prepared, documents: Documents, contents: Contents | None,
        payloads: Payloads, stored: Stored,
    ) -> tuple[list[Answer], str]:  # fmt: skip
        """The answers to documents, and the kind of their ids; one document costs half as much."""
        check_choice("stored", stored, STORED)
        self._store.check_writable()
        if type(ids) is list and type(documents) is list and len(ids) == len(documents) == 1:
            one_id = ids[0]
            if type(one_id) in {str, int} and contents is None and payloads is None:
                return [self.offer(one_id, documents[0], stored=stored)], id_kind(one_id)
        prepared = self._prepared(ids, documents, contents, payloads)
        return self._writer.offer_many(prepared, stored), prepared.id_kind

    def _prepared(
        self, ids: Ids | Prepared, documents: Documents, contents: Contents | None,
        payloads: Payloads,
    ) -> Prepared:  # fmt: skip
        """The prepared documents that were passed, or those made here."""
        if not isinstance(ids, Prepared):
            return self._preparer.prepared(ids, documents, contents, payloads)
        if not (documents is None and contents is None and payloads is None):
            raise UsageError("prepared documents take no other arguments: leave them out")
        ids.check_made_for(self._preparer.made_for)
        return ids

    def _check_no_transaction(self, call: str) -> None:
        """Raise UsageError in the body of a transaction; called with the lock held."""
        if self._in_transaction:
            raise UsageError(f"{call} in a transaction: it commits when its body ends")

    def _check_count(self, column: IdColumn, offered: int) -> None:
        if len(column) != offered:
            raise UsageError(
                f"{len(column):,} ids for {offered:,} {self._kind.noun}: give one for each"
            )


STORED: Final = ("replace", "keep", "error")
BAD: Final = ("error", "report")
CALLS: Final = ("usual", "all")
MISSING: Final = ("error", "ignore")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise UsageError for a value that is not one of the choices."""
    if value not in choices:
        *most, last = map(repr, choices)
        raise UsageError(f"{name} is {value!r:.60}: use {', '.join(most)} or {last}")
