"""Feature sets as an index by similarity keeps them: sorted, in one order, found by their prefix.

The order of a segment: features that few of its documents have come first, by hash; then the heavy
ones, by their rank, which a table of the segment gives. It is the same order for every query, which
is all that the prefix filter needs; see docs/decisions/0012.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.bits import prefetch
from neardup.kernels.jit import fill, inner, kernel, making, move
from neardup.kernels.segment_addresses import uint64s
from neardup.kernels.similarity.measure_bounds import CONTAINMENT, least_overlap
from neardup.kernels.sorting import drop_repeats, shell_sort, sort_hashes

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Flags, Int64s, Offsets, Uint32s, Uint64s
    from neardup.kernels.similarity.join_arguments import Condition

SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
LOW: Final = np.uint64(0xFFFFFFFF)
MOST_PLACE: Final = 4095
"""The largest place of a feature in the order that an entry can hold; a smaller place is safe."""
MOST_BUCKETS: Final = 1 << 16
_AHEAD: Final = 16
"""The distance, in features, at which a feature's rank is prefetched."""
_MIX: Final = np.uint64(0xBF58476D1CE4E5B9)


class Order(NamedTuple):
    """Ranks of heavy features: an open table of uint64 `keys`, 0 where free, and uint32 `ranks`."""

    keys: Any
    ranks: Any


class Postings(NamedTuple):
    """Sets by their features: bucket b has entries[starts[b]:starts[b + 1]], ascending sets.

    `starts` is uint32 (2**bits + 1,), an entry uint64: check (20 bits), place (12), set (32).
    """

    starts: Any
    entries: Any
    bits: Any


@inner
def _sort_each(features: Any, offsets: Offsets, places: Any, spare: Any) -> int:
    used, begin = 0, offsets[0]
    for i in range(offsets.size - 1):
        end = offsets[i + 1]
        sort_hashes(features, begin, end, places, spare)
        offsets[i] = used
        used = drop_repeats(features, begin, end, used)
        begin = end
    offsets[offsets.size - 1] = used
    return used


@inner
def _places_for(size: int) -> int:
    """The number of places into which a sort distributes hashes."""
    capacity = 2
    while capacity < size and capacity < MOST_BUCKETS:
        capacity *= 2
    return capacity


@kernel
def sort_sets(features: Any, offsets: Offsets) -> int:
    """Sort every set in place and leave repeated features out; O(features) for hashes.

    Args:
        features: uint64, changed: the sets one after the other.
        offsets: int64 (n + 1,), changed where something was left out.

    Returns:
        The number of features that are left.
    """
    longest = 0
    for i in range(offsets.size - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    places, spare = np.empty(_places_for(longest), np.uint64), np.empty(longest, np.uint64)
    return np.int64(_sort_each(features, offsets, places, spare))


@kernel
def sort_set(features: Any) -> int:
    """As `sort_sets`, for one set.

    Args:
        features: uint64, changed.

    Returns:
        How many features are left: the first ones.
    """
    size, at = features.size, 1
    while at < size and features[at - 1] < features[at]:
        at += 1
    if at >= size:
        return np.int64(size)
    places, spare = np.empty(_places_for(size), np.uint64), np.empty(size, np.uint64)
    sort_hashes(features, 0, size, places, spare)
    return np.int64(drop_repeats(features, 0, size, 0))


@kernel
def digests(features: Any, offsets: Offsets, out: Any) -> None:
    """Write a hash of each set to `out`, uint64 (n,); O(features)."""
    for i in range(out.size):
        total = np.uint64(offsets[i + 1] - offsets[i])
        for at in range(offsets[i], offsets[i + 1]):
            total = (total ^ features[at]) * _MIX
            total ^= total >> np.uint64(29)
        out[i] = total


@kernel
def mark_fresh(at: Int64s, sizes: Int64s, order: Int64s, sums: Uint64s, fresh: Flags) -> None:
    """Mark the sets that differ from the one before them in `order`.

    Args:
        at: int64 (n,): the address of each set's features, uint64.
        sizes: int64 (n,).
        order: int64 (n,), so that equal sets stand together.
        sums: uint64 (n,), from `digests`.
        fresh: bool (n,), written, by the place in `order`.
    """
    for i in range(order.size):
        x, equal = order[i], i > 0
        if equal:
            y = order[i - 1]
            equal = sums[x] == sums[y] and sizes[x] == sizes[y]
            if equal:
                equal = _equal(uint64s(at[x], sizes[x]), uint64s(at[y], sizes[y]))
        fresh[i] = not equal


@inner
def _equal(one: Any, other: Any) -> bool:
    i = 0
    while i < one.size and one[i] == other[i]:
        i += 1
    return i == one.size


@inner
def _copy(features: Any, out: Any, to: int) -> None:
    for i in range(features.size):
        out[to + i] = features[i]


@kernel
def gather_at(at: Any, sizes: Int64s, chosen: Any, out: Any, out_offsets: Any) -> None:
    """Copy the chosen sets by their addresses; `at` and `sizes` are as for `mark_fresh`."""
    for i in range(chosen.size):
        _copy(uint64s(at[chosen[i]], sizes[chosen[i]]), out, out_offsets[i])


@kernel
def gather_sets(features: Any, offsets: Offsets, chosen: Any, out: Any, out_offsets: Any) -> None:
    """Copy the chosen sets (int64) to `out`; out_offsets (int64) says where each goes."""
    for i in range(chosen.size):
        begin, to = offsets[chosen[i]], out_offsets[i]
        for at in range(offsets[chosen[i] + 1] - begin):
            out[to + at] = features[begin + at]


@inner
def _key(feature: Any) -> Any:
    return feature if feature else SPREAD


@inner
def _first_slot(keys: Any, key: Any) -> int:
    return np.int64((key * SPREAD) >> np.uint64(20) & np.uint64(keys.size - 1))


@inner
def _slot(keys: Any, key: Any) -> int:
    mask, slot = np.uint64(keys.size - 1), _first_slot(keys, key)
    while keys[slot] != key and keys[slot]:
        slot = np.int64(np.uint64(slot + 1) & mask)
    return slot


@inner
def rank_of(feature: Any, order: Any) -> int:
    """The rank of a heavy feature, from 1 up; 0 for the others."""
    key = _key(feature)
    slot = _slot(order.keys, key)
    return np.int64(order.ranks[slot]) if order.keys[slot] == key else np.int64(0)


class Cells(NamedTuple):
    """Counters of features, as many at a time as there is room for.

    Args:
        counts: uint8 (2**b,).
        shift: uint64: a feature times SPREAD, shifted to the right by this, is its number.
        part: uint64: the numbers from part * 2**b on have a counter.
    """

    counts: Any
    shift: Any
    part: Any


@inner
def _cell(feature: Any, cells: Any) -> int:
    """The counter of a feature, or -1."""
    number, mask = (feature * SPREAD) >> cells.shift, np.uint64(cells.counts.size - 1)
    first = cells.part * np.uint64(cells.counts.size)
    return np.int64(number & mask) if number & ~mask == first else np.int64(-1)


@inner
def _count_cells(features: Any, offsets: Offsets, step: int, cells: Any) -> None:
    fill(cells.counts, 0, cells.counts.size, 0)
    for i in range(0, offsets.size - 1, step):
        for at in range(offsets[i], offsets[i + 1]):
            cell = _cell(features[at], cells)
            if cell >= 0 and cells.counts[cell] < 255:
                cells.counts[cell] += np.uint8(1)


@inner
def _count_keys(
    sampled: Any, cells: Any, least: int, keys: Any, counts: Any, progress: Any
) -> bool:  # fmt: skip
    """Count keys from feature progress[1] of set progress[0] on; False where the table is full.

    `sampled` is features, offsets and step; progress[2] is how many keys the table has.
    """
    features, offsets, step = sampled
    i, at, used = progress[0], progress[1], progress[2]
    is_full = False
    while i < offsets.size - 1:
        while at < offsets[i + 1]:
            cell = _cell(features[at], cells)
            if cell >= 0 and cells.counts[cell] >= least:
                key = _key(features[at])
                slot = _slot(keys, key)
                if not keys[slot]:
                    is_full = 2 * used > keys.size
                    if is_full:
                        break
                    keys[slot] = key
                    used += 1
                counts[slot] += 1
            at += 1
        if is_full:
            break
        i += step
        at = offsets[min(i, offsets.size - 1)]
    progress[0], progress[1], progress[2] = i, at, used
    return not is_full


@inner
def _refill(keys: Any, counts: Any, least: int, other: Any, other_counts: Any) -> None:
    """Copy the keys with a count of at least `least` to another table, which has room for them."""
    for at in range(keys.size):
        if keys[at] and counts[at] >= least:
            to = _slot(other, keys[at])
            other[to], other_counts[to] = keys[at], counts[at]


@making
def _packed(keys: Any, counts: Any, least: int, capacity: int) -> Any:
    """A table of the keys with a count of at least `least`, their counts, and their number."""
    heavy = 0
    for at in range(keys.size):
        heavy += counts[at] >= least
    while capacity < 2 * heavy:
        capacity *= 2
    packed, packed_counts = np.zeros(capacity, np.uint64), np.zeros(capacity, np.int64)
    _refill(keys, counts, least, packed, packed_counts)
    return packed, packed_counts, heavy


@kernel
def count_heavy(
    features: Any, offsets: Offsets, step: int, counters: Bytes, bits: int, least: int
) -> Any:
    """Count the features that many sets have; O(features), once for each part of the counters.

    Args:
        features: uint64.
        offsets: int64 (m + 1,): of the sets.
        step: One set in `step` is counted.
        counters: uint8 (2**b,): scratch.
        bits: b or more: there are 2**bits cells, which `counters` holds one part after the other.
        least: The number of counted sets from which on a feature is heavy, up to 255.

    Returns:
        keys, uint64, an open table; counts, int64.
    """
    keys, counts = np.zeros(1 << 10, np.uint64), np.zeros(1 << 10, np.int64)
    progress = np.zeros(3, np.int64)
    sampled, parts = (features, offsets, step), (1 << bits) // counters.size
    for part in range(parts):
        cells = Cells(counters, np.uint64(64 - bits), np.uint64(part))
        _count_cells(features, offsets, step, cells)
        progress[0], progress[1] = 0, offsets[0]
        while not _count_keys(sampled, cells, least, keys, counts, progress):
            larger, larger_counts = (
                np.zeros(2 * keys.size, np.uint64),
                np.zeros(2 * keys.size, np.int64),
            )
            _refill(keys, counts, 1, larger, larger_counts)
            keys, counts = larger, larger_counts
        if part < parts - 1:
            keys, counts, progress[2] = _packed(keys, counts, least, 1 << 10)
    keys, counts, _ = _packed(keys, counts, least, 2)
    return keys, counts


@inner
def first_places(
    features: Any, begin: int, end: int, prefix: int, order: Any, chosen: Any, heavy: Any
) -> None:
    """Write the places, from `begin`, of a set's first features in the order to chosen[:prefix].

    `heavy` is scratch, uint64 (end - begin,).
    """
    count, heavies, size = 0, 0, end - begin
    for i in range(min(_AHEAD, size)):
        prefetch(order.keys, _first_slot(order.keys, _key(features[begin + i])))
    for i in range(size):
        if i + _AHEAD < size:
            prefetch(order.keys, _first_slot(order.keys, _key(features[begin + i + _AHEAD])))
        rank = rank_of(features[begin + i], order)
        if rank:
            heavy[heavies] = np.uint64(rank) << np.uint64(32) | np.uint64(i)
            heavies += 1
        else:
            chosen[count] = i
            count += 1
            if count == prefix:
                return
    shell_sort(heavy, 0, heavies)
    for i in range(prefix - count):
        chosen[count + i] = np.int64(heavy[i] & LOW)


@inner
def prefix_of(size: int, condition: Condition) -> int:
    """The number of first features in the order by which a set of `size` features is found."""
    return size - least_overlap(size, condition) + 1


@inner
def contained_prefix(size: int, condition: Condition) -> int:
    """As `prefix_of`, for a set of which a larger one is to contain enough."""
    return size - np.int64(np.ceil(condition.similarity * size * (1.0 - 1e-9))) + 1


@inner
def bucket_of(spread: Any, bits: Any) -> int:
    """The bucket of a feature times SPREAD."""
    return np.int64(spread >> (np.uint64(64) - bits))


@inner
def check_of(spread: Any, bits: Any) -> Any:
    """The check of a feature times SPREAD, which tells most features apart; uint64 below 2**20."""
    return (spread << bits) >> np.uint64(44)


@kernel
def prefix_sizes(offsets: Offsets, condition: Condition, out: Any) -> None:
    """Write the number of features that find each set: int64 (m,)."""
    for i in range(out.size):
        size = offsets[i + 1] - offsets[i]
        if condition.measure == CONTAINMENT:
            out[i] = min(size, contained_prefix(size, condition))
        else:
            out[i] = prefix_of(size, condition)


@kernel
def put_in_order(
    features: Any, offsets: Offsets, order: Order, ends: Int64s, first: int, last: int, out: Any
) -> None:
    """Write the first features of some sets in the order.

    Args:
        features: uint64, each set ascending.
        offsets: int64 (m + 1,).
        order: Order.
        ends: int64 (m + 1,): of set i those from ends[i] to before ends[i + 1].
        first: First set.
        last: Last set + 1.
        out: uint64, written: the values for ends[first] and on.
    """
    longest = 0
    for i in range(first, last):
        longest = max(longest, offsets[i + 1] - offsets[i])
    chosen, heavy = np.empty(longest, np.int64), np.empty(longest, np.uint64)
    for i in range(first, last):
        prefix, to = ends[i + 1] - ends[i], ends[i] - ends[first]
        first_places(features, offsets[i], offsets[i + 1], prefix, order, chosen, heavy)
        for k in range(prefix):
            out[to + k] = features[offsets[i] + chosen[k]]


@kernel
def count_buckets(
    keys: Any, ends: Int64s, prefixes: Int64s, is_rest: bool, bits: Any, starts: Uint32s
) -> None:  # fmt: skip
    """Count the entries of each bucket, which `put_entries` writes.

    Args:
        keys: uint64: features in the order, of all sets.
        ends: int64 (m + 1,): where those of each set are.
        prefixes: int64 (m,): how many of each belong to its prefix.
        is_rest: Whether the entries are of the features behind the prefixes.
        bits: uint64, from 1 up: of the buckets.
        starts: uint32 (2**bits + 2,), zeros; written: of bucket b, `starts` of Postings at b + 1.
    """
    for i in range(prefixes.size):
        begin, stop = _part(ends, prefixes, i, is_rest)
        for at in range(begin, stop):
            starts[bucket_of(keys[at] * SPREAD, bits) + 2] += np.uint32(1)
    for b in range(starts.size - 1):
        starts[b + 1] += starts[b]


@kernel
def put_entries(
    keys: Any, ends: Int64s, prefixes: Int64s, is_rest: bool, bits: Any, buckets: Int64s,
    starts: Uint32s, entries: Any,
) -> None:  # fmt: skip
    """Write the entries of some buckets, after those of the buckets before them.

    Args:
        keys: As `count_buckets`, and so `ends`, `prefixes`, `is_rest` and `bits`.
        ends: See `keys`.
        prefixes: See `keys`.
        is_rest: See `keys`.
        bits: See `keys`.
        buckets: int64 (2,): the first, and the last + 1.
        starts: From `count_buckets`; at the end, starts[b] is the place of bucket b.
        entries: uint64, written: those of these buckets.
    """
    low, high = buckets[0], buckets[1]
    before = np.int64(starts[low + 1])
    for i in range(prefixes.size):
        begin, stop = _part(ends, prefixes, i, is_rest)
        for at in range(begin, stop):
            spread = keys[at] * SPREAD
            bucket = bucket_of(spread, bits)
            if low <= bucket < high:
                to = np.int64(starts[bucket + 1]) - before
                place = np.uint64(min(at - ends[i], MOST_PLACE)) << np.uint64(32)
                entries[to] = check_of(spread, bits) << np.uint64(44) | place | np.uint64(i)
                starts[bucket + 1] += np.uint32(1)


@inner
def _part(ends: Int64s, prefixes: Int64s, i: int, is_rest: bool) -> Any:
    middle = ends[i] + prefixes[i]
    if is_rest:
        return middle, ends[i + 1]
    return ends[i], middle


@making
def enlarged(values: Any) -> Any:
    """A copy with twice the room."""
    larger = np.empty(2 * values.size, values.dtype)
    move(values, values.size, larger)
    return larger
