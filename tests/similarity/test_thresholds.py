"""Every threshold above 0 is met exactly, however small, against scores of exact fractions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

import neardup as nd
from neardup.errors import UsageError
from neardup.kernels.similarity.join_arguments import Condition
from neardup.kernels.similarity.measure_bounds import (
    least_overlap,
    needed_overlap,
    overlap,
    reaches,
    score,
    size_ratio,
    sizes_near,
)
from neardup.similarity.feature_sets import Match
from neardup.similarity.join import nearest_before, similar_components, similar_greedy
from neardup.similarity.measures import MEASURES
from neardup.similarity.spilled import Spill
from neardup.spark.workers.key_pairs import candidates
from similarity.test_join import (
    all_pairs,
    collections,
    components_by_definition,
    feature_sets,
    greedy_by_definition,
)

TINY = [5e-324, 1e-320, 2.3e-308, 1e-300, 1e-162, 1e-154, 1e-40, 1e-18, 1e-9, 2e-9, 3e-7, 1e-3]
"""Some with squares of 0, of fewer digits, and with quotients beyond an int64."""


def exact(shared: int, size: int, other: int, measure: str) -> float:
    """The float64 nearest to the fraction, of the cosine nearest to its root within one step."""
    if measure == "jaccard":
        return float(Fraction(shared, size + other - shared))
    if measure == "containment":
        return float(Fraction(shared, min(size, other)))
    if measure == "dice":
        return float(Fraction(2 * shared, size + other))
    return shared / math.sqrt(float(size) * float(other))


@njit
def bounds(size: int, other: int, condition: Condition) -> tuple[int, int, int, int, int]:
    least = least_overlap(size, condition), least_overlap(other, condition)
    return *least, needed_overlap(size, other, condition), *sizes_near(size, condition)


@njit
def measured(shared: int, size: int, other: int, measure: int) -> float:
    return score(shared, size, other, measure)


@njit
def row_of(
    shared: int, size: int, other: int, similarity: float, measure: int
) -> tuple[float, float, float, bool]:
    share = size_ratio(similarity, measure), overlap(similarity, size, other, measure)
    is_near = reaches(shared, size, other, similarity, measure)
    return *share, score(shared, size, other, measure), is_near


measures = st.sampled_from(list(MEASURES))


def steps(value: float) -> st.SearchStrategy[float]:
    """A threshold or one of its two neighbours."""
    near = (value, math.nextafter(value, 0), math.nextafter(value, 1))
    return st.sampled_from([x for x in near if 0 < x <= 1])


sizes = st.integers(1, 31).flatmap(lambda bits: st.integers(1, 1 << bits)) | st.integers(1, 99)
powers = st.floats(0, 300).map(lambda power: 10**-power)
thresholds = (
    st.sampled_from([*TINY, 1.0])
    | powers
    | st.tuples(st.integers(1, 60), st.integers(1, 60)).flatmap(lambda x: steps(min(x) / max(x)))
)


@given(st.data(), sizes, sizes, measures)
def test_no_bound_excludes_a_pair_that_reaches_the_threshold(
    data: st.DataObject, size: int, other: int, measure: str
) -> None:
    """Sizes up to 2**31; thresholds at the score of the pair, next to it, and anywhere below."""
    shared = data.draw(st.integers(1, min(size, other)), label="shared")
    reached = exact(shared, size, other, measure)
    kind = MEASURES[measure].number
    assert measured(shared, size, other, kind) == reached
    assert MEASURES[measure].score(shared, size, other) == reached
    if measure == "cosine":
        square = Fraction(shared) ** 2 / (size * other)
        assert abs(Fraction(reached) ** 2 - square) <= square / 2**50
    similarity = data.draw(steps(reached) | thresholds, label="similarity")
    if reached < similarity:
        return
    match = Match(similarity, measure)
    least, least_of_other, needed, smallest, largest = bounds(
        size, other, Condition(kind, similarity, 1 << 62)
    )
    assert least <= shared
    assert least_of_other <= shared
    assert needed <= shared
    assert smallest <= other <= largest
    assert match.least_shared(size, other) <= shared
    assert min(size, other) >= max(size, other) * match.least_ratio
    assert size - match.prefixes(np.array([size]))[0] < least


@given(sizes, sizes, measures, thresholds)
@example(1_000_000_002, 1, "jaccard", 1e-9)
def test_bounds_are_as_tight_as_rounding_allows(
    size: int, other: int, measure: str, similarity: float
) -> None:
    condition = Condition(MEASURES[measure].number, similarity, 1 << 62)
    least, _, needed, smallest, largest = map(int, bounds(size, other, condition))
    threshold, looser = Fraction(similarity), 1 - Fraction(2, 10**9)
    if measure == "jaccard":
        exactly = threshold / (1 + threshold) * (size + other)
    elif measure == "containment":
        exactly = threshold * min(size, other)
    elif measure == "dice":
        exactly = threshold * (size + other) / 2
    else:
        exactly = threshold * Fraction(math.sqrt(float(size) * float(other)))
    assert looser * exactly <= needed <= exactly + 1
    if measure != "containment":
        ratios = {"jaccard": threshold, "cosine": threshold**2, "dice": threshold / (2 - threshold)}
        ratio = ratios[measure]
        assert least >= looser * ratio * size
        assert smallest >= looser * ratio * size - 1
        assert largest <= size / (looser * ratio) + 1


@given(st.data(), sizes, sizes, measures)
def test_a_row_and_its_kernels_say_the_same(
    data: st.DataObject, size: int, other: int, measure: str
) -> None:
    shared = data.draw(st.integers(1, min(size, other)), label="shared")
    similarity, row = data.draw(thresholds, label="similarity"), MEASURES[measure]
    ratio, least, reached, is_near = row_of(shared, size, other, similarity, row.number)
    assert ratio == row.size_ratio(similarity)
    assert least == row.overlap(similarity, float(size), float(other))
    assert reached == row.score(shared, float(size), float(other))
    if abs(reached / similarity - 1) > 1e-9:
        assert is_near == (reached > similarity)


def scores_of(documents: list[set[int]], measure: str) -> dict[tuple[int, int], float]:
    return {
        (i, j): exact(len(a & b), len(a), len(b), measure) if a and b else 0.0
        for j, b in enumerate(documents)
        for i, a in enumerate(documents[:j])
    }


@given(st.data(), collections(), measures)
def test_every_threshold_joins_exactly(
    data: st.DataObject, documents: list[set[int]], measure: str
) -> None:
    scores, count = scores_of(documents, measure), len(documents)
    own = [steps(value) for value in sorted({x for x in scores.values() if x})]
    similarity = data.draw(st.one_of(thresholds, *own), label="similarity")
    match, order = Match(similarity, measure), np.arange(count)
    pairs = {pair for pair, reached in scores.items() if reached >= similarity}
    sets = feature_sets(documents)
    for each in (sets, replace(sets, spill=Spill(1 << 12))):
        assert set(all_pairs(each, match)) == pairs
        assert similar_components(each, match).tolist() == components_by_definition(count, pairs)
        kept = greedy_by_definition(count, list(range(count)), pairs)
        assert similar_greedy(each, order, match)[0].tolist() == kept
        best = [max((scores[i, j] for i in range(j) if (i, j) in pairs), default=0.0)
                for j in range(count)]  # fmt: skip
        assert nearest_before(each, order, match)[1].tolist() == best


@pytest.mark.parametrize("similarity", TINY)
@pytest.mark.parametrize("measure", MEASURES)
def test_equal_and_near_documents_match_at_tiny_thresholds(similarity: float, measure: str) -> None:
    words = [f"w{i}" for i in range(30)]
    texts = [" ".join(words), " ".join(words), " ".join(words[:15]), "none of these at all"]
    how: dict[str, Any] = {"measure": measure}
    rows = nd.similar_pairs(texts, similarity=similarity, **how).to_pylist()
    assert [(row["left"], row["right"]) for row in rows] == [(0, 1), (0, 2), (1, 2)]
    for policy in ("greedy", "components"):
        for mode in ({"similarity": similarity}, {"distance": 63, "verify": similarity}):
            duplicates = nd.dedup(texts, policy=policy, **mode, **how).duplicates
            assert duplicates["dropped"].to_pylist() == [1, 2]
    index = nd.Index(similarity=similarity, recipe=nd.Recipe(), **how)
    index.add(list("abcd"), texts)
    assert {name for name, _ in index.query(texts[0])} == {"a", "b", "c"}


@given(sizes, sizes, measures, thresholds)
@example(28, 28, "cosine", 1e-300)
@example(28, 28, "jaccard", 5e-324)
def test_a_worker_of_a_cluster_leaves_no_pair_out(
    size: int, other: int, measure: str, similarity: float
) -> None:
    """Two postings of one key; all features of the smaller document are in the larger one."""
    columns = {
        "key": [7, 7], "side": [0, 0], "number": [1, 2], "size": [size, other],
        "before": [0, 0], "sketch": [0, 0],
    }  # fmt: skip
    kinds = {"key": pa.int64(), "number": pa.int64(), "sketch": pa.int64()}
    postings = pa.table(
        {name: pa.array(x, kinds.get(name, pa.int32())) for name, x in columns.items()}
    )
    pairs = list(candidates(postings.to_batches(), Match(similarity, measure), leads=False))
    if exact(min(size, other), size, other, measure) >= similarity:
        assert [batch.to_pydict() for batch in pairs] == [{"left": [1], "right": [2]}]


@pytest.mark.parametrize("similarity", [0, -1e-300, 1.0000000000000002, math.nan, math.inf, -0.0])
def test_what_is_no_threshold_is_refused(similarity: float) -> None:
    with pytest.raises(UsageError, match="use a number above 0, up to 1"):
        Match(similarity)
