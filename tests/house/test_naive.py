"""The oracle against cases worked out by hand."""

# ruff: noqa: RUF001 - look-alike characters are what is tested

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from naive import Recipe

WORDS = Recipe()
CHARS = Recipe(tokens="chars", ngram=4)


@pytest.mark.parametrize("module", [naive, strategies])
def test_the_oracle_imports_nothing_of_neardup(module: object) -> None:
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    imported = {
        alias.name for x in ast.walk(tree) if isinstance(x, ast.Import) for alias in x.names
    }
    imported |= {x.module or "" for x in ast.walk(tree) if isinstance(x, ast.ImportFrom)}
    assert not [name for name in imported if name.split(".")[0] == "neardup"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Straße ΣΑΣ", "strasse σασ"),
        ("ﬁ Ａ ① Å", "fi a 1 å"),
        ("a\ud83d\ude00\udfff", "a\ufffd\ufffd\ufffd"),
        ("İ", "i\u0307"),
        ("e\u0301 ᾳ", "é αι"),
        ("ｶﾞ 각", "ガ 각"),
    ],
)
def test_normalising_composes_then_folds(text: str, expected: str) -> None:
    assert naive.normalise(text, WORDS) == expected


def test_folding_is_not_normalised_again() -> None:
    assert naive.normalise("ǰ", WORDS) == "j\u030c"


def test_without_normal_form_and_folding_only_surrogates_change() -> None:
    recipe = Recipe(normalize="none", casefold=False)
    assert naive.normalise("ＡÅﬁA\u030a\ud800", recipe) == "ＡÅﬁA\u030a\ufffd"


def test_nfc_keeps_compatibility_characters() -> None:
    assert naive.normalise("ﬁA\u030a", Recipe(normalize="NFC", casefold=False)) == "ﬁÅ"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  ...!\n", []),
        ("Hello, World! 你好世界 ภาษา", ["hello", "world", *"你好世界", *"ภาษา"]),
        ("don't a_b x-1", ["don", "t", "a_b", "x", "1"]),
        ("abc你def", ["abc", "你", "def"]),
        ("你\u0301\u0302好", ["你\u0301\u0302", "好"]),
        ("กำ ไม่", ["ก\u0e4d", "า", "ไ", "ม่"]),
        ("\u0301a\u0301b", ["áb"]),
        ("q\u0301q. \u0301q", ["q\u0301q", "q"]),
        ("क्षत्रिय हिन्दी", ["क्षत्रिय", "हिन्दी"]),
        ("x\u00ady a\u200bb \u200dc\u200d", ["xy", "a", "b", "c"]),
        ("👍🏽 ❤\ufe0f 1\ufe0f\u20e3", ["1\u20e3"]),
        ("½", ["1", "2"]),
        ("мʼята", ["мʼята"]),
        ("한국어 \u1112\u1161\u11ab", ["한국어", "한"]),
        ("〇々〆 がｶﾞー", [*"〇々〆がガー"]),
        ("๑๒3", ["๑๒3"]),
        ("\U0003fffd\U0003fffe\ue000\uffff", ["\U0003fffd"]),
        ("\ud800a\udfffb\0c", ["a", "b", "c"]),
        ("\u115f\u3164", []),
    ],
)
def test_words_of_a_text(text: str, expected: list[str]) -> None:
    assert naive.tokens(text, WORDS) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \t\u3000\n", ""),
        ("\u2003 A\u0301 \r\n\u00a0b! ", "á b!"),
        ("x\u00ad \u00ad y", "x y"),
        ("a\u200bb\x1cc", "a\u200bb\x1cc"),
        ("\u0301\ud800", "\u0301\ufffd"),
    ],
)
def test_characters_of_a_text(text: str, expected: str) -> None:
    assert naive.tokens(text, CHARS) == list(expected)


@pytest.mark.parametrize(
    ("tokens", "recipe", "expected"),
    [
        ([], WORDS, []),
        (["a"], WORDS, ["a"]),
        (["a", "b"], WORDS, ["a b"]),
        (["a", "b", "c"], WORDS, ["a b c"]),
        (["a", "b", "a", "b", "a"], Recipe(ngram=2), ["a b", "b a", "a b", "b a"]),
        (["a", "b", "a"], Recipe(ngram=1), ["a", "b", "a"]),
        (list("abc"), CHARS, ["abc"]),
        (list("ab cd"), CHARS, ["ab c", "b cd"]),
    ],
)
def test_features_are_runs_of_n_tokens(
    tokens: list[str], recipe: Recipe, expected: list[str]
) -> None:
    assert naive.features(tokens, recipe) == expected


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        ("set", [("a", 65536), ("b", 65536)]),
        ("count", [("a", 196608), ("b", 65536)]),
        ("log", [("a", round(65536 * (1 + math.log(3)))), ("b", 65536)]),
    ],
)
def test_weights_of_repeated_features(weight: str, expected: list[tuple[str, int]]) -> None:
    assert naive.weights(["a", "b", "a", "a"], Recipe(weight=weight)) == expected


def test_feature_hash_is_the_published_xxh3() -> None:
    assert naive.feature_hash("", WORDS) == 0x2D06800538D394C2
    assert naive.feature_hash("", Recipe(seed=1)) != 0x2D06800538D394C2


def test_widening_keeps_the_hash_and_continues_with_splitmix64() -> None:
    assert naive.widened(0xFF, 4) == 0xF
    assert naive.widened(2**64 - 1, 64) == 2**64 - 1
    assert naive.widened(0, 128) == 0xE220A8397B1DCDAF << 64
    assert naive.widened(0, 192) >> 128 == 0x6E789E6AA1B965F4
    assert naive.widened(0, 65) == (0xE220A8397B1DCDAF & 1) << 64


def test_fold_takes_the_sign_of_each_sum() -> None:
    assert naive.fold([(0b1100, 1), (0b1010, 1)], 4, "zero") == 0b1000
    assert naive.fold([(0b1100, 1), (0b1010, 1)], 4, "one") == 0b1110
    assert naive.fold([(0b1100, 1), (0b1010, 2)], 4, "zero") == 0b1010


def test_fingerprint_of_one_feature_is_its_hash_and_of_none_is_none() -> None:
    assert naive.fingerprint("One Two", WORDS) == naive.feature_hash("one two", WORDS)
    assert naive.fingerprint("?!", WORDS) is None
    assert naive.fingerprint(" ", CHARS) is None


@given(st.integers(0, 2**200), st.integers(0, 2**200))
def test_distance_counts_differing_bits(a: int, b: int) -> None:
    assert naive.distance(a, b) == f"{a ^ b:b}".count("1")


def test_pairs_are_sorted_and_skip_empty_documents() -> None:
    fingerprints = [0b0000, None, 0b0001, 0b0111, None, 0b0000]
    assert naive.pairs(fingerprints, 1) == [(0, 2, 1), (0, 5, 0), (2, 5, 1)]
    assert naive.pairs(fingerprints, 0) == [(0, 5, 0)]


CHAIN = [0b000, 0b001, 0b011, 0b111, None, None]


def test_greedy_drops_only_what_matches_a_kept_document() -> None:
    assert naive.greedy(CHAIN, 1, [0, 1, 2, 3, 4, 5]) == [0, 0, 2, 2, 4, 5]
    assert naive.greedy(CHAIN, 1, [1, 0, 2, 3, 4, 5]) == [1, 1, 1, 3, 4, 5]


def test_greedy_names_the_kept_match_that_was_visited_first() -> None:
    assert naive.greedy([0b11, 0b00, 0b01], 1, [1, 0, 2]) == [0, 1, 1]
    assert naive.greedy([0b11, 0b00, 0b01], 1, [0, 1, 2]) == [0, 1, 0]


def test_components_follow_chains_and_leave_empty_documents_alone() -> None:
    assert naive.components(CHAIN, 1) == [0, 0, 0, 0, 4, 5]
    assert naive.components([0b111, 0b000, 0b001, 0b011], 1) == [0, 0, 0, 0]
    assert naive.components([0b0, 0b11111, 0b1, 0b11110], 1) == [0, 1, 0, 1]
