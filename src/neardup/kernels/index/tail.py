"""The newest documents of an index by similarity: chains of those that have a feature."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from neardup.kernels.addresses import addresses_of, int32s, int64s, uint32s, uint64s
from neardup.kernels.bits import prefetch
from neardup.kernels.index.scoring import (
    FIRST_SEEN,
    Queries,
    asked_of,
    larger_found,
    larger_seen,
    new_found,
    new_scratch,
    query_of,
    reached,
    slot_of,
)
from neardup.kernels.index.sets import SPREAD, Order, first_places
from neardup.kernels.jit import inner, kernel

QUERY, STEP, LINK, HELD, FOUND, STATES = range(6)


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


def tail_sets(tail: TailSets) -> Any:
    """A tail as kernels take it: int64."""
    kinds = np.uint64, np.int64, np.int32, np.int32, np.uint64, np.int32, np.int32
    arrays = [*zip(tail[:-1], kinds, strict=True)]
    order = [(tail.order.keys, np.uint64), (tail.order.ranks, np.uint32)]
    return addresses_of([*arrays, *order])


@inner
def _stored(row: Any) -> Any:
    return TailSets(
        uint64s(row[0], row[1]), int64s(row[2], row[3]), int32s(row[4], row[5]),
        int32s(row[6], row[7]), uint64s(row[8], row[9]), int32s(row[10], row[11]),
        int32s(row[12], row[13]), Order(uint64s(row[14], row[15]), uint32s(row[16], row[17])),
    )  # fmt: skip


@inner
def _bucket(heads: Any, key: Any) -> int:
    return np.int64((key * SPREAD) >> np.uint64(24) & np.uint64(heads.size - 1))


@inner
def _search(
    queries: Any, tail: Any, rows: int, condition: Any, scratch: Any, seen: Any, found: Any,
    state: Any,
) -> bool:  # fmt: skip
    """Go on from `state` until all is done, or there is no room: then False."""
    while state[QUERY] < queries.last:
        query, stamp = query_of(queries, state[QUERY]), np.uint64(state[QUERY] + 1) << np.uint64(32)
        asked = asked_of(query.size, condition) if query.size else np.int64(0)
        first_places(
            query.features, query.begin, query.begin + query.size, asked, tail.order,
            scratch.chosen, scratch.heavy,
        )  # fmt: skip
        for k in range(asked):
            key = query.features[query.begin + scratch.chosen[k]]
            prefetch(tail.heads, _bucket(tail.heads, key))
        for k in range(state[STEP], asked):
            key = query.features[query.begin + scratch.chosen[k]]
            link = state[LINK]
            if link < 0:
                link = np.int64(tail.heads[_bucket(tail.heads, key)])
            while link:
                at = link - 1
                number = np.int64(tail.rows[at])
                if tail.keys[at] == key and number < rows:
                    slot = slot_of(seen, stamp, number)
                    if seen[slot] != stamp | np.uint64(number):
                        if 2 * state[HELD] >= seen.size or state[FOUND] == found.numbers.size:
                            state[STEP], state[LINK] = k, link
                            return False
                        place = np.int64(tail.places[at])
                        similarity = reached(query, k, tail, number, place, condition)
                        if similarity >= 0.0:
                            seen[slot] = stamp | np.uint64(number)
                            state[HELD] += 1
                            if similarity >= condition.similarity:
                                count = state[FOUND]
                                found.queries[count], found.numbers[count] = state[QUERY], number
                                found.scores[count] = similarity
                                state[FOUND] += 1
                link = np.int64(tail.links[at])
            state[LINK] = -1
        state[QUERY] += 1
        state[STEP], state[HELD] = 0, 0
    return True


@kernel
def search_tail(
    features: Any, offsets: Any, first: int, last: int, tail: Any, rows: int, condition: Any,
) -> Any:  # fmt: skip
    """Find the rows of a tail that are similar to each of some queries.

    Args:
        features: uint64, each query's ascending.
        offsets: int64 (q + 1,).
        first: First query.
        last: Last query + 1.
        tail: int64: what `tail_sets` gives, made for this similarity or a smaller one.
        rows: Of the tail, how many are asked: the first ones.
        condition: Condition: the measure, and the least similarity that is asked for.

    Returns:
        queries, int64; rows, int64; similarities, float64: by query, in no order.
    """
    queries = Queries(features, offsets, first, last)
    scratch, seen, found = new_scratch(queries), np.zeros(FIRST_SEEN, np.uint64), new_found()
    state, sets = np.zeros(STATES, np.int64), _stored(tail)
    state[QUERY], state[LINK] = first, -1
    while not _search(queries, sets, rows, condition, scratch, seen, found, state):
        if state[FOUND] == found.numbers.size:
            found = larger_found(found)
        else:
            seen = larger_seen(seen, np.uint64(state[QUERY] + 1) << np.uint64(32))
    count = state[FOUND]
    return found.queries[:count], found.numbers[:count], found.scores[:count]


@inner
def _append(
    features: Any, tail: Any, number: int, used: int, condition: Any, chosen: Any, heavy: Any
) -> int:
    begin, size = tail.offsets[number], features.size
    for i in range(size):
        tail.features[begin + i] = features[i]
    tail.offsets[number + 1] = begin + size
    wanted = asked_of(size, condition)
    first_places(features, 0, size, wanted, tail.order, chosen, heavy)
    for k in range(wanted):
        key = features[chosen[k]]
        bucket = _bucket(tail.heads, key)
        tail.keys[used], tail.rows[used], tail.places[used] = key, number, k
        tail.links[used] = tail.heads[bucket]
        used += 1
        tail.heads[bucket] = used
    return used


@kernel
def append_set(features: Any, tail: Any, number: int, used: int, condition: Any) -> int:
    """Put one more row into a tail that has room for it.

    Args:
        features: uint64, ascending.
        tail: int64: what `tail_sets` gives.
        number: Of the row.
        used: Entries that the tail has.
        condition: Condition: the measure, and the least similarity that is asked for.

    Returns:
        Entries that the tail has then.
    """
    chosen, heavy = np.empty(features.size, np.int64), np.empty(features.size, np.uint64)
    return _append(features, _stored(tail), number, used, condition, chosen, heavy)
