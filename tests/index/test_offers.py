"""What a crawler asks with: new or near, blank, itself; many at once; seen again, and when."""

from __future__ import annotations

import tempfile
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import neardup as nd
from neardup.errors import DataError, UsageError
from stories import FOLDERS, durable, offered, quiet, reopened, small_segments
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


def model(kind: str) -> tuple[Any, Any, Any]:
    """The oracle of a kind, what is near, and a text's content."""
    if "similarity" in kind:
        return naive.SimilarIndex("jaccard"), 0.6, lambda text: set(text.split())
    return naive.Index(), 4, lambda text: nd.fingerprint(text, RECIPE)


@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=examples(60))
@given(
    batches=st.lists(texts_of_a_batch, max_size=3),
    ids=st.lists(st.integers(0, 5), min_size=12, max_size=12),
    stored=st.sampled_from(["replace", "keep", "error"]),
)
def test_offers_follow_the_rule_one_by_one_and_many_at_once(
    kind: str, batches: list[list[str]], ids: list[int], stored: Any
) -> None:
    one, many, (oracle, limit, content) = MAKERS[kind](), MAKERS[kind](), model(kind)
    for texts in batches:
        names = [f"d{i}" for i in ids[: len(texts)]]
        want = []
        for name, text in zip(names, texts, strict=True):
            want.append(naive.offer(oracle, name, content(text), limit, stored=stored))
            if want[-1][0] == "error":
                with pytest.raises(DataError, match=f"'{name}' is stored with other content"):
                    one.offer(name, text, stored=stored)
                break
            answer = one.offer(name, text, stored=stored)
            assert (answer.state, answer.near) == want[-1]
            assert answer.is_new == (answer.state in {"new", "replaced", "stored"})
            assert answer.is_empty == (answer.state == "empty")
        if want and want[-1][0] == "error":
            with pytest.raises(DataError, match="is stored with other content"):
                many.add_new(names, texts, stored=stored)
        else:
            table = many.add_new(names, texts, stored=stored)
            assert table.column_names[3] == ("similarity" if "similarity" in kind else "distance")
            assert offered(table) == want
        if hasattr(one, "path"):
            many = reopened(many)
    assert [x[0] for x in one] == [x[0] for x in many] == list(oracle.stored)


def test_an_answer_tells_new_from_blank_from_near(make: Any) -> None:
    index = make()
    first = index.offer("a", "one two three four")
    assert (first.is_new, first.is_empty, first.near) == (True, False, None)
    blank = index.offer("b", "  !")
    assert (blank.is_new, blank.is_empty, blank.near) == (False, True, None)
    seen = index.offer("c", "one two three four")
    assert (seen.is_new, seen.is_empty, seen.near[0]) == (False, False, "a")
    assert (len(index), index.add_if_new("b", "")) == (1, None)


def test_a_page_that_is_crawled_again_is_no_duplicate_of_itself(make: Any) -> None:
    index = make()
    first, second = "one two three four", "five six seven eight"
    index.add(["a", "b"], [first, second], payloads=["x", "y"])
    before = index.times(["a"]).tolist()
    assert index.add_if_new("a", first, payload="z") is None
    assert index.offer("a", first, stored="error").state == "stored"
    assert ([x[0] for x in index], index.payload("a")) == (["a", "b"], "x")
    assert index.times(["a"]).tolist() == before
    assert index.add_if_new("a", second)[0] == "b"
    assert index.query(first)[0][0] == "a"
    assert index.offer("a", "nine ten eleven twelve").state == "replaced"
    assert [x[0] for x in index] == ["b", "a"]
    assert index.payload("a") is None


def test_a_stored_id_with_an_equal_of_another_id_is_stored_all_the_same(make: Any) -> None:
    index = make()
    index.add(["a", "b"], ["one two three four"] * 2)
    assert index.offer("b", "one two three four").state == "stored"
    assert index.offer("c", "one two three four").near[0] == "a"


def test_an_empty_document_leaves_what_its_id_has(make: Any) -> None:
    index = make()
    index.add("a", "one two three four")
    for stored in ("replace", "keep", "error"):
        assert index.offer("a", "  !", stored=stored).state == "empty"
        assert index.add_new(["a"], [""], stored=stored)["state"].to_pylist() == ["empty"]
    assert index.add("a", "") == index.add(["a"], [None]) == 0
    assert index.query("one two three four")[0][0] == "a"


def test_what_is_touched_does_not_expire(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("neardup.index.row_writer.time", SimpleNamespace(time=lambda: now))
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
        index.add_new([1], [""])
    with pytest.raises(UsageError, match="ids of kind str, not int"):
        index.offer(1, "four five")
    for call in (index.offer, index.add_if_new, index.add_new):
        with pytest.raises(UsageError, match="stored is 'drop': use 'replace', 'keep' or 'error'"):
            call(*((["b"], ["four"]) if call == index.add_new else ("b", "four")), stored="drop")
    with pytest.raises(DataError, match="'a' is stored with other content: choose 'replace'"):
        index.add_new(["b", "a"], ["five six", "seven eight"], stored="error")
    assert [x[0] for x in index] == ["a", "b"]


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


def test_each_run_of_the_background_counts_as_a_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    small_segments(monkeypatch)
    index = durable()
    for first in (0, 20):
        index.add(range(first, first + 20), range(20))
        index.commit()
    assert quiet(index)["counters"]["merges"] == 1
    assert index.stats()["counters"]["merge_seconds"] > 0


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
        html = index._repr_html_()
        assert "<tr><th>documents</th><td>1</td></tr>" in html
        assert "&lt;" in html
        assert "<b>" not in html


def test_the_next_id_is_above_every_number(make: Any) -> None:
    index = make()
    assert index.next_id == 0
    index.add([1000, 3], ["one two three four", "five six seven eight"])
    assert index.next_id == 1001
    index.remove([1000])
    assert index.next_id == 1001
