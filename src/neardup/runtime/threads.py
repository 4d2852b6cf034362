"""Threads: how many to use, and giving them work."""

from __future__ import annotations

import functools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from neardup.errors import UsageError
from neardup.runtime.limits import allowed_processors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["in_threads", "worker_count"]


def worker_count(workers: int | None) -> int:
    """Check a number of threads; None means the processors that this process may use.

    Raises:
        UsageError: If it is not 1 or more.

    Example:
        >>> worker_count(2)
        2
    """
    if workers is None:
        return _processors()
    if not isinstance(workers, int) or workers < 1:
        raise UsageError(f"workers is {workers!r}: use a whole number from 1 up")
    return workers


@functools.cache
def _quota() -> int | None:
    return allowed_processors()


def _processors() -> int:
    """Those that this process may use, and its container has the time of."""
    if hasattr(os, "sched_getaffinity"):
        found = len(os.sched_getaffinity(0))
    else:
        found = os.cpu_count() or 1
    return min(found, _quota() or found)


def in_threads(workers: int, work: Callable[[int, Any], None], tasks: Iterable[Any]) -> None:
    """Call work(slot, task) for every task, on `workers` threads with slots 0 to workers - 1.

    An error or an interrupt leaves the tasks that have not begun undone.
    """
    todo = list(tasks)
    if workers == 1 or len(todo) < 2:
        for task in todo:
            work(0, task)
        return
    queue, lock, stopped = iter(todo), threading.Lock(), threading.Event()

    def run(slot: int) -> None:
        while True:
            with lock:
                task = next(queue, None)
            if task is None or stopped.is_set():
                return
            work(slot, task)

    with ThreadPoolExecutor(workers) as pool:
        try:
            for done in [pool.submit(run, slot) for slot in range(workers)]:
                done.result()
        except BaseException:
            stopped.set()
            raise
