"""What is written, removed and taken back while files are merged; and merges that fail."""

from __future__ import annotations

import math
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import FileError
from neardup.index.distance_kind import ByDistance
from neardup.index.durable import folder_store
from neardup.index.durable.merge_jobs import Job
from neardup.index.set_segments import next_merge
from neardup.index.similarity_kind import BySimilarity
from stories import FOLDERS, quiet, small_segments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KINDS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "distance": (ByDistance, {"distance": 0}),
    "similarity": (BySimilarity, {"similarity": 1.0}),
}


class Sized(NamedTuple):
    """Rows of a segment, of which none is removed."""

    living: int
    removed: int = 0

    def __len__(self) -> int:
        return self.living


class Merging:
    """An index whose merges wait for `gate`, and what it must hold."""

    def __init__(self, kind: str, patch: pytest.MonkeyPatch) -> None:
        self.gate, self.entered = threading.Event(), threading.Event()
        make, self.options = KINDS[kind]
        merge = make.merge

        def wait(kind: Any, segments: list[Any], folder: Path | None = None) -> Any:
            if segments[0].file is not None:
                self.entered.set()
                assert self.gate.wait(60)
            return merge(kind, segments, folder)

        patch.setattr(make, "merge", wait)
        self.is_similar = kind == "similarity"
        self.index = nd.DurableIndex.open(tempfile.mkdtemp(dir=FOLDERS), **self.options)
        self.expected: dict[int, int] = {}
        number = 0
        while not self.entered.wait(0.01):
            for identity in range(number, number + 30):
                self.put(identity, 1000 + identity)
            self.index.commit()
            number += 30
            assert number < 30_000

    def put(self, identity: int, value: int) -> None:
        self.index.add(identity, [value, 1 << 40] if self.is_similar else value)
        self.expected.pop(identity, None)
        self.expected[identity] = value

    def remove(self, identities: list[int]) -> None:
        self.index.remove(identities)
        for identity in identities:
            del self.expected[identity]

    def agrees(self, index: Any = None) -> None:
        """The index holds and finds what it must."""
        view = self.index if index is None else index
        result = {i: int(x[0]) if self.is_similar else x for i, x in view}
        assert list(result.items()) == list(self.expected.items())
        for identity, value in list(self.expected.items())[::17]:
            hits = view.query([value, 1 << 40] if self.is_similar else value)
            assert identity in [each for each, _ in hits]
            assert all(self.expected[each] == value for each, _ in hits)


@pytest.fixture(params=KINDS)
def merging(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Merging]:
    """An index in the middle of a merge."""
    small_segments(monkeypatch)
    for limit in ("MOST_FILES", "MOST_FLUSHES"):  # no commit waits here
        monkeypatch.setattr(f"neardup.index.durable.folder_store.{limit}", 10**6)
    monkeypatch.setattr("neardup.index.set_segments.TAIL_ROWS", 12)
    monkeypatch.setattr("neardup.index.set_segments.LEVEL_ROWS", 12)
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "similarity", 40)
    result = Merging(request.param, monkeypatch)
    yield result
    result.gate.set()
    result.index.close()


@given(st.lists(st.integers(1, 60), max_size=150))
def test_there_are_few_segments_whatever_is_written(sizes: list[int]) -> None:
    """As many of each level as are not merged, and some smaller ones between them."""
    stack: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.index.set_segments.LEVEL_ROWS", 4)
        for size in sizes:
            stack.append(Sized(size))
            while (result := next_merge(stack)) is not None:
                first, last = result
                stack[first:last] = [Sized(sum(each.living for each in stack[first:last]))]
    assert len(stack) <= 4 * 4 * (1 + math.log(max(1, sum(sizes)), 4))


def test_a_large_segment_is_not_copied_for_a_few_small_ones() -> None:
    large = [Sized(10**6), Sized(3), Sized(3), Sized(3)]
    assert next_merge(large) is None
    assert next_merge([*large, Sized(3)]) == (1, 5)


def test_commits_do_not_wait_and_what_is_removed_stays_removed(merging: Merging) -> None:
    index = merging.index
    for turn in range(30):
        merging.remove([i for i in (turn, turn + 40) if i in merging.expected])
        for identity in range(50 + turn, 60 + turn):
            merging.put(identity, 5000 + turn * 10 + identity)
        index.commit()
        assert index.stats()["merging"]
    merging.agrees()
    with nd.DurableIndex.open(index.path, readonly=True) as reader:
        merging.agrees(reader)
        merging.gate.set()
        quiet(index)
        merging.agrees()
        merging.agrees(reader)
    assert index.check() == []
    index.close()
    with nd.DurableIndex.open(index.path) as again:
        merging.agrees(again)


def test_what_is_not_committed_outlives_the_merge_and_can_be_taken_back(merging: Merging) -> None:
    index, before = merging.index, dict(merging.expected)
    merging.remove([3, 4, 5])
    merging.put(7, 9999)
    merging.put(100_000, 9998)
    merging.gate.set()
    quiet(index)
    merging.agrees()
    index.rollback()
    merging.expected = before
    merging.agrees()
    merging.remove([6])
    index.commit()
    with nd.DurableIndex.open(index.path, readonly=True) as reader:
        merging.agrees(reader)


def test_compacting_waits_for_the_merge(merging: Merging) -> None:
    merging.remove([1, 2])
    threading.Timer(0.05, merging.gate.set).start()
    merging.index.compact()
    merging.agrees()
    assert len(merging.index.stats()["segments"]) == 1
    assert merging.index.check() == []


def test_a_merge_that_fails_loses_nothing_and_is_told(
    merging: Merging, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise FileError("cannot write a file: no space left on device")

    kind = KINDS["similarity" if merging.is_similar else "distance"][0]
    monkeypatch.setattr(kind, "write", staticmethod(full))
    merging.gate.set()
    wait_until(lambda: "not merged, nothing is lost: cannot write" in caplog.text)
    merging.put(70_000, 3)
    merging.index.commit()
    merging.agrees()
    with nd.DurableIndex.open(merging.index.path, readonly=True) as reader:
        merging.agrees(reader)
    assert merging.index.check() == []


def test_closing_abandons_a_merge_that_takes_long(
    merging: Merging, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("neardup.index.durable.folder_store.CLOSING_SECONDS", 0.01)
    caplog.set_level("INFO", "neardup")
    merging.remove([1, 2])
    merging.put(70_000, 3)
    index = merging.index
    abandon = Job.abandon

    def abandoned(job: Job) -> None:
        abandon(job)
        merging.gate.set()  # the step that it is in goes on to its end, and no other begins

    monkeypatch.setattr(Job, "abandon", abandoned)
    index.close()
    assert "a merge was abandoned" in caplog.text
    with nd.DurableIndex.open(index.path, readonly=True) as reader:
        merging.agrees(reader)
        named = [each for each in reader.stats()["segments"] if each["file_bytes"]]
    assert len([*index.path.glob("*segment*")]) == len(named)
    assert nd.DurableIndex.open(index.path, readonly=True).check() == []
    with nd.DurableIndex.open(index.path) as again:
        merging.index = again
        for turn in range(10):
            for identity in range(70_000 + 30 * turn, 70_030 + 30 * turn):
                merging.put(identity, identity)
            again.commit()
        assert quiet(again)["counters"]["merges"] > 0
        merging.agrees()


def test_closing_waits_for_a_merge_that_is_soon_done(
    merging: Merging, caplog: pytest.LogCaptureFixture
) -> None:
    threading.Timer(0.05, merging.gate.set).start()
    caplog.set_level("INFO", "neardup")
    merging.index.close()
    assert "segments written as 1 in" in caplog.text
    assert "abandoned" not in caplog.text


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what a thread does."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)
