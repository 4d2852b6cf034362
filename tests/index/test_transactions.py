"""What is committed and what is not: transactions, questions about commits, followers."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

import neardup as nd
from neardup.errors import FileError, UsageError
from neardup.index.durable import environment
from stories import durable, reopened

RECIPE = nd.Recipe(ngram=1)
MAKERS: dict[str, Any] = {
    "memory, distance": lambda: nd.Index(distance=2, recipe=RECIPE),
    "memory, similarity": lambda: nd.Index(similarity=0.6, recipe=RECIPE),
    "durable, distance": lambda: durable(distance=2, recipe=RECIPE, store="text"),
    "durable, similarity": lambda: durable(similarity=0.6, recipe=RECIPE),
}
ONE, TWO, THREE = "one two three four", "five six seven eight", "nine ten eleven twelve"


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Any:
    """Either kind of index, in memory or in a folder."""
    return MAKERS[request.param]


class StoppedError(Exception):
    """Raised in the body of a transaction."""


def stop() -> None:
    """Raise it."""
    raise StoppedError


def test_a_transaction_takes_back_its_own_rows_only(make: Any) -> None:
    index = make()
    index.add(["a", "b"], [ONE, TWO], payloads=[1, 2])
    before = index.snapshot()

    def fail() -> None:
        with index.transaction() as t:
            t.add_new(["c", "a", "d"], [THREE, "thirteen fourteen", TWO], payloads=[3, 4, 5])
            t.remove("b")
            assert [x[0] for x in index] == ["c", "a"]
            seen.append(index.snapshot())
            stop()

    seen: list[Any] = []
    with pytest.raises(StoppedError):
        fail()
    assert [x[0] for x in index] == ["a", "b"]
    assert (index.payloads(["a", "b"]), index.query(TWO)[0][0]) == ([1, 2], "b")
    index.add(["e", "f"], ["fifteen sixteen", "seventeen eighteen"], payloads=[6, None])
    for each, names in ((before, ["a", "b"]), (seen[0], ["c", "a"])):
        assert [x[0] for x in each] == names
    assert before.payloads(["a", "b"]) == [1, 2]
    assert index.payloads(["e", "f"]) == [6, None]
    for _ in range(3):
        index.remove("a")
        index.add("a", ONE, payloads=1)
    assert index.payloads(["a", "b"]) == [1, 2]
    if hasattr(index, "path"):
        seen[0].close()
        before.close()
        index = reopened(index)
        assert index.check() == []
        assert index.payloads(["b", "a", "e"]) == [2, 1, 6]


def test_a_transaction_is_on_disk_when_it_ends() -> None:
    index = durable(similarity=0.6, recipe=RECIPE)
    with index.transaction() as t:
        assert t.add_new(["a", "b", "c"], [ONE, ONE, TWO])["state"].to_pylist()[1] == "seen"
    assert index.uncommitted == 0
    reader = nd.DurableIndex.open(index.path, readonly=True)
    assert [x[0] for x in reader] == ["a", "c"]
    with pytest.raises(UsageError, match="open for reading"), reader.transaction():
        pass


def test_nothing_commits_in_the_body_of_a_transaction(make: Any) -> None:
    index = make()
    calls = ["compact", *(["commit", "rollback", "close"] if hasattr(index, "path") else [])]
    for call in calls:
        with pytest.raises(UsageError, match=f"{call} in a transaction"), index.transaction():
            getattr(index, call)()
    with pytest.raises(UsageError, match="transaction in a"), index.transaction() as t:
        t.transaction().__enter__()
    index.add("a", ONE)
    index.commit()
    assert "a" in index


def test_a_commit_that_fails_takes_the_transaction_back(monkeypatch: pytest.MonkeyPatch) -> None:
    index = durable(distance=2)
    index.add("a", 1)

    def fail() -> None:
        with index.transaction() as t:
            t.add_new(["b", "c"], [0xFF << 20, 0xFF << 40])
            monkeypatch.setattr(environment.Environment, "write", refuse)

    def refuse(*_: Any) -> None:
        raise FileError("no space left")

    with pytest.raises(FileError, match="no space left"):
        fail()
    assert [x[0] for x in index] == ["a"]
    monkeypatch.undo()
    assert [x.state for x in index.offer_many(["b", "c"], [0xFF << 20, 0xFF << 40])] == [
        "new",
        "new",
    ]
    assert [x[0] for x in reopened(index)] == ["a", "b", "c"]


def test_what_is_answered_as_committed_is_on_disk(make: Any) -> None:
    index = make()
    index.add("a", ONE, payloads="x")
    index.commit()
    index.add("b", ONE)
    index.remove("a")
    names = ["a"] if hasattr(index, "path") else ["b"]
    assert [hit[0] for hit in index.query(ONE, committed=True)] == names
    assert index.query_batch([ONE], committed=True)["id"].to_pylist() == names
    assert [hit[0] for hit in index.query(ONE)] == ["b"]
    with index.snapshot(committed=True) as seen, index.snapshot() as all_of_it:
        assert [x[0] for x in seen] == names
        assert seen.payloads(names) == ["x" if names == ["a"] else None]
        assert [x[0] for x in all_of_it] == ["b"]
        assert [hit[0] for hit in all_of_it.query(ONE, committed=True)] == names
        index.commit()
        assert [x[0] for x in seen] == names
    assert [hit[0] for hit in index.query(ONE, committed=True)] == ["b"]


def test_a_reader_follows_when_it_is_told_to(make: Any) -> None:
    index = make()
    assert not index.refresh()
    if not hasattr(index, "path"):
        return
    reader = nd.DurableIndex.open(index.path, readonly=True)
    assert not reader.refresh()
    index.add("a", ONE)
    assert not reader.refresh()
    index.commit()
    assert reader.refresh()
    assert not reader.refresh()
    assert "a" in reader
    assert not index.refresh()


def test_removing_what_is_absent_is_an_error_unless_said(make: Any) -> None:
    index = make()
    assert index.remove(["a"], missing="ignore") == 0
    index.add(["a", "b"], [ONE, TWO])
    with pytest.raises(KeyError):
        index.remove(["a", "x"])
    assert index.remove(["a", "x", "a"], missing="ignore") == 1
    assert index.remove("a", missing="ignore") == 0
    assert index.remove(7, missing="ignore") == 0
    assert [x[0] for x in index] == ["b"]
    with pytest.raises(UsageError, match="missing is 'drop': use 'error' or 'ignore'"):
        index.remove("b", missing="drop")


def test_the_garbage_collector_may_end_a_snapshot_while_the_folder_is_read() -> None:
    index = durable(distance=2)
    index.add("a", 1)
    index.commit()
    cycle: list[Any] = [index.snapshot()]
    cycle.append(cycle)
    del cycle
    look = index._folder.log.look  # noqa: SLF001
    reads = threading.Thread(target=look, args=(lambda log: log.read(lambda _: gc.collect()),))
    reads.daemon = True  # it would wait for itself for ever
    reads.start()
    reads.join(20)
    assert not reads.is_alive()
