"""A file that several threads write at once, through mapped memory.

A file system lets one thread at a time write to a file. Pages of mapped memory have no such lock.
"""

from __future__ import annotations

import mmap
import os
from typing import Any, Final

import numpy as np

__all__ = ["MappedWrites"]

_LEAST_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 64 << 20
"""The most bytes mapped at once. The file doubles until it reaches that."""


class MappedWrites:
    """A growing file whose consecutive ranges are given out as arrays.

    Args:
        file: Descriptor of an empty file; it becomes longer than what is written to it.

    Raises:
        OSError: If the system or the file system cannot do it, or the disk is full.
    """

    def __init__(self, file: int) -> None:
        """Map the first bytes."""
        self._file = file
        self._map(0, _LEAST_BYTES)

    def place(self, begin: int, nbytes: int) -> Any:
        """The bytes of the file from an offset on, uint8 (nbytes,), to be written by any thread.

        Raises:
            OSError: If the disk is full.
        """
        end = begin + nbytes
        if end > self._begin + len(self._memory):
            self._map(begin, max(nbytes, min(_MOST_BYTES, begin)))
        return np.frombuffer(self._memory, np.uint8, nbytes, begin - self._begin)

    def _map(self, begin: int, nbytes: int) -> None:
        """Map bytes from `begin` on; earlier ones are unmapped once no array uses them."""
        self._begin = begin - begin % mmap.ALLOCATIONGRANULARITY
        nbytes += begin - self._begin
        # A page that did not fit on the disk would end the process, so space is allocated first.
        os.posix_fallocate(self._file, self._begin, nbytes)
        self._memory = mmap.mmap(self._file, nbytes, offset=self._begin)
