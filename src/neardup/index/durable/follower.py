"""An index whose rows are those of a folder: what a reader sees, and what a writer begins with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.index.clock import Clock
from neardup.index.durable.manifest import Manifest
from neardup.index.durable.records import Record, joined_records
from neardup.index.ids import IdColumn
from neardup.index.segment_files import SegmentFile, StoredSegment, damaged
from neardup.index.segments import TAIL_ROWS, Segment, Tail, settled, successors
from neardup.index.writing import BaseIndex

if TYPE_CHECKING:
    from neardup.index.durable.store import Changes, Store
    from neardup.index.settings import Settings

__all__ = ["Follower"]

SMALL_RECORD: Final = 512
TRIES: Final = 20


class Follower(BaseIndex):
    """Follows a folder.

    Args:
        store: The folder.
        settings: Of the index.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        """Read the folder."""
        super().__init__(settings)
        self._store = store
        self._manifest = Manifest(generation=-1)
        self._sequence = self._transaction = 0
        self._logged = 0
        """Rows and removals that are in the log."""
        self._load()

    def _load(self) -> None:
        """Take over what the folder has and this object does not know."""
        for _ in range(TRIES):
            changes = self._store.changes(self._manifest.generation, self._sequence)
            try:
                if changes.manifest is not None:
                    self._take_manifest(changes.manifest, changes.dead)
            except FileNotFoundError as error:
                missing = error.filename  # a checkpoint came between: there is a newer manifest
                continue
            self._replay(changes)
            self._transaction = changes.transaction
            return
        raise damaged(Path(missing), "it is not there")

    def _take_manifest(self, manifest: Manifest, dead: dict[str, Any]) -> None:
        known = {
            segment.file.path.name: segment.file
            for segment in self._state[0]
            if isinstance(segment, StoredSegment)
        }
        segments = []
        for entry in manifest.files:
            file = known.get(entry.name) or SegmentFile(self._store.file(entry.name))
            if file.checksum != entry.checksum:
                raise damaged(file.path, "it is not the file that the index names")
            segments.append(StoredSegment(file, dead.get(entry.name)))
        self._state = (tuple(segments), Tail(self._settings.width))
        self._kind = segments[0].ids.kind if segments else self._kind
        self._next, self._clock = manifest.next, manifest.clock
        self._manifest, self._sequence, self._logged = manifest, manifest.covered, 0

    def _replay(self, changes: Changes) -> None:
        """Apply records of the log to the state; their numbers say what it has already."""
        self._sequence = changes.sequence
        if not changes.records:
            return
        record = joined_records(changes.records)
        self._logged += len(record) + len(record.removed)
        record = record.rows_from(self._next)
        if len(record):
            self._kind = IdColumn(record.ids).kind
            self._insert(record)
        self._remove_numbers(record.removed)

    def _insert(self, record: Record) -> None:
        segments, tail = self._state
        if len(record) <= SMALL_RECORD and len(tail) + len(record) <= TAIL_ROWS:
            ids = record.ids.to_pylist()
            for row, identity in enumerate(ids):
                tail.append(identity, record.codes[row], record.first + row)
        else:
            self._settle(force=True)
            segments, tail = self._state
            numbers = np.arange(record.first, record.end)
            segment = Segment(record.codes, IdColumn(record.ids), numbers)
            self._state = (self._arranged([*successors(segments), segment]), tail)
        self._next = record.end
        self._clock = Clock.joined([self._clock.since(0), record.clock.since(record.first)])

    def _remove_numbers(self, numbers: Any) -> None:
        """Mark the rows of these numbers as removed, where they are."""
        if not len(numbers):
            return
        segments, tail = self._state
        for segment in segments:
            rows = np.searchsorted(segment.numbers, numbers)
            rows = rows[rows < len(segment)] if len(segment) else rows[:0]
            segment.remove(np.unique(rows[np.isin(segment.numbers[rows], numbers)]))
        held = tail.numbers[: len(tail)]
        for row in np.flatnonzero(np.isin(held, numbers)).tolist():
            if tail.rows.get(tail.ids[row]) == row:
                tail.remove(tail.ids[row])
            tail.dead.add(row)

    def _arranged(self, segments: list[Segment]) -> tuple[Segment, ...]:
        """Merge only what is not in files yet; a checkpoint merges all."""
        stored = [segment for segment in segments if isinstance(segment, StoredSegment)]
        return (*stored, *settled(segments[len(stored) :]))
