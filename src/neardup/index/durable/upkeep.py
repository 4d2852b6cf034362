"""What goes on beside commits to an index in a folder: the log becomes files, and files are merged.

A thread does the work of a job, and takes the lock only to install what it has done; what fails
is logged, and loses nothing. See `commits/background.py` for the jobs.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from neardup.errors import NeardupError
from neardup.index.base.writing import Writing
from neardup.index.durable.commits import Commit, Pending
from neardup.index.durable.log_entries import Manifest
from neardup.index.durable.log_store import remove_files
from neardup.index.durable.merge_jobs import (
    Job,
    entries_of,
    in_files,
    rows_for_merging,
)
from neardup.index.stored_rows import StoredRows
from neardup.runtime.threads import AbandonedError

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.index.durable.log_store import Store

__all__ = ["Upkeep"]

_LOGGER: Final = logging.getLogger("neardup")

CHECKPOINT_ROWS: Final = 1 << 17
"""Rows in the log from which on they are written to files; it is read when the index is opened."""
MOST_CHECKPOINTS: Final = 16
"""A commit waits for the background where the log has so many times as many rows."""
RETRY_SECONDS: Final = 60.0
"""After a merge that failed."""
MOST_FILES: Final = 64
"""And where so many files wait to be merged."""


class Upkeep(Writing):
    """The log and the files of an index in a folder, kept small and few beside its writer."""

    _store: Store
    _commit: Commit
    _pending: Pending
    _next_file: int

    def _begin_upkeep(self) -> None:
        """Nothing goes on yet."""
        self._flush: Job | None = None
        self._merge: Job | None = None
        self._is_resting = False
        self._retry = 0
        self._no_merge_before = 0.0
        self._unsound: set[str] = set()

    def _checkpoint_rows(self) -> int:
        return CHECKPOINT_ROWS

    def _committed(self, manifest: Manifest, sequence: int, logged: int) -> None:
        """What is held is on disk."""
        self._commit = Commit(self._state, manifest, sequence, self._store.transaction, logged)
        self._pending = Pending(self._state)

    def _checkpoint(self) -> None:
        """Write what is not in files to files, now, and forget the log."""
        self._wait(self._flush)
        state, before = self._settled(self._state), self._commit.manifest
        files: list[Path] = []
        stored = sum(isinstance(each, StoredRows) for each in state.segments)
        fresh = [each for each in state.segments[stored:] if each.living]
        number = self._take_numbers(len(fresh))
        try:
            segments = [
                *state.segments[:stored],
                *in_files(self._store, state, fresh, number, files),
            ]
            oldest = int(segments[0].numbers[0]) if segments else state.next
            clock = state.clock.coarse(oldest, state.next)
            manifest = Manifest(
                before.generation + 1, entries_of(segments), state.next, self._next_file,
                self._commit.sequence, clock,
            )  # fmt: skip
            old = self._store.checkpoint(manifest, segments, self._pending.contents)
        except BaseException:
            remove_files(files)
            raise
        written = tuple(segment.written() for segment in segments)
        self._state = replace(state, segments=written, clock=clock)
        self._committed(manifest, self._commit.sequence, 0)
        remove_files(self._not_being_written(old))

    def _maintain(self) -> None:
        """Let the background write what the log has; called with the lock held, after a commit."""
        is_full = self._commit.logged >= MOST_CHECKPOINTS * self._checkpoint_rows()
        if self._flush is not None and is_full:
            self._wait(self._flush)
        if self._retry and is_full:
            self._checkpoint()  # raises what the background could only log
        elif self._flush is None and self._commit.logged >= self._checkpoint_rows():
            self._state = self._state.settled()
            self._commit = replace(self._commit, held=self._state)
            self._store.begin_record()
            segments = self._state.segments
            stored = sum(isinstance(each, StoredRows) for each in segments)
            if stored == len(segments):  # of removals alone, or rows that are removed by now
                self._checkpoint()
            else:
                self._flush = self._started(stored, len(segments))
        self._merge_what_is_due()

    def _merge_what_is_due(self) -> None:
        """Let the background merge files; called with the lock held."""
        stored = [each for each in self._commit.held.segments if isinstance(each, StoredRows)]
        if self._merge is not None and len(stored) > MOST_FILES:
            self._wait(self._merge)
            return
        is_early = time.monotonic() < self._no_merge_before
        if self._merge is not None or self._is_resting or is_early:
            return
        names = [each.file.path.name for each in stored]
        begin = max((i + 1 for i, name in enumerate(names) if name in self._unsound), default=0)
        found = self._state.due(stored[begin:], rows_for_merging(self._state, stored))
        if found is not None:
            self._merge = self._started(begin + found[0], begin + found[1])

    def _started(self, first: int, last: int) -> Job:
        """A job over these segments of what is committed, in a thread."""
        job = Job(self._store, self._commit, first, last, self._take_numbers(last - first))
        threading.Thread(target=self._work, args=(job,)).start()
        return job

    def _take_numbers(self, count: int) -> int:
        """The first of so many numbers of files, which nobody else gets."""
        number = self._next_file
        self._next_file += count
        return number

    def _work(self, job: Job) -> None:
        job.work()
        with self._lock:
            old = self._install(job)
        remove_files(old)

    def _rest(self) -> None:
        """Wait until nothing goes on in the background, and begin nothing."""
        self._is_resting = True
        self._wait(self._flush)
        self._wait(self._merge)

    def _wait(self, job: Job | None) -> None:
        """Until a job is done; called with the lock held."""
        if job is None:
            return
        if job.process != os.getpid():
            self._flush = self._merge = None  # threads stayed where this process was forked from
            return
        job.wait()
        remove_files(self._install(job))

    def _install(self, job: Job) -> list[Path]:
        """Take over what a job has done, once; files to be removed."""
        if job.is_installed:
            return []
        before, is_merge = self._commit, job is self._merge
        count = len(before.held.segments)
        try:
            self._commit, self._state, old = job.install(before, self._state, self._next_file)
        except AbandonedError:
            _LOGGER.info("%s: a merge was abandoned, nothing is lost", self._store.path)
            old = []
        except (NeardupError, OSError, MemoryError) as error:
            _LOGGER.warning("%s: not merged, nothing is lost: %s", self._store.path, error)
            old = []
            if is_merge:
                self._unsound.update(job.damaged())
                self._no_merge_before = time.monotonic() + RETRY_SECONDS
            else:
                self._retry = before.logged + self._checkpoint_rows()
        else:
            self._retry = self._retry if is_merge else 0
            self._counters.merges += 1
            self._counters.merge_seconds += job.seconds
            if is_merge and self._flush is not None:
                moved = len(self._commit.held.segments) - count
                self._flush.first += moved
                self._flush.last += moved
        finally:
            if is_merge:
                self._merge = None
            else:
                self._flush = None
        self._merge_what_is_due()
        return self._not_being_written(old)

    def _not_being_written(self, files: list[Path]) -> list[Path]:
        """Without those of a job that goes on."""
        jobs = [job for job in (self._flush, self._merge) if job is not None]
        return [path for path in files if not any(path in job.files for job in jobs)]
