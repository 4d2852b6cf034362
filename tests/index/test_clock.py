"""Times of insertion: told as finely as their age asks for, and as costly as what is new."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.index.clock import Clock, runs_of
from neardup.index.code_segments import CodeSegment
from neardup.index.distance_kind import ByDistance
from neardup.index.id_columns import IdColumn, id_array
from neardup.index.versions import Version
from stories import durable

DAY = 86400.0


def aged(days: float, count: int) -> nd.Index:
    """An index to which one document after the other was added, each at a time of its own."""
    rng = np.random.default_rng(5)
    numbers = np.arange(count)
    codes = rng.integers(0, 2**63, (count, 1), dtype=np.uint64)
    times = 1.7e9 + numbers * (days * DAY / count)
    clock = Clock(numbers.tolist(), times.tolist())
    segment = CodeSegment(codes, IdColumn(id_array(numbers)), numbers)
    kind = ByDistance(3, 64, None, "scan", None)
    return nd.Index.holding(Version.of_segments(kind, (segment,), count, clock))


def test_a_year_of_seconds_takes_few_runs_and_none_is_early() -> None:
    """Whatever the number of checkpoints, a time is off by a thousandth of its age or a second."""
    count = 365 * 8640
    numbers = np.arange(count)
    true = 1.7e9 + 10.0 * numbers
    clock = Clock()
    for end in range(count // 10, count + 1, count // 10):
        first = end - count // 10
        clock = clock.extended(numbers[first:end], true[first:end]).coarse(0, end)
    assert len(clock) < 20_000
    times = clock.times_of(numbers)
    age = true[-1] - true
    assert np.all(times >= true)
    assert np.all(times - true <= np.maximum(1, age / 1024))


def test_a_refresh_costs_what_is_new_at_any_age() -> None:
    """Processor time of a reader's first query after a commit."""
    best = []
    for count in (1_000, 200_000):
        index = durable()
        index.merge(aged(365, count))
        index.commit()
        for i in range(2_000):
            index.add(-1 - i, i)
        index.commit()
        reader = nd.DurableIndex.open(index.path, readonly=True)
        spent = []
        for i in range(30):
            index.add(-5_000 - i, i)
            index.commit()
            begin = time.process_time()
            assert len(reader) == count + 2_001 + i
            spent.append(time.process_time() - begin)
        best.append(min(spent))
    assert best[1] < 3 * best[0] + 1e-3


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_clock_that_jumped_ahead_does_not_stop_expiry(
    monkeypatch: pytest.MonkeyPatch, is_durable: bool
) -> None:
    """What was added in the jump stays; what came after is as old as it is."""
    now = 1.7e9
    monkeypatch.setattr("neardup.index.row_writer.time", SimpleNamespace(time=lambda: now))
    index = durable() if is_durable else nd.Index()
    index.add("before", 1)
    now += 365 * DAY
    index.add("jumped", 2)
    now -= 365 * DAY
    for day in range(60):
        now += DAY
        index.add(f"day {day}", 3 + day)
        if is_durable and day % 7 == 0:
            index.commit()
            index.compact()
    assert index.expire(now - 30 * DAY) == 30
    assert "jumped" in index
    assert "before" not in index


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 100), st.lists(st.integers(0, 5), min_size=1, max_size=6)),
        max_size=30,
    )
)
def test_a_version_of_a_clock_says_the_same_whatever_follows_it(
    steps: list[tuple[int, list[int]]],
) -> None:
    """Any version may be gone on from, one row or many at a time: a tree, as rollbacks make one."""
    versions: list[tuple[Clock, list[float]]] = [(Clock(), [])]
    for parent, times in steps:
        clock, before = versions[parent % len(versions)]
        if len(times) == 1:
            clock = clock.noted(len(before), times[0])
        else:
            clock = clock.extended(*runs_of(len(before), np.array(times, np.float64)))
        versions.append((clock, [*before, *times]))
    for clock, want in versions:
        assert clock.times_of(np.arange(len(want))).tolist() == want
        old = [row for first, end in clock.before(3, len(want)) for row in range(first, end)]
        assert old == [row for row, each in enumerate(want) if each < 3]
        for first in range(len(want) + 1):
            tail = Clock.joined([clock.since(0, first), clock.since(first, len(want))])
            assert tail.times_of(np.arange(len(want))).tolist() == want


@pytest.mark.parametrize("options", [{"distance": 1}, {"similarity": 0.8}], ids=str)
def test_a_snapshot_keeps_its_times_after_a_rollback(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Also those of rows that were not committed, whose numbers are given out again."""
    now = SimpleNamespace(time=lambda: 100.0)
    monkeypatch.setattr("neardup.index.row_writer.time", now)
    index = durable(recipe=nd.Recipe(), **options)
    index.add("old", "once upon a time")
    index.commit()
    now.time = lambda: 200.0
    index.add("a", "the quick brown fox jumps")
    now.time = lambda: 300.0
    index.add(["b", "c"], ["over the lazy dog", "and back again"])
    before = index.snapshot()
    index.rollback()
    now.time = lambda: 400.0
    index.add(["d", "e", "f"], ["some other text", "one more text", "the last of them"])
    assert before.times(["old", "a", "b", "c"]).tolist() == [100, 200, 300, 300]
    assert index.times(["old", "d", "f"]).tolist() == [100, 400, 400]
    index.commit()
    reader = nd.DurableIndex.open(index.path, readonly=True)
    assert reader.times(["old", "d", "f"]).tolist() == [100, 400, 400]
    assert index.expire(350) == 1


def test_times_are_read_beside_rollbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of one snapshot after the other meets no other times and no error."""
    ticks = itertools.count(1000)
    monkeypatch.setattr(
        "neardup.index.row_writer.time", SimpleNamespace(time=lambda: float(next(ticks)))
    )
    index, stop = durable(), threading.Event()
    index.add(list(range(40)), list(range(40)))
    index.commit()

    def read() -> int:
        for reads in itertools.count():
            with index.snapshot() as seen:
                ids = [identity for identity, _ in seen]
                first = seen.times(ids)
                for _ in range(20):
                    assert np.array_equal(seen.times(ids), first)
            if stop.is_set() and reads > 1:
                return reads
        raise AssertionError

    with ThreadPoolExecutor(2) as readers:
        reading = [readers.submit(read) for _ in range(2)]
        for rounds in range(300):
            for i in range(rounds % 7):
                index.add(100 + i, i)
            index.rollback()
        stop.set()
        assert min(each.result() for each in reading) > 1
