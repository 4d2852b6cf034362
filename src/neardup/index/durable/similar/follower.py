"""An index by similarity whose rows are those of a folder, as of its last commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.index.durable.environment import TornReadError
from neardup.index.durable.manifest import Manifest
from neardup.index.durable.records import Record, joined_records
from neardup.index.ids import IdColumn
from neardup.index.segment_files import SegmentFile, damaged
from neardup.index.similar.files import StoredSimilarSegment
from neardup.index.similar.queries import State
from neardup.index.similar.segment import Rows, Segment, merged, no_order
from neardup.index.similar.sets import joined_sets
from neardup.index.similar.tail import TAIL_ROWS, Tail
from neardup.index.similar.writing import SimilarWriting

if TYPE_CHECKING:
    from neardup.index.durable.store import Changes, Store
    from neardup.index.similar.settings import SimilarSettings

__all__ = ["SimilarFollower"]

SMALL_RECORD: Final = 512
TRIES: Final = 20


class SimilarFollower(SimilarWriting):
    """Follows a folder.

    Args:
        store: The folder.
        settings: Of the index.
    """

    def __init__(self, store: Store, settings: SimilarSettings) -> None:
        """Read the folder."""
        super().__init__(settings)
        self._store = store
        self._manifest = Manifest(generation=-1)
        self._sequence, self._transaction = 0, ("", -1)
        self._logged = 0
        """Rows and removals that are in the log."""
        self._load()

    def _load(self) -> None:
        """Take over what the folder has and this object does not know; then it is seen, whole."""
        for _ in range(TRIES):
            try:
                changes = self._store.changes(self._manifest.generation, self._sequence)
                state = self._state
                if changes.manifest is not None:
                    state = self._opened(changes.manifest, changes.dead)
            except FileNotFoundError as error:
                missing = error.filename  # a checkpoint came between: there is a newer manifest
                continue
            except TornReadError:
                missing = self._store.environment.path
                continue
            self._replay(state, changes)
            self._transaction = changes.transaction
            return
        raise damaged(Path(missing), "it is not there")

    def _opened(self, manifest: Manifest, dead: dict[str, Any]) -> State:
        known = {
            segment.file.path.name: segment.file
            for segment in self._state.segments
            if isinstance(segment, StoredSimilarSegment)
        }
        segments = []
        for entry in manifest.files:
            file = known.get(entry.name) or SegmentFile(self._store.file(entry.name))
            if file.checksum != entry.checksum:
                raise damaged(file.path, "it is not the file that the index names")
            segments.append(StoredSimilarSegment(file, dead.get(entry.name)))
        self._kind = segments[0].ids.kind if segments else self._kind
        self._next, self._clock = manifest.next, manifest.clock
        self._manifest, self._sequence, self._logged = manifest, manifest.covered, 0
        order = max(segments, key=len).order if segments else no_order()
        living = sum(segment.living for segment in segments)
        return State(tuple(segments), Tail(order), 0, self._state.stamp + 1, living)

    def _replay(self, state: State, changes: Changes) -> None:
        """Apply records of the log to a state, and take it; their numbers say what it has."""
        self._sequence = changes.sequence
        if changes.records:
            record = joined_records(changes.records)
            self._logged += len(record) + len(record.removed)
            record = record.rows_from(self._next)
            stamp = state.stamp + 1
            if len(record):
                state = self._inserted(state, record)
            gone = self._mark_numbers(state, record.removed, stamp)
            state = state._replace(stamp=stamp, living=state.living - gone)
        self._state = state

    def _inserted(self, state: State, record: Record) -> State:
        self._kind = IdColumn(record.ids).kind
        if record.sets is None:
            raise damaged(self._store.environment.path, "a record of its log has no features")
        sets = joined_sets([record.sets])
        segments, tail, count = list(state.segments), state.tail, state.tail_rows
        if len(record) <= SMALL_RECORD and count + len(record) <= TAIL_ROWS:
            for row, identity in enumerate(record.ids.to_pylist()):
                tail.append(identity, sets.of(row), record.first + row, self._settings)
            count += len(record)
        else:
            rows = tail.living_rows(count, self._kind, state.stamp)
            if len(rows.ids):
                segments.append(merged([rows], self._settings))
            numbers = np.arange(record.first, record.end)
            column = IdColumn(record.ids)
            found = Rows(sets, np.arange(len(record)), column, numbers)
            segments.append(merged([found], self._settings))
            segments = self._arranged(segments)
            tail, count = Tail(max(segments, key=len).order), 0
        self._next = record.end
        self._clock.extend(*record.clock.since(record.first))
        living = state.living + len(record)
        return State(tuple(segments), tail, count, state.stamp, living)

    def _mark_numbers(self, state: State, numbers: Any, stamp: int) -> int:
        """Mark the rows of these numbers as removed, where they are; how many that were."""
        gone = 0
        for segment in state.segments if len(numbers) else ():
            rows = np.searchsorted(segment.numbers, numbers)
            rows = rows[rows < len(segment)]
            rows = np.unique(rows[np.isin(segment.numbers[rows], numbers)])
            gone += len(segment.remove(rows, stamp)) if len(rows) else 0
        held = state.tail.numbers[: state.tail_rows]
        for row in np.flatnonzero(np.isin(held, numbers)).tolist():
            if state.tail.died[row] > stamp:
                state.tail.remove(row, stamp)
                gone += 1
        return gone

    def _arranged(self, segments: list[Segment]) -> list[Segment]:
        """Merge only what is not in files yet; a checkpoint merges all."""
        stored = [each for each in segments if isinstance(each, StoredSimilarSegment)]
        return [*stored, *super()._arranged(segments[len(stored) :])]
