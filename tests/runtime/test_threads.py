"""Work in threads ends in the order of its tasks, errors included."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from neardup.runtime.threads import ahead, stop_if_abandoned

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
