"""Threads: their number, their work, and how to abandon it."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from neardup.errors import UsageError
from neardup.runtime.limits import allowed_processors

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

__all__ = [
    "AbandonedError",
    "abandonable",
    "ahead",
    "chain_ahead",
    "in_threads",
    "read_ahead",
    "stop_if_abandoned",
    "worker_count",
]

MOST_WORKERS: Final = 4096
T = TypeVar("T")
R = TypeVar("R")


class AbandonedError(Exception):
    """The error of work for which nobody waits any more."""


class _Work(threading.local):
    abandoned: threading.Event | None = None


_work = _Work()


@contextlib.contextmanager
def abandonable(abandoned: threading.Event) -> Iterator[None]:
    """A context in which this thread's work ends with AbandonedError once an event is set.

    Its steps are where it calls `stop_if_abandoned`, and the tasks that it gives to threads.
    """
    _work.abandoned = abandoned
    try:
        yield
    finally:
        _work.abandoned = None


def stop_if_abandoned() -> None:
    """Raise AbandonedError if this thread's work is abandoned; called between its steps.

    Raises:
        AbandonedError: If the work is `abandonable`, and abandoned.
    """
    _stop_if(_work.abandoned)


def _stop_if(abandoned: threading.Event | None) -> None:
    if abandoned is not None and abandoned.is_set():
        raise AbandonedError


def worker_count(workers: int | None) -> int:
    """A checked number of threads; None means the processors that this process may use.

    Raises:
        UsageError: If it is not from 1 to MOST_WORKERS.

    Example:
        >>> worker_count(2)
        2
    """
    if workers is None:
        return _processors()
    if not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
        raise UsageError(f"workers is {workers!r}: use a whole number from 1 to {MOST_WORKERS:,}")
    return workers


@functools.cache
def _quota() -> int | None:
    return allowed_processors()


def _processors() -> int:
    """The number of processors that the process and its container may use."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return min(count, _quota() or count)


def in_threads(workers: int, work: Callable[[int, Any], None], tasks: Iterable[Any]) -> None:
    """Call work(slot, task) for each task, on `workers` threads with slots 0 to workers - 1.

    On fewer where no more can be started; without any, the caller does the work. An error or an
    interrupt leaves the tasks that have not begun undone.
    """
    todo, abandoned = list(tasks), _work.abandoned
    if workers == 1 or len(todo) < 2:
        for task in todo:
            _stop_if(abandoned)
            work(0, task)
        return
    # One thread owns a slot during the whole call, so `work` may write to what it has for its
    # slot without a lock. Tasks begin in order and end in any order: merging must not depend on it.
    queue, lock, stopped = iter(todo), threading.Lock(), threading.Event()

    def run(slot: int) -> None:
        while True:
            with lock:
                task = next(queue, None)
            if task is None or stopped.is_set():
                return
            _stop_if(abandoned)
            work(slot, task)

    with ThreadPoolExecutor(workers) as pool:
        try:
            futures = []
            for slot in range(workers):
                # No thread starts once the main thread has ended, nor beyond the system's limit.
                with contextlib.suppress(RuntimeError):
                    futures.append(pool.submit(run, slot))
            if not futures:
                run(0)
            for future in futures:
                future.result()
        except BaseException:
            stopped.set()
            raise


def ahead(
    workers: int,
    work: Callable[[T], R],
    tasks: Iterable[T],
    size: Callable[[T], int] = lambda _: 0,
    most: int = 0,
) -> Generator[R, None, None]:
    """Results of tasks in order, computed on `workers` threads, a number of tasks ahead.

    An error of `tasks` is raised in its place too: after the results of the tasks before it. After
    an error or an interrupt, tasks under way are abandoned, as `abandonable` says.

    Args:
        workers: Threads.
        work: What to do with a task.
        tasks: Taken in the thread that takes the results.
        size: Of a task; no task is taken while those ahead are larger than `most` together.
        most: See `size`.

    Example:
        >>> list(ahead(2, abs, [-1, 2, -3]))
        [1, 2, 3]
    """
    # Tasks are taken, and results given, in the caller's thread alone: a reader that makes the
    # tasks is never entered twice. The queue has the order of the tasks, whoever ends first.
    running: deque[tuple[Future[R], int]] = deque()
    failure: Exception | None = None
    pending_bytes, todo = 0, iter(tasks)
    with ThreadPoolExecutor(workers) as pool, _abandoning(pool) as abandoned:

        def run(task: T) -> R:
            with abandonable(abandoned):
                return work(task)

        while True:
            try:
                task = next(todo)
            except StopIteration:
                break
            except Exception as error:  # noqa: BLE001 - raised below, in its place
                failure = error
                break
            running.append((pool.submit(run, task), size(task)))
            pending_bytes += running[-1][1]
            del task
            while len(running) > workers or pending_bytes > most:
                future, nbytes = running.popleft()
                pending_bytes -= nbytes
                yield future.result()
        while running:
            yield running.popleft()[0].result()
    if failure is not None:
        raise failure


@contextlib.contextmanager
def _abandoning(pool: ThreadPoolExecutor) -> Iterator[threading.Event]:
    """An event for tasks; an error in the context sets it, and drops the tasks that wait."""
    abandoned = threading.Event()
    try:
        yield abandoned
    except BaseException:
        abandoned.set()
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def chain_ahead(
    threads: int, parts: Iterable[Iterator[T]], size: Callable[[T], int], most: int
) -> Generator[T, None, None]:
    """The items of some iterators, one iterator after the other, each read ahead in a thread.

    Args:
        threads: That many iterators are read at once.
        parts: The iterators; taken in the thread that takes the items.
        size: Of an item.
        most: An iterator whose items ahead have this size waits.

    Example:
        >>> list(chain_ahead(2, map(iter, ["ab", "", "c"]), len, 1))
        ['a', 'b', 'c']
    """

    def some(items: Iterator[T]) -> tuple[list[T], Iterator[T] | None, Exception | None]:
        taken, taken_size = list[T](), 0
        try:
            for item in items:
                taken.append(item)
                taken_size += size(item)
                if taken_size >= most:
                    return taken, items, None
        except Exception as error:  # noqa: BLE001 - raised below, after the items before it
            return taken, None, error
        return taken, None, None

    todo, running = iter(parts), deque[Future[Any]]()
    with ThreadPoolExecutor(threads) as pool, _abandoning(pool):
        while True:
            while len(running) < threads and (part := next(todo, None)) is not None:
                running.append(pool.submit(some, part))
            if not running:
                return
            items, rest, error = running.popleft().result()
            if rest is not None:
                running.appendleft(pool.submit(some, rest))
            yield from items
            if error is not None:
                raise error


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """The items of an iterable, each read in a thread while the caller uses the one before.

    Example:
        >>> list(read_ahead(iter([1, 2, 3])))
        [1, 2, 3]
    """
    end = object()
    with ThreadPoolExecutor(1) as pool:
        # One request at a time: `items` is never advanced by two threads.
        coming: Future[Any] = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item
