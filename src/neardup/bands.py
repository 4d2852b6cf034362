"""Banded search: which documents have a similar one, for a stated recall below 1.

The flow: fold the feature sets of the longer documents into wide fingerprints; for each of many
tables put together the documents that agree on the table's bits; let those pass that differ in few
bits altogether, and verify the similarity on the features. What comes out is the documents that
have a partner, among which the exact join of `similarity` then finds every match.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.band_planner import LEAST_FEATURES, BandPlan
from neardup.errors import UsageError
from neardup.partition import frozen, in_threads, multipliers
from neardup.recipe import MAX_BITS
from neardup.workers import worker_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from neardup.similarity import FeatureSets, Match

__all__ = ["band_pairs", "documents_with_partner", "fold_sets"]

ROWS_A_BIN: Final = 1 << 11
MOST_BINS_LOG2: Final = 13
FOLD_DOCUMENTS: Final = 1 << 12


def band_pairs(fingerprints: Any, plan: BandPlan, workers: int | None = None) -> Iterator[Any]:
    """Find the candidate pairs: those that share a key and differ in `plan.distance` bits or less.

    Args:
        fingerprints: uint64 (n, plan.bits / 64).
        plan: From `plan_bands`.
        workers: Threads; the processors at hand unless given.

    Returns:
        Chunks of int64 (p, 2): left < right, each pair once.

    Raises:
        UsageError: If the fingerprints have another width.
    """
    from neardup.kernels.bands import candidate_pairs

    words, masks = frozen(fingerprints), plan.masks()
    if words.ndim != 2 or words.shape[1] != masks.shape[1]:
        raise UsageError(f"fingerprints have shape {words.shape}: use (n, {masks.shape[1]})")
    bins = _Bins(words, frozen(masks), worker_count(workers))
    for table in range(len(masks)):
        found: dict[int, Any] = {}

        def join(slot: int, bound: tuple[int, int], table: int, found: dict[int, Any]) -> None:
            bucket = (bins.hashes, bins.ids, bins.starts, *bound)
            scratch = bins.scratch(slot)
            pairs = candidate_pairs(*bucket, words, bins.masks, table, plan.distance, scratch)
            found[bound[0]] = pairs.reshape(-1, 2)

        bins.visit(table, partial(join, table=table, found=found))
        yield from (found[first] for first in sorted(found))


def documents_with_partner(
    sets: FeatureSets, match: Match, plan: BandPlan, workers: int | None = None
) -> Any:
    """Find the documents that may match others: small ones, and those that the bands find a match.

    The result does not depend on workers or memory.

    Args:
        sets: The documents.
        match: When two match.
        plan: From `plan_bands` for match.similarity, match.measure and the number of documents.
        workers: Threads; the processors at hand unless given.

    Returns:
        int64, ascending: every pair of matching documents of which one has fewer than
        LEAST_FEATURES features is among them, and any other with the plan's recall or better.
    """
    sizes = np.diff(sets.offsets)
    power = 2 if match.measure == "cosine" else 1
    chosen = sizes < LEAST_FEATURES / match.similarity**power + 1
    rows = np.flatnonzero(sizes >= LEAST_FEATURES)
    flags = np.ascontiguousarray(chosen[rows], np.uint8)
    if not flags.all():
        threads = worker_count(workers)
        bins = _Bins(
            frozen(fold_sets(sets, rows, plan.bits // 64, threads)), frozen(plan.masks()), threads
        )
        _flag(bins, plan.distance, flags, rows, sets, match)
    chosen[rows] = flags
    return np.flatnonzero(chosen)


def _flag(
    bins: _Bins, distance: int, flags: Any, rows: Any, sets: FeatureSets, match: Match
) -> None:
    """Write flags (uint8, one for each of `rows`) = 1 where a document has a partner."""
    from neardup.kernels.bands import flag_partners
    from neardup.similarity import MEASURES

    groups = np.zeros(0, np.int32) if sets.groups is None else sets.groups
    rule = (
        MEASURES.index(match.measure), float(match.similarity), sets.words,
        MAX_BITS if match.distance is None else match.distance,
    )  # fmt: skip
    room = 4 * int(np.diff(sets.offsets).max()) + 4
    members = [np.empty(room, np.uint64) for _ in range(bins.workers)]

    def flag(slot: int, bound: tuple[int, int], table: int) -> None:
        flag_partners(
            bins.hashes, bins.ids, bins.starts, *bound, bins.words, bins.masks, table, distance,
            bins.scratch(slot), flags, rows, sets.features, sets.offsets, groups, *rule,
            members[slot],
        )  # fmt: skip

    for table in range(len(bins.masks)):
        bins.visit(table, partial(flag, table=table))
        sets.forget()


def fold_sets(sets: FeatureSets, rows: Any, words: int, workers: int | None = None) -> Any:
    """Fold the feature sets of documents `rows` (int64) into fingerprints; uint64 (m, words).

    Every feature has weight 1, whatever the recipe's weights: the similarity is that of sets.
    """
    from neardup.kernels.bands import fold_rows

    out = np.empty((rows.size, words), np.uint64)

    def fold(_: int, begin: int) -> None:
        part = slice(begin, begin + FOLD_DOCUMENTS)
        fold_rows(sets.features, sets.offsets, rows[part], out[part])
        sets.forget()

    in_threads(worker_count(workers), fold, range(0, rows.size, FOLD_DOCUMENTS))
    return out


class _Bins:
    """Rows partitioned by the hash of one table's key; the arrays are used again for the next."""

    def __init__(self, words: Any, masks: Any, workers: int) -> None:
        n = len(words)
        self.workers = workers
        self.hashes, self.ids = np.empty(n, np.uint64), np.empty(n, np.uint32)
        self._keys, self.starts = np.empty(n, np.uint64), np.zeros(1, np.int64)
        self._odd = frozen(np.array(multipliers(masks.shape[1]), np.uint64))
        self.words, self.masks = words, masks
        self._bits = max(1, min(MOST_BINS_LOG2, (n // ROWS_A_BIN).bit_length()))
        self._scratch: dict[int, Any] = {}

    def visit(self, table: int, work: Callable[[int, tuple[int, int]], None]) -> None:
        """Call work(slot, (first, last)) in threads for ranges of bins of one table."""
        self._fill(table)
        in_threads(self.workers, work, self._parts())

    def _fill(self, table: int) -> None:
        """Partition by a table's key, every thread its own range of rows; stable."""
        from neardup.kernels.bands import hash_keys, scatter_keys

        n = len(self.words)
        share = max(1, -(-n // self.workers) if n > 1 << 16 else n)
        ranges = [(t, low, min(low + share, n)) for t, low in enumerate(range(0, n, share))]
        counts = np.zeros((max(1, len(ranges)), 1 << self._bits), np.int64)
        shift, mask = np.uint64(64 - self._bits), self.masks[table]

        def count(_: int, part: tuple[int, int, int]) -> None:
            t, low, high = part
            hash_keys(self.words, low, high, mask, self._odd, shift, self._keys, counts[t])

        in_threads(self.workers, count, ranges)
        ends = np.cumsum(counts.T.ravel()).reshape(-1, len(counts)).T
        self.starts = np.append(0, ends[-1])
        places = np.ascontiguousarray(ends - counts)

        def scatter(_: int, part: tuple[int, int, int]) -> None:
            t, low, high = part
            scatter_keys(self._keys, low, high, shift, places[t], self.hashes, self.ids)

        in_threads(self.workers, scatter, ranges)

    def _parts(self) -> list[tuple[int, int]]:
        """Ranges of bins, enough of them to keep the threads busy."""
        cuts = np.linspace(0, 1 << self._bits, self.workers * 16 + 1).astype(np.int64)
        edges = np.unique(cuts).tolist()
        return list(pairwise(edges))

    def scratch(self, slot: int) -> Any:
        """Working memory of a thread, for the largest bin of this table: int32 (3, slots)."""
        largest = int(np.diff(self.starts).max(initial=1))
        size = 2 << largest.bit_length()
        if slot not in self._scratch or self._scratch[slot].shape[1] < size:
            self._scratch[slot] = np.empty((3, size), np.int32)
        return self._scratch[slot]
