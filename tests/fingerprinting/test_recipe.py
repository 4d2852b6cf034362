"""The recipe: a value that says what it is, refuses what cannot be, and keeps its digest."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import RecipeError, UsageError
from neardup.features.choices import MAX_BITS, NORMAL_FORMS, TIES, TOKENISERS, WEIGHTS
from neardup.fingerprinting.recipe import Recipe
from neardup.fingerprinting.values import MOST_DISTANCE

OTHER = Recipe(
    normalize="NFC", casefold=False, tokens="chars", ngram=5, weight="log", bits=256, seed=2**63,
    tie="one",
)  # fmt: skip

recipes = st.builds(
    Recipe,
    normalize=st.sampled_from(NORMAL_FORMS),
    casefold=st.booleans(),
    tokens=st.sampled_from(TOKENISERS),
    ngram=st.integers(1, 1 << 16),
    weight=st.sampled_from(WEIGHTS),
    bits=st.integers(1, MAX_BITS),
    seed=st.integers(0, 2**64 - 1),
    tie=st.sampled_from(TIES),
)


def test_the_digest_of_a_recipe_never_changes() -> None:
    assert Recipe().digest == "e56a096a51e6beda"
    assert OTHER.digest == "ca7debd01776e3d4"


def test_the_canonical_json_never_changes() -> None:
    assert Recipe().to_json() == (
        '{"bits":64,"casefold":true,"hash":"xxh3","ngram":3,"normalize":"NFKC","seed":0,'
        '"tie":"zero","tokens":"words","unicode":"16.0.0","version":1,"weight":"set"}'
    )


@given(recipe=recipes)
def test_a_recipe_survives_json(recipe: Recipe) -> None:
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert again.digest == recipe.digest


@given(a=recipes, b=recipes)
def test_digests_are_equal_only_for_equal_recipes(a: Recipe, b: Recipe) -> None:
    assert (a.digest == b.digest) == (a == b)


@pytest.mark.parametrize(
    "field", ["normalize", "casefold", "tokens", "ngram", "weight", "bits", "seed", "tie"]
)
def test_a_field_changes_the_digest(field: str) -> None:
    changed = dataclasses.replace(Recipe(), **{field: getattr(OTHER, field)})
    assert changed.digest != Recipe().digest


def test_absent_fields_take_their_defaults() -> None:
    assert Recipe.from_json("{}") == Recipe()
    assert Recipe.from_json(b'{"bits": 128}') == Recipe(bits=128)


def test_the_words_of_a_fingerprint_cover_its_bits() -> None:
    assert [Recipe(bits=bits).words for bits in (1, 63, 64, 65, 128, 129)] == [1, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("field", "bad", "allowed"),
    [
        ("normalize", "NFD", "NFKC, NFC, none"),
        ("tokens", "word", "words, chars"),
        ("weight", "tf", "set, count, log"),
        ("hash", "crc7", "xxh3"),
        ("tie", "two", "zero, one"),
        ("tokens", None, "words, chars"),
        ("casefold", "yes", "True or False"),
        ("casefold", 1, "True or False"),
        ("ngram", 0, "1 to 65,536"),
        ("ngram", 65_537, "1 to 65,536"),
        ("ngram", 2.0, "1 to 65,536"),
        ("ngram", True, "1 to 65,536"),
        ("bits", 0, "1 to 32,767"),
        ("bits", 32_768, "1 to 32,767"),
        ("bits", "64", "1 to 32,767"),
        ("seed", -1, "0 to 18,446,744,073,709,551,615"),
        ("seed", 2**64, "0 to 18,446,744,073,709,551,615"),
        ("weight", ["set"], "set, count, log"),
    ],
)
def test_a_bad_value_is_refused_with_the_value_and_the_limits(
    field: str, bad: Any, allowed: str
) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe(**{field: bad})
    message = str(caught.value)
    assert message.startswith(f"{field} is {bad!r}: ")
    assert allowed in message
    assert isinstance(caught.value, UsageError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        ("[" * 200_000, "not valid JSON: .*(recursion|Stack overflow)"),
        ("[]", "JSON object, not list"),
        ("3", "JSON object, not int"),
        (5, "a recipe is int: 5: pass JSON"),
        ('{"bit": 64}', r"unknown recipe fields \['bit'\]: known are \['bits', "),
        ('{"version": 2}', "recipe version 2: this neardup computes 1 only"),
        ('{"unicode": "15.1.0"}', "Unicode version '15.1.0': this neardup computes '16.0.0' only"),
        ('{"bits": null}', "bits is None"),
    ],
)
def test_bad_json_is_refused(text: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe.from_json(text)


def test_a_recipe_is_a_value() -> None:
    assert Recipe() == Recipe()
    assert len({Recipe(), Recipe(), Recipe(bits=128)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Recipe().bits = 128  # type: ignore[misc]
    assert json.loads(Recipe().to_json())["version"] == 1


def test_every_width_of_a_recipe_can_be_compared() -> None:
    assert MAX_BITS == MOST_DISTANCE
