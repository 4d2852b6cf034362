"""Frequencies of features are counted exactly, however the work is cut, and become ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.similarity import feature_counts as module
from neardup.similarity.feature_counts import count_features, rarity
from neardup.similarity.feature_sets import FeatureSets
from suite import JIT

if TYPE_CHECKING:
    import pytest

BITS = 10
some_counts = st.dictionaries(st.integers(0, 2**64 - 1), st.integers(1, 900), max_size=9)


def in_cells(counts: dict[int, int], bits: int) -> dict[int, int]:
    result: dict[int, int] = {}
    for feature, count in counts.items():
        cell = feature >> 64 - bits
        result[cell] = result.get(cell, 0) + count
    return result


def occurrences(counts: dict[int, int]) -> np.ndarray:
    features = np.repeat(np.array([*counts], np.uint64), [*counts.values()])
    np.random.default_rng(0).shuffle(features)
    return features


@given(some_counts, st.integers(1, 9))
def test_counts_become_ranks_exact_to_128_and_in_order_above(
    counts: dict[int, int], workers: int
) -> None:
    features = occurrences(counts)
    ends = np.array([0, features.size])
    sets = FeatureSets(features, ends, np.zeros((1, 1), np.uint64), cell_limit=1 << BITS)
    cells, shift = rarity(sets, workers)
    assert shift == 64 - BITS
    expected = in_cells(counts, BITS)
    for cell, rank in enumerate(cells.tolist()):
        count = expected.get(cell, 0)
        octave = max(0, count.bit_length() - 8)
        eighth = (count >> octave + 4) - 8
        assert rank == (count if count <= 128 else 128 + 8 * octave + eighth)


@given(some_counts, st.integers(1, 14), st.integers(1, 9))
def test_counts_do_not_depend_on_bins_and_threads(
    counts: dict[int, int], bits: int, workers: int
) -> None:
    cells = count_features(occurrences(counts), bits, workers)
    expected = {cell: min(255, count) for cell, count in in_cells(counts, bits).items()}
    assert {cell: count for cell, count in enumerate(cells.tolist()) if count} == expected


def test_many_bins_and_slices_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 100_000 if JIT else 3_000
    features = np.random.default_rng(1).zipf(1.3, size).astype(np.uint64)
    features *= np.uint64(0x9E3779B97F4A7C15)
    whole = count_features(features, 12)
    monkeypatch.setattr(module, "BIN_CELLS_LOG2", 3)
    monkeypatch.setattr(module, "SLICE_FEATURES", 1_000)
    assert count_features(features, 12, workers=3).tolist() == whole.tolist()
