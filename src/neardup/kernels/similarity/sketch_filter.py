"""The indexed documents that may match the current one: those under its keys with a near sketch.

An entry of the index rules out most documents by size, the place of the key and a folded sketch;
then whole sketches are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.kernels.bits import prefetch, trailing_zeros
from neardup.kernels.jit import general, inner
from neardup.kernels.similarity.measure_bounds import CONTAINMENT, needed_overlap
from neardup.kernels.similarity.postings import (
    CLASS,
    DOCUMENT,
    PADDING,
    block_after,
    block_end,
    fetch_block,
    fetch_classes,
    first_class,
    link,
    may_have_near,
    most_apart_in,
    near_rows,
    only_near,
    sketch_contained,
    sketches_near,
)

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Uint64s
    from neardup.kernels.similarity.join_arguments import (
        Condition,
        Keys,
        Postings,
        Probe,
        Sets,
        Walk,
    )

QUEUE: Final = 64
"""The most blocks that wait in the queue while memory brings them; a power of two."""
BLOCK, HEAD, EARLIER = range(3)
"""Columns of the queue: a block, its class, and the features of the probe before the key."""
QUEUE_COLUMNS: Final = 3
WORDS_A_LINE: Final = 8


@inner
def may_match(x: int, y: int, sets: Sets, condition: Condition, walk: Walk) -> bool:
    """Whether two documents may match, by their groups and sketches."""
    if sets.groups.size and sets.groups[x] != sets.groups[y]:
        return False
    return sketches_match(x, y, sets, condition, walk.sketches)


@inner
def sketches_match(x: int, y: int, sets: Sets, condition: Condition, sketches: Uint64s) -> bool:
    """Whether two documents may match, by their sizes and sketches."""
    size, other = sets.offsets[x + 1] - sets.offsets[x], sets.offsets[y + 1] - sets.offsets[y]
    if condition.measure == CONTAINMENT:
        smaller, larger = (x, y) if size < other else (y, x)
        most = min(size, other) - needed_overlap(size, other, condition)
        return sketch_contained(sketches, smaller, larger, most)
    most = size + other - 2 * needed_overlap(size, other, condition)
    return sketches_near(sketches, x, y, most)


@inner
def _note_near(
    bounds: tuple[int, int], most: int, before: int, count: int, probe: Probe, condition: Condition,
    postings: Postings, walk: Walk,
) -> int:  # fmt: skip
    """Add the new documents of rows that may be similar to the `count` in walk.found.

    The rows are those from bounds[0] to bounds[1] - 1. Returns how many documents there are.
    """
    x, seen, matches, sketches = probe.x, walk.seen, walk.found, walk.sketches
    words = np.int64(sketches.shape[1])
    begin, end = bounds
    for first in range(begin, end, PADDING):
        marked = near_rows(postings.folds, probe.place, first, end, most)
        if marked:
            marked = only_near(postings, first, marked, probe, before, condition)
        while marked:
            y = link(postings.rows, first + trailing_zeros(marked), DOCUMENT)
            marked &= marked - np.uint64(1)
            if seen[y] != x + 1:
                seen[y] = x + 1
                prefetch(sketches, y * words)
                matches[count] = y
                count += 1
    return count


@general
def _queue_up(queue: Int64s, back: int, block: int, head: int, before: int) -> int:
    """Put a block at the back of the queue; returns the new back."""
    place = back & (QUEUE - 1)
    queue[place, BLOCK], queue[place, HEAD], queue[place, EARLIER] = block, head, before
    return back + 1


@inner
def meet(probe: Probe, condition: Condition, keys: Keys, postings: Postings, walk: Walk) -> int:
    """List the indexed documents that share a key and are near by their entries, each once.

    Blocks are prefetched and wait in a queue for a while: each lies somewhere else in memory, and
    the next one of a class is known only from the one before.
    """
    is_wide = postings.folds.shape[1] > 1  # else next to nothing lies between the two bounds
    rows, folds, queue = postings.rows, postings.folds, walk.queue
    fetch_classes(probe, keys.keys, postings)
    count, k, front, back = 0, probe.first, 0, 0
    while k < probe.last or front < back:
        if k < probe.last and back - front < QUEUE // 2:
            head = first_class(postings.table, keys.keys[k])
            if head:
                back = _queue_up(queue, back, head, head, keys.before[k])
            k += 1
            continue
        place = front & (QUEUE - 1)
        block, head, before = queue[place, BLOCK], queue[place, HEAD], queue[place, EARLIER]
        front += 1
        if block == head:
            after = link(rows, head, CLASS)
            if after:
                fetch_block(rows, folds, after)
                back = _queue_up(queue, back, after, after, before)
            if not may_have_near(rows, head, probe, before, condition):
                continue
        most = most_apart_in(rows, head, probe, condition) if is_wide else probe.most_apart
        while block:
            after = block_after(rows, head, block)
            fetch_block(rows, folds, after)
            end = block_end(rows, head, block)
            count = _note_near(
                (block + 1, end), most, before, count, probe, condition, postings, walk
            )
            if after and back - front < QUEUE:
                back = _queue_up(queue, back, after, head, before)
                break
            block = after
    return count


@inner
def only_alike(
    places: tuple[int, int], count: int, probe: Probe, sets: Sets, condition: Condition,
    postings: Postings, walk: Walk,
) -> int:  # fmt: skip
    """Move the documents of walk.found that may match by groups and whole sketches forward.

    Those from places[0] to places[1] - 1 are checked, and go behind the first `count`; returns
    where they end.
    """
    matches = walk.found
    # Where entries hold the whole sketch, a look at it again rules out no more.
    has_more = sets.groups.size > 0 or postings.folds.shape[1] < walk.sketches.shape[1]
    for c in range(places[0], places[1]):
        y = matches[c]
        if not has_more or may_match(probe.x, y, sets, condition, walk):
            for at in range(sets.offsets[y], sets.offsets[y + 1], WORDS_A_LINE):
                prefetch(sets.features, at)
            matches[count] = y
            count += 1
    return count


@inner
def candidates(
    probe: Probe, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk
) -> int:
    """List the indexed documents that share a key and may be similar enough, each once."""
    met = meet(probe, condition, keys, postings, walk)
    return only_alike((0, met), 0, probe, sets, condition, postings, walk)
