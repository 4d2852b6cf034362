"""The worked examples of teaching articles; docs/design/worked-examples.md walks through them.

worked-examples.json beside this file has their numbers. Bit strings have the highest bit first, and
so have the lists of sums.
"""

from __future__ import annotations

import gzip
import importlib.resources
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naive
import neardup as nd
from neardup.fingerprinting.preset_recipes import fingerprint_features
from suite import JIT, ROOT, SHARED

CASES = json.loads((Path(__file__).parent / "worked-examples.json").read_text("utf-8"))


def bits(value: int, width: int) -> str:
    return f"{value:0{width}b}"


def folded(features: list[tuple[str, float]]) -> str:
    """The fingerprint of (bit string, weight) pairs as a bit string."""
    width = len(features[0][0])
    return bits(nd.simhash([(int(h, 2), weight) for h, weight in features], width), width)


def summed(features: list[tuple[str, float]]) -> list[float]:
    """The sums, highest bit first, by the rule in the plainest words."""
    width = len(features[0][0])
    return [sum(w if h[i] == "1" else -w for h, w in features) for i in range(width)]


def weighted(case: str, key: str | None) -> list[tuple[str, float]]:
    return [(word["hash"], word[key] if key else 1) for word in CASES[case]["words"]]


@pytest.mark.parametrize(("key", "part"), [(None, "once"), ("count", "counted")])
def test_ten_turkish_words(key: str | None, part: str) -> None:
    features = weighted("turkish", key)
    assert summed(features) == CASES["turkish"][part]["sums"]
    assert folded(features) == CASES["turkish"][part]["fingerprint"]


def test_the_words_and_counts_of_the_turkish_sentence() -> None:
    explanation = nd.explain(CASES["turkish"]["text"], recipe=nd.Recipe(ngram=1, weight="count"))
    assert {x.text: x.count for x in explanation.features} == {
        word["word"]: word["count"] for word in CASES["turkish"]["words"]
    }


def test_the_second_turkish_text_and_the_slip_of_its_article() -> None:
    second = CASES["turkish"]["second"]
    hashes = {word["word"]: word["hash"] for word in CASES["turkish"]["words"]}
    features = [(hashes[word], 1.0) for word in second["words"]]
    assert summed(features) == second["sums"]
    assert folded(features) == second["fingerprint"]
    first = int(CASES["turkish"]["once"]["fingerprint"], 2)
    assert nd.distance(first, int(second["fingerprint"], 2)) == second["distance"]

    printed = CASES["turkish"]["printed"]
    assert printed["sums"][:5] == second["sums"][:5]
    assert printed["sums"][5:] == [-total for total in second["sums"][5:]]
    assert nd.distance(first, int(printed["fingerprint"], 2)) == printed["distance"]


@pytest.mark.parametrize("case", ["keywords", "cities"])
def test_keywords_with_weights(case: str) -> None:
    features = weighted(case, "weight")
    assert summed(features) == pytest.approx(CASES[case]["sums"])
    assert folded(features) == CASES[case]["fingerprint"]


@pytest.mark.parametrize("case", CASES["distances"])
def test_distances_by_clearing_the_lowest_bit(case: dict[str, Any]) -> None:
    a, b = int(case["a"], 2), int(case["b"], 2)
    assert naive.distance(a, b) == nd.distance(a, b) == case["distance"]


@pytest.mark.parametrize("case", ["hyperplanes", "dimensions"])
def test_vectors_against_hyperplanes_of_hashed_dimensions(case: str) -> None:
    vector, hashes = (CASES[case][key] for key in ("vector", "hashes"))
    width = len(hashes[0])
    features = list(zip(hashes, vector, strict=True))
    assert summed(features) == CASES[case]["sums"]
    assert folded(features) == CASES[case]["fingerprint"]

    planes = np.array([[1 if h[i] == "1" else -1 for h in hashes] for i in range(width)])
    assert (planes @ np.array(vector)).tolist() == CASES[case]["sums"]
    codes = nd.project([vector], width, hashes=[int(h, 2) for h in hashes])
    assert bits(int(codes[0, 0]), width) == CASES[case]["fingerprint"]


def test_the_slip_of_the_article_on_hashed_dimensions() -> None:
    right, printed = CASES["dimensions"]["sums"], CASES["dimensions"]["printed"]["sums"]
    assert (right[0], printed[0]) == (3.0 - 2.0 + 4.0, 7.0)
    assert [total > 0 for total in right] == [total > 0 for total in printed]


@pytest.mark.parametrize(("name", "key"), [("go-jieba", "meant"), ("go-jieba-article", "printed")])
def test_two_chinese_passages_by_their_keywords(name: str, key: str) -> None:
    passages = CASES["passages"]
    values = []
    for document in passages["documents"]:
        keywords = [(word, weight) for word, weight in document["keywords"]]
        recipe = nd.preset(name, top=len(keywords))
        values.append(fingerprint_features(recipe, keywords))
        assert f"{values[-1]:016x}" == document[key]
    assert nd.distance(*values) == passages["distance"][key]


@pytest.mark.shared
def test_two_chinese_passages_from_their_text() -> None:
    pytest.importorskip("jieba")
    cases = json.loads((SHARED / "worked-examples.json").read_text("utf-8"))
    case = next(each for each in cases if each["name"] == "go-jieba-fnv")
    for name, key in (("go-jieba", "as_meant"), ("go-jieba-article", "as_the_program_prints")):
        values = [
            nd.explain(text, recipe=nd.preset(name, top=top))
            for text, top in ((case["source"], case["top"][0]), (case["other"], case["top"][1]))
        ]
        assert [value.digits for value in values] == case[key]["fingerprints"]
        assert [x.text for x in values[0].features[:3]] == [x for x, _ in case["first_keywords"]]


@pytest.mark.skipif(not JIT, reason="two thousand documents are slow in plain Python")
def test_collisions_of_the_demo_are_those_of_the_page() -> None:
    corpus = importlib.resources.files("neardup") / "cli" / "commands" / "demo.jsonl.gz"
    with corpus.open("rb") as packed, gzip.open(packed) as lines:
        texts = dict.fromkeys(json.loads(line)["text"] for line in lines)
    values, n = np.ma.getdata(nd.fingerprints(list(texts)))[:, 0], len(texts)
    page = (ROOT / "docs" / "design" / "worked-examples.md").read_text("utf-8")
    assert f"{n:,} different texts" in page
    for width in (8, 12, 16, 20, 24, 32, 48, 64):
        _, times = np.unique(values & np.uint64((1 << width) - 1), return_counts=True)
        equal, expected = int((times * (times - 1) // 2).sum()), n * (n - 1) / 2 ** (width + 1)
        assert f"| {width} | {equal:,} | {expected:,.2f} |" in page
