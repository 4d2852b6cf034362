"""The store of an index in a folder: versions that commits make, a log, and files.

    commit   appends one record to the log, in one transaction with one sync; it is on disk then
    flush writes the log to segment files; a thread writes them, a transaction names them
    merge    makes one file of several, by the merge policy of the kind; likewise

One process writes, any number read, and they never wait for each other. The writer sees its
additions before the commit; readers follow the last commit at every query. A crash leaves the whole
last commit: files that no transaction named are removed when the folder is next opened for writing.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import NeardupError, UsageError
from neardup.index.attachments import ContentCodec
from neardup.index.durable.commits import (
    SMALL_RECORD,
    Commit,
    EarlyRecord,
    Pending,
    first_commit,
    following,
    merged_in_memory,
)
from neardup.index.durable.environment import TornReadError
from neardup.index.durable.log_entries import Manifest
from neardup.index.durable.log_store import remove_files
from neardup.index.durable.merge_jobs import (
    FLUSH_ROWS,
    Job,
    entries_of,
    in_files,
    rows_for_merging,
)
from neardup.index.queries import Counters, Snapshot
from neardup.index.segment_files import damaged
from neardup.index.versions import Version
from neardup.runtime.free_memory import free_memory
from neardup.runtime.signals import uninterrupted
from neardup.runtime.threads import AbandonedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from neardup.index.durable.log_reading import Reading
    from neardup.index.durable.log_store import LogStore
    from neardup.index.hits import Id
    from neardup.index.protocol import Ids
    from neardup.index.stored_rows import Content, SegmentRows
    from neardup.index.versions import AnyKind, AnyVersion
    from neardup.runtime.types import Rows

__all__ = ["FolderStore"]

_LOGGER: Final = logging.getLogger("neardup")

TRIES: Final = 20
MOST_FLUSHES: Final = 16
"""A commit waits for the background if the log has this multiple of the rows of a flush."""
MOST_FILES: Final = 64
"""A commit also waits for it if this number of files waits to be merged."""
RETRY_SECONDS: Final = 60.0
"""Seconds before another attempt after a failed merge."""
CLOSING_SECONDS: Final = 1.0
"""Seconds that `close` waits for a merge before it abandons it, so that small ones complete."""


class FolderStore:
    """The version of an open folder; see Store.

    `version` is the state of this process, `_commit` the state on disk. They are equal, or
    `version` also has the changes in `_pending`. Both change only under the lock.

    Args:
        log: The open folder.
        kind: Of the index.
    """

    def __init__(self, log: LogStore, kind: AnyKind) -> None:
        """Read the folder."""
        self.log, self.kind = log, kind
        self.version: AnyVersion = Version.empty(kind)
        self.codec = ContentCodec.for_kind(kind, log.settings["store"])
        self.counters = Counters()
        self.lock = threading.RLock()
        self.closed, self.is_writable = False, not log.readonly
        self.undone = 0
        self._flush: Job | None = None
        self._merge: Job | None = None
        self._ahead: list[Job] = []
        """Jobs of commits: each writes rows that are too many for the log."""
        self._threads: list[threading.Thread] = []
        """Threads of flushes and merges. One begins the next before it ends."""
        self._is_resting = False
        self._retry = 0
        self._no_merge_before = 0.0
        self._unsound: set[str] = set()
        self._background_error: str | None = None
        self._failed_merge = False
        """Whether the failed job was a merge, not a flush."""
        self._commit = first_commit(self.version)
        self._follow().close()
        self._next_file = self._commit.manifest.next_file
        self._pending = Pending(self.version, self.flush_rows)

    @property
    def path(self) -> Path:
        """The folder."""
        return self.log.path

    @property
    def uncommitted(self) -> int:
        """Rows added and removed since the last commit."""
        return len(self._pending)

    @property
    def flush_rows(self) -> int:
        """The number of rows in the log at which they are flushed."""
        return FLUSH_ROWS[self.kind.name]

    def current(self) -> AnyVersion:
        """See Store: for a reader, the last commit of the writer."""
        self.check_open()
        if self.log.readonly and self.log.transaction != self._commit.transaction:
            with self.lock:
                self.check_open()
                self._follow().close()
                return self.version
        return self.version

    def committed(self) -> AnyVersion:
        """See Source."""
        self.current()  # which follows, of a reader
        return self._commit.version

    def refresh(self) -> bool:
        """Follow the last commit, in a reader; True if it is new."""
        before = self._commit.transaction
        self.current()
        return self.log.readonly and self._commit.transaction != before

    def check_open(self) -> None:
        """Raise UsageError if it was closed."""
        if self.closed:
            raise UsageError("the index is closed: open it again")

    def check_writable(self) -> None:
        """See Store."""
        self.check_open()
        if self.log.readonly:
            raise UsageError("the index is open for reading: open it without readonly=True")

    def begin(self) -> Callable[[], None]:
        """See Store: pending changes are committed first, since a rollback must not undo them."""
        self.commit()
        return self._undo

    def snapshot(self, *, committed: bool = False) -> Snapshot:
        """See Store; closing it releases the commit."""
        with self.lock:
            reading = self._pinned()
            on_disk = self._commit.version
            pending = {} if committed else dict(self._pending.attachments)
            version = on_disk if committed else self.version
            return Snapshot(version, _Pinned(reading, pending), self.codec, self.path, on_disk)

    def attachments_at(self, ids: Ids) -> list[bytes | None]:
        """See Store."""
        with self.lock, contextlib.closing(self._pinned()) as reading:
            version = self.version
            numbers = version.numbers_at(version.present(ids)).tolist()
            return _attachments(numbers, self._pending.attachments, reading)

    def attachments(self, numbers: list[int]) -> list[bytes | None] | None:
        """See Store."""
        if not self._has_attachments():
            return None
        with contextlib.closing(self._pinned()) as reading:
            return _attachments(numbers, self._pending.attachments, reading)

    def merged(self, segments: Sequence[SegmentRows]) -> tuple[SegmentRows, ...]:
        """See Store: only segments in memory, of few rows, on which no job works."""
        jobs = [job for job in (self._flush, *self._ahead) if job is not None]
        return merged_in_memory(self.kind, segments, max([0, *(x.end_in(segments) for x in jobs)]))

    def is_searched_alone(self, rows: int) -> bool:
        """See Store: fewer rows are merged with others when they are flushed."""
        return rows >= self.flush_rows

    def added(
        self, first: int, ids: pa.Array, contents: Any, attachments: list[bytes | None] | None
    ) -> None:
        """See Store."""
        self._pending.add(ids, contents)
        if attachments is not None:
            numbers = range(first, first + len(ids))
            self._pending.attachments.update(zip(numbers, attachments, strict=True))

    def added_one(
        self, number: int, identity: Id, content: Content, attachment: bytes | None
    ) -> None:
        """See Store."""
        self._pending.add_one(identity, content)
        if attachment is not None:
            self._pending.attachments[number] = attachment

    def removed(self, numbers: Rows) -> None:
        """See Store."""
        self._pending.remove(numbers)

    def take_back(self) -> None:
        """See Store."""
        self._pending.take_back(self.version)

    def facts(self) -> dict[str, Any]:
        """See Store."""
        return {"content_bytes": self.log.look(lambda each: each.bytes_of(b"content"))}

    def sizes(self, file_bytes: int) -> dict[str, Any]:
        """The folder's part of `stats`, with the bytes of its segment files."""
        log_bytes, free_bytes = self.log.look(lambda each: (each.nbytes, each.free_bytes))
        return {
            "uncommitted": self.uncommitted,
            "log_rows": self._commit.logged,
            "merging": any(each.is_alive() for each in self._threads),
            "last_background_error": self._background_error,
            "free_disk_bytes": shutil.disk_usage(self.path).free,
            "bytes_on_disk": file_bytes + log_bytes,
            "log_bytes": log_bytes,
            "log_free_bytes": free_bytes,
        }

    def fetch(self) -> None:
        """Let the system read the files, if they take half of free memory."""
        files = [each.file for each in self.current().segments if each.file is not None]
        if 2 * sum(each.nbytes for each in files) < free_memory():
            for file in files:
                file.fetch()

    def commit(self) -> None:
        """Bring what was added and removed to the disk, all or nothing.

        Rows that are too many for the log are written to files before the lock is taken, and a
        record of many rows is made before it, so that only the committing thread waits for this.

        Raises:
            FileError: If that fails: nothing is lost, and commit may be tried again.
        """
        begin = time.perf_counter()
        self._wait_for_room()
        with self._written_ahead() as ahead:
            early = self._early_record()
            with self.lock:
                self.check_writable()
                rows = len(self._pending)
                if not rows:
                    return
                self._write_pending(ahead, early)
                seconds = time.perf_counter() - begin
                self.counters.committed(seconds)
                _LOGGER.debug("%s: %d rows committed in %.4f s", self.path, rows, seconds)

    def rollback(self) -> None:
        """Forget what was added and removed since the last commit."""
        with self.lock:
            self.check_writable()
            self._undo()

    @contextlib.contextmanager
    def resting(self) -> Any:
        """A context in which no background job runs; called with the lock held."""
        try:
            self._is_resting = True
            self._wait(self._flush)
            self._wait(self._merge)
            yield
        finally:
            self._is_resting = False

    def flush_now(self, ahead: Job | None = None) -> None:
        """Write all rows in memory to files and empty the log; called with the lock held.

        The files are written and synced before the transaction that names them and drops the log:
        a crash before it leaves the log, one after it the files.

        Args:
            ahead: A job that has written most of them.
        """
        self._wait(self._flush)
        files: list[Path] = [] if ahead is None else [*ahead.files]
        try:
            version, before = self.version.flushed(), self._commit.manifest
            if ahead is not None:
                version = ahead.put_into(version) or version
            stored = sum(each.file is not None for each in version.segments)
            fresh = [each for each in version.segments[stored:] if each.living]
            number = self._take_numbers(len(fresh))
            written = in_files(self.log, self.kind, fresh, number, files)
            segments = [*version.segments[:stored], *written]
            oldest = int(segments[0].numbers[0]) if segments else version.next
            clock = version.clock.coarse(oldest, version.next)
            manifest = Manifest(
                before.generation + 1, entries_of(segments), version.next, self._next_file,
                self._commit.sequence, clock,
            )  # fmt: skip
        except BaseException:
            remove_files(files)
            raise
        # An interrupt waits: after the transaction its files must stay, and it must be noted.
        with uninterrupted():
            try:
                old = self.log.checkpoint(manifest, segments, self._contents())
            except Exception:  # not a second interrupt, which may come after the transaction
                remove_files(files)
                raise
            marked = tuple(segment.written() for segment in segments)
            self.version = replace(version, segments=marked, clock=clock)
            self._committed(manifest, self._commit.sequence, 0)
            self._succeeded(is_merge=False)
        remove_files(self._not_being_written(old))

    def close(self) -> None:
        """Release the folder; uncommitted changes are lost. Called with the lock held.

        A merge that takes longer than CLOSING_SECONDS is abandoned: the log does not name its files
        yet, so nothing is lost, and a later writer begins it again.
        """
        if self._merge is not None:
            self._merge.wait(CLOSING_SECONDS)
            self._merge.abandon()
        with self.resting():
            # Of commits that are done, or that wait for the lock and will find this closed.
            for job in [*self._ahead]:
                job.abandon()
                if job.wait() and not job.is_installed:
                    remove_files(job.files)
                    job.files.clear()  # a later writer may give their names to its own
            self.closed, self.is_writable = True, False
            self.log.close()
            self.version = Version.empty(self.kind)

    def _undo(self) -> None:
        """Return to the state on disk, unless the store was closed; called with the lock held."""
        if not self.closed:
            version = self._commit.version
            pending = Pending(version, self.flush_rows)
            # No call between: an interrupt could come after it.
            self.version, self._pending = version, pending
            self.undone += 1  # last, as `RowWriter._add_segment` reads it first

    def _pinned(self) -> Reading:
        """The commit from which `version` was made; called with the lock held."""
        self.check_open()
        return self._follow() if self.log.readonly else self.log.pin()

    def _follow(self) -> Reading:
        """Take over the newest commit; returns the reading, which the caller closes."""
        before = self._commit
        for _ in range(TRIES):
            reading = self.log.pin()
            try:
                if reading.transaction != before.transaction:
                    commit = following(before, reading)
                    # The version first: who sees the commit's number takes the version as it is.
                    self.version = commit.version
                    self._commit = commit
            except FileNotFoundError as error:
                missing = error.filename  # a merge removed it: there is a newer manifest
                reading.close()
            except TornReadError:
                missing = self.log.look(lambda each: each.path)
                reading.close()
            except BaseException:
                reading.close()
                raise
            else:
                return reading
        raise damaged(Path(missing), "it is missing")

    def _has_attachments(self) -> bool:
        """Whether rows have attachments."""
        return self.codec.is_kept or self.log.has_contents or bool(self._pending.attachments)

    def _contents(self) -> dict[int, bytes | None]:
        """The attachments to write by number; None for those to remove."""
        return self._pending.contents() if self._has_attachments() else {}

    @property
    def _is_behind(self) -> bool:
        """Whether the log has as many rows as it may before commits wait for the background."""
        return self._commit.logged >= MOST_FLUSHES * self.flush_rows

    def _wait_for_room(self) -> None:
        """Wait, without the lock, until the background jobs are less far behind."""
        with self.lock:
            stored = sum(each.file is not None for each in self._commit.version.segments)
            job = self._flush if self._is_behind else self._merge if stored > MOST_FILES else None
        if job is not None:
            job.wait()

    @contextlib.contextmanager
    def _written_ahead(self) -> Iterator[Job | None]:
        """A job that has written the pending rows, if they are too many for the log.

        No commit names its files yet, and they lack rows that are added while it runs. The commit
        takes over its rows as far as they are still stored, and removes the others.
        """
        flush = self._flush
        if flush is not None and self._pending.is_for_files:
            flush.wait()
        job = None
        try:
            with self.lock:
                job = self._ahead_job() if self._pending.is_for_files else None
                if job is not None:
                    self._ahead.append(job)
            if job is not None:
                job.work()
            yield job
        finally:
            if job in self._ahead:
                self._ahead.remove(job)
            if job is not None and not job.is_installed:
                remove_files(job.files)

    def _ahead_job(self) -> Job | None:
        """A job that writes everything in memory; called with the lock held."""
        self.check_writable()
        self._wait(self._flush)
        self.version = self.version.flushed()
        segments = self.version.segments
        stored = sum(each.file is not None for each in segments)
        if stored == len(segments):
            return None
        number = self._take_numbers(len(segments) - stored)
        commit = replace(self._commit, version=self.version)
        return Job(self.log, commit, stored, len(segments), number)

    def _early_record(self) -> EarlyRecord | None:
        """The record of the pending rows, if they are many but not too many for the log."""
        with self.lock:
            pending = self._pending
            if pending.is_for_files or len(pending) <= SMALL_RECORD:
                return None
            changes = pending.changes(self.version)
        return EarlyRecord(pending, changes, changes.encoded())

    def _write_pending(self, ahead: Job | None, early: EarlyRecord | None) -> None:
        """Write the pending rows to the log; if they are too many for it, to files at once."""
        pending = self._pending
        if pending.is_for_files or (self._retry and self._is_behind):
            self.flush_now(ahead)  # raises what the background could only log
            self._schedule()
            return
        if early is None or early.pending is not pending:  # else another commit came first
            records = [pending.changes(self.version).encoded()]
        else:
            records = [early.record]
            since = pending.changes(self.version, early.changes)
            if since.parts or since.removed:
                records.append(since.encoded())
        logged = self._commit.logged + len(pending)
        with uninterrupted():  # what is on disk must be noted, or the next commit writes it again
            sequence = self.log.append(records, self._contents())
            # On disk from here on: whatever fails below, the commit stands.
            self._committed(self._commit.manifest, sequence, logged)
        if logged >= max(self._retry, self.flush_rows):
            self._schedule()

    def _committed(self, manifest: Manifest, sequence: int, logged: int) -> None:
        """Note that `version` is on disk."""
        self._commit = Commit(self.version, manifest, sequence, self.log.transaction, logged)
        self._pending = Pending(self.version, self.flush_rows)

    def _schedule(self) -> None:
        """Let the background flush the log; called with the lock held, after a commit.

        It raises no error of a flush: the commit is on disk.
        """
        if self._flush is None and self._commit.logged >= self.flush_rows:
            self.version = self.version.flushed()
            self._commit = replace(self._commit, version=self.version)
            # Records that come now stay in the log, so they must not join those that are flushed.
            self.log.begin_record()
            segments = self.version.segments
            stored = sum(each.file is not None for each in segments)
            if stored < len(segments):
                self._start(stored, len(segments))
            else:  # of removals alone, or rows that are removed by now
                try:
                    self.flush_now()
                except (NeardupError, OSError, MemoryError) as error:
                    self._failed(error, self._commit.logged, is_merge=False)
        self._schedule_merge()

    def _schedule_merge(self) -> None:
        """Let the background merge files; called with the lock held."""
        stored = [each for each in self._commit.version.segments if each.file is not None]
        is_early = time.monotonic() < self._no_merge_before
        if self._merge is not None or self._is_resting or is_early:
            return
        names = [each.file.path.name for each in stored]
        begin = max((i + 1 for i, name in enumerate(names) if name in self._unsound), default=0)
        rows = sum(len(each) for each in stored)
        most = rows_for_merging(self.kind, [each.file for each in stored], rows)
        range_ = self.kind.next_merge(stored[begin:], most)
        if range_ is not None:
            self._start(begin + range_[0], begin + range_[1])

    def _start(self, first: int, last: int) -> None:
        """Start a job over these committed segments, in a thread."""
        job = Job(self.log, self._commit, first, last, self._take_numbers(last - first))
        thread = threading.Thread(target=self._work, args=(job,))
        with uninterrupted():  # what runs must be noted
            try:
                thread.start()
            except RuntimeError:  # no more threads, or none since the program ends
                return
            self._threads = [*(each for each in self._threads if each.is_alive()), thread]
            if job.covers:
                self._flush = job
            else:
                self._merge = job

    def _take_numbers(self, count: int) -> int:
        """The first of a run of new file numbers, which no other job gets.

        Raises:
            UsageError: In a child that was forked: its parent takes the same ones.
        """
        self.log.check_process()
        number = self._next_file
        self._next_file += count
        return number

    def _work(self, job: Job) -> None:
        """Run a job in its thread, with the lock only for the installation."""
        job.work()
        with self.lock:
            old = self._install(job)
        remove_files(old)

    def _wait(self, job: Job | None) -> None:
        """Wait until a job is done; the caller holds the lock, which the job's thread waits for.

        So the caller installs the job's files, and the thread finds them installed.
        """
        if job is None:
            return
        if not job.wait():
            self._flush = self._merge = None  # threads stayed where this process was forked from
            return
        remove_files(self._install(job))

    def _install(self, job: Job) -> list[Path]:
        """Take over a job's files, once; returns the files to remove. Called with the lock held."""
        if job.is_installed:
            return []
        before, is_merge = self._commit, not job.covers
        try:
            with uninterrupted():  # as in `flush_now`
                self._commit, self.version, old = job.install(before, self.version, self._next_file)
        except AbandonedError:
            _LOGGER.info("%s: a merge was abandoned, nothing is lost", self.path)
            old = []
        except (NeardupError, OSError, MemoryError) as error:
            self._failed(error, before.logged, is_merge=is_merge)
            old = []
            if is_merge:
                self._unsound.update(job.damaged())
        else:
            self._succeeded(is_merge=is_merge)
            self.counters.merges += 1
            self.counters.merge_seconds += job.seconds
        finally:
            if is_merge:
                self._merge = None
            else:
                self._flush = None
        self._schedule_merge()
        return self._not_being_written(old)

    def _failed(self, error: Exception, logged: int, *, is_merge: bool) -> None:
        """Note an error of the background, which tries again later."""
        _LOGGER.warning("%s: not merged, nothing is lost: %s", self.path, error)
        self._failed_merge = is_merge
        self._background_error = f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')}: {error}"
        if is_merge:
            self._no_merge_before = time.monotonic() + RETRY_SECONDS
        else:
            self._retry = logged + self.flush_rows

    def _succeeded(self, *, is_merge: bool) -> None:
        """Note that a merge or a flush is done, and so is one that failed before."""
        self._retry = self._retry if is_merge else 0
        if self._failed_merge == is_merge:
            self._background_error = None

    def _not_being_written(self, files: list[Path]) -> list[Path]:
        """The files that no running job is writing."""
        jobs = [job for job in (self._flush, self._merge, *self._ahead) if job is not None]
        return [path for path in files if not any(path in job.files for job in jobs)]


class _Pinned:
    """The attachments of one commit, and of rows that were not committed."""

    def __init__(self, reading: Reading, pending: dict[int, bytes | None]) -> None:
        """Take over the commit."""
        self._reading, self._pending = reading, pending

    def of(self, numbers: list[int]) -> list[bytes | None] | None:
        """See Attached."""
        kept = _attachments(numbers, self._pending, self._reading)
        return kept if any(each is not None for each in kept) else None

    def close(self) -> None:
        """See Attached."""
        self._reading.close()


def _attachments(
    numbers: list[int], pending: dict[int, bytes | None], reading: Reading
) -> list[bytes | None]:
    """The attachments of rows; those of uncommitted rows are in `pending`."""
    stored = reading.contents(numbers)
    if pending:
        stored = [pending.get(each, kept) for each, kept in zip(numbers, stored, strict=True)]
    return stored
