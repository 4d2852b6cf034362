"""Steps in threads, and ranges of the index's table."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.similarity.postings import RANGES_LOG2
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


def key_of(mixed: int) -> int:
    """The key that the table mixes to a number."""
    return mixed * pow(SPREAD, -1, 2**64) % 2**64


@given(
    st.lists(st.sets(st.integers(0, 40), max_size=12), max_size=24), st.sampled_from([0, 8]),
    st.integers(1, 6), st.integers(1, 60), st.data(),
)  # fmt: skip
def test_keys_of_few_ranges_change_no_result(
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
