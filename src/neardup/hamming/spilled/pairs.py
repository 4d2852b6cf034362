"""Take the pairs of a spilled join, keep them on disk where they are many, and give them sorted."""

from __future__ import annotations

import shutil
import tempfile
import threading
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.errors import FileError, TooManyPairsError
from neardup.hamming.join.collectors import packed_pairs, pairs_within_groups
from neardup.hamming.join.partition import Groups
from neardup.runtime.arrays import cut
from neardup.runtime.temporary import TemporaryRows, read_exactly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.hamming.join.problem import Problem

__all__ = ["LOW_WORD", "STEP", "PairSpool", "pairs_that_fit", "products", "within_groups"]

STEP: Final = 1 << 18
RECORD: Final = 16
SORT_BYTES: Final = 64
"""Memory that sorting takes for each pair."""
WAYS: Final = 4096
LOW_WORD: Final = np.uint64(2**32 - 1)
NUMBER_BITS: Final = np.uint64(48)
NUMBER: Final = np.uint64(2**48 - 1)


class PairSpool:
    """Pairs in any order in, sorted pairs out; beyond a part of the memory they are on disk.

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
        """Begin empty, in memory."""
        self.limit, self.count = limit, 0
        self._tmp = tmp
        self._held: list[Any] = []
        self._held_rows = 0
        self._hold = max(1, memory // 8 // RECORD)
        self._sort = max(1, memory // SORT_BYTES)
        self._file: TemporaryRows | None = None
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes on disk."""
        return self._file.nbytes if self._file else 0

    def expect(self, pairs: int) -> None:
        """Hear of pairs to come.

        Raises:
            TooManyPairsError: If they and those at hand are more than the limit.
        """
        if self.count + pairs > self.limit:
            raise TooManyPairsError(self.count + pairs, self.limit, at_least=True)

    def add(self, left: Any, right: Any, distance: Any) -> None:
        """Take pairs of row numbers, below 2**48, in either order; from any thread.

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
        with self._lock:
            self.expect(len(records))
            self.count += len(records)
            self._held.append(records)
            self._held_rows += len(records)
            if self._held_rows >= self._hold:
                self._spill()

    def sorted_parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """All pairs in order: left, right (int64) and distance (int16), some at a time."""
        if self.count:
            yield from self._sorted(0, 1 << 48, self.count)

    def row_numbers(self) -> Iterator[Any]:
        """The numbers of all rows that occur, some of them often: int64 arrays."""
        for part in self._all():
            yield part[:, 0].astype(np.int64)
            yield (part[:, 1] & NUMBER).astype(np.int64)

    def _spill(self) -> None:
        if self._file is None:
            self._file = TemporaryRows(self._tmp)
        for records in self._held:
            self._file.append(records)
        self._held.clear()
        self._held_rows = 0

    def _sorted(self, low: int, high: int, count: int) -> Iterator[tuple[Any, Any, Any]]:
        """The pairs of left row low..high-1, by ranges of which each can be sorted in memory."""
        if count <= self._sort or high - low == 1:
            found = [part for part in self._of_range(low, high) if len(part)]
            yield from in_order(np.concatenate(found), low)
            return
        width = -(-(high - low) // WAYS)
        sizes = np.zeros(WAYS, np.int64)
        for part in self._of_range(low, high):
            bins = (part[:, 0] - np.uint64(low)) // np.uint64(width)
            sizes += np.bincount(bins.astype(np.int64), minlength=WAYS)
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
        yield from self._held
        if self._file is not None:
            for begin in range(0, self._file.nbytes, STEP * RECORD):
                size = min(STEP, (self._file.nbytes - begin) // RECORD)
                part = np.empty((size, 2), np.uint64)
                read_exactly(self._file.fd, part, begin)
                yield part

    def close(self) -> None:
        """Give memory and disk space back."""
        self._held.clear()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def in_order(records: Any, low: int) -> Iterator[tuple[Any, Any, Any]]:
    """Sort records (uint64 (n, 2)), whose left rows are at least `low`, and take them apart.

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
    """Pairs for which half of the free space of a folder would do.

    Raises:
        FileError: If there is no such folder.
    """
    where = tmp or tempfile.gettempdir()
    try:
        return shutil.disk_usage(where).free // 2 // RECORD
    except OSError as error:
        raise FileError(f"cannot use {where}: {error.strerror}; choose another --tmp") from None


def within_groups(outer: Any, problem: Problem, groups: Groups) -> int:
    """Give every two rows of each group to a collector, if a pair of equal rows is due.

    Returns:
        How many pairs there are; without a collector they are only counted.
    """
    if problem.agree is not None and not np.all(problem.agree):
        return 0
    sizes = groups.sizes
    ends = np.cumsum(sizes * (sizes - 1) // 2)
    total = int(ends[-1]) if len(ends) else 0
    if outer is None:
        return total
    named = problem.named(groups.members)
    for first, last in cut(sizes * (sizes - 1) // 2, STEP):
        starts = groups.starts[first : last + 1]
        rows = named[starts[0] : starts[-1]]
        if last - first > 1 or len(rows) ** 2 <= STEP:
            within = Groups(np.arange(len(rows)), starts - starts[0])
            packed = pairs_within_groups(rows, within)
            outer.add(len(packed), packed)
            continue
        for left, right in products(rows, rows):
            later = left < right
            outer.add(int(later.sum()), packed_pairs(left[later], right[later]))
    return total


def products(left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of `left` with every one of `right`, about STEP at a time."""
    rows = max(1, STEP // max(1, len(right)))
    for begin in range(0, len(left), rows):
        some = left[begin : begin + rows]
        yield np.repeat(some, len(right)), np.tile(right, len(some))
