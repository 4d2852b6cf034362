"""The banded search finds at least the share that it plans, for pairs exactly at the threshold."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import UsageError
from neardup.pipeline.run.rule import Rule
from neardup.similarity.band_plans import BandPlan, plan_bands
from neardup.similarity.bands import band_pairs, documents_with_partner, fold_sets
from neardup.similarity.feature_sets import FeatureSets, Match
from neardup.similarity.join import similar_greedy, similar_sets
from neardup.similarity.recall import (
    KEYS,
    LEAST_FEATURES,
    agreement,
    agreement_of_sets,
    recall_of,
    worst_agreement,
)
from suite import JIT

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL_PLAN = BandPlan(64, 8, 6, 20, 0.5, 1.0, 24, 10, 3)
UNCHECKED_PLAN = BandPlan(64, 8, 6, 20, 0.5, 1.0, 24)


def sets_of(features: Any, offsets: Any) -> FeatureSets:
    return FeatureSets(features, offsets, np.zeros((offsets.size - 1, 1), np.uint64))


def pairs_at(size: int, other: int, similarity: float, count: int, seed: int) -> FeatureSets:
    """`count` pairs of sets of these sizes, each pair just at or above the Jaccard similarity."""
    shared = math.ceil(similarity / (1 + similarity) * (size + other) - 1e-9)
    union = size + other - shared
    drawn = np.random.default_rng(seed).integers(0, 2**64, (count, union), dtype=np.uint64)
    features = np.concatenate([drawn[:, :size], drawn[:, size - shared :]], axis=1).ravel()
    ends = np.cumsum(np.tile([size, other], count))
    return sets_of(features, np.append(0, ends))


def found_share(sets: FeatureSets, similarity: float, plan: BandPlan) -> float:
    """Share of the pairs (0, 1), (2, 3)... of which both documents have a partner."""
    found = documents_with_partner(sets, Match(similarity), plan)
    has = np.zeros(len(sets), bool)
    has[found] = True
    return float((has[::2] & has[1::2]).mean() if len(sets) else 1)


def least_tables(key_bits: int, keys: str) -> int:
    """For recall 0.99 at Jaccard 0.8, from 256 bits."""
    for tables in range(1, 1_000):
        if recall_of(256, key_bits, tables, agreement(0.8), keys=keys) >= 0.99:
            return tables
    raise AssertionError


def test_tables_from_one_fingerprint_need_more_tables_than_independent_ones() -> None:
    """DESIGN.md, section 5, has 97 and 62, 582 and 236 for the rounded agreement 0.848."""
    assert [least_tables(16, keys) for keys in KEYS] == [89, 95, 62]
    assert [least_tables(24, keys) for keys in KEYS] == [572, 579, 236]


def test_the_agreement_of_small_sets_counts_ties() -> None:
    assert math.isclose(agreement_of_sets(4, 5, 4), 0.8125)
    assert math.isclose(agreement_of_sets(7, 7, 7), 1.0)
    assert math.isclose(agreement_of_sets(5, 5, 0), 0.5)
    assert math.isclose(agreement_of_sets(9000, 9000, 8000), agreement(0.8), abs_tol=1e-3)


@pytest.mark.parametrize("similarity", [0.5, 0.7, 0.8, 0.95])
def test_equal_sizes_are_the_worst_case(similarity: float) -> None:
    """At one Jaccard similarity the cosine of two sets is least where they have equal sizes."""
    worst = worst_agreement(similarity)
    for size in (64, 65, 100, 127, 500, 1001):
        for ratio in (1.0, 1.01, 1.1, 1.3, 1 / similarity):
            other = int(size * ratio)
            shared = math.ceil(similarity / (1 + similarity) * (size + other) - 1e-9)
            if shared <= size:
                assert agreement_of_sets(size, other, shared) >= worst - 1e-12


def simulated_recall(
    plan: tuple[int, int, int, int], likely: float, keys: str, pairs: int, check: tuple[int, int]
) -> float:
    bits, key_bits, tables, distance = plan
    random_ = np.random.default_rng(bits + key_bits)
    differs = random_.random((pairs, bits)) > likely
    if keys == "blocks":
        order = BandPlan(bits, key_bits, tables, distance, 0.9, 1.0, 1, *check).bit_order()
    else:
        permutations = (random_.permutation(bits) for _ in range(tables))
        order = np.array([one[: key_bits + check[0]] for one in permutations])
    clean = np.zeros(pairs, bool)
    for table in order:
        equal = ~differs[:, table[:key_bits]].any(axis=1)
        clean |= equal & (differs[:, table[key_bits:]].sum(axis=1) <= check[1])
    return float((clean & (differs.sum(axis=1) <= distance)).mean())


@pytest.mark.parametrize("check", [(0, 0), (30, 5), (40, 9)])
@pytest.mark.parametrize("keys", ["blocks", "sampled"])
@pytest.mark.parametrize(
    "plan", [(256, 16, 97, 256), (256, 16, 60, 45), (256, 24, 300, 58), (512, 20, 170, 105)]
)
def test_the_recall_of_dependent_tables_is_what_a_simulation_gives(
    plan: tuple[int, int, int, int], keys: str, check: tuple[int, int]
) -> None:
    bits, key_bits, tables, distance = plan
    planned = recall_of(bits, key_bits, tables, 0.848, distance, keys, check)
    pairs = 20_000 if JIT else 4_000
    sigma = math.sqrt(planned * (1 - planned) / pairs)
    simulated = simulated_recall(plan, 0.848, keys, pairs, check)
    # The simulation keeps one choice of keys for all pairs, which adds a little of its own.
    assert abs(simulated - planned) < 4 * sigma + 0.003


@pytest.mark.parametrize("similarity", [0.5, 0.7, 0.8, 0.9, 0.95])
def test_pairs_exactly_at_the_threshold_are_found_as_often_as_planned(similarity: float) -> None:
    plan = plan_bands(similarity, 0.95, 4_000)
    sizes = [1, 2, 10, 63, 64, 65, 100, 127, 400, 1_000, 10_000] if JIT else [10, 65]
    reached = []
    for size in sizes:
        count = (1_000 if size < 1_000 else 200 if size < 10_000 else 40) if JIT else 10
        for other in sorted({size, math.ceil(size * (1 + similarity) / 2)}):
            if math.ceil(similarity / (1 + similarity) * (size + other) - 1e-9) > min(size, other):
                continue
            share = found_share(pairs_at(size, other, similarity, count, size), similarity, plan)
            if min(size, other) < LEAST_FEATURES:
                assert share == 1
            sigma = math.sqrt(plan.recall * (1 - plan.recall) / count)
            assert share >= plan.recall - 3.5 * sigma, (size, other)
            reached.append((share * count, count))
    found, made = map(sum, zip(*reached, strict=True))
    assert found / made >= plan.recall - 3 * math.sqrt(plan.recall * (1 - plan.recall) / made)


@pytest.mark.skipif(not JIT, reason="large")
@pytest.mark.parametrize("similarity", [0.6, 0.8])
def test_sizes_from_1_to_10_000_are_found_as_often_as_planned(similarity: float) -> None:
    plan = plan_bands(similarity, 0.97, 4_000)
    random_ = np.random.default_rng(4)
    sizes = np.exp(random_.uniform(0, np.log(10_000), 2_000)).astype(int).tolist()
    made = [pairs_at(size, size, similarity, 1, number) for number, size in enumerate(sizes)]
    ends = np.cumsum(np.repeat(sizes, 2))
    sets = sets_of(np.concatenate([one.features for one in made]), np.append(0, ends))
    sigma = math.sqrt(plan.recall * (1 - plan.recall) / len(sizes))
    assert found_share(sets, similarity, plan) >= plan.recall - 3 * sigma


@given(
    st.floats(0.3, 1.0),
    st.floats(0.5, 0.999),
    st.integers(0, 10**7),
    st.sampled_from(["jaccard", "cosine"]),
)
def test_a_plan_reaches_the_recall_or_is_refused(
    similarity: float, recall: float, n: int, measure: str
) -> None:
    try:
        plan = plan_bands(similarity, recall, n, measure)
    except UsageError as error:
        assert "recall 1" in str(error)  # noqa: PT017  # either outcome is right
        return
    assert plan.recall >= recall
    assert plan == plan_bands.__wrapped__(similarity, recall, n, measure)
    keys, checks = plan.masks()
    assert keys.shape == checks.shape == (plan.tables, plan.bits // 64)
    assert (np.bitwise_count(keys).sum(axis=1) == plan.key_bits).all()
    assert (np.bitwise_count(checks).sum(axis=1) == plan.check_bits).all()
    assert not (keys & checks).any()


def naive_pairs(codes: Any, plan: BandPlan) -> set[tuple[int, int]]:
    order = plan.bit_order().tolist()
    tables = [
        [sum(1 << bit for bit in part) for part in (one[: plan.key_bits], one[plan.key_bits :])]
        for one in order
    ]
    rows = [sum(int(word) << 64 * w for w, word in enumerate(row)) for row in codes]
    found = set()
    for j, y in enumerate(rows):
        for i, x in enumerate(rows[:j]):
            differing = x ^ y
            if differing.bit_count() <= plan.distance and any(
                not differing & key and (differing & check).bit_count() <= plan.check_distance
                for key, check in tables
            ):
                found.add((i, j))
    return found


@st.composite
def near_words(draw: st.DrawFn) -> Any:
    bases = draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4))
    rows = draw(st.lists(st.sampled_from(bases), max_size=30))
    flips = [draw(st.sets(st.integers(0, 63), max_size=24)) for _ in rows]
    values = [row ^ sum(1 << bit for bit in flip) for row, flip in zip(rows, flips, strict=True)]
    return np.array(values, np.uint64).reshape(-1, 1)


@given(near_words(), st.integers(1, 2), st.sampled_from([SMALL_PLAN, UNCHECKED_PLAN]))
def test_every_candidate_pair_comes_once_and_no_other(
    codes: Any, workers: int, plan: BandPlan
) -> None:
    found = [tuple(pair) for chunk in band_pairs(codes, plan, workers) for pair in chunk]
    assert len(found) == len(set(found))
    assert set(found) == naive_pairs(codes, plan)


@pytest.mark.skipif(not JIT, reason="large")
@pytest.mark.parametrize("key_bits", [8, 14])
def test_many_candidate_pairs_come_once_and_in_the_same_order_for_any_workers(
    key_bits: int,
) -> None:
    """Clusters of up to 100 rows: more pairs than the kernels' buffers hold, in several bins."""
    rng = np.random.default_rng(8)
    plan = BandPlan(128, key_bits, 4, 30, 0.5, 1.0, 40, 20, 6)
    codes = rng.integers(0, 2**64, (4_500, 2), dtype=np.uint64)
    for first, rows in ((0, 100), (1_000, 70), (4_000, 40)):
        flips = rng.random((rows, 128)) < 0.1
        codes[first : first + rows] = codes[first] ^ np.packbits(flips, axis=1).view(np.uint64)
    one, two = (np.concatenate(list(band_pairs(codes, plan, workers))) for workers in (1, 2))
    assert np.array_equal(one, two)
    assert len(np.unique(one @ [4_500, 1])) == len(one)
    keys, checks = plan.masks()
    expected = set()
    for row, word in enumerate(codes):
        differing = word ^ codes[row + 1 :]
        near = np.bitwise_count(differing).sum(axis=1) <= plan.distance
        for key, check in zip(keys, checks, strict=True):
            apart = np.bitwise_count(differing & check).sum(axis=1)
            shares = near & ~(differing & key).any(axis=1) & (apart <= plan.check_distance)
            expected |= {(row, row + 1 + int(other)) for other in np.flatnonzero(shares)}
    assert {tuple(pair) for pair in one.tolist()} == expected


def test_more_rows_than_a_plan_is_for_are_refused() -> None:
    plan = BandPlan(128, 30, 1, 20, 0.5, 1.0, 40, 30, 5)
    with pytest.raises(UsageError, match="for fewer documents"):
        list(band_pairs(np.zeros((100, 2), np.uint64), plan))


def natural_like(rng: random.Random, documents: int) -> FeatureSets:
    """Documents of 20 to 200 features, some derived from others, some equal, some empty."""
    made: list[set[int]] = []
    for _ in range(documents):
        if made and rng.random() < 0.6:
            base = rng.choice(made)
            kept = [x for x in sorted(base) if rng.random() > rng.choice([0.0, 0.05, 0.1, 0.3])]
            made.append({*kept, *(rng.getrandbits(64) for _ in range(len(base) - len(kept)))})
        else:
            made.append({rng.getrandbits(64) for _ in range(rng.choice([0, 20, 70, 90, 200]))})
    offsets = np.append(0, np.cumsum([len(x) for x in made]))
    return sets_of(np.array([x for one in made for x in sorted(one)], np.uint64), offsets)


def some_collections() -> Iterator[FeatureSets]:
    for seed in range(10 if JIT else 2):
        yield natural_like(random.Random(seed), 400 if JIT else 20)


def test_a_document_has_a_partner_if_a_candidate_pair_matches() -> None:
    plan, match = plan_bands(0.8, 0.6, 100), Match(0.8)
    for sets in some_collections():
        sizes = np.diff(sets.offsets)
        rows = np.flatnonzero(sizes >= LEAST_FEATURES)
        small = sizes < LEAST_FEATURES / 0.8 + 1
        expected = set(np.flatnonzero(small).tolist())
        matching = {tuple(p) for chunk in similar_sets(sets, match) for p in chunk.tolist()}
        for i, j in naive_pairs(fold_sets(sets, rows, plan.bits // 64), plan):
            if (int(rows[i]), int(rows[j])) in matching:
                expected |= {int(rows[i]), int(rows[j])}
        for workers in (1, 2):
            found = documents_with_partner(sets, match, plan, workers)
            assert set(found.tolist()) == expected


def test_the_bands_only_leave_out_pairs_and_add_none() -> None:
    match = Match(0.7)
    for sets in some_collections():
        among = documents_with_partner(sets, match, plan_bands(0.7, 0.9, len(sets)))
        every = {tuple(p) for chunk in similar_sets(sets, match) for p in chunk.tolist()}
        found = {tuple(p) for c in similar_sets(sets, match, among=among) for p in c.tolist()}
        assert found == {(i, j) for i, j in every if i in among and j in among}
        assert len(found) >= 0.9 * len(every) - 3 * math.sqrt(0.1 * len(every))


def test_only_documents_of_one_group_are_partners() -> None:
    sets = pairs_at(100, 100, 0.9, 50, 1)
    plan, match = plan_bands(0.9, 0.99, 100), Match(0.9)
    apart = FeatureSets(sets.features, sets.offsets, sets.codes, np.arange(100, dtype=np.int32) % 2)
    assert documents_with_partner(apart, match, plan).size == 0
    together = FeatureSets(sets.features, sets.offsets, sets.codes, np.zeros(100, np.int32))
    assert documents_with_partner(together, match, plan).size >= 90


def test_equal_sets_are_always_found_and_their_fingerprints_are_equal() -> None:
    sets = pairs_at(300, 300, 1.0, 200 if JIT else 5, 2)
    codes = fold_sets(sets, np.arange(len(sets)), 4)
    assert np.array_equal(codes[::2], codes[1::2])
    assert found_share(sets, 1.0, plan_bands(1.0, 0.5, len(sets))) == 1


def test_bands_fold_as_the_recipe_does() -> None:
    texts = [" ".join(f"word{i * j % 97}" for j in range(200)) for i in range(1, 20)]
    recipe = nd.Recipe(bits=256)
    from neardup.fingerprinting.fingerprints import feature_hashes

    hashes = [feature_hashes(text, recipe) for text in texts]
    offsets = np.append(0, np.cumsum([len(x) for x in hashes]))
    folded = fold_sets(sets_of(np.concatenate(hashes), offsets), np.arange(len(texts)), 4)
    assert np.array_equal(folded, nd.fingerprints(texts, recipe))


@pytest.mark.skipif(not JIT, reason="large")
def test_a_cluster_of_near_identical_pages_takes_linear_time() -> None:
    """20,000 pages that differ in a feature of 100, 20% of them equal, beside as many others."""
    rng = np.random.default_rng(3)
    page = rng.integers(0, 2**64, 99, dtype=np.uint64)
    own = rng.integers(0, 2**64, 20_000, dtype=np.uint64)
    own[::5] = own[0]
    near = np.concatenate([np.tile(page, (20_000, 1)), own[:, None]], axis=1)
    other = rng.integers(0, 2**64, (20_000, 100), dtype=np.uint64)
    sets = sets_of(np.concatenate([near, other]).ravel(), np.arange(40_001) * 100)
    match = Match(0.8)
    among = documents_with_partner(sets, match, plan_bands(0.8, 0.99, len(sets)))
    assert np.array_equal(among, np.arange(20_000))
    kept_of, _ = similar_greedy(sets, among, match)
    assert (kept_of[:20_000] == 0).all()
    assert np.array_equal(kept_of[20_000:], np.arange(20_000, 40_000))


def long_texts(count: int) -> list[str]:
    rng = random.Random(5)
    codes = [f"w{i}" for i in range(5_000)]
    texts = [" ".join(rng.choices(codes, k=120)) for _ in range(count)]
    return texts + [f"{text} and {i} more" for i, text in enumerate(texts)]


@pytest.mark.parametrize("policy", ["greedy", "components"])
def test_dedup_takes_a_recall_and_states_its_plan(policy: str) -> None:
    texts = long_texts(40 if JIT else 4)
    whole = nd.dedup(texts, policy=policy)
    for workers in (1, 2):
        banded = nd.dedup(texts, policy=policy, recall=0.99, workers=workers)
        assert banded.kept.tolist() == whole.kept.tolist()
        assert banded.duplicates.equals(whole.duplicates)
    settings = banded.summary.settings
    assert settings["recall"] == 0.99
    assert settings["bands"] == plan_bands(0.8, 0.99, len(texts)).to_dict()
    assert whole.summary.settings["bands"] is None


def test_similar_pairs_takes_a_recall() -> None:
    texts = long_texts(40 if JIT else 4)
    assert nd.similar_pairs(texts, 0.8, recall=0.99).equals(nd.similar_pairs(texts, 0.8))


@pytest.mark.parametrize("recall", [0, 0.49, 1.01, 0.99999, float("nan")])
def test_a_recall_out_of_range_is_refused(recall: float) -> None:
    with pytest.raises(UsageError, match="recall"):
        nd.dedup(["a"], recall=recall)


def test_a_recall_that_means_nothing_is_refused() -> None:
    for measure in ("containment", "dice"):
        with pytest.raises(UsageError, match=f"the measure jaccard or cosine, not {measure}"):
            nd.dedup(["a"], measure=measure, recall=0.9)
    with pytest.raises(UsageError, match="recall belongs to similarity"):
        nd.dedup(["a"], distance=3, recall=0.9)
    with pytest.raises(UsageError, match="takes more than"):
        Rule(0.2, recall=0.999).bands(10**9)


def test_fingerprints_of_another_width_are_refused() -> None:
    with pytest.raises(UsageError, match="shape"):
        list(band_pairs(np.zeros((3, 2), np.uint64), SMALL_PLAN))
