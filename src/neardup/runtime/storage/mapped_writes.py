"""A file filled by several threads at once, through mapped memory.

A file system lets one thread at a time write to a file. Pages of mapped memory have no such lock.
"""

from __future__ import annotations

import mmap
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import numpy as np

__all__ = ["MappedWrites"]

_THREADS: Final = 4
_WAITING_PIECES: Final = 2 * _THREADS
_PIECE_BYTES: Final = 4 << 20
_LEAST_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 64 << 20
"""That are mapped at once. The file grows by as much as it has, up to that."""


class MappedWrites:
    """Puts arrays at places of a file, one behind the other.

    Args:
        file: Descriptor of an empty file; it becomes longer than what is written to it.

    Raises:
        OSError: If the system or the file system cannot do it, or the disk is full.
    """

    def __init__(self, file: int) -> None:
        """Map the first bytes."""
        self._file = file
        self._pool = ThreadPoolExecutor(_THREADS)
        self._running: deque[Future[None]] = deque()
        self._map(0, _LEAST_BYTES)

    def write(self, data: Any, begin: int) -> None:
        """Put an array at a byte offset; it must not change before `finish`.

        Raises:
            OSError: If the disk is full.
        """
        # Each piece has bytes of its own, so the file is the same whichever ends first.
        source = data.view(np.uint8)
        for at in range(0, source.size, _PIECE_BYTES):
            piece = source[at : at + _PIECE_BYTES]
            self._running.append(
                self._pool.submit(np.copyto, self._place(begin + at, piece), piece)
            )
            while len(self._running) > _WAITING_PIECES:
                self._running.popleft().result()

    def finish(self) -> None:
        """Wait until all is written."""
        while self._running:
            self._running.popleft().result()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _place(self, begin: int, piece: Any) -> Any:
        end = begin + piece.size
        if end > self._begin + len(self._memory):
            self._map(begin, max(piece.size, min(_MOST_BYTES, begin)))
        return np.frombuffer(self._memory, np.uint8, piece.size, begin - self._begin)

    def _map(self, begin: int, nbytes: int) -> None:
        """Map bytes from `begin` on; those before are unmapped once the last piece is copied."""
        self._begin = begin - begin % mmap.ALLOCATIONGRANULARITY
        nbytes += begin - self._begin
        # A page that did not fit on the disk would end the process, so space is allocated first.
        os.posix_fallocate(self._file, self._begin, nbytes)
        self._memory = mmap.mmap(self._file, nbytes, offset=self._begin)
