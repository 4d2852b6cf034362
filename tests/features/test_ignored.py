"""What a recipe ignores is left out of a text, and recipes that ignore nothing are as they were."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import RecipeError
from neardup.features.choices import IGNORABLE

PAIRS = [
    ("accents", "Ünïcodé ταχύ Škoda e\u0301", "Unicode ταχυ Skoda e"),
    ("digits", "order 1984 of ٣ and \uff11\uff12", "order 0000 of 0 and 00"),
    ("joiners", "\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u062e"),
    ("tatweel", "العـــربية", "العربية"),
    ("vowel-signs", "الْعَرَبِيَّةُ", "العربية"),
    ("vowel-signs", "שָׁלוֹם", "שלום"),
    ("zero-width", "co\u00adoperate \u200bโลก\ufeff", "cooperate โลก"),
]


@pytest.mark.parametrize(("name", "text", "plain"), PAIRS)
@pytest.mark.parametrize("tokens", ["words", "chars", "regex:\\S+"])
def test_a_text_has_the_fingerprint_of_what_is_left(
    name: str, text: str, plain: str, tokens: str
) -> None:
    usual, recipe = nd.Recipe(tokens=tokens), nd.Recipe(tokens=tokens, ignore=(name,))
    assert nd.fingerprint(text, recipe) == nd.fingerprint(plain, usual)
    assert nd.fingerprints([text, "", plain], recipe).tolist() == (
        nd.fingerprints([plain, "", plain], usual).tolist()
    )
    assert nd.similar_pairs([text, plain], 1.0, recipe=recipe)["similarity"].to_pylist() == [1.0]
    assert nd.compare(text, plain, recipe).distance == 0


def left(text: str) -> str:
    """The definition of accents and digits, of the letters in the test below."""
    parts = unicodedata.normalize("NFD", text)
    plain = "".join(part for part in parts if not "\u0300" <= part <= "\u036f")
    return "".join("0" if part.isdecimal() else part for part in plain)


@given(text=st.text("abéèÅñ ÿṩάῶйё\u0301\u030c0179٣१"))
def test_accents_and_digits_are_ignored_as_defined(text: str) -> None:
    recipe = nd.Recipe(ngram=2, ignore=("digits", "accents"))
    assert nd.fingerprint(text, recipe) == nd.fingerprint(left(text), nd.Recipe(ngram=2))


def test_all_together_and_in_any_order() -> None:
    every = nd.Recipe(ignore=IGNORABLE)
    text, plain = (" ".join(pair[side] for pair in PAIRS) for side in (1, 2))
    assert nd.fingerprint(text, every) == nd.fingerprint(plain, every)
    assert nd.Recipe(ignore=tuple(reversed(IGNORABLE))) == every
    assert nd.Recipe.from_json(every.to_json()) == every
    assert every.digest != nd.Recipe().digest


def test_nothing_ignored_is_no_part_of_the_digest() -> None:
    assert nd.Recipe(ignore=None).digest == nd.Recipe().digest == "e56a096a51e6beda"
    assert "ignore" not in nd.Recipe().to_json()


@pytest.mark.parametrize("value", ["accent", (), ("tatweel", 3), 5, "tatweel,digits"])
def test_what_cannot_be_ignored_is_refused(value: Any) -> None:
    with pytest.raises(RecipeError, match="use some of accents, digits, joiners"):
        nd.Recipe(ignore=value)


def test_an_index_and_a_table_know_what_is_ignored() -> None:
    recipe = nd.Recipe(ngram=1, ignore=("tatweel",))
    index: Any = nd.Index(question=nd.Question(recipe, 0.9))
    index.add("a", "سلام عليكم")
    assert index.query("ســـلام عليكم") == [("a", 1.0)]
    table = nd.DocumentFrequencies.learn(["سلام عليكم"], recipe)
    with pytest.raises(RecipeError):
        nd.fingerprint("x", nd.Recipe(ngram=1, weight="tfidf", idf=table.digest))
