"""Large additions and commits, which hold the lock for a moment: others write meanwhile."""

from __future__ import annotations

import math
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import FileError, UsageError
from neardup.index.distance_kind import ByDistance
from neardup.index.durable import folder_store
from neardup.index.durable.commits import PendingChanges
from neardup.index.durable.merge_jobs import Job
from neardup.index.similarity_kind import BySimilarity
from neardup.index.versions import Version
from stories import durable, end, quiet, small_segments

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "distance": (ByDistance, {"distance": 0}),
    "similarity": (BySimilarity, {"similarity": 1.0}),
}
WRITES = ["add", "add many", "remove", "commit", "rollback", "compact", "flush"]
writes = st.lists(st.tuples(st.sampled_from(WRITES), st.integers(0, 99)), max_size=5)


class Life:
    """An index of few rows a segment, and what it must hold."""

    def __init__(self, kind: str, patch: pytest.MonkeyPatch, *, is_durable: bool = True) -> None:
        small_segments(patch)
        for name in ("TAIL_ROWS", "LEVEL_ROWS"):
            patch.setattr(f"neardup.index.set_segments.{name}", 12)
        patch.setitem(folder_store.FLUSH_ROWS, "similarity", 40)
        self.kind, options = KINDS[kind]
        self.index: Any = (durable if is_durable else nd.Index)(**options)
        self.is_durable, self.step = is_durable, 0
        self.now, self.committed = dict[int, int](), dict[int, int]()

    def document(self, value: int) -> Any:
        return value if self.kind is ByDistance else [value, 1 << 40]

    def add(self, ids: list[int]) -> None:
        """Add documents that were never there; what happens meanwhile comes before."""
        self.step += 1000
        self.index.add(ids, [self.document(self.step + i) for i in ids])
        for i in ids:
            self.now.pop(i, None)
            self.now[i] = self.step + i

    def commit(self) -> None:
        self.index.commit()
        self.committed = dict(self.now)

    def write(self, call: str, number: int) -> None:
        """One of WRITES."""
        if call == "add":
            self.add([number])
        elif call == "add many":
            self.add(list(range(number, number + 20)))
        elif call == "remove":
            gone = [i for i in range(number, number + 10) if i in self.now]
            self.index.remove(gone)
            for i in gone:
                del self.now[i]
        elif not self.is_durable:
            pass
        elif call == "commit":
            self.commit()
        elif call == "rollback":
            self.index.rollback()
            self.now = dict(self.committed)
        elif call == "compact":
            self.index.compact()
            self.committed = dict(self.now)
        else:
            with self.index._lock:  # noqa: SLF001
                self.index._folder.flush_now()  # noqa: SLF001  # as where the background failed
            self.committed = dict(self.now)

    def agrees(self, index: Any = None) -> None:
        """The index holds and finds what it must."""
        view = self.index if index is None else index
        result = {i: x if self.kind is ByDistance else int(x[0]) for i, x in view}
        assert list(result.items()) == list(self.now.items())
        for i, value in list(self.now.items())[::7]:
            hits = [each for each, _ in view.query(self.document(value))]
            assert i in hits
            assert all(self.now[each] == value for each in hits)


def once(patch: pytest.MonkeyPatch, owner: Any, name: str, hook: Callable[[], None]) -> None:
    """Call the hook after the next call of a function, and not after those that it makes itself."""
    function, hooks = getattr(owner, name), [hook]

    def wrapped(*given: Any) -> Any:
        result = function(*given)
        if hooks:
            hooks.pop()()
        return result

    patch.setattr(owner, name, wrapped)


def anybody_may_write(index: Any) -> bool:
    """Whether another thread gets the lock of the writer, which jobs hold for moments only."""
    lock = index._lock  # noqa: SLF001

    def is_free() -> bool:
        return lock.acquire(timeout=10) and lock.release() is None

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(is_free).result()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_durable", [True, False])
@given(before=writes, meanwhile=writes)
def test_what_others_write_while_ids_are_looked_up_comes_before_an_addition(
    kind: str, is_durable: bool, before: list[Any], meanwhile: list[Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        life = Life(kind, patch, is_durable=is_durable)
        for each in [("add many", 10), *before]:
            life.write(*each)

        def others() -> None:
            step, life.step = life.step, life.step + 100_000
            for each in meanwhile:
                life.write(*each)
            life.step = step

        once(patch, Version, "numbers_of", others)
        life.add(list(range(15, 75)))
        life.agrees()
        if is_durable:
            life.commit()
            assert life.index.check() == []
            quiet(life.index)
            life.agrees()
            with nd.DurableIndex.open(life.index.path, readonly=True) as reader:
                life.agrees(reader)
            end(life.index)


@pytest.mark.parametrize(("rows", "step"), [(60, (Job, "work")), (15, (PendingChanges, "encoded"))])
@pytest.mark.parametrize("kind", KINDS)
@given(before=writes, meanwhile=writes)
@example(before=[], meanwhile=[("add", 99)])
@example(before=[], meanwhile=[("remove", 5)])
@example(before=[], meanwhile=[("add", 20), ("add many", 0)])
def test_what_others_write_while_a_commit_writes_files_or_makes_its_record_is_not_lost(
    kind: str, rows: int, step: tuple[type, str], before: list[Any], meanwhile: list[Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_store, "SMALL_RECORD", 10)
        life = Life(kind, patch)
        for each in [*before, ("add many", 10), ("add", 5)]:
            life.write(*each)
        life.add(list(range(30, 30 + rows)))

        def others() -> None:
            assert anybody_may_write(life.index)
            for each in meanwhile:
                life.write(*each)

        once(patch, *step, others)
        life.commit()
        folder = life.index._folder  # noqa: SLF001
        with folder.lock:  # a later file of a number that is taken would replace this one
            taken = [int(each.stem[len("segment-") :]) for each in folder.path.glob("segment-*")]
            assert max(taken, default=-1) < folder._next_file  # noqa: SLF001
        life.agrees()
        quiet(life.index)
        life.agrees()
        assert life.index.check() == []
        named = {each["file"] for each in life.index.stats()["segments"]} - {None}
        end_of_wait = time.monotonic() + 60  # a merge removes its files when it is done
        while {each.name for each in life.index.path.glob("segment-*")} != named:
            assert time.monotonic() < end_of_wait
        with nd.DurableIndex.open(life.index.path, readonly=True) as reader:
            life.agrees(reader)
        end(life.index)


@pytest.mark.parametrize("kind", KINDS)
def test_closing_while_a_large_commit_writes_leaves_no_file_behind(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(kind, monkeypatch)
    life.add(list(range(60)))
    once(monkeypatch, Job, "work", life.index.close)
    with pytest.raises(UsageError, match="closed"):
        life.index.commit()
    with nd.DurableIndex.open(life.index.path, readonly=True) as reader:
        life.agrees(reader)
        named = {each["file"] for each in reader.stats()["segments"]}
        assert {each.name for each in reader.path.glob("segment-*")} == named


class Closing(list[Any]):
    """Jobs of large commits; another thread closes the index before the first is struck off."""

    def __init__(self, index: nd.DurableIndex) -> None:
        super().__init__()
        self.index = index

    def remove(self, job: Any) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.index.close).result()
        super().remove(job)


@pytest.mark.parametrize("kind", KINDS)
def test_closing_when_a_large_commit_is_done_keeps_its_files(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(kind, monkeypatch)
    life.add(list(range(60)))
    life.index._folder._ahead = Closing(life.index)  # noqa: SLF001
    life.commit()
    assert life.index.closed
    with nd.DurableIndex.open(life.index.path) as again:
        life.agrees(again)
        assert again.check() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_commit_that_fails_may_be_tried_again(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(kind, monkeypatch)
    life.add(list(range(100)))
    with monkeypatch.context() as patch:

        def full(*_: Any) -> None:
            raise FileError("cannot write a file: no space left on device")

        patch.setattr(life.kind, "write", staticmethod(full))
        with pytest.raises(FileError, match="no space"):
            life.commit()
    life.agrees()
    assert not [*life.index.path.glob("segment-*")]
    life.commit()
    with nd.DurableIndex.open(life.index.path, readonly=True) as reader:
        life.agrees(reader)
    end(life.index)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_written_a_few_times_whatever_is_added(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once by the flush, and once for each level that its segment goes through."""
    life, rows, random = Life(kind, monkeypatch), 6_000, np.random.default_rng(4)
    write, written = life.kind.write, Counter[int]()

    def counted(kind: Any, segment: Any, path: Any) -> None:
        written.update(segment.numbers.tolist())
        write(kind, segment, path)

    monkeypatch.setattr(life.kind, "write", counted)
    first = 0
    while first < rows:
        last = min(rows, first + int(random.choice([1, 7, 30, 200])))
        life.index.add(list(range(first, last)), [life.document(i) for i in range(first, last)])
        life.index.commit()
        first = last
    quiet(life.index)
    end(life.index)
    assert len(written) > rows // 2
    most = 2 + math.log(rows / 12, 4) if kind == "similarity" else math.log2(rows)
    assert max(written.values()) <= most


def test_an_addition_is_not_made_ready_before_it_is_asked_or_flushed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    life = Life("similarity", monkeypatch)
    life.add(list(range(30)))
    (segment,) = life.index._folder.version.segments  # noqa: SLF001
    assert not segment.is_ready
    assert segment.contents(np.array([3, 1])).features.tolist() == [1003, 1 << 40, 1001, 1 << 40]
    life.agrees()
    assert segment.is_ready
    end(life.index)
