"""Two documents side by side: exact similarities of their features."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from neardup.errors import RecipeError, UsageError
from neardup.fingerprinting.explanation.comparison import compare, cosine_interval
from neardup.fingerprinting.preset_recipes import preset
from neardup.fingerprinting.recipe import Recipe
from strategies import texts
from suite import examples

short = st.lists(st.sampled_from(["to", "be", "or", "not"]), max_size=8).map(" ".join)


@settings(max_examples=examples(50, 10))
@given(a=short | texts(), b=short | texts(), ngram=st.integers(1, 3), bits=st.sampled_from([6, 64]))
def test_a_comparison_is_that_of_the_feature_sets(a: str, b: str, ngram: int, bits: int) -> None:
    recipe: Any = Recipe(ngram=ngram, bits=bits)
    comparison = compare(a, b, recipe)
    left, right = (set(naive.features(naive.tokens(text, recipe), recipe)) for text in (a, b))
    assert comparison.features == (len(left), len(right))
    assert comparison.shared == len(left & right)
    if not left or not right:
        assert (
            comparison.distance
            is comparison.estimated_cosine
            is comparison.jaccard
            is comparison.containment
            is comparison.dice
            is None
        )
        return
    one, other = (naive.fingerprint(text, recipe) or 0 for text in (a, b))
    assert comparison.fingerprints == (f"{one:0{-(-bits // 4)}x}", f"{other:0{-(-bits // 4)}x}")
    assert comparison.distance == naive.distance(one, other)
    assert comparison.estimated_cosine == pytest.approx(
        math.cos(math.pi * comparison.distance / bits)
    )
    assert comparison.jaccard == pytest.approx(len(left & right) / len(left | right))
    assert comparison.containment == pytest.approx(len(left & right) / min(len(left), len(right)))
    assert comparison.dice == pytest.approx(2 * len(left & right) / (len(left) + len(right)))


def test_a_document_without_tokens_has_no_fingerprint() -> None:
    comparison = compare("", "one", Recipe())
    assert comparison.fingerprints[0] is None
    assert comparison.fingerprints[1] is not None
    assert comparison.to_dict()["distance"] is None


def weights(text: str, recipe: Recipe) -> dict[str, float]:
    """Each feature's weight by the plain definition."""
    counts: dict[str, int] = {}
    for feature in naive.features(naive.tokens(text, recipe), recipe):
        counts[feature] = counts.get(feature, 0) + 1
    return {"set": dict.fromkeys(counts, 1.0), "count": {x: float(n) for x, n in counts.items()}}[
        recipe.weight
    ]


@settings(max_examples=examples(50, 10))
@given(a=short, b=short, weight=st.sampled_from(["set", "count"]))
def test_the_exact_cosine_is_that_of_the_weights(a: str, b: str, weight: str) -> None:
    recipe = Recipe(ngram=1, weight=weight)
    one, other = weights(a, recipe), weights(b, recipe)
    cosine = compare(a, b, recipe).cosine
    if not one or not other:
        assert cosine is None
        return
    product = sum(one[x] * other.get(x, 0) for x in one)
    lengths = [math.sqrt(sum(n * n for n in each.values())) for each in (one, other)]
    assert cosine == pytest.approx(product / lengths[0] / lengths[1])


def test_the_interval_holds_the_angle_in_19_of_20_cases() -> None:
    dice, bits = random.Random(7), 64
    inside = 0
    for _ in range(2000):
        share = dice.uniform(0.02, 0.9)
        apart = sum(dice.random() < share for _ in range(bits))
        low, high = cosine_interval(apart, bits)
        inside += low <= math.cos(math.pi * share) <= high
    assert 0.935 < inside / 2000 < 0.97


@pytest.mark.parametrize("bits", [1, 64, 256])
def test_an_interval_lies_between_minus_one_and_one_around_the_estimate(bits: int) -> None:
    for apart in range(bits + 1):
        low, high = cosine_interval(apart, bits)
        assert -1 <= low <= math.cos(math.pi * apart / bits) + 1e-12
        assert math.cos(math.pi * apart / bits) - 1e-12 <= high <= 1


def test_each_side_may_keep_features_of_its_own() -> None:
    recipe = Recipe(ngram=1, weight="count")
    comparison = compare("to to be be or not", "to to to be", recipe, top=(3, 1))
    assert comparison.features == (3, 1)
    assert comparison.recipes[1].top == 1
    assert compare("to be", "or not", recipe, top=1).features == (1, 1)
    with pytest.raises(UsageError, match=r"top is \(1, 2, 3\): pass a number, or one for each"):
        compare("a", "b", recipe, top=(1, 2, 3))
    with pytest.raises(RecipeError, match="top is 0"):
        compare("a", "b", recipe, top=0)


def test_presets_are_compared_by_their_own_features() -> None:
    comparison = compare("how are you", "how are they", preset("go-mfonda"))
    assert (comparison.features, comparison.shared) == ((3, 3), 2)
    assert comparison.cosine == pytest.approx(2 / 3)
    with pytest.raises(RecipeError, match="takes only"):
        compare("a", "b", preset("go-mfonda"), top=3)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="text is int, not str: 7"):
        compare("a", 7)  # type: ignore[arg-type]


def test_it_prints_itself_and_shows_itself_in_a_notebook() -> None:
    comparison = compare("one two three", "one two <four>", Recipe(ngram=1))
    lines = str(comparison).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["A", "B", "distance"]
    assert "19 of 20 cases at 64 bits" in lines[3]
    assert lines[5] == "jaccard      0.500 exact, 2 features shared"
    html = comparison._repr_html_()
    assert html.count("<tr>") == html.count("</tr>") == 8
    assert "matches nothing" in str(compare("", "one"))
    assert "matches nothing" in compare("", "one")._repr_html_()
