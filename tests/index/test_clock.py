"""Times of insertion: told as finely as their age asks for, and as costly as what is new."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

import neardup as nd
from neardup.index.clock import Clock
from neardup.index.ids import IdColumn, id_array
from neardup.index.segments import Segment
from neardup.index.settings import Settings
from neardup.index.snapshot import Snapshot
from stories import durable

DAY = 86400.0


def aged(days: float, count: int) -> nd.Index:
    """An index to which one document after the other was added, each at a time of its own."""
    rng = np.random.default_rng(5)
    numbers = np.arange(count)
    codes = rng.integers(0, 2**63, (count, 1), dtype=np.uint64)
    times = 1.7e9 + numbers * (days * DAY / count)
    clock = Clock(numbers.tolist(), times.tolist())
    segment = Segment(codes, IdColumn(id_array(numbers)), numbers)
    settings = Settings(3, 64, None, "scan", None)
    return nd.Index.holding(Snapshot.of_segments(settings, (segment,), count, clock))


def test_a_year_of_seconds_takes_few_runs_and_none_is_early() -> None:
    """Whatever the number of checkpoints, a time is off by a thousandth of its age or a second."""
    count = 365 * 8640
    numbers = np.arange(count)
    true = 1.7e9 + 10.0 * numbers
    clock = Clock()
    for end in range(count // 10, count + 1, count // 10):
        first = end - count // 10
        clock.extend(numbers[first:end], true[first:end])
        clock = clock.coarse(0, end)
    assert len(clock) < 20_000
    told = clock.times_of(numbers)
    age = true[-1] - true
    assert np.all(told >= true)
    assert np.all(told - true <= np.maximum(1, age / 1024))


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
    monkeypatch.setattr("neardup.index.base.writing.time", SimpleNamespace(time=lambda: now))
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
