"""The rest of a step of the greedy match, after threads have looked up its documents.

Documents that match nothing kept before are matched with each other: under the few keys that two of
them share. Those that are kept go to the index of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.jit import inner, kernel
from neardup.kernels.similarity.join_arguments import Probe
from neardup.kernels.similarity.measure_bounds import CONTAINMENT, most_before
from neardup.kernels.similarity.postings import (
    FETCHES,
    fetch_places,
    fold_sketch,
    insert,
    octave_of,
)

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Rows, Uint64s
    from neardup.kernels.similarity.join_arguments import Condition, Keys, Postings, Sets, Walk

_SPREAD: Final = np.uint64(0xD6E8FEB86659FD93)
ONE, SEVERAL = 0, 1
"""Columns of the marks: keys that one document has, and keys that several have."""


@inner
def _mark(key: Any, marks: Uint64s) -> tuple[int, Any]:
    """The word and the bit of a key in the marks."""
    place = (key * _SPREAD) >> np.uint64(20)
    word = np.int64((place >> np.uint64(6)) & np.uint64(len(marks) - 1))
    return word, np.uint64(1) << (place & np.uint64(63))


@kernel
def shared_keys(documents: Rows, keys: Keys, match: Int64s, marks: Uint64s) -> Any:
    """Leave out the keys that one document alone has, and the documents that are dropped; O(keys).

    A key may be left in that no other document has, where the marks of two keys are one.

    Args:
        documents: int64 (m,).
        keys: Theirs.
        match: int64 (n,): a document that is dropped does not match itself.
        marks: uint64 (words, 2), zeros; scratch: a power of two of words.

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
    at = 0
    for j in range(documents.size):
        if offsets[j] != offsets[j + 1]:
            for k in range(keys.offsets[j], keys.offsets[j + 1]):
                word, bit = _mark(keys.keys[k], marks)
                if marks[word, SEVERAL] & bit:
                    left[at], before[at] = keys.keys[k], keys.before[k]
                    at += 1
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
    documents: Rows, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk
) -> None:
    """Index those of the documents that are kept, in the order given.

    Args:
        documents: int64 (m,), numbers of the documents to index.
        sets: Sets.
        condition: Condition.
        keys: Keys of these documents.
        postings: Postings, written.
        walk: Walk, of which scratch is written.
    """
    match, offsets, key_offsets = walk.match, sets.offsets, keys.offsets
    for ahead in range(documents.size + FETCHES):
        for fetch in range(FETCHES + 1):
            j = ahead - fetch
            if j < 0 or j >= documents.size or match[documents[j]] != documents[j]:
                continue
            probe = _kept(documents[j], j, offsets, key_offsets, condition, walk.place)
            if fetch < FETCHES:
                fetch_places(fetch, probe, keys, postings)
            else:
                fold_sketch(walk.sketches, probe.x, condition, postings.folds, walk.place)
                insert(probe, keys, postings)
