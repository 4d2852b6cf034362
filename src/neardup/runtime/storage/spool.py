"""The spool of all features between two passes: in memory, and beyond a limit on disk."""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.runtime.storage.mapped_writes import MappedWrites
from neardup.runtime.storage.temporary import spill_error, temporary_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.runtime.storage.append_file import AppendFile

__all__ = ["FeatureSpool"]

_WORD: Final = 8
_FIRST_BYTES: Final = 1 << 20
_PIECE_BYTES: Final = 8 << 20
"""The bytes that each thread moves from memory to the file with each array."""


class FeatureSpool:
    """A spool of uint64 arrays, read afterwards as one array.

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
        """Start empty in memory, or after the content of a kept file."""
        self._limit = limit
        self._tmp = tmp
        self._memory = _private_memory(_FIRST_BYTES)
        self._file: Any = kept
        self._writes: MappedWrites | None = None
        self._moves: deque[tuple[Any, Any]] = deque()
        self._map: mmap.mmap | None = None
        self._filling, self._filled = 0, threading.Condition()
        self.nbytes = 0 if kept is None else kept.nbytes

    @property
    def on_disk(self) -> bool:
        """Whether the spool passed its limit."""
        return self._file is not None

    def append(self, features: Any) -> None:
        """Append a uint64 array; FileError if the disk is full."""
        rest = self.take(features)
        if rest is not None:
            rest()

    def take(self, features: Any) -> Callable[[], None] | None:
        """Append a uint64 array behind earlier ones; no other call may overlap.

        Returns:
            What is left to do, in any thread and before `finish`: until then the array must stay
            as it is. None if all is done.

        Raises:
            FileError: If the disk is full.
        """
        place = self._place(features)
        if place is None:
            return None
        with self._filled:
            self._filling += 1
        return partial(self._fill, [place], features.view(np.uint8))

    def finish(self) -> Any:
        """All features as one uint64 array, read-only."""
        while self._move():
            pass
        if self._file is not None and self.nbytes:
            self._file.flush()
            self._map = mmap.mmap(self._file.fileno(), self.nbytes, access=mmap.ACCESS_READ)
        whole = np.frombuffer(self._map or self._memory, np.uint64, self.nbytes // _WORD)
        whole.flags.writeable = False
        return whole

    def forget_pages(self) -> None:
        """Let the system reclaim the memory of pages read from disk."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _place(self, features: Any) -> Any:
        """The place of an array in memory, uint8; None if it was written to disk."""
        begin, self.nbytes = self.nbytes, self.nbytes + features.nbytes
        if self._file is None and self.nbytes > self._limit:
            self._open(begin)
        if self._file is None and self.nbytes > len(self._memory):
            try:
                self._grow(max(2 * len(self._memory), self.nbytes))
            except OSError:  # less memory than was promised to us: go on with the file
                self._open(begin)
        if self._file is None:
            return np.frombuffer(self._memory, np.uint8, features.nbytes, begin)
        return self._place_in_file(features, begin)

    def _fill(self, place: list[Any], features: Any) -> None:
        """Copy an array to its place, then move a piece of memory to the file."""
        try:
            # Nobody else has the place then, so memory that waits for it can be made larger.
            np.copyto(place.pop(), features)
        finally:
            with self._filled:
                self._filling -= 1
                self._filled.notify_all()
        self._move()

    def _move(self) -> bool:
        """Move a piece of the features from memory to the file; returns whether there was one."""
        try:
            place, piece = self._moves.popleft()
        except IndexError:
            return False
        np.copyto(place, piece)
        return True

    def _wait_until_filled(self) -> None:
        with self._filled:
            self._filled.wait_for(lambda: not self._filling)

    def _grow(self, size: int) -> None:
        self._wait_until_filled()
        try:
            self._memory.resize(size)  # moves pages, not bytes
        except (SystemError, OSError, ValueError, BufferError):  # an array of it is in use
            larger = _private_memory(size)
            larger[: len(self._memory)] = self._memory[:]
            self._memory = larger
        _ask_for_large_pages(self._memory)

    def _open(self, nbytes: int) -> None:
        self._wait_until_filled()
        self._file = temporary_file(self._tmp, "features")
        with contextlib.suppress(AttributeError, OSError):  # where files are only written in order
            self._writes = MappedWrites(self._file.fileno())
        features = np.frombuffer(self._memory, np.uint64, nbytes // _WORD)
        place = self._place_in_file(features, 0)
        self._memory = _private_memory(_FIRST_BYTES)
        if place is not None:
            pieces = range(0, nbytes, _PIECE_BYTES)
            source = features.view(np.uint8)
            self._moves.extend(
                (place[at : at + _PIECE_BYTES], source[at : at + _PIECE_BYTES]) for at in pieces
            )

    def _place_in_file(self, features: Any, begin: int) -> Any:
        """The mapped place of an array in the file; None if it was written instead."""
        try:
            if self._writes is not None:
                return self._writes.place(begin, features.nbytes)
            self._file.write(memoryview(features).cast("B"))
        except OSError as error:
            raise spill_error(self._tmp, "features", error) from None
        return None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Remove the temporary file; arrays from `finish` must not be used any more."""
        self._moves.clear()
        self._writes = None
        self._map = None  # the disk's space comes back when the last array of it is gone
        if self._file is not None:
            self._file.close()


def _ask_for_large_pages(memory: mmap.mmap) -> None:
    """Request large pages, whose first write takes a quarter of the time (measured)."""
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # the system has none
            memory.madvise(mmap.MADV_HUGEPAGE)


def _private_memory(nbytes: int) -> mmap.mmap:
    """Zeroed memory that can grow without being copied; shared memory could not."""
    if not hasattr(mmap, "MAP_PRIVATE"):  # not a POSIX system, where no child inherits it
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
