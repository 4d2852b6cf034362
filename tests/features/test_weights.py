"""Weights, stop words and the heaviest features equal the oracle's; bad weights are named."""

# ruff: noqa: RUF001 - look-alike characters are what is tested

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import naive
import neardup as nd
from neardup.errors import RecipeError
from neardup.features.keyword_weights import text_rank
from neardup.fingerprinting.fingerprints import feature_hashes
from strategies import texts

STOPS = ("the", "Fox", "don't", "你", "世界", "ıi", "é")


def recipes(**fields: Any) -> st.SearchStrategy[nd.Recipe]:
    values: dict[str, Any] = {
        "normalize": st.sampled_from(["NFKC", "NFC", "none"]),
        "tokens": st.sampled_from(["words", "chars"]),
        "ngram": st.sampled_from([1, 2, 3]),
        "weight": st.sampled_from(["set", "count", "log"]),
        "bits": st.sampled_from([1, 63, 64, 65, 128]),
        "top": st.sampled_from([None, 1, 2, 3, 5, 20]),
        "language": st.sampled_from([None, "tr"]),
        "tie": st.sampled_from(["zero", "one"]),
    }
    return st.builds(nd.Recipe, **(values | fields))


@given(texts(), recipes())
@example("a b c a d b e", nd.Recipe(ngram=1, top=2))
def test_the_heaviest_features_equal_the_oracle(text: str, recipe: nd.Recipe) -> None:
    assert nd.fingerprint(text, recipe) == naive.fingerprint(text, recipe)


@given(texts(), recipes(tokens=st.just("words"), stopwords=st.just(STOPS)))
@example("the quick fox: DON'T t don 你好世界 the", nd.Recipe(stopwords=STOPS, ngram=1))
@example("the " * 100, nd.Recipe(stopwords=STOPS))
def test_stop_words_are_removed_before_shingling(text: str, recipe: nd.Recipe) -> None:
    assert nd.fingerprint(text, recipe) == naive.fingerprint(text, recipe)


@given(st.lists(texts(), max_size=6), texts(), recipes(weight=st.just("count")), st.booleans())
def test_tfidf_equals_the_oracle(
    documents: list[str], text: str, made: nd.Recipe, hashed: bool
) -> None:
    documents = [*documents, "one document has words"]
    table = nd.DocumentFrequencies.learn(documents, made)
    fields = {name: getattr(made, name) for name in nd.Recipe.__slots__}
    recipe = nd.Recipe(
        **(fields | {"weight": "tfidf", "idf": table.digest, "seed": 7 if hashed else 0})
    )
    actual = [naive.features(naive.tokens(x, recipe), recipe) for x in documents]
    expected = naive.document_frequencies(actual)
    assert table.documents == expected[0]
    assert nd.fingerprint(text, recipe) == naive.fingerprint(text, recipe, expected)


@given(texts(), recipes(weight=st.just("textrank")))
def test_textrank_equals_the_oracle(text: str, recipe: nd.Recipe) -> None:
    assert nd.fingerprint(text, recipe) == naive.fingerprint(text, recipe)


@given(st.lists(st.sampled_from("abcdefg"), min_size=2, max_size=40))
def test_textrank_is_jiebas_on_the_same_tokens(tokens: list[str]) -> None:
    analyse = pytest.importorskip("jieba.analyse")
    graph = analyse.textrank.__self__.__class__.__init__.__globals__["UndirectWeightedGraph"]()
    pairs: dict[tuple[str, str], int] = {}
    for i, token in enumerate(tokens):
        for other in tokens[i + 1 : i + 5]:
            pairs[token, other] = pairs.get((token, other), 0) + 1
    for (a, b), weight in pairs.items():
        graph.addEdge(a, b, weight)
    assert text_rank(tokens) == dict(graph.rank())


def test_a_text_of_one_feature_has_its_hash_whatever_the_weight() -> None:
    table = nd.DocumentFrequencies.learn(["one two", "three"], nd.Recipe(ngram=1))
    plain = nd.fingerprint("one", nd.Recipe(ngram=1))
    for fields in ({"weight": "textrank"}, {"weight": "tfidf", "idf": table.digest}):
        assert nd.fingerprint("one", nd.Recipe(ngram=1, **fields)) == plain


def test_equally_heavy_features_are_kept_by_first_occurrence() -> None:
    recipe = nd.Recipe(ngram=1, top=2)
    assert nd.fingerprint("d c b a", recipe) == nd.fingerprint("d c", nd.Recipe(ngram=1))
    assert nd.fingerprint("d c b a b", recipe) == nd.fingerprint("d b", nd.Recipe(ngram=1))


def test_a_document_of_stop_words_is_empty() -> None:
    assert nd.fingerprint("the fox", nd.Recipe(stopwords=STOPS)) is None


def test_a_callers_weights_get_tokens_and_counts() -> None:
    seen: list[Any] = []

    def weigh(tokens: list[str], counts: dict[str, int]) -> dict[str, float]:
        seen.append((tokens, counts))
        return {"a b": 2, "b a": 0.5}

    recipe = nd.Recipe(ngram=2, weight=nd.custom_weight("seen", "1", weigh))
    assert nd.fingerprint("A b a b c", recipe) == nd.fingerprint("a b", nd.Recipe(ngram=2))
    assert seen[-1] == (["a", "b", "a", "b", "c"], {"a b": 2, "b a": 1, "b c": 1})
    assert feature_hashes("a b a b c", recipe).size == 2


def test_name_and_version_of_a_callers_weights_enter_the_digest() -> None:
    weights = [nd.custom_weight("mine", version, lambda _, counts: counts) for version in "12"]
    assert nd.Recipe(weight=weights[0]).digest != nd.Recipe(weight=weights[1]).digest
    with pytest.raises(RecipeError, match="custom_weight"):
        nd.Recipe(weight="mine@3")
    with pytest.raises(RecipeError, match="name a weight"):
        nd.custom_weight("", "1", lambda _, counts: counts)


@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf, 2**31, "x", None])
def test_a_weight_that_cannot_be_is_named_with_its_feature(value: Any) -> None:
    name = nd.custom_weight("bad", "1", lambda _, counts: dict.fromkeys(counts, value))
    with pytest.raises(RecipeError, match=r"bad@1 gave .* for 'token'"):
        nd.fingerprint("token", nd.Recipe(weight=name))


def test_weights_that_are_no_dict_are_refused() -> None:
    name = nd.custom_weight("none", "1", lambda *_: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(RecipeError, match="weight none@1 gave None: give a dict of weights"):
        nd.fingerprint("token", nd.Recipe(weight=name))
    with pytest.raises(RecipeError, match="the weight mine is 5: pass a function"):
        nd.custom_weight("mine", "1", 5)  # type: ignore[arg-type]


def test_a_weight_of_something_else_than_a_feature_is_refused() -> None:
    name = nd.custom_weight("else", "1", lambda *_: {"other": 1.0})
    with pytest.raises(RecipeError, match="'other'"):
        nd.fingerprint("token", nd.Recipe(weight=name))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weight": "tfidf"}, "DocumentFrequencies"),
        ({"idf": "0123456789abcdef"}, "tfidf"),
        ({"missing": "error"}, "tfidf"),
        ({"weight": "textrank", "idf": "jieba"}, "only the weight tfidf"),
        ({"weight": "tfidf", "idf": 5}, "idf is 5: pass the digest"),
        ({"weight": "heavy"}, "textrank"),
        ({"weight": "tfidf", "idf": "jieba", "missing": "?"}, "default or error"),
        ({"top": 0}, "top is 0"),
        ({"stopwords": "klingon"}, "no list of this language"),
        ({"stopwords": "turkisch"}, "did you mean turkish"),
        ({"stopwords": ("a", " ")}, "not blank"),
        ({"stopwords": 3}, "list of words"),
        ({"stopwords": ("a",), "tokens": "chars"}, "need words"),
        ({"language": "de"}, "tr, az"),
        ({"language": "tr", "casefold": False}, "casefold"),
        ({"fold_chinese": "old"}, "fold_chinese is 'old': use simplified or traditional"),
        ({"fold_chinese": 5}, "fold_chinese is 5: use simplified"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        nd.Recipe(**fields)


def test_the_new_fields_leave_older_digests_alone() -> None:
    assert nd.Recipe().digest == "e56a096a51e6beda"
    assert "stopwords" not in nd.Recipe().to_json()


def test_a_recipe_with_stop_words_survives_json() -> None:
    for stops in ("english", "tr", ("b", "a", "b")):
        recipe = nd.Recipe(stopwords=stops)
        assert nd.Recipe.from_json(recipe.to_json()) == recipe
        assert hash(recipe) == hash(nd.Recipe(stopwords=stops))
    assert nd.Recipe(stopwords="turkish").digest == nd.Recipe(stopwords="tr").digest
    with pytest.raises(RecipeError, match="stopwordsiso"):
        nd.Recipe(stopwords="english:0123456789abcdef")


def test_stop_words_of_a_language_are_removed() -> None:
    recipe = nd.Recipe(ngram=1, stopwords="english")
    expected = nd.fingerprint("cat mat", nd.Recipe(ngram=1))
    assert nd.fingerprint("The cat isn't on the mat", recipe) == expected


TURKISH = ["ISPARTA", "İSTANBUL", "DIŞ", "I\u0307zmir", "ILIK İLİK", "Iı İi"]


@pytest.mark.parametrize("text", TURKISH)
@pytest.mark.parametrize("normalize", ["NFKC", "NFC", "none"])
def test_turkish_capitals_fold_to_their_own_small_letters(text: str, normalize: str) -> None:
    small = text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı").lower()
    fields: dict[str, Any] = {"normalize": normalize, "tokens": "chars"}
    plain = nd.fingerprint(small, nd.Recipe(**fields))
    assert nd.fingerprint(text, nd.Recipe(**fields, language="tr")) == plain
    assert nd.fingerprint(text, nd.Recipe(**fields)) != plain
