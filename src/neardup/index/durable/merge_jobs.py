"""Write the log to files and merge segments while the index is in use.

    begin    under the writer's lock: takes committed segments, which do not change
    work     in a thread of its own, without the lock: merge, write files, sync them
    install  under the lock: one transaction names the files and marks rows removed since

One job writes the rows of the log, which is quick; another merges files, which may take long.

A merge that is abandoned, as when the index is closed, ends at its next step: an array written, a
table made. Its files are removed.

A kill before the transaction leaves files that nothing names, which the next opening removes.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.index.durable.commits import Commit
from neardup.index.durable.log_entries import FileEntry, Manifest
from neardup.index.durable.log_store import remove_files
from neardup.index.segment_files import SegmentFile
from neardup.index.stored_rows import CHUNK_ROWS, sound_from
from neardup.runtime.free_memory import free_memory
from neardup.runtime.threads import AbandonedError, abandonable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from neardup.index.durable.log_store import LogStore
    from neardup.index.stored_rows import SegmentRows
    from neardup.index.versions import AnyKind, AnyVersion
    from neardup.runtime.types import Rows

__all__ = ["FLUSH_ROWS", "Job", "entries_of", "in_files", "rows_for_merging"]

_LOGGER: Final = logging.getLogger("neardup")
FLUSH_ROWS: Final = {"distance": 1 << 17, "similarity": 1 << 15}
"""The number of rows in the log at which they are flushed; opening an index reads the log."""
MERGE_SHARE: Final = 0.25
"""The share of the free memory that a merge may take."""
LEAST_MERGED: Final = 1 << 18
"""The number of rows that are merged even if little memory is free."""


class Job:
    """One background job, which writes some consecutive segments to new files.

    Args:
        store: The folder.
        commit: The current commit.
        first: Of its segments.
        last: One behind the last: those in memory are written, those in files merged.
        number: Of the first file that it may write.
    """

    def __init__(self, store: LogStore, commit: Commit, first: int, last: int, number: int) -> None:
        """Begin; called with the writer's lock held."""
        self.files: list[Path] = []
        self.seconds = 0.0
        self.error: BaseException | None = None
        self.is_installed = False
        self._process = os.getpid()
        self._store, self._began, self._number = store, commit, number
        self._segments = commit.version.segments[first:last]
        self._merged: list[Any] = []
        self._ready, self._abandoned = threading.Event(), threading.Event()

    @property
    def covers(self) -> bool:
        """Whether the job writes the log to files."""
        return self._segments[0].file is None

    def work(self) -> None:
        """Write the files; an error is kept for `install`."""
        began = time.perf_counter()
        try:
            kind, segments = self._began.version.kind, [x for x in self._segments if x.living]
            with abandonable(self._abandoned):
                if not self.covers and segments:
                    segments = [kind.merge(segments, self._store.path)]
                self._merged = in_files(self._store, kind, segments, self._number, self.files)
        except BaseException as error:  # noqa: BLE001  # a thread has nobody to raise it to
            self.error = error
        finally:
            self.seconds = time.perf_counter() - began
            self._ready.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until `install` can be called, or some seconds; False if that never happens.

        That is so in a forked process, since the thread runs in the parent.
        """
        is_here = self._process == os.getpid()
        if is_here:
            self._ready.wait(seconds)
        return is_here

    def abandon(self) -> None:
        """Make the job end soon, and `install` raise AbandonedError, unless it is done."""
        self._abandoned.set()

    def damaged(self) -> list[str]:
        """The files that could not be merged."""
        at = sound_from(self._segments)
        return [each.file.path.name for each in self._segments[:at]]

    def end_in(self, segments: Sequence[SegmentRows]) -> int:
        """The position after its segments among these; 0 if they are no longer there.

        Merges change positions, and rows of a segment may be removed; their numbers stay.
        """
        mine, count = self._segments, len(self._segments)
        for end in range(len(segments), count - 1, -1):
            if segments[end - 1].numbers is mine[-1].numbers:
                those = zip(mine, segments[end - count : end], strict=True)
                return end if all(x.numbers is y.numbers for x, y in those) else 0
        return 0

    def put_into(self, version: AnyVersion) -> AnyVersion | None:
        """A version with the files in place of the segments; None if it lacks the segments.

        Raises:
            NeardupError, OSError, MemoryError: If the files could not be written.
        """
        if self.error is not None:
            raise self.error
        last = self.end_in(version.segments)
        if not last:
            return None
        self.is_installed = True
        first = last - len(self._segments)
        removals = _removed_since(self._segments, version.segments[first:last])
        segments = (*version.segments[:first], *self._merged, *version.segments[last:])
        return replace(version, segments=segments).without_numbers(removals)

    def install(
        self, now: Commit, mine: AnyVersion, next_file: int
    ) -> tuple[Commit, AnyVersion, list[Path]]:
        """Name the files; called with the writer's lock held, once.

        Args:
            now: The current commit.
            mine: The writer's version: the same, or newer.
            next_file: A number that no file has.

        Returns:
            The new commit and version, and the files to remove.

        Raises:
            NeardupError, OSError, MemoryError, AbandonedError: If the files could not be written or
            named, or the job was abandoned; then nothing has changed.
        """
        self.is_installed = True  # also where it fails: what was made is removed below
        if self.error is not None:
            remove_files(self.files)
            raise self.error
        version, before = now.version, len(self._segments)
        moved = self.put_into(version)
        if moved is None:
            remove_files(self.files)
            raise AbandonedError
        count = sum(each.file is not None for each in moved.segments)
        stored = moved.segments[:count]
        # The marks of rows that were removed during the merge go into the transaction that names
        # the files: a crash leaves both or neither, and no removed row comes back.
        manifest = self._manifest(now, stored, next_file)
        try:
            old = self._store.checkpoint(manifest, list(stored), {})
        except Exception:  # not an interrupt, which may come after the transaction
            remove_files(self.files)
            raise
        clock = version.clock
        if self.covers:
            clock = manifest.clock.extended(*clock.since(manifest.next, version.next))
        written = (*(each.written() for each in stored), *moved.segments[count:])
        committed = replace(moved, segments=written, clock=clock)
        behind = count - len(self._merged) + before
        after = committed
        if mine is not version:
            # The writer has gone on without a commit: its rows and removals, on the new segments.
            removals = _removed_since(version.segments[:behind], mine.segments[:behind])
            segments = (*written[:count], *mine.segments[behind:])
            clock = clock.extended(*mine.clock.since(version.next, mine.next))
            after = replace(mine, segments=segments, clock=clock).without_numbers(removals)
        _LOGGER.info(
            "%s: %d segments written as %d in %.2f s", self._store.path, before,
            len(self._merged), self.seconds,
        )  # fmt: skip
        logged = now.logged - (self._began.logged if self.covers else 0)
        transaction = self._store.transaction
        return Commit(committed, manifest, now.sequence, transaction, logged), after, old

    def _manifest(self, now: Commit, stored: tuple[Any, ...], next_file: int) -> Manifest:
        before, entries = now.manifest, entries_of(list(stored))
        after = replace(before, generation=before.generation + 1, files=entries, seal=b"")
        if not self.covers:
            return replace(after, next_file=next_file)
        began = self._began
        end = began.version.next
        oldest = int(stored[0].numbers[0]) if stored else end
        clock = began.version.clock.coarse(oldest, end)
        return replace(after, next_file=next_file, next=end, covered=began.sequence, clock=clock)


def _removed_since(before: Sequence[SegmentRows], after: Sequence[SegmentRows]) -> Rows:
    """The numbers of rows that were removed from the same segments between two versions."""
    removals = [np.empty(0, np.int64)]
    for old, new in zip(before, after, strict=True):
        if new.removed > old.removed:
            removals.append(new.numbers[new.dead & ~old.dead])
    return np.concatenate(removals)


def in_files(
    store: LogStore, kind: AnyKind, segments: Sequence[SegmentRows], number: int, files: list[Path]
) -> list[SegmentRows]:
    """The segments with those in memory written to files, whose names are appended to `files`.

    Consecutive segments of few rows are merged first.

    Args:
        store: The folder.
        kind: Of the index.
        segments: In order of insertion.
        number: Of the first new file.
        files: Appended to before each file is written.

    Raises:
        FileError: If one cannot be written.
    """
    stored, few, numbers = [], FLUSH_ROWS[kind.name], itertools.count(number)
    for is_small, run in itertools.groupby(segments, lambda x: x.file is None and len(x) < few):
        group = [*run]
        stored += [kind.merge(group, store.path)] if is_small and len(group) > 1 else group
    for at, segment in enumerate(stored):
        if segment.file is not None:
            continue
        path = store.file(f"segment-{next(numbers)}.nds")
        files.append(path)
        kind.write(segment, path)
        dead = segment.dead if segment.removed else None
        changed = [] if dead is None else np.unique(np.flatnonzero(dead) // CHUNK_ROWS).tolist()
        stored[at] = kind.read(SegmentFile(path), dead, frozenset(changed))
    return stored


def entries_of(segments: list[Any]) -> tuple[FileEntry, ...]:
    """Segments of files as a manifest names them."""
    return tuple(
        FileEntry(
            each.file.path.name, each.file.checksum, len(each), int(each.numbers[0]),
            int(each.numbers[-1]),
        )
        for each in segments
    )  # fmt: skip


def rows_for_merging(kind: AnyKind, files: list[SegmentFile], rows: int) -> int | None:
    """The most rows that a merge can take in the free memory; None if nothing is known of it."""
    if not rows:
        return None
    bytes_a_row = kind.merging_bytes(sum(each.nbytes for each in files) / rows)
    return max(LEAST_MERGED, int(MERGE_SHARE * free_memory() / bytes_a_row))
