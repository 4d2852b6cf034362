"""The interface of a store of an index, in memory or in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from neardup.index.queries import Counters, Snapshot, Source

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from neardup.index.hits import Id
    from neardup.index.stored_rows import Content, SegmentRows
    from neardup.index.versions import AnyVersion
    from neardup.runtime.types import Rows

__all__ = ["Store"]


class Store(Source, Protocol):
    """The store of an index, in memory or in a folder: its version and its attachments.

    All but what Source has is called with the lock held.
    """

    lock: threading.RLock
    version: AnyVersion
    """The writer's current version, from which it makes the next one."""

    is_writable: bool
    """Whether `check_writable` raises nothing."""

    counters: Counters
    """Of the index."""

    undone: int
    """How often a version was rolled back: its numbers are then used again."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def check_writable(self) -> None:
        """Raise UsageError if nothing can be written; may be called without the lock."""

    def snapshot(self, *, committed: bool = False) -> Snapshot:
        """A snapshot: the version and the attachments of its rows; needs no lock.

        With `committed` it is the last version on disk.
        """

    def begin(self) -> Callable[[], None]:
        """Begin a transaction; returns a function that undoes all writes after this call."""

    def attachments(self, numbers: list[int]) -> list[bytes | None] | None:
        """The attachments of stored rows."""

    def merged(self, segments: Sequence[SegmentRows]) -> tuple[SegmentRows, ...]:
        """The same rows, merged if a merge is due and may run now."""

    def is_searched_alone(self, rows: int) -> bool:
        """Whether a segment of this number of rows stays as it is, unless its merge is due.

        It may be called without the lock.
        """

    def added(
        self, first: int, ids: pa.Array, contents: Any, attachments: list[bytes | None] | None
    ) -> None:
        """Note added rows, with numbers from `first` on; `version` follows."""

    def added_one(
        self, number: int, identity: Id, content: Content, attachment: bytes | None
    ) -> None:
        """As `added`, for one row."""

    def removed(self, numbers: Rows) -> None:
        """Note removed or replaced rows, by number; `version` follows."""

    def take_back(self) -> None:
        """Forget what was noted of rows that `version` lacks, or still has: it did not follow."""

    def facts(self) -> dict[str, Any]:
        """The store's part of `stats`, in addition to the kind's."""
