"""A file that several threads fill at once, through mapped memory.

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
"""That are mapped at once. The file grows by as much as it has, up to that."""


class MappedWrites:
    """Gives places of a file as arrays, one behind the other.

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
        """Map bytes from `begin` on; those before are unmapped once no array of them is left."""
        self._begin = begin - begin % mmap.ALLOCATIONGRANULARITY
        nbytes += begin - self._begin
        # A page that did not fit on the disk would end the process, so space is allocated first.
        os.posix_fallocate(self._file, self._begin, nbytes)
        self._memory = mmap.mmap(self._file, nbytes, offset=self._begin)
