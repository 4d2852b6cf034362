"""The ways through transitive groups are those of a breadth-first search over all pairs."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.similarity.rare_keys import MOST
from neardup.similarity import paths_by_features as module
from neardup.similarity.feature_sets import FeatureSets, Match, similarities
from neardup.similarity.key_choice import KeySample
from neardup.similarity.paths_by_features import paths_by_features
from neardup.similarity.spilled import Spill
from similarity.test_join import (
    brute_force,
    collections,
    components_by_definition,
    feature_sets,
    matches,
)
from suite import JIT

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator


def paths_by_definition(kept_by: list[int], pairs: set[tuple[int, int]]) -> list[int]:
    """Level by level; the next document is the first of the level before that matches."""
    neighbours: list[list[int]] = [[] for _ in kept_by]
    for left, right in pairs:
        neighbours[left].append(right)
        neighbours[right].append(left)
    via, level = list(kept_by), {x for x, kept in enumerate(kept_by) if x == kept}
    reached = set(level)
    while level:
        following = {y for x in level for y in neighbours[x]} - reached
        for y in following:
            via[y] = min(level.intersection(neighbours[y]))
        reached |= following
        level = following
    return via


def kept_of(labels: list[int], order: list[int]) -> list[int]:
    """The first in order of each group."""
    best = {labels[x]: x for x in reversed(order)}
    return [best[label] for label in labels]


def spread(documents: list[set[int]]) -> list[set[int]]:
    """Features in cells of their own, as hashes are: small numbers are all counted in one."""
    return [{feature * 0x9E3779B97F4A7C15 % 2**64 for feature in each} for each in documents]


@contextlib.contextmanager
def common_above(rank: int) -> Iterator[None]:
    """Features above a rank are common, where a sample of few documents says that all are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeySample, "most_rare", rank)
        yield


def ways(sets: FeatureSets, kept_by: Any, match: Match, workers: int = 2) -> list[int]:
    score = similarities(sets, np.arange(len(sets)), kept_by, match.measure)
    return paths_by_features(sets, kept_by, score, match, workers).tolist()


@given(
    st.data(), collections(), matches, st.booleans(), st.sampled_from([0, 1, 3, MOST]),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_paths_are_shortest_whatever_matches(
    data: st.DataObject,
    documents: list[set[int]],
    match: Match,
    has_groups: bool,
    most_rare: int,
    shuffler: random.Random,
) -> None:
    documents += data.draw(st.lists(st.sampled_from(documents or [set()]), max_size=4), "equal")
    if data.draw(st.booleans(), "spread"):
        documents = spread(documents)
    order, groups = list(range(len(documents))), None
    shuffler.shuffle(order)
    if has_groups:
        groups = [shuffler.randrange(2) for _ in documents]
    pairs = brute_force(documents, match, groups)
    kept_by = np.array(kept_of(components_by_definition(len(order), pairs), order), np.int64)
    sets = feature_sets(documents, groups)
    for each in (sets, replace(sets, spill=Spill(1 << 10), cell_limit=1)):
        with common_above(most_rare):
            assert ways(each, kept_by, match) == paths_by_definition(kept_by.tolist(), pairs)


@given(
    st.integers(1, 200 if JIT else 40),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from([0.3, 0.6, 0.8]),
    st.randoms(use_true_random=False),
)
def test_paths_through_chains_of_crowds(
    links: int, crowd: int, step: int, similarity: float, shuffler: random.Random
) -> None:
    """Windows of a log, several of each with a feature more or less, in any order."""
    windows = [set(range(i * step, i * step + 12)) for i in range(links)]
    documents = [
        window ^ set(shuffler.sample(range(links * step + 12), shuffler.randrange(2)))
        for window in windows
        for _ in range(shuffler.randrange(1, crowd + 1))
    ]
    shuffler.shuffle(documents)
    match, order = Match(similarity), list(range(len(documents)))
    pairs = brute_force(documents, match)
    kept_by = np.array(kept_of(components_by_definition(len(order), pairs), order), np.int64)
    expected = paths_by_definition(kept_by.tolist(), pairs)
    assert ways(feature_sets(documents), kept_by, match) == expected


@pytest.mark.parametrize("most_rare", [0, MOST])
def test_the_way_goes_on_where_the_rarest_feature_is_not_shared(most_rare: int) -> None:
    common = set(range(1, 8))
    documents = spread([common | {10}, common | {11}, (common - {1}) | {11, 12}])
    match, kept_by = Match(0.7), [0, 0, 0]
    expected = paths_by_definition(kept_by, brute_force(documents, match))
    assert expected == [0, 0, 1]
    with common_above(most_rare):
        assert ways(feature_sets(documents), np.array(kept_by), match) == expected


def test_many_calls_and_chunks_go_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [set(range(i, i + 12)) for i in range(100)]
    sets, kept_by = feature_sets(documents), np.zeros(100, np.int64)
    expected = [0, *(max(0, i - 1) for i in range(1, 100))]
    assert ways(sets, kept_by, Match(0.8)) == expected
    monkeypatch.setattr(module, "STEPS_AT_ONCE", 1)
    monkeypatch.setattr(module, "CHUNK_FEATURES", 1)
    assert ways(sets, kept_by, Match(0.8)) == expected


@pytest.mark.skipif(not JIT, reason="large")
def test_equal_documents_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowd two steps away: as few keys as of one document."""
    middle, last = set(range(1, 21)), set(range(3, 23))
    documents = [set(range(20)), *[middle] * 1000, *[last] * 3000]
    sets, kept_by = feature_sets(documents), np.zeros(4001, np.int64)
    looked_up = []
    split = module.batches_of_groups

    def noted(labels: Any, order: Any, *limits: Any) -> Any:
        looked_up.append(order.tolist())
        return split(labels, order, *limits)

    monkeypatch.setattr(module, "batches_of_groups", noted)
    assert ways(sets, kept_by, Match(0.8)) == [0] * 1001 + [1] * 3000
    assert looked_up == [[1, 1001]]
