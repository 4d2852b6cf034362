"""Greedy matching in steps: looked up in threads, decided one after the other; always the same.

A document is dropped only for one that was kept before it. So all documents of a step can be looked
up at once among those kept before the step, which do not change during it. A match found there is
the right one: all others of the step have a lower priority. The rest are matched
with each other, one after the other, in an index of the step's own, and those kept then go to the
index of all.

How long a step is, and whether it is done in threads, changes no result. So both follow what
steps took before: threads cost up to half more work, and are worth it only where one thread is what
the others wait for, and there are several.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.kernels.similarity.join_arguments import Condition, Keys, Sets, Walk
    from neardup.similarity.key_index import KeyIndex

__all__ = ["GreedySteps", "Scratch"]

FIRST_STEP: Final = 1 << 16
"""Features of the first step."""

LEAST_SECONDS, MOST_SECONDS = 0.002, 0.008
"""Of the processor, for each thread, that a step takes: shorter ones are doubled, longer halved."""

SLICES_A_THREAD: Final = 4
"""The parts of a step for each thread: several, as some documents take longer than others."""

MARKS_A_KEY: Final = 16
"""Bits for each key: one key in this number passes by chance as shared by two documents."""

WORK_IN_THREADS, REST = 1.5, 0.4
"""What a step takes in threads, all of them together, and the part of it that is one thread; by
what it takes in one."""

MOST_OF_ALONE: Final = 0.85
"""Of the time that a step takes in one thread: what it may take in several."""

PAST: Final = 0.75
"""The weight of all steps before the last: one that a busy machine made long decides little."""


class Scratch:
    """Working memory of the threads, a walk for each, made at first use.

    Args:
        walk: Whose place and scratch the first thread has.
        count: How many threads.
    """

    def __init__(self, walk: Walk, count: int) -> None:
        """Have none."""
        self._walk, self._count = walk, count
        self._others: list[Any] = []

    def walks(self, walk: Walk, index: KeyIndex) -> list[Walk]:
        """A walk for each thread, that only looks up, with the results of `walk`."""
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


class GreedySteps:
    """Matches documents as `match_greedy` does, in up to `workers` threads.

    Args:
        sets: The documents.
        condition: When two match.
        index: Of those kept before; written.
        fresh: An empty index, for those of a step.
        scratch: For `workers` threads.
        workers: Threads that look up at once, while this one waits for them.
    """

    def __init__(
        self, sets: Sets, condition: Condition, index: KeyIndex, fresh: KeyIndex, scratch: Scratch,
        workers: int,
    ) -> None:  # fmt: skip
        """Begin with short steps, in one thread."""
        self._sets, self._condition, self._index, self._fresh = sets, condition, index, fresh
        self._scratch, self._workers = scratch, workers
        self._features, self._in_threads = FIRST_STEP, False
        self._alone = self._choosing = 0.0
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
            keys: Theirs.
            walk: Written.
            choosing: Seconds of the processor that it took to choose these keys.
            stop: uint8 (1,): matching ends early once it is set.
        """
        passed = np.append(0, np.cumsum(np.diff(self._sets.offsets)[documents]))
        first = 0
        while first < documents.size and not stop[0]:
            last = int(np.searchsorted(passed, passed[first] + self._features))
            last = min(max(last, first + 1), documents.size)
            part = keys._replace(offsets=keys.offsets[first : last + 1])
            in_threads = self._in_threads and last - first >= self._workers
            step = self._step_in_threads if in_threads else self._step
            seconds = step(documents[first:last], part, walk, stop)
            share = (passed[last] - passed[first]) / max(1, passed[-1])
            self._alone = PAST * self._alone + seconds / (WORK_IN_THREADS if in_threads else 1.0)
            self._choosing = PAST * self._choosing + choosing * share
            self._adapt(seconds, last == documents.size)
            first = last

    def _adapt(self, seconds: float, cut: bool) -> None:
        """Set how the next step is done by what steps took; `cut`: the last may have been short."""
        threads, alone, choosing = self._workers, self._alone, self._choosing
        time_alone = max(alone, (alone + choosing) / threads)
        time_in_threads = max(
            alone / threads + alone * REST, (alone * WORK_IN_THREADS + choosing) / threads
        )
        self._in_threads = threads > 1 and time_in_threads < MOST_OF_ALONE * time_alone
        if threads > 1 and seconds > threads * MOST_SECONDS:
            self._features = max(1, self._features // 2)
        elif seconds < threads * LEAST_SECONDS and not cut:
            self._features *= 2

    def _step(self, documents: Any, keys: Keys, walk: Walk, stop: Any) -> float:
        """Match the documents of a step one after the other; how long that took."""
        from neardup.kernels.similarity.match_documents import match_greedy

        start = time.thread_time()
        postings = self._index.postings
        match_greedy(documents, self._sets, self._condition, keys, postings, walk, stop)
        return time.thread_time() - start

    def _step_in_threads(self, documents: Any, keys: Keys, walk: Walk, stop: Any) -> float:
        """Match the documents of a step in threads; how long that took, all of them together."""
        from neardup.kernels.similarity.greedy_step import insert_kept, shared_keys
        from neardup.kernels.similarity.join_arguments import Keys as Shared
        from neardup.kernels.similarity.match_documents import match_greedy

        seconds = self._look_up(documents, keys, walk, stop)
        start = time.thread_time()
        count = int(keys.offsets[-1] - keys.offsets[0])
        marks = np.zeros((1 << (MARKS_A_KEY * count // 64).bit_length(), 2), np.uint64)
        shared = Shared(*shared_keys(documents, keys, walk.match, marks))
        self._fresh.clear()
        verified = self._fresh.verified
        self._fresh.make_room(shared.keys.size, lambda: shared.keys.size)
        arguments = self._sets, self._condition, shared
        match_greedy(documents, *arguments, self._fresh.postings, walk, stop)
        insert_kept(documents, self._sets, self._condition, keys, self._index.postings, walk)
        self._index.add_verified(self._fresh.verified - verified)
        return seconds + time.thread_time() - start

    def _look_up(self, documents: Any, keys: Keys, walk: Walk, stop: Any) -> float:
        """Match documents with those of the index in threads; seconds of all of them."""
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
