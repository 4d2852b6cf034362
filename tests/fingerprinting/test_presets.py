"""Presets give the published values of the libraries that they stand for."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import DataError, RecipeError, UsageError
from neardup.features import jieba_words
from neardup.features.hashes import HASHES, expanded, hash_features
from neardup.fingerprinting.libraries.table import PRESETS
from neardup.fingerprinting.preset_recipes import fingerprint_features
from suite import SHARED

if TYPE_CHECKING:
    from pathlib import Path

BLAR = "How are you? I Am fine. blar blar blar blar blar Thanks."
FOX = "The quick brown fox jumps over the lazy dog"

PUBLISHED: list[tuple[str, dict[str, Any], str, int]] = [
    ("pypi-simhash", {}, BLAR, 8440240427182201978),
    ("pypi-simhash-2.1.2", {}, BLAR, 8440240427182201978),
    ("pypi-simhash-1.5.0", {}, "This is simhash test.", 9984379969213434071),
    ("pypi-simhash-1.7.1", {}, "This is simhash test.", 9984379969213434071),
    ("pypi-simhash-0.1.11", {}, "aaaaab", 0x86F24BA207A4912),
    ("go-mfonda", {}, "this is a test phrase", 0x8C3A5F7E9ECB3F35),
    ("go-dedup", {}, "this is a test phrass", 0x8C3A5F7E9ECB3F21),
    ("go-mfonda", {}, "", 2**64 - 1),
    ("go-mfonda", {"ngram": 2}, " !", 0xCBF29CE484222325),
    ("go-dedup-cjk", {}, "当山峰没有棱角的时候", 0xD7185F186A2EEA5A),
    ("go-dedup-cjk", {}, "当山谷没有棱角的时候", 0xD71A5F186A2EEA5A),
    ("gaoya", {}, "this is a test phrase", 0x8CF63C45C316473E),
    ("gaoya", {}, "this is a test phrass", 0x2CD4BC44E2964F3F),
    ("gaoya", {}, "", 0),
    ("gaoya", {"bits": 128}, "a", 0x8D53E29364DFBA723871D83357015914),
    ("gaoya", {"bits": 128}, "this is a test phrase", 0x6726391E551FFB1D85B947F4723738E),
    ("gaoya", {"bits": 128}, "", 0),
    ("text-dedup-0.4.0", {}, FOX, 0xA23EC554685F346C),
    ("text-dedup", {}, FOX, 0xEF2A43BDB175A641),
    ("text-dedup", {}, "Hello, world! One two; three -- four.", 0x04244624050AB882),
    ("text-dedup", {}, "four words, are - few!", 0),
    ("data-juicer", {}, "Today is Sunday and it's a happy day!", 15129817047262752921),
    ("data-juicer-characters", {}, "欢迎来到阿里巴巴！", 643491448609836041),  # noqa: RUF001
    ("data-juicer", {}, "too short", 0),
    ("trafilatura", {}, "行政長官岑浩", 0x13DD8C82D4634A48),
    ("ferd", {}, "My voice is my password.", 0xC20577ED68263FB5972749E213E68C59210CB27D),
    ("ferd-sha1", {"bits": 160}, "abc", 2**160 - 1),
    ("simhash-cpp", {}, "too short", 0),
]


@pytest.mark.parametrize(("name", "options", "text", "expected"), PUBLISHED)
def test_a_preset_gives_the_published_value(
    name: str, options: dict[str, Any], text: str, expected: int
) -> None:
    assert nd.fingerprint(text, recipe=nd.preset(name, **options)) == expected


def test_keywords_of_the_caller_give_yanyiwus_published_value() -> None:
    keywords = [
        ("蓝翔", 11.7392),
        ("CEO", 11.7392),
        ("升职", 10.8562),
        ("加薪", 10.6426),
        ("手扶拖拉机", 10.0089),
    ]
    assert fingerprint_features(nd.preset("yanyiwu"), keywords) == 17831459094038722629


def test_cppjieba_tells_stop_words_by_case_and_signs_are_no_keywords() -> None:
    pytest.importorskip("jieba")
    explanation = nd.explain("The the ### --- 你好 世界", recipe=nd.preset("yanyiwu", top=9))
    assert {feature.text for feature in explanation.features} == {"The", "你好", "世界"}


words = st.dictionaries(
    st.text(st.characters(categories=["Lu", "Ll", "Lo"]), min_size=1, max_size=4),
    st.integers(0, 100).map(lambda n: n / 4) | st.integers(0, 100),
    max_size=6,
)


@given(words, st.sampled_from(sorted(HASHES)), st.sampled_from([1, 31, 64, 200]))
def test_keywords_as_text_as_pairs_and_by_hand_are_the_same(
    weights: dict[str, float], name: str, bits: int
) -> None:
    recipe = nd.preset("keywords", hash=name, bits=bits)
    width = HASHES[name].bits
    hashes = hash_features(HASHES[name], [word.encode() for word in weights])
    pairs = [(expanded(x, width, bits), w) for x, w in zip(hashes, weights.values(), strict=True)]
    expected = nd.simhash(pairs, bits) if weights else None
    assert nd.simhash(weights.items(), bits, hash=name) == (expected or 0)
    lines = "\n".join(f"{word}\t{weight}" for word, weight in weights.items())
    for text in (lines, json.dumps(weights), json.dumps(list(weights.items()))):
        assert nd.fingerprint(text, recipe) == expected
        assert nd.explain(text, recipe=recipe).fingerprint == expected


def test_the_heaviest_keywords_are_kept_and_one_without_weight_counts_once() -> None:
    recipe = nd.preset("keywords", top=2)
    assert nd.fingerprint("a 1\nb b 3\nc 2\n", recipe) == nd.simhash(
        [("b b", 3), ("c", 2)], hash="xxh3"
    )
    assert nd.fingerprint("a", recipe) == nd.simhash([("a", 1)], hash="xxh3")


@pytest.mark.parametrize("text", ["a b", "a -1", "a nan", "[1]", '{"a": "x"}', '{"a": NaN}', "{"])
def test_a_keyword_without_a_weight_is_refused(text: str) -> None:
    with pytest.raises(DataError, match=r"has no weight: end it by a number|keywords are "):
        nd.fingerprint(text, nd.preset("keywords"))


def test_words_need_a_hash_and_numbers_take_none() -> None:
    with pytest.raises(UsageError, match=r"to hash words, name how, as in hash='xxh3'"):
        nd.simhash([("a", 1)])
    with pytest.raises(UsageError, match=r"with hash='fnv1a' pass pairs of a word and a weight"):
        nd.simhash([(5, 1)], hash="fnv1a")
    with pytest.raises(UsageError, match=r"the weight of features\[0\] is -1"):
        nd.simhash([("a", -1)], hash="fnv1a")
    with pytest.raises(RecipeError, match="did you mean fnv1"):
        nd.simhash([("a", 1)], hash="fnv")


def test_text_gives_yanyiwus_published_value() -> None:
    pytest.importorskip("jieba")
    sentence = (
        "我是蓝翔技工拖拉机学院手扶拖拉机专业的。"
        "不用多久，我就会升职加薪，当上总经理，出任CEO，走上人生巅峰。"  # noqa: RUF001
    )
    assert nd.fingerprint(sentence, nd.preset("yanyiwu")) == 17831459094038722629
    assert nd.fingerprint("你好世界", nd.preset("yanyiwu", top=3)) == 17676873585679812141


def test_the_published_fold_of_simhash_cpp_and_text_dedup() -> None:
    assert nd.simhash([(h, 1) for h in (0xABCD, 0xBCDE, 0xCDEF)]) == 0xADCF
    assert nd.simhash([(13352372148217134600, 1), (5020219685658847592, 1)]) == 74633958390507528


@pytest.mark.shared
def test_the_go_article_gives_both_its_pairs() -> None:
    pytest.importorskip("jieba")
    cases = json.loads((SHARED / "worked-examples.json").read_text("utf8"))
    case = next(case for case in cases if case["name"] == "go-jieba-fnv")
    for name, key in (("go-jieba", "as_meant"), ("go-jieba-article", "as_the_program_prints")):
        values = [
            nd.fingerprint(text, nd.preset(name, top=top))
            for text, top in ((case["source"], 22), (case["other"], 11))
        ]
        assert [f"{value:016x}" for value in values] == case[key]["fingerprints"]
        assert nd.distance(*values) == case[key]["distance"]


def test_the_legacy_simhash_cpp_rolls_over_three_tokens_and_reverses_the_bits() -> None:
    from neardup.features.hashes import HASHES, hash_features

    recipe = nd.preset("simhash-cpp-legacy")
    a, b = hash_features(HASHES["jenkins"], [b"one", b"Two"])

    def rotl(value: int, count: int) -> int:
        return (value << count | value >> 64 - count) & 2**64 - 1

    assert nd.fingerprint("one", recipe) == int(f"{a:064b}"[::-1], 2)
    both = nd.simhash([(a, 1), (rotl(a, 1) ^ b, 1)])
    assert nd.fingerprint("one, 2 Two!", recipe) == int(f"{both:064b}"[::-1], 2)


def test_scrapinghub_loses_its_lowest_sum_and_reverses_the_others() -> None:
    recipe = nd.preset("scrapinghub")
    value = 0xAF63DC4C8601EC8C  # FNV-1a of "a"
    assert nd.fingerprint("a", recipe) == int(f"{value:064b}"[::-1], 2) << 1 & 2**64 - 1


@pytest.mark.parametrize("name", sorted(PRESETS.keys() - {"keywords"}))
def test_every_preset_takes_any_text_and_gives_its_width(name: str) -> None:
    if PRESETS[name].options.get("top", 0) != 0:
        pytest.importorskip("jieba")
    recipe = nd.preset(name)
    texts = ["", " ", "a", "One two three four five six seven.", "当山峰没有棱角的时候", "İΣ\x00"]
    values = nd.fingerprints(texts, recipe=recipe)
    assert not np.ma.isMaskedArray(values)
    assert values.shape == (6, recipe.words)
    assert [nd.fingerprint(text, recipe) for text in texts] == [
        sum(int(word) << 64 * i for i, word in enumerate(row)) for row in values
    ]
    assert nd.Recipe.from_json(recipe.to_json()) == recipe


@given(text=st.text(max_size=30))
def test_versions_of_a_family_agree(text: str) -> None:
    for name, again in (("pypi-simhash-1.1.2", "pypi-simhash-0.1.11"), ("go-dedup", "go-mfonda")):
        assert nd.preset(name) == nd.preset(again)
        assert nd.fingerprint(text, nd.preset(name)) == nd.fingerprint(text, nd.preset(again))


def test_presets_have_digests_of_their_own() -> None:
    digests = {nd.preset(name).digest for name in nd.presets()} | {nd.Recipe().digest}
    assert len(digests) == len(nd.presets()) + 1
    assert nd.preset("go-jieba", top=5).digest != nd.preset("go-jieba", top=6).digest


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nd.preset("pypi-simash"), "preset is 'pypi-simash': .*did you mean pypi-simhash"),
        (lambda: nd.preset("PyPI_SimHash"), "did you mean pypi-simhash or"),
        (lambda: nd.preset("mfonda"), r"did you mean go-mfonda\?"),
        (lambda: nd.preset("go"), "did you mean go-jieba or go-mfonda or go-dedup-utf"),
        (lambda: nd.preset(""), r"neardup\.presets\(\) lists them"),
        (lambda: nd.preset("qqq"), r"neardup\.presets\(\) lists them"),
        (lambda: nd.preset(None), "preset is None: pass a name"),  # type: ignore[arg-type]
        (lambda: nd.preset(["a"]), r"preset is \['a'\]: pass a name"),  # type: ignore[arg-type]
        (lambda: nd.Recipe(preset="gaoyaa"), "did you mean gaoya or"),
        (lambda: nd.Recipe(preset=5), "preset is 5: pass a name"),  # type: ignore[arg-type]
        (lambda: nd.preset("pypi-simhash", bits="64"), "bits is '64': use a whole number"),
        (lambda: nd.preset("gaoya", bits=96), "bits is 96: the preset gaoya gives 64 or 128"),
        (lambda: nd.preset("yanyiwu", bits=128), "bits is 128: the preset yanyiwu gives 64"),
        (lambda: nd.preset("ferd", bits=64), "gives 160 or 128 or 32"),
        (lambda: nd.preset("pypi-simhash", bits=12), "gives 8 to 128 in steps of 8"),
        (lambda: nd.preset("ferd-md5", bits=160), "bits is 160: the preset ferd-md5 has 128"),
        (lambda: nd.preset("ferd", ngram=3), "ngram is 3: the preset ferd takes only bits"),
        (lambda: nd.Recipe(preset="ferd", bits=160, weight="count"), "weight is 'count'"),
        (lambda: nd.preset("go-jieba", top=0), "top is 0: use a whole number from 1"),
    ],
)
def test_what_a_preset_cannot_give_is_refused(make: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        make()


def test_weights_must_be_whole_where_the_library_counts() -> None:
    recipe = nd.preset("gaoya")
    assert fingerprint_features(recipe, [b"a\xff"]) == nd.fingerprint("a", recipe)
    with pytest.raises(UsageError, match=r"the weight of b'a' is 0\.5: use whole numbers"):
        fingerprint_features(recipe, [("a", 0.5)])


@pytest.mark.parametrize("name", ["pypi-simhash", "yanyiwu", "go-jieba", "gaoya"])
@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([("a", -1)], "the weight of 'a' is -1: use a number from 0 up"),
        ([("a", math.nan)], "the weight of 'a' is nan"),
        ([("a", math.inf)], "the weight of 'a' is inf"),
        ([("a", "b")], "the weight of 'a' is 'b'"),
        ([5], "a feature is 5: pass a string, or one and its weight"),
        ([("a", 1, 2)], "a feature is .*: pass a string, or one and its weight"),
        ("abc", "features is 'abc': pass a list of strings"),
        (5, "features is 5: pass a list of strings"),
    ],
)
def test_features_that_no_library_takes_are_named(name: str, features: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fingerprint_features(nd.preset(name), features)


@pytest.mark.parametrize("recipe", ["gaoya", None, nd.Recipe(), 5])
def test_features_need_the_recipe_of_a_preset(recipe: Any) -> None:
    with pytest.raises(RecipeError, match=r"neardup\.preset\(name\)|preset is None: pass a name"):
        fingerprint_features(recipe, ["a"])


def test_weights_beyond_64_bits_fold_exactly() -> None:
    recipe = nd.preset("pypi-simhash")
    one = fingerprint_features(recipe, ["a"])
    assert fingerprint_features(recipe, [("a", 2**80), ("b", 2**80 - 1)]) == one
    assert fingerprint_features(recipe, [("a", 2**80 - 1), ("b", 2**80)]) != one


@pytest.mark.parametrize(
    "recipe", [nd.preset("yanyiwu"), nd.preset("go-jieba"), nd.Recipe(tokens="jieba")]
)
def test_a_recipe_without_jieba_says_what_to_install(
    recipe: nd.Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    monkeypatch.setitem(sys.modules, "jieba.analyse", None)
    kept = (jieba_words.jieba_package, jieba_words._tokenizer, jieba_words._extractor)  # noqa: SLF001
    for each in kept:
        each.cache_clear()
    try:
        with pytest.raises(UsageError, match=r"pip install neardup\[jieba\]"):
            nd.fingerprint("你好", recipe)
    finally:
        for each in kept:
            each.cache_clear()


def test_words_that_a_program_adds_to_jieba_change_no_preset() -> None:
    jieba = pytest.importorskip("jieba")
    text, recipe = "我来到北京清华大学", nd.preset("go-jieba")
    before = nd.fingerprint(text, recipe)
    jieba.add_word("来到北京")
    try:
        assert nd.fingerprint(text, recipe) == before
    finally:
        jieba.del_word("来到北京")


def test_a_preset_has_no_features_for_similarity(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "one two"}\n' * 2)
    with pytest.raises(UsageError, match="the preset gaoya has no features to compare"):
        nd.dedup(str(source), str(tmp_path / "b.jsonl"), recipe=nd.preset("gaoya"))
    result = nd.dedup(str(source), str(tmp_path / "b.jsonl"), distance=3, recipe=nd.preset("gaoya"))
    assert result.summary.kept == 1


@given(text=st.text(max_size=40) | st.text("aB_9 .中", max_size=40))
def test_the_fast_way_of_a_preset_is_that_of_its_features(text: str) -> None:
    for name, preset in PRESETS.items():
        if preset.direct is not None and name != "keywords":
            for bits in (24, 64, 128):
                recipe = nd.preset(name, bits=bits)
                slow = preset.fold(preset.features(text, recipe), recipe)
                assert preset.direct(text, recipe) == slow
