"""Shortest ways of matches from kept documents outwards, within transitive groups.

Documents that are not reached yet are under their keys; one that is reached leaves them. So each is
matched once, however many documents of its group it is similar to, and no list of pairs is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.jit import inner, kernel
from neardup.kernels.similarity.measures import needed_overlap, sizes_near
from neardup.kernels.similarity.members import fill_members, is_match
from neardup.kernels.similarity.postings import sketches_near
from neardup.kernels.sorting import shell_sort
from neardup.kernels.splitmix import widened

if TYPE_CHECKING:
    from neardup.kernels.similarity.arguments import Condition, Keys, Sets

FRONT, LEVEL, BACK = range(3)
"""Places of the state of the queue: the next document, where its level ends, and the end."""
_SPREAD: Final = np.uint64(0xD6E8FEB86659FD93)


class Unreached(NamedTuple):
    """Documents under their keys, those of a key and a group together."""

    names: Any  # uint64 (r,), ascending: keys with their groups, from `name_keys`
    begins: Any  # int64 (r,): those of a name are the rows from begins[r]
    ends: Any  # int64 (r,), written: to ends[r] - 1
    documents: Any  # int64 (k,), written
    before: Any  # int32 (k,), written: features of the document that are rarer than the key


class Ways(NamedTuple):
    """State and result of the walk over n documents."""

    group: Any  # int64 (n,), read-only: only documents of one group match
    via: Any  # int64 (n,), written for documents that are reached
    reached: Any  # uint8 (n,), 0 for documents that are to be reached
    seen: Any  # uint32 (n,), scratch, initially 0: the last document each was compared with, plus 1
    sketches: Any  # uint64 (n, words)
    members: Any  # uint64, scratch, `members_room` of the longest document
    queue: Any  # int64, written: the documents that are reached, level by level
    state: Any  # int64 (3,), written: FRONT, LEVEL, BACK


@inner
def _name(key: Any, group: int) -> Any:
    return (key ^ (np.uint64(group + 1) * _SPREAD)) * _SPREAD


@inner
def _place(values: Any, value: Any) -> int:
    """The first place of an ascending array with this value or more."""
    low, high = np.int64(0), np.int64(values.size)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


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
    return sketches_near(ways.sketches, x, y, size + other - 2 * needed)


@inner
def _reach(
    x: int, first: int, last: int, keys: Keys, sets: Sets, condition: Condition,
    unreached: Unreached, ways: Ways,
) -> None:  # fmt: skip
    """Reach what matches x, which has the keys first..last-1."""
    begin, end = sets.offsets[x], sets.offsets[x + 1]
    smallest, largest = sizes_near(end - begin, condition)
    documents, befores, members = unreached.documents, unreached.before, ways.members
    members[0] = np.uint64(0)  # filled for the first candidate
    for k in range(first, last):
        name = _name(keys.keys[k], ways.group[x])
        run = _place(unreached.names, name)
        if run == unreached.names.size or unreached.names[run] != name:
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
                ways.queue[ways.state[BACK]] = y
                ways.state[BACK] += 1
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
        names[k] = _name(keys[k], group[documents[k]])
    return names


@kernel
def first_steps(
    documents: Any, keys: Keys, sets: Sets, condition: Condition, unreached: Unreached, ways: Ways
) -> None:
    """Reach what matches documents that are one step from their kept ones; it goes to the queue.

    Args:
        documents: int64 (m,): ascending, so that the first match is that of the lowest number.
        keys: Keys of these documents.
        sets: Sets.
        condition: Condition.
        unreached: Unreached, written.
        ways: Ways, written.
    """
    for j in range(documents.size):
        first, last = keys.offsets[j], keys.offsets[j + 1]
        _reach(documents[j], first, last, keys, sets, condition, unreached, ways)


@kernel
def further_steps(
    documents: Any, keys: Keys, sets: Sets, condition: Condition, unreached: Unreached, ways: Ways,
    most: int,
) -> None:  # fmt: skip
    """Reach what matches the next `most` documents of the queue, level by level.

    Args:
        documents: int64 (m,): ascending, all that the queue may have.
        keys: Keys of these documents.
        sets: Sets.
        condition: Condition.
        unreached: Unreached, written.
        ways: Ways, written.
        most: How many are taken from the queue, so that the caller can be interrupted.
    """
    queue, state = ways.queue, ways.state
    for _ in range(most):
        if state[FRONT] == state[BACK]:
            break
        if state[FRONT] == state[LEVEL]:
            # Ascending, so that the first match of a document is that of the lowest number.
            shell_sort(queue, state[LEVEL], state[BACK])
            state[LEVEL] = state[BACK]
        x = queue[state[FRONT]]
        state[FRONT] += 1
        j = _place(documents, x)
        first, last = keys.offsets[j], keys.offsets[j + 1]
        _reach(x, first, last, keys, sets, condition, unreached, ways)
