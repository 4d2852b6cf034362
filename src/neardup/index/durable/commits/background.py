"""Bring the log into files and merge segments while the index goes on being written.

    begin    under the writer's lock: what is committed, which does not change
    work     in a thread of its own, without the lock: merge, write files, sync them
    install  under the lock: one transaction names the files; what was removed since is marked

A kill before the transaction leaves files that nothing names, which the next opening removes.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import NeardupError
from neardup.index.base.rows import CHUNK_ROWS, StoredRows
from neardup.index.clock import Clock
from neardup.index.durable.manifest import FileEntry, Manifest
from neardup.index.durable.store import remove_files
from neardup.index.segment_files import SegmentFile
from neardup.runtime.memory import free_memory

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.index.base.held import Held
    from neardup.index.durable.commits.follower import Commit
    from neardup.index.durable.store import Store

__all__ = ["Job", "entries_of", "in_files", "rows_for_merging"]

_LOGGER: Final = logging.getLogger("neardup")

MERGE_SHARE: Final = 0.25
"""Of the memory that is free: so much may a merge take beside the index's writer."""
MERGE_BYTES: Final = 2.5
"""What a merge takes at most, in bytes of the file that it makes."""
LEAST_MERGED: Final = 1 << 18
"""So many rows are merged however little memory is free."""


class Job:
    """One run of the background.

    Args:
        store: The folder.
        commit: What is committed; its tail has no rows.
    """

    def __init__(self, store: Store, commit: Commit) -> None:
        """Begin; called with the writer's lock held."""
        self.commit = commit
        self.process = os.getpid()
        self.files: list[Path] = []
        self.seconds = 0.0
        self._store = store
        self._segments: list[Any] | None = None
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self.is_installed = False

    @property
    def fixed(self) -> int:
        """So many segments of the writer, the first, must stay where they are."""
        return len(self.commit.held.segments)

    def work(self) -> None:
        """Write the files; an error is kept for `install`."""
        began = time.perf_counter()
        held, manifest = self.commit.held, self.commit.manifest
        try:
            most = rows_for_merging(list(held.segments))
            merged = held.arranged(held.settings, list(held.segments), most)
            self._segments = in_files(self._store, held, merged, manifest.next_file, self.files)
        except BaseException as error:  # noqa: BLE001  # a thread has nobody to raise it to
            self._error = error
        self.seconds = time.perf_counter() - began
        self._ready.set()

    def wait(self) -> None:
        """Until `install` can be called."""
        self._ready.wait()

    def install(self, now: Commit, state: Held) -> tuple[Commit, Held, list[Path]]:
        """Name the files; called with the writer's lock held, once.

        Args:
            now: What is committed by now.
            state: What the writer holds: the same, or more.

        Returns:
            Both as they go on, and the files to be removed.

        Raises:
            FileError: If the folder cannot be written; then nothing has changed.
        """
        self.is_installed = True
        if self._error is not None or self._segments is None:
            remove_files(self.files)
            if not isinstance(self._error, NeardupError | OSError | MemoryError):
                raise self._error or AssertionError
            _LOGGER.warning("segments not merged, the log stays: %s", self._error)
            return now, state, []
        began, segments = self.commit, self._segments
        held = began.held
        is_same = [each.file.path.name for each in segments if isinstance(each, StoredRows)] == [
            each.name for each in now.manifest.files
        ]
        if is_same and not began.logged:
            return now, state, []
        oldest = int(segments[0].numbers[0]) if segments else held.next
        clock = held.clock.coarse(oldest, held.next)
        number = now.manifest.next_file + len(self.files)
        generation = now.manifest.generation + 1
        entries = entries_of(segments)
        manifest = Manifest(generation, entries, held.next, number, began.sequence, clock)
        try:
            old = self._store.checkpoint(manifest, segments, {})
        except BaseException:
            remove_files(self.files)
            raise
        clock = Clock.joined([clock.since(0), state.clock.since(held.next)])
        written = tuple(each.written() for each in segments)
        committed = self._moved(now.held, written, clock)
        state = committed if state is now.held else self._moved(state, written, clock)
        logged = now.logged - began.logged
        commit = replace(
            now, held=committed, manifest=manifest, logged=logged,
            transaction=self._store.transaction,
        )  # fmt: skip
        _LOGGER.info(
            "%s: %d files of %d documents, written in %.2f s", self._store.path, len(self.files),
            held.next, self.seconds,
        )  # fmt: skip
        return commit, state, old

    def _moved(self, state: Held, written: tuple[Any, ...], clock: Clock) -> Held:
        """A state that goes on from these files, with what was removed since `begin`."""
        before = self.commit.held.segments
        gone = [np.empty(0, np.int64)]
        for old, new in zip(before, state.segments, strict=False):
            if old is not new:
                gone.append(new.numbers[new.dead & ~old.dead])
        segments = (*written, *state.segments[len(before) :])
        return replace(state, segments=segments, clock=clock).without_numbers(np.concatenate(gone))


def in_files(
    store: Store, held: Held, segments: list[Any], number: int, files: list[Path]
) -> list[Any]:
    """The same segments, those in memory written to files, whose names go to `files`.

    Args:
        store: The folder.
        held: Of the index.
        segments: In order of insertion.
        number: Of the first new file.
        files: Added to before each file is written.

    Raises:
        FileError: If one cannot be written.
    """
    stored = []
    for segment in segments:
        if isinstance(segment, StoredRows):
            stored.append(segment)
            continue
        path = store.file(f"segment-{number + len(files)}.nds")
        files.append(path)
        held.write(held.settings, segment, path)
        dead = segment.dead if segment.removed else None
        changed = [] if dead is None else np.unique(np.flatnonzero(dead) // CHUNK_ROWS).tolist()
        stored.append(held.stored(SegmentFile(path), dead, frozenset(changed)))
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


def rows_for_merging(segments: list[Any]) -> int | None:
    """How many rows a merge may have, for the memory that is free; None where nothing is known."""
    stored = [each for each in segments if isinstance(each, StoredRows)]
    rows = sum(len(each) for each in stored)
    if not rows:
        return None
    bytes_a_row = sum(each.file.nbytes for each in stored) / rows
    return max(LEAST_MERGED, int(MERGE_SHARE * free_memory() / (MERGE_BYTES * bytes_a_row)))
