"""The most similar sets, however little they share: by lists of the sets that have a feature.

A query's features are followed from the one that tells most for the length of its list. A set that
has none of those shares at most the others with the query. So it reaches what enough of the met
sets reach already only if it is neither too light nor too heavy, and few sets are left. See
docs/decisions/0013, and Turtle and Flood, Query evaluation: strategies and optimizations, 1995.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.features.lookup import find
from neardup.kernels.index.sets import SPREAD, bucket_of, enlarged
from neardup.kernels.jit import fill, inner, kernel
from neardup.kernels.similarity.measure_bounds import overlap, reaches, score
from neardup.kernels.sorting import first_from

if TYPE_CHECKING:
    from neardup.kernels.array_types import Float64s, Offsets

FLAG_BITS: Final = 15
"""Flags for features of a query, few enough for the fastest cache; most features of a set have
none of them."""
FIRST_LOOK: Final = 4096
"""Entries of lists after which the sets met so far are compared for the first time."""
LOOK_SHARE: Final = 64
"""Sets for each entry before the first comparison, where that is more entries than FIRST_LOOK: the
more sets there are, the more it pays to know beforehand."""
RESTING: Final = 0.4
"""The share of the required weight that may be left to the comparison of sets."""
RANGE: Final = 1 << 15
"""The number of sets whose totals are added up at once: 128 KiB, which stay in a core's cache."""
BLOCK: Final = 64
"""The number of sets that are passed over together where the largest total is too small."""
UNITS: Final = float(1 << 30)
"""The weight of a whole query, in units of the totals."""
MOST_UNITS: Final = np.uint32(1 << 31)
SLACK: Final = 1.0 + 1e-5
"""A factor for bounds that are made of sums of 32 bits, which are a little off."""
TINY: Final = 1e-9
"""The share of a sum by which differences of sums of 64 bits may be off."""


class Lists(NamedTuple):
    """Sets by their features: bucket b has sets[starts[b]:starts[b + 1]].

    Features of one bucket share a list, so a list says at most too much. `starts` is uint32
    (2**bits + 1,), `sets` uint32.
    """

    starts: Any
    sets: Any
    bits: Any


class WeightedQuery(NamedTuple):
    """A query: `features` uint64 ascending, their `weights` float64, and `own`, the weights' sum.

    A weight is what a shared feature adds: 1, or its square in a weighted cosine.
    """

    features: Any
    weights: Any
    own: float


class Met(NamedTuple):
    """Scratch for m sets: the shared weight of each by the lists, and the sets that these name.

    `sums` float32 (m,): weights that are shared at most, zeros before and after; `sets` uint32
    (m,).
    """

    sums: Any
    sets: Any


class Bounds(NamedTuple):
    """Upper bounds of what sets of a range share: a set's total by `scale`, and the `rest`.

    `totals` is uint32 (RANGE,), `lower_bounds` float64: the least sum of each BLOCK sets.
    """

    measure: int
    rest: float
    scale: float
    totals: Any
    lower_bounds: Any


class Kept(NamedTuple):
    """Results of comparisons: the `best` scores, ascending, of sets `places`; and all hits.

    `flags` is what `_raise_flags` wrote.
    """

    flags: Any
    best: Any
    places: Any
    numbers: Any
    scores: Any


class Living(NamedTuple):
    """The documents of m sets, and which of them are removed.

    `members` uint32 are the documents of each set, from `starts` int64 (m + 1,), and `dead` bool
    says which are removed; empty where none is.
    """

    members: Any
    starts: Any
    dead: Any


class Compared(NamedTuple):
    """Stored sets: `features` uint64, `offsets` int64 (m + 1,), `sums` float64 (m,) of weights.

    Sets that are not `living` are never results.
    """

    features: Any
    offsets: Any
    sums: Any
    living: Any


@kernel
def make_lists(features: Any, offsets: Offsets, bits: Any) -> Any:
    """Make Lists; O(features + 2**bits).

    Args:
        features: uint64, each set ascending.
        offsets: int64 (m + 1,).
        bits: uint64, of the buckets.

    Returns:
        starts and sets of Lists; the caller leaves out the last of the starts.
    """
    buckets = np.int64(1) << np.int64(bits)
    starts = np.zeros(buckets + 2, np.uint32)
    for at in range(offsets[0], offsets[offsets.size - 1]):
        starts[bucket_of(features[at] * SPREAD, bits) + 2] += np.uint32(1)
    for b in range(buckets + 1):
        starts[b + 1] += starts[b]
    sets = np.empty(np.int64(starts[buckets + 1]), np.uint32)
    for i in range(offsets.size - 1):
        for at in range(offsets[i], offsets[i + 1]):
            b = bucket_of(features[at] * SPREAD, bits)
            sets[np.int64(starts[b + 1])] = np.uint32(i)
            starts[b + 1] += np.uint32(1)
    return starts, sets


@kernel
def weigh(features: Any, table: Any, missing: int, weights: Any) -> None:
    """Write the square of each feature's weight to float64 (n,); the rest as in `sum_weights`."""
    mask = np.uint64(table.size // 2 - 1)
    for i in range(features.size):
        weight = find(table, mask, features[i], missing) / 65536.0
        weights[i] = weight * weight


@kernel
def sum_weights(
    features: Any, offsets: Offsets, first: int, last: int, table: Any, missing: int, sums: Float64s
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
def _is_living(sets: Compared, number: int) -> bool:
    """Whether a set has a document that is not removed; O(its documents)."""
    living = sets.living
    if not living.dead.size:
        return True
    for at in range(living.starts[number], living.starts[number + 1]):
        if not living.dead[living.members[at]]:
            return True
    return False


@inner
def _raise_flags(features: Any, flags: Any, value: Any) -> None:
    shift = np.uint64(64 - FLAG_BITS)
    for i in range(features.size):
        flags[np.int64((features[i] * SPREAD) >> shift)] = value


@inner
def _shared_weight(query: WeightedQuery, flags: Any, sets: Compared, number: int) -> float:
    """The weight of the features that a set shares with the query; O(features of the set)."""
    total, shift = 0.0, np.uint64(64 - FLAG_BITS)
    for at in range(sets.offsets[number], sets.offsets[number + 1]):
        feature = sets.features[at]
        if flags[np.int64((feature * SPREAD) >> shift)]:
            place = first_from(query.features, 0, query.features.size, feature)
            if place < query.features.size and query.features[place] == feature:
                total += query.weights[place]
    return total


@kernel
def score_related(
    query: WeightedQuery, sets: Compared, first: int, last: int, measure: int, scores: Float64s
) -> None:
    """Write the similarity of a query to each of the sets first..last-1; O(their features).

    Args:
        query: WeightedQuery.
        sets: Compared.
        first: First set.
        last: Last set + 1.
        measure: Its number.
        scores: float64 (last - first,), written; 0 where nothing is shared, or none is living.
    """
    flags = np.zeros(1 << FLAG_BITS, np.uint8)
    _raise_flags(query.features, flags, np.uint8(1))
    for number in range(first, last):
        scores[number - first] = 0.0
        total = _shared_weight(query, flags, sets, number)
        if total > 0 and _is_living(sets, number):
            scores[number - first] = score(total, query.own, sets.sums[number], measure)


@inner
def _keep_best(best: Any, places: Any, count: int, score: float, place: int) -> int:
    """Put a score into the ascending array of the best, if it is one; returns their number."""
    if count == best.size:
        if count == 0 or score <= best[0]:
            return count
        at = 0
        while at + 1 < count and best[at + 1] < score:
            best[at], places[at] = best[at + 1], places[at + 1]
            at += 1
        best[at], places[at] = score, place
        return count
    at = count
    while at and best[at - 1] > score:
        best[at], places[at] = best[at - 1], places[at - 1]
        at -= 1
    best[at], places[at] = score, place
    return count + 1


@inner
def _order_of(query: WeightedQuery, lists: Lists, order: Any, costs: Any) -> None:
    """Order the features by how much an entry of their lists tells, the most first."""
    count = order.size
    for i in range(count):
        bucket = bucket_of(query.features[i] * SPREAD, lists.bits)
        length = np.int64(lists.starts[bucket + 1]) - np.int64(lists.starts[bucket])
        order[i], costs[i] = i, (length + 1) / query.weights[i]
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


@inner
def _limit(
    query: WeightedQuery, sets: Compared, flags: Any, measure: int, met: Any, used: int, best: Any,
    places: Any,
) -> float:  # fmt: skip
    """The score that as many met sets as `best` has room for reach at least; 0 for fewer sets."""
    kept = 0
    if best.size == 0:
        return 0.0
    for i in range(used):
        number = np.int64(met.sets[i])
        other = sets.sums[number]
        about = min(np.float64(met.sums[number]), query.own, other)
        if kept == best.size and not reaches(SLACK * about, query.own, other, best[0], measure):
            continue
        if not _is_living(sets, number):
            continue
        kept = _keep_best(best, places, kept, score(about, query.own, other, measure), number)
    if kept < best.size or not kept:
        return 0.0
    least = np.inf
    for i in range(kept):
        total = _shared_weight(query, flags, sets, places[i])
        least = min(least, score(total, query.own, sets.sums[places[i]], measure))
    return least


@inner
def _clear(met: Any, used: int) -> None:
    for i in range(used):
        met.sums[np.int64(met.sets[i])] = np.float32(0)


@inner
def _follow_first(query: WeightedQuery, lists: Lists, order: Any, look: int, met: Any) -> int:
    """Follow the first lists of `order` up to `look` entries; returns the number of sets met."""
    used = followed = k = 0
    while k < order.size and followed < look:
        i = order[k]
        weight = np.float32(query.weights[i])
        bucket = bucket_of(query.features[i] * SPREAD, lists.bits)
        for at in range(np.int64(lists.starts[bucket]), np.int64(lists.starts[bucket + 1])):
            number = np.int64(lists.sets[at])
            if met.sums[number] == 0:
                met.sets[used] = np.uint32(number)
                used += 1
            met.sums[number] += weight
            followed += 1
        k += 1
    return used


@inner
def _choose(query: WeightedQuery, order: Any, limit: float) -> Any:
    """The number of lists to follow, and the weight of the other features, rounded up."""
    rest, k = query.own, 0
    while k < order.size and rest > RESTING * limit * query.own:
        rest -= query.weights[order[k]]
        k += 1
    if k == order.size:
        return k, 0.0
    return k, max(0.0, rest) * SLACK + TINY * query.own


@inner
def _begin_lists(
    query: WeightedQuery, lists: Lists, order: Any, count: int, scale: float, at: Any, units: Any
) -> None:
    """Write where each list begins and ends, and its weight in units, rounded up."""
    for k in range(count):
        i = order[k]
        bucket = bucket_of(query.features[i] * SPREAD, lists.bits)
        at[2 * k], at[2 * k + 1] = lists.starts[bucket], lists.starts[bucket + 1]
        units[k] = np.uint32(query.weights[i] * scale) + np.uint32(1)


@inner
def _follow(
    lists: Lists, count: int, at: Any, units: Any, first: int, last: int, totals: Any
) -> None:
    """Add up the units of the sets first..last-1, going on where each list was left."""
    # Places are unsigned, so that no code checks whether an index counts from the end.
    before, behind = np.uint64(first), np.uint64(last)
    for k in range(count):
        place, end, unit = np.uint64(at[2 * k]), np.uint64(at[2 * k + 1]), units[k]
        while place < end:
            number = np.uint64(lists.sets[place])
            if number >= behind:
                break
            # A set that stands in a list more than once must not wrap around.
            totals[number - before] = min(totals[number - before] + unit, MOST_UNITS)
            place += np.uint64(1)
        at[2 * k] = place


@inner
def _most(totals: Any, begin: int, end: int) -> Any:
    most = np.uint32(0)
    for i in range(np.uint64(begin), np.uint64(end)):
        most = totals[i] if totals[i] > most else most
    return most


@inner
def _passing(
    query: WeightedQuery, sets: Compared, bounds: Any, limit: float, first: int, last: int, out: Any
) -> int:
    """List those of the sets first..last-1 whose totals may reach the limit; returns how many."""
    count, rest, totals = 0, bounds.rest, bounds.totals
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        most = np.float64(_most(totals, begin - first, end - first)) / bounds.scale + rest
        needed = overlap(limit, query.own, bounds.lower_bounds[begin // BLOCK], bounds.measure)
        if most == 0 or most * SLACK < needed:  # heavier sets need more
            continue
        for number in range(begin, end):
            most = np.float64(totals[number - first]) / bounds.scale + rest
            if most > 0 and _may_reach(most, query, sets, number, limit, bounds.measure):
                out[count] = np.uint32(number)
                count += 1
    return count


@inner
def _may_reach(
    most: float, query: WeightedQuery, sets: Compared, number: int, limit: float, measure: int
) -> bool:
    """Whether a set that shares a weight of at most `most` may reach the limit."""
    other = sets.sums[number]
    return reaches(SLACK * min(most, query.own, other), query.own, other, limit, measure)


@inner
def _compare(
    query: WeightedQuery, sets: Compared, bounds: Any, first: int, numbers: Any, count: int,
    kept: Any, state: Any,
) -> Any:  # fmt: skip
    """Compare the sets that may still reach the limit with the query; returns the new state.

    `state` is the limit, the number of best scores, and the number of all hits.
    """
    limit, best_count, scored = state
    for i in range(count):
        number = np.int64(numbers[i])
        most = np.float64(bounds.totals[number - first]) / bounds.scale + bounds.rest
        if not _may_reach(most, query, sets, number, limit, bounds.measure):
            continue
        total, reached = _shared_weight(query, kept.flags, sets, number), 0.0
        if total > 0:
            reached = score(total, query.own, sets.sums[number], bounds.measure)
        if reached == 0 or reached < limit or not _is_living(sets, number):
            continue
        best_count = _keep_best(kept.best, kept.places, best_count, reached, number)
        if best_count == kept.best.size:
            limit = max(limit, kept.best[0])
        kept.numbers[scored], kept.scores[scored] = number, reached
        scored += 1
    return limit, best_count, scored


@kernel
def rank_sets(
    query: WeightedQuery, lists: Lists, sets: Compared, lower_bounds: Any, measure: int, n: int,
    floor: float, scratch: Met,
) -> Any:  # fmt: skip
    """Find the n sets that are most similar to a query, and all that are as similar as the last.

    1. Follow the lists that tell most, and compare the n most promising sets that these name: what
       they reach is the limit.
    2. Follow lists until the other features weigh little against the limit, a range of sets at a
       time, so that the totals stay in the cache.
    3. Compare the sets of the range whose total and those other features could reach the limit.

    Args:
        query: WeightedQuery.
        lists: Lists of these sets.
        sets: Compared.
        lower_bounds: float64: the least sum of each BLOCK sets.
        measure: Its number; one that bounds sizes.
        n: How many.
        floor: The least similarity of a result.
        scratch: Met, for these sets.

    Returns:
        sets, int64; similarities, float64, in no order: all that are as similar as the least.
    """
    size, m = query.features.size, sets.sums.size
    order, costs = np.empty(size, np.int64), np.empty(size, np.float64)
    flags = np.zeros(1 << FLAG_BITS, np.uint8)
    _raise_flags(query.features, flags, np.uint8(1))
    best, places = np.empty(min(n, m)), np.empty(min(n, m), np.int64)
    _order_of(query, lists, order, costs)
    used = _follow_first(query, lists, order, max(FIRST_LOOK, m // LOOK_SHARE), scratch)
    limit = max(floor, _limit(query, sets, flags, measure, scratch, used, best, places))
    _clear(scratch, used)
    count, rest = _choose(query, order, limit)
    at, units, scale = np.empty(2 * count, np.int64), np.empty(count, np.uint32), UNITS / query.own
    _begin_lists(query, lists, order, count, scale, at, units)
    bounds = Bounds(measure, rest, scale, np.zeros(min(RANGE, m), np.uint32), lower_bounds)
    numbers, scores, state = np.empty(64, np.int64), np.empty(64, np.float64), (limit, 0, 0)
    for first in range(0, m, RANGE):
        last = min(m, first + RANGE)
        _follow(lists, count, at, units, first, last, bounds.totals)
        used = _passing(query, sets, bounds, state[0], first, last, scratch.sets)
        while state[2] + used > numbers.size:
            numbers, scores = enlarged(numbers), enlarged(scores)
        kept = Kept(flags, best, places, numbers, scores)
        state = _compare(query, sets, bounds, first, scratch.sets, used, kept, state)
        fill(bounds.totals, 0, last - first, np.uint32(0))
    limit, _, scored = state
    # Sets that were kept before the limit rose may be below it now.
    is_best = scores[:scored] >= limit
    return numbers[:scored][is_best], scores[:scored][is_best]
