"""Pairs of two sides: those across, each measure by its own definition."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import neardup as nd
from suite import examples

WORDS = st.lists(st.sampled_from("abcdef"), max_size=9).map(" ".join)
SIDE = st.lists(WORDS, max_size=6)
RECIPE = nd.Recipe(ngram=1)


@settings(max_examples=examples(60, 15))
@given(SIDE, SIDE, st.sampled_from([0.3, 0.5, 2 / 3, 1.0]),
       st.sampled_from(["jaccard", "containment", "cosine", "dice"]))  # fmt: skip
def test_pairs_across_are_those_of_the_definition(
    left: list[str], right: list[str], similarity: float, measure: str
) -> None:
    pairs = nd.similar_pairs(left, right, similarity, measure=measure, recipe=RECIPE).to_pylist()
    one, other = ([set(text.split()) for text in side] for side in (left, right))
    expected = [
        (i, j, pytest.approx(naive.similarity(a, b, measure)))  # type: ignore[arg-type]
        for i, a in enumerate(one)
        for j, b in enumerate(other)
        if a and b and naive.similarity(a, b, measure) >= similarity - 1e-12  # type: ignore[arg-type]
    ]
    assert [(x["left"], x["right"], x["similarity"]) for x in pairs] == expected


def test_rows_and_ids_of_both_sides_are_named() -> None:
    left = pa.table({"text": [None, "a b c"], "id": [7, 8]})
    right = pa.table({"text": ["A b C", "d"], "id": [1, 2]})
    pairs = nd.similar_pairs(left, right, id="id", on_error="skip").to_pylist()
    assert pairs == [
        {"left": 1, "right": 0, "distance": 0, "similarity": 1.0, "left_id": 8, "right_id": 1}
    ]
    assert nd.similar_pairs(["a b"], []).num_rows == nd.similar_pairs([], ["a b"]).num_rows == 0
