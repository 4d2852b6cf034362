"""The lines that begin in a stretch of a file, for threads that read one file at once.

Every line begins in one stretch, so that stretches which follow each other have each line once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import mmap

__all__ = ["read_lines"]

_FURTHER_BYTES: Final = 1 << 15
"""Behind a stretch, for the end of its last line; then twice as many."""


def read_lines(file: int, begin: int, end: int, buffer: mmap.mmap) -> tuple[int, int] | None:
    """Read the lines that begin in the bytes from `begin` to before `end` of a file.

    Args:
        file: Descriptor.
        begin: See above.
        end: Behind `begin`.
        buffer: Where to, longer than the stretch.

    Returns:
        Where the lines are in the buffer, from and to; None if the last does not fit in it.

    Raises:
        OSError: If the read fails.
    """
    # The byte before the stretch tells whether a line begins with it.
    start = max(begin - 1, 0)
    read = _read_more(file, start, buffer, 0, end - start + _FURTHER_BYTES)
    first = 0
    if begin > 0:
        first = buffer.find(b"\n", 0, min(read, end - 1 - start)) + 1
        if not first:
            return 0, 0
    searched, further = end - 1 - start, 2 * _FURTHER_BYTES
    while not (last := buffer.find(b"\n", searched, read) + 1):
        if read == len(buffer):
            return None
        searched = max(read, searched)
        more = _read_more(file, start, buffer, read, further)
        if more == read:  # the end of the file, whose last line may have none
            return first, read
        read, further = more, 2 * further
    return first, last


def _read_more(file: int, start: int, buffer: mmap.mmap, read: int, nbytes: int) -> int:
    """Read up to `nbytes` further bytes, fewer only at an end; how many there are then."""
    goal = min(len(buffer), read + nbytes)
    with memoryview(buffer) as whole:
        while read < goal and (got := os.preadv(file, [whole[read:goal]], start + read)):
            read += got
    return read
