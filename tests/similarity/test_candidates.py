"""No document that matches is turned away by its entry in the index, whatever the measure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from neardup.kernels.similarity.join_arguments import Condition, Probe, Sets
from neardup.kernels.similarity.measure_bounds import (
    CONTAINMENT,
    JACCARD,
    most_before,
    sizes_near,
)
from neardup.kernels.similarity.postings import (
    COLUMNS,
    KIND,
    LATE,
    LONG,
    PADDING,
    fold_sketch,
    kind_of,
    may_have_near,
    most_apart_in,
    near_rows,
    octave_of,
    write_sketches,
)
from neardup.kernels.similarity.rare_keys import COMMON_KEY
from neardup.similarity.measures import MEASURES

SCORES = {
    "jaccard": lambda shared, size, other: shared / (size + other - shared),
    "cosine": lambda shared, size, other: shared / math.sqrt(size * other),
    "containment": lambda shared, size, other: shared / min(size, other),
    "dice": lambda shared, size, other: 2 * shared / (size + other),
}
HASHES = st.integers(0, 2**64 - 1)


@njit
def probe_of(size: int, condition: Condition) -> Probe:
    smallest, largest = sizes_near(size, condition)
    before = most_before(size, condition)
    is_late_apart = condition.measure == CONTAINMENT
    return Probe(0, size, smallest, largest, 0, octave_of(size), before, is_late_apart, 0, 0, 0)


@njit
def seen_in_class(
    one: tuple[int, int], other: tuple[int, int], key: Any, condition: Condition
) -> tuple[bool, int]:
    """Sizes and features before the key: whether one looks at the class of the other."""
    probe, rows = probe_of(one[0], condition), np.zeros((1, COLUMNS), np.uint32)
    entry = probe_of(other[0], condition)
    rows[0, KIND] = kind_of(entry, key) + (LATE if other[1] > entry.most_before else LONG)
    is_seen = may_have_near(rows, 0, probe, one[1], condition)
    return bool(is_seen), most_apart_in(rows, 0, probe, condition)


@njit
def fold_row(sketches: Any, x: int, condition: Condition, folds: Any) -> None:
    fold_sketch(sketches, x, condition, folds, 0)


@njit
def marked_rows(folds: Any, at: int, end: int, most: int) -> Any:
    return near_rows(folds, 0, at, end, most)


@given(
    st.data(), st.integers(1, 3000), st.sampled_from(list(MEASURES)), st.floats(0.5, 1),
    st.sampled_from([COMMON_KEY, np.uint64(7)]),
)  # fmt: skip
def test_a_class_is_looked_at_for_its_similar_documents_and_allows_what_they_differ_in(
    data: st.DataObject, size: int, measure: str, share: float, key: Any
) -> None:
    other = data.draw(st.integers(max(1, size // 20), 20 * size), label="other")
    shared = data.draw(st.integers(1, min(size, other)), label="shared")
    before, other_before = (
        data.draw(st.integers(0, each - shared), label="before") for each in (size, other)
    )
    similarity = share * SCORES[measure](shared, size, other)
    condition = Condition(MEASURES[measure].number, similarity, 1 << 62)
    seen, apart = seen_in_class((size, before), (other, other_before), key, condition)
    assert seen
    assert size + other - 2 * shared <= apart


def test_documents_that_have_a_key_late_do_not_look_at_each_other() -> None:
    """58 common features of 88: similar pages of 88 share 59, those of 80 and 88 share 56."""
    condition = Condition(JACCARD, 0.5, 1 << 62)
    for key in (COMMON_KEY, np.uint64(7)):
        assert not seen_in_class((88, 30), (88, 30), key, condition)[0]
        assert seen_in_class((80, 22), (88, 30), key, condition)[0]
        assert seen_in_class((88, 30), (80, 22), key, condition)[0]
    assert not seen_in_class((80, 22), (120, 30), COMMON_KEY, condition)[0]


@given(
    st.sets(HASHES), st.sets(HASHES), st.sets(HASHES), st.sampled_from([(4, 1), (4, 4), (16, 4)]),
    st.sampled_from(list(MEASURES)),
)  # fmt: skip
def test_entries_differ_in_no_more_bits_than_documents_in_features(
    one: set[int], other: set[int], both: set[int], words: tuple[int, int], measure: str
) -> None:
    documents = [sorted(one | both), sorted(other | both)]
    offsets = np.cumsum([0, *map(len, documents)])
    nothing = np.zeros(0, np.int32), np.zeros((2, 1), np.uint64)
    sets = Sets(np.array([*documents[0], *documents[1]], np.uint64), offsets, *nothing)
    sketches = np.empty((2, words[0]), np.uint64)
    condition = Condition(MEASURES[measure].number, 0.8, 1 << 62)
    write_sketches(np.arange(2), sets, condition, sketches)
    if measure == "containment":
        missing = int(np.bitwise_count(sketches[0] & ~sketches[1]).sum())
        assert missing <= len(set(documents[0]) - set(documents[1]))
    entries = []
    for x in range(2):
        folds = np.zeros((1, words[1]), np.uint64)
        fold_row(sketches, x, condition, folds)
        entries.append(folds)
    apart = int(np.bitwise_count(entries[0] ^ entries[1]).sum())
    assert apart <= len(set(documents[0]) ^ set(documents[1]))


@given(st.sampled_from([1, 4]), st.integers(0, 2**32), st.integers(1, 12), st.integers(0, 256))
def test_rows_are_marked_by_how_many_bits_their_entries_differ_in(
    words: int, seed: int, count: int, most: int
) -> None:
    draw = np.random.default_rng(seed)
    folds = draw.integers(0, 2**64, (1 + count + PADDING, words), np.uint64)
    folds[1 : 1 + count : 2] = folds[0] ^ draw.integers(0, 4, words, np.uint64)
    apart = np.bitwise_count(folds ^ folds[0]).sum(axis=1, dtype=np.int64)
    rows = range(1, min(1 + count, 1 + PADDING))
    expected = sum(1 << row - 1 for row in rows if apart[row] <= most)
    assert marked_rows(folds, 1, 1 + count, most) == expected
