"""The exact join: finds all documents whose feature sets are similar.

The flow: count in how many documents each feature is; choose the rare features by which each
document is found; walk the documents in order of priority, look up who was kept under the same
features, and verify the similarity on the features themselves. Nothing is missed, and nothing below
the threshold is matched: recall and precision are 1 by construction.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.runtime.arrays import frozen
from neardup.runtime.threads import ahead, read_ahead, worker_count
from neardup.similarity.feature_counts import rarity
from neardup.similarity.feature_sets import FeatureSets, Match, Work, arguments
from neardup.similarity.greedy_steps import MOST_AT_ONCE, GreedySteps, Scratch
from neardup.similarity.key_choice import rare_keys, sample_keys
from neardup.similarity.key_index import KeyIndex
from neardup.similarity.spilled import (
    KEYS_A_PART,
    KeyFile,
    batches_of_groups,
    joined_parts,
    small_groups,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from neardup.kernels.similarity.join_arguments import Keys
    from neardup.similarity.spilled import Spill

__all__ = ["nearest_before", "similar_components", "similar_greedy", "similar_sets"]

CHUNK_FEATURES: Final = 1 << 20
"""The approximate number of features in a chunk."""

SAMPLE_STEP: Final = 16
SAMPLE_RUN: Final = 64
"""The length of a run of neighbours in the sample, which has one document in SAMPLE_STEP."""

PARTS_A_CHUNK: Final = 512
"""With more parts than this, keys are written for larger chunks, so that the keys of a part lie
together."""

MOST_DECIDED: Final = 32
"""The most documents of a group that is decided by comparing each with those kept; larger groups
get an index."""


def similar_greedy(
    sets: FeatureSets,
    order: Any,
    match: Match,
    workers: int | None = None,
    work: Work | None = None,
    first_new: int = 0,
) -> tuple[Any, Any]:
    """Keep documents in order of priority; drop one only if it is similar to a kept one.

    Args:
        sets: The documents; one without features is always kept.
        order: int64: the documents from the highest priority to the lowest; one that is left out
            matches nothing.
        match: When two documents match.
        workers: Number of threads; by default all available processors.
        work: Told what the search took.
        first_new: The number of documents, first in order, that are kept whatever they resemble.

    Returns:
        kept_of: int64 (n,): for a dropped document the kept one of highest priority that it is
        similar to, for a kept one itself; and score: float64 (n,), the similarity of the two.
    """
    run = _Run(sets, order, match, worker_count(workers), first_new)
    for batch in run.batches_of_groups(decide=True):
        run.restrict(batch)
        run.match_greedy()
    if work is not None:
        work.postings, work.candidates = run.work()
    return run.walk.match, run.walk.score


def similar_components(sets: FeatureSets, match: Match, workers: int | None = None) -> Any:
    """Label transitive groups of similar documents; int64 (n,), the group's first document."""
    from neardup.kernels.similarity.match_documents import match_components

    documents = _any_order(sets, match)
    run = _Run(sets, documents, match, worker_count(workers))
    parts, spill = run.parts(), sets.spill
    if parts > 1 and spill is not None:
        run.unite_parts(parts, spill)
    else:
        run.match_all(match_components)
    return _roots(run.walk.match)


def similar_sets(sets: FeatureSets, match: Match, workers: int | None = None) -> Iterator[Any]:
    """Find every similar pair; yields int64 (p, 2): left, right; left < right."""
    from neardup.kernels.similarity.match_documents import match_pairs

    documents = _any_order(sets, match)
    run = _Run(sets, documents, match, worker_count(workers))
    return (pairs.reshape(-1, 2) for pairs in run.chunks(match_pairs))


def _any_order(sets: FeatureSets, match: Match) -> Any:
    """The order of documents in which matching all of them is least work.

    By containment the smaller come first: then what is verified are the features of the smaller,
    which end once too few are shared.
    """
    documents = np.arange(len(sets))
    if match.kind.bounds_sizes:
        return documents
    return documents[np.argsort(np.diff(sets.offsets)[documents], kind="stable")]


def nearest_before(
    sets: FeatureSets,
    order: Any,
    match: Match,
    workers: int | None = None,
    work: Work | None = None,
    most: int | None = None,
) -> tuple[Any, Any, int]:
    """The most similar document of higher priority for each document; exact.

    Args:
        sets: The documents; one without features matches nothing.
        order: int64: the documents from the highest priority to the lowest.
        match: Least similarity, and distance, of what is found.
        workers: Number of threads; by default all available processors.
        work: Told what the search took.
        most: Stop after about this number of verified pairs; None: never.

    Returns:
        nearest: int64 (n,): that document, or the document itself; score: float64 (n,), their
        similarity, 0 if there is none; and how many documents, the last in order, were not reached.
    """
    from neardup.kernels.similarity.match_documents import match_nearest

    run = _Run(sets, order, match, worker_count(workers))
    verified = postings = missed = 0
    for batch in run.batches_of_groups():
        if most is not None and verified >= most:
            missed += batch.size
            continue
        run.restrict(batch)
        missed += run.match_some(match_nearest, None if most is None else most - verified)
        keys, pairs = run.work()
        postings, verified = postings + keys, verified + pairs
    if work is not None:
        work.postings, work.candidates = postings, verified
    nearest, score = run.walk.match, run.walk.score
    return nearest, np.where(nearest == np.arange(nearest.size), 0.0, score), missed


class _Run:
    """A walk over documents with an index of the documents before."""

    def __init__(
        self, sets: FeatureSets, order: Any, match: Match, workers: int, first_new: int = 0
    ) -> None:
        from neardup.kernels.similarity.join_arguments import Rarity, Walk
        from neardup.kernels.similarity.members import members_room
        from neardup.kernels.similarity.rare_keys import MOST
        from neardup.kernels.similarity.sketch_filter import QUEUE, QUEUE_COLUMNS
        from neardup.similarity.sketches import entry_words, sketch_words

        n, sizes = len(sets), np.diff(sets.offsets)
        self._input, self._rule = sets, match
        self._sets, self._condition = arguments(sets, match)
        self._order = np.ascontiguousarray(order, np.int64)
        self._workers = workers
        alone = Rarity(*rarity(sets, workers), MOST)
        sample = sample_keys(self._order, self._sets, alone, self._condition, match)
        self._rarity = alone._replace(common=sample.most_rare)
        self._entry_words = entry_words(sizes, match, sample.looks)
        self._index = KeyIndex(n, self._entry_words, sets.spill, workers)
        rank = np.empty(n, np.int64)
        rank[self._order] = np.arange(self._order.size)
        members = np.empty(members_room(int(sizes.max(initial=0))), np.uint64)
        seen, matches = np.zeros(n, np.uint32), np.empty(n, np.int64)
        words = sketch_words(sizes, match, sets.cell_limit)
        sketches = np.empty((n, words), np.uint64)
        queue = np.empty((QUEUE, QUEUE_COLUMNS), np.int64)
        self.walk = Walk(
            rank, first_new, seen, matches, queue, sketches, members, 0, True, np.arange(n),
            np.ones(n),
        )  # fmt: skip
        self._scratch = Scratch(self.walk, workers)

    def work(self) -> tuple[int, int]:
        """The number of keys in the index, and of verified candidates."""
        return self._index.keys, self._index.verified

    def match_all(self, kernel: Any) -> None:
        """Match all documents; `walk` has the results."""
        for _ in self.chunks(kernel):
            pass

    def match_greedy(self) -> None:
        """Keep or drop all documents chunk by chunk, in threads where these pay."""
        n, threads = self.walk.match.size, min(self._workers, MOST_AT_ONCE)
        fresh = [KeyIndex(n, self._entry_words, None) for _ in range(threads)]
        arrays = self._sets, self._condition, self._index, fresh, self._scratch
        with GreedySteps(*arrays, self._workers) as steps, ThreadPoolExecutor(1) as matcher:
            for documents, keys, seconds in ahead(self._workers, self._timed_keys, self._parts()):
                self._make_room(keys)
                self._wait_for(matcher, steps.match, documents, keys, self.walk, seconds)

    def match_some(self, kernel: Any, most: int | None) -> int:
        """Match documents until a number of pairs is verified; returns how many are left."""
        parts, left = self._parts(), self._order.size
        chunks = self.chunks(kernel)
        with contextlib.closing(chunks):
            for part, _ in zip(parts, chunks, strict=True):
                left -= part.size
                if most is not None and self.work()[1] >= most and left:
                    return int(left)
        return 0

    def chunks(self, kernel: Any) -> Generator[Any]:
        """Match chunk by chunk; during each, threads choose the keys of the next chunk.

        `kernel` is `match_components`, `match_nearest` or `match_pairs`; yields what it returns.
        """
        # Keys of later chunks are chosen in other threads, which read the sets and write sketches
        # of their own documents; the index belongs to the one matcher, chunk after chunk in order.
        with ThreadPoolExecutor(1) as matcher:
            chosen = ahead(self._workers, self._keys_and_sketches, self._parts())
            for documents, keys in chosen:
                yield self._match(matcher, kernel, documents, keys)

    def restrict(self, order: Any) -> None:
        """Restart with an empty index, for some of the documents in their order of priority."""
        self._order = order
        self._index.clear()

    def parts(self) -> int:
        """The number of parts of the index, estimated from the keys of a sample."""
        spill = self._input.spill
        if spill is None or not self._rarity.common or spill.parts(self._most_keys()) == 1:
            return 1
        places = np.arange(self._order.size)
        sample = self._order[places // SAMPLE_RUN % SAMPLE_STEP == 0]
        return spill.parts(self._select(sample).keys.size * self._order.size // sample.size)

    def batches_of_groups(self, *, decide: bool = False) -> Iterator[Any]:
        """Batches of whole groups; one where the index of all is small.

        With `decide`, small groups are decided as by `match_greedy` instead of being given.
        """
        parts, spill = self.parts(), self._input.spill
        if parts == 1 or spill is None:
            yield self._order
            return
        self.unite_parts(parts, spill)
        labels, order = _roots(self.walk.match), self._order
        self.walk = self.walk._replace(match=np.arange(labels.size))
        self.walk.seen[:] = 0
        if decide:
            order = self._decide_small_groups(labels)
        yield from batches_of_groups(labels, order, self._prefixes(), spill.most_keys)

    def unite_parts(self, parts: int, spill: Spill) -> None:
        """Unite similar documents, with one part of the index at a time."""
        from neardup.kernels.similarity.match_documents import match_components

        with KeyFile(parts, spill.tmp) as file, ThreadPoolExecutor(1) as matcher:

            def keys_by_part(documents: Any) -> tuple[Any, Any]:
                return file.by_part(*self._keys_and_sketches(documents))

            def useful(number: int) -> tuple[Any, Any, Any, Any]:
                # Documents are being united; those not yet known to be are found again.
                return file.part(number, self.walk.match)

            chunks = self._parts(max(1, parts // PARTS_A_CHUNK))
            for records, ends in ahead(self._workers, keys_by_part, chunks):
                file.add(records, ends)
                self._input.forget()
            # Half of the index at a time: the next half is put together while one is united.
            most = max(1, spill.most_keys // 2)
            sifted = ahead(self._workers, useful, range(parts))
            for documents, keys in read_ahead(joined_parts(sifted, min(KEYS_A_PART, most), most)):
                self._index.clear()
                self._match(matcher, match_components, documents, keys)

    def _decide_small_groups(self, labels: Any) -> Any:
        """Decide many small groups at a time; returns the documents of the larger groups."""
        from neardup.kernels.similarity.join_parts import decide_groups

        documents, begins, rest = small_groups(labels, self._order, MOST_DECIDED)
        passed = np.append(0, np.cumsum(np.diff(self._sets.offsets)[documents]))[begins]
        cuts = np.searchsorted(passed, np.arange(0, passed[-1], CHUNK_FEATURES))
        cuts = np.append(np.unique(cuts), begins.size - 1)

        arrays = self._sets, self._condition, self.walk

        def decide(chunk: tuple[int, int]) -> int:
            some = begins[chunk[0] : chunk[1] + 1]
            verified: int = decide_groups(documents, some, *arrays, self.walk.members.size)
            return verified

        for verified in ahead(self._workers, decide, itertools.pairwise(cuts.tolist())):
            self._index.add_verified(verified)
            self._input.forget()
        return rest

    def _match(self, matcher: ThreadPoolExecutor, kernel: Any, documents: Any, keys: Keys) -> Any:
        self._make_room(keys)
        arguments = self._sets, self._condition, keys, self._index.postings, self.walk
        return self._wait_for(matcher, kernel, frozen(documents), *arguments)

    def _make_room(self, keys: Keys) -> None:
        self._index.make_room(keys.keys, self._most_keys)

    def _wait_for(
        self, matcher: ThreadPoolExecutor, work: Callable[..., Any], *arguments: Any
    ) -> Any:
        """The result of work(*arguments, stop), called in a thread."""
        stop = np.zeros(1, np.uint8)
        matching = matcher.submit(work, *arguments, stop)
        try:
            matches = matching.result()
        except BaseException:  # an interrupt must not wait for the kernel
            stop[0] = 1
            raise
        self._input.forget()
        return matches

    def _keys_and_sketches(self, documents: Any) -> tuple[Any, Keys]:
        from neardup.kernels.similarity.postings import write_sketches

        documents = frozen(documents)
        keys = self._select(documents)
        write_sketches(documents, self._sets, self._condition, self.walk.sketches)
        return documents, keys

    def _timed_keys(self, documents: Any) -> tuple[Any, Keys, float]:
        """The result of `_keys_and_sketches`, and its processor seconds."""
        start = time.thread_time()
        documents, keys = self._keys_and_sketches(documents)
        return documents, keys, time.thread_time() - start

    def _prefixes(self) -> Any:
        """The approximate most keys of each document; int64 (n,)."""
        return self._rule.prefixes(np.diff(self._sets.offsets))

    def _most_keys(self) -> int:
        """The approximate most keys of all documents."""
        return int(self._prefixes()[self._order].sum())

    def _parts(self, chunks: int = 1) -> Iterator[Any]:
        """The documents in order, a number of chunks at a time."""
        features = chunks * CHUNK_FEATURES
        sizes = np.diff(self._sets.offsets)[self._order]
        bounds = np.searchsorted(
            np.cumsum(sizes), np.arange(features, sizes.sum(), features), side="left"
        )
        return (part for part in np.split(self._order, np.unique(bounds)) if part.size)

    def _select(self, documents: Any) -> Keys:
        return rare_keys(documents, self._sets, self._rarity, self._condition)


def _roots(forest: Any) -> Any:
    """The first document of each document's group."""
    while not np.array_equal(forest, forest[forest]):
        forest = forest[forest]
    return forest
