"""What a crawler asks with: new or near, blank, itself; many at once; seen again, and when."""

from __future__ import annotations

import tempfile
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import UsageError
from stories import FOLDERS
from suite import examples

RECIPE = nd.Recipe(ngram=1)
MAKERS = {
    "memory, distance": lambda: nd.Index(distance=4, recipe=RECIPE),
    "memory, similarity": lambda: nd.Index(similarity=0.6, recipe=RECIPE),
    "durable, distance": lambda: nd.DurableIndex.open(
        tempfile.mkdtemp(dir=FOLDERS), distance=4, recipe=RECIPE, store="text"
    ),
    "durable, similarity": lambda: nd.DurableIndex.open(
        tempfile.mkdtemp(dir=FOLDERS), similarity=0.6, recipe=RECIPE
    ),
}
texts_of_a_batch = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "d", "é"]), max_size=6).map(" ".join), max_size=12
)


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Any:
    """Either kind of index, in memory or in a folder."""
    return MAKERS[request.param]


@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=examples(30))
@given(
    batches=st.lists(texts_of_a_batch, max_size=3),
    ids=st.lists(st.integers(0, 9), min_size=12, max_size=12),
    ignore_self=st.booleans(),
)
def test_many_offered_are_one_after_the_other(
    kind: str, batches: list[list[str]], ids: list[int], ignore_self: bool
) -> None:
    one, many = MAKERS[kind](), MAKERS[kind]()
    for texts in batches:
        names = [f"d{i}" for i in ids[: len(texts)]]
        answers = [
            one.offer(name, text, ignore_self=ignore_self)
            for name, text in zip(names, texts, strict=True)
        ]
        table = many.add_new(names, texts, ignore_self=ignore_self)
        closeness = table.column_names[3]
        assert closeness == ("similarity" if "similarity" in kind else "distance")
        assert table.to_pylist() == [
            {
                "row": row,
                "is_new": answer.is_new,
                "id": answer.near and answer.near[0],
                closeness: answer.near and answer.near[1],
            }
            for row, answer in enumerate(answers)
        ]
    assert [x[0] for x in one] == [x[0] for x in many]


def test_an_answer_tells_new_from_blank_from_near(make: Any) -> None:
    index = make()
    first = index.offer("a", "one two three four")
    assert (first.is_new, first.is_empty, first.near) == (True, False, None)
    blank = index.offer("b", "  !")
    assert (blank.is_new, blank.is_empty, blank.near) == (False, True, None)
    seen = index.offer("c", "one two three four")
    assert (seen.is_new, seen.is_empty, seen.near[0]) == (False, False, "a")
    assert (len(index), index.add_if_new("b", "")) == (1, None)


def test_a_page_that_is_like_its_own_older_version_is_not_near(make: Any) -> None:
    index = make()
    index.add(["a", "b"], ["one two three four", "five six seven eight"])
    assert index.add_if_new("a", "one two three four")[0] == "a"
    assert index.add_if_new("a", "one two three four", ignore_self=True) is None
    assert len(index) == 2
    assert [x[0] for x in index] == ["b", "a"]
    index.add("c", "one two three four")
    assert index.add_if_new("a", "one two three four", ignore_self=True)[0] == "c"


def test_what_is_touched_does_not_expire(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("neardup.index.base.writing.time", SimpleNamespace(time=lambda: now))
    index = make()
    index.add(["a", "b", "c"], ["one two three", "four five six", "seven eight nine"])
    now = 2000.0
    assert index.touch("b") == 1
    assert index.times(["a", "b"]).tolist() == [1000.0, 2000.0]
    assert index.query("four five six")[0][0] == "b"
    with pytest.raises(KeyError):
        index.touch(["a", "x"])
    assert index.expire(1500.0) == 2
    assert [x[0] for x in index] == ["b"]
    if hasattr(index, "path"):
        if index.store == "text":
            assert index.contents(["b"]) == ["four five six"]
        index.close()
        with nd.DurableIndex.open(index.path) as again:
            assert again.check() == []
            assert again.times(["b"]).tolist() == [2000.0]
            if again.store == "text":
                assert again.contents(["b"]) == ["four five six"]
            assert again.touch("b") == 1
            assert again.store != "text" or again.content("b") == "four five six"


def test_many_are_touched_at_once(make: Any) -> None:
    index = make()
    index.add(range(2000), [f"word {i} and {i * i} of {i + 7}" for i in range(2000)])
    before = dict(index)
    assert index.touch(np.arange(0, 2000, 2)) == 1000
    after = dict(index)
    assert list(after) == [*range(1, 2000, 2), *range(0, 2000, 2)]
    assert all(np.array_equal(before[i], after[i]) for i in before)


def test_bad_offers_are_one_line(make: Any) -> None:
    index = make()
    index.add("a", "one two three")
    with pytest.raises(UsageError, match="2 ids for 1"):
        index.add_new(["b", "c"], ["one"])
    with pytest.raises(UsageError, match="ids of kind str, not int"):
        index.add_new([1], ["four five"])
    with pytest.raises(UsageError, match="ids of kind str, not int"):
        index.offer(1, "four five")
    assert len(index) == 1


def test_contents_come_beside_fingerprints_of_ones_own() -> None:
    index = nd.DurableIndex.open(tempfile.mkdtemp(dir=FOLDERS), distance=1, store="text")
    table = index.add_new([1, 2, 3], [7, 7 << 20, 6], ["x", "y", "z"])
    assert table["is_new"].to_pylist() == [True, True, False]
    assert index.contents([1, 2]) == ["x", "y"]
    with pytest.raises(UsageError, match="with a fingerprint"):
        index.add_new([4], [9])


def test_counters_tell_what_was_done(make: Any) -> None:
    index = make()
    index.add(["a", "b"], ["one two three four", "five six seven"])
    index.query("one two three four")
    index.query_batch(["five six seven", "eight nine"])
    index.offer("c", "one two three four")
    index.remove("a")
    index.commit()
    counters = index.stats()["counters"]
    expected = {"queries": 4, "hits": 3, "added": 2, "removed": 1}
    assert {name: counters[name] for name in expected} == expected
    assert counters["commits"] == int(hasattr(index, "path"))
    assert counters["longest_commit"] <= counters["commit_seconds"]


def test_warming_up_changes_nothing(make: Any) -> None:
    index = make()
    index.add(["a", "b"], ["one two three four", "five six seven"])
    before = [x[0] for x in index]
    assert index.warm_up() > 0
    assert ([x[0] for x in index], index.added, index.id_kind) == (before, 2, "str")


def test_commits_are_told_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    index = MAKERS["durable, distance"]()
    with caplog.at_level("DEBUG", logger="neardup"):
        index.add("a", "one two")
        index.commit()
    assert [record.name for record in caplog.records] == ["neardup"]
    assert "1 rows committed" in caplog.text


def test_a_notebook_sees_what_an_index_holds() -> None:
    similar = nd.Index(similarity=0.8)
    similar.add("<b>", [1])
    near = nd.Index(distance=3)
    near.add("<b>", 1)
    for index in (similar, near):
        shown = index._repr_html_()
        assert "<tr><th>documents</th><td>1</td></tr>" in shown
        assert "&lt;" in shown
        assert "<b>" not in shown
