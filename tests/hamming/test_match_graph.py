"""What pairs of rows decide is what plain loops over all pairs decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.hamming.match_graph import greedy_of_pairs, labels_of_pairs, paths_of_pairs


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], int]:
    """Rows, pairs of different ones, and a seed."""
    count = draw(st.integers(1, 12))
    row = st.integers(0, count - 1)
    pairs = draw(st.lists(st.tuples(row, row).filter(lambda x: x[0] != x[1]), max_size=25))
    return count, pairs, draw(st.integers(0, 2**32))


def sides(pairs: list[tuple[int, int]]) -> tuple[Any, Any]:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


@given(graphs())
def test_greedy_of_pairs_is_its_definition(graph: Any) -> None:
    count, pairs, seed = graph
    order = np.random.default_rng(seed).permutation(count)
    joined = {frozenset(pair) for pair in pairs}
    kept: list[int] = []
    expected = list(range(count))
    for row in order.tolist():
        leaders = [other for other in kept if frozenset((row, other)) in joined]
        expected[row] = leaders[0] if leaders else row
        if not leaders:
            kept.append(row)
    assert greedy_of_pairs(order, *sides(pairs)).tolist() == expected


@given(graphs())
def test_paths_of_pairs_are_those_of_a_breadth_first_search(graph: Any) -> None:
    count, pairs, seed = graph
    draw = np.random.default_rng(seed)
    left, right = sides(pairs)
    label = labels_of_pairs(count, left, right)
    # Each row has up to two equal ones behind it, of which it is the representative.
    representative = np.append(np.arange(count), draw.integers(0, count, count))
    numbers = np.arange(2 * count)
    group = label[representative]
    kept_by = np.array([draw.choice(numbers[group == g]) for g in range(count) if g in group])
    kept_by = {int(group[kept]): int(kept) for kept in kept_by}
    kept_of = np.array([kept_by[int(g)] for g in group])
    cost = draw.integers(0, 3, len(pairs))

    expected = kept_of.copy()
    for kept in kept_by.values():
        root = int(representative[kept])
        level, reached = {root: kept}, {root}
        while level:
            actual: dict[int, tuple[int, int]] = {}
            for (one, other), price in zip(pairs, cost.tolist(), strict=True):
                for near, far in ((one, other), (other, one)):
                    if near in level and far not in reached:
                        actual[far] = min(
                            actual.get(far, (price, level[near])), (price, level[near])
                        )
            for far, (_, name) in actual.items():
                expected[representative == far] = name
            reached |= set(actual)
            level = {far: far for far in actual}
    via = paths_of_pairs(left, right, cost, representative, kept_of)
    assert via.tolist() == expected.tolist()
