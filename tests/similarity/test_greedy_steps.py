"""The parts of a step in threads: groups that share no key, and ranges of the index's table."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.similarity.greedy_step import shared_keys
from neardup.kernels.similarity.join_arguments import Keys
from neardup.kernels.similarity.postings import MOST_ROWS_A_KEY, RANGES_LOG2
from neardup.similarity import greedy_steps as greedy
from neardup.similarity import join, key_index
from neardup.similarity.feature_sets import Match, Work
from neardup.similarity.join import similar_components, similar_greedy
from neardup.similarity.key_index import KeyIndex
from neardup.similarity.spilled import Spill
from similarity.test_join import (
    brute_force,
    components_by_definition,
    feature_sets,
    greedy_by_definition,
)

SPREAD = 0x9E3779B97F4A7C15
"""The factor by which the table of the index mixes keys."""
LEAST_ROWS = 6 * MOST_ROWS_A_KEY
"""As few rows at once as leave a fifth free at most."""

keys_of_documents = st.lists(st.lists(st.integers(0, 30), max_size=4, unique=True), max_size=12)


def key_of(mixed: int) -> int:
    """The key that the table mixes to a number."""
    return mixed * pow(SPREAD, -1, 2**64) % 2**64


def keys_from(documents: list[list[int]]) -> Keys:
    """The keys of documents; the features before each are its place."""
    values = np.array([x for document in documents for x in document], np.uint64)
    before = np.array([i for document in documents for i in range(len(document))], np.int32)
    offsets = np.cumsum([0, *map(len, documents)])
    return Keys(values, before, offsets)


@given(keys_of_documents, st.data())
def test_documents_of_different_groups_share_no_key(
    documents: list[list[int]], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(documents), max_size=len(documents)))
    match = np.where(kept, np.arange(len(documents)), -1).astype(np.int64)
    numbers, keys = np.arange(len(documents)), keys_from(documents)
    marks, groups = np.zeros((1024, 2), np.uint64), numbers.astype(np.uint32)
    values, before, offsets = shared_keys(numbers, keys, match, marks, groups)
    of_kept = [document if kept[j] else [] for j, document in enumerate(documents)]
    several = {x for x in range(31) if sum(x in document for document in of_kept) > 1}
    for j, document in enumerate(of_kept):
        own = slice(offsets[j], offsets[j + 1])
        entries = list(zip(values[own].tolist(), before[own].tolist(), strict=True))
        assert [x for x in entries if x[0] in several] == [
            (x, i) for i, x in enumerate(document) if x in several
        ]
        assert groups[groups[j]] == groups[j] <= j
        for i in range(j):
            assert groups[i] == groups[j] or not {*of_kept[i]} & {*document}


@given(
    st.lists(st.sets(st.integers(0, 40), max_size=12), max_size=24), st.sampled_from([0, 8]),
    st.integers(1, 6), st.integers(1, 60), st.data(),
)  # fmt: skip
def test_keys_of_few_ranges_and_rows_by_the_handful_change_no_result(
    documents: list[set[int]], bits: int, workers: int, step: int, data: st.DataObject
) -> None:
    """All keys may be in one range, as somebody who knows the hash could choose them."""
    draw = data.draw(st.randoms(use_true_random=False))
    mixed = [((draw.getrandbits(50) << 6) + x) << bits for x in range(41)]
    sets = feature_sets([{key_of(mixed[x]) for x in document} for document in documents])
    order = np.array(data.draw(st.permutations(range(len(documents)))), np.int64)
    match, alone, together = Match(0.5), Work(), Work()
    pairs = brute_force(documents, match)
    expected = similar_greedy(sets, order, match, 1, alone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "FIRST_STEP", step)
        patch.setattr(greedy, "MOST_OF_ALONE", math.inf)
        patch.setattr(join, "CHUNK_FEATURES", 60)
        patch.setattr(key_index, "ROWS_AT_ONCE", LEAST_ROWS)
        patch.setattr(key_index, "SLOTS_ALONE", 0)
        kept_by = similar_greedy(sets, order, match, workers, together)
        labels = similar_components(replace(sets, spill=Spill(1 << 12)), match, workers)
    assert expected[0].tolist() == greedy_by_definition(len(documents), order.tolist(), pairs)
    assert [x.tolist() for x in kept_by] == [x.tolist() for x in expected]
    assert together == alone
    assert labels.tolist() == components_by_definition(len(documents), pairs)


@pytest.mark.parametrize("ranges", [1, 2, 1 << 20])
def test_no_range_of_a_table_is_ever_full(ranges: int) -> None:
    index = KeyIndex(10, 1, None, 3)
    for count in (1, key_index.FIRST_ROOM >> RANGES_LOG2, 300, 5_000):
        mixed = [(i % ranges << 62) + (i << 20) + 1 for i in range(count)]
        keys = np.array([key_of(x % 2**64) for x in mixed], np.uint64)
        index.make_room(keys, lambda: 5_000)
        size = len(index.postings.table) >> RANGES_LOG2
        assert max(np.bincount([x % 2**64 >> 64 - RANGES_LOG2 for x in mixed])) < size
        assert 2 * count <= len(index.postings.table)
