"""One output that appears complete or not at all: a file, a file behind a URI, or a folder."""

from __future__ import annotations

import contextlib
import filecmp
import os
import secrets
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

from neardup.documents.files.compression import codec_of_path, encoder
from neardup.documents.files.finding import check_relative
from neardup.documents.files.problems import file_error
from neardup.documents.files.remote import ATOMIC, is_uri, locate, remote_errors
from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Notify = Callable[[list[str]], Any]

__all__ = [
    "STANDARD_OUTPUT",
    "AtomicFile",
    "AtomicFolder",
    "Output",
    "RemoteFile",
    "is_device",
    "not_empty",
]

STANDARD_OUTPUT: Final = ("-", "/dev/stdout")
ASIDE_PREFIX: Final = ".neardup."
_BUFFER_BYTES: Final = 1 << 20


class Output(Protocol):
    """The operations of an output in a set, in this order; `discard` at the end in any case."""

    @property
    def folder(self) -> Path | None:
        """The folder of this machine in which it gets its name; None if there is none."""

    def finish(self) -> None:
        """Complete the temporary file; FileError if that fails."""

    def publish(self) -> None:
        """Move it to its final path, so that `withdraw` can undo it; FileError if that fails."""

    def withdraw(self) -> None:
        """Undo `publish`: restore the previous file."""

    def settle(self) -> None:
        """Forget the previous file."""

    def discard(self) -> None:
        """Close and remove everything temporary."""


def _notify_nobody(_: list[str]) -> None:
    """Ignore a note about a temporary file."""


class AtomicFile:
    """One output, written aside in its folder and compressed as its extension says.

    Standard output and other special files (a device, a pipe) are written directly.
    OutputSet creates, publishes and discards it.

    Args:
        path: The final path.
        notify: As in OutputSet.
        workers: As in OutputSet.
    """

    closed = False

    def __init__(
        self, path: str, notify: Notify = _notify_nobody, workers: int | None = None
    ) -> None:
        """Open the temporary file; FileError if that fails."""
        self.path, self._notify = path, notify
        self.ends_line = True
        self._count = 0
        self._final: Path | None = None
        self._temporary: Path | None = None
        self._backup: Path | None = None
        self._mark = secrets.token_hex(4)
        try:
            self._file = self._open()
        except OSError as error:
            raise file_error(path, "write", error) from None
        codec = None if path in STANDARD_OUTPUT else codec_of_path(path)
        self._encoder, self._is_plain = encoder(self._file, codec, workers), codec is None

    def _open(self) -> BinaryIO:
        if self.path in STANDARD_OUTPUT:
            sys.stdout.flush()
            return os.fdopen(sys.stdout.fileno(), "wb", _BUFFER_BYTES, closefd=False)
        if is_device(self.path):
            return Path(self.path).open("wb", buffering=_BUFFER_BYTES)
        self._final = Path(self.path).resolve()
        temporary = self._sibling(self._final, "tmp")
        self._notify([str(temporary), str(temporary.with_suffix(".old"))])
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self._temporary = temporary
        return os.fdopen(descriptor, "wb", _BUFFER_BYTES)

    def _sibling(self, final: Path, ending: str) -> Path:
        return final.with_name(f".{final.name[:50]}.{self._mark}.{ending}")

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes; FileError if the disk is full or the write fails otherwise."""
        nbytes = memoryview(data).nbytes
        if nbytes == 0:
            return 0
        try:
            self._encoder.write(data)
        except OSError as error:
            raise file_error(self.path, "write", error) from None
        self._count += nbytes
        self.ends_line = data[-1:] == b"\n"
        return nbytes

    def takes_compressed(self) -> None:
        """Accept data that are compressed already; nothing may be written before."""
        self._encoder, self._is_plain = encoder(self._file, None), True

    def descriptor(self) -> int | None:
        """The file, to be written to from `tell` on, from any thread; then `went_on`.

        None if the output is compressed or is no file; FileError if a write fails.
        """
        if self._temporary is None or not self._is_plain:
            return None
        try:
            self._file.flush()
        except OSError as error:
            raise file_error(self.path, "write", error) from None
        return self._file.fileno()

    def went_on(self, end: int, *, ends_line: bool) -> None:
        """Continue after the first `end` bytes of the file."""
        self._file.seek(end)
        self._count, self.ends_line = end, ends_line

    def tell(self) -> int:
        """Bytes written so far, before compression."""
        return self._count

    def flush(self) -> None:
        """Do nothing: bytes reach the disk when the set is committed."""

    def close(self) -> None:
        """Do nothing: the set of outputs ends the file."""

    @property
    def folder(self) -> Path | None:
        """See Output."""
        return None if self._final is None else self._final.parent

    @property
    def aside(self) -> Path:
        """The path of its bytes until it is published; for a device, the device."""
        return self._temporary or Path(self.path)

    def finish(self) -> None:
        """Write what is left, sync it and close the file; FileError if that fails."""
        if self._file.closed:
            return
        try:
            self._encoder.close()
            self._file.flush()
            if self._temporary is not None:
                os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise file_error(self.path, "write", error) from None

    def publish(self) -> None:
        """Rename to the final path; what it replaces is held as a link until `settle`."""
        if self._temporary is None or self._final is None:
            return
        # A link, not a rename: the final path always has a complete file, the old or the new one. A
        # file system without links only loses the way back.
        backup = self._sibling(self._final, "old")
        with contextlib.suppress(OSError):
            backup.hardlink_to(self._final)
            self._backup = backup
        try:
            self._temporary.replace(self._final)
        except OSError as error:
            raise file_error(self.path, "write", error) from None
        self._temporary = None

    def withdraw(self) -> None:
        """Undo `publish`: restore the previous file."""
        # If the temporary file exists, it was not renamed: the final path has the old file.
        if self._final is None or (self._temporary is not None and self._temporary.exists()):
            return
        with contextlib.suppress(OSError):
            if self._backup is not None:
                self._backup.replace(self._final)
                self._backup = None
            else:
                self._final.unlink()

    def settle(self) -> None:
        """Forget the previous file."""
        if self._backup is not None:
            with contextlib.suppress(OSError):  # the outputs are there all the same
                self._backup.unlink()
            self._backup = None

    def discard(self) -> None:
        """Close and remove every temporary file."""
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        for path in (self._temporary, self._backup):
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink()
        self._temporary = self._backup = None


class RemoteFile(AtomicFile):
    """One output behind a URI: written to a local temporary file, and uploaded when published."""

    def __init__(
        self,
        path: str,
        tmp: str | None,
        notify: Notify = _notify_nobody,
        workers: int | None = None,
    ) -> None:
        """Open the temporary file in folder `tmp`; UsageError for a URI that cannot be used."""
        self._fs, self._key = locate(path)
        self._tmp = tmp
        self._is_published = False
        self._old: str | None = None
        super().__init__(path, notify, workers)

    def _open(self) -> BinaryIO:
        descriptor, name = tempfile.mkstemp(".tmp", ASIDE_PREFIX, self._tmp)
        self._temporary = Path(name)
        self._notify([name])
        return os.fdopen(descriptor, "wb", _BUFFER_BYTES)

    def publish(self) -> None:
        """Upload; if that is not atomic, under another name with a rename afterwards."""
        with remote_errors(self.path, "write"):
            if self._fs.exists(self._key):
                self._old = _remote_beside(self._key, "old")
                self._fs.copy(self._key, self._old)
            self._is_published = True
            if _protocols(self._fs) & ATOMIC:
                self._fs.put_file(str(self._temporary), self._key)
                return
            self._fs.makedirs(self._key.rpartition("/")[0], exist_ok=True)
            aside = _remote_beside(self._key, "tmp")
            try:
                self._fs.put_file(str(self._temporary), aside)
                self._fs.mv(aside, self._key)
            except BaseException:
                with contextlib.suppress(Exception):
                    self._fs.rm_file(aside)
                raise

    def withdraw(self) -> None:
        """Undo `publish`: restore the previous file."""
        if not self._is_published:
            return
        with contextlib.suppress(Exception):
            if self._old is not None:
                self._fs.mv(self._old, self._key)
                self._old = None
            else:
                self._fs.rm_file(self._key)

    def settle(self) -> None:
        """Forget the previous file."""
        if self._old is not None:
            with contextlib.suppress(Exception):
                self._fs.rm_file(self._old)


class AtomicFolder:
    """A new folder of files, written aside and renamed; behind a URI, uploaded when published.

    The folder must not exist, or be empty.

    Args:
        path: The final path.
        tmp: As in OutputSet.
        notify: As in OutputSet.
        may_repeat: The folder may also hold the same files already; it stays then.
    """

    def __init__(
        self,
        path: str,
        tmp: str | None,
        notify: Notify = _notify_nobody,
        *,
        may_repeat: bool = False,
    ) -> None:
        """Make the temporary folder; FileError if that fails."""
        self.path, self._may_repeat, self._is_there = path, may_repeat, False
        self._is_remote = is_uri(path)
        self._is_published = False
        self._final = Path(path).resolve()
        self._folders: set[str] = set()
        try:
            if self._is_remote:
                self._temporary = Path(tempfile.mkdtemp(".tmp", ASIDE_PREFIX, tmp))
                notify([str(self._temporary)])
            else:
                name = f".{self._final.name[:50]}.{secrets.token_hex(4)}.tmp"
                self._temporary = self._final.with_name(name)
                notify([str(self._temporary)])
                self._temporary.mkdir()
        except OSError as error:
            raise file_error(path, "create the folder", error) from None

    @property
    def folder(self) -> Path | None:
        """See Output."""
        return None if self._is_remote else self._final.parent

    def add(self, relative: str, data: bytes) -> None:
        """Write one file; FileError if that fails, DataError if its name leads out of it."""
        check_relative(relative, self.path)
        target = f"{self._temporary}/{relative}"
        parent = os.path.dirname(target)  # noqa: PTH120
        try:
            if parent not in self._folders:
                os.makedirs(parent, exist_ok=True)  # noqa: PTH103
                self._folders.add(parent)
            with open(target, "xb", buffering=0) as file:  # noqa: PTH123
                file.write(data)
        except OSError as error:
            raise file_error(f"{self.path.rstrip('/')}/{relative}", "write", error) from None

    def finish(self) -> None:
        """Sync all disks: one call instead of one for each of many small files.

        Raises:
            UsageError: If another run's files are at the final path.
        """
        if self._is_remote:
            return
        os.sync()
        if self._may_repeat and self._final.is_dir() and any(self._final.iterdir()):
            if not _is_copy(self._final, self._temporary):
                raise not_empty(self.path)
            self._is_there = True

    def publish(self) -> None:
        """Rename the folder, or upload its files."""
        if self._is_there:
            return
        if not self._is_remote:
            self._is_published = True
            try:
                self._temporary.replace(self._final)
            except OSError as error:
                self._is_published = False
                raise file_error(self.path, "write", error) from None
            return
        with remote_errors(self.path, "write"):
            fs, key = locate(self.path)
            pairs = [
                (str(file), f"{key.rstrip('/')}/{file.relative_to(self._temporary).as_posix()}")
                for file in self._files()
            ]
            self._is_published = True
            fs.put([local for local, _ in pairs], [remote for _, remote in pairs])

    def withdraw(self) -> None:
        """Remove the folder again; it was empty or absent before."""
        if not self._is_published:
            return
        with contextlib.suppress(Exception):
            if self._is_remote:
                fs, key = locate(self.path)
                fs.rm(key, recursive=True)
            elif not self._temporary.exists():
                shutil.rmtree(self._final)

    def settle(self) -> None:
        """Do nothing: there was no folder, or an empty one."""

    def discard(self) -> None:
        """Remove the temporary folder."""
        shutil.rmtree(self._temporary, ignore_errors=True)

    def _files(self) -> Iterator[Path]:
        return _files_in(self._temporary)


def _files_in(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())


def _is_copy(folder: Path, other: Path) -> bool:
    """Whether two folders have the same files, byte for byte."""
    names, others = (
        {file.relative_to(each) for file in _files_in(each)} for each in (folder, other)
    )
    return names == others and all(
        filecmp.cmp(folder / name, other / name, shallow=False) for name in names
    )


def not_empty(path: str) -> UsageError:
    """The error about a folder for kept files with others in it."""
    return UsageError(
        f"{path} is not empty, and kept files would mix with what is in it; name a new folder"
    )


def _protocols(fs: object) -> set[str]:
    names = getattr(fs, "protocol", ())
    return {names} if isinstance(names, str) else set(names)


def _remote_beside(key: str, ending: str) -> str:
    return f"{key}.{secrets.token_hex(4)}.{ending}"


def is_device(path: str) -> bool:
    """Whether a path exists and is not a regular file, such as a device or a pipe."""
    there = Path(path)
    return there.exists() and not there.is_file()
