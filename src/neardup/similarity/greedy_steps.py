"""Greedy matching in steps: looked up in threads, decided one after the other; always the same.

A document is dropped only for one that was kept before it. So all documents of a step can be looked
up at once among those kept before the step, which do not change during it. A match found there is
the right one: all others of the step have a lower priority. Those that match nothing there are then
matched one after the other, as without threads.

The length of a step, and whether threads look it up first, changes no result. So both follow
earlier steps: threads pay where many documents are dropped, since all others are looked up twice,
and where the threads that choose keys would wait for the one that matches.
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
"""The number of features in the first step."""

LEAST_SECONDS, MOST_SECONDS = 0.002, 0.008
"""Processor seconds of a step for each thread: shorter steps are doubled, longer ones halved."""

SLICES_A_THREAD: Final = 4
"""The parts of a step for each thread: several, as some documents take longer than others."""

MOST_OF_ALONE: Final = 0.85
"""The share of its time in one thread that a step may take in several."""

PAST: Final = 0.75
"""The weight of all steps before the last, so that one step on a busy machine decides little."""


class Scratch:
    """Working memory of the threads that look up, a walk for each, made at first use.

    Args:
        count: How many threads.
    """

    def __init__(self, count: int) -> None:
        """Note the number of threads; nothing is allocated yet."""
        self._count = count
        self._scratch: list[Any] = []

    def walks(self, walk: Walk, index: KeyIndex) -> list[Walk]:
        """A walk for each thread, which only looks up and shares the results of `walk`."""
        if not self._scratch:
            self._scratch = [
                {
                    "seen": np.zeros_like(walk.seen),
                    "found": np.empty_like(walk.found),
                    "queue": np.empty_like(walk.queue),
                    "members": np.empty_like(walk.members),
                }
                for _ in range(self._count)
            ]
        return [
            walk._replace(keeps=False, place=index.place(thread), **each)
            for thread, each in enumerate(self._scratch)
        ]


class GreedySteps:
    """Matches documents as `match_greedy` does, in up to `workers` threads.

    Args:
        sets: The documents.
        condition: When two match.
        index: The index of the documents kept before; written.
        scratch: Working memory for `workers` threads.
        workers: Threads that look up at once, while this one waits for them.
    """

    def __init__(
        self, sets: Sets, condition: Condition, index: KeyIndex, scratch: Scratch, workers: int
    ) -> None:
        """Begin with short steps, in one thread."""
        self._sets, self._condition, self._index = sets, condition, index
        self._scratch, self._workers = scratch, workers
        self._features, self._in_threads = FIRST_STEP, False
        self._alone = self._choosing = self._dropped = self._matched = 0.0
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
            last = int(np.searchsorted(passed, passed[first] + self._features))
            last = min(max(last, first + 1), documents.size)
            part = keys._replace(offsets=keys.offsets[first : last + 1])
            in_threads = self._in_threads and last - first >= self._workers
            step = self._step_in_threads if in_threads else self._step
            seconds = step(some := documents[first:last], part, walk, stop)
            share = (passed[last] - passed[first]) / max(1, passed[-1])
            dropped = np.count_nonzero(walk.match[some] != some)
            self._dropped = PAST * self._dropped + dropped
            self._matched = PAST * self._matched + some.size
            work = self._work_in_threads if in_threads else 1.0
            self._alone = PAST * self._alone + seconds / work
            self._choosing = PAST * self._choosing + choosing * share
            self._adapt(seconds, last == documents.size)
            first = last

    def _adapt(self, seconds: float, cut: bool) -> None:
        """Plan the next step by the time of earlier ones; `cut`: the last may have been short."""
        threads, alone, choosing = self._workers, self._alone, self._choosing
        work = self._work_in_threads
        time_alone = max(alone, (alone + choosing) / threads)
        time_in_threads = max(
            alone / threads + alone * (work - 1), (alone * work + choosing) / threads
        )
        self._in_threads = threads > 1 and time_in_threads < MOST_OF_ALONE * time_alone
        if threads > 1 and seconds > threads * MOST_SECONDS:
            self._features = max(1, self._features // 2)
        elif seconds < threads * LEAST_SECONDS and not cut:
            self._features *= 2

    @property
    def _work_in_threads(self) -> float:
        """The work of a step in threads, relative to one thread: what stays is looked up twice."""
        return 2.0 - self._dropped / max(1.0, self._matched)

    def _step(self, documents: Any, keys: Keys, walk: Walk, stop: Any) -> float:
        """Match the documents of a step one after the other; returns processor seconds."""
        from neardup.kernels.similarity.match_documents import match_greedy

        start = time.thread_time()
        postings = self._index.postings
        match_greedy(documents, self._sets, self._condition, keys, postings, walk, stop)
        return time.thread_time() - start

    def _step_in_threads(self, documents: Any, keys: Keys, walk: Walk, stop: Any) -> float:
        """Look the documents of a step up in threads first; returns processor seconds of all."""
        return self._look_up(documents, keys, walk, stop) + self._step(documents, keys, walk, stop)

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
