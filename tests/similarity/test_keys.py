"""However documents are found, by rare keys or by one key for all, the same ones match."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.similarity import sketches
from neardup.similarity.feature_sets import Match, Work
from neardup.similarity.join import nearest_before, similar_components, similar_greedy
from neardup.similarity.keys import KeySample
from neardup.similarity.sketches import entry_words, sketch_words
from similarity.test_join import (
    MEASURES,
    all_pairs,
    brute_force,
    components_by_definition,
    feature_sets,
    greedy_by_definition,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def documents_of(seed: int, count: int, vocabulary: int, most: int) -> list[set[int]]:
    """Sets of up to `most` features of a small vocabulary; some are others with changes."""
    draw = random.Random(seed)
    words = [draw.getrandbits(64) for _ in range(vocabulary)]
    documents: list[set[int]] = []
    for _ in range(count):
        if documents and draw.random() < 0.5:
            changes = draw.sample(words, draw.randrange(1 + most // 4))
            documents.append(draw.choice(documents) ^ set(changes))
        else:
            documents.append(set(draw.sample(words, draw.randrange(most + 1))))
    return documents


collections = st.builds(
    documents_of,
    st.integers(0, 10**6),
    st.integers(0, 24),
    st.just(500),
    st.sampled_from([40, 400]),
)
matches = st.builds(
    Match, st.sampled_from([0.2, 0.3, 0.5, 0.8, 1.0]), st.sampled_from(sorted(MEASURES))
)


@given(
    collections, matches, st.booleans(), st.sampled_from([1, 4]),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_both_ways_and_every_length_of_a_sketch_find_the_same(
    documents: list[set[int]], match: Match, is_one: bool, words: int, draw: random.Random
) -> None:
    expected = brute_force(documents, match)
    order = list(range(len(documents)))
    draw.shuffle(order)
    sets = feature_sets(documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeySample, "is_one_key_cheaper", is_one)
        patch.setattr(sketches, "entry_words", lambda *_: words)
        found = all_pairs(sets, match)
        kept_of = similar_greedy(sets, np.array(order, np.int64), match)[0]
        labels = similar_components(sets, match)
        nearest = nearest_before(sets, np.array(order, np.int64), match)[0]
    assert sorted(found) == sorted(expected)
    assert kept_of.tolist() == greedy_by_definition(len(documents), order, expected)
    assert labels.tolist() == components_by_definition(len(documents), expected)
    assert nearest.tolist() == nearest_by_definition(documents, order, expected, match)


def nearest_by_definition(
    documents: list[set[int]], order: list[int], pairs: set[tuple[int, int]], match: Match
) -> list[int]:
    """The most similar document before each; of several the first in order."""
    score: Callable[[set[int], set[int]], float] = MEASURES[match.measure]
    nearest = list(range(len(documents)))
    for place, x in enumerate(order):
        before = [y for y in order[:place] if (min(x, y), max(x, y)) in pairs]
        if before:
            nearest[x] = max(before, key=lambda y: score(documents[x], documents[y]))
    return nearest


@pytest.mark.parametrize(("vocabulary", "is_one"), [(100, True), (1 << 30, False)])
def test_where_no_feature_is_rare_all_documents_have_one_key(vocabulary: int, is_one: bool) -> None:
    draw = random.Random(1)
    documents = [{draw.randrange(vocabulary) for _ in range(60)} for _ in range(200)]
    work = Work()
    similar_greedy(feature_sets(documents), np.arange(200), Match(0.6), work=work)
    assert (work.postings == len(documents)) is is_one


def test_containment_of_different_sizes_compares_few_documents() -> None:
    draw = random.Random(4)
    words = [draw.getrandbits(64) for _ in range(5000)]
    weights = [1 / (1 + place) for place in range(len(words))]
    documents = [set(draw.choices(words, weights, k=draw.randrange(10, 400))) for _ in range(300)]
    documents += [set(draw.sample(sorted(draw.choice(documents)), 5)) for _ in range(20)]
    match, work = Match(0.9, "containment"), Work()
    sets = feature_sets(documents)
    kept_of = similar_greedy(sets, np.arange(len(documents)), match, work=work)[0]
    pairs = brute_force(documents, match)
    assert kept_of.tolist() == greedy_by_definition(len(documents), list(range(320)), pairs)
    assert work.candidates < len(documents) ** 2 / 2 / 20


def test_a_sketch_is_as_long_as_documents_and_threshold_ask_for_and_memory_allows() -> None:
    short, long = np.full(100, 40), np.full(100, 1000)
    words = [sketch_words(sizes, Match(0.8), 1 << 30) for sizes in (short, long)]
    assert words == [4, 16]
    assert sketch_words(long, Match(0.3), 1 << 30) == 128
    assert sketch_words(long, Match(0.3), 100 * 8 * 40) == 32
    assert sketch_words(long, Match(0.9, "containment"), 1 << 30) == 16
    assert sketch_words(long, Match(0.5, "containment"), 1 << 30) == 64
    assert sketch_words(np.zeros(3, np.int64), Match(), 1 << 30) == 4


def test_entries_are_wide_where_one_word_tells_nothing_four_do_and_looks_are_many() -> None:
    short, long = np.full(100, 48), np.full(100, 1000)
    assert entry_words(short, Match(0.5), looks=50) == 4
    assert entry_words(short, Match(0.5), looks=5) == 1
    assert entry_words(short, Match(0.8), looks=50) == 1
    assert entry_words(short, Match(0.2), looks=50) == 1
    assert entry_words(long, Match(0.5), looks=50) == 1
    assert entry_words(np.zeros(3, np.int64), Match(0.5), looks=50) == 1
    assert entry_words(short, Match(0.5, "containment"), looks=50) == 1
