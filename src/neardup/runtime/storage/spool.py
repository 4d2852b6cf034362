"""The features of every document, kept between the passes: in memory, beyond a limit on disk."""

from __future__ import annotations

import contextlib
import mmap
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.runtime.storage.mapped_writes import MappedWrites
from neardup.runtime.storage.temporary import spill_error, temporary_file

if TYPE_CHECKING:
    from neardup.runtime.storage.append_file import AppendFile

__all__ = ["FeatureSpool"]

_WORD: Final = 8
_FIRST_BYTES: Final = 1 << 20


class FeatureSpool:
    """Appends uint64 arrays; afterwards gives them as one array.

    Args:
        limit: Bytes to hold in memory; more go to an unlinked temporary file.
        tmp: Folder for that file; the system's own if None.
        kept: A file to append to instead, from the first array on; it is closed, but stays.

    Example:
        >>> with FeatureSpool(limit=8) as spool:
        ...     spool.append(np.array([1, 2], np.uint64))
        ...     spool.append(np.array([3], np.uint64))
        ...     spool.finish().tolist()
        [1, 2, 3]
    """

    def __init__(self, limit: int, tmp: str | None = None, kept: AppendFile | None = None) -> None:
        """Begin empty, in memory, or after what the kept file holds."""
        self._limit = limit
        self._tmp = tmp
        self._memory = _private_memory(_FIRST_BYTES)
        self._file: Any = kept
        self._threads: MappedWrites | None = None
        self._map: mmap.mmap | None = None
        self.nbytes = 0 if kept is None else kept.nbytes

    @property
    def on_disk(self) -> bool:
        """Whether the limit was passed."""
        return self._file is not None

    def append(self, features: Any) -> None:
        """Append a uint64 array, unchanged until `finish`; FileError if the disk is full."""
        begin, self.nbytes = self.nbytes, self.nbytes + features.nbytes
        if self._file is None and self.nbytes > self._limit:
            self._open(begin)
        if self._file is not None:
            self._write(features, begin)
            return
        if self.nbytes > len(self._memory):
            try:
                self._grow(max(2 * len(self._memory), self.nbytes))
            except OSError:  # less memory than was promised to us: go on with the file
                self._open(begin)
                self._write(features, begin)
                return
        np.frombuffer(self._memory, np.uint64, features.size, begin)[:] = features

    def finish(self) -> Any:
        """All features as one uint64 array, read-only."""
        if self._file is not None and self.nbytes:
            if self._threads is not None:
                self._threads.finish()
            self._file.flush()
            self._map = mmap.mmap(self._file.fileno(), self.nbytes, access=mmap.ACCESS_READ)
        whole = np.frombuffer(self._map or self._memory, np.uint64, self.nbytes // _WORD)
        whole.flags.writeable = False
        return whole

    def forget_pages(self) -> None:
        """Let the system take back the memory of what was read from the disk."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _grow(self, size: int) -> None:
        try:
            self._memory.resize(size)  # moves pages, not bytes
        except (SystemError, OSError, ValueError, BufferError):  # an array of it is in use
            larger = _private_memory(size)
            larger[: len(self._memory)] = self._memory[:]
            self._memory = larger

    def _open(self, nbytes: int) -> None:
        self._file = temporary_file(self._tmp, "features")
        with contextlib.suppress(AttributeError, OSError):  # where files are only written in order
            self._threads = MappedWrites(self._file.fileno())
        self._write(np.frombuffer(self._memory, np.uint64, nbytes // _WORD), 0)
        self._memory = _private_memory(_FIRST_BYTES)

    def _write(self, features: Any, begin: int) -> None:
        try:
            if self._threads is not None:
                self._threads.write(features, begin)
            else:
                self._file.write(memoryview(features).cast("B"))
        except OSError as error:
            raise spill_error(self._tmp, "features", error) from None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Remove the temporary file; arrays from `finish` must not be used any more."""
        if self._threads is not None:
            self._threads.close()
        self._map = None  # the disk's space comes back when the last array of it is gone
        if self._file is not None:
            self._file.close()


def _private_memory(nbytes: int) -> mmap.mmap:
    """Zeroed memory that can grow without being copied; shared memory could not."""
    if not hasattr(mmap, "MAP_PRIVATE"):  # not a POSIX system, where no child inherits it
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
