"""Commits of an index in a folder, read from it or made from an older commit and its changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.index.durable.log_entries import Manifest, Record, joined_records
from neardup.index.id_columns import ID_KINDS, IdColumn, id_array
from neardup.index.segment_files import SegmentFile, damaged
from neardup.index.versions import Version, merge_due

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.index.durable.log_entries import EncodedRecord
    from neardup.index.durable.log_reading import Reading
    from neardup.index.hits import Id
    from neardup.index.stored_rows import Content, SegmentRows
    from neardup.index.versions import AnyKind, AnyVersion
    from neardup.runtime.types import Rows

__all__ = [
    "SMALL_RECORD", "Commit", "EarlyRecord", "Pending", "first_commit", "following",
    "merged_in_memory",
]  # fmt: skip

SMALL_RECORD: Final = 512
"""Rows that a reader puts into its tail; more become a segment at once."""
MOST_MERGED: Final = {"distance": 1 << 16, "similarity": 1 << 13}
"""Rows that an addition merges in memory, at most, in some 40 ms; a flush merges all."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The content of one transaction of the folder.

    Args:
        version: The documents.
        manifest: Of the transaction.
        sequence: Of the last record of the log.
        transaction: Its file and number.
        logged: Rows and removals that are in the log.
    """

    version: AnyVersion
    manifest: Manifest
    sequence: int
    transaction: tuple[str, int]
    logged: int


def first_commit(empty: AnyVersion) -> Commit:
    """The commit of a new folder: an empty version, no segments, no log."""
    return Commit(empty, Manifest(generation=-1), 0, ("", -1), 0)


def following(before: Commit, reading: Reading) -> Commit:
    """The commit that is read, made from an older one, with which it shares parts.

    Raises:
        FileNotFoundError: If a file is gone: a flush or merge came between.
        DataError: If the folder is damaged.
    """
    changes = reading.changes(before.manifest.generation, before.sequence, before.manifest.seal)
    if changes.manifest is not None:
        before = _with_manifest(before, changes.manifest, changes.dead, reading)
    version, logged = before.version, before.logged
    if changes.records:
        record = joined_records(changes.records)
        if not isinstance(record.contents, type(version.kind.none())):
            raise damaged(reading.file(changes.transaction[0]), "its log is of another kind")
        logged += len(record) + len(record.removed)
        # A flush that the reader follows has brought the first rows of the log into files.
        record = record.rows_from(version.next)
        if len(record):
            version = _with_record(version, record)
        # After the rows: a record may remove rows that it adds itself.
        version = version.without_numbers(record.removed)
    return Commit(version, before.manifest, changes.sequence, changes.transaction, logged)


def merged_in_memory(
    kind: AnyKind, segments: Sequence[SegmentRows], fixed: int = 0
) -> tuple[SegmentRows, ...]:
    """Merge the segments in memory behind the first `fixed`, on which a job works."""
    stored = sum(segment.file is not None for segment in segments)
    first = max(fixed, stored)
    return (*segments[:first], *merge_due(kind, segments[first:], MOST_MERGED[kind.name]))


def _with_manifest(
    before: Commit, manifest: Manifest, dead: dict[str, Any], reading: Reading
) -> Commit:
    version = before.version
    files = {each.file.path.name: each.file for each in version.segments if each.file is not None}
    segments = []
    for entry in manifest.files:
        file = files.get(entry.name) or SegmentFile(reading.file(entry.name))
        if file.checksum != entry.checksum:
            raise damaged(file.path, "it is not the file that the index names")
        segments.append(version.kind.read(file, dead.get(entry.name)))
    merged = version.of_segments(version.kind, tuple(segments), manifest.next, manifest.clock)
    merged = merged if segments else replace(merged, id_kind=version.id_kind)
    return Commit(merged, manifest, manifest.covered, before.transaction, 0)


def _with_record(version: AnyVersion, record: Record) -> AnyVersion:
    column, contents, kind = IdColumn(record.ids), record.contents, version.kind
    clock = version.clock.extended(*record.clock.since(record.first))
    version = replace(version, next=record.first, clock=clock)
    if len(record) <= SMALL_RECORD:
        return version.extended(column, contents, _flushed)
    segment = kind.build(column, contents, np.arange(record.first, record.end))
    parts = merged_in_memory(kind, [*version.flushed().segments, segment])
    return Version(kind, parts, kind.tail(parts), column.kind, record.end, version.clock)


def _flushed(version: AnyVersion) -> AnyVersion:
    flushed = version.flushed()
    return replace(flushed, segments=merged_in_memory(version.kind, flushed.segments))


class PendingChanges(NamedTuple):
    """Rows and removals taken from Pending, which do not change.

    Args:
        first: The number of the first row.
        parts: Ids and contents of rows that were added together.
        removed: Numbers of rows that were removed together.
        version: The version with these changes.
    """

    first: int
    parts: list[tuple[Any, Any]]
    removed: list[Rows]
    version: AnyVersion

    @property
    def end(self) -> int:
        """The number after the last row's."""
        return self.first + sum(len(ids) for ids, _ in self.parts)

    def encoded(self) -> EncodedRecord:
        """The record of these changes, in the form of the log."""
        kind, id_type = self.version.kind, ID_KINDS[self.version.id_kind or "int"]
        parts = self.parts or [(pa.array([], id_type), kind.none())]
        ids = pa.concat_arrays([ids for ids, _ in parts])
        contents = kind.joined([many for _, many in parts])
        removed = np.concatenate([np.empty(0, np.int64), *self.removed])
        return Record.of(self.first, ids, contents, removed, self.version.clock).encoded()


class EarlyRecord(NamedTuple):
    """A record made before the commit took the writer's lock.

    Args:
        pending: The pending changes at that time; more may have come since.
        changes: The changes of the record.
        record: In the form of the log.
    """

    pending: Pending
    changes: PendingChanges
    record: EncodedRecord


class Pending:
    """Rows with numbers from `first` on, removed numbers, and attachments of the rows by number.

    Args:
        version: The version to which they are added.
        most: The number of rows and removals from which on they go to files without a record.
    """

    def __init__(self, version: AnyVersion, most: int) -> None:
        """Begin without pending rows, after the rows of a version."""
        self._most = most
        self.first = version.next
        self.attachments: dict[int, bytes | None] = {}
        self._kind = version.kind
        self._parts: list[tuple[Any, Any]] = []
        self._ids: list[Id] = []
        self._ones: list[Content] = []
        self._removed: list[Rows] = []
        self._rows = 0

    def __len__(self) -> int:
        """Rows added and rows removed."""
        return self._rows

    @property
    def is_for_files(self) -> bool:
        """Whether the pending rows are too many for a record."""
        return self._rows >= self._most

    def add_one(self, identity: Id, one: Content) -> None:
        """Append a row, with the next number."""
        self._ids.append(identity)
        self._ones.append(one)
        self._rows += 1

    def add(self, ids: pa.Array, many: Any) -> None:
        """Append rows, with the next numbers."""
        self._rows += len(ids)
        if self.is_for_files:
            self._ids, self._ones, self._parts = [], [], []
        else:
            self._bunch()
            self._parts.append((ids, many))

    def remove(self, numbers: Rows) -> None:
        """Remove rows, pending or not."""
        self._removed.append(numbers)
        self._rows += len(numbers)

    def contents(self) -> dict[int, bytes | None]:
        """The attachments of added rows, by number, and None for removed ones."""
        if not self._removed:
            return self.attachments
        return self.attachments | dict.fromkeys(np.concatenate(self._removed).tolist())

    def take_back(self, version: AnyVersion) -> None:
        """Forget rows that a version lacks and removals of rows that it has."""
        count = min(len(self._ids), len(self._ones))
        self._ids, self._ones = self._ids[:count], self._ones[:count]
        self._bunch()
        left, parts = version.next - self.first, []
        for ids, many in self._parts:
            some = ids[:left] if left else ids[:0]
            if len(some) < len(ids):
                many = self._kind.taken(many, np.arange(len(some)))  # noqa: PLW2901
            parts.append((some, many))
            left -= len(some)
        self._parts = [part for part in parts if len(part[0])]
        self._removed = [each[~version.numbered(each).present] for each in self._removed]
        self.attachments = {n: each for n, each in self.attachments.items() if n < version.next}
        if not self.is_for_files:  # else rows are not noted here
            self._rows = sum(map(len, [*(ids for ids, _ in self._parts), *self._removed]))

    def changes(self, version: AnyVersion, before: PendingChanges | None = None) -> PendingChanges:
        """The pending changes that led to a version, or only those after earlier ones."""
        self._bunch()
        first, parts, removed = self.first, self._parts, self._removed
        if before is not None:
            first = before.end
            parts, removed = parts[len(before.parts) :], removed[len(before.removed) :]
        return PendingChanges(first, [*parts], [*removed], version)

    def _bunch(self) -> None:
        """Join the rows that were added one by one into one part."""
        if self._ids:
            part = id_array(self._ids), self._kind.bunched(self._ones)
            # No call between: an interrupt could come after it.
            self._parts += [part]
            self._ids, self._ones = [], []
