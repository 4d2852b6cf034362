"""What a commit holds, at one moment: from the folder, or an older commit and what is new."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.index.durable.log_entries import Manifest, Record, joined_records
from neardup.index.id_columns import ID_KINDS, IdColumn
from neardup.index.segment_files import SegmentFile, damaged
from neardup.index.stored_rows import StoredRows

if TYPE_CHECKING:
    from neardup.index.base.held import Held
    from neardup.index.durable.log_reading import Reading
    from neardup.runtime.types import Rows

__all__ = ["Commit", "Pending", "arranged", "first_commit", "following"]

SMALL_RECORD: Final = 512


@dataclass(frozen=True, slots=True)
class Commit:
    """What one transaction of the folder holds.

    Args:
        held: The documents.
        manifest: Of the transaction.
        sequence: Of the last record of the log.
        transaction: Its file and number.
        logged: Rows and removals that are in the log.
    """

    held: Held
    manifest: Manifest
    sequence: int
    transaction: tuple[str, int]
    logged: int


def first_commit(empty: Held) -> Commit:
    """Nothing, before all commits."""
    return Commit(empty, Manifest(generation=-1), 0, ("", -1), 0)


def following(known: Commit, reading: Reading) -> Commit:
    """The commit that is read, from an older one; what both have is shared.

    Raises:
        FileNotFoundError: If a file is gone: a checkpoint came between.
        DataError: If the folder is damaged.
    """
    changes = reading.changes(known.manifest.generation, known.sequence, known.manifest.seal)
    if changes.manifest is not None:
        known = _with_manifest(known, changes.manifest, changes.dead, reading)
    held, logged = known.held, known.logged
    if changes.records:
        record = joined_records(changes.records)
        if not isinstance(record.contents, type(held.none(held.settings))):
            raise damaged(reading.file(changes.transaction[0]), "its log is of another kind")
        logged += len(record) + len(record.removed)
        record = record.rows_from(held.next)
        if len(record):
            held = _with_record(held, record)
        held = held.without_numbers(record.removed)
    return Commit(held, known.manifest, changes.sequence, changes.transaction, logged)


def arranged(held: Held, segments: list[Any], fixed: int = 0) -> tuple[Any, ...]:
    """Merge only what is not in files yet, nor among the first: a checkpoint merges all."""
    stored = sum(isinstance(segment, StoredRows) for segment in segments)
    first = max(fixed, stored)
    return (*segments[:first], *held.arranged(held.settings, segments[first:]))


def _with_manifest(
    known: Commit, manifest: Manifest, dead: dict[str, Any], reading: Reading
) -> Commit:
    held = known.held
    files = {
        segment.file.path.name: segment.file
        for segment in held.segments
        if isinstance(segment, StoredRows)
    }
    segments = []
    for entry in manifest.files:
        file = files.get(entry.name) or SegmentFile(reading.file(entry.name))
        if file.checksum != entry.checksum:
            raise damaged(file.path, "it is not the file that the index names")
        segments.append(held.stored(file, dead.get(entry.name)))
    found = held.of_segments(held.settings, tuple(segments), manifest.next, manifest.clock)
    found = found if segments else replace(found, kind=held.kind)
    return Commit(found, manifest, manifest.covered, known.transaction, 0)


def _with_record(held: Held, record: Record) -> Held:
    column, contents = IdColumn(record.ids), record.contents
    clock = held.clock.extended(*record.clock.since(record.first))
    held = replace(held, next=record.first, clock=clock)
    if len(record) <= min(SMALL_RECORD, held.tail.room):
        for row, identity in enumerate(record.ids.to_pylist()):
            held = held.appended(identity, held.row(contents, row), column.kind)
        return replace(held, kind=column.kind)
    numbers = np.arange(record.first, record.end)
    segment = held.new_segment(held.settings, column, contents, numbers)
    parts = arranged(held, [*held.settled().segments, segment])
    tail = held.new_tail(held.settings, parts)
    return type(held)(held.settings, parts, tail, column.kind, record.end, held.clock)


class Pending:
    """Rows with numbers from `first` on, removed numbers, and what is kept by number.

    Args:
        held: What they are added to.
    """

    def __init__(self, held: Held) -> None:
        """Nothing is pending."""
        self.first = held.next
        self.contents: dict[int, bytes | None] = {}
        self._held = held
        self._parts: list[tuple[Any, Any]] = []
        self._ids: list[Any] = []
        self._ones: list[Any] = []
        self._removed: list[Rows] = []
        self._rows = 0

    def __len__(self) -> int:
        """Rows added and rows removed."""
        return self._rows

    def add_one(self, identity: Any, one: Any) -> None:
        """The row of the next number."""
        self._ids.append(identity)
        self._ones.append(one)
        self._rows += 1

    def add(self, ids: Any, many: Any) -> None:
        """The rows of the next numbers."""
        self._flush(ids.type)
        self._parts.append((ids, many))
        self._rows += len(ids)

    def remove(self, numbers: Rows) -> None:
        """Rows, pending or not, are removed."""
        self._removed.append(numbers)
        self._rows += len(numbers)

    def record(self, state: Held) -> Record:
        """All of it, which led to a state."""
        kind = ID_KINDS[state.kind or "int"]
        self._flush(kind)
        ids = [pa.array([], kind), *(ids for ids, _ in self._parts)]
        contents = [state.none(state.settings), *(many for _, many in self._parts)]
        removed = np.concatenate([np.empty(0, np.int64), *self._removed])
        return Record.of(
            self.first, pa.concat_arrays(ids), state.concatenated(contents), removed, state.clock
        )

    def _flush(self, kind: Any) -> None:
        if self._ids:
            ids = pa.array(self._ids, kind)
            self._parts.append((ids, self._held.bunched(self._ones)))
            self._ids, self._ones = [], []
