"""Similarity mode misses nothing and matches nothing below the threshold, however the sets look."""

from __future__ import annotations

import itertools
import math
import random
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import UsageError
from neardup.runtime.storage.spool import FeatureSpool
from neardup.similarity import greedy_steps as greedy
from neardup.similarity import join as module
from neardup.similarity import key_choice, key_index
from neardup.similarity.feature_sets import FeatureSets, Match, Work, similarities
from neardup.similarity.join import (
    nearest_before,
    similar_components,
    similar_greedy,
    similar_sets,
)
from neardup.similarity.spilled import Spill
from suite import JIT

MEASURES = {
    "jaccard": lambda a, b: len(a & b) / len(a | b),
    "cosine": lambda a, b: len(a & b) / math.sqrt(len(a) * len(b)),
    "containment": lambda a, b: len(a & b) / min(len(a), len(b)),
    "dice": lambda a, b: 2 * len(a & b) / (len(a) + len(b)),
}


def feature_sets(documents: list[set[int]], groups: list[int] | None = None) -> FeatureSets:
    offsets = np.zeros(len(documents) + 1, np.int64)
    offsets[1:] = np.cumsum([len(document) for document in documents])
    features = np.array([feature for document in documents for feature in document], np.uint64)
    codes = np.array([[len(document) % 7] for document in documents], np.uint64).reshape(-1, 1)
    numbers = None if groups is None else np.array(groups, np.int32)
    return FeatureSets(features, offsets, codes, numbers)


def brute_force(
    documents: list[set[int]], match: Match, groups: list[int] | None = None
) -> set[tuple[int, int]]:
    score = MEASURES[match.measure]
    most = 64 if match.distance is None else match.distance
    return {
        (i, j)
        for j, b in enumerate(documents)
        for i, a in enumerate(documents[:j])
        if a and b and score(a, b) >= match.similarity
        and (len(a) % 7 ^ len(b) % 7).bit_count() <= most
        and (groups is None or groups[i] == groups[j])
    }  # fmt: skip


def greedy_by_definition(count: int, order: list[int], pairs: set[tuple[int, int]]) -> list[int]:
    """Walk the documents in order, with the list of those kept."""
    kept: list[int] = []
    kept_of = list(range(count))
    for document in order:
        matching = [k for k in kept if (min(document, k), max(document, k)) in pairs]
        if matching:
            kept_of[document] = matching[0]
        else:
            kept.append(document)
    return kept_of


def components_by_definition(count: int, pairs: set[tuple[int, int]]) -> list[int]:
    """The first document reachable from each."""
    labels, changed = list(range(count)), True
    while changed:
        changed = False
        for i, j in pairs:
            changed |= labels[i] != labels[j]
            labels[i] = labels[j] = min(labels[i], labels[j])
    return labels


def all_pairs(sets: FeatureSets, match: Match, workers: int = 2) -> list[tuple[int, int]]:
    return [tuple(pair) for chunk in similar_sets(sets, match, workers) for pair in chunk.tolist()]


@st.composite
def collections(draw: st.DrawFn) -> list[set[int]]:
    """Small sets with shared, rare, equal and extreme features, many of them alike."""
    vocabulary = draw(
        st.lists(
            st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63, 2**64 - 1]),
            min_size=1,
            max_size=60,
            unique=True,
        )
    )
    sets = st.sets(st.sampled_from(vocabulary), max_size=40)
    documents = draw(st.lists(sets, max_size=12))
    for base in draw(st.lists(st.sampled_from(documents or [set()]), max_size=12)):
        documents.append(base ^ draw(st.sets(st.sampled_from(vocabulary), max_size=3)))
    return documents


matches = st.builds(
    Match,
    st.sampled_from([0.1, 0.5, 2 / 3, 0.7, 0.8, 0.9, 1.0]),
    st.sampled_from(sorted(MEASURES)),
    st.none() | st.integers(0, 3),
)


@given(collections(), matches, st.integers(1, 3))
def test_every_similar_pair_is_found_and_no_other(
    documents: list[set[int]], match: Match, workers: int
) -> None:
    pairs = all_pairs(feature_sets(documents), match, workers)
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == brute_force(documents, match)


@given(collections(), matches, st.randoms(use_true_random=False))
def test_greedy_is_the_streaming_definition(
    documents: list[set[int]], match: Match, shuffler: random.Random
) -> None:
    order = list(range(len(documents)))
    shuffler.shuffle(order)
    expected = greedy_by_definition(len(documents), order, brute_force(documents, match))
    kept_of, score = similar_greedy(feature_sets(documents), np.array(order, np.int64), match)
    assert kept_of.tolist() == expected
    for document, keeper in enumerate(expected):
        if document != keeper:
            measure = MEASURES[match.measure]
            assert score[document] == measure(documents[document], documents[keeper])


@pytest.mark.parametrize("feature", [0, 0x9E3779B97F4A7C15, 2**64 - 1])
def test_no_feature_stands_for_another(feature: int) -> None:
    """0 marks a free slot of the table of members; it is a feature like any other."""
    documents = [{0, 1, feature}, {0}, {1, feature}, {feature}, set(range(9))]
    sets = feature_sets(documents)
    left, right = np.array(list(itertools.combinations(range(len(documents)), 2))).T
    measured = similarities(sets, left, right, "containment")
    shared = [len(documents[i] & documents[j]) for i, j in zip(left, right, strict=True)]
    smaller = [min(len(documents[i]), len(documents[j])) for i, j in zip(left, right, strict=True)]
    assert measured.tolist() == [a / b for a, b in zip(shared, smaller, strict=True)]


@given(collections(), matches)
def test_components_are_the_transitive_groups(documents: list[set[int]], match: Match) -> None:
    labels = components_by_definition(len(documents), brute_force(documents, match))
    assert similar_components(feature_sets(documents), match).tolist() == labels


@given(collections(), st.data())
def test_only_documents_of_one_group_match(documents: list[set[int]], data: st.DataObject) -> None:
    size = len(documents)
    groups = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    match = Match(0.6)
    pairs = set(all_pairs(feature_sets(documents, groups), match))
    assert pairs == brute_force(documents, match, groups)


@given(collections(), st.integers(1, 50))
def test_neither_chunks_nor_the_size_of_the_counts_change_the_result(
    documents: list[set[int]], chunk: int
) -> None:
    sets, match = feature_sets(documents), Match(0.5)
    expected = set(all_pairs(sets, match))
    saved = module.CHUNK_FEATURES
    module.CHUNK_FEATURES = chunk  # type: ignore[misc]
    try:
        small = FeatureSets(sets.features, sets.offsets, sets.codes, cell_limit=1)
        assert set(all_pairs(small, match)) == expected
    finally:
        module.CHUNK_FEATURES = saved  # type: ignore[misc]


@given(
    st.integers(0, 130 if JIT else 24),
    st.integers(1, 12),
    st.lists(st.integers(0, 8), min_size=1, max_size=6),
    matches,
    st.randoms(use_true_random=False),
)
def test_many_documents_under_few_keys_change_no_result(
    count: int, kinds: int, changes: list[int], match: Match, shuffler: random.Random
) -> None:
    """Equal ones, near ones, and ones that share their rarest features and little else."""
    common = list(range(1, 30))
    bases = [{*shuffler.sample(common, 20), 100 + i % 3, 200 + i % 3} for i in range(kinds)]
    documents = [
        bases[shuffler.randrange(kinds)]
        ^ set(shuffler.sample(common, shuffler.choice(changes) % 9))
        for _ in range(count)
    ]
    order = list(range(count))
    shuffler.shuffle(order)
    groups = None if shuffler.randrange(2) else [shuffler.randrange(2) for _ in documents]
    sets, pairs = feature_sets(documents, groups), brute_force(documents, match, groups)
    assert set(all_pairs(sets, match)) == pairs
    kept_of, _ = similar_greedy(sets, np.array(order, np.int64), match)
    assert kept_of.tolist() == greedy_by_definition(count, order, pairs)
    labels = components_by_definition(count, pairs)
    assert similar_components(sets, match).tolist() == labels
    in_parts = replace(sets, spill=Spill(1 << 12))
    assert similar_components(in_parts, match).tolist() == labels
    for new in (0, count // 2):
        whole, parts = (
            similar_greedy(x, np.array(order), match, 2, None, new) for x in (sets, in_parts)
        )
        assert [x.tolist() for x in whole] == [x.tolist() for x in parts]


@pytest.mark.parametrize("measure", ["jaccard", "cosine", "containment", "dice"])
@pytest.mark.parametrize("similarity", [0.34, 0.5, 0.8])
def test_lines_of_a_form_match_whether_their_shared_keys_are_early_or_late(
    measure: str, similarity: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form's first two features have long lists, with lines of all sizes, first and last."""
    monkeypatch.setattr(key_choice, "LEAST_DOCUMENTS", 1 << 62)  # none is one key with others
    rng, count = random.Random(11), 900 if JIT else 400
    form = [rng.getrandbits(64) for _ in range(7)]
    documents = [
        {*form[: rng.choice([2, 2, 2, 7])], *(rng.getrandbits(64) for _ in range(rng.randrange(9)))}
        for _ in range(count)
    ]
    sets, match = feature_sets(documents), Match(similarity, measure=measure)
    pairs = brute_force(documents, match)
    assert set(all_pairs(sets, match)) == pairs
    kept_of, _ = similar_greedy(sets, np.arange(count), match)
    assert kept_of.tolist() == greedy_by_definition(count, list(range(count)), pairs)
    assert similar_components(sets, match).tolist() == components_by_definition(count, pairs)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 16, 17, 64, 65, 200 if JIT else 66])
def test_equal_documents_are_one_group(count: int) -> None:
    sets = feature_sets([set(range(20))] * count)
    kept_of, score = similar_greedy(sets, np.arange(count), Match(1.0))
    assert kept_of.tolist() == similar_components(sets, Match(1.0)).tolist() == [0] * count
    assert (score == 1).all()
    assert len(all_pairs(sets, Match(1.0))) == count * (count - 1) // 2


@pytest.mark.skipif(not JIT, reason="large")
def test_lines_just_below_the_threshold_are_not_compared() -> None:
    """20,000 lines with 7 of 8 features in common: each is found by a key, none is looked at."""
    rng, work = random.Random(3), Work()
    line = [rng.getrandbits(64) for _ in range(7)]
    documents = [{*line, rng.getrandbits(64)} for _ in range(20_000)]
    kept_of, _ = similar_greedy(feature_sets(documents), np.arange(20_000), Match(0.8), work=work)
    assert np.array_equal(kept_of, np.arange(20_000))
    assert work.postings >= 20_000
    assert work.candidates == 0


SIZES = [1, 2, 3, 4, 5, 9, 10, 31, 63, 64, 65, 100, 255, 256, 1000, 10_000]


@pytest.mark.parametrize("similarity", [0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
def test_pairs_exactly_at_the_threshold_are_found_and_those_just_below_are_not(
    similarity: float,
) -> None:
    rng = random.Random(f"{similarity}")
    documents, at, below = [], [], []
    for size in SIZES if JIT else SIZES[:8]:
        for other in {size, math.ceil(size * similarity), math.ceil(size * (1 + similarity) / 2)}:
            shared = math.ceil(similarity / (1 + similarity) * (size + other) - 1e-9)
            for overlap, expected in ((shared, at), (shared - 1, below)):
                if not 0 < overlap <= min(size, other):
                    continue
                common = [rng.getrandbits(64) for _ in range(overlap)]
                expected.append((len(documents), len(documents) + 1))
                documents += [
                    set(common + [rng.getrandbits(64) for _ in range(rest - overlap)])
                    for rest in (size, other)
                ]
    pairs = set(all_pairs(feature_sets(documents), Match(similarity)))
    assert pairs == set(at)
    assert not pairs & set(below)


@pytest.mark.skipif(not JIT, reason="large")
def test_a_cluster_of_near_identical_documents_takes_linear_time_and_memory() -> None:
    """30,000 pages that differ in one feature of 60, in the presence of as many others."""
    rng = random.Random(1)
    page = [rng.getrandbits(64) for _ in range(59)]
    documents = [{*page, rng.getrandbits(64)} for _ in range(30_000)]
    documents += [{rng.getrandbits(64) for _ in range(60)} for _ in range(30_000)]
    sets = feature_sets(documents)
    kept_of, _ = similar_greedy(sets, np.arange(len(documents)), Match(0.8))
    assert (kept_of[:30_000] == 0).all()
    assert np.array_equal(kept_of[30_000:], np.arange(30_000, 60_000))
    assert np.array_equal(similar_components(sets, Match(0.8)), kept_of)


@pytest.mark.skipif(not JIT, reason="large")
def test_boilerplate_that_many_different_documents_share_does_not_match_them() -> None:
    rng = random.Random(2)
    footer = [rng.getrandbits(64) for _ in range(70)]
    documents = [{*footer, *(rng.getrandbits(64) for _ in range(30))} for _ in range(20_000)]
    kept_of, _ = similar_greedy(feature_sets(documents), np.arange(20_000), Match(0.8))
    assert np.array_equal(kept_of, np.arange(20_000))


def test_features_on_disk_give_the_same_result_and_leave_nothing_behind(
    tmp_path: object,
) -> None:
    texts = [f"{i % 9} one two three four five {i % 4} six seven" for i in range(200)]
    expected = nd.similar_pairs(texts, 0.6)
    from neardup.pipeline.run import read_documents

    class Tiny(FeatureSpool):
        def __init__(self, limit: int, tmp: str | None = None, kept: None = None) -> None:
            assert limit > 0
            super().__init__(100, str(tmp_path))
            assert tmp is kept is None

    saved = read_documents.FeatureSpool
    read_documents.FeatureSpool = Tiny  # type: ignore[misc]
    try:
        assert nd.similar_pairs(texts, 0.6).equals(expected)
    finally:
        read_documents.FeatureSpool = saved  # type: ignore[misc]
    assert not list(tmp_path.iterdir())  # type: ignore[attr-defined]


def test_similar_pairs_are_sorted_and_carry_distance_and_similarity() -> None:
    texts = ["a b c d e f", None, "x y z", "a b c d e g", "A B C D E F", ""]
    table = nd.similar_pairs(texts, 0.6, on_error="skip")
    assert table.column_names == ["left", "right", "distance", "similarity"]
    assert table["left"].to_pylist() == [0, 0, 3]
    assert table["right"].to_pylist() == [3, 4, 4]
    assert table["similarity"].to_pylist() == [0.6, 1.0, 0.6]
    assert table["distance"][1].as_py() == 0


def test_similarities_measure_any_two_documents() -> None:
    sets = feature_sets([{1, 2, 3}, {2, 3, 4}, set(), set()])
    left, right = np.array([0, 0, 2]), np.array([1, 2, 3])
    assert similarities(sets, left, right).tolist() == [0.5, 0.0, 1.0]


def test_count_weights_compare_sets_as_well() -> None:
    texts = ["na na na na na na batman", "na na na na batman"]
    recipe = nd.Recipe(ngram=1, weight="count")
    assert nd.similar_pairs(texts, 0.9, recipe=recipe)["similarity"].to_pylist() == [1.0]


@pytest.mark.parametrize("similarity", [0, -0.5, 1.01, float("nan")])
def test_a_threshold_out_of_range_is_refused(similarity: float) -> None:
    with pytest.raises(UsageError, match="similarity"):
        nd.dedup(["a"], similarity=similarity)


def test_contradictory_options_are_refused() -> None:
    with pytest.raises(UsageError, match="exclude"):
        nd.dedup(["a"], similarity=0.8, distance=3)
    with pytest.raises(UsageError, match="verify requires"):
        nd.dedup(["a"], verify=0.8)
    with pytest.raises(UsageError, match="measure"):
        nd.dedup(["a"], measure="cos")


def test_verify_drops_what_is_near_in_bits_but_not_in_text() -> None:
    texts = ["one two three four five", "one two three four six", "seven eight nine ten"]
    with pytest.warns(nd.DoubtfulResultWarning, match="matches unrelated documents"):
        assert nd.dedup(texts, distance=63).kept.tolist() == [True, False, False]
    assert nd.dedup(texts, distance=63, verify=0.4).kept.tolist() == [True, False, True]
    assert nd.dedup(texts, distance=0, verify=0.4).kept.tolist() == [True, True, True]


@given(collections(), st.data())
def test_the_nearest_earlier_document_is_the_definitions(
    documents: list[set[int]], data: st.DataObject
) -> None:
    measure = data.draw(st.sampled_from(sorted(MEASURES)))
    match = Match(data.draw(st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0])), measure)
    order = data.draw(st.permutations(range(len(documents))))
    pairs = brute_force(documents, match)
    nearest, score, missed = nearest_before(feature_sets(documents), np.array(order, int), match, 1)
    expected = [0.0] * len(documents)
    for rank, x in enumerate(order):
        for y in order[:rank]:
            if (min(x, y), max(x, y)) in pairs:
                reached = MEASURES[measure](documents[x], documents[y])
                expected[x] = max(expected[x], reached)
    assert missed == 0
    assert score.tolist() == pytest.approx(expected)
    for x, y in enumerate(nearest.tolist()):
        assert (x == y) == (expected[x] == 0)
        assert x == y or order.index(y) < order.index(x)


def test_equal_documents_whose_codes_differ_are_both_found_as_nearest() -> None:
    """The third document is near the second by its code, and too far from the first."""
    sets = replace(feature_sets([{1, 2, 3}] * 3), codes=np.array([[0], [3], [15]], np.uint64))
    nearest, _, _ = nearest_before(sets, np.arange(3), Match(0.8, distance=2), 1)
    assert nearest.tolist() == [0, 0, 1]


def test_a_search_for_the_nearest_may_stop_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_FEATURES", 40)
    sets = feature_sets([set(range(20)) | {100 + i} for i in range(40)])
    nearest, _, missed = nearest_before(sets, np.arange(40), Match(0.5), 1, most=3)
    assert 0 < missed < 40
    assert nearest[40 - missed :].tolist() == list(range(40 - missed, 40))
    work, kept = Work(), Work()
    nearest_before(sets, np.arange(40), Match(0.5), 1, work)
    similar_greedy(sets, np.arange(40), Match(0.5), 1, kept, first_new=40)
    assert work == Work(kept.postings, 40 * 39 // 2)


def test_an_index_that_grows_keeps_every_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "BYTES_AT_ONCE", 1)
    monkeypatch.setattr(module, "CHUNK_FEATURES", 100)
    sets = feature_sets([{i} for i in range(1, 1501)] * 2)
    assert similar_components(sets, Match(1.0), 1).tolist() == [*range(1500)] * 2


def test_a_search_in_parts_may_stop_between_batches_of_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_choice, "LEAST_DOCUMENTS", 1 << 62)  # none is one key with others
    forms = [{*range(30 * group, 30 * group + 20)} for group in range(40)]
    sets = feature_sets([forms[i // 5] | {10**6 + i} for i in range(200)])
    in_parts, order, match = replace(sets, spill=Spill(1 << 12)), np.arange(200), Match(0.5)
    whole = nearest_before(sets, order, match, 1, most=1)
    nearest, _, missed = nearest_before(in_parts, order, match, 1, most=1)
    assert whole[2] == 0 < missed < 200
    assert nearest[: 200 - missed].tolist() == whole[0][: 200 - missed].tolist()


def test_the_first_document_has_a_nearest_one_where_it_is_the_last_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_choice, "LEAST_DOCUMENTS", 1 << 62)  # none is one key with others
    forms = [{*range(90 * group, 90 * group + 20)} for group in range(4)]
    two = [{*range(5000, 5020)}] * 2  # no other document has met the second one
    sets = feature_sets([*two, *(forms[i % 4] | {10**6 + i} for i in range(200))])
    in_parts, order = replace(sets, spill=Spill(1 << 12)), np.arange(202)[::-1].copy()
    whole, parts = (nearest_before(each, order, Match(0.5), 1) for each in (sets, in_parts))
    assert parts[0].tolist() == whole[0].tolist()
    assert whole[0][0] == 1


@given(collections(), matches, st.integers(2, 8), st.integers(1, 60), st.integers(0, 5), st.data())
def test_threads_and_steps_change_no_match_no_score_and_no_count(
    documents: list[set[int]], match: Match, workers: int, step: int, new: int, data: st.DataObject,
) -> None:  # fmt: skip
    """Whatever a step is, and in how many threads it is looked up: as one after the other."""
    order = np.array(data.draw(st.permutations(range(len(documents)))), np.int64)
    sets, alone, together = feature_sets(documents), Work(), Work()
    expected = similar_greedy(sets, order, match, 1, alone, new)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "FIRST_STEP", step)
        patch.setattr(greedy, "MOST_OF_ALONE", math.inf)
        patch.setattr(module, "CHUNK_FEATURES", 400)
        kept_by = similar_greedy(sets, order, match, workers, together, new)
    assert [x.tolist() for x in kept_by] == [x.tolist() for x in expected]
    assert together == alone


@pytest.mark.skipif(not JIT, reason="large")
@pytest.mark.parametrize("similarity", [0.3, 0.8])
def test_many_documents_in_threads_are_matched_as_by_one(similarity: float) -> None:
    rng = np.random.default_rng(4)
    pages = rng.integers(0, 1 << 60, (300, 40))
    documents = []
    for page in pages[rng.integers(0, 300, 20_000)]:
        page[: rng.integers(0, 20)] = rng.integers(0, 2000)
        documents.append(set(page.tolist()))
    sets, order, match = feature_sets(documents), rng.permutation(20_000), Match(similarity)
    expected = similar_greedy(sets, order, match, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "MOST_OF_ALONE", math.inf)
        steps: list[float] = []
        in_threads = greedy.GreedySteps._step_in_threads  # noqa: SLF001

        def counted(*arguments: Any) -> float:
            steps.append(in_threads(*arguments))
            return steps[-1]

        patch.setattr(greedy.GreedySteps, "_step_in_threads", counted)
        for workers in (2, 5):
            kept_by = similar_greedy(sets, order, match, workers)
            assert all(np.array_equal(*each) for each in zip(kept_by, expected, strict=True))
        assert len(steps) > 1


def test_threads_that_are_slower_than_one_are_tried_again_from_time_to_time() -> None:
    sets = feature_sets([{1, 2, 3}] * 40)
    run = module._Run(sets, np.arange(40), Match(0.8), 16)  # noqa: SLF001
    documents, keys = run._keys_and_sketches(np.arange(40))  # noqa: SLF001
    arrays = run._sets, run._condition, run._index, [module.KeyIndex(40, 1, None)]  # noqa: SLF001
    ways: list[str] = []

    def step(name: str, seconds: float) -> float:
        ways.append(name)
        time.sleep(seconds)
        return seconds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "AGAIN", 1)
        patch.setattr(greedy, "LONGEST_AGAIN", 4)
        with greedy.GreedySteps(*arrays, run._scratch, 16) as steps:  # noqa: SLF001
            patch.setattr(steps, "_step", lambda *_: step("one", 0.002))
            patch.setattr(steps, "_step_in_threads", lambda *_: step("threads", 0.02))
            for _ in range(16):
                steps.match(documents, keys, run.walk, 0.0, np.zeros(1, np.uint8))
    runs = [(way, len(list(each))) for way, each in itertools.groupby(ways)]
    assert [count for way, count in runs if way == "one"] == [1, 2, 4, 4, 1]
    assert {count for way, count in runs if way == "threads"} == {1}


def test_one_long_choice_of_keys_does_not_end_steps_in_threads() -> None:
    """A busy machine makes one measure in many long: those before it weigh more."""
    sets = feature_sets([{1, 2, 3}] * 40)
    run = module._Run(sets, np.arange(40), Match(0.8), 16)  # noqa: SLF001
    documents, keys = run._keys_and_sketches(np.arange(40))  # noqa: SLF001
    fresh = [module.KeyIndex(40, 1, None)]
    ways: list[str] = []
    with (
        greedy.GreedySteps(
            run._sets, run._condition, run._index, fresh, run._scratch, 16  # noqa: SLF001
        ) as steps,
        pytest.MonkeyPatch.context() as patch,
    ):  # fmt: skip
        for name in ("_step", "_step_in_threads"):
            patch.setattr(steps, name, lambda *_, name=name: ways.append(name) or 0.01)
        for choosing in (0.01, 0.01, 0.01, 0.16, 0.01):
            steps.match(documents, keys, run.walk, choosing, np.zeros(1, np.uint8))
    assert ways == ["_step"] + ["_step_in_threads"] * 4
