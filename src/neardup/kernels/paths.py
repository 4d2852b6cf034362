"""Shortest paths of matches from kept documents outwards, by shared features and by distance.

Documents that are not reached yet are listed under names. A name stands for a key and a transitive
group, so groups never meet. A document that is reached leaves its names. No list of pairs is made.

By distance the keys are blocks of bits: two rows within k bits of each other agree in one of k + 1
blocks, and each row goes on to the nearest of those one step before it. By features they are the
rare keys of the join, and each document is matched once, by the first one similar to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.bits import popcount
from neardup.kernels.jit import inner, kernel
from neardup.kernels.similarity.measure_bounds import needed_overlap, sizes_near
from neardup.kernels.similarity.members import fill_members, is_match
from neardup.kernels.similarity.sketch_filter import sketches_match
from neardup.kernels.sorting import first_from, shell_sort
from neardup.kernels.splitmix import widened

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Uint64s
    from neardup.kernels.similarity.join_arguments import Condition, Keys, Sets

FRONT, LEVEL, BACK = range(3)
"""Places of the state of a queue: the next document, where its level ends, and the end."""
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_SPREAD: Final = np.uint64(0xD6E8FEB86659FD93)


class Unreached(NamedTuple):
    """Documents that are not reached yet, listed under names."""

    names: Any  # uint64 (r,), ascending
    begins: Any  # int64 (r,): those of a name are documents[begins[r]:ends[r]]
    ends: Any  # int64 (r,), written
    documents: Any  # int64 (k,), written


class Queue(NamedTuple):
    """The documents that have been reached, level by level."""

    documents: Any  # int64, as long as there may be
    state: Any  # int64 (3,), initially 0: FRONT, LEVEL, BACK


def under_names(names: Any, documents: Int64s) -> tuple[Unreached, Any]:
    """List documents (int64 (k,)) under names (uint64 (k,)); returns the order of the names too."""
    order = np.argsort(names)
    names = names[order]
    begins = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    ends = np.append(begins[1:], names.size)
    return Unreached(names[begins], begins, ends, documents[order]), order


@inner
def name_of(key: np.uint64, group: int) -> Any:
    """Name a key (uint64) of the documents of a group; others may have the same name."""
    return (key ^ (np.uint64(group + 1) * _SPREAD)) * _SPREAD


@inner
def run_of(unreached: Unreached, name: np.uint64) -> int:
    """The place of a name, or -1."""
    run = first_from(unreached.names, 0, unreached.names.size, name)
    if run < unreached.names.size and unreached.names[run] == name:
        return run
    return np.int64(-1)


@inner
def put_back(queue: Queue, document: int) -> None:
    """Append a document."""
    queue.documents[queue.state[BACK]] = document
    queue.state[BACK] += 1


@inner
def take_next(queue: Queue) -> int:
    """Take the next document, those of a level in ascending order; -1 if there is none."""
    state = queue.state
    if state[FRONT] == state[BACK]:
        return np.int64(-1)
    if state[FRONT] == state[LEVEL]:
        shell_sort(queue.documents, state[LEVEL], state[BACK])
        state[LEVEL] = state[BACK]
    state[FRONT] += 1
    return queue.documents[state[FRONT] - 1]


class Rows(NamedTuple):
    """State and result of the walk over m rows."""

    codes: Any  # uint64 (m, w)
    group: Any  # int64 (m,): only rows of one group match
    masks: Any  # uint64 (b, w): the bits of each block
    via: Any  # int64 (m,), written for rows that are reached
    apart: Any  # int64 (m,), written: in how many bits
    steps: Any  # int64 (m,), written: from the kept row; 0 for rows that are to be reached


@inner
def _block_name(rows: Rows, row: int, block: int) -> Any:
    codes, masks = rows.codes, rows.masks
    key = np.uint64(block)
    for word in range(codes.shape[1]):
        key = (key * _MIX) ^ (codes[row, word] & masks[block, word])
        key ^= key >> np.uint64(29)
    return name_of(key, rows.group[row])


@kernel
def name_blocks(numbers: Int64s, rows: Rows) -> Any:
    """Name the blocks of rows (int64 (r,)) by their groups, bits and values; uint64 (r * b,)."""
    blocks = len(rows.masks)
    names = np.empty(numbers.size * blocks, np.uint64)
    for i in range(numbers.size):
        for block in range(blocks):
            names[i * blocks + block] = _block_name(rows, numbers[i], block)
    return names


@inner
def _reach_near(x: int, rows: Rows, limit: int, unreached: Unreached, queue: Queue) -> None:
    """Reach the rows within the limit of x; a row keeps its nearest, then first row of a level."""
    codes, steps, apart, documents = rows.codes, rows.steps, rows.apart, unreached.documents
    for block in range(len(rows.masks)):
        run = run_of(unreached, _block_name(rows, x, block))
        if run < 0:
            continue
        at, to = unreached.begins[run], unreached.ends[run]
        while at < to:
            y = documents[at]
            # The queue goes level by level, and a level ascends: a row as few steps away as x, or
            # fewer, is done, and for a row one step further only a nearer x is better.
            if 0 < steps[y] <= steps[x]:  # the last one takes its place
                to -= 1
                documents[at] = documents[to]
                continue
            at += 1
            count = 0
            for word in range(codes.shape[1]):
                count += popcount(codes[x, word] ^ codes[y, word])
            if count > limit or rows.group[x] != rows.group[y]:
                continue
            if not steps[y]:
                steps[y] = steps[x] + 1
                put_back(queue, y)
            elif count >= apart[y]:
                continue
            rows.via[y], apart[y] = x, count
        unreached.ends[run] = to


@kernel
def reach_rows(rows: Rows, limit: int, unreached: Unreached, queue: Queue, most: int) -> bool:
    """Reach the rows within the limit of the next `most` rows of the queue, level by level.

    Args:
        rows: Rows, written.
        limit: Bits.
        unreached: Unreached, from `name_blocks`, written.
        queue: Queue, written; it begins with the rows one step from their kept ones.
        most: How many are taken from the queue, so that the caller can be interrupted.

    Returns:
        Whether there may be more.
    """
    for _ in range(most):
        x = take_next(queue)
        if x < 0:
            return False
        _reach_near(x, rows, limit, unreached, queue)
    return True


class Paths(NamedTuple):
    """State and result of the walk over n documents."""

    group: Any  # int64 (n,), read-only: only documents of one group match
    via: Any  # int64 (n,), written for documents that are reached
    reached: Any  # uint8 (n,), 0 for documents that are to be reached
    seen: Any  # uint32 (n,), scratch, initially 0: the last document each was compared with, plus 1
    sketches: Any  # uint64 (n, words)
    members: Any  # uint64, scratch, `members_room` of the longest document


class Meeting(NamedTuple):
    """The unreached documents of some groups, by the keys under which they are met."""

    unreached: Unreached  # written
    before: Any  # int32, written: how many features of each document are rarer than the key
    queue: Queue  # written


@inner
def _may_match(
    x: int, y: int, before: int, other_before: int, sets: Sets, condition: Condition, paths: Paths
) -> bool:
    """Whether y may match x and be met first under a key, given the rarer features in each."""
    size, other = sets.offsets[x + 1] - sets.offsets[x], sets.offsets[y + 1] - sets.offsets[y]
    needed = needed_overlap(size, other, condition)
    if before > size - needed or other_before > other - needed or paths.seen[y] == x + 1:
        return False
    paths.seen[y] = x + 1
    if paths.group[x] != paths.group[y]:
        return False
    return sketches_match(x, y, sets, condition, paths.sketches)


@inner
def _reach_similar(
    x: int, first: int, last: int, keys: Keys, sets: Sets, condition: Condition, meeting: Meeting,
    paths: Paths,
) -> None:  # fmt: skip
    """Reach the documents that match x, whose keys are first..last-1."""
    begin, end = sets.offsets[x], sets.offsets[x + 1]
    smallest, largest = sizes_near(end - begin, condition)
    unreached, befores, members = meeting.unreached, meeting.before, paths.members
    documents = unreached.documents
    members[0] = np.uint64(0)  # filled for the first candidate
    for k in range(first, last):
        run = run_of(unreached, name_of(keys.keys[k], paths.group[x]))
        if run < 0:
            continue
        at, to = unreached.begins[run], unreached.ends[run]
        while at < to:
            y = documents[at]
            # The queue goes level by level, and a level ascends: the x that reaches y first has the
            # least number of those on a shortest path.
            if paths.reached[y]:  # the last one takes its place
                to -= 1
                documents[at], befores[at] = documents[to], befores[to]
                continue
            at += 1
            other = sets.offsets[y + 1] - sets.offsets[y]
            if not smallest <= other <= largest or not _may_match(
                x, y, keys.before[k], befores[at - 1], sets, condition, paths
            ):
                continue
            if not members[0]:
                fill_members(sets.features, begin, end, members)
            if is_match(x, y, members, sets, condition) >= 0.0:
                paths.via[y], paths.reached[y] = x, 1
                put_back(meeting.queue, y)
        unreached.ends[run] = to


@kernel
def set_hashes(documents: Int64s, sets: Sets) -> Any:
    """Hash the features of documents (int64 (m,)), whatever their order; uint64 (m,)."""
    hashes = np.empty(documents.size, np.uint64)
    for j in range(documents.size):
        total = np.uint64(0)
        for i in range(sets.offsets[documents[j]], sets.offsets[documents[j] + 1]):
            total += widened(sets.features[i], 1)
        hashes[j] = total
    return hashes


@kernel
def name_keys(keys: Uint64s, documents: Int64s, group: Int64s) -> Any:
    """Name keys (uint64 (k,)) by their documents' groups too, so that groups never meet."""
    names = np.empty(keys.size, np.uint64)
    for k in range(keys.size):
        names[k] = name_of(keys[k], group[documents[k]])
    return names


@kernel
def first_steps(
    documents: Int64s, keys: Keys, sets: Sets, condition: Condition, meeting: Meeting, paths: Paths
) -> None:
    """Reach the matches of documents that are one step from their kept ones, and queue them.

    Args:
        documents: int64 (m,): ascending, so that the first match is that of the lowest number.
        keys: Keys of these documents.
        sets: Sets.
        condition: Condition.
        meeting: Meeting, written.
        paths: Paths, written.
    """
    for j in range(documents.size):
        first, last = keys.offsets[j], keys.offsets[j + 1]
        _reach_similar(documents[j], first, last, keys, sets, condition, meeting, paths)


@kernel
def further_steps(
    documents: Int64s, keys: Keys, sets: Sets, condition: Condition, meeting: Meeting, paths: Paths,
    most: int,
) -> bool:  # fmt: skip
    """Reach the matches of the next `most` documents of the queue, level by level.

    Args:
        documents: int64 (m,): ascending, all that the queue may have.
        keys: Keys of these documents.
        sets: Sets.
        condition: Condition.
        meeting: Meeting, written.
        paths: Paths, written.
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
        _reach_similar(x, first, last, keys, sets, condition, meeting, paths)
    return True
