"""Banded search: which documents have a similar one, for a stated recall below 1.

The flow: fold the feature sets of the longer documents into wide fingerprints and cut these into
slices of bits; for each of many tables put together the documents that agree on the table's key and
nearly on its check; let those pass that differ in few bits altogether, and verify the similarity on
the features. What comes out is the documents that have a partner, among which the exact join of
`similarity` then finds every match.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.runtime.arrays import frozen
from neardup.runtime.partition_by_key import by_key, even_ranges
from neardup.runtime.threads import in_threads, worker_count
from neardup.similarity.band_plans import BandPlan, bins_log2, rows_log2
from neardup.similarity.feature_sets import arguments
from neardup.similarity.recall import LEAST_FEATURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from neardup.similarity.feature_sets import FeatureSets, Match

__all__ = ["band_pairs", "documents_with_partner", "fold_sets"]

FOLD_DOCUMENTS: Final = 1 << 12
ROWS_OF_A_THREAD: Final = 1 << 20
"""Up to so many rows every thread has tables of its own; more share the work on one table."""
TABLES_AT_ONCE: Final = 4
RANGES_A_THREAD: Final = 16


def band_pairs(fingerprints: Any, plan: BandPlan, workers: int | None = None) -> Iterator[Any]:
    """Find the candidate pairs: those that share a table and differ in few bits altogether.

    Args:
        fingerprints: uint64 (n, plan.bits / 64).
        plan: From `plan_bands`, for n rows or more.
        workers: Threads; the processors at hand unless given.

    Returns:
        Chunks of int64 (p, 2): left < right, each pair once, in the same order for any workers.

    Raises:
        UsageError: If the fingerprints have another width, or are too many for the plan.
    """
    from neardup.kernels.similarity.bands import candidate_pairs

    codes = frozen(fingerprints)
    if codes.ndim != 2 or codes.shape[1] != plan.bits // 64:
        raise UsageError(f"fingerprints have shape {codes.shape}: use (n, {plan.bits // 64})")
    if len(codes) < 2:
        return
    search = _Search(codes, plan, worker_count(workers))
    wave = TABLES_AT_ONCE * search.workers
    for first in range(0, plan.tables, wave):
        found: dict[tuple[int, int], Any] = {}

        def join(
            bins: Any, bound: tuple[int, int], scratch: Any, found: dict[Any, Any] = found
        ) -> None:
            pairs = candidate_pairs(search.tables, bins, *bound, scratch)
            found[bins.table, bound[0]] = pairs.reshape(-1, 2)

        search.visit(range(first, min(first + wave, plan.tables)), join)
        yield from (found[place] for place in sorted(found))


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
    chosen = (sizes - 1) * match.kind.size_ratio(match.similarity) < LEAST_FEATURES
    rows = np.flatnonzero(sizes >= LEAST_FEATURES)
    flags = np.ascontiguousarray(chosen[rows], np.uint8)
    if not flags.all():
        threads = worker_count(workers)
        codes = frozen(fold_sets(sets, rows, plan.bits // 64, threads))
        _flag(_Search(codes, plan, threads), flags, rows, sets, match)
    chosen[rows] = flags
    return np.flatnonzero(chosen)


def _flag(search: _Search, flags: Any, rows: Any, sets: FeatureSets, match: Match) -> None:
    """Write flags (uint8, one for each of `rows`) = 1 where a document has a partner."""
    from neardup.kernels.similarity.bands import Documents, flag_partners
    from neardup.kernels.similarity.members import members_room

    documents = Documents(rows, *arguments(sets, match))

    def flag(bins: Any, bound: tuple[int, int], scratch: Any) -> None:
        flag_partners(search.tables, bins, *bound, documents, flags, scratch)

    search.room = members_room(int(np.diff(sets.offsets).max()))
    wave = TABLES_AT_ONCE * search.workers
    for first in range(0, search.plan.tables, wave):
        search.visit(range(first, min(first + wave, search.plan.tables)), flag)
        sets.forget()


def fold_sets(sets: FeatureSets, rows: Any, width: int, workers: int | None = None) -> Any:
    """Fold the feature sets of documents `rows` (int64) into fingerprints; uint64 (m, width).

    Every feature has weight 1, whatever the recipe's weights: the similarity is that of sets.
    """
    from neardup.kernels.similarity.bands import fold_rows

    out = np.empty((rows.size, width), np.uint64)

    def fold(_: int, begin: int) -> None:
        part = slice(begin, begin + FOLD_DOCUMENTS)
        fold_rows(sets.features, sets.offsets, rows[part], out[part])
        sets.forget()

    in_threads(worker_count(workers), fold, range(0, rows.size, FOLD_DOCUMENTS))
    return out


class _Search:
    """Fingerprints, whole and in slices, and the working memory of the threads."""

    def __init__(self, codes: Any, plan: BandPlan, workers: int) -> None:
        from neardup.kernels.similarity.bands import BandTables

        self.plan, self.workers, self.room = plan, workers, 0
        self.count = len(codes)
        keys, checks = (frozen(masks) for masks in plan.masks())
        self.tables = BandTables(codes, keys, checks, plan.check_distance, plan.distance)
        self.bits = plan.bit_order()
        self.slices = self._cut()
        alone = self.count <= ROWS_OF_A_THREAD
        self._together, self._inside = (workers, 1) if alone else (1, workers)
        self._bins = [_Bins(self, self._inside) for _ in range(self._together)]

    def _cut(self) -> Any:
        """The slices of all bits, every bit at its own place."""
        from neardup.kernels.squares import BLOCK_ROWS, slice_rows

        bits, flat = self.plan.bits, self.tables.codes.reshape(-1)
        slices = np.empty(self.blocks * bits * BLOCK_ROWS // 64, np.uint64)
        places = np.arange(bits)

        def cut(_: int, bound: tuple[int, int]) -> None:
            slice_rows(flat, bits // 64, *bound, places, slices)

        in_threads(self.workers, cut, even_ranges(self.blocks, self.workers * RANGES_A_THREAD))
        return frozen(slices)

    @property
    def blocks(self) -> int:
        """Blocks of slices."""
        from neardup.kernels.squares import BLOCK_ROWS

        return -(-self.count // BLOCK_ROWS)

    @cached_property
    def form(self) -> Any:
        """Where the parts of an entry are."""
        from neardup.kernels.similarity.entries import Form

        plan = self.plan
        bin_bits = min(bins_log2(self.count), plan.key_bits)
        rest, row_bits = plan.key_bits - bin_bits, rows_log2(self.count)
        if rest + plan.check_bits + row_bits > 64:
            raise UsageError(f"the plan is for fewer documents than {self.count:,}: plan for them")
        key = (1 << 64) - (1 << 64 - rest)
        check = (1 << 64 - rest) - (1 << 64 - rest - plan.check_bits)
        return Form(
            bin_bits, rest, np.uint64(key), np.uint64(check), np.uint64((1 << row_bits) - 1),
            plan.check_distance,
        )  # fmt: skip

    def visit(self, tables: range, work: Callable[[Any, tuple[int, int], Any], None]) -> None:
        """Call work(bins, (first, last), scratch) in threads for ranges of all bins of tables."""

        def visit(slot: int, table: int) -> None:
            place = self._bins[slot]
            bins = place.fill(table)
            size = int(np.diff(bins.starts).max())

            def run(thread: int, bound: tuple[int, int]) -> None:
                work(bins, bound, place.scratch(thread, size))

            in_threads(self._inside, run, even_ranges(len(bins.starts) - 1, place.pieces))

        in_threads(self._together, visit, tables)


class _Bins:
    """Entries of one table by their bins; the arrays are used again for the next."""

    def __init__(self, search: _Search, workers: int) -> None:
        self._search, self._workers = search, workers
        self.pieces = 1 if workers == 1 else workers * RANGES_A_THREAD
        self._entries = np.empty(search.count, np.uint64)
        self._scratch: dict[int, Any] = {}

    def fill(self, table: int) -> Any:
        """Partition by a table's key, every thread its own range of blocks; stable."""
        from neardup.kernels.similarity.bands import Bins
        from neardup.kernels.similarity.entries import count_entries, scatter_entries

        search = self._search
        bits, form = _places(search.bits[table]), search.form
        slices, rows = search.slices, search.count

        def count(first: int, last: int, counts: Any) -> None:
            count_entries(slices, rows, first, last, bits, form, counts)

        def scatter(first: int, last: int, places: Any) -> None:
            scatter_entries(slices, rows, first, last, bits, form, places, self._entries)

        ranges = even_ranges(search.blocks, self._workers)
        starts = by_key(ranges, 1 << form.bin_bits, self._workers, count, scatter)
        return Bins(table, self._entries, starts, search.form)

    def scratch(self, thread: int, rows: int) -> Any:
        """Working memory of a thread, for bins of so many rows."""
        from neardup.kernels.similarity.bands import Scratch
        from neardup.kernels.similarity.entries import PADDING

        if thread not in self._scratch or len(self._scratch[thread].plain) < rows:
            room = max(1, rows + rows // 4)
            self._scratch[thread] = Scratch(
                np.empty(2 * room, np.int64), np.zeros(room + PADDING, np.uint64),
                np.empty(room, np.int64), np.empty(room, np.int64),
                np.empty(self._search.room, np.uint64), np.empty(1, np.int64),
            )  # fmt: skip
        return self._scratch[thread]


def _places(bits: Any) -> Any:
    """Which bit of a fingerprint each bit of a word is, the first ones uppermost: int64 (64,)."""
    places = np.full(64, -1, np.int64)
    places[64 - len(bits) :] = bits[::-1]
    return places
