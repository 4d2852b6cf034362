"""Find the stored sets that are similar to a query: by prefix, size and place, then by features.

If x and y share t features or more, the first shared one in any order of all features is among the
first |x| - t + 1 of x and the first |y| - t + 1 of y. See docs/decisions/0012 and Bayardo, Ma and
Srikant, Scaling up all pairs similarity search, WWW 2007; Xiao et al., Efficient similarity joins
for near duplicate detection, WWW 2008 (places).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.bits import popcount, prefetch
from neardup.kernels.index.scoring import (
    CANDIDATES,
    ENTRY,
    FIRST_SEEN,
    HITS,
    PART,
    QUERY,
    SKETCH_WORDS,
    STAMP,
    STEP,
    Queries,
    lookup_count,
    make_sketch,
    more_room,
    new_hits,
    new_scratch,
    new_state,
    next_query,
    query_of,
    reached,
    sketch_of,
    slot_of,
)
from neardup.kernels.index.sets import (
    LOW,
    SPREAD,
    Order,
    Postings,
    bucket_of,
    check_of,
    contained_prefix,
    first_places,
)
from neardup.kernels.jit import inner, kernel
from neardup.kernels.segment_addresses import addresses_of, int64s, uint32s, uint64s
from neardup.kernels.similarity.measure_bounds import CONTAINMENT, least_overlap, needed_overlap
from neardup.kernels.sorting import first_from

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Offsets
    from neardup.kernels.similarity.join_arguments import Condition

LONG_BUCKET: Final = 32
ENTRIES_A_WORD: Final = 4
"""The time to read an entry, as a number of words of consecutive sketches."""
TELLING_BITS: Final = 24
"""Bits of a word: sketches of different sets mostly differ in 32, rarely in fewer than these."""
_PLACE: Final = np.uint64(0xFFF)


class StoredSets(NamedTuple):
    """Distinct sets of a segment, by size, with the arrays that find them.

    Args:
        features: uint64, each set ascending.
        offsets: int64 (m + 1,).
        sizes: int64: the different sizes, ascending.
        firsts: int64: the first set of each size, and m.
        order: Order.
        prefixes: Postings of each set's prefix.
        rest: Postings of the other features, for containment.
        sketches: uint64, `words` of each set: see `sketch_of`.
        words: 1, 2 or 4.
    """

    features: Any
    offsets: Any
    sizes: Any
    firsts: Any
    order: Any
    prefixes: Any
    rest: Any
    sketches: Any
    words: int


def stored_sets(arrays: dict[str, Any]) -> Any:
    """A segment's StoredSets as `search_sets` takes them: int64, a row of its parts."""
    kinds = {
        "features": np.uint64, "offsets": np.int64, "sizes": np.int64, "firsts": np.int64,
        "order_keys": np.uint64, "order_ranks": np.uint32, "starts": np.uint32,
        "entries": np.uint64, "rest_starts": np.uint32, "rest_entries": np.uint64,
        "sketches": np.uint64,
    }  # fmt: skip
    bits = [(len(arrays[name]) - 1).bit_length() - 1 for name in ("starts", "rest_starts")]
    places = addresses_of([(arrays[name], kind) for name, kind in kinds.items()])
    return np.array([*places.tolist(), *bits, arrays["sketches"].shape[1]], np.int64)


@inner
def _stored(row: Any) -> Any:
    order = Order(uint64s(row[8], row[9]), uint32s(row[10], row[11]))
    prefixes = Postings(uint32s(row[12], row[13]), uint64s(row[14], row[15]), np.uint64(row[22]))
    rest = Postings(uint32s(row[16], row[17]), uint64s(row[18], row[19]), np.uint64(row[23]))
    return StoredSets(
        uint64s(row[0], row[1]), int64s(row[2], row[3]), int64s(row[4], row[5]),
        int64s(row[6], row[7]), order, prefixes, rest, uint64s(row[20], row[21]), row[24],
    )  # fmt: skip


@inner
def _size_range(size: int, sets: Any, condition: Condition) -> Any:
    """The first and the last + 1 of the sets whose sizes can be similar enough."""
    if condition.measure == CONTAINMENT:
        return np.int64(0), sets.firsts[sets.sizes.size]
    least = least_overlap(size, condition)
    low = first_from(sets.sizes, 0, sets.sizes.size, least)
    end, high = low, sets.sizes.size
    while end < high:
        middle = (end + high) >> 1
        if least_overlap(sets.sizes[middle], condition) <= size:
            end = middle + 1
        else:
            high = middle
    return sets.firsts[low], sets.firsts[end]


@inner
def _first_entry(postings: Any, begin: int, end: int, number: int) -> int:
    """The first entry of a bucket whose set is `number` or later."""
    while begin < end:
        middle = (begin + end) >> 1
        if np.int64(postings.entries[middle] & LOW) < number:
            begin = middle + 1
        else:
            end = middle
    return begin


@inner
def _entries_of(spread: Any, postings: Any, most: int) -> int:
    """Count the entries of a feature's bucket, up to a limit; prefetch the first and the last."""
    bucket = bucket_of(spread, postings.bits)
    begin, end = np.int64(postings.starts[bucket]), np.int64(postings.starts[bucket + 1])
    prefetch(postings.entries, begin)
    prefetch(postings.entries, end - 1)
    return min(most, end - begin)


@inner
def _first_near(mine: Any, sets: Any, number: int, last: int, most: int) -> int:
    """The first set from `number` on whose sketch differs in few enough bits, or `last`."""
    sketches, one, two = sets.sketches, mine[0], mine[1]
    if sets.words == SKETCH_WORDS:
        while number < last:
            at = number * SKETCH_WORDS
            apart = popcount(one ^ sketches[at]) + popcount(two ^ sketches[at + 1])
            apart += popcount(mine[2] ^ sketches[at + 2]) + popcount(mine[3] ^ sketches[at + 3])
            if apart <= most:
                break
            number += 1
    elif sets.words > 1:
        one, two = one ^ mine[2], two ^ mine[3]
        while number < last:
            at = 2 * number
            if popcount(one ^ sketches[at]) + popcount(two ^ sketches[at + 1]) <= most:
                break
            number += 1
    else:
        one ^= two ^ mine[2] ^ mine[3]
        while number < last and popcount(one ^ sketches[number]) > most:
            number += 1
    return number


@inner
def sketches_tell(query: Any, sets: Any, condition: Condition) -> bool:
    """Whether most different sets of the query's size have a sketch that is too far away."""
    least = needed_overlap(query.size, query.size, condition)
    return 2 * (query.size - least) < TELLING_BITS * sets.words


@inner
def _look_at_all(
    query: Any, sets: Any, low: int, high: int, condition: Condition, hits: Any, state: Any
) -> bool:
    """As `_look_up`, by a look at every sketch of the sets from `low` to `high`, sorted by size."""
    make_sketch(query)
    number, count, size = max(low, state[ENTRY]), state[HITS], query.size
    while number < high:
        other = sets.offsets[number + 1] - sets.offsets[number]
        last = min(high, sets.firsts[first_from(sets.sizes, 0, sets.sizes.size, other) + 1])
        needed = max(np.int64(1), needed_overlap(size, other, condition))
        if min(size, other) < needed:
            number = last
        while number < last:
            number = _first_near(query.sketch, sets, number, last, size + other - 2 * needed)
            if number == last:
                break
            if count == hits.numbers.size:
                state[ENTRY], state[HITS] = number, count
                return False
            similarity = reached(query, 0, sets, number, 0, condition)
            if similarity >= condition.similarity:
                hits.parts[count], hits.queries[count] = state[PART], state[QUERY]
                hits.numbers[count], hits.scores[count] = number, similarity
                count += 1
            number += 1
    state[ENTRY], state[HITS] = -1, count
    return True


@inner
def _look_up(
    query: Any, sets: Any, condition: Condition, scratch: Any, seen: Any, hits: Any, state: Any
) -> bool:
    """Find the sets of a segment that are similar to a query; False if the buffers are full."""
    low, high = _size_range(query.size, sets, condition)
    if low >= high:
        return True
    prefix, contained, spreads = lookup_count(query.size, condition), 0, scratch.spreads
    candidates, count, stamp = (
        state[CANDIDATES],
        state[HITS],
        np.uint64(state[STAMP]) << np.uint64(32),
    )
    first_places(
        query.features, query.begin, query.begin + query.size, prefix, sets.order,
        scratch.chosen, scratch.heavy,
    )  # fmt: skip
    for k in range(prefix):
        spreads[k] = query.features[query.begin + scratch.chosen[k]] * SPREAD
        prefetch(sets.prefixes.starts, bucket_of(spreads[k], sets.prefixes.bits))
    ahead = 0
    for k in range(prefix):
        ahead += _entries_of(spreads[k], sets.prefixes, high - low)
    if condition.measure == CONTAINMENT:
        contained = contained_prefix(query.size, condition)
        for k in range(contained):
            ahead += _entries_of(spreads[k], sets.rest, high - low)
    crowded = ENTRIES_A_WORD * ahead > sets.words * (high - low)
    if crowded and sketches_tell(query, sets, condition):
        return _look_at_all(query, sets, low, high, condition, hits, state)
    for step in range(state[STEP], prefix + contained):
        k, postings = step, sets.prefixes
        if step >= prefix:
            k, postings = step - prefix, sets.rest
        bucket = bucket_of(spreads[k], postings.bits)
        check = check_of(spreads[k], postings.bits)
        begin, end = np.int64(postings.starts[bucket]), np.int64(postings.starts[bucket + 1])
        if end - begin > LONG_BUCKET:
            begin = _first_entry(postings, begin, end, low)
            end = _first_entry(postings, begin, end, high)
        at = max(begin, state[ENTRY])
        while at < end:
            entry = postings.entries[at]
            number = np.int64(entry & LOW)
            if entry >> np.uint64(44) == check and low <= number < high:
                slot = slot_of(seen, stamp, number)
                if seen[slot] != stamp | np.uint64(number):
                    if 2 * candidates >= seen.size or count == hits.numbers.size:
                        state[STEP], state[ENTRY] = step, at
                        state[CANDIDATES], state[HITS] = candidates, count
                        return False
                    place = np.int64(entry >> np.uint64(32) & _PLACE)
                    similarity = reached(query, k, sets, number, place, condition)
                    if similarity >= 0.0:
                        seen[slot] = stamp | np.uint64(number)
                        candidates += 1
                        if similarity >= condition.similarity:
                            hits.parts[count], hits.queries[count] = state[PART], state[QUERY]
                            hits.numbers[count], hits.scores[count] = number, similarity
                            count += 1
            at += 1
        state[ENTRY] = -1
    state[HITS] = count
    return True


@inner
def search_parts(
    queries: Any, parts: Int64s, condition: Condition, scratch: Any, seen: Any, hits: Any,
    state: Any,
) -> bool:  # fmt: skip
    """Search the parts from `state` on to the end; False if the buffers are full."""
    while state[PART] < parts.shape[0]:
        sets = _stored(parts[state[PART]])
        while state[QUERY] < queries.last:
            query = query_of(queries, state[QUERY], scratch)
            if query.size and not _look_up(query, sets, condition, scratch, seen, hits, state):
                return False
            next_query(state)
        state[QUERY] = queries.first
        state[PART] += 1
    return True


@kernel
def make_sketches(features: Any, offsets: Offsets, out: Any, words: int) -> None:
    """Write the sketch of each set to `out`, uint64 (m * words,); O(features)."""
    for i in range(offsets.size - 1):
        sketch_of(features, offsets[i], offsets[i + 1], out, i * words, words)


@kernel
def search_sets(
    features: Any, offsets: Offsets, first: int, last: int, parts: Int64s, condition: Condition,
) -> Any:  # fmt: skip
    """Find the sets of some segments that are similar to each of some queries.

    Args:
        features: uint64, each query's ascending.
        offsets: int64 (q + 1,).
        first: First query.
        last: Last query + 1.
        parts: int64 (p, 25): of each segment what `stored_sets` gives, made for this similarity
            or a smaller one.
        condition: Condition: the measure, and the least similarity of a match.

    Returns:
        segments, int64; queries, int64; sets, int64; similarities, float64: by segment, then by
        query, in no order.
    """
    queries = Queries(features, offsets, first, last)
    scratch, seen, hits = new_scratch(queries), np.zeros(FIRST_SEEN, np.uint64), new_hits()
    state = new_state(first)
    while not search_parts(queries, parts, condition, scratch, seen, hits, state):
        hits, seen = more_room(hits, seen, state)
    count = state[HITS]
    return (
        hits.parts[:count], hits.queries[:count], hits.numbers[:count], hits.scores[:count],
    )  # fmt: skip
