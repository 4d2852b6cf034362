"""The folder of a durable index: its current LMDB file, the writer's lock, and its cleaning."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from neardup.errors import DataError, FileError, NeardupError, UsageError
from neardup.index.durable.environment import TRIES, Environment, remove_environment
from neardup.index.durable.log_entries import (
    FORMAT,
    RESTORE,
    Head,
    Ledger,
    Manifest,
    Record,
    chunk_key,
    chunk_of,
    joined_records,
    row_key,
)
from neardup.index.durable.log_reading import Changes, Reading
from neardup.index.segment_files import damaged
from neardup.index.stored_rows import CHUNK_ROWS
from neardup.runtime.storage.checksums import CHECKSUM_BYTES, sealed, unsealed
from neardup.runtime.storage.durable_files import (
    LockHeldError,
    file_failure,
    lock_file,
    unlock,
    written_aside,
)
from neardup.runtime.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from neardup.index.durable.environment import Transaction
    from neardup.index.durable.log_entries import EncodedRecord

__all__ = [
    "ENVIRONMENTS",
    "LogStore",
    "current_environment",
    "locked",
    "remove_files",
]

_LOGGER: Final = logging.getLogger("neardup")
ENVIRONMENTS: Final = "log-*.mdb"
MOMENT: Final = 0.02
"""Seconds between attempts to take a lock."""
MOVING: Final = b"moved"
"""Key of a mark in a log that is being, or was, written to a new file."""


def current_environment(path: Path) -> Path:
    """The current LMDB file.

    Raises:
        FileNotFoundError: If there is no folder or it is empty.
        DataError: If it is not an index.
    """
    if path.exists() and not path.is_dir():
        raise DataError(f"{path} is a file, so it is not an index: an index is a folder")
    environments = sorted(path.glob(ENVIRONMENTS), key=lambda x: int(x.stem.partition("-")[2]))
    if environments:
        return environments[-1]
    raise FileNotFoundError(path)


def locked(path: Path, wait: float = 0.0) -> int:
    """Take the writer's lock; the descriptor holds it until it is closed.

    Args:
        path: The folder.
        wait: Seconds to wait while another process has it.
    """
    end, logs = time.monotonic() + wait, True
    while True:
        try:
            return lock_file(path / "lock")
        except OSError as error:
            raise FileError(
                f"cannot write {path}: {error.strerror or error}; open it with readonly=True"
            ) from None
        except LockHeldError as error:
            if time.monotonic() >= end:
                waited = f" after {wait:g} s of waiting" if wait else ""
                raise FileError(
                    f"{path} is open for writing in process {error.holder}{waited}: wait until it"
                    " closes the index (wait=60, --wait 60s), or open it with readonly=True"
                ) from None
            if logs:
                _LOGGER.info("%s: waiting for process %s, which writes", path, error.holder)
                logs = False
        time.sleep(MOMENT)


def remove_files(paths: list[Path]) -> None:
    """Remove files, as far as possible."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def newest_environment(path: Path) -> Environment:
    """The environment of the LMDB file that counts, which a writer may replace during the opening.

    Raises:
        FileNotFoundError: If there is no folder or it is empty.
        FileError: If it cannot be opened, or is replaced all the time.
        DataError: If it is damaged, or not an index.
    """
    for _ in range(TRIES):
        newest = current_environment(path)
        try:
            return Environment.of(newest)
        except (FileNotFoundError, NeardupError):
            if newest.exists():
                raise
    raise FileError(f"cannot read {path}: it kept changing during the read; try again")


T = TypeVar("T")
MOST_SMALL: Final = 512
"""The most records of few rows at the end of the log; one more, and they are joined."""
SMALL_ROWS: Final = 256
SEGMENTS: Final = "segment-*.nds"


class LogStore:
    """An open folder.

    Args:
        path: The folder.
        readonly: Take no lock and never write.
        wait: For the lock, as in `locked`.

    Raises:
        FileError: If it cannot be read, or another process writes to it.
        DataError: If it is not an index, damaged, or of a newer version.
    """

    def __init__(self, path: Path, *, readonly: bool, wait: float = 0.0) -> None:
        """Open an index that exists."""
        self.path = path
        self.readonly = readonly
        self._process, self._head = os.getpid(), Head(path)
        self._changing = threading.RLock()
        """Held while a thread uses the LMDB file without a snapshot, or moves on to the next
        file."""
        current_environment(path)  # before a lock is left in a folder that is not an index
        self._is_marked = False
        """Whether the LMDB file had the mark of `reclaim` when it was read last."""
        resources = contextlib.ExitStack()
        resources.callback(self._head.close)
        self.close = weakref.finalize(self, resources.close)
        """Release the LMDB file and the lock; so does the garbage collector."""
        try:
            if not readonly:
                resources.callback(unlock, locked(path, wait))
            self._user = _User(newest_environment(path))
            resources.callback(self._user.close)
            self.settings = self._environment.read(self._read_settings)
            self.has_contents = False
            """Whether rows of the last commit have attachments; in a writer."""
            self._small = [] if readonly else self._environment.read(self._small_records)
            if not readonly:
                self._tidy()
                self.has_contents = self._environment.read(lambda txn: txn.has(b"content"))
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, path: Path, settings: dict[str, Any], wait: float = 0.0) -> LogStore:
        """Make an index in a folder that is empty or does not exist, and open it for writing.

        Raises:
            FileError: If that fails.
            DataError: If there are other files in the folder.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            others = [x.name for x in path.iterdir() if x.name != "lock" and x.name[0] != "."]
        except OSError as error:
            raise file_failure("create", path, error) from None
        if others:
            raise DataError(
                f"{path} is not an index, and not empty ({min(others)} is in it): use a new folder"
            )
        lock = locked(path, wait)
        try:
            if not list(path.glob(ENVIRONMENTS)):
                manifest = Manifest().to_bytes()
                values = {
                    b"settings": sealed(json.dumps(settings).encode()),
                    b"manifest": manifest,
                    b"ledger": Ledger(manifest=manifest[:CHECKSUM_BYTES]).to_bytes(),
                }
                Environment.create(path / "log-1.mdb", values)
        finally:
            unlock(lock)
        return cls(path, readonly=False, wait=wait)

    @property
    def transaction(self) -> tuple[str, int]:
        """The last transaction that any process committed: its file and number."""
        with self._changing:
            if self._is_marked:
                self._follow_move()
            return self._environment.path.name, self._environment.transaction

    def look(self, work: Callable[[Environment], T]) -> T:
        """The result of `work` on the LMDB environment, which no other thread closes during it."""
        with self._changing:
            return work(self._environment)

    def file(self, name: str) -> Path:
        """The path of a file in the folder."""
        return self.path / name

    def pin(self) -> Reading:
        """The last commit, to be read until it is closed."""
        commits = self._head.number()
        with self._changing:
            while True:
                pin = self._environment.pin()
                self._is_marked = pin.read(lambda txn: txn.get(b"meta", MOVING)) is not None
                if not (self._is_marked and self._follow_move()):
                    return Reading(self.path, pin, commits)
                pin.close()

    def changes(self, generation: int, sequence: int) -> Changes:
        """The changes since this generation and this record of the log."""
        with contextlib.closing(self.pin()) as reading:
            return reading.changes(generation, sequence)

    def append(self, records: list[EncodedRecord], contents: dict[int, bytes | None]) -> int:
        """Add records to the log, and contents by number (None: removed); one sync.

        Returns:
            The sequence of the last record.
        """
        few = all(each.changes <= SMALL_ROWS for each in records)
        joined = self._small if few and len(self._small) >= MOST_SMALL else []

        def work(txn: Transaction, ledger: Ledger) -> int:
            written = records
            if joined:
                older = [self._record(txn, each) for each in joined]
                newer = [Record.from_bytes(each.value, "a new record") for each in records]
                written = [joined_records([*older, *newer]).encoded()]
                for each in joined:
                    ledger.delete(txn, b"log", row_key(each))
            for one in written:
                ledger.sequence += 1
                ledger.put(txn, b"log", row_key(ledger.sequence), one.value)
            self._put_contents(txn, ledger, contents)
            return ledger.sequence

        last = self._committed(work)
        first = last - len(records) + 1
        self._small = [*self._small, *range(first, last + 1)] if few and not joined else []
        return last

    def begin_record(self) -> None:
        """Join no later record with the present ones, which a manifest will cover."""
        self._small = []

    def checkpoint(
        self, manifest: Manifest, segments: list[Any], contents: dict[int, bytes | None]
    ) -> list[Path]:
        """Replace the manifest and drop the records that its files cover.

        Returns:
            Files that are no longer in it, to be removed.
        """
        names = [segment.file.path.name for segment in segments]

        def work(txn: Transaction, ledger: Ledger) -> None:
            for key in txn.keys(b"log"):
                if int.from_bytes(key, "big") <= manifest.covered:
                    ledger.delete(txn, b"log", key)
            for key in txn.keys(b"removed"):
                if chunk_of(key)[0] not in names:
                    ledger.delete(txn, b"removed", key)
            for name, segment in zip(names, segments, strict=True):
                for chunk in segment.changed:
                    rows = segment.dead[chunk * CHUNK_ROWS : (chunk + 1) * CHUNK_ROWS]
                    bitmap = sealed(np.packbits(rows).tobytes())
                    ledger.put(txn, b"removed", chunk_key(name, chunk), bitmap)
            # In one transaction with the records that the files cover: rows are in the log or in
            # files, never in both nor in neither.
            value = manifest.to_bytes()
            txn.put(b"meta", b"manifest", value)
            ledger.manifest = value[:CHECKSUM_BYTES]
            self._put_contents(txn, ledger, contents)

        self._committed(work)
        self._small = [each for each in self._small if each > manifest.covered]
        return self._stray_files(names)

    def _put_contents(
        self, txn: Transaction, ledger: Ledger, contents: dict[int, bytes | None]
    ) -> None:
        added = []
        for number, value in contents.items():
            key = row_key(number)
            if value is None:
                ledger.delete(txn, b"content", key)
            else:
                added.append((key, sealed(value, key)))
        if added and not ledger.put_new(txn, b"content", added):
            raise damaged(self._environment.path, "it has contents of rows to come")

    def reclaim(self) -> None:
        """Write the log to a new file, in which nothing removed is left.

        The old file is marked first; then the new one gets its name, and is the current file from
        then on. A reader of a marked file looks for a newer one each time. A failure or crash
        before the renaming leaves the old file; a crash after it leaves both, and the next writer
        removes the old one.
        """
        before = self._environment
        number = int(before.path.stem.partition("-")[2]) + 1
        target = self.path / f"log-{number}.mdb"
        self._write(lambda txn: txn.put(b"meta", MOVING, target.name.encode()))
        self._is_marked = True
        try:
            with written_aside(target) as aside:
                before.rewrite(aside, without=MOVING)
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise file_failure("write", target, error) from None
        finally:
            if target.exists():  # also where its name could not be synced: readers may be there
                self._use(Environment.of(target))
        remove_environment(before.path)

    def _committed(self, work: Callable[[Transaction, Ledger], T]) -> T:
        """Run `work` and write the ledger in one transaction; returns its number."""

        def whole(txn: Transaction) -> tuple[T, int, bool]:
            ledger = Ledger.read(txn, str(self._environment.path))
            result = work(txn, ledger)
            ledger.commits += 1
            ledger.write(txn)
            return result, ledger.commits, txn.has(b"content")

        result, commits, self.has_contents = self._write(whole)
        self._head.write(commits)
        return result

    def check_process(self) -> None:
        """Raise UsageError in a child that was forked: its parent has the lock, and writes."""
        if self._process != os.getpid():
            raise UsageError(f"{self.path} was opened before a fork: open it in the child")

    def _write(self, work: Callable[[Transaction], T]) -> T:
        self.check_process()
        with self._changing:
            if self._is_marked:  # a `reclaim` that was cut short may have replaced the file
                self._follow_move()
            environment = self._environment
        return environment.write(work)

    def _follow_move(self) -> bool:
        """Go on with the file that replaces a marked one; whether it has its name by now."""
        if current_environment(self.path).name == self._environment.path.name:
            return False
        self._use(newest_environment(self.path))
        return True

    def _use(self, environment: Environment) -> None:
        """Move on to another LMDB file."""
        with self._changing:
            self._is_marked = False
            self._user.change(environment)

    @property
    def _environment(self) -> Environment:
        return self._user.environment

    def _read_settings(self, txn: Transaction) -> dict[str, Any]:
        path = self._environment.path
        value = txn.get(b"meta", b"settings")
        if value is None:
            raise damaged(path, "it has no settings")
        settings: dict[str, Any] = json.loads(unsealed(value, f"settings in {path}"))
        if settings["format"] != FORMAT:
            is_newer = settings["format"] > FORMAT
            advice = "install a newer neardup" if is_newer else "create it again from the documents"
            raise DataError(
                f"{self.path} has index format {settings['format']}, made by neardup"
                f" {settings['neardup']}; this one, {__version__}, reads format {FORMAT}: {advice}"
            )
        return settings

    def _record(self, txn: Transaction, sequence: int) -> Record:
        name = f"record {sequence} in {self._environment.path}"
        value = txn.get(b"log", row_key(sequence))
        if value is None:
            raise DataError(f"{name} is missing: {RESTORE}")
        return Record.from_bytes(value, name)

    def _small_records(self, txn: Transaction) -> list[int]:
        """The sequences of the small records that end the log."""
        small: list[int] = []
        for key, value in txn.items(b"log"):
            sequence = int.from_bytes(key, "big")
            record = Record.from_bytes(value, f"record {sequence} in {self._environment.path}")
            few = len(record) + len(record.removed) <= SMALL_ROWS
            if not few:
                small.clear()
            else:
                small.append(sequence)
        return small

    def _tidy(self) -> None:
        """Remove the files that a crash left."""
        self._environment.forget_dead_readers()
        for aside in self.path.glob(".*.tmp*"):
            with contextlib.suppress(OSError):
                aside.unlink()
        for path in self.path.glob(ENVIRONMENTS):
            if path.name != self._environment.path.name:
                remove_environment(path)
        manifest = self.changes(-1, 0).manifest or Manifest()
        remove_files(self._stray_files([each.name for each in manifest.files]))

    def _stray_files(self, names: list[str]) -> list[Path]:
        return [path for path in self.path.glob(SEGMENTS) if path.name not in names]


class _User:
    """One use of an environment, which may change."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    def change(self, environment: Environment) -> None:
        before, self.environment = self.environment, environment
        before.release()  # last: an interrupt may come out of it

    def close(self) -> None:
        self.environment.release()
