"""Questions in documents: what is found is what the definition says, and the passage is there."""

from __future__ import annotations

import random
import re
import unicodedata
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
import neardup as nd
from neardup.contamination.findings import leaks
from neardup.contamination.passages import shared_parts
from neardup.contamination.questions import lay_out, words_cut
from neardup.contamination.rules import PUBLISHED, LeakRule
from neardup.contamination.search import Search
from neardup.kernels.contamination_passages import maximal_segments
from neardup.kernels.features.places import placed_words
from strategies import normalisation_texts, texts
from suite import examples

WORDS = st.lists(
    st.sampled_from(["one", "two", "three", "four", "five", "ÉT,", "中文", "½", "naïve"]),
    max_size=14,
)
TEXTS = st.lists(WORDS.map(" ".join), max_size=5)
RULES = st.tuples(
    st.none() | st.sampled_from([0.01, 0.3, 0.5, 2 / 3, 1.0]), st.none() | st.integers(2, 6)
).filter(lambda rule: rule != (None, None))


@settings(max_examples=examples(120, 30))
@given(TEXTS, TEXTS, RULES)
def test_what_is_found_is_what_the_definition_says(
    documents: list[str], questions: list[str], rule: tuple[float | None, int | None]
) -> None:
    table = nd.decontaminate(documents, questions, *rule)
    pairs = list(zip(table["document"].to_pylist(), table["question"].to_pylist(), strict=True))
    assert pairs == [
        (i, j)
        for i, document in enumerate(documents)
        for j, question in enumerate(questions)
        if naive.holds(question, document, *rule)
    ]
    for row in table.to_pylist():
        question, document = questions[row["question"]], documents[row["document"]]
        assert row["share"] == pytest.approx(naive.shared_share(question, document))
        assert row["run"] == naive.longest_run(question, document)
        assert document[row["start"] : row["end"]] == row["text"]
        assert row["rule"] == naive.rule_of(question, document, *rule)
        for begin, end in row["passages"]:
            assert naive.holds(question, document[begin:end], *rule)


def test_the_longest_run_may_follow_another_run_at_once() -> None:
    question, document = (
        "one two three four five six seven eight",
        "one two three five six seven eight",
    )
    table = nd.decontaminate([document], [question], run=4)
    assert table["run"].to_pylist() == [4]


def test_a_document_may_hold_a_question_many_times() -> None:
    between = " a b c d e f g h i j "
    document = between.join(["one two three"] * 100)
    table = nd.decontaminate([document], ["one two three"], run=3)
    assert table["text"].to_pylist() == ["one two three"]
    (others,) = table["passages"].to_pylist()
    assert [document[begin:end] for begin, end in others] == ["one two three"] * 99


SCRIPT_TEXTS = st.lists(
    st.lists(
        st.sampled_from(
            ["one", "Two,", "don't", "-", "ÉT", "中文", "x\u200by", "four\x1cfive", "½"]
        ),
        max_size=24,
    ).map(" ".join),
    max_size=4,
)


@pytest.mark.parametrize("rule", sorted(PUBLISHED))
@settings(max_examples=examples(80, 20))
@given(st.data())
def test_a_published_rule_finds_what_its_definition_says(rule: str, data: st.DataObject) -> None:
    documents, questions = data.draw(SCRIPT_TEXTS), data.draw(SCRIPT_TEXTS)
    if documents and questions and data.draw(st.booleans()):
        words = documents[0].split(" ")
        begin = data.draw(st.integers(0, len(words)))
        questions[0] = " ".join([*words[begin : begin + 15], *questions[0].split()[:9]])
    table = nd.decontaminate(documents, questions, rule=rule)
    pairs = list(zip(table["document"].to_pylist(), table["question"].to_pylist(), strict=True))
    assert pairs == naive.published(rule, documents, questions)
    for row in table.to_pylist():
        assert row["rule"] == rule
        document = documents[row["document"]]
        assert document[row["start"] : row["end"]] == row["text"]


def test_half_a_question_is_enough_for_llama_and_not_for_olmo() -> None:
    words = [f"w{at}" for at in range(32)]
    question, parts = " ".join(words), [" ".join(words[:8]), " ".join(words[24:])]
    for rule, documents, count in [
        ("olmo", [" ".join(words[:16])], 0), ("olmo", [" ".join(words[:17])], 1),
        ("llama", parts, 2), ("llama", parts[:1], 0), ("olmo", parts, 0),
    ]:  # fmt: skip
        assert len(nd.decontaminate(documents, [question], rule=rule)) == count
    assert len(nd.decontaminate(parts[:1], [question], 0.25, rule="llama")) == 1


@settings(max_examples=examples(60, 20))
@given(st.lists(st.sampled_from("abcdefgh"), min_size=3, max_size=9), st.randoms())
def test_a_question_that_is_there_whole_is_the_passage(
    words: list[str], rng: random.Random
) -> None:
    around = [[rng.choice("uvwxyz") for _ in range(rng.randrange(8))] for _ in range(2)]
    text = " ".join([*around[0], *words, *around[1]])
    (row,) = nd.decontaminate([text.upper()], [" ".join(words)]).to_pylist()
    assert row["share"] == 1.0
    assert row["run"] == len(words)
    assert row["text"] == " ".join(words).upper()


def test_a_run_ends_at_a_word_that_no_feature_holds() -> None:
    (row,) = nd.decontaminate(["a b c d x e f g"], ["a b c d e f g h"], 0.5).to_pylist()
    assert (row["run"], row["share"]) == (4, 0.5)


def test_a_run_that_is_shorter_than_a_feature_is_the_passage() -> None:
    (row,) = nd.decontaminate(["z a b x y"], ["a b c"], None, 2).to_pylist()
    assert (row["run"], row["share"], row["text"]) == (2, 0.0, "a b")


def test_a_character_may_be_four_words() -> None:
    (row,) = nd.decontaminate(["x" + " \ufdfa" * 40], [" \ufdfa" * 30]).to_pylist()
    assert (row["run"], row["share"]) == (120, 1.0)


@settings(max_examples=examples(300, 60))
@given(texts() | normalisation_texts())
@example("e\u0301a\u00bd\u0301 \u1100\u1161\u11a8")
def test_each_word_stands_where_it_is_said_to(text: str) -> None:
    data = naive.without_surrogates(text).encode()
    begins, ends, *_ = placed_words(np.frombuffer(data, np.uint8), words_cut(), 3)
    words = naive.tokens(text, naive.Recipe())
    assert len(begins) == len(words)
    assert (np.diff(begins) >= 0).all()
    for begin, end, word in zip(begins.tolist(), ends.tolist(), words, strict=True):
        around = naive.tokens(data[begin:end].decode(), naive.Recipe())
        assert word in around, "a character may hold several words"
        assert begin < end


@settings(max_examples=examples(200, 40))
@given(st.lists(normalisation_texts() | st.text("ab_ .", max_size=90), max_size=5), st.data())
def test_words_stand_in_the_same_places_behind_any_ascii(
    parts: list[str], data: st.DataObject
) -> None:
    before = data.draw(st.sampled_from([". ", ".. word_1 ", "a" * 70 + " "])) * data.draw(
        st.integers(0, 70)
    )
    text = naive.without_surrogates("x" + " ".join(parts)).encode()
    alone = placed_words(np.frombuffer(text, np.uint8), words_cut(), 3)
    behind = placed_words(np.frombuffer(before.encode() + text, np.uint8), words_cut(), 3)
    words = re.compile(r"\w+", re.ASCII)
    spans = [match.span() for match in words.finditer(before)]
    result = list(zip(behind[0].tolist(), behind[1].tolist(), strict=True))
    assert result[: len(spans)] == spans
    places = [[each + len(before) for each in ends.tolist()] for ends in alone[:2]]
    assert result[len(spans) :] == list(zip(*places, strict=True))
    assert behind[2][len(spans) :].tolist() == alone[2].tolist()


def test_a_character_that_combines_changes_no_place_but_that_of_its_word() -> None:
    text = "one two e\u0301te\u0301 and a\u0308o\u0308 end"
    data = np.frombuffer(text.encode(), np.uint8)
    begins, ends, *_ = placed_words(data, words_cut(), 3)
    lengths = [len(word.encode()) for word in text.split()]
    assert (ends - begins).tolist() == lengths
    assert begins.tolist() == [sum(lengths[:at]) + at for at in range(len(lengths))]


@settings(max_examples=examples(300, 60))
@given(st.lists(st.booleans(), max_size=24))
def test_the_segments_are_the_maximal_ones(covered: list[bool]) -> None:
    begins, ends, scores = maximal_segments(np.array(covered, np.bool_))
    spans = list(zip(begins.tolist(), ends.tolist(), strict=True))
    assert spans == naive.segments(covered)
    assert scores.tolist() == [2 * sum(covered[a:b]) - (b - a) for a, b in spans]


def test_any_number_of_threads_and_any_batches_give_the_same() -> None:
    rng = random.Random(1)
    words = [f"w{number}" for number in range(60)]
    documents = [" ".join(rng.choices(words, k=300)) for _ in range(700)]
    questions = [" ".join(documents[at].split()[30:45]) for at in range(0, 700, 7)]
    one = nd.decontaminate(documents, questions, workers=1)
    assert nd.decontaminate(documents, questions, workers=4) == one
    assert len(one) >= len(questions)


@pytest.mark.parametrize(
    ("rule", "words", "run"),
    [("gpt-3", 20, 13), ("gpt-3", 12, 12), ("lm-eval", 20, 13), ("olmo", 15, 8), ("llama", 16, 8)],
)
def test_a_published_rule_needs_its_number_of_words(rule: str, words: int, run: int) -> None:
    question = [f"w{at}" for at in range(words)]
    for length, count in ((run - 1, 0), (run, 1)):
        assert (
            len(nd.decontaminate([" ".join(question[:length])], [" ".join(question)], rule=rule))
            == count
        )


def test_findings_come_by_question_whatever_found_them() -> None:
    long = [f"w{at}" for at in range(20)]
    questions = [" ".join(long), "a b c d"]  # by a run alone, by share alone
    table = nd.decontaminate([" ".join([*long[:6], "a b c e"])], questions, share=0.5, run=6)
    assert table["question"].to_pylist() == [0, 1]
    assert table["rule"].to_pylist() == ["run", "share"]


def test_a_run_of_two_words_stands_since_it_has_no_feature_that_is_common() -> None:
    questions = lay_out(["a b c d e", "x y z"], LeakRule(run=2))
    search = Search(questions, 1, counts_documents=True)
    findings = search.add(pa.array(["w a b w", "x y z", "x y z"], pa.large_string()))
    assert leaks(findings, questions, search.having, 1.0).tolist() == [True, False, False]


def test_what_stands_around_a_passage_and_the_parts_of_a_question_lose_nothing() -> None:
    questions = lay_out(["so it is: one two three four five or not"], LeakRule(run=5))
    texts_ = ["nothing", "Before this. One two three four five! After it."]
    (finding,) = Search(questions, 1).add(pa.array(texts_, pa.large_string()))
    assert finding.before + finding.text + finding.after == texts_[1]
    question = "so it is: one two three four five or not"
    parts = shared_parts(question, finding, questions)
    assert "".join(part for _, part in parts) == question
    assert [part for is_shared, part in parts if is_shared] == ["one two three four five"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_passages_are_code_points_of_the_text_as_it_was_read(form: str) -> None:
    text = unicodedata.normalize(form, "Ön söz: çok güzel bir gün 中文字 ve sonra")
    (row,) = nd.decontaminate([text], ["ÇOK güzel bir gün 中文"]).to_pylist()
    assert row["text"] == text[row["start"] : row["end"]]
    assert unicodedata.normalize("NFC", row["text"]) == "çok güzel bir gün 中文"


@pytest.mark.parametrize(
    ("share", "run", "message"),
    [
        (0, None, "share is 0"),
        (1.5, None, "share is 1.5"),
        (None, 1, "run is 1"),
        (None, 1 << 31, "run is 2147483648"),
        (None, 1 << 64, "run is 1"),
    ],
)
def test_rules_that_cannot_be_are_refused(share: float, run: int, message: str) -> None:
    with pytest.raises(nd.UsageError, match=message):
        nd.decontaminate(["a b c"], ["a b c"], share, run)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "gpt4"}, "rule is 'gpt4': use gpt-3, llama, olmo, lm-eval"),
        ({"rule": "gpt-3", "run": 8}, "the rule gpt-3 decides it: leave out run"),
        ({"rule": "olmo", "share": 0.8}, "the rule olmo decides it: leave out share"),
        ({"rule": "llama", "share": 2.0}, "share is 2.0"),
    ],
)
def test_what_a_published_rule_decides_is_not_named(options: Any, message: str) -> None:
    with pytest.raises(nd.UsageError, match=message):
        nd.decontaminate(["a b c"], ["a b c"], **options)
