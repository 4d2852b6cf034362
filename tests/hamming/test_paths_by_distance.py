"""The ways through groups by distance are those of a breadth-first search over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hamming.test_clusters import components_by_definition, linked, near
from neardup.hamming import paths_by_distance as module
from neardup.hamming.paths_by_distance import paths_by_distance
from suite import JIT


def paths_by_definition(codes: Any, kept_by: list[int], limit: int) -> list[int]:
    """Level by level; the next row is the nearest of the level before, of those the first."""
    apart = np.bitwise_count(codes[:, None] ^ codes[None]).sum(axis=2, dtype=np.int64)
    via, count = list(kept_by), len(kept_by)
    rest = {x for x in range(count) if kept_by[x] != x}
    level = [x for x in range(count) if x not in rest]
    while level:
        following = []
        for y in sorted(rest):
            distances = [(int(apart[x, y]), x) for x in level if kept_by[x] == kept_by[y]]
            if min(distances, default=(limit + 1, 0))[0] <= limit:
                via[y] = min(distances)[1]
                following.append(y)
        rest -= set(following)
        level = following
    return via


@given(
    st.sampled_from([3, 9, 24, 64, 70, 128]),
    st.integers(1, 120 if JIT else 40),
    st.sampled_from([0, 1, 2, 3, 5, 12]),
    st.integers(0, 2**32),
)
def test_paths_are_shortest_and_go_by_the_nearest(
    bits: int, rows: int, limit: int, seed: int
) -> None:
    codes, draw = linked(bits, rows, seed), np.random.default_rng(seed)
    codes = codes[draw.integers(0, rows, rows)]  # some are equal, and in any order
    labels = np.array(components_by_definition(near(codes, limit)))
    kept = {int(labels[row]): row for row in draw.permutation(rows).tolist()}
    kept_by = np.array([kept[label] for label in labels.tolist()])
    expected = paths_by_definition(codes, kept_by.tolist(), limit)
    assert paths_by_distance(codes, kept_by, limit).tolist() == expected


@pytest.mark.parametrize("width", [1, 2])
def test_groups_and_steps_at_once_change_no_way(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    codes = linked(64 * width, 300 if JIT else 60, 7)
    labels = np.array(components_by_definition(near(codes, 4)))
    expected = paths_by_definition(codes, labels.tolist(), 4)
    assert expected != labels.tolist()
    assert paths_by_distance(codes, labels, 4).tolist() == expected
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(module, "STEPS_AT_ONCE", 1)
    assert paths_by_distance(codes, labels, 4).tolist() == expected


@pytest.mark.skipif(not JIT, reason="large")
def test_a_long_chain_is_gone_along() -> None:
    """50,000 rows, each three bits from the one before."""
    draw, count = np.random.default_rng(5), 50_000
    flips = np.uint64(1) << draw.integers(0, 64, (count, 3), np.uint64)
    codes = np.bitwise_xor.accumulate(np.bitwise_xor.reduce(flips, axis=1))[:, None]
    via = paths_by_distance(codes, np.zeros(count, np.int64), 3)
    assert (np.bitwise_count(codes ^ codes[via]).sum(axis=1) <= 3).all()
    steps = np.zeros(count, np.int64)
    order = [0]
    followers: list[list[int]] = [[] for _ in range(count)]
    for row in range(1, count):
        followers[via[row]].append(row)
    for row in order:
        steps[followers[row]] = steps[row] + 1
        order += followers[row]
    assert sorted(order) == list(range(count))
    assert steps.max() > count // 4
