"""The walk by shared features: each document is matched once, by the first one similar to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.jit import inner, kernel
from neardup.kernels.similarity.candidates import sketches_match
from neardup.kernels.similarity.measures import needed_overlap, sizes_near
from neardup.kernels.similarity.members import fill_members, is_match
from neardup.kernels.sorting import first_from
from neardup.kernels.splitmix import widened
from neardup.kernels.ways.walk import name_of, put_back, run_of, take_next

if TYPE_CHECKING:
    from neardup.kernels.similarity.arguments import Condition, Keys, Sets
    from neardup.kernels.ways.walk import Queue, Unreached


class Ways(NamedTuple):
    """State and result of the walk over n documents."""

    group: Any  # int64 (n,), read-only: only documents of one group match
    via: Any  # int64 (n,), written for documents that are reached
    reached: Any  # uint8 (n,), 0 for documents that are to be reached
    seen: Any  # uint32 (n,), scratch, initially 0: the last document each was compared with, plus 1
    sketches: Any  # uint64 (n, words)
    members: Any  # uint64, scratch, `members_room` of the longest document


class Meeting(NamedTuple):
    """Where the documents of some groups are met that are not reached yet."""

    unreached: Unreached  # written
    before: Any  # int32, written: how many features of each document are rarer than the key
    queue: Queue  # written


@inner
def _may_match(
    x: int, y: int, before: int, other_before: int, sets: Sets, condition: Condition, ways: Ways
) -> bool:
    """Whether y may match x, and be first met under a key with so many rarer features in each."""
    size, other = sets.offsets[x + 1] - sets.offsets[x], sets.offsets[y + 1] - sets.offsets[y]
    needed = needed_overlap(size, other, condition)
    if before > size - needed or other_before > other - needed or ways.seen[y] == x + 1:
        return False
    ways.seen[y] = x + 1
    if ways.group[x] != ways.group[y]:
        return False
    return sketches_match(x, y, sets, condition, ways.sketches)


@inner
def _reach(
    x: int, first: int, last: int, keys: Keys, sets: Sets, condition: Condition, meeting: Meeting,
    ways: Ways,
) -> None:  # fmt: skip
    """Reach what matches x, which has the keys first..last-1."""
    begin, end = sets.offsets[x], sets.offsets[x + 1]
    smallest, largest = sizes_near(end - begin, condition)
    unreached, befores, members = meeting.unreached, meeting.before, ways.members
    documents = unreached.documents
    members[0] = np.uint64(0)  # filled for the first candidate
    for k in range(first, last):
        run = run_of(unreached, name_of(keys.keys[k], ways.group[x]))
        if run < 0:
            continue
        at, to = unreached.begins[run], unreached.ends[run]
        while at < to:
            y = documents[at]
            if ways.reached[y]:  # the last one takes its place
                to -= 1
                documents[at], befores[at] = documents[to], befores[to]
                continue
            at += 1
            other = sets.offsets[y + 1] - sets.offsets[y]
            if not smallest <= other <= largest or not _may_match(
                x, y, keys.before[k], befores[at - 1], sets, condition, ways
            ):
                continue
            if not members[0]:
                fill_members(sets.features, begin, end, members)
            if is_match(x, y, members, sets, condition) >= 0.0:
                ways.via[y], ways.reached[y] = x, 1
                put_back(meeting.queue, y)
        unreached.ends[run] = to


@kernel
def set_hashes(documents: Any, sets: Sets) -> Any:
    """Hash the features of documents (int64 (m,)), whatever their order; uint64 (m,)."""
    hashes = np.empty(documents.size, np.uint64)
    for j in range(documents.size):
        total = np.uint64(0)
        for i in range(sets.offsets[documents[j]], sets.offsets[documents[j] + 1]):
            total += widened(sets.features[i], 1)
        hashes[j] = total
    return hashes


@kernel
def name_keys(keys: Any, documents: Any, group: Any) -> Any:
    """Name keys (uint64 (k,)) by their documents' groups too, so that groups never meet."""
    names = np.empty(keys.size, np.uint64)
    for k in range(keys.size):
        names[k] = name_of(keys[k], group[documents[k]])
    return names


@kernel
def first_steps(
    documents: Any, keys: Keys, sets: Sets, condition: Condition, meeting: Meeting, ways: Ways
) -> None:
    """Reach what matches documents that are one step from their kept ones; it goes to the queue.

    Args:
        documents: int64 (m,): ascending, so that the first match is that of the lowest number.
        keys: Keys of these documents.
        sets: Sets.
        condition: Condition.
        meeting: Meeting, written.
        ways: Ways, written.
    """
    for j in range(documents.size):
        first, last = keys.offsets[j], keys.offsets[j + 1]
        _reach(documents[j], first, last, keys, sets, condition, meeting, ways)


@kernel
def further_steps(
    documents: Any, keys: Keys, sets: Sets, condition: Condition, meeting: Meeting, ways: Ways,
    most: int,
) -> bool:  # fmt: skip
    """Reach what matches the next `most` documents of the queue, level by level.

    Args:
        documents: int64 (m,): ascending, all that the queue may have.
        keys: Keys of these documents.
        sets: Sets.
        condition: Condition.
        meeting: Meeting, written.
        ways: Ways, written.
        most: How many are taken from the queue, so that the caller can be interrupted.

    Returns:
        Whether there may be more.
    """
    for _ in range(most):
        x = take_next(meeting.queue)
        if x < 0:
            return False
        j = first_from(documents, 0, documents.size, x)
        first, last = keys.offsets[j], keys.offsets[j + 1]
        _reach(x, first, last, keys, sets, condition, meeting, ways)
    return True
