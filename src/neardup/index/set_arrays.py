"""Feature sets in one array, as an index by similarity stores and accepts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from neardup.errors import UsageError
from neardup.runtime.arrays import cut, frozen
from neardup.runtime.storage.spool import FeatureSpool
from neardup.runtime.threads import stop_if_abandoned

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from neardup.index.kind_settings import SimilaritySettings
    from neardup.kernels.index.sets import Order
    from neardup.runtime.types import Hashes, Offsets, Rows

__all__ = [
    "ENTRIES_A_BUCKET",
    "Places",
    "Sets",
    "Workspace",
    "collapsed",
    "joined_sets",
    "order_of",
    "postings_of",
    "sketch_words",
    "sketches_of",
]


class Sets(NamedTuple):
    """Sets of feature hashes.

    Args:
        features: uint64, each set ascending.
        offsets: int64 (n + 1,): set i is features[offsets[i]:offsets[i + 1]].
    """

    features: Hashes
    offsets: Offsets

    @property
    def size(self) -> int:
        """The number of sets."""
        return len(self.offsets) - 1

    def of(self, at: int) -> Hashes:
        """The features of one set: a view."""
        return self.features[self.offsets[at] : self.offsets[at + 1]]

    def take(self, chosen: Rows) -> Sets:
        """A copy of some of the sets (int64), in this order."""
        from neardup.kernels.index.sets import gather_sets

        sizes = self.offsets[chosen + 1] - self.offsets[chosen]
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        features = np.empty(int(offsets[-1]), np.uint64)
        gather_sets(frozen(self.features), frozen(self.offsets), frozen(chosen), features, offsets)
        return Sets(features, offsets)


def joined_sets(parts: list[Sets]) -> Sets:
    """The sets of several Sets, concatenated."""
    if len(parts) == 1 and not parts[0].offsets[0]:
        return parts[0]
    offsets = [np.zeros(1, np.int64)]
    before = 0
    for each in parts:
        offsets.append(each.offsets[1:] - each.offsets[0] + before)
        before += int(each.offsets[-1] - each.offsets[0])
    features = [each.features[each.offsets[0] : each.offsets[-1]] for each in parts]
    return Sets(np.concatenate([np.empty(0, np.uint64), *features]), np.concatenate(offsets))


SPOOLED: Final = 1 << 24
"""The number of features at which the arrays of a segment go to files, if it has a folder."""
SLICE: Final = 1 << 23
"""The number of words made in memory before they are written."""


class Workspace:
    """A place for the large arrays of a segment: memory, or files without a name.

    Args:
        folder: For files without a name; None for arrays in memory.
        features: Features of the segment; arrays of few features are in memory too.
    """

    def __init__(self, folder: Path | None, features: int) -> None:
        """Begin without arrays."""
        self._folder = str(folder) if folder is not None and features >= SPOOLED else None

    @property
    def is_on_disk(self) -> bool:
        """Whether arrays are in files, and made in slices."""
        return self._folder is not None

    def ranges(self, sizes: Any) -> list[tuple[int, int]]:
        """Cut items of given sizes in words (int64) into slices: first, last + 1."""
        if self._folder is None:
            return [(0, len(sizes))]
        return cut(sizes, SLICE)

    def filled(
        self, ranges: list[tuple[int, int]], ends: Any, write: Callable[[int, int, Any], None]
    ) -> Any:
        """An array, made slice by slice: uint64.

        Args:
            ranges: From `ranges`.
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
        with FeatureSpool(0, self._folder) as spool:
            for first, last in ranges:
                stop_if_abandoned()
                part = np.empty(int(ends[last] - ends[first]), np.uint64)
                write(first, last, part)
                spool.append(part)
            return spool.finish()


class Places(NamedTuple):
    """Sets by address; the owner of this value must keep them there.

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
        """The places of the used ones of some sets, whose features are in one array."""
        from neardup.kernels.index.sets import digests

        sums, offsets = np.empty(sets.size, np.uint64), sets.offsets
        digests(frozen(sets.features), frozen(offsets), sums)
        at = sets.features.__array_interface__["data"][0] + sets.features.itemsize * offsets[:-1]
        return cls(at[used], np.diff(offsets)[used], sums[used])

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """The places of several Places, concatenated."""
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def collapsed(places: Places, workspace: Workspace) -> tuple[Sets, Any]:
    """The different sets by size; and the position of each given one among them, int64.

    Sets that are already in this order are read sequentially.
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

    features = workspace.filled(workspace.ranges(np.diff(offsets)), offsets, write)
    return Sets(features, offsets), place_of


HEAVY: Final = 4
"""The number of sets at which a feature is heavy: it comes last in the order."""
SAMPLED_SETS: Final = 1 << 11
"""The number of sets above which only one in SAMPLE_STEP is counted."""
SAMPLE_STEP: Final = 4
SAMPLED_HEAVY: Final = 3
"""The number of sampled sets at which a feature is heavy: it is in some twelve sets."""
SKETCHED: Final = 48
"""Sets of fewer features have sketches of one word, sets of twice as many sketches of four."""
LEAST_CELL_BITS: Final = 10
MOST_CELL_BITS: Final = 26
"""Bits of the number of counters at a time; if more are needed, sets are read several times."""
ENTRIES_A_BUCKET: Final = 4
MOST_ENTRIES: Final = 1 << 32
ENTRIES_A_RANGE: Final = 1 << 24
"""Entries of arrays in files that are made in memory at a time, from all features."""


def order_of(sets: Sets) -> Order:
    """The heavy features, by the number of sets that have them, then by hash."""
    from neardup.kernels.index.sets import Order, count_heavy

    is_sampled = sets.size >= SAMPLED_SETS
    step, least = (SAMPLE_STEP, SAMPLED_HEAVY) if is_sampled else (1, HEAVY)
    begins = sets.offsets[:-1:step]
    looked_at = int((sets.offsets[1::step] - begins).sum())
    bits = max(LEAST_CELL_BITS, looked_at.bit_length() + 1)
    counters = np.empty(1 << min(bits, MOST_CELL_BITS), np.uint8)
    features, offsets = frozen(sets.features), frozen(sets.offsets)
    keys, counts = count_heavy(features, offsets, step, counters, bits, least)
    slots = np.flatnonzero(keys)
    ranks = np.zeros(len(keys), np.uint32)
    ranks[slots[np.lexsort((keys[slots], counts[slots]))]] = np.arange(1, len(slots) + 1)
    return Order(frozen(keys), frozen(ranks))


def sketch_words(features: float) -> int:
    """The words of the sketch of a set, by its number of features: 1, 2 or 4."""
    return 1 if features < SKETCHED else 2 if features < 2 * SKETCHED else 4


def sketches_of(sets: Sets, workspace: Workspace) -> Any:
    """Sketches of the sets in the form of the kernels: uint64 (m, words)."""
    from neardup.kernels.index.similar import make_sketches

    words = sketch_words(len(sets.features) / max(1, sets.size))
    features, offsets = frozen(sets.features), frozen(sets.offsets)

    def write(first: int, last: int, out: Any) -> None:
        make_sketches(features, offsets[first : last + 1], out, words)

    ranges = workspace.ranges(np.full(sets.size, words))
    ends = np.arange(0, words * sets.size + 1, words)
    return workspace.filled(ranges, ends, write).reshape(sets.size, words)


def postings_of(
    sets: Sets, order: Order, settings: SimilaritySettings, workspace: Workspace
) -> dict[str, Any]:
    """Postings of the sets: starts, entries, rest_starts, rest_entries.

    Raises:
        UsageError: For more entries than 32 bits can address.
        FileError: If the disk is full.
    """
    from neardup.kernels.index.sets import prefix_sizes, put_in_order

    share = settings.kind.stored_ratio(float(settings.similarity))
    has_rest = not settings.kind.bounds_sizes
    buckets = int((1 - share) * len(sets.features)) + sets.size
    features, offsets = frozen(sets.features), frozen(sets.offsets)
    prefixes = np.empty(sets.size, np.int64)
    prefix_sizes(offsets, settings.condition(), prefixes)
    ends = offsets if has_rest else frozen(np.append(0, np.cumsum(prefixes)))
    if ends[-1] >= MOST_ENTRIES:
        raise UsageError(
            f"{ends[-1]:,} entries at once: add fewer documents at a time, at most"
            f" {MOST_ENTRIES - 1:,} entries"
        )

    def write(first: int, last: int, out: Any) -> None:
        put_in_order(features, offsets, order, ends, first, last, out)

    keys = frozen(workspace.filled(workspace.ranges(np.diff(ends)), ends, write))
    postings = _entries((keys, ends, prefixes, False), buckets, workspace)
    rest = np.zeros(3, np.uint32), np.empty(0, np.uint64)
    if has_rest:
        rest = _entries((keys, ends, prefixes, True), len(sets.features) - buckets, workspace)
    return dict(
        zip(("starts", "entries", "rest_starts", "rest_entries"), postings + rest, strict=True)
    )


def _entries(
    placed: tuple[Any, Any, Any, bool], about: int, workspace: Workspace
) -> tuple[Any, Any]:
    """Starts and `about` entries, in the form of Postings; for `placed` see `put_entries`."""
    from neardup.kernels.index.sets import count_buckets, put_entries

    bits = np.uint64(max(1, (about // ENTRIES_A_BUCKET).bit_length()))
    starts = np.zeros((1 << int(bits)) + 2, np.uint32)
    count_buckets(*placed, bits, starts)
    edges = _edges(starts[1:], ENTRIES_A_RANGE) if workspace.is_on_disk else [0, 1 << int(bits)]

    def write(first: int, last: int, out: Any) -> None:
        put_entries(*placed, bits, np.array([edges[first], edges[last]]), starts, out)

    ranges = [(i, i + 1) for i in range(len(edges) - 1)]
    entries = workspace.filled(ranges, starts[1:][edges].astype(np.int64), write)
    return starts[:-1], entries


def _edges(begins: Any, most: int) -> list[int]:
    """Cut buckets, each of which begins at begins[b], into ranges of at most `most` entries."""
    edges = [0]
    while edges[-1] < len(begins) - 1:
        reach = np.uint32(min(int(begins[edges[-1]]) + most, MOST_ENTRIES - 1))
        edges.append(max(edges[-1] + 1, int(np.searchsorted(begins, reach, side="right")) - 1))
    return edges
