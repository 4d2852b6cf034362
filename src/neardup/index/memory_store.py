"""The store of an index in memory."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neardup.index.attachments import Attachments, ContentCodec, store_of
from neardup.index.queries import Counters, Snapshot
from neardup.index.versions import merge_due

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from neardup.index.hits import Id
    from neardup.index.protocol import Ids
    from neardup.index.stored_rows import Content, SegmentRows
    from neardup.index.versions import AnyVersion
    from neardup.runtime.types import Rows

__all__ = ["MemoryStore"]


class MemoryStore:
    """A version and its attachments in memory; see Store.

    Args:
        version: The first version.
        attachments: Of its rows.
        store: The stored contents, as from `store_of`; by default those in the rows.
    """

    path = None
    closed = False
    is_writable = True

    def __init__(
        self, version: AnyVersion, attachments: Attachments | None = None, store: str | None = None
    ) -> None:
        """Begin with a version and its attachments."""
        kind = version.kind
        self.version = version
        self.codec = ContentCodec.for_kind(kind, store_of(kind, store))
        self.lock, self.counters, self.undone = threading.RLock(), Counters(), 0
        self._attachments = Attachments() if attachments is None else attachments

    def current(self) -> AnyVersion:
        """See Store."""
        return self.version

    def committed(self) -> AnyVersion:
        """See Source: nothing in memory is taken back."""
        return self.version

    def check_writable(self) -> None:
        """See Store: everything in memory can be written."""

    def begin(self) -> Callable[[], None]:
        """See Store.

        Numbers are not used again, since snapshots may have them.
        """
        version, attachments = self.version, self._attachments
        restore = attachments.begin(version.next)

        def undo() -> None:
            restore()
            self._attachments = attachments
            self.version = replace(version, next=self.version.next)
            self.undone += 1  # last, as `RowWriter._add_segment` reads it first

        return undo

    def snapshot(self, *, committed: bool = False) -> Snapshot:
        """See Store.

        It needs no lock. The writer stores attachments before the version that has their rows, and
        replaces the object before the version that lacks rows. So a version that is read between
        two reads of the same object has all its attachments there.
        """
        del committed
        while True:
            attachments = self._attachments
            version = self.version
            if attachments is self._attachments:
                return Snapshot(version, attachments, self.codec)

    def attachments_at(self, ids: Ids) -> list[bytes | None]:
        """See Store."""
        return self.snapshot().attachments_at(ids)

    def attachments(self, numbers: list[int]) -> list[bytes | None] | None:
        """See Store."""
        return self._attachments.of(numbers)

    def merged(self, segments: Sequence[SegmentRows]) -> tuple[SegmentRows, ...]:
        """See Store."""
        return tuple(merge_due(self.version.kind, segments))

    def is_searched_alone(self, rows: int) -> bool:
        """See Store."""
        del rows
        return True

    def added(
        self, first: int, ids: pa.Array, contents: Any, attachments: list[bytes | None] | None
    ) -> None:
        """See Store."""
        del ids, contents
        if attachments is not None:
            self._attachments.put(first, attachments)

    def added_one(
        self, number: int, identity: Id, content: Content, attachment: bytes | None
    ) -> None:
        """See Store."""
        del identity, content
        if attachment is not None:
            self._attachments.put(number, [attachment])

    def removed(self, numbers: Rows) -> None:
        """See Store."""
        if len(self._attachments):
            self._attachments = self._attachments.without(numbers.tolist())

    def take_back(self) -> None:
        """See Store."""
        self._attachments.take_back(self.version)

    def facts(self) -> dict[str, Any]:
        """See Store."""
        return {"content_bytes": self._attachments.nbytes}
