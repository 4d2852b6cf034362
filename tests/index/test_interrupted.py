"""Interrupts between two steps of a call: the index goes on as if the call had not begun, or ended.

Python raises KeyboardInterrupt after the call during which the signal came, before its result is
stored.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

import neardup as nd
from neardup.index.durable import log_store
from neardup.index.durable.environment import Environment
from neardup.index.durable.merge_jobs import Job
from neardup.kernels.index import offers, tail
from stories import durable, end, quiet, small_segments

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
