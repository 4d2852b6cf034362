"""The pairs of a spilled join: collected, on disk where they are many, and returned in order."""

from __future__ import annotations

import shutil
import tempfile
import threading
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.errors import TooManyPairsError
from neardup.hamming.join.sinks import STEP
from neardup.runtime.arrays import cut
from neardup.runtime.storage.durable_files import file_failure
from neardup.runtime.storage.temporary import OTHER_FOLDER, TemporaryRows, read_exactly

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["PairSpool", "pairs_that_fit"]

RECORD: Final = 16
SORT_BYTES: Final = 64
"""The memory that sorting takes for each pair."""
BINS: Final = 4096
NUMBER_BITS: Final = np.uint64(48)
NUMBER: Final = np.uint64(2**48 - 1)


class PairSpool:
    """A spool that takes pairs in any order and returns them sorted; a large one is on disk.

    Args:
        limit: The most pairs to take.
        memory: Bytes for pairs, sorting included.
        tmp: Folder for an unlinked temporary file; the system's own if None.

    Example:
        >>> with PairSpool(limit=10, memory=1 << 20) as spool:
        ...     spool.add(np.array([7, 2]), np.array([3, 9]), np.array([1, 0]))
        ...     [[column.tolist() for column in part] for part in spool.sorted_parts()]
        [[[2, 3], [9, 7], [0, 1]]]
    """

    def __init__(self, limit: int, memory: int, tmp: str | None = None) -> None:
        """Start empty, in memory."""
        self.limit, self.count = limit, 0
        self._tmp = tmp
        self._buffer: list[Any] = []
        self._buffered_rows = 0
        self._hold = max(1, memory // 8 // RECORD)
        self._sort = max(1, memory // SORT_BYTES)
        self._file: TemporaryRows | None = None
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """The bytes on disk."""
        return self._file.nbytes if self._file else 0

    def expect(self, pairs: int) -> None:
        """Announce pairs to come.

        Raises:
            TooManyPairsError: If they and those at hand are more than the limit.
        """
        if self.count + pairs > self.limit:
            raise TooManyPairsError(self.count + pairs, self.limit, at_least=True)

    def add(self, left: Any, right: Any, distance: Any) -> None:
        """Add pairs of row numbers, below 2**48, in either order; from any thread.

        Raises:
            TooManyPairsError: If they are more than the limit; it has the count so far.
            FileError: If the disk is full.
        """
        if not len(left):
            return
        records = np.empty((len(left), 2), np.uint64)
        sides = left.astype(np.uint64), right.astype(np.uint64)
        np.minimum(*sides, out=records[:, 0])
        np.maximum(*sides, out=records[:, 1])
        records[:, 1] |= distance.astype(np.uint64) << NUMBER_BITS
        # Any thread adds: the limit is looked at, and the pairs are stored, in one step.
        with self._lock:
            self.expect(len(records))
            self.count += len(records)
            self._buffer.append(records)
            self._buffered_rows += len(records)
            if self._buffered_rows >= self._hold:
                self._spill()

    def sorted_parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """All pairs in order: left, right (int64) and distance (int16), some at a time."""
        if self.count:
            yield from self._sorted(0, 1 << 48, self.count)

    def row_numbers(self) -> Iterator[Any]:
        """The row numbers of all pairs, with repetitions: int64 arrays."""
        for part in self._all():
            yield part[:, 0].astype(np.int64)
            yield (part[:, 1] & NUMBER).astype(np.int64)

    def _spill(self) -> None:
        if self._file is None:
            self._file = TemporaryRows(self._tmp)
        for records in self._buffer:
            self._file.append(records)
        self._buffer.clear()
        self._buffered_rows = 0

    def _sorted(self, low: int, high: int, count: int) -> Iterator[tuple[Any, Any, Any]]:
        """The pairs of left rows low..high-1, by ranges that can each be sorted in memory."""
        if count <= self._sort or high - low == 1:
            parts = [part for part in self._of_range(low, high) if len(part)]
            yield from in_order(np.concatenate(parts), low)
            return
        width = -(-(high - low) // BINS)
        sizes = np.zeros(BINS, np.int64)
        for part in self._of_range(low, high):
            bins = (part[:, 0] - np.uint64(low)) // np.uint64(width)
            sizes += np.bincount(bins.astype(np.int64), minlength=BINS)
        used = np.flatnonzero(sizes)
        for first, last in cut(sizes[used], self._sort):
            begin, end = int(used[first]), int(used[last - 1]) + 1
            inside = int(sizes[begin:end].sum())
            yield from self._sorted(low + begin * width, min(high, low + end * width), inside)

    def _of_range(self, low: int, high: int) -> Iterator[Any]:
        for part in self._all():
            inside = (part[:, 0] >= np.uint64(low)) & (part[:, 0] < np.uint64(high))
            yield part[inside]

    def _all(self) -> Iterator[Any]:
        yield from self._buffer
        if self._file is not None:
            for begin in range(0, self._file.nbytes, STEP * RECORD):
                size = min(STEP, (self._file.nbytes - begin) // RECORD)
                part = np.empty((size, 2), np.uint64)
                read_exactly(self._file.fd, part, begin)
                yield part

    def close(self) -> None:
        """Free memory and disk space."""
        self._buffer.clear()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the spool."""
        self.close()


def in_order(records: Any, low: int) -> Iterator[tuple[Any, Any, Any]]:
    """Sorted pairs from records (uint64 (n, 2)) whose left rows are at least `low`.

    Left, right and distance are packed into one word where they fit: sorting words is quick.
    """
    least = np.uint64(low)
    left = records[:, 0] - least
    right = (records[:, 1] & NUMBER) - least
    distance = records[:, 1] >> NUMBER_BITS
    bits = [np.uint64(int(part.max()).bit_length()) for part in (left, right, distance)]
    if int(sum(bits)) <= 64:
        packed = (left << (bits[1] + bits[2])) | (right << bits[2]) | distance
        del records, left, right, distance
        packed.sort()
        for begin in range(0, len(packed), STEP):
            part = packed[begin : begin + STEP]
            mask_right, mask_distance = (
                np.uint64((1 << int(bits[1])) - 1),
                np.uint64((1 << int(bits[2])) - 1),
            )
            lefts = (part >> (bits[1] + bits[2])) + least
            rights = (part >> bits[2] & mask_right) + least
            yield lefts.view(np.int64), rights.view(np.int64), (part & mask_distance).astype("i2")
        return
    order = np.lexsort((right, left))
    for begin in range(0, len(order), STEP):
        at = order[begin : begin + STEP]
        lefts, rights = left[at] + least, right[at] + least
        yield lefts.view(np.int64), rights.view(np.int64), distance[at].astype(np.int16)


def pairs_that_fit(tmp: str | None) -> int:
    """The number of pairs that fit in half of the free space of a folder.

    Raises:
        FileError: If there is no such folder.
    """
    where = tmp or tempfile.gettempdir()
    try:
        return shutil.disk_usage(where).free // 2 // RECORD
    except OSError as error:
        raise file_failure("use", where, error, OTHER_FOLDER) from None
