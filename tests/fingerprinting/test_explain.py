"""An explanation is that of the fingerprint: its parts add up to what `fingerprint` gives."""

from __future__ import annotations

import html.parser
import io
import json
import sys
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import neardup as nd
from commands import Here
from neardup.errors import UnfitHashWarning, UsageError
from neardup.features.hashes import HASHES
from strategies import texts
from suite import examples

if TYPE_CHECKING:
    from pathlib import Path


@st.composite
def recipes(draw: st.DrawFn) -> nd.Recipe:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfitHashWarning)
        return nd.Recipe(
            tokens=draw(st.sampled_from(["words", "chars"])),
            ngram=draw(st.sampled_from([1, 2, 4])),
            weight=draw(st.sampled_from(["set", "count", "log"])),
            hash=draw(st.sampled_from(sorted(HASHES))),
            bits=draw(st.sampled_from([1, 6, 63, 64, 65, 130])),
            top=draw(st.sampled_from([None, None, 2])),
            tie=draw(st.sampled_from(["zero", "one"])),
        )


def bits_of(sums: tuple[float, ...], value: int) -> int:
    """The fingerprint that sums give; where one is 0, the bit of `value`."""
    return sum(
        1 << bit for bit, total in enumerate(sums) if total > 0 or (total == 0 and value >> bit & 1)
    )


@settings(max_examples=examples(60, 10))
@given(texts(), recipes())
def test_the_parts_make_the_fingerprint(text: str, recipe: nd.Recipe) -> None:
    explanation = nd.explain(text, recipe=recipe)
    assert explanation.fingerprint == nd.fingerprint(text, recipe)
    assert explanation.sums is not None
    pulls = [[feature.pull(bit) for feature in explanation.features] for bit in range(recipe.bits)]
    assert explanation.sums == pytest.approx([sum(column) for column in pulls])
    if explanation.fingerprint is not None:
        tie = (1 << recipe.bits) - 1 if recipe.tie == "one" else 0
        assert bits_of(explanation.sums, tie) == explanation.fingerprint
    weights = [feature.weight for feature in explanation.features]
    assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize(
    "fields",
    [
        {"weight": "textrank", "top": 3},
        {"weight": "count", "stopwords": "english", "top": 4},
        {"tokens": "regex:[a-z]+", "ngram": 2},
        {"language": "tr"},
    ],
)
def test_every_kind_of_recipe_is_explained(fields: dict[str, Any]) -> None:
    text = "İyi the quick brown fox and THE quick dog jumps over the lazy dog and a fox"
    recipe = nd.Recipe(**fields)
    explanation = nd.explain(text, recipe=recipe)
    assert explanation.fingerprint == nd.fingerprint(text, recipe)
    assert explanation.sums is not None
    assert bits_of(explanation.sums, 0) == explanation.fingerprint


def test_tfidf_is_explained_with_the_weights_of_its_table() -> None:
    texts = ["the cat sat", "the dog sat", "the bird flew"]
    table = nd.DocumentFrequencies.learn(texts, nd.Recipe(ngram=1))
    recipe = nd.Recipe(ngram=1, weight="tfidf", idf=table.digest)
    explanation = nd.explain("the cat, the cat and a bird", recipe=recipe)
    assert explanation.fingerprint == nd.fingerprint("the cat, the cat and a bird", recipe)
    assert explanation.sums is not None
    assert bits_of(explanation.sums, 0) == explanation.fingerprint
    weights = {feature.text: feature.weight for feature in explanation.features}
    assert weights == {
        "the": 2 * table.idf("the"), "cat": 2 * table.idf("cat"), "bird": table.idf("bird"),
        "and": table.idf("and"), "a": table.idf("a"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens": "jieba", "ngram": 2},
        {"tokens": "jieba-search", "ngram": 1, "weight": "tfidf", "idf": "jieba"},
        {"tokens": "jieba-keywords", "ngram": 1, "weight": "tfidf", "top": 5},
    ],
)
def test_chinese_words_are_explained(fields: dict[str, Any]) -> None:
    pytest.importorskip("jieba")
    text = "我来到北京清华大学，他来到了网易杭研大厦。"  # noqa: RUF001
    recipe = nd.Recipe(**fields)
    explanation = nd.explain(text, recipe=recipe)
    assert explanation.fingerprint == nd.fingerprint(text, recipe)
    assert explanation.sums is not None
    assert bits_of(explanation.sums, 0) == explanation.fingerprint
    assert any("清华大学" in feature.text for feature in explanation.features)


@settings(max_examples=examples(60, 10))
@given(texts(), st.sampled_from([1, 3]), st.sampled_from(["set", "count", "log"]))
def test_features_counts_and_weights_are_those_of_the_oracle(
    text: str, ngram: int, weight: str
) -> None:
    recipe: Any = nd.Recipe(ngram=ngram, weight=weight)
    counts = Counter(naive.features(naive.tokens(text, recipe), recipe))
    explanation = nd.explain(text, recipe=recipe)
    assert {x.text: (x.count, x.weight, x.hash) for x in explanation.features} == {
        x: (n, naive.weight_of(n, weight) / naive.UNIT, naive.feature_hash(x, recipe))
        for x, n in counts.items()
    }


@pytest.mark.parametrize("name", sorted(nd.presets().keys() - {"keywords"}))
@settings(max_examples=examples(8, 2))
@given(text=texts() | st.just("How are you? I am fine. 你好世界, blar blar."))
def test_presets_are_explained(name: str, text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    recipe = nd.preset(name)
    try:
        expected = nd.fingerprint(text, recipe)
    except UsageError as error:
        pytest.skip(str(error))
    explanation = nd.explain(text, recipe=recipe)
    assert explanation.fingerprint == expected
    assert explanation.sums is None or bits_of(explanation.sums, expected or 0) == expected
    assert (explanation.sums is not None) or name == "simhash-cpp-0.1.0"
    assert str(explanation)


@settings(max_examples=examples(60, 10))
@given(texts(), texts(), recipes())
def test_pulls_add_up_to_the_differences_of_the_sums(a: str, b: str, recipe: nd.Recipe) -> None:
    explanation = nd.explain(a, b, recipe)
    values = [nd.fingerprint(text, recipe) for text in (a, b)]
    if None in values:
        assert explanation.distance is None
        assert explanation.differing == explanation.pulls == ()
        assert nd.explain(b, a, recipe)._repr_html_()
        return
    assert explanation.distance == nd.distance(*values) == len(explanation.differing)
    apart = 0.0
    for each in explanation.differing:
        assert explanation.first.sums is not None
        assert explanation.second.sums is not None
        assert each.sums == (explanation.first.sums[each.bit], explanation.second.sums[each.bit])
        apart += abs(each.sums[0] - each.sums[1])
        assert all(pull > 0 for _, pull in each.pulls)
    assert sum(pull.total for pull in explanation.pulls) == pytest.approx(apart)
    assert len(explanation.pulls) + explanation.shared == len(
        {(x.text, x.hash) for x in (*explanation.first.features, *explanation.second.features)}
    )
    assert json.loads(json.dumps(explanation.to_dict()))["distance"] == explanation.distance


def test_what_is_in_one_document_only_pulls_the_bits_apart() -> None:
    recipe = nd.Recipe(ngram=1)
    explanation = nd.explain("one two three four jumps", "one two three four jumped", recipe)
    assert explanation.shared == 4
    assert {pull.text: pull.weights for pull in explanation.pulls} == {
        "jumps": (1.0, 0.0),
        "jumped": (0.0, 1.0),
    }
    assert "4 features weigh the same in both and cancel" in str(explanation)


def test_a_long_document_shows_its_heaviest_features_and_says_how_many_more() -> None:
    text = " ".join(f"word{i}" for i in range(500)) + " heavy" * 9
    explanation = nd.explain(text, recipe=nd.Recipe(ngram=1, weight="count"), show=3)
    lines = str(explanation).splitlines()
    assert lines[2].split()[:3] == ["heavy", "9", "9"]
    assert lines[5] == "... 498 more"
    assert len(explanation.to_dict()["features"]) == 501
    assert "... 498 more" in explanation._repr_html_()


def test_wide_fingerprints_show_64_columns_and_a_line_for_each_further_word() -> None:
    lines = str(nd.explain("one two", recipe=nd.Recipe(bits=200))).splitlines()
    assert len(lines[2].split()[-1]) == 64
    assert [line.split(":")[0] for line in lines if "sums above 0" in line] == [
        "bits 127 to 64",
        "bits 191 to 128",
        "bits 199 to 192",
    ]


def test_columns_line_up_under_wide_characters_and_no_control_character_is_printed() -> None:
    explanation = nd.explain("世界 ab", recipe=nd.Recipe(ngram=1, tokens="words"))
    rows = str(explanation).splitlines()[2:5]
    assert [row.index("1") for row in rows] == [12, 12, 13]
    custom = nd.explain("a\x07b\x1b[0m", recipe=nd.Recipe(ngram=9, tokens="chars"))
    assert custom.features[0].text == "a\x07b\x1b[0m"
    assert r"a\x07b\x1b[0m" in str(custom)
    assert not {"\x07", "\x1b"} & set(str(custom))


class Balance(html.parser.HTMLParser):
    """Counts tags that are open, and collects the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, _: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@settings(max_examples=examples(30, 5))
@given(texts(), texts(), recipes())
def test_html_is_well_formed(a: str, b: str, recipe: nd.Recipe) -> None:
    for explanation in (nd.explain(a, recipe=recipe), nd.explain(a, b, recipe)):
        assert Balance(explanation._repr_html_()).open == []


def test_html_escapes_features() -> None:
    recipe = nd.Recipe(tokens="chars", ngram=50)
    html = nd.explain("<script>alert('&\"')</script>", "<b>", recipe)._repr_html_()
    assert "<script>" not in html
    assert "<b>" in Balance(html).text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": 3}, "text is int, not str: 3"),
        ({"text": "a", "other": nd.Recipe()}, "text is Recipe, not str"),
        ({"text": "a", "show": 0}, "show is 0: use a whole number from 1 up"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        nd.explain(**arguments)


def test_the_command_prints_what_the_function_gives(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ((here.folder / name).read_text("utf-8") for name in ("one.txt", "other.txt"))
    recipe = nd.Recipe(ngram=1, bits=16)
    options = ("--ngram", "1", "--bits", "16")
    assert here("explain", "one.txt", *options)[0] == f"{nd.explain(first, recipe=recipe)}\n"
    pair = nd.explain(first, second, recipe)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(second.encode())))
    assert here("explain", "one.txt", "-", *options)[0] == f"{pair}\n"
    printed, _ = here("explain", "one.txt", "other.txt", *options, "--json")
    assert json.loads(printed) == json.loads(json.dumps(pair.to_dict()))
    preset, _ = here("explain", "one.txt", "--preset", "pypi-simhash", "--show", "2")
    assert preset == f"{nd.explain(first, recipe=nd.preset('pypi-simhash'), show=2)}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Here:
    (tmp_path / "one.txt").write_text("The quick brown fox jumps. 你好\n", "utf-8")
    (tmp_path / "other.txt").write_text("The quick brown fox jumped. 你好\n", "utf-8")
    return Here(tmp_path, monkeypatch, capfd)
