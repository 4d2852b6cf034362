"""What finds the sets of a segment: their order of features, sketches and postings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.index.similar.making.places import Room
    from neardup.index.similar.sets import Sets
    from neardup.index.similar.settings import SimilarSettings
    from neardup.kernels.index.sets import Order

__all__ = ["ENTRIES_A_BUCKET", "order_of", "postings_of", "sketch_words", "sketches_of"]

HEAVY: Final = 4
"""A feature that so many sets have comes last in the order."""
SAMPLED_SETS: Final = 1 << 11
"""Where there are so many sets or more, only every fourth is looked at for that."""
SAMPLE_STEP: Final = 4
SAMPLED_HEAVY: Final = 3
"""A feature that so many of these have comes last in the order: about twelve of all have it."""

SKETCHED: Final = 48
"""Sets of fewer features have sketches of one word, of twice as many those of four."""
LEAST_CELL_BITS: Final = 10
MOST_CELL_BITS: Final = 26
"""Of the counters that are there at a time; where more are needed, sets are read more often."""
ENTRIES_A_BUCKET: Final = 4
MOST_ENTRIES: Final = 1 << 32
ENTRIES_A_RANGE: Final = 1 << 24
"""Of those in files so many are made in memory at a time, each time from all features."""


def order_of(sets: Sets) -> Order:
    """Heavy features by how many sets have them, then by hash."""
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
    """Words of a set's sketch, where a set has so many features: 1, 2 or 4."""
    return 1 if features < SKETCHED else 2 if features < 2 * SKETCHED else 4


def sketches_of(sets: Sets, room: Room) -> Any:
    """By which sets are told apart, as kernels take it: uint64 (m, words)."""
    from neardup.kernels.index.similar import make_sketches

    words = sketch_words(len(sets.features) / max(1, sets.size))
    features, offsets = frozen(sets.features), frozen(sets.offsets)

    def write(first: int, last: int, out: Any) -> None:
        make_sketches(features, offsets[first : last + 1], out, words)

    ranges = room.ranges(np.full(sets.size, words))
    ends = np.arange(0, words * sets.size + 1, words)
    return room.filled(ranges, ends, write).reshape(sets.size, words)


def postings_of(sets: Sets, order: Order, settings: SimilarSettings, room: Room) -> dict[str, Any]:
    """By which features sets are found: starts, entries, rest_starts, rest_entries.

    Raises:
        UsageError: For more entries than places of 32 bits can tell.
        FileError: If there is no room for them.
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

    keys = frozen(room.filled(room.ranges(np.diff(ends)), ends, write))
    found = _entries((keys, ends, prefixes, False), buckets, room)
    rest = np.zeros(3, np.uint32), np.empty(0, np.uint64)
    if has_rest:
        rest = _entries((keys, ends, prefixes, True), len(sets.features) - buckets, room)
    return dict(
        zip(("starts", "entries", "rest_starts", "rest_entries"), found + rest, strict=True)
    )


def _entries(placed: tuple[Any, Any, Any, bool], about: int, room: Room) -> tuple[Any, Any]:
    """Starts and entries, about so many, as Postings has them; for `placed` see `put_entries`."""
    from neardup.kernels.index.sets import count_buckets, put_entries

    bits = np.uint64(max(1, (about // ENTRIES_A_BUCKET).bit_length()))
    starts = np.zeros((1 << int(bits)) + 2, np.uint32)
    count_buckets(*placed, bits, starts)
    edges = _edges(starts[1:], ENTRIES_A_RANGE) if room.is_on_disk else [0, 1 << int(bits)]

    def write(first: int, last: int, out: Any) -> None:
        put_entries(*placed, bits, np.array([edges[first], edges[last]]), starts, out)

    ranges = [(i, i + 1) for i in range(len(edges) - 1)]
    entries = room.filled(ranges, starts[1:][edges].astype(np.int64), write)
    return starts[:-1], entries


def _edges(begins: Any, most: int) -> list[int]:
    """Cut buckets, of which each begins at begins[b], into ranges of at most so many entries."""
    edges = [0]
    while edges[-1] < len(begins) - 1:
        reach = np.uint32(min(int(begins[edges[-1]]) + most, MOST_ENTRIES - 1))
        edges.append(max(edges[-1] + 1, int(np.searchsorted(begins, reach, side="right")) - 1))
    return edges
