"""Append-only files: an append is complete or absent."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import DataError, FileError
from neardup.runtime.storage.durable_files import file_failure

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["AppendFile", "append_failure", "append_whole", "damaged"]

_PIECE_BYTES: Final = 8 << 20


def append_whole(descriptor: int, data: Any) -> None:
    """Append bytes to a file, all of them or none, so that lines stay whole.

    Args:
        descriptor: Opened with O_APPEND.
        data: Bytes.

    Raises:
        OSError: If the system refuses, as a full disk does; the file ends where it did.
    """
    view = memoryview(data).cast("B")
    written = 0
    try:
        while written < view.nbytes:
            written += os.write(descriptor, view[written:])
    except BaseException:
        end = os.lseek(descriptor, 0, os.SEEK_CUR)
        # What another process appended behind the part must not go with it.
        if written and os.fstat(descriptor).st_size == end:
            os.ftruncate(descriptor, end - written)
        raise


class AppendFile:
    """An append-only file without buffering, checksummed from mark to mark.

    Args:
        path: Created unless it is there.
    """

    def __init__(self, path: Path) -> None:
        """Open the file at its end; FileError if that fails."""
        self.path = path
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o644)
        except OSError as error:
            raise append_failure("open", path, error) from None
        self.nbytes = os.fstat(self._descriptor).st_size
        self._checksum = 0

    def cut(self, nbytes: int) -> None:
        """Discard what lies beyond `nbytes`, the length at a mark; the next write goes there."""
        os.ftruncate(self._descriptor, nbytes)
        self.nbytes, self._checksum = nbytes, 0

    def write(self, data: Any) -> None:
        """Append bytes; FileError if the disk is full, and then none of them is in the file."""
        view = memoryview(data).cast("B")
        try:
            append_whole(self._descriptor, view)
        except OSError as error:
            raise append_failure("write", self.path, error) from None
        self._checksum = zlib.crc32(view, self._checksum)
        self.nbytes += view.nbytes

    def mark(self) -> dict[str, int]:
        """Sync the file; returns its length and the checksum of the bytes since the last mark."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise append_failure("write", self.path, error) from None
        checksum, self._checksum = self._checksum, 0
        return {"nbytes": self.nbytes, "crc32": checksum}

    def check(self, begin: int, mark: dict[str, int]) -> None:
        """Verify the bytes from `begin` to a mark; DataError if they differ."""
        checksum, at = 0, begin
        while at < mark["nbytes"]:
            data = os.pread(self._descriptor, min(_PIECE_BYTES, mark["nbytes"] - at), at)
            if not data:
                raise damaged(self.path, f"it has {at:,} bytes instead of {mark['nbytes']:,}")
            checksum = zlib.crc32(data, checksum)
            at += len(data)
        if checksum != mark["crc32"]:
            raise damaged(self.path, f"bytes {begin:,} to {at:,} have another checksum")

    def read(self) -> bytes:
        """The whole content."""
        return os.pread(self._descriptor, self.nbytes, 0)

    def array(self, dtype: Any) -> Any:
        """The whole content as a new 1-D array."""
        return np.fromfile(self.path, dtype, self.nbytes // np.dtype(dtype).itemsize)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._descriptor < 0

    def flush(self) -> None:
        """Do nothing: every write goes to the system at once."""

    def fileno(self) -> int:
        """The descriptor, for mapping the file."""
        return self._descriptor

    def close(self) -> None:
        """Close the file, which stays on disk."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def damaged(path: Path, reason: str) -> DataError:
    """The error about a damaged state."""
    return DataError(f"{path} is damaged: {reason}; remove {path.parent} to start again")


def append_failure(action: str, path: Path, error: OSError) -> FileError:
    """The error about a failed system call on the state of a run."""
    return file_failure(action, path, error, "choose another --resume folder")
