"""The newest documents of an index by similarity: chains of those that have a feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.bits import prefetch
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
    Query,
    lookup_count,
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
from neardup.kernels.index.sets import LOW, MOST_PLACE, SPREAD, Order, first_places
from neardup.kernels.index.similar import sketches_tell
from neardup.kernels.jit import inner, kernel
from neardup.kernels.segment_addresses import addresses_of, int64s, uint32s, uint64s
from neardup.kernels.similarity.join_arguments import Condition

if TYPE_CHECKING:
    from neardup.kernels.array_types import Offsets, Uint32s

MOST_TAIL: Final = 1 << 16
"""The most rows of a tail."""
ROW: Final = np.uint64(MOST_TAIL - 1)
PLACE: Final = np.uint64(0xFFFF)


class TailSets(NamedTuple):
    """The newest documents' sets, one after the other, chained by feature.

    Args:
        features: uint64; only what offsets say is set.
        offsets: int64 (rows + 1,).
        heads: uint32 (2**b,): the last entry of each bucket plus 1.
        entries: uint64, two of each: the feature; the entry before plus 1 (32 bits), the place in
            the order (16), the row (16).
        sketches: uint64 (rows * words,): see `sketch_of`.
        order: Order.
        words: SKETCH_WORDS.
    """

    features: Any
    offsets: Any
    heads: Any
    entries: Any
    sketches: Any
    order: Any
    words: int


def tail_sets(tail: TailSets) -> Any:
    """A tail as kernels take it: int64."""
    kinds = np.uint64, np.int64, np.uint32, np.uint64, np.uint64
    arrays = [*zip(tail[: len(kinds)], kinds, strict=True)]
    order = [(tail.order.keys, np.uint64), (tail.order.ranks, np.uint32)]
    return addresses_of([*arrays, *order])


@inner
def tail_at(row: Any) -> Any:
    """The tail that a result of `tail_sets` stands for."""
    return TailSets(
        uint64s(row[0], row[1]), int64s(row[2], row[3]), uint32s(row[4], row[5]),
        uint64s(row[6], row[7]), uint64s(row[8], row[9]),
        Order(uint64s(row[10], row[11]), uint32s(row[12], row[13])), np.int64(SKETCH_WORDS),
    )  # fmt: skip


@inner
def bucket_in(heads: Uint32s, key: Any) -> int:
    return np.int64((key * SPREAD) >> np.uint64(24) & np.uint64(heads.size - 1))


@inner
def _search_all(
    query: Any, tail: TailSets, rows: int, condition: Condition, seen: Any, hits: Any, state: Any
) -> bool:  # fmt: skip
    """Compare a query with unseen rows from state[ENTRY] on; False if the buffers are full."""
    stamp = np.uint64(state[STAMP]) << np.uint64(32)
    for number in range(max(np.int64(0), state[ENTRY]), rows):
        similarity = reached(query, 0, tail, number, 0, condition)
        if similarity >= condition.similarity:
            value = stamp | np.uint64(number)
            if seen[slot_of(seen, stamp, number)] != value:
                count = state[HITS]
                if count == hits.numbers.size:
                    state[ENTRY] = number
                    return False
                hits.parts[count], hits.queries[count] = state[PART], state[QUERY]
                hits.numbers[count], hits.scores[count] = number, similarity
                state[HITS] += 1
    return True


@inner
def search_rows(
    queries: Any, tail: TailSets, rows: int, condition: Condition, scratch: Any, seen: Any,
    hits: Any, state: Any,
) -> bool:  # fmt: skip
    """Search the rows for queries from `state` on; False if the buffers are full.

    A query that meets more rows than `seen` holds is compared with all, where sketches tell.
    """
    chosen, heads, entries = scratch.chosen, tail.heads, tail.entries
    while state[QUERY] < queries.last:
        query = query_of(queries, state[QUERY], scratch)
        stamp = np.uint64(state[STAMP]) << np.uint64(32)
        prefix = lookup_count(query.size, condition) if query.size else np.int64(0)
        first_places(
            query.features, query.begin, query.begin + query.size, prefix, tail.order,
            chosen, scratch.heavy,
        )  # fmt: skip
        for k in range(prefix):
            prefetch(heads, bucket_in(heads, query.features[query.begin + chosen[k]]))
        for k in range(prefix):
            link = heads[bucket_in(heads, query.features[query.begin + chosen[k]])]
            if link:
                prefetch(entries, 2 * np.int64(link) - 2)
        is_crowd = 0 < prefix == state[STEP]
        tell = sketches_tell(query, tail, condition)
        for k in range(state[STEP], prefix):
            if is_crowd:
                break
            key = query.features[query.begin + chosen[k]]
            link = state[ENTRY]
            if link < 0:
                link = np.int64(heads[bucket_in(heads, key)])
            while link:
                packed = entries[2 * link - 1]
                number = np.int64(packed & ROW)
                if entries[2 * link - 2] == key and number < rows:
                    slot = slot_of(seen, stamp, number)
                    if seen[slot] != stamp | np.uint64(number):
                        is_crowd = 2 * state[CANDIDATES] >= seen.size and tell
                        if is_crowd:
                            break
                        if 2 * state[CANDIDATES] >= seen.size or state[HITS] == hits.numbers.size:
                            state[STEP], state[ENTRY] = k, link
                            return False
                        place = np.int64(packed >> np.uint64(16) & PLACE)
                        similarity = reached(query, k, tail, number, place, condition)
                        if similarity >= 0.0:
                            seen[slot] = stamp | np.uint64(number)
                            state[CANDIDATES] += 1
                            if similarity >= condition.similarity:
                                count = state[HITS]
                                hits.parts[count], hits.queries[count] = state[PART], state[QUERY]
                                hits.numbers[count], hits.scores[count] = number, similarity
                                state[HITS] += 1
                link = np.int64(packed >> np.uint64(32))
            state[ENTRY] = -1
        if is_crowd:
            state[STEP] = prefix
            if not _search_all(query, tail, rows, condition, seen, hits, state):
                return False
        next_query(state)
    return True


@kernel
def search_tail(
    features: Any, offsets: Offsets, first: int, last: int, tail: TailSets, rows: int,
    condition: Condition,
) -> Any:  # fmt: skip
    """Find the rows of a tail that are similar to each of some queries.

    Args:
        features: uint64, each query's ascending.
        offsets: int64 (q + 1,).
        first: First query.
        last: Last query + 1.
        tail: int64: what `tail_sets` gives, made for this similarity or a smaller one.
        rows: How many rows of the tail are searched: the first ones.
        condition: Condition: the measure, and the least similarity of a match.

    Returns:
        queries, int64; rows, int64; similarities, float64: by query, in no order.
    """
    queries = Queries(features, offsets, first, last)
    scratch, seen, hits = new_scratch(queries), np.zeros(FIRST_SEEN, np.uint64), new_hits()
    state, sets = new_state(first), tail_at(tail)
    while not search_rows(queries, sets, rows, condition, scratch, seen, hits, state):
        hits, seen = more_room(hits, seen, state)
    count = state[HITS]
    return hits.queries[:count], hits.numbers[:count], hits.scores[:count]


@kernel
def link_entries(entries: Any, count: int, heads: Uint32s) -> None:
    """Chain the first `count` entries again from `heads` (uint32, zeros); see TailSets."""
    for at in range(count):
        bucket = bucket_in(heads, entries[2 * at])
        before = np.uint64(heads[bucket]) << np.uint64(32)
        entries[2 * at + 1] = before | entries[2 * at + 1] & LOW
        heads[bucket] = at + 1


@inner
def append_chosen(
    query: Any, tail: TailSets, number: int, used: int, prefix: int, chosen: Any
) -> int:
    """Put one more row into a tail that has room for it; `chosen` are its first features."""
    features, begin, size = query.features, query.begin, query.size
    there = tail.offsets[number]
    for i in range(size):
        tail.features[there + i] = features[begin + i]
    tail.offsets[number + 1] = there + size
    sketch_of(features, begin, begin + size, tail.sketches, number * SKETCH_WORDS, SKETCH_WORDS)
    for k in range(prefix):
        prefetch(tail.heads, bucket_in(tail.heads, features[begin + chosen[k]]))
    for k in range(prefix):
        key = features[begin + chosen[k]]
        bucket = bucket_in(tail.heads, key)
        before = np.uint64(tail.heads[bucket]) << np.uint64(32)
        place = np.uint64(min(k, MOST_PLACE)) << np.uint64(16)
        tail.entries[2 * used] = key
        tail.entries[2 * used + 1] = before | place | np.uint64(number)
        used += 1
        tail.heads[bucket] = used
    return used


@kernel
def append_set(
    features: Any, tail: TailSets, number: int, used: int, measure: int, similarity: float
) -> int:
    """As `append_sets`, for one set: uint64, ascending; see Condition for the last two."""
    size, sets = np.int64(features.size), tail_at(tail)
    chosen, heavy = np.empty(size, np.int64), np.empty(size, np.uint64)
    prefix = lookup_count(size, Condition(measure, similarity, np.int64(0)))
    first_places(features, 0, size, prefix, sets.order, chosen, heavy)
    query = Query(features, np.int64(0), size, heavy)
    return append_chosen(query, sets, number, used, prefix, chosen)


@inner
def _append_all(
    queries: Queries, tail: TailSets, number: int, used: int, condition: Condition, scratch: Any
) -> int:
    """Do the work of `append_sets`, which makes the arrays, so that nothing is allocated here."""
    chosen = scratch.chosen
    for q in range(queries.first, queries.last):
        query = query_of(queries, q, scratch)
        begin, prefix = query.begin, lookup_count(query.size, condition)
        first_places(
            query.features, begin, begin + query.size, prefix, tail.order, chosen, scratch.heavy
        )
        used = append_chosen(query, tail, number, used, prefix, chosen)
        number += 1
    return used


@kernel
def append_sets(
    queries: Queries, tail: TailSets, number: int, used: int, condition: Condition
) -> int:
    """Append sets to a tail that has room for them; O(features).

    Args:
        queries: Queries: the sets.
        tail: int64: what `tail_sets` gives.
        number: The row of the first.
        used: Entries that the tail has.
        condition: The measure, and the least similarity of later searches.

    Returns:
        The new number of entries of the tail.
    """
    scratch = new_scratch(queries)
    return np.int64(_append_all(queries, tail_at(tail), number, used, condition, scratch))
