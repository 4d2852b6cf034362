"""LMDB for the durable index: one environment a file and process, which grows; plain errors."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeVar

import lmdb

from neardup.errors import DataError, FileError, UsageError
from neardup.index.segment_files import damaged
from neardup.runtime.storage.durable_files import disk_full, file_failure, written_aside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = [
    "DATABASES",
    "TRIES",
    "Environment",
    "Pin",
    "TornReadError",
    "Transaction",
    "check_pages",
    "is_sound",
    "lmdb_errors",
    "remove_environment",
]


class Transaction:
    """The operations of a store in a transaction: databases by name."""

    def __init__(self, txn: Any, dbs: dict[bytes, Any]) -> None:
        self._txn, self._dbs = txn, dbs

    @property
    def number(self) -> int:
        """The number of the snapshot's transaction."""
        return int(self._txn.id())

    def get(self, name: bytes, key: bytes) -> bytes | None:
        """The value of a key."""
        value = self._txn.get(key, db=self._dbs[name])
        return None if value is None else bytes(value)

    def put(self, name: bytes, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._txn.put(key, value, db=self._dbs[name])

    def put_new(self, name: bytes, items: list[tuple[bytes, bytes]]) -> bool:
        """Set the values of keys that have none; whether they had none."""
        _, added = self._txn.cursor(self._dbs[name]).putmulti(items, overwrite=False)
        return bool(added == len(items))

    def pop(self, name: bytes, key: bytes) -> bytes | None:
        """Remove a key; the value that it had."""
        value = self._txn.pop(key, db=self._dbs[name])
        return None if value is None else bytes(value)

    def items(self, name: bytes, first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys from `first` on with their values, in order."""
        cursor = self._txn.cursor(self._dbs[name])
        if cursor.set_range(first):
            yield from cursor.iternext()

    def has(self, name: bytes) -> bool:
        """Whether there is any entry."""
        return bool(self._txn.cursor(self._dbs[name]).first())

    def keys(self, name: bytes) -> list[bytes]:
        """All keys, in order."""
        return [bytes(key) for key in self._txn.cursor(self._dbs[name]).iternext(values=False)]


LITTLE_ROOM: Final = 1 << 16
MOST_CHECKED: Final = 4 << 20
"""Bytes of a file whose pages are checked at each opening, in 15 ms a megabyte at most."""
TRIES: Final = 20
MOMENT: Final = 0.01
"""Seconds within which a write changes the time of a file's last change."""


class TornReadError(FileError):
    """A file changed while a process that is not in its table of readers read it."""


@contextlib.contextmanager
def lmdb_errors(path: Path, action: str) -> Iterator[None]:
    """Turn errors of LMDB and the system into errors of neardup, with a plain message.

    Raises:
        FileError: For a failed call.
        DataError: For a damaged or foreign file.
        UsageError: For an index that is used after a fork.
    """
    try:
        yield
    except (
        lmdb.BadTxnError,  # what comes after one of the others
        lmdb.CorruptedError,
        lmdb.PageNotFoundError,
        lmdb.InvalidError,
        lmdb.NotFoundError,
    ) as e:
        raise damaged(path, str(e)) from None
    except lmdb.VersionMismatchError as error:
        raise DataError(f"{path} was written by another version of LMDB: {error}") from None
    except lmdb.BadRslotError as error:
        raise UsageError(
            f"{path} was opened before a fork: open it in the child: {error}"
        ) from None
    except lmdb.Error as error:
        if isinstance(error, lmdb.DiskError) or _is_full(path):
            then = " and commit again: what was committed is safe"
            raise disk_full(action, path, then) from None
        raise FileError(f"cannot {action} {path}: {error}; what was committed is safe") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise file_failure(action, path, error) from None


def _is_full(path: Path) -> bool:
    """Whether the disk is almost full: LMDB calls a write that was cut short an I/O error."""
    with contextlib.suppress(OSError):
        room = os.statvfs(path.parent)
        return room.f_bavail * room.f_frsize < LITTLE_ROOM
    return False


def check_pages(path: Path, most: float = MOST_CHECKED) -> None:
    """Refuse a file with a page at which LMDB would abort the process, before LMDB opens it.

    Another process may be writing: the file counts as damaged if two checks without a change
    between them fail.

    Args:
        path: The file.
        most: The largest file, in bytes, that is checked.

    Raises:
        DataError: If it is damaged.
    """
    before = None
    for _ in range(TRIES):
        status = path.stat()
        if not 0 < status.st_size <= most or is_sound(path):
            return
        if before is not None and status.st_mtime_ns == before:
            raise damaged(path, "its pages do not agree")
        before = status.st_mtime_ns
        time.sleep(MOMENT)


def is_sound(path: Path) -> bool:
    """Whether every page to which the file refers exists and is right."""
    try:
        from lmdb.verify import verify
    except ImportError:
        return True
    try:
        return not verify(str(path), subdir=False)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001  # whatever it stumbles over
        return False


def remove_environment(path: Path) -> None:
    """Remove an LMDB file and its lock, as far as possible."""
    for each in (path, path.with_name(path.name + "-lock")):
        with contextlib.suppress(OSError):
            each.unlink()


T = TypeVar("T")
DATABASES: Final = (b"meta", b"log", b"removed", b"content")
MAP_SIZES: Final = (1 << 42, 1 << 36, 1 << 30, 1 << 26)
"""Address space to request; the first size that is available counts. The file has only what is
written."""
MOST_READERS: Final = 2048
REWRITTEN_BYTES: Final = 1 << 23
"""Bytes of values in one transaction when all values are written again."""
_open: dict[tuple[int, int, int], Environment] = {}
_opening = threading.Lock()
_inherited: list[Any] = []
"""Transactions of the process that this one was forked from."""
_released: deque[Environment] = deque()
"""One entry for each user that is done. The garbage collector may close an index at any time, also
while another one is opened, so `release` must not wait for `_opening`."""


class Environment:
    """One LMDB file, shared by all indexes that this process has open on it."""

    def __init__(self, path: Path, key: tuple[int, int, int]) -> None:
        """Open the file; `Environment.of` does this once a process."""
        self.path = path
        self.users = 0
        self._key = key
        self._reading = threading.RLock()
        """Reentrant: the garbage collector may release a pin in a thread that reads."""
        self._writing = threading.Lock()
        self._pins = 0
        self._is_inherited = False
        self._is_writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        self._env = self._opened(self._is_writable)
        try:
            self._check_place()
            self._check_size()
            self._dbs = {name: self._env.open_db(name, create=False) for name in DATABASES}
        except BaseException:
            self._env.close()
            raise

    @classmethod
    def of(cls, path: Path) -> Environment:
        """The environment of a file that exists.

        Raises:
            FileNotFoundError: If it is removed before it is open.
            FileError: If it cannot be opened.
            DataError: If it is damaged.
        """
        try:
            # Open, so that no other file gets its number while it is looked for by that.
            with lmdb_errors(path, "open"), _opening, path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_size == 0:
                    raise damaged(path, "it is empty")
                key = (os.getpid(), status.st_dev, status.st_ino)
                if key not in _open:
                    check_pages(path)
                    _open[key] = cls(path, key)
                _open[key].users += 1
                return _open[key]
        finally:
            _close_unused()

    @staticmethod
    def create(path: Path, values: dict[bytes, bytes]) -> None:
        """Make a file with these values in its database "meta", as a whole or not at all."""
        with lmdb_errors(path, "create"), written_aside(path) as aside:
            env = lmdb.open(os.fsencode(aside), map_size=MAP_SIZES[-1], subdir=False, lock=False,
                            max_dbs=len(DATABASES))  # fmt: skip
            dbs = {name: env.open_db(name) for name in DATABASES}
            with env.begin(write=True, db=dbs[b"meta"]) as txn:
                for name, value in values.items():
                    txn.put(name, value)
            env.close()

    def release(self) -> None:
        """Release one use; the last one closes the file."""
        _released.append(self)
        _close_unused()

    def close_if_unused(self) -> None:
        """Take one user away; called with `_opening` held."""
        self.users -= 1
        if self.users == 0 and self._key[0] == os.getpid():
            _open.pop(self._key, None)
            self._env.close()

    @property
    def transaction(self) -> int:
        """The number of the last committed transaction of any process."""
        return int(self._env.info()["last_txnid"])

    @property
    def nbytes(self) -> int:
        """Bytes of the file, which another process may have removed."""
        return _expected_bytes(self._env)

    @property
    def free_bytes(self) -> int:
        """The bytes of free pages, approximately."""
        pages = int(self._env.info()["last_pgno"]) + 1
        used, size = self._used_pages(None, *self._dbs.values())
        return max(0, (pages - used - 2) * size)

    def bytes_of(self, name: bytes) -> int:
        """The bytes of the pages of a database."""
        used, size = self._used_pages(self._dbs[name])
        return used * size

    def _used_pages(self, *dbs: Any) -> tuple[int, int]:
        """The number of pages that databases have, and the bytes of a page."""
        with lmdb_errors(self.path, "read"), self._reading, self._env.begin() as txn:
            stats = [txn.stat(db) for db in dbs]
        used = sum(x["branch_pages"] + x["leaf_pages"] + x["overflow_pages"] for x in stats)
        return int(used), int(stats[0]["psize"])

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one snapshot."""
        with lmdb_errors(self.path, "read"):
            for _ in range(TRIES):
                try:
                    with self._reading, self._env.begin() as txn:
                        number = txn.id()
                        result = work(Transaction(txn, self._dbs))
                except lmdb.MapResizedError:
                    self._resize(0)
                    continue
                if self._locked or self.transaction == number:
                    return result
            raise FileError(f"cannot read {self.path}: it kept changing during the read; try again")

    def pin(self) -> Pin:
        """A snapshot that stays until it is closed.

        LMDB takes the number of the last transaction and then reads that transaction's meta page,
        which the next but one overwrites: a snapshot may have the number of one commit and the data
        of a later one. If no more than one transaction followed, the page was not overwritten.
        """
        with lmdb_errors(self.path, "read"):
            for _ in range(TRIES):
                try:
                    with self._reading:
                        txn = self._env.begin()
                        if self.transaction > txn.id() + 1:
                            txn.abort()
                            continue
                        self._pins += 1
                except lmdb.MapResizedError:
                    self._resize(0)
                    continue
                with _opening:
                    self.users += 1
                return Pin(self, txn, self._dbs, is_safe=self._locked)
            raise FileError(f"cannot read {self.path}: it kept changing during the read; try again")

    def unpin(self) -> None:
        """Count a closed pin."""
        with self._reading:
            self._pins -= 1
        self.release()

    def _resize(self, size: int) -> None:
        """Map more of the file; 0 for the size that another process gave it."""
        with self._reading:
            if self._pins:
                raise FileError(
                    f"cannot map more of {self.path} while snapshots of it are in use: close them"
                    " (an iteration over documents is one), and try again"
                )
            self._env.set_mapsize(size)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction, which is on disk when this returns."""
        if self._is_inherited:
            raise UsageError(
                f"snapshots of {self.path.parent} were open when this process was forked, so it"
                " can only be read: close them before the fork"
            )
        with lmdb_errors(self.path, "write"), self._writing:
            while True:
                try:
                    with self._env.begin(write=True) as txn:
                        result = work(Transaction(txn, self._dbs))
                except lmdb.MapFullError:
                    self._resize(2 * self._env.info()["map_size"])
                    continue
                _fill_up(self._env, self.path)
                return result

    def hold(self) -> None:
        """Wait until nothing is read or written; nothing will be until `let_go`."""
        self._writing.acquire()
        self._reading.acquire()

    def let_go(self) -> None:
        """See `hold`."""
        self._reading.release()
        self._writing.release()

    def open_in_child(self) -> tuple[int, int, int]:
        """Open the file again in a child that was forked: LMDB's own is its parent's.

        An environment with pins stays open for reading: closing it would close the parent's.

        Returns:
            Its key in this process.
        """
        self._key = (os.getpid(), *self._key[1:])
        if self._pins:
            self._is_inherited = True
            return self._key
        self._env.close()
        with contextlib.suppress(lmdb.Error, OSError):  # using it will say what is wrong
            self._env = self._opened(self._is_writable)
            self._dbs = {name: self._env.open_db(name, create=False) for name in DATABASES}
        return self._key

    def forget_dead_readers(self) -> None:
        """Free the pages that killed readers still occupy."""
        with lmdb_errors(self.path, "write"):
            self._env.reader_check()

    def copy(self, target: Path) -> None:
        """Write a copy without free pages, and sync it."""
        with lmdb_errors(target, "write"):
            self._env.copy(os.fsencode(target), compact=True)
            _sync(target)

    def rewrite(self, target: Path, without: bytes) -> None:
        """Write the entries to a new file, except one of the database "meta", and sync it.

        `copy` takes pages as they are, and the free space of a page has bytes that were removed
        from it, or from a page written before. Newly filled pages have no such bytes.
        """
        size = MAP_SIZES[-1] + 2 * self.nbytes
        with lmdb_errors(target, "write"), contextlib.closing(self.pin()) as pin:
            env = lmdb.open(os.fsencode(target), map_size=size, subdir=False, lock=False,
                            sync=False, max_dbs=len(DATABASES))  # fmt: skip
            with contextlib.closing(env):
                pin.read(lambda txn: _put_all(env, txn, without))
                _fill_up(env, target)
            _sync(target)

    def _opened(self, writable: bool) -> Any:
        self._locked = True
        try:
            return self._mapped(writable, lock=True)
        except lmdb.Error:
            if writable:
                raise
        self._locked = False  # no place among the readers: read without, and look twice
        return self._mapped(writable, lock=False)

    def _mapped(self, writable: bool, *, lock: bool) -> Any:
        for size in MAP_SIZES:
            try:
                return lmdb.open(
                    os.fsencode(self.path), map_size=size, subdir=False, readonly=not writable,
                    create=False, max_dbs=len(DATABASES), max_readers=MOST_READERS, lock=lock,
                )  # fmt: skip
            except (lmdb.MemoryError, MemoryError):
                if size == MAP_SIZES[-1]:
                    raise
        raise AssertionError

    def _check_place(self) -> None:
        """Refuse the empty file that LMDB makes where the file was removed before it was opened."""
        status = self.path.stat()
        if (status.st_dev, status.st_ino) != self._key[1:]:
            remove_environment(self.path)
            raise FileNotFoundError(errno.ENOENT, "it was removed", str(self.path))

    def _check_size(self) -> None:
        """Refuse a truncated file: reading it would kill the process."""
        for _ in range(TRIES):
            size, expected = self.path.stat().st_size, _expected_bytes(self._env)
            if size >= expected:
                return
            if is_sound(self.path):
                return  # killed, or about, before _fill_up
            time.sleep(0.01)
        raise damaged(self.path, f"it has {size:,} bytes, not {expected:,}")


def _expected_bytes(env: Any) -> int:
    return int((env.info()["last_pgno"] + 1) * env.stat()["psize"])


def _fill_up(env: Any, path: Path) -> None:
    """Make a file as long as its pages say, so that a shorter one is known to be truncated.

    LMDB does not write pages at the end that a transaction allocated and freed.
    """
    expected = _expected_bytes(env)
    if expected > path.stat().st_size:
        with contextlib.suppress(OSError):
            os.truncate(path, expected)


def _put_all(env: Any, entries: Transaction, without: bytes) -> None:
    """Put all entries except one of "meta" into an empty file, some in a transaction."""
    for name in DATABASES:
        db, items = env.open_db(name), entries.items(name)
        while True:
            some, size = list[tuple[bytes, bytes]](), 0
            while size < REWRITTEN_BYTES and (item := next(items, None)) is not None:
                size += len(item[1])
                some += [item] if (name, item[0]) != (b"meta", without) else []
            if not size:
                break
            with env.begin(write=True) as txn:
                txn.cursor(db).putmulti(some, append=True)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


class Pin:
    """A snapshot of a file, for any thread; `close` or the garbage collector releases it.

    Args:
        environment: Of the file.
        txn: LMDB's transaction.
        dbs: Its databases by name.
        is_safe: Whether writers never change its pages; otherwise each read checks that they did
            not.
    """

    def __init__(
        self, environment: Environment, txn: Any, dbs: dict[bytes, Any], *, is_safe: bool
    ) -> None:
        """Take over the transaction."""
        self.environment = environment
        self.number = int(txn.id())
        self._work, self._is_safe = Transaction(txn, dbs), is_safe
        self._reading = threading.Lock()
        self._process = os.getpid()
        self.close = weakref.finalize(self, _unpin, environment, txn, os.getpid())

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on the snapshot.

        Raises:
            UsageError: If it is closed.
            TornReadError: If it is not safe, and another process wrote during the read.
        """
        path = self.environment.path
        if self._process != os.getpid():
            raise UsageError(
                f"a snapshot of {path.parent} was taken before a fork: take another one"
            )
        if not self.close.alive:
            raise UsageError(f"a snapshot of {path.parent} is closed: take another one")
        try:
            with lmdb_errors(path, "read"), self._reading:
                result = work(self._work)
        except DataError:
            if self._is_whole():
                raise
        else:
            if self._is_whole():
                return result
        raise TornReadError(
            f"cannot read {path}: it changed during the read, and its folder cannot be written,"
            " or has too many readers; try again"
        )

    def _is_whole(self) -> bool:
        """Whether no write overlapped the read."""
        return self._is_safe or self.environment.transaction == self.number


def _unpin(environment: Environment, txn: lmdb.Transaction, process: int) -> None:
    if process != os.getpid():
        _inherited.append(txn)  # to end it would end the parent's
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(txn))  # also when this process ends
        return
    txn.abort()
    environment.unpin()


def _close_unused() -> None:
    """Close unused environments, unless another thread has the lock, which then does it."""
    while _released and _opening.acquire(blocking=False):
        try:
            while _released:
                _released.popleft().close_if_unused()
        finally:
            _opening.release()


def _before_fork() -> None:
    _opening.acquire()
    for environment in _open.values():
        environment.hold()


def _after_fork_in_parent() -> None:
    for environment in _open.values():
        environment.let_go()
    _opening.release()


def _after_fork_in_child() -> None:
    inherited = list(_open.values())
    _open.clear()
    for environment in inherited:
        environment.let_go()
        _open[environment.open_in_child()] = environment
    _opening.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
