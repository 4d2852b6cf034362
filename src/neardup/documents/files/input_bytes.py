"""Inputs that are read twice: regular files by opening them again, streams through a copy."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path
from typing import IO, Protocol

import pyarrow as pa

from neardup.documents.files.compression import (
    MAGIC_BYTES,
    ByteReader,
    codec_of_bytes,
    codec_of_path,
)
from neardup.documents.files.problems import file_error
from neardup.documents.files.remote import RemoteInput, is_uri
from neardup.errors import FileError, UsageError
from neardup.runtime.storage.durable_files import name_as_text
from neardup.runtime.storage.temporary import temporary_file

__all__ = ["STDIN_NAME", "Input", "RegularInput", "StreamInput", "WrappedInput", "find_input"]

STDIN_NAME = "<stdin>"


class Input(Protocol):
    """Bytes that can be read from the start, more than once."""

    name: str
    path: str | None
    nbytes: int | None
    is_plain: bool
    """Whether `open` returns the unchanged bytes of a file on this machine."""

    def open(self) -> ByteReader:
        """Start reading from the first byte, decompressed."""

    def open_file(self) -> io.RawIOBase:
        """Start reading the file as it is; UsageError for a stream."""

    def open_raw(self) -> pa.NativeFile:
        """Open the file as it is, for reading anywhere in it; UsageError for a stream."""

    def check_unchanged(self) -> None:
        """Raise FileError if the input has changed since it was found."""

    def stamp(self) -> tuple[str, int, int | str]:
        """Path, bytes and time of change (ns since 1970, or a tag); UsageError for a stream."""

    def close(self) -> None:
        """Remove the copy, if there is one."""


class WrappedInput:
    """The parts of an input's interface that a wrapper forwards to the input."""

    is_plain = False

    def __init__(self, origin: Input) -> None:
        """Wrap it; nothing is read."""
        self._origin = origin
        self.name, self.path, self.nbytes = origin.name, origin.path, origin.nbytes

    def open_file(self) -> io.RawIOBase:
        """See Input.open_file."""
        return self._origin.open_file()

    def open_raw(self) -> pa.NativeFile:
        """See Input.open_raw."""
        return self._origin.open_raw()

    def check_unchanged(self) -> None:
        """See Input.check_unchanged."""
        self._origin.check_unchanged()

    def stamp(self) -> tuple[str, int, int | str]:
        """See Input.stamp."""
        return self._origin.stamp()

    def close(self) -> None:
        """See Input.close."""
        self._origin.close()


class RegularInput:
    """A file on disk: nothing is copied; a change between two readings is noticed."""

    def __init__(self, path: str, status: os.stat_result, at: str | None = None) -> None:
        """Remember the file's size and time; it is opened `at` a path if its own is not used."""
        self.name = path
        self.path: str | None = path
        self._at = path if at is None else at
        self.is_plain = codec_of_path(path) is None
        self.nbytes: int | None = status.st_size
        self._state = _state(status)

    def open(self) -> ByteReader:
        """Start reading from the first byte, decompressed."""
        return ByteReader(self.name, self.open_file(), codec_of_path(self.name))

    def open_file(self) -> io.RawIOBase:
        """Start reading the file as it is."""
        try:
            return io.FileIO(self._at)
        except OSError as error:
            raise file_error(self.name, "read", error) from None

    def open_raw(self) -> pa.NativeFile:
        """Open the file as it is, for reading anywhere in it."""
        return pa.OSFile(os.fsencode(self._at))

    def check_unchanged(self) -> None:
        """Raise FileError if the file's size, time or identity changed."""
        try:
            now = Path(self._at).stat()
        except OSError as error:
            raise file_error(self.name, "read", error) from None
        if _state(now) != self._state:
            raise FileError(
                f"{self.name} changed while it was being read; run again when it is complete"
            )

    def stamp(self) -> tuple[str, int, int | str]:
        """The file's path, size and time of change as they were when it was found."""
        return name_as_text(self.name), self._state[2], self._state[3]

    def close(self) -> None:
        """Do nothing: the file is the user's own."""


class StreamInput:
    """Standard input or a named pipe: the first reading copies it, decompressed, to `tmp`."""

    nbytes: int | None = None
    is_plain = False

    def __init__(self, path: str | None, tmp: str | None) -> None:
        """Take standard input where `path` is None."""
        self.name = STDIN_NAME if path is None else path
        self.path = path
        self._tmp = tmp
        self._spool: IO[bytes] | None = None

    def open(self) -> ByteReader:
        """Start reading: the stream itself the first time, the copy from then on."""
        if self._spool is not None:
            self._spool.flush()
            again = io.FileIO(os.dup(self._spool.fileno()))
            again.seek(0)
            return ByteReader(self.name, again)
        self._spool = spool = temporary_file(self._tmp, "copies of inputs")
        try:
            if self.path is None:
                file = io.FileIO(sys.stdin.fileno(), closefd=False)
            else:
                file = io.FileIO(self.path)
            head = _head(file)
        except OSError as error:
            raise file_error(self.name, "read", error) from None
        return ByteReader(self.name, file, codec_of_bytes(head), head, spool)

    def open_file(self) -> io.RawIOBase:
        """Refuse: a second reading would be empty."""
        raise UsageError(f"{self.name} is a stream; use a file")

    def open_raw(self) -> pa.NativeFile:
        """Refuse: a stream can only be read from front to back."""
        raise UsageError(f"{self.name} is a stream; use a file")

    def check_unchanged(self) -> None:
        """A copy does not change."""

    def stamp(self) -> tuple[str, int, int | str]:
        """Refuse: the rest of a stream is gone with the run that read it."""
        raise UsageError(
            f"{self.name} is a stream, which cannot be read again: --resume requires files; save it"
            " to one first"
        )

    def close(self) -> None:
        """Remove the copy."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None


def find_input(path: str, tmp: str | None = None, at: str | None = None) -> Input:
    """Look a path or a URI up; "-" is standard input; `at` is where a path is opened instead.

    Raises:
        FileError: If it does not exist, is a folder, or cannot be read.
    """
    if path == "-":
        return StreamInput(None, tmp)
    if is_uri(path):
        return RemoteInput(path)
    try:
        status = Path(at or path).stat()
    except OSError as error:
        raise file_error(path, "read", error) from None
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"cannot read {path}: it is a directory; name the files in it")
    if not os.access(at or path, os.R_OK):
        raise FileError(f"cannot read {path}: Permission denied")
    if stat.S_ISREG(status.st_mode):
        return RegularInput(path, status, at)
    return StreamInput(path, tmp)


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _head(file: io.FileIO) -> bytes:
    head = b""
    while len(head) < MAGIC_BYTES and (more := file.read(MAGIC_BYTES - len(head))):
        head += more
    return head
