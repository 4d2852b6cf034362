"""However documents are found, by rare keys or by one key for all, the same ones match."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import UsageError
from neardup.kernels.similarity.join_arguments import Rarity
from neardup.kernels.similarity.postings import KEYS, ROWS_A_KEY
from neardup.kernels.similarity.rare_keys import MOST
from neardup.similarity import greedy_steps as greedy
from neardup.similarity import sketches
from neardup.similarity.feature_counts import count_features, rarity
from neardup.similarity.feature_sets import Match, Work, arguments
from neardup.similarity.join import nearest_before, similar_components, similar_greedy
from neardup.similarity.key_choice import KeySample, keys_of_part, rare_keys, sample_keys
from neardup.similarity.key_index import MOST_ROWS, ROWS_AT_ONCE, KeyIndex
from neardup.similarity.sketches import entry_words, sketch_words
from neardup.similarity.spilled import Spill
from similarity.test_join import (
    MEASURES,
    all_pairs,
    brute_force,
    components_by_definition,
    feature_sets,
    greedy_by_definition,
)
from suite import JIT

if TYPE_CHECKING:
    from collections.abc import Callable


def documents_of(seed: int, count: int, vocabulary: int, most: int, footer: int) -> list[set[int]]:
    """Sets of up to `most` features of a small vocabulary; some are others with changes.

    Most of those that are not have the same `footer` features as well.
    """
    draw = random.Random(seed)
    words = [draw.getrandbits(64) for _ in range(vocabulary)]
    shared = {draw.getrandbits(64) for _ in range(footer)}
    documents: list[set[int]] = []
    for _ in range(count):
        if documents and draw.random() < 0.5:
            changes = draw.sample(words, draw.randrange(1 + most // 4))
            documents.append(draw.choice(documents) ^ set(changes))
        else:
            own = set(draw.sample(words, draw.randrange(most + 1)))
            documents.append(own | shared if draw.random() < 0.8 else own)
    return documents


collections = st.builds(
    documents_of,
    st.integers(0, 10**6),
    st.integers(0, 24),
    st.just(500),
    st.sampled_from([20, 40, 400]),
    st.sampled_from([0, 1, 30, 60]),
)
matches = st.builds(
    Match, st.sampled_from([0.2, 0.3, 0.5, 0.8, 1.0]), st.sampled_from(sorted(MEASURES))
)


@given(
    collections, matches, st.sampled_from([0, 1, 2, 3, 8, 40, 255]), st.sampled_from([1, 4]),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_whatever_features_are_common_and_entries_are_long_the_same_are_found(
    documents: list[set[int]], match: Match, common: int, words: int, draw: random.Random
) -> None:
    expected = brute_force(documents, match)
    order = list(range(len(documents)))
    draw.shuffle(order)
    sets = feature_sets(documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeySample, "most_rare", common)
        patch.setattr(sketches, "entry_words", lambda *_: words)
        pairs = all_pairs(sets, match)
        kept_of = similar_greedy(sets, np.array(order, np.int64), match)[0]
        labels = similar_components(sets, match)
        nearest = nearest_before(sets, np.array(order, np.int64), match)[0]
        in_parts = replace(sets, spill=Spill(1 << 12))
        labels_of_parts = similar_components(in_parts, match)
        kept_of_parts = similar_greedy(in_parts, np.array(order, np.int64), match)[0]
        patch.setattr(greedy, "FIRST_STEP", 40)
        patch.setattr(greedy, "MOST_OF_ALONE", math.inf)
        kept_in_threads = similar_greedy(sets, np.array(order, np.int64), match, 3)[0]
    assert sorted(pairs) == sorted(expected)
    assert kept_of.tolist() == greedy_by_definition(len(documents), order, expected)
    assert kept_in_threads.tolist() == kept_of_parts.tolist() == kept_of.tolist()
    assert labels_of_parts.tolist() == labels.tolist()
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
    spread = 0x9E3779B97F4A7C15
    documents = [
        {draw.randrange(vocabulary) * spread % 2**64 for _ in range(60)} for _ in range(200)
    ]
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


@pytest.mark.skipif(not JIT, reason="large")
@pytest.mark.parametrize("common", [58, 40])
def test_pages_that_share_a_footer_are_looked_at_for_what_else_they_share(common: int) -> None:
    """Pages of 88 features, with one footer or one of two: of 12 million pairs few are verified.

    Two that share 58 have a similarity of 0.49, and their sketches look like similar ones'.
    """
    draw = random.Random(4)
    footers = [{draw.getrandbits(64) for _ in range(common)} for _ in range(1 + 58 // common)]
    documents = [
        draw.choice(footers) | {draw.getrandbits(64) for _ in range(88 - common)}
        for _ in range(5_000)
    ]
    documents[4_999] = {*list(documents[0])[1:], 1}
    for workers in (1, 2):
        work = Work()
        kept_by = similar_greedy(
            feature_sets(documents), np.arange(5_000), Match(0.5), workers, work
        )
        assert kept_by[0].tolist() == [*range(4_999), 0]
        assert work.candidates < 200  # a rare feature may share the cell of a common one


def test_long_documents_among_many_short_ones_are_told_apart_by_sketches() -> None:
    """Strangers with common keys, which a sketch of 256 bits does not tell apart at 0.5."""
    draw = random.Random(4)
    words = [draw.getrandbits(64) for _ in range(3_000)]
    documents = [set(draw.sample(words, 200)) for _ in range(300)]
    documents += [{draw.getrandbits(64) for _ in range(20)} for _ in range(1_000)]
    work = Work()
    kept_of = similar_greedy(feature_sets(documents), np.arange(1_300), Match(0.5), work=work)[0]
    assert kept_of.tolist() == list(range(1_300))
    assert work.candidates < 300 * 299 / 2 / 20


def test_a_sample_has_documents_of_each_kind_where_kinds_take_turns() -> None:
    footer = set(range(1, 31))
    documents = [footer | {100 + row} if row % 2 else {100 + row} for row in range(4_096)]
    spread = 0x9E3779B97F4A7C15
    sets = feature_sets([{x * spread % 2**64 for x in each} for each in documents])
    match = Match(0.5)
    arrays, condition = arguments(sets, match)
    alone = Rarity(*rarity(sets, 1), MOST)
    sample = sample_keys(np.arange(4_096), arrays, alone, condition, match)
    own = rare_keys(np.array([1]), arrays, alone, condition).keys.size
    assert 0.4 < sample.entries[MOST] / own / sample.drawn < 0.6


def test_a_sketch_is_as_long_as_documents_and_threshold_ask_for_and_memory_allows() -> None:
    short, long = np.full(100, 40), np.full(100, 1000)
    words = [sketch_words(sizes, Match(0.8), 1 << 30) for sizes in (short, long)]
    assert words == [4, 16]
    assert sketch_words(np.repeat([20, 200], [100, 30]), Match(0.5), 1 << 30) == 8
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


@pytest.mark.parametrize("threads", [1, 3])
def test_there_is_room_for_the_keys_that_are_in_and_those_to_come(threads: int) -> None:
    index = KeyIndex(10, 1, None, threads)
    of_arenas = len(index.arenas()) * ROWS_AT_ONCE if threads > 1 else 0
    for keys in (5000, 70_000):
        index.postings.used[KEYS] = keys
        index.make_room(np.arange(keys, dtype=np.uint64), lambda: 0)
        assert len(index.postings.rows) > 2 * keys * ROWS_A_KEY + of_arenas
        assert len(index.postings.folds) >= len(index.postings.rows)


def test_documents_have_numbers_up_to_the_most_rows() -> None:
    keys = np.arange(3, dtype=np.uint64)
    KeyIndex(MOST_ROWS - 1, 1, None).make_room(keys, lambda: 0)
    with pytest.raises(UsageError, match="4,294,967,296 is the most"):
        KeyIndex(MOST_ROWS, 1, None).make_room(keys, lambda: 0)


def test_features_that_two_parts_have_are_keys_of_each() -> None:
    documents = [
        {feature * 0x9E3779B97F4A7C15 % 2**64 for feature in range(i, i + 9)} for i in range(1, 50)
    ]
    part = feature_sets(documents)
    cells = count_features(np.concatenate([part.features] * 2), 12)
    keys = keys_of_part(part, cells, Match(0.5))
    assert np.all(np.diff(keys.offsets) > 4)
