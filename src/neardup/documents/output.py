"""Outputs that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Self

from neardup.documents.compression import codec_of_path, encoder
from neardup.documents.problems import file_error
from neardup.errors import FileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

__all__ = ["AtomicFile", "OutputSet"]

_BUFFER_BYTES: Final = 1 << 20
_STANDARD_OUTPUT: Final = ("-", "/dev/stdout")


class AtomicFile:
    """One output, written aside in its folder and compressed as its extension says.

    Standard output and what is no regular file (a device, a pipe) is written straight.
    OutputSet creates, publishes and discards it.
    """

    closed = False

    def __init__(self, path: str) -> None:
        """Open the temporary file; FileError if that fails."""
        self.path = path
        self.ends_line = True
        self._count = 0
        self._final: Path | None = None
        self._temporary: Path | None = None
        self._backup: Path | None = None
        try:
            self._file = self._open()
        except OSError as error:
            raise file_error(path, "write", error) from None
        codec = None if path in _STANDARD_OUTPUT else codec_of_path(path)
        self._encoder = encoder(self._file, codec)

    def _open(self) -> BinaryIO:
        if self.path in _STANDARD_OUTPUT:
            sys.stdout.flush()
            return os.fdopen(sys.stdout.fileno(), "wb", _BUFFER_BYTES, closefd=False)
        if _is_device(self.path):
            return Path(self.path).open("wb", buffering=_BUFFER_BYTES)
        self._final = Path(self.path).resolve()
        temporary = _beside(self._final, "tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self._temporary = temporary
        return os.fdopen(descriptor, "wb", _BUFFER_BYTES)

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

    def tell(self) -> int:
        """Bytes written so far, before compression."""
        return self._count

    def flush(self) -> None:
        """Do nothing: bytes reach the disk when the set is committed."""

    def close(self) -> None:
        """Do nothing: the set of outputs ends the file."""

    def finish(self) -> None:
        """Write what is left and sync it to the disk; FileError if that fails."""
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
        backup = _beside(self._final, "old")
        with contextlib.suppress(OSError):
            backup.hardlink_to(self._final)
            self._backup = backup
        try:
            self._temporary.replace(self._final)
        except OSError as error:
            raise file_error(self.path, "write", error) from None
        self._temporary = None

    def withdraw(self) -> None:
        """Undo `publish`: put back what was there before."""
        if self._final is None or self._temporary is not None:
            return
        with contextlib.suppress(OSError):
            if self._backup is not None:
                self._backup.replace(self._final)
                self._backup = None
            else:
                self._final.unlink()

    def settle(self) -> None:
        """Make the rename durable and forget what was there before."""
        if self._final is None:
            return
        if self._backup is not None:
            self._backup.unlink()
            self._backup = None
        _sync_folder(self._final.parent)

    def discard(self) -> None:
        """Close and remove every temporary file."""
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        for path in (self._temporary, self._backup):
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink()
        self._temporary = self._backup = None


class OutputSet:
    """All outputs of one run: after `commit` they are all there, without it none is.

    Args:
        inputs: Paths that no output may replace.

    Example:
        >>> with OutputSet() as outputs:
        ...     _ = outputs.create("/dev/null").write(b"gone")
        ...     outputs.commit()
    """

    def __init__(self, inputs: Iterable[str | None] = ()) -> None:
        """Remember the inputs."""
        self._inputs = [path for path in inputs if path is not None]
        self._files: list[AtomicFile] = []
        self._taken: set[Path] = set()
        self._folders: list[Path] = []
        self._committed = False

    def create(self, path: str) -> AtomicFile:
        """Begin an output.

        Raises:
            UsageError: If the path is an input, an output already, or a folder.
            FileError: If the folder around it is missing or cannot be written.
        """
        if path not in _STANDARD_OUTPUT:
            self.check(path)
        taken = Path("-" if path in _STANDARD_OUTPUT else path).resolve()
        if taken in self._taken and not _is_device(path):
            raise UsageError(f"{path} is named for two outputs; give each its own path")
        file = AtomicFile(path)
        self._taken.add(taken)
        self._files.append(file)
        return file

    def create_folder(self, path: str) -> None:
        """Make a folder unless it is there; removed again without a commit."""
        folder = Path(path)
        if folder.is_dir():
            return
        try:
            folder.mkdir()
        except OSError as error:
            raise file_error(path, "create the folder", error) from None
        self._folders.append(folder)

    def commit(self) -> None:
        """Flush, sync and rename every output; FileError leaves all as it was before."""
        for file in self._files:
            file.finish()
        published: list[AtomicFile] = []
        try:
            for file in self._files:
                published.append(file)
                file.publish()
        except FileError:
            for file in reversed(published):
                file.withdraw()
            raise
        self._committed = True
        for file in self._files:
            file.settle()

    def check(self, path: str) -> None:
        """Raise what `create` would, without creating anything; call it before a long run."""
        if Path(path).is_dir() or path.endswith("/"):
            raise UsageError(f"{path} is a folder; name a file in it")
        parent = Path(path).resolve().parent
        if not parent.is_dir():
            raise FileError(f"cannot write {path}: there is no folder {parent}; create it first")
        for source in self._inputs:
            if _is_same(source, path):
                raise UsageError(f"{path} is an input; write to another path")

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove every temporary file, and, without a commit, the folders made."""
        for file in self._files:
            file.discard()
        if not self._committed:
            for folder in reversed(self._folders):
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.{ending}")


def _is_device(path: str) -> bool:
    there = Path(path)
    return there.exists() and not there.is_file()


def _is_same(first: str, second: str) -> bool:
    if Path(first).resolve() == Path(second).resolve():
        return True
    try:
        return Path(first).samefile(second)
    except OSError:
        return False


def _sync_folder(path: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
