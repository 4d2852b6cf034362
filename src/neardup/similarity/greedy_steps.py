"""Greedy matching in steps: looked up in threads, decided one after the other; always the same.

A document is dropped only for one that was kept before it. So all documents of a step can be looked
up at once among those kept before the step, which do not change during it. A match found there is
the right one: all others of the step have a lower priority. The rest are matched
with each other, group by group, in indexes of the step's own: documents of different groups share
no key. Those kept then go to the index of all, range by range of its table.

The length of a step, and whether threads do it, changes no result. So both follow the time that
earlier steps took. Threads do up to three times the work and have to be woken, so they pay where it
takes long to look documents up, and the threads that choose keys would wait for the one that
matches.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.kernels.similarity.join_arguments import Condition, Keys, Sets, Walk
    from neardup.similarity.key_index import Arena, KeyIndex

__all__ = ["GreedySteps", "Scratch"]

FIRST_STEP: Final = 1 << 16
"""The number of features in the first step."""

LEAST_SECONDS, MOST_SECONDS = 0.002, 0.008
"""Processor seconds of a step for each thread: shorter steps are doubled, longer ones halved."""

SLICES_A_THREAD: Final = 4
"""The parts of a step for each thread: several, as some documents take longer than others."""

MOST_AT_ONCE: Final = 4
"""The most threads that match the documents of a step with each other: these are few."""

MARKS_A_KEY: Final = 16
"""Bits of the marks for each key: one key in this number seems by chance to be in two documents."""

WORK_IN_THREADS, REST = 1.5, 0.4
"""The work of a step in all threads together, and the part of it that one thread does alone, each
relative to the work of the step in one thread; a guess until threads are tried."""

AGAIN, LONGEST_AGAIN = 4, 64
"""Steps in one thread after which several are tried again, each time twice as many up to a limit:
the first steps are short, and later ones may differ."""

MOST_OF_ALONE: Final = 0.85
"""The share of its time in one thread that a step may take in several."""

PAST: Final = 0.75
"""The weight of all steps before the last, so that one step on a busy machine decides little."""


class Scratch:
    """Working memory of the threads, a walk for each, made at first use.

    Args:
        walk: Whose place and scratch the first thread has.
        count: How many threads.
    """

    def __init__(self, walk: Walk, count: int) -> None:
        """Note the number of threads; nothing is allocated yet."""
        self._walk, self._count = walk, count
        self._others: list[Any] = []

    def walks(self, walk: Walk, index: KeyIndex) -> list[Walk]:
        """A walk for each thread, which only looks up and shares the results of `walk`."""
        if not self._others:
            self._others = [
                {
                    "seen": np.zeros_like(walk.seen),
                    "found": np.empty_like(walk.found),
                    "queue": np.empty_like(walk.queue),
                    "members": np.empty_like(walk.members),
                }
                for _ in range(self._count - 1)
            ]
        looking = walk._replace(keeps=False)
        return [looking] + [
            looking._replace(place=index.place(thread), **each)
            for thread, each in enumerate(self._others, 1)
        ]


class _PerFeature:
    """Seconds a feature that some steps took, the later ones weighing more."""

    def __init__(self) -> None:
        """Begin without a step."""
        self._seconds = self._features = 0.0

    def add(self, seconds: float, features: int) -> None:
        """Add a step."""
        self._seconds = PAST * self._seconds + seconds
        self._features = PAST * self._features + features

    @property
    def seconds(self) -> float:
        """Of later steps most."""
        return self._seconds / max(1.0, self._features)


class GreedySteps:
    """Matches documents as `match_greedy` does, in up to `workers` threads.

    Args:
        sets: The documents.
        condition: When two match.
        index: The index of the documents kept before; written.
        fresh: Empty indexes for the documents of a step, one for each thread that matches these
            with each other.
        scratch: Working memory for `workers` threads.
        workers: Threads that look up at once, while this one waits for them.
    """

    def __init__(
        self, sets: Sets, condition: Condition, index: KeyIndex, fresh: list[KeyIndex],
        scratch: Scratch, workers: int,
    ) -> None:  # fmt: skip
        """Begin with short steps, in one thread."""
        self._sets, self._condition, self._index, self._fresh = sets, condition, index, fresh
        self._scratch, self._workers = scratch, workers
        self._features, self._in_threads = FIRST_STEP, False
        self._choosing, self._alone = _PerFeature(), _PerFeature()
        self._clock, self._work = _PerFeature(), _PerFeature()
        self._again, self._since = AGAIN, AGAIN
        self._pool = ThreadPoolExecutor(workers)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads."""
        self._pool.shutdown()

    def match(self, documents: Any, keys: Keys, walk: Walk, choosing: float, stop: Any) -> None:
        """Match a chunk of documents, in order of priority, for whose keys the index has room.

        Args:
            documents: int64 (m,).
            keys: Keys of these documents.
            walk: Walk, written.
            choosing: Processor seconds that it took to choose these keys.
            stop: uint8 (1,): matching ends early once it is set.
        """
        passed = np.append(0, np.cumsum(np.diff(self._sets.offsets)[documents]))
        first = 0
        while first < documents.size and not stop[0]:
            # Above `first`, as a step has room for one feature or more.
            last = int(np.searchsorted(passed, passed[first] + self._features))
            last = min(last, documents.size)
            part = keys._replace(offsets=keys.offsets[first : last + 1])
            in_threads = self._in_threads and last - first >= self._workers
            step = self._step_in_threads if in_threads else self._step
            start, features = time.perf_counter(), int(passed[last] - passed[first])
            seconds = step(documents[first:last], part, walk, stop)
            self._since = 0 if in_threads else self._since + 1
            if in_threads:  # the clock has the time until they are awake
                self._clock.add(time.perf_counter() - start, features)
                self._work.add(seconds, features)
            else:
                self._alone.add(seconds, features)
            self._choosing.add(choosing * features / max(1, int(passed[-1])), features)
            self._adapt(seconds, last == documents.size)
            first = last

    def _adapt(self, seconds: float, cut: bool) -> None:
        """Plan the next step by the time of earlier ones; `cut`: the last may have been short."""
        threads, choosing, alone = self._workers, self._choosing.seconds, self._alone.seconds
        clock, work = self._clock.seconds, self._work.seconds
        if self._since >= self._again:
            clock, work = alone / threads + alone * REST, alone * WORK_IN_THREADS
        time_alone = max(alone, (alone + choosing) / threads)
        time_in_threads = max(clock, (work + choosing) / threads)
        self._in_threads = threads > 1 and time_in_threads < MOST_OF_ALONE * time_alone
        if self._since == 0 and not self._in_threads:
            self._again = min(2 * self._again, LONGEST_AGAIN)
        if threads > 1 and seconds > threads * MOST_SECONDS:
            self._features = max(1, self._features // 2)
        elif seconds < threads * LEAST_SECONDS and not cut:
            self._features *= 2

    def _step(self, documents: Any, keys: Keys, walk: Walk, stop: Any) -> float:
        """Match the documents of a step one after the other; returns processor seconds."""
        from neardup.kernels.similarity.match_documents import match_greedy

        start = time.thread_time()
        postings = self._index.postings
        match_greedy(documents, self._sets, self._condition, keys, postings, walk, stop)
        return time.thread_time() - start

    def _step_in_threads(self, documents: Any, keys: Keys, walk: Walk, stop: Any) -> float:
        """Match the documents of a step in threads; returns processor seconds of all of them."""
        seconds = self._look_up(documents, keys, walk, stop)
        seconds += self._match_with_each_other(documents, keys, walk, stop)
        return seconds + self._insert(documents, keys, walk)

    def _match_with_each_other(self, documents: Any, keys: Keys, walk: Walk, stop: Any) -> float:
        """Match those of the documents that are left, in threads; returns seconds of all."""
        from neardup.kernels.similarity.greedy_step import shared_keys
        from neardup.kernels.similarity.match_documents import match_greedy

        start = time.thread_time()
        count, groups = int(keys.offsets[-1] - keys.offsets[0]), np.arange(documents.size)
        marks = np.zeros((1 << (MARKS_A_KEY * count // 64).bit_length(), 2), np.uint64)
        groups = groups.astype(np.uint32)
        values, before, offsets = shared_keys(documents, keys, walk.match, marks, groups)
        counts = np.diff(offsets)
        thread_of = _in_equal_parts(groups, counts, len(self._fresh))
        thread_of_key = np.repeat(thread_of, counts)

        def run(own: Walk, fresh: KeyIndex, thread: int) -> tuple[float, int]:
            start, verified, of_thread = time.thread_time(), fresh.verified, thread_of_key == thread
            ends = np.append(0, np.cumsum(counts * (thread_of == thread)))
            some = keys._replace(keys=values[of_thread], before=before[of_thread], offsets=ends)
            fresh.clear()
            fresh.make_room(some.keys, lambda: some.keys.size)
            arguments = documents, self._sets, self._condition, some, fresh.postings
            match_greedy(*arguments, own._replace(keeps=True, place=0), stop)
            return time.thread_time() - start, fresh.verified - verified

        # No key is in two groups: a thread with whole groups decides as one with all would.
        tasks = zip(
            self._scratch.walks(walk, self._index), self._fresh, itertools.count(), strict=False
        )
        running = [self._pool.submit(run, *task) for task in tasks]
        seconds = time.thread_time() - start
        done = [each.result() for each in running]
        self._index.add_verified(sum(verified for _, verified in done))
        return seconds + sum(seconds for seconds, _ in done)

    def _insert(self, documents: Any, keys: Keys, walk: Walk) -> float:
        """Put those of the documents that are kept into the index, in threads; returns seconds."""
        from neardup.kernels.similarity.greedy_step import insert_kept
        from neardup.kernels.similarity.postings import RANGES

        numbers, first, last = iter(range(RANGES)), int(keys.offsets[0]), int(keys.offsets[-1])

        def run(own: Walk, arena: Arena) -> float:
            start = time.thread_time()
            postings = self._index.postings._replace(used=arena.used)
            arguments = documents, self._sets, self._condition, keys, postings, own
            for number in numbers:
                done = first
                while (done := insert_kept(*arguments, (number, done, arena.end))) < last:
                    self._index.more_rows(arena)
            return time.thread_time() - start

        # No key is in two ranges: threads write other slots, and each rows of its own.
        tasks = zip(self._scratch.walks(walk, self._index), self._index.arenas(), strict=False)
        running = [self._pool.submit(run, *task) for task in tasks]
        seconds = sum(each.result() for each in running)
        self._index.add_inserted()
        return seconds

    def _look_up(self, documents: Any, keys: Keys, walk: Walk, stop: Any) -> float:
        """Match documents with those of the index in threads; returns processor seconds of all."""
        from neardup.kernels.similarity.match_documents import match_greedy
        from neardup.kernels.similarity.postings import VERIFIED

        postings = self._index.postings
        count = min(documents.size, SLICES_A_THREAD * self._workers)
        goals = np.linspace(keys.offsets[0], keys.offsets[-1], count + 1)[1:-1]
        cuts = np.unique(
            np.concatenate([[0], np.searchsorted(keys.offsets, goals), [documents.size]])
        )
        slices = iter(list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)))

        def run(own: Walk, todo: Iterator[tuple[int, int]]) -> tuple[float, int]:
            start, used = time.thread_time(), np.zeros_like(postings.used)
            for first, last in todo:
                part = keys._replace(offsets=keys.offsets[first : last + 1])
                match_greedy(
                    documents[first:last], self._sets, self._condition, part,
                    postings._replace(used=used), own, stop,
                )  # fmt: skip
            return time.thread_time() - start, int(used[VERIFIED])

        # Threads only look up: the index stands still, and each writes the results of its own
        # documents. Marks of what was seen are scratch, so every thread has its own. This thread
        # takes no slice: on a busy machine it would take most, before the others begin.
        walks = self._scratch.walks(walk, self._index)
        running = [self._pool.submit(run, own, slices) for own in walks]
        done = [each.result() for each in running]
        self._index.add_verified(sum(verified for _, verified in done))
        return sum(seconds for seconds, _ in done)


def _in_equal_parts(groups: Any, weights: Any, parts: int) -> Any:
    """The part of each member: groups stay whole, and parts are about of equal weight; int64.

    Example:
        >>> _in_equal_parts(np.array([0, 1, 0, 3]), np.array([1, 2, 1, 2]), 3).tolist()
        [0, 1, 0, 2]
    """
    before = np.cumsum(np.bincount(groups, weights, groups.size)) - 1
    return (before * parts // max(1, weights.sum())).clip(0).astype(np.int64)[groups]
