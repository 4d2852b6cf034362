"""What an index in a folder does whatever its rows hold: follow, commit, check, close.

A commit appends one record to the log, and is on disk then. Where much is in the log, the
background writes it to files and merges these; see `upkeep`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import UsageError
from neardup.index.durable.commits import Pending, arranged, first_commit, following
from neardup.index.durable.environment import TornReadError
from neardup.index.durable.folder_check import check_folder
from neardup.index.durable.folder_copy import back_up
from neardup.index.durable.upkeep import Upkeep
from neardup.index.durable.view import stored_beside
from neardup.index.segment_files import damaged
from neardup.index.stored_rows import StoredRows
from neardup.runtime.memory import free_memory
from neardup.runtime.storage.files import path_of

if TYPE_CHECKING:
    from neardup.index.durable.log_reading import Reading
    from neardup.index.durable.log_store import Store
    from neardup.runtime.types import Rows

__all__ = ["DurableBase"]

_LOGGER: Final = logging.getLogger("neardup")

TRIES: Final = 20
CLOSING_SECONDS: Final = 1.0
"""`close` waits so long for a merge before it abandons it, so that small ones get done."""


class DurableBase(Upkeep):
    """Documents in a folder.

    What was committed survives a crash, whole. One process writes, any number read, and nobody
    waits for anybody. The writer sees what it has added before the commit; readers see the last
    commit at every query.
    """

    def _begin(self, store: Store) -> None:
        """Read the folder; `_state` holds nothing yet."""
        self._store = store
        self._is_open = True
        self._begin_upkeep()
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
