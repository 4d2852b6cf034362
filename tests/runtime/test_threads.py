"""Work in threads ends in the order of its tasks, errors included."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.runtime.threads import ahead, chain_ahead, stop_if_abandoned

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_of_the_tasks_comes_after_the_results_before_it(workers: int) -> None:
    def tasks() -> Iterator[int]:
        yield from (1, 2)
        raise OSError("the disk is gone")

    def slow(task: int) -> int:
        time.sleep(0.01)
        return task

    results = ahead(workers, slow, tasks())
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        next(results)


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_of_the_work_comes_in_its_place(workers: int) -> None:
    results = ahead(workers, lambda task: 1 // task, iter([1, 0, 2]))
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


@given(
    st.lists(st.lists(st.integers(0, 9) | st.just(None), max_size=6), max_size=6),
    st.integers(1, 4), st.integers(1, 30),
)  # fmt: skip
def test_iterators_read_ahead_give_their_items_in_order_and_then_their_error(
    parts: list[list[int | None]], threads: int, most: int
) -> None:
    def items(part: list[int | None]) -> Iterator[int]:
        for item in part:
            if item is None:
                raise OSError("damaged")
            yield item

    got, expected = list[int | None](), list(itertools.chain.from_iterable(parts))
    try:
        got.extend(chain_ahead(threads, map(items, parts), lambda size: size, most))
    except OSError:
        got.append(None)
    assert got == expected[: len(got)]
    assert len(got) == len(expected) if None not in expected else got[-1] is None


def test_an_iterator_waits_once_enough_is_ahead() -> None:
    taken: list[int] = []

    def items(part: int) -> Iterator[int]:
        for number in range(10):
            taken.append(part)
            yield number

    results = chain_ahead(2, map(items, range(9)), lambda _: 1, 3)
    assert next(results) == 0
    time.sleep(0.05)
    assert (taken.count(0), taken.count(1), taken.count(2)) == (6, 3, 0)
    results.close()


def test_an_error_abandons_the_tasks_under_way() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(task: str) -> None:
        if task == "fails":
            begun.wait()
            raise OSError("the disk is gone")
        begun.set()
        try:
            while True:  # without an end of its own
                stop_if_abandoned()
                time.sleep(0.001)
        finally:
            ended.set()

    with pytest.raises(OSError, match="the disk is gone"):
        next(ahead(2, work, iter(["fails", "goes on"])))
    assert ended.is_set()
