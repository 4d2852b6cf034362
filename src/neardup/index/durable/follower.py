"""What a commit holds, as a snapshot: from the folder, or an older commit and what is new."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.index.clock import Clock
from neardup.index.durable.manifest import Manifest
from neardup.index.durable.records import Record, joined_records
from neardup.index.ids import IdColumn
from neardup.index.segment_files import SegmentFile, StoredSegment, damaged
from neardup.index.segments import TAIL_ROWS, Segment, Tail, settled
from neardup.index.snapshot import Snapshot

if TYPE_CHECKING:
    from neardup.index.durable.store import Reading
    from neardup.index.settings import Settings

__all__ = ["Commit", "arranged", "first_commit", "following"]

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

    held: Snapshot
    manifest: Manifest
    sequence: int
    transaction: tuple[str, int]
    logged: int


def first_commit(settings: Settings) -> Commit:
    """Nothing, before all commits."""
    return Commit(Snapshot.empty(settings), Manifest(generation=-1), 0, ("", -1), 0)


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
        logged += len(record) + len(record.removed)
        record = record.rows_from(held.next)
        if len(record):
            held = _with_record(held, record)
        held = _without_numbers(held, record.removed)
    return Commit(held, known.manifest, changes.sequence, changes.transaction, logged)


def arranged(segments: list[Segment]) -> tuple[Segment, ...]:
    """Merge only what is not in files yet; a checkpoint merges all."""
    stored = [segment for segment in segments if isinstance(segment, StoredSegment)]
    return (*stored, *settled(segments[len(stored) :]))


def _with_manifest(
    known: Commit, manifest: Manifest, dead: dict[str, Any], reading: Reading
) -> Commit:
    files = {
        segment.file.path.name: segment.file
        for segment in known.held.segments
        if isinstance(segment, StoredSegment)
    }
    segments = []
    for entry in manifest.files:
        file = files.get(entry.name) or SegmentFile(reading.file(entry.name))
        if file.checksum != entry.checksum:
            raise damaged(file.path, "it is not the file that the index names")
        segments.append(StoredSegment(file, dead.get(entry.name)))
    settings, kind = known.held.settings, known.held.kind
    clock = Clock.joined([manifest.clock.since(0)])
    held = Snapshot.of_segments(settings, tuple(segments), manifest.next, clock)
    held = held if segments else replace(held, kind=kind)
    return Commit(held, manifest, manifest.covered, known.transaction, 0)


def _with_record(held: Snapshot, record: Record) -> Snapshot:
    segments, tail = held.segments, held.tail
    if len(record) <= SMALL_RECORD and len(tail) + len(record) <= TAIL_ROWS:
        for row, identity in enumerate(record.ids.to_pylist()):
            tail = tail.appended(identity, record.codes[row], record.first + row)
    else:
        numbers = np.arange(record.first, record.end)
        parts = [*held.parts(), Segment(record.codes, IdColumn(record.ids), numbers)]
        segments, tail = arranged(parts), Tail.empty(held.settings.width)
    held.clock.extend(*record.clock.since(record.first))
    kind = IdColumn(record.ids).kind
    return Snapshot(held.settings, segments, tail, kind, record.end, held.clock)


def _without_numbers(held: Snapshot, numbers: Any) -> Snapshot:
    """Without the rows of these numbers, where they are."""
    if not len(numbers):
        return held
    segments, tail = list(held.segments), held.tail
    for i, segment in enumerate(segments):
        rows = _rows_of(segment.numbers, numbers)
        if segment.removed:
            rows = rows[~segment.dead[rows]]
        if len(rows):
            segments[i] = segment.without(rows)
    rows = _rows_of(tail.numbers, numbers)
    rows = rows[~tail.dead[rows]]
    if len(rows):
        tail = tail.without(rows)
    return replace(held, segments=tuple(segments), tail=tail)


def _rows_of(stored: Any, numbers: Any) -> Any:
    """The rows of ascending numbers that are among these: int64, each once."""
    if not len(stored):
        return np.empty(0, np.int64)
    rows = np.minimum(np.searchsorted(stored, numbers), len(stored) - 1)
    return np.unique(rows[stored[rows] == numbers])
