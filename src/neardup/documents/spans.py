"""Where each record of a text file lies, in nine bytes a line, and copying the kept ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.errors import FileError

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.documents.compression import ByteReader
    from neardup.documents.output import AtomicFile

__all__ = ["Spans"]

_PIECE_BYTES: Final = 1 << 20


class Spans:
    """Adjacent stretches of a file from byte `start` on, each an accepted record or not."""

    def __init__(self, start: int = 0) -> None:
        """Begin at a byte offset."""
        self.end = start
        self.accepted = 0
        self._ends = [np.array([start], np.int64)]
        self._accepted = [np.zeros(0, np.bool_)]

    def add(self, lengths: npt.NDArray[np.int64], accepted: npt.NDArray[np.bool_]) -> None:
        """Append stretches: int64 lengths (n,) in bytes, and for each if it is a record."""
        ends = np.cumsum(lengths)
        ends += self.end
        self._ends.append(ends)
        self._accepted.append(accepted)
        self.accepted += int(np.count_nonzero(accepted))
        if ends.size:
            self.end = int(ends[-1])

    def runs(self, keep: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Merge kept neighbours: (first byte, byte after the last) for each run of kept records."""
        kept = np.concatenate(self._accepted)
        kept[kept] = keep
        offsets = np.concatenate(self._ends)
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False))
        bounds = offsets[edges].tolist()
        return list(zip(bounds[::2], bounds[1::2], strict=True))


def copy_runs(reader: ByteReader, runs: list[tuple[int, int]], target: AtomicFile) -> None:
    """Copy byte ranges, in ascending order, from a reader at its start.

    Raises:
        FileError: If the input ends too early, or the write fails.
    """
    position = 0
    for start, stop in runs:
        if start > position:
            reader.skip(start - position)
        position = start
        while position < stop:
            data = reader.read(min(stop - position, _PIECE_BYTES))
            if not data:
                raise FileError(f"{target.path}: the input became shorter while it was read")
            target.write(data)
            position += len(data)
