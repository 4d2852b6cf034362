"""Jobs of the background that begin late, while everything else happens to the index.

A job works when a step lets it, or when something waits for it. After each step the folder has no
problem, a reader has what was committed, and no name of a file means another file than before.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import FileError
from neardup.index.durable import folder_store
from neardup.index.durable.merge_jobs import Job
from stories import KINDS as STORES
from stories import end, small_segments
from suite import examples

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS: dict[str, dict[str, Any]] = {"distance": {"distance": 0}, "similarity": {"similarity": 1.0}}
STEPS = [
    "add", "add many", "add very many", "offer", "remove", "expire", "commit", "rollback",
    "transaction", "let go", "compact", "backup", "reopen", "fail",
]  # fmt: skip
steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 99)), max_size=30)


class StoppedError(Exception):
    """Raised in the body of a transaction."""


class Jobs:
    """The jobs of the background, each of which waits for its gate."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.gates: dict[Job, threading.Event] = {}
        self.fails = False
        work, wait, abandon = Job.work, Job.wait, Job.abandon

        def gate(job: Job) -> threading.Event:
            return self.gates.setdefault(job, threading.Event())

        def late(job: Job) -> None:
            if threading.current_thread() is not threading.main_thread():
                assert gate(job).wait(60)
            work(job)

        def waited(job: Job, seconds: float | None = None) -> bool:
            if seconds is None:
                gate(job).set()
            return wait(job, seconds)

        def abandoned(job: Job) -> None:
            abandon(job)
            gate(job).set()

        patch.setattr(Job, "work", late)
        patch.setattr(Job, "wait", waited)
        patch.setattr(Job, "abandon", abandoned)

    def let_go(self) -> None:
        """Let those that wait work."""
        for each in list(self.gates.values()):
            each.set()


class Life:
    """An index, what it must hold, and what its reader must see."""

    def __init__(self, kind: str, patch: pytest.MonkeyPatch) -> None:
        small_segments(patch)
        for name in ("TAIL_ROWS", "LEVEL_ROWS"):
            patch.setattr(f"neardup.index.set_segments.{name}", 12)
        patch.setitem(folder_store.FLUSH_ROWS, "similarity", 40)
        for name, value in {"CLOSING_SECONDS": 0, "RETRY_SECONDS": 0, "MOST_FLUSHES": 4}.items():
            patch.setattr(folder_store, name, value)
        self.time = 100.0
        clock = SimpleNamespace(time=lambda: self.time)
        patch.setattr("neardup.index.row_writer.time", clock)
        self.jobs, self.options = Jobs(patch), KINDS[kind]
        self.is_similar = kind == "similarity"
        self.index = STORES["durable"].make(**self.options)
        self.reader = nd.DurableIndex.open(self.index.path, readonly=True)
        self.now = dict[int, tuple[int, float]]()
        self.committed = dict(self.now)
        self.files = dict[str, str]()
        self.step = 0
        owner = type(self.index._kind)  # noqa: SLF001
        write = owner.write

        def may_fail(*given: Any) -> None:
            if self.jobs.fails:
                self.jobs.fails = False
                raise FileError("no space left")
            write(*given)

        patch.setattr(owner, "write", may_fail)

    def document(self, value: int) -> Any:
        return [value, 1 << 40] if self.is_similar else value

    def put(self, ids: list[int], call: Callable[..., Any]) -> None:
        """Store documents that were never there."""
        self.step, self.time = self.step + 1000, self.time + 1
        values = [self.step + i for i in ids]
        call(ids, [self.document(each) for each in values], payloads=values)
        for i, value in zip(ids, values, strict=True):
            self.now.pop(i, None)
            self.now[i] = value, self.time

    def do(self, call: str, number: int) -> None:
        """One of STEPS."""
        getattr(self, call.replace(" ", "_"))(number)

    def add(self, number: int) -> None:
        self.put([number], self.index.add)

    def add_many(self, number: int) -> None:
        self.put(list(range(number, number + 20)), self.index.add)

    def add_very_many(self, number: int) -> None:
        self.put(list(range(number, number + 70)), self.index.add)

    def offer(self, number: int) -> None:
        self.put(list(range(number, number + 5)), self.index.offer_many)

    def remove(self, number: int) -> None:
        gone = [i for i in range(number, number + 30) if i in self.now]
        self.index.remove(gone)
        for i in gone:
            del self.now[i]

    def expire(self, number: int) -> None:
        before = self.time - number // 10
        old = [i for i, (_, at) in self.now.items() if at < before]
        assert self.index.expire(before) == len(old)
        for i in old:
            del self.now[i]

    def commit(self, _: int) -> None:
        self.committing(self.index.commit)

    def rollback(self, _: int) -> None:
        self.index.rollback()
        self.now = dict(self.committed)

    def transaction(self, number: int) -> None:
        """It is taken back."""
        self.commit(0)  # as it does itself first
        with contextlib.suppress(StoppedError), self.index.transaction():
            self.remove(number)
            self.add_many(number)
            raise StoppedError
        self.now = dict(self.committed)

    def let_go(self, _: int) -> None:
        self.jobs.let_go()

    def compact(self, _: int) -> None:
        self.committing(self.index.compact)

    def backup(self, _: int) -> None:
        copy = self.index.path.with_name(f"{self.index.path.name}-copy")
        self.index.backup(copy)
        with nd.DurableIndex.open(copy) as other:
            agree(other, self.committed, self)
            assert other.check() == []
        shutil.rmtree(copy)

    def reopen(self, _: int) -> None:
        self.committing(self.index.close)
        self.index = nd.DurableIndex.open(self.index.path)

    def fail(self, _: int) -> None:
        self.jobs.fails = True

    def committing(self, call: Callable[[], Any]) -> None:
        """A call that commits, at the second attempt after a write that failed."""
        try:
            call()
        except FileError:
            agree(self.index, self.now, self)
            call()
        self.committed = dict(self.now)

    def check(self) -> None:
        """What is true after each step."""
        agree(self.index, self.now, self)
        agree(self.reader, self.committed, self)
        assert self.index.check() == []
        for each in self.index._folder._commit.manifest.files:  # noqa: SLF001
            assert self.files.setdefault(each.name, each.checksum) == each.checksum


def agree(index: Any, expected: dict[int, tuple[int, float]], life: Life) -> None:
    """The index holds and finds what it must, with payloads."""
    result = {i: int(x[0]) if life.is_similar else x for i, x in index}
    assert list(result.items()) == [(i, value) for i, (value, _) in expected.items()]
    assert index.payloads(list(expected)) == [value for value, _ in expected.values()]
    for i, (value, _) in list(expected.items())[::13]:
        assert [each for each, _ in index.query(life.document(value))] == [i]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(60, 10))
@given(story=steps)
@example(story=[("add very many", 0), ("commit", 0), ("fail", 0), ("add", 1), ("reopen", 0)])
def test_whatever_happens_before_a_job_works_is_kept(
    kind: str, story: list[tuple[str, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        life = Life(kind, patch)
        for each in story:
            life.do(*each)
            life.check()
        life.jobs.fails = False
        life.jobs.let_go()
        life.reader.close()
        end(life.index)
