"""What an index in a folder does whatever its rows hold: follow, commit, check, close.

A commit appends one record to the log, and is on disk then. Where much is in the log, the
background writes it to files and merges these; see `background`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import NeardupError, UsageError
from neardup.index.base.rows import StoredRows
from neardup.index.base.writing import Writing
from neardup.index.durable.backup import back_up
from neardup.index.durable.checks import check_folder
from neardup.index.durable.commits.background import (
    Job,
    entries_of,
    in_files,
    rows_for_merging,
)
from neardup.index.durable.commits.follower import Commit, arranged, first_commit, following
from neardup.index.durable.commits.pending import Pending
from neardup.index.durable.log.failures import TornReadError
from neardup.index.durable.log.folder import remove_files
from neardup.index.durable.log.keys import PAYLOADS
from neardup.index.durable.log.manifest import Manifest
from neardup.index.durable.view import stored_beside
from neardup.index.segment_files import damaged
from neardup.runtime.memory import free_memory
from neardup.runtime.storage.files import path_of
from neardup.runtime.threads import AbandonedError

if TYPE_CHECKING:
    from neardup.index.durable.log.reading import Reading
    from neardup.index.durable.log.store import Store
    from neardup.runtime.types import Rows

__all__ = ["DurableBase"]

_LOGGER: Final = logging.getLogger("neardup")

TRIES: Final = 20
CHECKPOINT_ROWS: Final = 1 << 17
"""Rows in the log from which on they are written to files; it is read when the index is opened."""
MOST_CHECKPOINTS: Final = 16
"""A commit waits for the background where the log has so many times as many rows."""
CLOSING_SECONDS: Final = 1.0
"""`close` waits so long for a merge before it abandons it, so that small ones get done."""
RETRY_SECONDS: Final = 60.0
"""After a merge that failed."""
MOST_FILES: Final = 64
"""And where so many files wait to be merged."""


class DurableBase(Writing):
    """Documents in a folder.

    What was committed survives a crash, whole. One process writes, any number read, and nobody
    waits for anybody. The writer sees what it has added before the commit; readers see the last
    commit at every query.
    """

    def _begin(self, store: Store) -> None:
        """Read the folder; `_state` holds nothing yet."""
        self._store = store
        self._is_open = True
        self._flush: Job | None = None
        self._merge: Job | None = None
        self._is_resting = False
        self._retry = 0
        self._no_merge_before = 0.0
        self._unsound: set[str] = set()
        self._commit = first_commit(self._state)
        self._follow().close()
        self._next_file = self._commit.manifest.next_file
        self._pending = Pending(self._state)

    @property
    def path(self) -> Path:
        """The folder."""
        return self._store.path

    @property
    def readonly(self) -> bool:
        """Whether it was opened for queries only."""
        return self._store.readonly

    @property
    def store(self) -> str:
        """What is kept beside rows: "none", "features" or "text"."""
        return str(self._store.settings["store"])

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._is_open

    @property
    def uncommitted(self) -> int:
        """Rows added and removed since the last commit."""
        return len(self._pending)

    def commit(self) -> None:
        """Bring what was added and removed to the disk, all or nothing.

        Raises:
            FileError: If that fails: nothing is lost, and commit may be tried again.
        """
        with self._lock:
            self._writing()
            rows, begin = len(self._pending), time.perf_counter()
            if not rows:
                return
            self._write_pending()
            seconds = time.perf_counter() - begin
            self._counters.committed(seconds)
            _LOGGER.debug("%s: %d rows committed in %.4f s", self.path, rows, seconds)

    def rollback(self) -> None:
        """Forget what was added and removed since the last commit."""
        with self._lock:
            self._writing()
            self._state = self._commit.held
            self._pending = Pending(self._state)

    def compact(self) -> None:
        """Commit, bring everything into one segment and give free space back to the disk."""
        with self._lock:
            self._writing()
            self._rest()
            try:
                super().compact()
                self._checkpoint()
                self._store.reclaim()
            finally:
                self._is_resting = False

    def close(self) -> None:
        """Commit and close; the index cannot be used after it.

        A merge that goes on in the background for more than a second more is abandoned: nothing is
        lost, and a later writer begins it again.
        """
        with self._lock:
            if not self._is_open:
                return
            if not self.readonly:
                self.commit()
            self._release()

    def warm_up(self) -> float:
        """As Index.warm_up; and let the system read the files, if they take half of free memory."""
        files = [each.file for each in self._read().segments if isinstance(each, StoredRows)]
        if 2 * sum(each.nbytes for each in files) < free_memory():
            for file in files:
                file.fetch()
        return super().warm_up()

    def stats(self) -> dict[str, Any]:
        """Documents, settings, segments, bytes on disk, and counters since it was opened."""
        found, environment = super().stats(), self._store.environment
        files = sum(each["file_bytes"] for each in found["segments"])
        return found | {
            "uncommitted": self.uncommitted,
            "log_rows": self._commit.logged,
            "merging": self._flush is not None or self._merge is not None,
            "bytes_on_disk": files + environment.nbytes,
            "log_bytes": environment.nbytes,
            "log_free_bytes": environment.free_bytes,
        }

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the last commit to a new folder, while the index goes on: an index of its own.

        Segment files, which never change, are linked where that can be done, and take no room; the
        log is copied. What is not committed is not in it.

        Args:
            path: A folder that is not there yet.

        Raises:
            FileError: If it is there, or cannot be written.

        Example:
            >>> import tempfile
            >>> from neardup import DurableIndex
            >>> folder = tempfile.mkdtemp()
            >>> with DurableIndex.open(folder + "/seen") as index:
            ...     index.add("a", 5), index.commit(), index.backup(folder + "/copy")
            (1, None, None)
            >>> DurableIndex.open(folder + "/copy", readonly=True).query(5)
            [('a', 0)]
        """
        self._check_open()
        back_up(self._store, path_of(path).absolute())

    def check(self) -> list[str]:
        """Verify every checksum, and that ids, numbers and the log agree; see docs.

        Returns:
            Problems, each with what to do; none if all is well.
        """
        return check_folder(self.path)

    def __exit__(self, *raised: object) -> None:
        """Close; forget what was not committed if the body raised."""
        with self._lock:
            if raised[0] is not None and self._is_open:
                self._release()
        self.close()

    def __repr__(self) -> str:
        """What it holds, for people."""
        return super().__repr__() if self._is_open else f"<DurableIndex of {self.path}, closed>"

    def _checkpoint_rows(self) -> int:
        return CHECKPOINT_ROWS

    def _read(self) -> Any:
        self._check_open()
        if self._store.readonly and self._store.transaction != self._commit.transaction:
            with self._lock:
                self._check_open()
                self._follow().close()
                return self._state
        return self._state

    def _pinned(self) -> Reading:
        """The commit that the state is of, or goes on from; called with the lock held."""
        self._check_open()
        return self._follow() if self.readonly else self._store.pin()

    def _follow(self) -> Reading:
        """Hold the newest commit; what it was read in, to be closed."""
        before = self._commit
        for _ in range(TRIES):
            reading = self._store.pin()
            try:
                if reading.transaction != before.transaction:
                    commit = following(before, reading)
                    self._state = commit.held  # before the commit, which says that it is newer
                    self._commit = commit
            except FileNotFoundError as error:
                missing = error.filename  # a checkpoint came between: there is a newer manifest
                reading.close()
            except TornReadError:
                missing = self._store.environment.path
                reading.close()
            except BaseException:
                reading.close()
                raise
            else:
                return reading
        raise damaged(Path(missing), "it is not there")

    def _check_open(self) -> None:
        if not self._is_open:
            raise UsageError("the index is closed: open it again")

    def _writing(self) -> None:
        self._check_open()
        if self._store.readonly:
            raise UsageError("the index is open for reading: open it without readonly=True")

    def _release(self) -> None:
        """Let go of the folder; called with the lock held."""
        merge = self._merge
        if merge is not None and merge.process == os.getpid():
            merge.wait(CLOSING_SECONDS)
            merge.abandon()
        self._rest()
        self._is_open = False
        self._store.close()
        self._state = self._state.empty(self._state.settings)

    def _write_pending(self) -> None:
        """To the log; what is too much for it to files at once."""
        if len(self._pending) >= self._checkpoint_rows():
            self._checkpoint()
            self._maintain()
            return
        state = self._state
        sequence = self._store.append(self._pending.record(state), self._pending.contents)
        logged = self._commit.logged + len(self._pending)
        self._committed(self._commit.manifest, sequence, logged)
        if logged >= max(self._retry, self._checkpoint_rows()):
            self._maintain()

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
        clock = type(clock).joined([clock.since(0)])
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
            _LOGGER.info("%s: a merge was abandoned, nothing is lost", self.path)
            old = []
        except (NeardupError, OSError, MemoryError) as error:
            _LOGGER.warning("%s: not merged, nothing is lost: %s", self.path, error)
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

    def _arranged(self, segments: list[Any]) -> tuple[Any, ...]:
        return arranged(self._state, segments, self._flush.last if self._flush else 0)

    def _added(self, first: int, ids: Any, many: Any, kept: Any) -> None:
        self._pending.add(ids, many)
        if kept is not None:
            self._pending.contents.update(zip(range(first, first + len(ids)), kept, strict=True))

    def _added_one(self, number: int, identity: Any, one: Any, kept: Any) -> None:
        self._pending.add_one(identity, one)
        if kept is not None:
            self._pending.contents[number] = kept

    def _removed(self, numbers: Rows) -> None:
        self._pending.remove(numbers)
        if self._keeps_contents():
            self._pending.contents.update(dict.fromkeys(numbers.tolist()))

    def _kept(
        self, ids: Any, documents: Any, contents: Any, payloads: Any
    ) -> list[bytes | None] | None:
        form = self._store.settings["format"]
        if payloads is not None and form < PAYLOADS:
            raise UsageError(
                f"the index in {self.path} has format {form}, which keeps no payloads: merge it"
                " into a new one"
            )
        return super()._kept(ids, documents, contents, payloads)

    def _kept_at(self, ids: Any) -> list[bytes | None]:
        with self._lock, contextlib.closing(self._pinned()) as reading:
            held = self._state
            numbers = held.numbers_at(held.present(ids)).tolist()
            return stored_beside(numbers, self._pending.contents, reading)

    def _kept_of(self, numbers: list[int]) -> list[bytes | None] | None:
        if not self._keeps_contents():
            return None
        with contextlib.closing(self._pinned()) as reading:
            return stored_beside(numbers, self._pending.contents, reading)

    def _keeps_contents(self) -> bool:
        """Whether something is kept beside rows, not in them."""
        return self._store.has_contents or bool(self._pending.contents)
