"""The rest of a step of the greedy match, after threads have looked up its documents.

Documents that match nothing kept before are matched with each other: under the few keys that two of
them share, and in several threads, as documents of different groups share none. Those that are kept
go to the index of all, in several threads too: each has keys of other ranges of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.forest import find_root, unite
from neardup.kernels.jit import inner, kernel
from neardup.kernels.similarity.join_arguments import Probe
from neardup.kernels.similarity.measure_bounds import CONTAINMENT, most_before
from neardup.kernels.similarity.postings import (
    FETCHES,
    MOST_ROWS_A_KEY,
    ROWS,
    fetch_places,
    fold_sketch,
    insert_under,
    octave_of,
    range_of,
    stored_key,
)

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Rows, Uint32s, Uint64s
    from neardup.kernels.similarity.join_arguments import Condition, Keys, Postings, Sets, Walk

_SPREAD: Final = np.uint64(0xD6E8FEB86659FD93)
ONE, SEVERAL = 0, 1
"""Columns of the marks: keys that one document has, and keys that several have."""
PLACES_A_KEY_LOG2: Final = 4
"""The places for each shared key: documents that meet in one by chance are united as well."""


@inner
def _mark(key: Any, marks: Uint64s) -> tuple[int, Any]:
    """The word and the bit of a key in the marks."""
    place = (key * _SPREAD) >> np.uint64(20)
    word = np.int64((place >> np.uint64(6)) & np.uint64(len(marks) - 1))
    return word, np.uint64(1) << (place & np.uint64(63))


@kernel
def shared_keys(documents: Rows, keys: Keys, match: Int64s, marks: Uint64s, groups: Uint32s) -> Any:
    """Leave out the keys that one document alone has, and the documents that are dropped; O(keys).

    A key may be left in that no other document has, where the marks of two keys are one.

    Args:
        documents: int64 (m,).
        keys: Theirs.
        match: int64 (n,): a document that is dropped does not match itself.
        marks: uint64 (words, 2), zeros; scratch: a power of two of words.
        groups: uint32 (m,), 0 to m - 1; written: the first document of each one's group.
            Documents of different groups share no key.

    Returns:
        keys: uint64 (k,) and before: int32 (k,), those left, in the same order; and offsets: int64
        (m + 1,).
    """
    offsets = np.zeros(documents.size + 1, np.int64)
    for j in range(documents.size):
        if match[documents[j]] == documents[j]:
            for k in range(keys.offsets[j], keys.offsets[j + 1]):
                word, bit = _mark(keys.keys[k], marks)
                marks[word, SEVERAL] |= marks[word, ONE] & bit
                marks[word, ONE] |= bit
    for j in range(documents.size):
        offsets[j + 1] = offsets[j]
        if match[documents[j]] == documents[j]:
            for k in range(keys.offsets[j], keys.offsets[j + 1]):
                word, bit = _mark(keys.keys[k], marks)
                offsets[j + 1] += np.int64(marks[word, SEVERAL] & bit != np.uint64(0))
    left, before = np.empty(offsets[-1], np.uint64), np.empty(offsets[-1], np.int32)
    owners = np.zeros(np.int64(2) << (octave_of(offsets[-1]) + PLACES_A_KEY_LOG2), np.int64)
    at = 0
    for j in range(documents.size):
        if offsets[j] != offsets[j + 1]:
            for k in range(keys.offsets[j], keys.offsets[j + 1]):
                word, bit = _mark(keys.keys[k], marks)
                if marks[word, SEVERAL] & bit:
                    left[at], before[at] = keys.keys[k], keys.before[k]
                    place = np.int64((keys.keys[k] * _SPREAD) >> np.uint64(20)) & (owners.size - 1)
                    unite(groups, j, owners[place] - 1 if owners[place] else j)
                    owners[place] = j + 1
                    at += 1
    for j in range(documents.size):
        groups[j] = find_root(groups, j)
    return left, before, offsets


@inner
def _kept(
    x: int, j: int, offsets: Any, key_offsets: Any, condition: Condition, place: int
) -> Probe:
    """The probe for document x, the j-th document of the keys, which is only to be indexed."""
    size, nothing = offsets[x + 1] - offsets[x], np.int64(0)
    return Probe(
        x, size, nothing, nothing, nothing, octave_of(size), most_before(size, condition),
        condition.measure == CONTAINMENT, key_offsets[j], key_offsets[j + 1], place,
    )  # fmt: skip


@kernel
def insert_kept(
    documents: Rows, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk,
    task: tuple[int, int, int],
) -> int:  # fmt: skip
    """Index documents that are kept, under their keys of a range, while there are rows for one.

    Threads may do this at once, each for other ranges, and with `used`, rows and place of its own:
    the rows behind used[ROWS], to `end`.

    Args:
        documents: int64 (m,), numbers of the documents to index, in this order.
        sets: Sets.
        condition: Condition.
        keys: Keys of these documents.
        postings: Postings, written.
        walk: Walk, of which scratch is written.
        task: The range of the table, the first key that is not done yet, and the last row that may
            be used.

    Returns:
        The key that is next, or the end of the keys.
    """
    number, done, end = task
    match, offsets, key_offsets, used = walk.match, sets.offsets, keys.offsets, postings.used
    for ahead in range(documents.size + FETCHES):
        for fetch in range(FETCHES + 1):
            j = ahead - fetch
            if j < 0 or j >= documents.size or match[documents[j]] != documents[j]:
                continue
            if key_offsets[j + 1] <= done:
                continue
            probe = _kept(documents[j], j, offsets, key_offsets, condition, walk.place)
            if fetch < FETCHES:
                fetch_places(fetch, number, probe, keys, postings)
                continue
            fold_sketch(walk.sketches, probe.x, condition, postings.folds, walk.place)
            for k in range(max(done, probe.first), probe.last):
                if range_of(stored_key(keys.keys[k])) == number:
                    if used[ROWS] + MOST_ROWS_A_KEY > end:
                        return k
                    insert_under(k, probe, keys, postings)
    return key_offsets[documents.size]
