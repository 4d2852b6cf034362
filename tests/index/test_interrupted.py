"""Interrupts between two steps of a call: the index goes on as if the call had not begun, or ended.

Python raises KeyboardInterrupt after the call during which the signal came, before its result is
stored.
"""

from __future__ import annotations

import contextlib
import gc
import random
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import neardup as nd
from neardup.index.durable import folder_store, log_store
from neardup.index.durable.environment import Environment
from neardup.index.durable.merge_jobs import Job
from neardup.kernels.index import offers, tail
from stories import KINDS, Kind, durable, end, quiet, small_segments
from suite import examples

if TYPE_CHECKING:
    from collections.abc import Callable


def interrupted_after(
    patch: pytest.MonkeyPatch, owner: Any, name: str, work: Callable[[], Any]
) -> None:
    """Do some work, which an interrupt ends after the next call of a function."""
    function = getattr(owner, name)

    def cut(*given: Any) -> None:
        function(*given)
        raise KeyboardInterrupt

    with patch.context() as context, contextlib.suppress(KeyboardInterrupt):
        context.setattr(owner, name, cut)
        work()
        pytest.fail(f"{name} was not called")


CHANGES: dict[str, tuple[Any, str, Callable[[nd.Index, int], Any]]] = {
    "add": (tail, "append_set", lambda index, row: index.add(row, [7, row, row + 1])),
    "add many": (
        tail, "append_sets", lambda index, row: index.add([row, row + 1], [[7, row], [7, row + 1]]),
    ),
    "offer": (
        offers, "offer_sets", lambda index, row: index.add_new([row, row + 1], [[7, row], [7, 99]]),
    ),
    "more room": (
        tail, "tail_sets", lambda index, row: index.add(row, [7, *range(row, row + 5000)]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_an_addition_that_is_cut_short_leaves_no_trace_in_the_tail(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chains of features led to themselves, so that a query never ended."""
    index = nd.Index(similarity=0.5)
    index.add([1, 2], [[7, 8, 9], [7, 10, 11]])
    owner, step, work = CHANGES[change]
    interrupted_after(monkeypatch, owner, step, lambda: work(index, 1000))
    assert len(index) == 2
    index.add(3, [7, 20, 21])
    index.add(9, [*range(100, 5000)])
    index.add([4, 5], [[7, 30, 31], [8, 9, 40]])
    index.add_new([6, 7], [[7, 50, 51], [50, 51, 52]])
    assert [hit[0] for hit in index.query([7, 8, 9], limit=9)] == [1, 5]
    assert [hit[0] for hit in index.query([50, 51])] == [6, 7][: len(index) - 6]
    for row, features in ((2, [7, 10, 11]), (3, [7, 20, 21]), (4, [7, 30, 31])):
        assert [hit[0] for hit in index.query(features)] == [row]


def test_merges_go_on_after_a_compaction_that_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    small_segments(monkeypatch)
    index = durable(distance=0)
    folder = index._folder  # noqa: SLF001
    work, gate = Job.work, threading.Event()

    def held(job: Job) -> None:
        assert gate.wait(60)
        work(job)

    with monkeypatch.context() as patch:
        patch.setattr(Job, "work", held)
        index.add(range(30), range(30))
        index.commit()
        index.add(range(30, 50), range(30, 50))
        index.commit()
        assert folder._flush is not None  # noqa: SLF001

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(Job, "wait", stop)
        for call in (index.compact, index.close):
            with pytest.raises(KeyboardInterrupt):
                call()
        gate.set()
    for first in range(100, 1000, 30):
        index.add(range(first, first + 30), range(first, first + 30))
        index.commit()
        quiet(index)
    assert len(index.stats()["segments"]) < 10
    end(index)


@pytest.mark.parametrize("step", [(Environment, "of"), (log_store._User, "change")])  # noqa: SLF001
def test_what_is_committed_after_a_compaction_that_is_cut_short_stays(
    step: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new log has its name; the writer has not moved on to it yet, or not left the old one."""
    index = durable(distance=0)
    index.add([1, 2], [1, 2])
    index.commit()
    folder = index._folder  # noqa: SLF001
    interrupted_after(monkeypatch, *step, folder.log.reclaim)
    with index.snapshot() as seen:
        assert len(seen) == 2
    index.add(3, 3)
    index.commit()
    with nd.DurableIndex.open(index.path, readonly=True) as reader:
        assert [identity for identity, _ in reader] == [1, 2, 3]
        index.add(4, 4)
        index.commit()
        assert 4 in reader
    assert index.check() == []
    end(index)


def add(index: Any, ids: range, value: int) -> None:
    """Documents that no other is near, each with its payload."""
    values = [value + i for i in ids]
    documents = [[each, 1 << 40] for each in values] if index.by == "similarity" else values
    index.add(ids, documents, payloads=values)


def transaction(index: Any, *, is_taken_back: bool) -> None:
    """It adds, replaces and removes."""
    with contextlib.suppress(ZeroDivisionError), index.transaction():
        add(index, range(40, 75), 5000)
        index.remove(range(10, 30))
        if is_taken_back:
            raise ZeroDivisionError


CALLS: dict[str, Callable[[Any], Any]] = {
    "add one": lambda index: add(index, range(50, 51), 4000),
    "add some": lambda index: add(index, range(55, 62), 4000),
    "add many": lambda index: add(index, range(30, 110), 4000),
    "remove": lambda index: index.remove(range(10, 50)),
    "touch": lambda index: index.touch(range(10, 30)),
    "expire": lambda index: index.expire(time.time() + 9),
    "commit": lambda index: index.commit(),
    "transaction": lambda index: transaction(index, is_taken_back=False),
    "a transaction that is taken back": lambda index: transaction(index, is_taken_back=True),
    "compact": lambda index: index.compact(),
    "query": lambda index: [
        index.query_batch(index.stored(range(10, 60))),
        index.payloads([3, 64]),
    ],
}


class Moment:
    """An interrupt at the end of the n-th call within the index, and how many there were."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        if event in {"return", "c_return"} and "/neardup/index/" in frame.f_code.co_filename:
            self.count += 1
            if self.count == self.at:
                signal.raise_signal(signal.SIGINT)

    def during(self, work: Callable[[], Any]) -> int:
        gc.disable()  # what it calls may raise nothing
        sys.setprofile(self)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
            gc.enable()
        return self.count


def state(index: Any) -> dict[Any, int]:
    """The documents, each of which is found and has its payload."""
    pairs = [(i, int(x[0]) if index.by == "similarity" else x) for i, x in index]
    contents = dict(pairs)
    assert len(contents) == len(pairs) == len(index)
    assert index.payloads([*contents]) == [*contents.values()]
    hits = index.query_batch(index.stored([*contents])).to_pydict()
    assert sorted(zip(hits["row"], hits["id"], strict=True)) == [*enumerate(contents)]
    return contents


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("options", [{"distance": 0}, {"similarity": 1.0}], ids=str)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_call_that_is_cut_short_anywhere_is_done_or_not_begun(
    kind: Kind, options: dict[str, Any], call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_segments(monkeypatch)
    for name in ("TAIL_ROWS", "LEVEL_ROWS"):
        monkeypatch.setattr(f"neardup.index.set_segments.{name}", 12)
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "similarity", 40)

    def begun() -> Any:
        index = kind.make(**options)
        for ids in (range(60), range(60, 65), range(5, 9)):
            add(index, ids, 1000)
            index.commit()
        add(index, range(65, 70), 2000)
        index.remove([2, 66])
        return index

    index = begun()
    before = state(index)
    count = Moment(0).during(lambda: CALLS[call](index))
    states = [before, state(index)]
    kind.end(index)
    random_moments = random.Random(call).sample(range(1, count + 1), min(count, examples(4, 2)))
    for at in random_moments:
        index = begun()
        Moment(at).during(lambda: CALLS[call](index))  # noqa: B023
        after = state(index)
        assert after in states, (at, count)
        add(index, range(200, 220), 9000)
        index.commit()
        index = kind.reopened(index)
        assert state(index) == after | {i: 9000 + i for i in range(200, 220)}, (at, count)
        assert index.check() == []
        kind.end(index)
