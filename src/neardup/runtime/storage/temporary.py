"""Temporary files of rows.

They are unlinked when they are made, so nothing is left behind, however a run ends.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any, Final

import numpy as np

from neardup.errors import FileError
from neardup.runtime.storage.durable_files import check_system, file_failure

__all__ = [
    "OTHER_FOLDER",
    "TemporaryRows",
    "read_exactly",
    "spill_error",
    "temporary_file",
    "write_all",
]

OTHER_FOLDER: Final = "choose another folder with --tmp"


class TemporaryRows:
    """An unlinked temporary file of fixed-width items, written in order or at offsets.

    Args:
        tmp: Folder for it; the system's own if None.
    """

    def __init__(self, tmp: str | None) -> None:
        """Create the file.

        Raises:
            FileError: If the folder cannot be written.
        """
        self._tmp = tmp
        self.nbytes = 0
        self._file = temporary_file(tmp, "rows", buffering=0)
        self.fd = self._file.fileno()

    def append(self, array: Any) -> None:
        """Write an array at the end; FileError if the disk is full."""
        self.put(array, self.nbytes)
        self.nbytes += array.nbytes

    def put(self, array: Any, offset: int) -> None:
        """Write an array at a byte offset; FileError if the disk is full."""
        if not array.nbytes:
            return
        data = np.ascontiguousarray(array).data
        write_all(self.fd, memoryview(data).cast("B"), offset, self._tmp)

    def close(self) -> None:
        """Free the disk space."""
        self._file.close()


def read_exactly(fd: int, into: Any, offset: int) -> None:
    """Fill a contiguous array from a byte offset of a file.

    Raises:
        FileError: If the file ends before, or cannot be read.
    """
    view = memoryview(into).cast("B") if into.size else memoryview(b"")
    done = 0
    while done < len(view):
        try:
            # preadv leaves the position of the file alone, so threads may share a descriptor.
            size = os.preadv(fd, [view[done:]], offset + done)
        except OSError as error:
            raise FileError(f"cannot read fingerprints: {error.strerror}") from None
        if not size:
            raise FileError("cannot read fingerprints: the file became shorter while it was read")
        done += size


def write_all(fd: int, data: memoryview, offset: int, tmp: str | None) -> None:
    """Write bytes at an offset.

    Raises:
        FileError: If the disk is full or fails.
    """
    done = 0
    try:
        while done < len(data):
            done += os.pwrite(fd, data[done : done + (1 << 30)], offset + done)
    except OSError as error:
        raise spill_error(tmp, "rows", error) from None


def temporary_file(tmp: str | None, what: str, buffering: int = -1) -> Any:
    """An unlinked file, open for reading and writing bytes.

    Args:
        tmp: Folder for it; the system's own if None.
        what: It will hold.
        buffering: As in open.

    Raises:
        FileError: If the folder cannot be written.
        UsageError: If the system has no reads at an offset.
    """
    check_system(f"a temporary file of {what}")
    try:
        return tempfile.TemporaryFile(dir=tmp, prefix="neardup-", buffering=buffering)
    except OSError as error:
        raise spill_error(tmp, what, error) from None


def spill_error(tmp: str | None, what: str, error: OSError) -> FileError:
    """The error about a temporary file that cannot be written."""
    where = tmp or tempfile.gettempdir()
    return file_failure("write", f"temporary {what} in {where}", error, OTHER_FOLDER)
