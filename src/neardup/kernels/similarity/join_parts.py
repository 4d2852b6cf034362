"""The similarity join cut in parts: keys in the order of their parts, and small groups decided.

A key that only documents of one group have cannot unite anything any more: it is left out before
the index of a part is built. A group of few documents is decided without an index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.jit import inner, kernel
from neardup.kernels.similarity.members import fill_members, is_match
from neardup.kernels.similarity.sketch_filter import may_match

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Rows, Uint64s
    from neardup.kernels.similarity.join_arguments import Condition, Keys, Sets, Walk

KEY, PLACE = 0, 1
"""Columns of a record: the key, then the document (upper 32 bits) and the features before it."""

_SPREAD: Final = np.uint64(0xD6E8FEB86659FD93)
_AGAIN: Final = np.uint64(0x9E3779B97F4A7C15)
_LOW: Final = np.uint64(0xFFFFFFFF)
_SEVERAL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_GROUP: Final = 1


@inner
def _part(key: np.uint64, bits: int) -> int:
    """The part of a key: the upper bits of the mixed key; `bits` may be 0."""
    return np.int64(((key * _SPREAD) >> np.uint64(1)) >> np.uint64(63 - bits))


@kernel
def keys_by_part(documents: Rows, keys: Keys, bits: int, ends: Int64s) -> Any:
    """Bring keys into the order of their parts of the hash range, stable; O(keys + parts).

    Args:
        documents: int64 (m,), each below 2**32.
        keys: Keys of these documents.
        bits: 2**bits parts.
        ends: int64 (2**bits,), zeros; written: where each part ends.

    Returns:
        uint64 (k, 2), KEY and PLACE.
    """
    for k in range(keys.keys.size):
        ends[_part(keys.keys[k], bits)] += 1
    total = np.int64(0)
    for part in range(ends.size):
        count = ends[part]
        ends[part] = total
        total += count
    records = np.empty((keys.keys.size, 2), np.uint64)
    # Each part keeps the order of the documents, so a part of several calls is read in that order.
    for j in range(documents.size):
        document = np.uint64(documents[j]) << np.uint64(32)
        for k in range(keys.offsets[j], keys.offsets[j + 1]):
            part = _part(keys.keys[k], bits)
            at = ends[part]
            ends[part] = at + 1
            records[at, KEY] = keys.keys[k]
            records[at, PLACE] = document | np.uint64(keys.before[k])
    return records


@inner
def _document(record: Uint64s) -> int:
    return np.int64(record[PLACE] >> np.uint64(32))


@inner
def _root(forest: Int64s, row: int) -> int:
    """The root of a row as far as it is known: another thread may unite groups at the same time."""
    while forest[row] != row:
        row = forest[row]
    return row


@kernel
def useful_keys(records: Uint64s, forest: Int64s, table: Uint64s, slots: Int64s) -> Any:
    """Leave out the keys of documents that are in one group already; O(records).

    Args:
        records: uint64 (k, 2), KEY and PLACE, the keys of a document together.
        forest: int64 (n,): the parent of each document, a root's being itself.
        table: uint64 (slots, 2), zeros; scratch: a power of two, at least twice as many as records.
        slots: int64 (k,), scratch.

    Returns:
        documents: int64 (m,); keys: uint64 (u,) and before: int32 (u,), those left, in the same
        order; and offsets: int64 (m + 1,): document j has keys[offsets[j]:offsets[j + 1]].
    """
    mask = np.int64(len(table) - 1)
    for i in range(len(records)):
        key, group = records[i, KEY], np.uint64(_root(forest, _document(records[i])) + 1)
        slot = np.int64((key * _AGAIN) >> np.uint64(24)) & mask
        while table[slot, _GROUP] and table[slot, KEY] != key:
            slot = (slot + 1) & mask
        slots[i] = slot
        if not table[slot, _GROUP]:
            table[slot, KEY], table[slot, _GROUP] = key, group
        elif table[slot, _GROUP] != group:
            table[slot, _GROUP] = _SEVERAL
    useful, several, last = 0, 0, np.int64(-1)
    for i in range(len(records)):
        if table[slots[i], _GROUP] == _SEVERAL:
            useful += 1
            several += np.int64(_document(records[i]) != last)
            last = _document(records[i])
    documents, offsets = np.empty(several, np.int64), np.empty(several + 1, np.int64)
    keys, before = np.empty(useful, np.uint64), np.empty(useful, np.int32)
    k, j, last = 0, 0, np.int64(-1)
    for i in range(len(records)):
        if table[slots[i], _GROUP] == _SEVERAL:
            if _document(records[i]) != last:
                last = _document(records[i])
                documents[j], offsets[j] = last, k
                j += 1
            keys[k], before[k] = records[i, KEY], np.int32(records[i, PLACE] & _LOW)
            k += 1
    offsets[several] = useful
    return documents, keys, before, offsets


@kernel
def decide_groups(
    documents: Rows, begins: Int64s, sets: Sets, condition: Condition, walk: Walk, room: int
) -> int:
    """Keep and drop the documents of groups, each compared with those of its group that are kept.

    Writes walk.match and walk.score of these documents only, and reads their sketches; O(pairs).

    Args:
        documents: int64 (m,): one group after the other, each in order of priority.
        begins: int64 (g + 1,): where groups begin in `documents`.
        sets: Sets.
        condition: Condition.
        walk: Walk.
        room: Words of working memory: `members_room` of the longest document.

    Returns:
        How many pairs were verified.
    """
    largest = np.int64(0)
    for g in range(begins.size - 1):
        largest = max(largest, begins[g + 1] - begins[g])
    kept = np.empty(largest, np.int64)
    members = np.empty(room, np.uint64)
    verified = np.int64(0)
    for g in range(begins.size - 1):
        count = 0
        # Kept ones are in order of priority: the first that matches is the right one. Groups share
        # nothing but the sketches, which are read only, so ranges of them may go to threads.
        for i in range(begins[g], begins[g + 1]):
            x = documents[i]
            best, filled = x, False
            if walk.rank[x] >= walk.first_new:
                for c in range(count):
                    y = kept[c]
                    if not may_match(x, y, sets, condition, walk):
                        continue
                    if not filled:
                        begin, end = sets.offsets[x], sets.offsets[x + 1]
                        fill_members(sets.features, begin, end, members)
                        filled = True
                    verified += 1
                    reached = is_match(x, y, members, sets, condition)
                    if reached >= 0.0:
                        best, walk.score[x] = y, reached
                        break
            walk.match[x] = best
            if best == x:
                kept[count] = x
                count += 1
    return verified
