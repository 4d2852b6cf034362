"""The features of every document, kept between the passes: in memory, beyond a limit on disk."""

from __future__ import annotations

import mmap
import tempfile
from typing import Any, Final, Self

import numpy as np

from neardup.errors import FileError

__all__ = ["FeatureSpool"]

_WORD: Final = 8


class FeatureSpool:
    """Appends uint64 arrays; afterwards gives them as one array.

    Args:
        limit: Bytes to hold in memory; more go to an unlinked temporary file.
        tmp: Folder for that file; the system's own if None.

    Example:
        >>> with FeatureSpool(limit=8) as spool:
        ...     spool.append(np.array([1, 2], np.uint64))
        ...     spool.append(np.array([3], np.uint64))
        ...     spool.finish().tolist()
        [1, 2, 3]
    """

    def __init__(self, limit: int, tmp: str | None = None) -> None:
        """Begin empty, in memory."""
        self._limit = limit
        self._tmp = tmp
        self._parts: list[Any] = []
        self._file: Any = None
        self._map: mmap.mmap | None = None
        self.nbytes = 0

    @property
    def on_disk(self) -> bool:
        """Whether the limit was passed."""
        return self._file is not None

    def append(self, features: Any) -> None:
        """Append a uint64 array; FileError if the disk is full."""
        self._parts.append(features)
        self.nbytes += features.nbytes
        if self.nbytes > self._limit:
            self._flush()

    def finish(self) -> Any:
        """Everything as one uint64 array, read-only where it lies on disk."""
        if self._file is None:
            whole = np.concatenate([np.zeros(0, np.uint64), *self._parts])
            self._parts = []
            whole.flags.writeable = False
            return whole
        self._flush()
        self._file.flush()
        self._map = mmap.mmap(self._file.fileno(), self.nbytes, access=mmap.ACCESS_READ)
        return np.frombuffer(self._map, np.uint64)

    def forget_pages(self) -> None:
        """Let the system take back the memory of what was read from the disk."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _flush(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._tmp, prefix="neardup-")  # noqa: SIM115
            for part in self._parts:
                self._file.write(memoryview(part).cast("B"))
        except OSError as error:
            where = self._tmp or tempfile.gettempdir()
            raise FileError(
                f"cannot write temporary features in {where}: {error.strerror}; choose another"
                " folder with --tmp"
            ) from None
        self._parts = []

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the temporary file; arrays from `finish` must not be used any more."""
        self._parts = []
        if self._file is not None:
            self._file.close()
