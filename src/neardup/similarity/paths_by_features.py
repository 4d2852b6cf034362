"""The matches that lead from a dropped document of a transitive group to the one kept for it.

The flow: documents that match their kept one are one step from it. The others of their groups are
put under their keys, and the walk goes outwards from those: each document takes out of the keys
what it matches, which is one step further. Equal documents go the same way: the first of them is
looked up, for all. So the time is that of one join, and grows with the documents and not with the
pairs of a group or the length of its paths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.runtime.arrays import cut, frozen
from neardup.runtime.threads import ahead, worker_count
from neardup.similarity.feature_counts import rarity
from neardup.similarity.feature_sets import FeatureSets, arguments, similarities
from neardup.similarity.key_choice import rare_keys, sample_keys
from neardup.similarity.spilled import batches_of_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.kernels.paths import Meeting
    from neardup.kernels.similarity.join_arguments import Keys, Rarity
    from neardup.similarity.feature_sets import Match

__all__ = ["paths_by_features"]

CHUNK_FEATURES: Final = 1 << 20
"""The approximate number of features for which keys are chosen at a time."""
STEPS_AT_ONCE: Final = 1 << 12
"""The number of documents between two checks for an interrupt."""
BYTES_A_FEATURE: Final = 16
"""The bytes of a feature's copy and its count."""


def paths_by_features(
    sets: FeatureSets, kept_by: Any, score: Any, match: Match, workers: int | None = None
) -> Any:
    """The next document on a shortest path from each dropped document to the kept one.

    Args:
        sets: The documents.
        kept_by: int64 (n,): the document kept for each; the two are joined by matches.
        score: float64 (n,): the similarity of the two.
        match: When two documents match.
        workers: Number of threads; by default all available processors.

    Returns:
        int64 (n,): the next document on the path, of several the first; a kept one names itself.
    """
    via = kept_by.copy()
    near, far = _by_first_step(sets, kept_by, score, match)
    if far.any():
        walk = _Walk(sets, kept_by, far, via, match, worker_count(workers))
        documents = np.flatnonzero(near | far)
        first = walk.first_equal(documents)
        looked_up = documents[first == documents]
        most = walk.most_keys()
        limit = int(most.sum()) if sets.spill is None else sets.spill.most_keys
        for batch in batches_of_groups(kept_by, looked_up, most, limit):
            walk.reach(batch)
        via[documents] = via[first]
    return via


def _by_first_step(sets: FeatureSets, kept_by: Any, score: Any, match: Match) -> tuple[Any, Any]:
    """Dropped documents that match their kept one, and the others, of groups with both."""
    dropped = kept_by != np.arange(len(kept_by))
    near = dropped & (score >= match.similarity)
    if match.distance is not None:
        apart = np.bitwise_count(sets.codes ^ sets.codes[kept_by]).sum(axis=1, dtype=np.int64)
        near &= apart <= match.distance
    far = dropped & ~near
    has_far = np.zeros(len(kept_by), np.bool_)
    has_far[kept_by[far]] = True
    return near & has_far[kept_by], far


class _Walk:
    """The walk outwards from kept documents, group by group; it writes `via`."""

    def __init__(
        self, sets: FeatureSets, kept_by: Any, far: Any, via: Any, match: Match, workers: int
    ) -> None:
        from neardup.kernels.paths import Paths
        from neardup.kernels.similarity.members import members_room
        from neardup.similarity.sketches import sketch_words

        n, sizes = len(sets), np.diff(sets.offsets)
        self._input, self._far, self._match, self._workers = sets, far, match, workers
        self._sets, self._condition = arguments(sets, match)
        sketches = np.empty((n, sketch_words(sizes, match, sets.cell_limit)), np.uint64)
        members = np.empty(members_room(int(sizes.max(initial=0))), np.uint64)
        self._paths = Paths(
            frozen(kept_by), via, (~far).astype(np.uint8), np.zeros(n, np.uint32), sketches,
            members,
        )  # fmt: skip

    def first_equal(self, documents: Any) -> Any:
        """The first document of the group with equal features, for each of some documents."""
        from neardup.kernels.paths import set_hashes

        parts = self._chunks(documents)
        hashes = np.concatenate(
            list(ahead(self._workers, lambda part: set_hashes(part, self._sets), parts))
        )
        group, codes, first = self._paths.group[documents], self._input.codes, documents.copy()
        order = np.lexsort((hashes, group))
        begins = np.append(True, (np.diff(hashes[order]) != 0) | (np.diff(group[order]) != 0))
        first[order] = documents[order][begins][np.cumsum(begins) - 1]
        later = np.flatnonzero(first != documents)
        pairs = documents[later], first[later]
        equal = similarities(self._input, *pairs) == 1.0
        equal &= (codes[pairs[0]] == codes[pairs[1]]).all(axis=1)
        first[later[~equal]] = documents[later[~equal]]
        return first

    def most_keys(self) -> Any:
        """The most keys of each document; int64 (n,)."""
        sizes = np.diff(self._input.offsets)
        return np.where(self._far, self._match.prefixes(sizes), 0)

    def reach(self, documents: Any) -> None:
        """Walk through whole groups, in which these ascending documents are looked up."""
        from neardup.kernels.paths import first_steps, further_steps

        rarity = self._rarity(documents)
        far = self._far[documents]
        rest = frozen(documents[far])
        sample = sample_keys(rest, self._sets, rarity, self._condition, self._match)
        rarity = rarity._replace(common=sample.most_rare)
        keys = self._choose(rest, rarity)
        arrays = self._sets, self._condition, self._meeting(rest, keys), self._paths
        chosen = ahead(
            self._workers,
            lambda part: (part, self._choose(part, rarity)),
            self._chunks(documents[~far]),
        )
        for part, its_keys in chosen:
            first_steps(part, its_keys, *arrays)
            self._input.forget()
        # In one thread: of several documents that reach another, the first in order is its next.
        while further_steps(rest, keys, *arrays, STEPS_AT_ONCE):
            pass
        self._input.forget()

    def _chunks(self, documents: Any) -> Iterator[Any]:
        sizes = np.diff(self._input.offsets)[documents]
        return (frozen(documents[begin:end]) for begin, end in cut(sizes, CHUNK_FEATURES))

    def _rarity(self, documents: Any) -> Rarity:
        """The document frequencies of these documents' features, or of all if these are many."""
        from neardup.kernels.similarity.join_arguments import Rarity
        from neardup.kernels.similarity.rare_keys import MOST

        sets, sizes = self._input, np.diff(self._input.offsets)[documents]
        total = int(sizes.sum())
        if total * BYTES_A_FEATURE > sets.cell_limit:
            return Rarity(*rarity(sets, self._workers), MOST)
        ends = np.cumsum(sizes)
        places = np.arange(total) + np.repeat(sets.offsets[documents] - (ends - sizes), sizes)
        offsets = np.append(0, ends)
        some = FeatureSets(sets.features[places], offsets, sets.codes, cell_limit=sets.cell_limit)
        return Rarity(*rarity(some, self._workers), MOST)

    def _choose(self, documents: Any, rarity: Rarity) -> Keys:
        """Write the sketches of documents, and choose their keys."""
        from neardup.kernels.similarity.postings import write_sketches

        write_sketches(documents, self._sets, self._condition, self._paths.sketches)
        return rare_keys(documents, self._sets, rarity, self._condition)

    def _meeting(self, documents: Any, keys: Keys) -> Meeting:
        """The index of documents by their keys, and an empty queue."""
        from neardup.kernels.paths import Meeting, Queue, name_keys, under_names

        owners = np.repeat(documents, np.diff(keys.offsets))
        names = name_keys(keys.keys, owners, self._paths.group)
        unreached, order = under_names(names, owners)
        queue = Queue(np.empty(documents.size, np.int64), np.zeros(3, np.int64))
        return Meeting(unreached, keys.before[order], queue)
