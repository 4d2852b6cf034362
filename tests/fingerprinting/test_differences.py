"""A word diff tells both texts in full, and no shorter one than it could."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import UsageError
from neardup.fingerprinting.explanation.differences import MOST_EDITS, WordDiff, word_diff
from strategies import texts

words = st.lists(st.sampled_from(["to", "be", "or", "not", "ἀλλά", "京", "。"]), max_size=12)
sentences = st.tuples(words, st.sampled_from([" ", "\n", "  "])).map(lambda x: x[1].join(x[0]))


def without(diff: WordDiff, kind: str) -> str:
    return "".join(run.text for run in diff.runs if run.kind != kind)


def common(one: list[str], other: list[str]) -> int:
    """Length of a longest common subsequence, by the table of the textbooks."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = row
        row = [0]
        for at, each in enumerate(other):
            row.append(before[at] + 1 if word == each else max(before[at + 1], row[at]))
    return row[-1]


@given(sentences | texts(), sentences | texts())
def test_the_runs_tell_both_texts(first: str, second: str) -> None:
    diff = word_diff(first, second)
    assert without(diff, "added") == first
    assert "".join(without(diff, "removed").split()) == "".join(second.split())
    assert all(x.kind != y.kind for x, y in itertools.pairwise(diff.runs))
    assert all(run.text for run in diff.runs)
    assert diff.cut == (0, 0)


few = st.lists(st.sampled_from("ab"), max_size=10)


@given(few, few, few)
def test_without_words_to_anchor_it_is_a_shortest_one(
    one: list[str], other: list[str], end: list[str]
) -> None:
    """Repeats leave no word and no run of three that occurs once: all is left to Myers."""
    one, other = ["x", *one * 3, "y"] * 2, ["z", *other * 3, *end * 2] * 2
    diff = word_diff(" ".join(one), " ".join(other))
    kept = sum(len(run.text.split()) for run in diff.runs if run.kind == "equal")
    assert kept == common(one, other)


def test_equal_texts_are_one_run_and_empty_ones_none() -> None:
    assert [run.kind for run in word_diff("a b c", "a  b\nc").runs] == ["equal"]
    assert word_diff("", "").runs == ()
    assert [(run.kind, run.text) for run in word_diff("", "a b").runs] == [("added", "a b")]
    assert [(run.kind, run.text) for run in word_diff(" \n", "a").runs] == [
        ("removed", " \n"), ("added", "a"),
    ]  # fmt: skip


def test_characters_of_scripts_without_spaces_are_words() -> None:
    diff = word_diff("我来到北京", "我到了北京")
    assert [(run.kind, run.text) for run in diff.runs] == [
        ("equal", "我"), ("removed", "来"), ("equal", "到"), ("added", "了"), ("equal", "北京"),
    ]  # fmt: skip


def test_moved_words_are_removed_here_and_added_there() -> None:
    diff = word_diff("x a b c d", "a b c d x")
    assert [run.kind for run in diff.runs] == ["removed", "equal", "added"]


def test_what_lies_beyond_the_limit_is_counted() -> None:
    diff = word_diff("a b c d", "a b x", most=2)
    assert diff.cut == (2, 1)
    assert [(run.kind, run.text) for run in diff.runs] == [("equal", "a b")]


def test_long_stretches_without_anything_in_common_are_given_whole_and_soon() -> None:
    one = " ".join(["a b"] * 10 * MOST_EDITS)
    other = " ".join(["c d"] * 10 * MOST_EDITS)
    begun = time.process_time()
    assert [run.kind for run in word_diff(one, other).runs] == ["removed", "added"]
    assert time.process_time() - begun < 5


def test_few_changes_in_a_long_text_of_few_words_are_found() -> None:
    one = [str(n * n % 97) for n in range(5000)]
    other = [*one[:1000], "new", *one[1000:4000], *one[4001:]]
    diff = word_diff(" ".join(one), " ".join(other))
    assert [run.kind for run in diff.runs] == ["equal", "added", "equal", "removed", "equal"]


def test_brief_keeps_what_lies_beside_a_difference() -> None:
    middle = " ".join(f"w{i}" for i in range(30))
    diff = word_diff(f"a {middle} b", f"A {middle} B")
    text = "".join(run.text for run in diff.brief(2) if run.kind == "equal")
    assert text == " w0 w1 … w28 w29"
    assert diff.brief(40) == diff.runs
    assert word_diff("a b c d", "a b  c d").brief(2)[0].text == "a b … "
    assert word_diff(middle, "").brief(2, most=4)[0].text == "w0 w1 … w28 w29"


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="text is None"):
        word_diff("a", None)  # type: ignore[arg-type]
