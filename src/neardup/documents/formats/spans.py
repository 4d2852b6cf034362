"""Where each record of a text file lies, in nine bytes a line, and copying the kept ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.compression import ByteReader
    from neardup.documents.files.encodings import EncodedFile

__all__ = ["Spans", "copy_runs"]

_PIECE_BYTES: Final = 1 << 20
_RUNS_AT_ONCE: Final = 1 << 16


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

    def runs(self, keep: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Merge kept neighbours: int64 (m, 2), first byte and byte after the last of each run."""
        kept = np.concatenate(self._accepted)
        kept[kept] = keep
        self._ends = [np.concatenate(self._ends)]
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False))
        return self._ends[0][edges].reshape(-1, 2)


def copy_runs(
    reader: ByteReader,
    runs: npt.NDArray[np.int64],
    target: AtomicFile | EncodedFile,
    told: Callable[[int], object],
) -> None:
    """Copy byte ranges, int64 (m, 2) in ascending order, from a reader at its start.

    Now and then `told` is called with what the reader has consumed.

    Raises:
        FileError: If the input ends too early, or the write fails.
    """
    position = reported = 0
    for start, stop in _pairs(runs):
        if start - reported > _PIECE_BYTES:
            told(reader.consumed)
            reported = start
        if start > position:
            reader.skip(start - position)
        position = start
        while position < stop:
            data = reader.read(min(stop - position, _PIECE_BYTES))
            if not data:
                raise FileError(f"{target.path}: the input became shorter while it was read")
            target.write(data)
            position += len(data)


def _pairs(runs: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    for at in range(0, len(runs), _RUNS_AT_ONCE):
        yield from runs[at : at + _RUNS_AT_ONCE].tolist()
