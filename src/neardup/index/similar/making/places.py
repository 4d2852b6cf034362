"""Sets where they are, and copied from there into one array, equal ones once.

What a merge makes may be larger than memory: `Room` has it in files without a name, which are
written from their beginning to their end, a slice at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from neardup.index.similar.sets import Sets
from neardup.runtime.arrays import cut, frozen
from neardup.runtime.storage.spool import FeatureSpool
from neardup.runtime.threads import stop_if_abandoned

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Places", "Room", "collapsed"]

SPOOLED: Final = 1 << 24
"""Arrays of a segment of so many features or more are in files where they can be."""
SLICE: Final = 1 << 23
"""So many words are made in memory before they are written."""


class Room:
    """Where the large arrays of a segment are made.

    Args:
        folder: For files without a name; None: they are in memory.
        features: How many the segment has; few are in memory too.
    """

    def __init__(self, folder: Path | None, features: int) -> None:
        """Hold nothing."""
        self._folder = str(folder) if folder is not None and features >= SPOOLED else None

    @property
    def is_on_disk(self) -> bool:
        """Whether arrays are in files, and are made by slices."""
        return self._folder is not None

    def ranges(self, sizes: Any) -> list[tuple[int, int]]:
        """Cut what takes so many words each (int64) into slices: first, last + 1."""
        if self._folder is None:
            return [(0, len(sizes))]
        return cut(sizes, SLICE)

    def filled(
        self, ranges: list[tuple[int, int]], ends: Any, write: Callable[[int, int, Any], None]
    ) -> Any:
        """An array of slices: uint64.

        Args:
            ranges: What `ranges` gave.
            ends: int64 (n + 1,), from 0: slice (first, last) is ends[first] to before ends[last].
            write: Called with first, last and the words to be written.

        Raises:
            FileError: If the disk is full.
        """
        words = int(ends[-1])
        if self._folder is None:
            whole = np.empty(words, np.uint64)
            for first, last in ranges:
                stop_if_abandoned()
                write(first, last, whole)
            return whole
        most = max((int(ends[last] - ends[first]) for first, last in ranges), default=0)
        room = np.empty(most, np.uint64)
        with FeatureSpool(0, self._folder) as spool:
            for first, last in ranges:
                stop_if_abandoned()
                part = room[: int(ends[last] - ends[first])]
                write(first, last, part)
                spool.append(part)
            return spool.finish()


class Places(NamedTuple):
    """Sets where they are, which whoever has this keeps there.

    Args:
        at: int64 (n,): the address of the features of each.
        sizes: int64 (n,).
        sums: uint64 (n,): a hash of each.
    """

    at: Any
    sizes: Any
    sums: Any

    @classmethod
    def of(cls, sets: Sets, used: Any) -> Self:
        """The used ones of some sets, whose features stand one after the other."""
        from neardup.kernels.index.sets import digests

        sums, offsets = np.empty(sets.size, np.uint64), sets.offsets
        digests(frozen(sets.features), frozen(offsets), sums)
        at = sets.features.__array_interface__["data"][0] + sets.features.itemsize * offsets[:-1]
        return cls(at[used], np.diff(offsets)[used], sums[used])

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Those of several, one after the other."""
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def collapsed(places: Places, room: Room) -> tuple[Sets, Any]:
    """The different sets by size; and where each of the given ones is among them, int64.

    Sets that stood in this order are read one after the other.
    """
    from neardup.kernels.index.sets import gather_at, mark_fresh

    at, sizes, sums = places
    fresh = np.empty(len(at), np.bool_)
    order = np.lexsort((sums, sizes))
    mark_fresh(at, sizes, order, sums, fresh)
    place_of, chosen = np.empty(len(at), np.int64), order[fresh]
    place_of[order] = np.cumsum(fresh) - 1
    offsets = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(sizes[chosen], out=offsets[1:])

    def write(first: int, last: int, out: Any) -> None:
        begins = offsets[first : last + 1] - offsets[first]
        gather_at(at, sizes, chosen[first:last], out, begins)

    features = room.filled(room.ranges(np.diff(offsets)), offsets, write)
    return Sets(features, offsets), place_of
