"""Tokenisers beyond the kernel's: jieba's, regular expressions, the caller's; Chinese folding."""

# ruff: noqa: RUF001 - full-width punctuation is what is tested

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import marshal
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import RecipeError, UsageError
from neardup.features import jieba_words
from neardup.features.jieba_words import (
    cut_for_search,
    cut_precise,
    jieba_package,
    read_dictionary,
)
from neardup.features.tokens import document_tokens, in_kernel, normalised
from neardup.fingerprinting.fingerprints import feature_hashes
from strategies import LETTERS, SEPARATORS, texts

pytest.importorskip("jieba")
pytest.importorskip("rjieba")

SENTENCES = [
    "我来到北京清华大学，他来到了网易杭研大厦。",
    "小明硕士毕业于中国科学院计算所，后在日本京都大学深造",
    "用C++和c#写的卡拉OK程序 v2.0，AT&T公司的1.5%股份",
    "B超检查 www.example.com T恤 3.14 mp3",
    "漢字後來乾坤 これは日本語のテキストです 한국어",
    "",
    "  ",
    "!?",
]


def chinese() -> st.SearchStrategy[str]:
    pool = [*"中国人民的是了在北京大学生活动物园卡拉OK网络", *LETTERS["han"], *LETTERS["kana"]]
    pieces = st.sampled_from([*pool, *SEPARATORS, *LETTERS["latin"], "C++", "AT&T", "1.5%", "㐀龥"])
    return st.lists(pieces, max_size=30).map("".join)


def jieba() -> Any:
    return jieba_package().Tokenizer()


@functools.cache
def unchanged_jieba() -> Any:
    """A tokenizer to which no test adds words; it loads its dictionary once."""
    return jieba()


@given(st.sampled_from(SENTENCES) | chinese())
def test_words_are_jiebas(text: str) -> None:
    tokenizer = unchanged_jieba()
    assert cut_precise(text) == tokenizer.lcut(text)
    assert cut_for_search(text) == tokenizer.lcut_for_search(text)


def test_without_the_fast_binding_words_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    result = [(cut_precise(x), cut_for_search(x)) for x in SENTENCES]
    monkeypatch.setattr(jieba_words, "_rust", lambda: None)
    assert [(cut_precise(x), cut_for_search(x)) for x in SENTENCES] == result


def test_words_that_a_program_adds_to_jieba_change_nothing() -> None:
    package = jieba_package()
    before = nd.fingerprint(SENTENCES[0], nd.Recipe(tokens="jieba"))
    package.add_word("来到北京")
    try:
        assert nd.fingerprint(SENTENCES[0], nd.Recipe(tokens="jieba")) == before
    finally:
        package.del_word("来到北京")


def test_words_of_the_recipes_dictionary_are_cut_as_jieba_cuts_them(tmp_path: Path) -> None:
    text, own = "美国51区雇员称内部有9架飞碟", ("51区", "9架 5")
    fresh = jieba()
    fresh.load_userdict(own)
    for tokens, cut in (("jieba", fresh.lcut), ("jieba-search", fresh.lcut_for_search)):
        recipe = nd.Recipe(tokens=tokens, ngram=1, dictionary=own)
        actual = [feature.text for feature in nd.explain(text, recipe=recipe).features]
        assert actual == list(dict.fromkeys(cut(text)))
        assert "51区" in actual
    assert nd.Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.digest != nd.Recipe(tokens="jieba-search", ngram=1).digest
    file = tmp_path / "words.txt"
    file.write_text("\ufeff51区\n\n9架 5 n\n", "utf-8")
    assert read_dictionary(str(file)) == own
    capitals = nd.Recipe(tokens="jieba", ngram=1, dictionary=["ＡBC区"])
    assert [x.text for x in nd.explain("去abc区", recipe=capitals).features] == ["去", "abc区"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"dictionary": ["a"]}, "dictionary is for tokens jieba, jieba-search"),
        ({"tokens": "jieba", "dictionary": "51区"}, "pass a list of words"),
        ({"tokens": "jieba", "dictionary": ["a b"]}, "has 'a b': write a word without spaces"),
        ({"tokens": "jieba", "dictionary": ["a 0"]}, "has 'a 0'"),
        ({"tokens": "jieba", "dictionary": [7]}, "has 7"),
    ],
)
def test_a_dictionary_that_cannot_be_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        nd.Recipe(**fields)


def test_what_another_jieba_left_in_its_cache_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    jieba_words._tokenizer.cache_clear()  # noqa: SLF001
    (tmp_path / "jieba.cache").write_bytes(marshal.dumps(({"来到北京": 9}, 9)))
    try:
        assert jieba_words._tokenizer().lcut("我来到北京") == ["我", "来到", "北京"]  # noqa: SLF001
    finally:
        jieba_words._tokenizer.cache_clear()  # noqa: SLF001


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (
            "neardup.features.jieba_words.DICTIONARY",
            "0" * 16,
            "0.42.1 with dict.txt 931a1622cc9962c9",
        ),
        ("jieba.__version__", "0.43", "is 0.43 with dict.txt 931a1622cc9962c9, recipes mean 0.42"),
    ],
)
def test_another_jieba_is_refused(
    place: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, value)
    jieba_words._tokenizer.cache_clear()  # noqa: SLF001
    try:
        with pytest.raises(RecipeError, match=message):
            nd.fingerprint(SENTENCES[0], nd.Recipe(tokens="jieba"))
        with pytest.raises(RecipeError, match="--force-reinstall jieba=="):
            nd.fingerprint(SENTENCES[0], nd.Recipe(tokens="jieba-search"))
    finally:
        jieba_words._tokenizer.cache_clear()  # noqa: SLF001


def test_another_rjieba_than_those_compared_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert importlib.metadata.version("rjieba") in jieba_words.RUST_VERSIONS
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.9")
    assert jieba_words._rust.__wrapped__() is None  # noqa: SLF001


def test_punctuation_is_no_token() -> None:
    recipe = nd.Recipe(tokens="jieba", ngram=1)
    assert nd.fingerprint("你好，世界！", recipe) == nd.fingerprint("你好 世界", recipe)
    assert nd.fingerprint("，！ ?", recipe) is None
    assert nd.fingerprint("", recipe) is None


@pytest.mark.parametrize("text", SENTENCES[:4])
@pytest.mark.parametrize("top", [1, 3, 20])
def test_keywords_and_their_weights_are_jiebas(text: str, top: int) -> None:
    recipe = nd.Recipe(
        normalize="none", casefold=False, tokens="jieba-keywords", ngram=1, weight="tfidf", top=top
    )
    expected = jieba_package().analyse.extract_tags(text, topK=top, withWeight=True)
    words = [word for word in cut_precise(text) if jieba_words.is_keyword(word)]
    from neardup.features.weights import feature_weights

    actual = feature_weights(words, words, recipe)
    assert set(actual) == {word for word, _ in expected}
    for word, weight in expected:
        assert actual[word] / 65536 == pytest.approx(weight * len(words), abs=1e-3)
    assert nd.fingerprint(text, recipe) == nd.simhash(
        [(nd_hash(word), units / 65536) for word, units in actual.items()]
    )


def nd_hash(word: str) -> int:
    value = nd.fingerprint(word, nd.Recipe(normalize="none", casefold=False, tokens="regex:.+"))
    assert value is not None
    return value


def test_keywords_are_single_tokens() -> None:
    with pytest.raises(RecipeError, match="ngram 1"):
        nd.Recipe(tokens="jieba-keywords")


def test_the_table_of_jieba_is_in_the_recipe_by_its_contents() -> None:
    recipe = nd.Recipe(tokens="jieba-keywords", ngram=1, weight="tfidf")
    table = nd.DocumentFrequencies.from_jieba(
        str(Path(jieba_package().analyse.__file__).parent / "idf.txt")
    )
    assert recipe.idf == f"jieba:{table.digest}"
    assert dataclasses.replace(recipe, idf="jieba") == recipe
    assert nd.Recipe.from_json(recipe.to_json()) == recipe
    by_digest = dataclasses.replace(recipe, idf=table.digest)
    assert nd.fingerprint(SENTENCES[0], by_digest) == nd.fingerprint(SENTENCES[0], recipe)


def test_another_jieba_than_the_recipes_is_refused_and_both_are_named() -> None:
    recipe = nd.Recipe(tokens="jieba", ngram=1, weight="tfidf", idf="jieba")
    other = dataclasses.replace(recipe, idf="jieba:0123456789abcdef")
    assert other.digest != recipe.digest
    with pytest.raises(RecipeError, match=f"is jieba:0123456789abcdef, .* has {recipe.idf}: "):
        nd.fingerprint(SENTENCES[0], other)


def test_tokens_of_a_regular_expression_are_its_matches() -> None:
    recipe = nd.Recipe(tokens=r"regex:[a-z]+(-[a-z]+)*|\d*", ngram=1, weight="count")
    assert feature_hashes("Well-known facts: 42!", recipe).size == 3
    assert nd.fingerprint("!", recipe) is None
    with pytest.raises(RecipeError, match="not a regular expression"):
        nd.Recipe(tokens="regex:(")


RUNS = [
    r"\w+",
    r"\S+",
    r"\D+",
    "[a-z0-9]+",
    "[a-z]+",
    r"[^\s,;]+",
    r"[\w'\-]+",
    "[\u4e00-\u9fff]+",
    r"[\]a]+",
]


@given(
    texts(), st.sampled_from(RUNS), st.sampled_from(["NFKC", "NFC", "none"]), st.booleans(),
    st.integers(1, 3),
)  # fmt: skip
def test_runs_of_a_class_are_what_python_matches(
    text: str, pattern: str, normalize: str, casefold: bool, ngram: int
) -> None:
    data = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    recipe = nd.Recipe(
        tokens=f"regex:{pattern}", normalize=normalize, casefold=casefold, ngram=ngram
    )
    expected = [run for run in re.findall(pattern, normalised(data, 0, data.size, recipe)) if run]
    assert document_tokens(data, 0, data.size, recipe) == expected
    by_python = dataclasses.replace(recipe, tokens=f"regex:(?:{pattern})")
    assert not in_kernel(by_python.tokens)
    assert nd.fingerprint(text, recipe) == nd.fingerprint(text, by_python)
    assert feature_hashes(text, recipe).tolist() == feature_hashes(text, by_python).tolist()


@pytest.mark.parametrize(
    ("pattern", "is_run"),
    [(r"\w+", True), (r"[^\s]+", True), (r"[\]]+", True), (r"\]+", False), ("[^a-z]+", False),
     (r"\D+", False), (".+", False), ("a+", False), ("[a-z]+?", False), ("[a-z]{2,}", False),
     ("[a-z]+|b", False), (r"[]a]+", False), ("(?i)[a-z]+", False), (r"\b[a-z]+", False)],
)  # fmt: skip
def test_runs_of_a_class_without_the_blank_are_cut_by_the_kernel(
    pattern: str, is_run: bool
) -> None:
    assert in_kernel(f"regex:{pattern}") is is_run


def test_a_callers_tokens_are_used() -> None:
    seen: list[str] = []

    def halves(text: str) -> list[str]:
        seen.append(text)
        return ["", text[:1], text[1:]]

    recipe = nd.Recipe(tokens=nd.custom_tokens("halves", "1.0", halves), ngram=2)
    assert nd.fingerprint("A\u00adB\n c", recipe) == nd.fingerprint("a b c", nd.Recipe())
    assert seen == ["ab c"]
    assert recipe.tokens == "halves@1.0"


def test_a_callers_tokens_must_be_strings_and_registered() -> None:
    bad = nd.custom_tokens("bad", "1", lambda _: [1])  # type: ignore[list-item, return-value]
    with pytest.raises(RecipeError, match="bad@1 gave 1"):
        nd.fingerprint("x", nd.Recipe(tokens=bad))
    none = nd.custom_tokens("none", "1", lambda _: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(RecipeError, match="none@1 gave None: give a list of strings"):
        nd.fingerprint("x", nd.Recipe(tokens=none))
    with pytest.raises(RecipeError, match="the tokeniser mine is 5: pass a function"):
        nd.custom_tokens("mine", "1", 5)  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match="custom_tokens"):
        nd.Recipe(tokens="absent@1")
    with pytest.raises(RecipeError, match="use one of words"):
        nd.Recipe(tokens="sentences")
    with pytest.raises(RecipeError, match="use one of words"):
        nd.Recipe(tokens=3)  # type: ignore[arg-type]


@given(texts())
def test_a_regular_expression_of_all_sees_the_text_of_chars(text: str) -> None:
    whole = nd.Recipe(tokens="regex:(?s).+", ngram=1)
    assert nd.fingerprint(text, whole) == nd.fingerprint(
        text, nd.Recipe(tokens="chars", ngram=1 << 16)
    )


@pytest.mark.parametrize(
    ("target", "text", "same"),
    [("simplified", "漢字後來乾坤", "汉字后来乾坤"), ("traditional", "汉字后来", "漢字後來")],
)
def test_chinese_is_folded_to_one_way_of_writing(target: str, text: str, same: str) -> None:
    pytest.importorskip("opencc")
    recipe = nd.Recipe(fold_chinese=target)
    assert nd.fingerprint(text, recipe) == nd.fingerprint(same, nd.Recipe())
    assert nd.fingerprint(same, recipe) == nd.fingerprint(same, nd.Recipe())
    assert nd.fingerprints([text, "", same], recipe).mask.tolist() == [[False], [True], [False]]


def test_the_release_of_opencc_is_in_the_recipe() -> None:
    pytest.importorskip("opencc")
    recipe = nd.Recipe(fold_chinese="simplified")
    release = importlib.metadata.version("opencc")
    assert recipe.fold_chinese == f"simplified:{release}"
    assert nd.Recipe.from_json(recipe.to_json()) == recipe
    other = dataclasses.replace(recipe, fold_chinese="simplified:1.0.0")
    assert other.digest != recipe.digest
    with pytest.raises(RecipeError, match=rf"is simplified:1\.0\.0, .* is {release}: install"):
        nd.fingerprint("漢字", other)


def test_folding_without_opencc_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", absent)
    with pytest.raises(UsageError, match=r"pip install neardup\[chinese\]"):
        nd.Recipe(fold_chinese="simplified")


@pytest.mark.parametrize("tokeniser", ["jieba", "jieba-search", "jieba-keywords"])
def test_documents_are_matched_by_jiebas_words(tokeniser: str) -> None:
    recipe = nd.Recipe(tokens=tokeniser, ngram=1)
    table = nd.similar_pairs([SENTENCES[0], SENTENCES[1], SENTENCES[0] + "！"], recipe=recipe)
    assert table.select(["left", "right"]).to_pylist() == [{"left": 0, "right": 2}]
