"""Compare a query with stored sets that share a feature with it, and keep the hits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.bits import popcount
from neardup.kernels.index.sets import LOW, SPREAD, enlarged, prefix_of
from neardup.kernels.jit import inner, making
from neardup.kernels.similarity.measure_bounds import CONTAINMENT, needed_overlap, score
from neardup.kernels.sorting import first_from

if TYPE_CHECKING:
    from neardup.kernels.similarity.join_arguments import Condition

MUCH_LARGER: Final = 24
SKETCH_WORDS: Final = 4
FIRST_SEEN: Final = 1 << 9
FIRST_HITS: Final = 64
PART, QUERY, STEP, ENTRY, CANDIDATES, HITS, STAMP, STATES = range(8)
"""Places in the state of a search: where it is, how much it has, and its stamp. A search stops
where its buffers are full, and goes on from there."""


class Queries(NamedTuple):
    """Queries first..last-1 of the sets in uint64 `features` and int64 `offsets`."""

    features: Any
    offsets: Any
    first: int
    last: int


class Query(NamedTuple):
    """A query: features[begin:begin + size], ascending, and room for its sketch."""

    features: Any
    begin: int
    size: int
    sketch: Any


class Scratch(NamedTuple):
    """Working memory for the features of a query: int64 `chosen`, uint64 `heavy` and `spreads`.

    And uint64 `sketch`, zeros at first: SKETCH_WORDS, and whose it is, as `_apart` says.
    """

    chosen: Any
    heavy: Any
    spreads: Any
    sketch: Any


class HitArrays(NamedTuple):
    """Buffers for hits: int64 `parts`, `queries` and `numbers`, and float64 `scores`."""

    parts: Any
    queries: Any
    numbers: Any
    scores: Any


@making
def new_scratch(queries: Any) -> Any:
    """New working memory for the longest query."""
    longest = 0
    for q in range(queries.first, queries.last):
        longest = max(longest, queries.offsets[q + 1] - queries.offsets[q])
    return Scratch(
        np.empty(longest, np.int64), np.empty(longest, np.uint64), np.empty(longest, np.uint64),
        np.zeros(SKETCH_WORDS + 1, np.uint64),
    )  # fmt: skip


@inner
def query_of(queries: Any, q: int, scratch: Any) -> Any:
    """The query `q` of several."""
    begin = queries.offsets[q]
    return Query(queries.features, begin, queries.offsets[q + 1] - begin, scratch.sketch)


@making
def new_hits() -> Any:
    """New buffers without hits."""
    return HitArrays(
        np.empty(FIRST_HITS, np.int64), np.empty(FIRST_HITS, np.int64),
        np.empty(FIRST_HITS, np.int64), np.empty(FIRST_HITS, np.float64),
    )  # fmt: skip


@making
def new_state(first: int) -> Any:
    """The state of a search that begins with query `first`."""
    state = np.zeros(STATES, np.int64)
    state[QUERY], state[ENTRY], state[STAMP] = first, -1, 1
    return state


@making
def more_room(hits: Any, seen: Any, state: Any) -> Any:
    """The buffers `hits` and `seen`, with twice the room in the one that a search has filled."""
    if state[HITS] == hits.numbers.size:
        return _larger_hits(hits), seen
    return hits, _larger_seen(seen, np.uint64(state[STAMP]) << np.uint64(32))


@making
def _larger_hits(hits: Any) -> Any:
    return HitArrays(
        enlarged(hits.parts), enlarged(hits.queries), enlarged(hits.numbers),
        enlarged(hits.scores),
    )  # fmt: skip


@making
def _larger_seen(seen: Any, stamp: Any) -> Any:
    """A table of twice the size, with those entries that have this stamp."""
    larger = np.zeros(2 * seen.size, np.uint64)
    for i in range(seen.size):
        if seen[i] >> np.uint64(32) == stamp >> np.uint64(32):
            larger[slot_of(larger, stamp, np.int64(seen[i] & LOW))] = seen[i]
    return larger


@inner
def next_query(state: Any) -> None:
    """Go on with the next query."""
    state[STAMP] += 1
    state[QUERY] += 1
    state[STEP], state[ENTRY], state[CANDIDATES] = 0, -1, 0


@inner
def slot_of(seen: Any, stamp: Any, number: int) -> int:
    """The slot of a set, or a free one for it, among the sets of the query with this stamp."""
    mask, value = np.uint64(seen.size - 1), stamp | np.uint64(number)
    slot = np.int64((value * SPREAD) >> np.uint64(32) & mask)
    while seen[slot] != value and seen[slot] >> np.uint64(32) == stamp >> np.uint64(32):
        slot = np.int64(np.uint64(slot + 1) & mask)
    return slot


@inner
def lookup_count(size: int, condition: Condition) -> int:
    """The number of features of a query that are looked up in the postings of prefixes."""
    return size if condition.measure == CONTAINMENT else prefix_of(size, condition)


@inner
def reached(
    query: Query, k: int, sets: Any, number: int, place: int, condition: Condition
) -> float:
    """The similarity of a set whose first shared feature may be the query's k-th, its place-th.

    Args:
        query: Query.
        k: In the order, from 0.
        sets: Stored sets, with uint64 `features`, each set's ascending, int64 `offsets`, and uint64
            `sketches` of `words` each: see `sketch_of`.
        number: Of the set.
        place: In the order, or less.
        condition: Condition: the measure, and the least similarity of a match.

    Returns:
        -1.0 if too few features come after these, so that another may be the first shared one;
        else the similarity, or less where that is below the condition's.
    """
    size, there = query.size, sets.offsets[number]
    other = sets.offsets[number + 1] - there
    needed = max(np.int64(1), needed_overlap(size, other, condition))
    if min(size - k, other - place) < needed:
        return -1.0
    if _apart(query, sets, number) > size + other - 2 * needed:
        return 0.0
    end = query.begin + size
    count = _shared(query.features, query.begin, end, sets.features, there, there + other, needed)
    return score(count, size, other, condition.measure) if count > 0 else 0.0


@inner
def sketch_of(features: Any, begin: int, end: int, out: Any, at: int, words: int) -> None:
    """Write the sketch of a set to out[at:at + words]: each bit is the parity of its features.

    Sets that differ in d features differ in d bits or fewer: so most sets are told apart without a
    look at their features.
    """
    for word in range(words):
        out[at + word] = 0
    mask = np.uint64(words - 1)
    for i in range(begin, end):
        spread = features[i] * SPREAD
        word = np.int64(spread >> np.uint64(56) & mask)
        out[at + word] ^= np.uint64(1) << (spread >> np.uint64(58))


@inner
def make_sketch(query: Query) -> None:
    """Make the sketch of a query, of SKETCH_WORDS words, unless it is there."""
    sketch, begin = query.sketch, query.begin
    owner = np.uint64(begin + 1)
    if sketch[SKETCH_WORDS] != owner:
        sketch_of(query.features, begin, begin + query.size, sketch, 0, SKETCH_WORDS)
        sketch[SKETCH_WORDS] = owner


@inner
def _apart(query: Query, sets: Any, number: int) -> int:
    """The least number of features in which a query and a set differ, by their sketches."""
    make_sketch(query)
    sketch, words = query.sketch, sets.words
    apart = 0
    for word in range(words):
        mine = sketch[word]
        for other in range(word + words, SKETCH_WORDS, words):
            mine ^= sketch[other]
        apart += popcount(mine ^ sets.sketches[number * words + word])
    return apart


@inner
def _shared(a: Any, i: int, i_end: int, b: Any, j: int, j_end: int, needed: int) -> int:
    """Count the features that two ascending sets share; -1 once `needed` is out of reach."""
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
    """As `_shared`, by bisection, where one set is much larger."""
    count = 0
    if i_end - i > j_end - j:
        for at in range(j, j_end):
            i = first_from(a, i, i_end, b[at])
            count += np.int64(i < i_end and a[i] == b[at])
        return count
    for at in range(i, i_end):
        j = first_from(b, j, j_end, a[at])
        count += np.int64(j < j_end and b[j] == a[at])
    return count
