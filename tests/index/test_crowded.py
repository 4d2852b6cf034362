"""Queries that are shared by many documents, and those that are not: looked up, or all compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import neardup as nd
from neardup.index import similarity_kind as searching
from neardup.kernels.index import seeking
from neardup.kernels.index import similar as kernels
from suite import needs_jit

MEASURES = ("jaccard", "cosine", "containment", "dice")


def mixed(random: Any, crowded: int, own: int) -> list[Any]:
    """Documents of 20 or 40 of the same 60 features; and others of 30 to 130 of their own."""
    common = random.integers(0, 1 << 64, 60, np.uint64)
    result = [random.permutation(common)[: 20 if i % 3 else 40] for i in range(crowded)]
    for _ in range(own):
        size = int(random.integers(30, 130))
        result.append(np.append(random.integers(0, 1 << 64, size, np.uint64), common[:3]))
    return result


def edited(random: Any, document: Any) -> Any:
    """With some features replaced, up to a fifth."""
    changed = random.permutation(document)
    count = int(random.integers(0, len(changed) // 5 + 1))
    changed[:count] = random.integers(0, 1 << 64, count, np.uint64)
    return changed


@needs_jit
@pytest.mark.parametrize("measure", MEASURES)
def test_a_crowd_and_what_stands_apart_from_it_are_found(measure: str) -> None:
    random = np.random.default_rng(3)
    documents = mixed(random, 1_500, 1_500)
    index = nd.Index(similarity=0.8, measure=measure)
    index.add(np.arange(len(documents)), documents)
    single = nd.Index(similarity=0.8, measure=measure)
    for i, document in enumerate(documents[700:1_600]):
        single.add(700 + i, document)
    sets = [set(each.tolist()) for each in documents]
    for at in (*range(0, 1_500, 170), *range(1_500, 3_000, 90)):
        query = edited(random, documents[at])
        features = set(query.tolist())
        scores = {i: naive.similarity(features, each, measure) for i, each in enumerate(sets)}
        expected = {i: score for i, score in scores.items() if score >= 0.8}
        assert dict(index.query(query)) == pytest.approx(expected)
        newest = {i: score for i, score in expected.items() if 700 <= i < 1_600}
        assert dict(single.query(query)) == pytest.approx(newest)
        table = index.query_batch([query])
        assert dict(zip(*(table[x].to_pylist() for x in ("id", "similarity")), strict=True)) == (
            pytest.approx(expected)
        )


@given(st.integers(0, 2**32), st.sampled_from(MEASURES), st.integers(0, 20), st.integers(0, 20))
def test_comparing_all_finds_what_looking_up_finds(
    seed: int, measure: str, crowded: int, own: int
) -> None:
    """Without the JIT, with which the bound is a constant; with it, twice the same."""
    random = np.random.default_rng(seed)
    documents = [*mixed(random, crowded, own), random.integers(0, 1 << 64, 30, np.uint64)]
    index = nd.Index(similarity=0.6, measure=measure)
    tail = nd.Index(similarity=0.6, measure=measure)
    index.add(np.arange(len(documents)), documents)
    for i, document in enumerate(documents):
        tail.add(i, document)
    index.compact()
    queries = [edited(random, documents[int(i)]) for i in random.integers(0, len(documents), 4)]
    result = []
    for bound, room in ((0, 1 << 10), (1 << 20, 4)):  # never, and at once
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "ENTRIES_A_WORD", bound)
            patch.setattr(kernels, "TELLING_BITS", 1 << 20)
            patch.setattr(seeking, "_SEEN", room)
            patch.setattr(searching, "_WORKSPACES", [])
            result.append([index.query(query) for query in queries])
            result.append([tail.query(query) for query in queries])
    assert result == [result[0]] * 4
