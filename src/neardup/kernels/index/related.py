"""The most similar sets, however little they share: by lists of the sets that have a feature.

A query's features are followed from the one that tells most for the length of its list. A set that
has none of those shares at most the others with the query. So it reaches what enough of the met
sets reach already only if it is neither too light nor too heavy, and few sets are left. See
docs/decisions/0013, and Turtle and Flood, Query evaluation: strategies and optimizations, 1995.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from neardup.kernels.features.lookup import find
from neardup.kernels.index.scoring import first_from
from neardup.kernels.index.sets import SPREAD, bucket_of, enlarged
from neardup.kernels.jit import inner, kernel
from neardup.kernels.similarity.measures import CONTAINMENT, JACCARD

FLAG_BITS: Final = 15
"""Most features of a set are not a query's: so many flags tell, and fit the fastest cache."""
FIRST_LOOK: Final = 4096
"""Entries of lists after which the sets met so far are compared for the first time."""
SLACK: Final = 1.0 + 1e-5
"""Sums of 32 bits are a little off; what they bound is bounded with this to spare."""
TINY: Final = 1e-9
"""Of a sum: what differences of sums of 64 bits may be off."""


class Lists(NamedTuple):
    """Sets by their features: bucket b has sets[starts[b]:starts[b + 1]].

    Features of one bucket share a list, so a list says at most too much. `starts` is uint32
    (2**bits + 1,), `sets` uint32, `heavy` bool (2**bits,): lists that are too long to be kept.
    """

    starts: Any
    sets: Any
    heavy: Any
    bits: Any


class Asked(NamedTuple):
    """A query: `features` uint64 ascending, their `weights` float64, and `own`, the weights' sum.

    A weight is what a shared feature adds: 1, or its square in a weighted cosine.
    """

    features: Any
    weights: Any
    own: float


class Ranks(NamedTuple):
    """Sets by the sum of their weights, the lightest first.

    `order` uint32 (m,): which; `sums` float64 (m,); `ends` int64 (m + 1,): features before each.
    """

    order: Any
    sums: Any
    ends: Any


class Met(NamedTuple):
    """Scratch for m sets: what the lists told of each, and which ones they named.

    `sums` float32 (m,): weights that are shared at most, zeros before and after; `sets` uint32
    (m,).
    """

    sums: Any
    sets: Any


class Compared(NamedTuple):
    """Stored sets: `features` uint64, `offsets` int64 (m + 1,), `sums` float64 (m,) of weights."""

    features: Any
    offsets: Any
    sums: Any


@kernel
def make_lists(features: Any, offsets: Any, bits: Any, most: int) -> Any:
    """Make Lists; O(features + 2**bits).

    Args:
        features: uint64, each set ascending.
        offsets: int64 (m + 1,).
        bits: uint64, of the buckets.
        most: A longer list is not kept.

    Returns:
        starts, sets and heavy of Lists; the last of starts is to be left out.
    """
    buckets = np.int64(1) << np.int64(bits)
    starts, heavy = np.zeros(buckets + 2, np.uint32), np.zeros(buckets, np.bool_)
    for at in range(offsets[0], offsets[offsets.size - 1]):
        starts[bucket_of(features[at] * SPREAD, bits) + 2] += np.uint32(1)
    for b in range(buckets):
        if starts[b + 2] > most:
            heavy[b], starts[b + 2] = True, np.uint32(0)
    for b in range(buckets + 1):
        starts[b + 1] += starts[b]
    sets = np.empty(np.int64(starts[buckets + 1]), np.uint32)
    for i in range(offsets.size - 1):
        for at in range(offsets[i], offsets[i + 1]):
            b = bucket_of(features[at] * SPREAD, bits)
            if not heavy[b]:
                sets[np.int64(starts[b + 1])] = np.uint32(i)
                starts[b + 1] += np.uint32(1)
    return starts, sets, heavy


@kernel
def weigh(features: Any, table: Any, missing: int, weights: Any) -> None:
    """Write the square of each feature's weight to float64 (n,); the rest as of `sum_weights`."""
    mask = np.uint64(table.size // 2 - 1)
    for i in range(features.size):
        weight = find(table, mask, features[i], missing) / 65536.0
        weights[i] = weight * weight


@kernel
def sum_weights(
    features: Any, offsets: Any, first: int, last: int, table: Any, missing: int, sums: Any
) -> None:
    """Write the sum of the squares of each set's weights.

    Args:
        features: uint64.
        offsets: int64 (m + 1,).
        first: First set.
        last: Last set + 1.
        table: uint64: a hash_table of weights in units of 2**-16.
        missing: Units of a feature that is not in it.
        sums: float64 (m,), written.
    """
    mask = np.uint64(table.size // 2 - 1)
    for i in range(first, last):
        total = 0.0
        for at in range(offsets[i], offsets[i + 1]):
            weight = find(table, mask, features[at], missing) / 65536.0
            total += weight * weight
        sums[i] = total


@inner
def _similarity(total: float, own: float, other: float, measure: int) -> float:
    """Of two sets by their weights and those of what they share."""
    if measure == JACCARD:
        return total / (own + other - total)
    if measure == CONTAINMENT:
        return total / min(own, other)
    return total / math.sqrt(own * other)


@inner
def _reaches(total: float, own: float, other: float, limit: float, measure: int) -> bool:
    """Whether `_similarity` is the limit or more, or a little less: without a division."""
    if measure == JACCARD:
        return total * (1.0 + limit) * SLACK >= limit * (own + other)
    return total * total * SLACK >= limit * limit * own * other


@inner
def _unmet(rest: float, own: float, limit: float, measure: int) -> Any:
    """The least and the most sum of a set that reaches the limit and shares at most `rest`.

    A lighter one reaches too little if it has nothing else; a heavier one has too much else.
    """
    if limit <= 0.0:
        return 0.0, np.inf
    if measure == JACCARD:
        return limit * own / SLACK, (rest / limit + rest) * SLACK - own / SLACK
    return limit * limit * own / SLACK, rest * rest / (limit * limit * own) * SLACK


@inner
def _from_sum(ranks: Any, total: float) -> int:
    """How many sets are lighter."""
    return first_from(ranks.sums, 0, ranks.sums.size, total)


@inner
def _left(rest: float, asked: Any, limit: float, measure: int, ranks: Any) -> Any:
    """The places, by sum, of the sets that may be wanted although no list met them."""
    if rest <= 0.0:
        return 0, 0
    least, most = _unmet(rest, asked.own, limit, measure)
    begin = _from_sum(ranks, least)
    return begin, max(begin, _from_sum(ranks, most))


@inner
def _raise_flags(features: Any, flags: Any, value: Any) -> None:
    shift = np.uint64(64 - FLAG_BITS)
    for i in range(features.size):
        flags[np.int64((features[i] * SPREAD) >> shift)] = value


@inner
def _shared_weight(asked: Any, flags: Any, sets: Any, number: int) -> float:
    """The weights of what a set shares with the query; O(features of the set)."""
    total, shift = 0.0, np.uint64(64 - FLAG_BITS)
    for at in range(sets.offsets[number], sets.offsets[number + 1]):
        feature = sets.features[at]
        if flags[np.int64((feature * SPREAD) >> shift)]:
            place = first_from(asked.features, 0, asked.features.size, feature)
            if place < asked.features.size and asked.features[place] == feature:
                total += asked.weights[place]
    return total


@kernel
def score_related(asked: Any, sets: Any, first: int, last: int, measure: int, scores: Any) -> None:
    """Write how similar a query is to each of the sets first..last-1; O(their features).

    Args:
        asked: Asked.
        sets: Compared.
        first: First set.
        last: Last set + 1.
        measure: JACCARD, COSINE or CONTAINMENT.
        scores: float64 (last - first,), written; 0 where nothing is shared.
    """
    flags = np.zeros(1 << FLAG_BITS, np.uint8)
    _raise_flags(asked.features, flags, np.uint8(1))
    for number in range(first, last):
        total, reached = _shared_weight(asked, flags, sets, number), 0.0
        if total > 0:
            reached = _similarity(total, asked.own, sets.sums[number], measure)
        scores[number - first] = reached


@inner
def _keep_best(best: Any, places: Any, held: int, score: float, place: int) -> int:
    """Put a score into an ascending array of the best ones, if it is one of them; how many are."""
    if held == best.size:
        if held == 0 or score <= best[0]:
            return held
        at = 0
        while at + 1 < held and best[at + 1] < score:
            best[at], places[at] = best[at + 1], places[at + 1]
            at += 1
        best[at], places[at] = score, place
        return held
    at = held
    while at and best[at - 1] > score:
        best[at], places[at] = best[at - 1], places[at - 1]
        at -= 1
    best[at], places[at] = score, place
    return held + 1


@inner
def _order_of(asked: Any, lists: Any, order: Any, costs: Any) -> int:
    """Write which features have lists, those that tell most an entry first; how many have."""
    count = 0
    for i in range(asked.features.size):
        bucket = bucket_of(asked.features[i] * SPREAD, lists.bits)
        if lists.heavy[bucket]:
            continue
        length = np.int64(lists.starts[bucket + 1]) - np.int64(lists.starts[bucket])
        order[count], costs[count] = i, (length + 1) / asked.weights[i]
        count += 1
    step = 1
    while step < count // 3:
        step = 3 * step + 1
    while step:
        for i in range(step, count):
            cost, place, j = costs[i], order[i], i
            while j >= step and costs[j - step] > cost:
                costs[j], order[j] = costs[j - step], order[j - step]
                j -= step
            costs[j], order[j] = cost, place
        step //= 3
    return count


@inner
def _limit(
    asked: Any, sets: Any, flags: Any, measure: int, met: Any, used: int, best: Any, places: Any,
) -> float:  # fmt: skip
    """What as many of the met sets as `best` has room for reach at least; 0 for fewer."""
    held = 0
    if best.size == 0:
        return 0.0
    for i in range(used):
        number = np.int64(met.sets[i])
        other = sets.sums[number]
        about = min(np.float64(met.sums[number]), asked.own, other)
        if held == best.size and not _reaches(about, asked.own, other, best[0], measure):
            continue
        held = _keep_best(best, places, held, _similarity(about, asked.own, other, measure), number)
    if held < best.size or not held:
        return 0.0
    least = np.inf
    for i in range(held):
        total = _shared_weight(asked, flags, sets, places[i])
        least = min(least, _similarity(total, asked.own, sets.sums[places[i]], measure))
    return least


@kernel
def rank_sets(
    asked: Any, lists: Any, sets: Any, ranks: Any, measure: int, n: int, floor: float, scratch: Any,
) -> Any:  # fmt: skip
    """Find the n sets that are most similar to a query, and all that are as similar as the last.

    Lists are followed until it costs no more to compare the sets that none of them met and that
    may be wanted all the same, by their sums.

    Args:
        asked: Asked.
        lists: Lists of these sets.
        sets: Compared.
        ranks: Ranks of these sets.
        measure: JACCARD or COSINE.
        n: How many.
        floor: Less similar ones are not wanted.
        scratch: Met, for these sets.

    Returns:
        sets, int64; similarities, float64, in no order: all that are as similar as the least.
    """
    sums, met, size = scratch.sums, scratch.sets, asked.features.size
    order, costs = np.empty(size, np.int64), np.empty(size, np.float64)
    flags = np.zeros(1 << FLAG_BITS, np.uint8)
    _raise_flags(asked.features, flags, np.uint8(1))
    best, places = np.empty(min(n, sets.sums.size)), np.empty(min(n, sets.sums.size), np.int64)
    count, used, followed, look = _order_of(asked, lists, order, costs), 0, 0, FIRST_LOOK
    rest, limit, k = asked.own, floor, 0
    begin, end = _left(rest, asked, limit, measure, ranks)
    while k < count and ranks.ends[end] - ranks.ends[begin] > followed:
        i = order[k]
        weight = np.float32(asked.weights[i])
        bucket = bucket_of(asked.features[i] * SPREAD, lists.bits)
        for at in range(np.int64(lists.starts[bucket]), np.int64(lists.starts[bucket + 1])):
            number = np.int64(lists.sets[at])
            if sums[number] == 0:
                met[used] = np.uint32(number)
                used += 1
            sums[number] += weight
            followed += 1
        rest -= asked.weights[i]
        k += 1
        if followed >= look or k == count:
            look = 4 * followed
            found = _limit(asked, sets, flags, measure, scratch, used, best, places)
            limit = max(limit, found)
        left = max(0.0, rest) * SLACK + TINY * asked.own if k < size else 0.0
        begin, end = _left(left, asked, limit, measure, ranks)
    rest = max(0.0, rest) * SLACK + TINY * asked.own if k < size else 0.0
    limit = max(limit, _limit(asked, sets, flags, measure, scratch, used, best, places))
    begin, end = _left(rest, asked, limit, measure, ranks)
    numbers, scores, found, held = np.empty(64, np.int64), np.empty(64, np.float64), 0, 0
    for i in range(used + end - begin):
        number = np.int64(met[i]) if i < used else np.int64(ranks.order[begin + i - used])
        if i >= used and sums[number] != 0:
            continue
        other = sets.sums[number]
        most = min(sums[number] * SLACK + rest, asked.own, other)
        if not _reaches(most, asked.own, other, limit, measure):
            continue
        total = _shared_weight(asked, flags, sets, number)
        reached = _similarity(total, asked.own, other, measure) if total > 0 else 0.0
        if reached == 0 or reached < limit:
            continue
        held = _keep_best(best, places, held, reached, number)
        if held == best.size:
            limit = max(limit, best[0])
        if found == numbers.size:
            numbers, scores = enlarged(numbers), enlarged(scores)
        numbers[found], scores[found] = number, reached
        found += 1
    for i in range(used):
        sums[np.int64(met[i])] = np.float32(0)
    # Before the limit rose, sets were kept that now stand among others that were not.
    wanted = scores[:found] >= limit
    return numbers[:found][wanted], scores[:found][wanted]
