"""Which stored sets are similar to a query: prefix filter, sizes, places, then the features.

If x and y share t features or more, the first shared one in any order of all features is among the
first |x| - t + 1 of x and the first |y| - t + 1 of y. See docs/decisions/0012 and Bayardo, Ma and
Srikant, Scaling up all pairs similarity search, WWW 2007; Xiao et al., Efficient similarity joins
for near duplicate detection, WWW 2008 (places).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from neardup.kernels.bits import prefetch
from neardup.kernels.index.sets import (
    LOW,
    SPREAD,
    bucket_of,
    check_of,
    contained_prefix,
    enlarged,
    first_places,
    prefix_of,
)
from neardup.kernels.jit import inner, kernel
from neardup.kernels.similarity.measures import (
    CONTAINMENT,
    least_overlap,
    needed_overlap,
    score,
)

LONG_BUCKET: Final = 32
MUCH_LARGER: Final = 24
_PLACE: Final = np.uint64(0xFFF)


class StoredSets(NamedTuple):
    """Distinct sets of a segment, by size, and how they are found.

    Args:
        features: uint64, each set ascending.
        offsets: int64 (m + 1,).
        sizes: int64: the different sizes, ascending.
        firsts: int64: the first set of each size, and m.
        order: Order.
        prefixes: Postings of each set's prefix.
        rest: Postings of the other features, for containment.
    """

    features: Any
    offsets: Any
    sizes: Any
    firsts: Any
    order: Any
    prefixes: Any
    rest: Any


class TailSets(NamedTuple):
    """The newest documents' sets, one after the other, chained by feature.

    Args:
        features: uint64; only what offsets say is set.
        offsets: int64 (rows + 1,).
        heads: int32 (2**b,): the last entry of each bucket plus 1.
        links: int32: the entry before, plus 1.
        keys: uint64: the feature of each entry.
        rows: int32, likewise.
        places: int32, in the order.
        order: Order.
    """

    features: Any
    offsets: Any
    heads: Any
    links: Any
    keys: Any
    rows: Any
    places: Any
    order: Any


@inner
def shared(a: Any, i: int, i_end: int, b: Any, j: int, j_end: int, needed: int) -> int:
    """Features that two ascending sets share, or -1 once `needed` is out of reach."""
    if j_end - j > MUCH_LARGER * (i_end - i) or i_end - i > MUCH_LARGER * (j_end - j):
        return _shared_apart(a, i, i_end, b, j, j_end)
    count, spare, other_spare = 0, i_end - i - needed, j_end - j - needed
    while i < i_end and j < j_end:
        x, y = a[i], b[j]
        if x == y:
            count += 1
            i += 1
            j += 1
        elif x < y:
            i += 1
            spare -= 1
            if spare < 0:
                return -1
        else:
            j += 1
            other_spare -= 1
            if other_spare < 0:
                return -1
    return count


@inner
def _shared_apart(a: Any, i: int, i_end: int, b: Any, j: int, j_end: int) -> int:
    """As `shared`, by bisection, where one set is much larger."""
    count = 0
    if i_end - i > j_end - j:
        for at in range(j, j_end):
            i = _first_from(a, i, i_end, b[at])
            count += np.int64(i < i_end and a[i] == b[at])
        return count
    for at in range(i, i_end):
        j = _first_from(b, j, j_end, a[at])
        count += np.int64(j < j_end and b[j] == a[at])
    return count


@inner
def _first_from(values: Any, low: int, high: int, value: Any) -> int:
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _may_match(k: int, size: int, place: int, other: int, condition: Any) -> int:
    """The overlap that is needed of sets whose first shared feature has these places, or -1."""
    needed = max(np.int64(1), needed_overlap(size, other, condition))
    return needed if min(size - k, other - place) >= needed else np.int64(-1)


@inner
def _slot_of(seen: Any, stamp: Any, number: int) -> int:
    """Where a set is, or would be put, among those of the query with this stamp."""
    mask, value = np.uint64(seen.size - 1), stamp | np.uint64(number)
    slot = np.int64((value * SPREAD) >> np.uint64(32) & mask)
    while seen[slot] != value and seen[slot] >> np.uint64(32) == stamp >> np.uint64(32):
        slot = np.int64(np.uint64(slot + 1) & mask)
    return slot


@inner
def _size_range(size: int, sets: Any, condition: Any) -> Any:
    """The first and the last + 1 of the sets whose sizes can be similar enough."""
    if condition.measure == CONTAINMENT:
        return np.int64(0), sets.firsts[sets.sizes.size]
    least = least_overlap(size, condition)
    low = _first_from(sets.sizes, 0, sets.sizes.size, least)
    end, high = low, sets.sizes.size
    while end < high:
        middle = (end + high) >> 1
        if least_overlap(sets.sizes[middle], condition) <= size:
            end = middle + 1
        else:
            high = middle
    return sets.firsts[low], sets.firsts[end]


@inner
def _asked(size: int, condition: Any) -> int:
    """How many features of a query are looked up among prefixes."""
    return size if condition.measure == CONTAINMENT else prefix_of(size, condition)


@inner
def _first_entry(postings: Any, begin: int, end: int, number: int) -> int:
    """The first entry of a bucket whose set is `number` or later."""
    if end - begin > LONG_BUCKET:
        while begin < end:
            middle = (begin + end) >> 1
            if np.int64(postings.entries[middle] & LOW) < number:
                begin = middle + 1
            else:
                end = middle
    return begin


@kernel
def search_sets(
    features: Any, offsets: Any, first: int, last: int, sets: Any, condition: Any,
) -> Any:  # fmt: skip
    """Find the stored sets that are similar to each of some queries.

    Args:
        features: uint64, each query's ascending.
        offsets: int64 (q + 1,).
        first: First query.
        last: Last query + 1.
        sets: StoredSets, made for this similarity or a smaller one.
        condition: Condition: the measure, and the least similarity that is asked for.

    Returns:
        queries, int64; sets, int64; similarities, float64: by query, in no order.
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    chosen, heavy = np.empty(longest, np.int64), np.empty(longest, np.uint64)
    spreads, seen, found = np.empty(longest, np.uint64), np.zeros(1 << 9, np.uint64), 0
    queries, numbers, scores = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64)
    for q in range(first, last):
        begin, size = offsets[q], offsets[q + 1] - offsets[q]
        if size == 0:
            continue
        low, high = _size_range(size, sets, condition)
        if low >= high:
            continue
        stamp, held = np.uint64(q - first + 1) << np.uint64(32), 0
        asked = _asked(size, condition)
        first_places(features, begin, begin + size, asked, sets.order, chosen, heavy)
        for k in range(asked):
            spreads[k] = features[begin + chosen[k]] * SPREAD
            prefetch(sets.prefixes.starts, bucket_of(spreads[k], sets.prefixes.bits))
        for k in range(asked):
            bucket = bucket_of(spreads[k], sets.prefixes.bits)
            prefetch(sets.prefixes.entries, np.int64(sets.prefixes.starts[bucket]))
        parts = 2 if condition.measure == CONTAINMENT else 1
        for part in range(parts):
            postings = sets.rest if part else sets.prefixes
            asked = contained_prefix(size, condition) if part else asked
            for k in range(asked):
                bucket = bucket_of(spreads[k], postings.bits)
                check = check_of(spreads[k], postings.bits)
                end = np.int64(postings.starts[bucket + 1])
                at = _first_entry(postings, np.int64(postings.starts[bucket]), end, low)
                while at < end:
                    entry = postings.entries[at]
                    number = np.int64(entry & LOW)
                    at += 1
                    if number >= high:
                        break
                    if number < low or entry >> np.uint64(44) != check:
                        continue
                    slot = _slot_of(seen, stamp, number)
                    if seen[slot] == stamp | np.uint64(number):
                        continue
                    there = sets.offsets[number]
                    other = sets.offsets[number + 1] - there
                    place = np.int64(entry >> np.uint64(32) & _PLACE)
                    needed = _may_match(k, size, place, other, condition)
                    if needed < 0:
                        continue
                    seen[slot] = stamp | np.uint64(number)
                    held += 1
                    if 2 * held > seen.size:
                        older, seen = seen, np.zeros(2 * seen.size, np.uint64)
                        for i in range(older.size):
                            if older[i] >> np.uint64(32) == stamp >> np.uint64(32):
                                seen[_slot_of(seen, stamp, np.int64(older[i] & LOW))] = older[i]
                    count = shared(
                        features, begin, begin + size, sets.features, there, there + other, needed
                    )  # fmt: skip
                    reached = score(count, size, other, condition.measure) if count > 0 else 0.0
                    if reached >= condition.similarity:
                        if found == queries.size:
                            queries, numbers = enlarged(queries), enlarged(numbers)
                            scores = enlarged(scores)
                        queries[found], numbers[found], scores[found] = q, number, reached
                        found += 1
    return queries[:found], numbers[:found], scores[:found]


@kernel
def search_tail(
    features: Any, offsets: Any, first: int, last: int, tail: Any, count: int, condition: Any,
) -> Any:  # fmt: skip
    """As `search_sets`, among the first `count` rows of a tail; rows instead of sets."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    chosen, heavy = np.empty(longest, np.int64), np.empty(longest, np.uint64)
    seen, found, mask = np.full(count, -1, np.int64), 0, np.uint64(tail.heads.size - 1)
    queries, numbers, scores = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64)
    for q in range(first, last):
        begin, size = offsets[q], offsets[q + 1] - offsets[q]
        if size == 0:
            continue
        asked = _asked(size, condition)
        first_places(features, begin, begin + size, asked, tail.order, chosen, heavy)
        for k in range(asked):
            key = features[begin + chosen[k]]
            entry = np.int64(tail.heads[np.int64((key * SPREAD) >> np.uint64(24) & mask)])
            while entry:
                at = entry - 1
                entry = np.int64(tail.links[at])
                row = np.int64(tail.rows[at])
                if tail.keys[at] != key or row >= count or seen[row] == q:
                    continue
                there = tail.offsets[row]
                other = tail.offsets[row + 1] - there
                place = np.int64(tail.places[at])
                needed = _may_match(k, size, place, other, condition)
                if needed < 0:
                    continue
                seen[row] = q
                common = shared(
                    features, begin, begin + size, tail.features, there, there + other, needed
                )  # fmt: skip
                reached = score(common, size, other, condition.measure) if common > 0 else 0.0
                if reached >= condition.similarity:
                    if found == queries.size:
                        queries, numbers = enlarged(queries), enlarged(numbers)
                        scores = enlarged(scores)
                    queries[found], numbers[found], scores[found] = q, row, reached
                    found += 1
    return queries[:found], numbers[:found], scores[:found]


@kernel
def append_set(features: Any, tail: Any, row: int, used: int, condition: Any) -> int:
    """Put one more row into a tail that has room for it.

    Args:
        features: uint64, ascending.
        tail: TailSets.
        row: Its number.
        used: Entries that the tail has.
        condition: Condition: the measure, and the least similarity that is asked for.

    Returns:
        Entries that the tail has then.
    """
    size, begin = features.size, tail.offsets[row]
    for i in range(size):
        tail.features[begin + i] = features[i]
    tail.offsets[row + 1] = begin + size
    chosen, heavy = np.empty(size, np.int64), np.empty(size, np.uint64)
    wanted = _asked(size, condition)
    first_places(features, 0, size, wanted, tail.order, chosen, heavy)
    mask = np.uint64(tail.heads.size - 1)
    for k in range(wanted):
        key = features[chosen[k]]
        bucket = np.int64((key * SPREAD) >> np.uint64(24) & mask)
        tail.keys[used], tail.rows[used], tail.places[used] = key, row, k
        tail.links[used] = tail.heads[bucket]
        used += 1
        tail.heads[bucket] = used
    return used
