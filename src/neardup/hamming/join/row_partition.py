"""Partitions of rows by a hash of their bits, in threads, and groups of equal fingerprints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.plans.blocks import multipliers_of
from neardup.hamming.plans.join_plan import bins_log2
from neardup.runtime.arrays import frozen
from neardup.runtime.partition_by_key import balanced_ranges, by_key, even_ranges
from neardup.runtime.threads import in_threads, worker_count

if TYPE_CHECKING:
    from neardup.runtime.types import Codes, Offsets, RowNumbers, Rows

__all__ = ["ROWS_OF_A_THREAD", "Groups", "Partition", "group_equal"]

ROWS_OF_A_THREAD: Final = 1 << 16
"""The most rows that one thread partitions."""
RANGES_A_THREAD: Final = 16
ROWS_A_RANGE: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows by equal fingerprint: members[starts[g]:starts[g + 1]], ascending, for each group g."""

    members: Rows
    starts: Offsets

    @property
    def sizes(self) -> Any:
        """The number of rows in each group."""
        return np.diff(self.starts)

    @property
    def firsts(self) -> Any:
        """The smallest row of each group."""
        return self.members[self.starts[:-1]]

    @classmethod
    def of(cls, first: Any) -> Groups:
        """Groups of rows with the same `first` row; groups ascend by it."""
        members = np.argsort(first, kind="stable")
        ordered = first[members]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return cls(members, np.append(starts, len(first)))


@dataclass(slots=True)
class Partition:
    """Rows of a problem by the hash of a mask; the arrays are reused for the next mask."""

    codes: Codes
    ids: RowNumbers  # positions in the source
    starts: Offsets

    @classmethod
    def empty(cls, n: int, width: int) -> Partition:
        """Uninitialised arrays for n rows of `width` words."""
        codes, ids = np.empty((n, width), np.uint64), np.empty(n, np.uint32)
        return cls(codes, ids, np.zeros(1, np.int64))

    def fill(self, codes: Any, mask: Any, workers: int) -> None:
        """Partition `codes`, stably; each thread takes a range of rows."""
        from neardup.kernels.hamming.hash_partition import Rows, count_keys, scatter_rows

        n, width = codes.shape
        bits = bins_log2(n, width)
        shift, multipliers = np.uint64(64 - bits), multipliers_of(width)
        out = Rows(self.codes, self.ids)

        def count(first: int, last: int, counts: Any) -> None:
            count_keys(codes, first, last, mask, multipliers, shift, counts)

        def scatter(first: int, last: int, places: Any) -> None:
            scatter_rows(codes, first, last, mask, multipliers, shift, places, out)

        ranges = even_ranges(n, workers if n > ROWS_OF_A_THREAD else 1)
        self.starts = by_key(ranges, 1 << bits, workers, count, scatter)

    def chunks(self, workers: int) -> list[tuple[int, int]]:
        """Ranges of buckets with about equal rows, enough of them to keep the threads busy."""
        pieces = min(workers * RANGES_A_THREAD, max(1, int(self.starts[-1]) // ROWS_A_RANGE))
        return balanced_ranges(self.starts, pieces)


def group_equal(fps: Any, workers: int | None = None) -> Any:
    """The smallest row with the same fingerprint, for each row.

    Args:
        fps: uint64 (n, width), C-contiguous, n < 2**32.
        workers: Threads; by default one per core.

    Returns:
        int64 (n,). O(n) time and memory whatever the data.

    Example:
        >>> group_equal(np.array([[5], [7], [5]], np.uint64)).tolist()
        [0, 1, 0]
    """
    from neardup.kernels.hamming.hash_partition import first_equal

    codes, threads = frozen(fps), worker_count(workers)
    n, width = codes.shape
    first = np.empty(n, np.int64)
    parts = Partition.empty(n, width)
    parts.fill(codes, np.full(width, 2**64 - 1, np.uint64), threads)
    largest = int(np.diff(parts.starts).max(initial=1))
    tables = np.full((threads, 1 << (2 * largest).bit_length()), -1, np.int64)
    multipliers = multipliers_of(width)

    def group(slot: int, chunk: tuple[int, int]) -> None:
        first_equal(parts.codes, parts.ids, parts.starts, *chunk, multipliers, tables[slot], first)

    # Equal rows share a bucket, and a bucket is one thread's, as are its rows of `first`.
    in_threads(threads, group, parts.chunks(threads))
    return first
