"""What is committed and what is not: transactions, questions about commits, followers."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

import neardup as nd
from neardup.errors import FileError, UsageError
from neardup.index import memory_store
from neardup.index.distance_kind import ByDistance
from neardup.index.durable import environment, folder_store
from neardup.index.versions import Version
from stories import durable, quiet, reopened, small_segments

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


def test_what_transactions_in_memory_took_back_is_forgotten() -> None:
    index = nd.Index(distance=0)
    index.add(range(10), range(10), payloads=["kept"] * 10)

    def fail() -> None:
        with index.transaction() as t:
            t.add(range(100, 200), range(100, 200), payloads=["no" * 1000] * 100)
            t.remove([*range(10), *range(100, 150)])
            stop()

    for _ in range(5):
        with pytest.raises(StoppedError):
            fail()
    assert index.payloads(range(10)) == ["kept"] * 10
    index.remove([0, 1])
    assert index.payloads(range(2, 10)) == ["kept"] * 8
    assert index.stats()["content_bytes"] < 1000


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


def test_a_transaction_is_taken_back_where_the_background_is_behind_and_the_disk_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It failed after its rows were in the log, so that they were stored in spite of the error."""
    small_segments(monkeypatch)
    monkeypatch.setattr(folder_store, "MOST_FLUSHES", 3)
    index = durable(distance=0)

    def full(*_: Any) -> None:
        raise FileError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(ByDistance, "write", full)
        for first in range(0, 120, 30):
            index.add(range(first, first + 30), range(first, first + 30))
            index.commit()
            quiet(index)
        assert "no space left" in index.stats()["last_background_error"]
        with pytest.raises(FileError, match="no space left"), index.transaction() as t:
            t.add(1000, 1000)
        assert 1000 not in index
        assert index.uncommitted == 0
        index.add(1001, 1001)
        with pytest.raises(FileError, match="no space left"):
            index.commit()
        assert (index.uncommitted, 1001 in index) == (1, True)
    index.commit()
    stats = quiet(index)
    assert (stats["last_background_error"], stats["log_rows"]) == (None, 0)
    for first in range(2000, 2090, 30):
        index.add(range(first, first + 30), range(first, first + 30))
        index.commit()
    assert quiet(index)["log_rows"] < 60
    assert [x[0] for x in reopened(index)] == [*range(120), 1001, *range(2000, 2090)]


def test_rows_that_are_added_as_a_transaction_is_taken_back_replace_those_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread looks ids up in the moment in which the rollback is half done."""
    index = nd.Index(distance=0)
    index.add(range(5), range(5))
    undo, look_up = memory_store.replace, Version.numbers_of
    looked_up = threading.Event()
    adds = threading.Thread(target=lambda: index.add(range(600), range(1000, 1600)))

    def half(*given: Any, **changes: Any) -> Any:
        adds.start()
        looked_up.wait(20)
        return undo(*given, **changes)

    def numbers_of(*given: Any) -> Any:
        numbers = look_up(*given)
        looked_up.set()
        return numbers

    monkeypatch.setattr(Version, "numbers_of", numbers_of)
    monkeypatch.setattr(memory_store, "replace", half)

    def fail() -> None:
        with index.transaction() as t:
            t.add(range(5), range(100, 105))
            stop()

    with pytest.raises(StoppedError):
        fail()
    adds.join()
    assert list(index) == [(row, 1000 + row) for row in range(600)]


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
