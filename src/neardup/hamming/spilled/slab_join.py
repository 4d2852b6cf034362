"""The join of fingerprints that exceed memory: slab by slab, each by the engine of `join`.

Plan of a join, for a plan of m blocks of which c agree:
1. count how many rows lie in each bin of every block that can come first: one pass over the file;
2. for each such block cut the bins into slabs that fit in memory; for each slab read the file,
   keep the slab's rows, and find the pairs whose first block to agree on is this one;
3. a bin too large for memory goes to a file of its own and is joined by other bits.

Rows that agree on a block share its bin, and a bin is in one slab, so every pair is seen, and the
rule of `kernels/hamming/bucket_join.py` reports it once. Only what step 3 needs is written: reading
the input again for each slab costs less than writing and reading it by slabs
(docs/design/scale.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.join.join_engine import join_block, solve
from neardup.hamming.join.problem import Engine, Problem
from neardup.hamming.join.row_partition import Partition
from neardup.hamming.plans.blocks import SAMPLE_ROWS, multipliers_of
from neardup.hamming.plans.join_costs import JOIN_BUCKET_BYTES, JOIN_MOST_BINS_LOG2
from neardup.hamming.plans.join_plan import plan_pairs
from neardup.hamming.spilled.mergers import Pieces, SlabMerger
from neardup.hamming.spilled.row_file import RowFile, clear_bits
from neardup.hamming.spilled.slab_memory import Budget, SlabBuffers
from neardup.runtime.arrays import cut, frozen
from neardup.runtime.storage.temporary import TemporaryRows
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.hamming.plans.join_plan import JoinPlan
    from neardup.kernels.hamming.slabs import Chunk
    from neardup.runtime.progress import Progress
    from neardup.runtime.types import Bitmap, Code, Codes, Flags, Masks, Numbers, Rows

__all__ = ["Budget", "SpilledJoin"]

RANGES_A_THREAD: Final = 4
VALUES_SAMPLE: Final = 1 << 16
MOST_VALUES: Final = 256
VALUES_LOG2: Final = 14
DEEPEST: Final = 6


@dataclass(frozen=True, slots=True)
class Rules:
    """Conditions on the pairs of a join: the masks on which they agree."""

    masks: Masks | None
    agree: Flags | None

    def and_first(self, masks: Masks) -> Rules:
        """These conditions, and equality on the last of some masks and on none before it."""
        agree = np.arange(len(masks)) == len(masks) - 1
        if self.masks is None:
            return Rules(masks, agree)
        return Rules(np.concatenate([self.masks, masks]), np.concatenate([self.agree, agree]))

    @property
    def admit_equal(self) -> bool:
        """Whether two equal rows meet the conditions."""
        return self.agree is None or bool(np.all(self.agree))


NO_RULES: Final = Rules(None, None)


@dataclass(slots=True)
class SpilledJoin:
    """A join within a memory budget.

    Args:
        engine: Distance, width and threads.
        budget: Rows that may be in memory.
        tmp: Folder for spill files; the system's own if None.
        progress: Shows the progress, in bytes of slabs.
    """

    engine: Engine
    budget: Budget
    tmp: str | None
    progress: Progress
    spilled: int = field(default=0, init=False)
    _buffers: SlabBuffers | None = field(default=None, init=False)

    def run(self, rows: RowFile, merger: SlabMerger, plan: str = "auto") -> None:
        """Find every pair within the distance exactly once, and pass it to the merger."""
        try:
            self._solve(rows, merger, NO_RULES, plan, 0)
        finally:
            self._buffers = None  # what follows, such as sorting pairs, needs the memory

    def _solve(
        self, rows: RowFile, merger: SlabMerger, rules: Rules, plan: str, depth: int
    ) -> None:
        rows, merger = self._collapse(rows, merger, rules)
        sample = rows.sample(SAMPLE_ROWS)
        engine = self.engine
        name = plan if engine.distance < engine.bits else "scan"
        if name.startswith("mih"):
            name = "auto"  # slabs are cut by blocks that agree; what fits in memory turns bits
        chosen = plan_pairs(rows.count, engine.distance, engine.bits, sample, name, mih=False)
        if rows.count <= self.budget.whole_rows or chosen.choose == 0 or depth > DEEPEST:
            self._join_pieces(rows, merger, rules, plan)
            return
        if depth == 0:
            passes = len(chosen.masks) - chosen.choose + 1
            self.progress.begin("join", 8 * rows.width * rows.count * passes)
        shift = np.uint64(64 - self._bins_log2(rows))
        counts = self._count(rows, chosen, shift)
        for block in range(counts.shape[1]):
            passing = Pass(rows, chosen, block, shift, np.ascontiguousarray(counts[:, block]))
            self._join_slabs(passing, merger, rules, depth)
            self._join_heavy(passing, merger, rules, depth)

    def _bins_log2(self, rows: RowFile) -> int:
        """The bits of a bin number: bins fit the cache, and no thread buffers too many."""
        bins_log2 = (rows.count * (8 * rows.width + 4) // JOIN_BUCKET_BYTES).bit_length()
        slabs = (rows.count // self.budget.slab_rows).bit_length()
        return max(4, slabs + 2, min(bins_log2, JOIN_MOST_BINS_LOG2 + min(slabs, 3)))

    def _count(self, rows: RowFile, plan: JoinPlan, shift: np.uint64) -> npt.NDArray[np.int64]:
        """The rows of each bin of each first block, by range: int64 (ranges, blocks, bins)."""
        from neardup.kernels.hamming.slabs import count_bins

        ranges = self._ranges(rows)
        masks = plan.masks[: len(plan.masks) - plan.choose + 1]
        counts = np.zeros((len(ranges), len(masks), 1 << int(64 - shift)), np.int64)
        multipliers = multipliers_of(rows.width)

        def count(_: int, at: int) -> None:
            for chunk in rows.chunks(*ranges[at]):
                count_bins(chunk, masks, multipliers, shift, counts[at])

        # A range of the file is one thread's, and so is its row of the counts.
        in_threads(self.engine.workers, count, range(len(ranges)))
        return counts

    def _ranges(self, rows: RowFile) -> list[tuple[int, int]]:
        return rows.parts(RANGES_A_THREAD * self.engine.workers)

    def _join_slabs(self, passing: Pass, merger: SlabMerger, rules: Rules, depth: int) -> None:
        totals = passing.light_totals(self.budget.whole_rows)
        slabs = cut(totals, self.budget.slab_rows)
        sums = np.append(0, np.cumsum(totals))
        rows, plan = passing.rows, passing.plan
        buffers = self._buffers_for(
            max((int(sums[b] - sums[a]) for a, b in slabs), default=0), rows
        )
        expected = rows.count / 2 ** min(
            int(64 - passing.shift), int(np.bitwise_count(plan.masks).sum(axis=1).min())
        )
        for first, last in slabs:
            size = int(sums[last] - sums[first])
            starts = sums[first : last + 1] - sums[first]
            self._gather(passing, (first, last), totals, buffers)
            codes = frozen(buffers.codes[:size])
            parts = Partition(buffers.codes[:size], buffers.ids[:size], starts)
            problem = Problem(codes, rules=rules.masks, agree=rules.agree)
            numbers = buffers.numbers[:size]
            sink = merger.slab(codes, numbers)
            join_block(problem, parts, passing.block, self.engine, sink, plan, expected)
            if len(sink.parent(0)):
                buffers.reset_ids(size)
            merger.finish(sink, numbers)
            if depth == 0:
                self.progress.advance(8 * rows.width * size)

    def _buffers_for(self, rows: int, source: RowFile) -> SlabBuffers:
        """The memory of the last slab, grown if needed."""
        if self._buffers is None or not self._buffers.fits(rows, source):
            self._buffers = None  # before there is another one
            self._buffers = SlabBuffers.of(rows, source)
        return self._buffers

    def _gather(
        self, passing: Pass, bins: tuple[int, int], totals: Rows, buffers: SlabBuffers
    ) -> None:
        """Read the whole file and collect the rows of a slab, ordered by bin."""
        from neardup.kernels.hamming import slabs as kernels

        rows, (first, last) = passing.rows, bins
        ranges = self._ranges(rows)
        key = kernels.SlabKey(passing.mask, multipliers_of(rows.width), passing.shift)
        inside = passing.counts[:, first:last]
        begin = np.cumsum(totals[first:last]) - totals[first:last]
        starts = begin + np.cumsum(inside, axis=0) - inside
        starts[:, totals[first:last] < inside.sum(axis=0)] = -1

        def gather(_: int, at: int) -> None:
            capacity = (last - first) * kernels.LINE
            codes = np.empty((capacity, rows.width), np.uint64)
            numbers = np.empty(capacity, buffers.numbers.dtype)
            own = starts[at]
            where = (own, own.copy(), codes, numbers, buffers.codes, buffers.numbers)
            slab = kernels.Slab(first, last, *where)
            scratch = np.empty((2, kernels.TILE), np.int64)
            for chunk in rows.chunks(*ranges[at]):
                kernels.gather_rows(chunk, key, slab, scratch)
            kernels.flush_rows(slab, key.multipliers)

        # Each range has places of its own in every bin, after those of the ranges before it: no two
        # threads write to one row, and the order does not depend on the threads.
        in_threads(self.engine.workers, gather, range(len(ranges)))

    def _join_heavy(self, passing: Pass, merger: SlabMerger, rules: Rules, depth: int) -> None:
        """Write each bin that is too large for memory to a file, and join it by other bits."""
        heavy = np.flatnonzero(passing.counts.sum(axis=0) > self.budget.whole_rows)
        if not len(heavy):
            return
        self._buffers = None
        codes, numbers = TemporaryRows(self.tmp), TemporaryRows(self.tmp)
        try:
            files = self._write_heavy(passing, heavy, codes, numbers)
            inner = rules.and_first(passing.plan.masks[: passing.block + 1])
            for rows in files:
                if depth and 2 * rows.count > passing.rows.count:
                    self._join_pieces(*self._collapse(rows, merger, inner), inner, "auto")
                else:
                    self._solve(rows, merger, inner, "auto", depth + 1)
        finally:
            codes.close()
            numbers.close()

    def _write_heavy(
        self, passing: Pass, heavy: Rows, codes: TemporaryRows, numbers: TemporaryRows
    ) -> list[RowFile]:
        from neardup.kernels.hamming.slabs import SlabKey, select_rows

        rows, width = passing.rows, passing.rows.width
        ranges = self._ranges(rows)
        counts = passing.counts[:, heavy].T.copy()
        places = (np.cumsum(counts.ravel()) - counts.ravel()).reshape(counts.shape)
        begins, sizes = places[:, 0].copy(), counts.sum(axis=1)
        heavy_bins = np.full(passing.counts.shape[1], -1)
        heavy_bins[heavy] = np.arange(len(heavy))
        key = SlabKey(passing.mask, multipliers_of(width), passing.shift)

        def write(_: int, at: int) -> None:
            selected = np.empty((2, rows.chunk_rows() + 1), np.int64)
            for chunk in rows.chunks(*ranges[at]):
                kept = select_rows(chunk, key, heavy_bins, *selected)
                chosen, bins = selected[:, :kept]
                for into in np.unique(bins).tolist():
                    picked = chosen[bins == into]
                    place = int(places[into, at])
                    codes.put(chunk.codes[picked], 8 * width * place)
                    numbers.put(numbers_of(chunk, picked), 8 * place)
                    places[into, at] += len(picked)

        # As in a slab: every range has places of its own in each file, counted before.
        in_threads(self.engine.workers, write, range(len(ranges)))
        self.spilled += int(sizes.sum()) * (8 * width + 8)
        return [
            RowFile(codes.fd, size, width, 8 * width * begin, numbers.fd, 0, 8 * begin)
            for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True)
        ]

    def _collapse(
        self, rows: RowFile, merger: SlabMerger, rules: Rules
    ) -> tuple[RowFile, SlabMerger]:
        """Remove the rows of values so common that no partition would separate them."""
        values = self._common_values(rows)
        if not len(values):
            return rows, merger
        present = rows.all_present()
        groups = self._take_out(rows, values, present, merger, rules.admit_equal)
        return rows.without(present), merger.collapsed(groups, rules.admit_equal)

    def _common_values(self, rows: RowFile) -> Codes:
        """Values with about a quarter of the rows that fit in memory, by a sample."""
        if rows.count <= self.budget.whole_rows:
            return np.empty((0, rows.width), np.uint64)
        sample = rows.sample(VALUES_SAMPLE)
        values, counts = np.unique(sample, axis=0, return_counts=True)
        expected = counts * (rows.count / max(1, len(sample)))
        common = np.flatnonzero((counts > 1) & (expected > self.budget.whole_rows / 4))
        common = common[np.argsort(-counts[common], kind="stable")][:MOST_VALUES]
        return np.ascontiguousarray(values[common])

    def _take_out(
        self, rows: RowFile, values: Codes, present: Bitmap, merger: SlabMerger, due: bool
    ) -> list[Numbers]:
        """The numbers of the rows with each value; only its first row stays present."""
        from neardup.kernels.hamming.hash_partition import key_of_each
        from neardup.kernels.hamming.slabs import SlabKey, match_values

        ones = np.full(rows.width, 2**64 - 1, np.uint64)
        key = SlabKey(ones, multipliers_of(rows.width), np.uint64(64 - VALUES_LOG2))
        table = np.full(1 << VALUES_LOG2, -1)
        table[key_of_each(values, *key)] = np.arange(len(values))
        ranges = self._ranges(rows)
        parts: list[list[list[Any]]] = [[[] for _ in values] for _ in ranges]
        counts = np.zeros((len(ranges), len(values)), np.int64)

        def match(_: int, at: int) -> None:
            out = np.empty((2, rows.chunk_rows() + 1), np.int64)
            for chunk in rows.chunks(*ranges[at]):
                kept = match_values(chunk, key, values, table, *out)
                matched, which = out[:, :kept]
                for value in np.unique(which).tolist():
                    equal = matched[which == value]
                    at_file = chunk.base - rows.base + equal
                    parts[at][value].append((at_file, numbers_of(chunk, equal)))
                    counts[at, value] += len(equal)
                if kept and due:
                    merger.expect(sum(c * (c - 1) // 2 for c in counts.sum(axis=0).tolist()))

        in_threads(self.engine.workers, match, range(len(ranges)))
        groups = []
        for value in range(len(values)):
            pieces = [piece for part in parts for piece in part[value]]
            if pieces:
                clear_bits(present, np.concatenate([places for places, _ in pieces])[1:])
                groups.append(np.concatenate([numbers for _, numbers in pieces]))
        return groups

    def _join_pieces(self, rows: RowFile, merger: SlabMerger, rules: Rules, plan: str) -> None:
        """Join a file in memory: whole, or by every two pieces if it is too large."""
        whole = self.budget.whole_rows
        pieces = [(0, rows.count)]
        if rows.count > whole:
            pieces = rows.parts(-(-2 * rows.count // max(2, whole - 16)))
        last = len(pieces) - 1
        for i in range(len(pieces)):
            for j in range(min(i + 1, last), len(pieces)):
                chosen = [load(rows, *pieces[at]) for at in sorted({i, j})]
                codes = frozen(np.concatenate([part for part, _ in chosen]))
                numbers = np.concatenate([names for _, names in chosen])
                inside = (j <= i + 1, i == last - 1)
                pieces_of = Pieces(len(chosen[0][0]), inside) if last else None
                sink = merger.slab(codes, numbers, pieces_of)
                problem = Problem(codes, rules=rules.masks, agree=rules.agree)
                solve(problem, self.engine, sink, plan)
                merger.finish(sink, numbers)
            if i == last - 1:
                break


@dataclass(frozen=True, slots=True)
class Pass:
    """A block of a plan over one file, and the rows of its bins: int64 (ranges, bins)."""

    rows: RowFile
    plan: JoinPlan
    block: int
    shift: np.uint64
    counts: npt.NDArray[np.int64]

    @property
    def mask(self) -> Code:
        """The block's bits: uint64 (W,)."""
        return np.ascontiguousarray(self.plan.masks[self.block])

    def light_totals(self, most: int) -> Rows:
        """The rows of each bin; 0 for a bin with more than `most`."""
        totals = self.counts.sum(axis=0)
        return np.where(totals > most, 0, totals)


def numbers_of(chunk: Chunk, rows: Rows) -> Numbers:
    """The numbers of some rows of a chunk."""
    numbers: Numbers = chunk.numbers
    return numbers[rows] if len(numbers) else (chunk.base + rows).astype(np.uint64)


def load(rows: RowFile, first: int, last: int) -> tuple[Codes, Numbers]:
    """The rows first..last-1 that take part, and their numbers (uint64)."""
    codes, numbers = [], []
    for chunk in rows.chunks(first, last):
        chosen = np.arange(len(chunk.codes))
        if len(chunk.present):
            flags = np.unpackbits(chunk.present, bitorder="little")[: len(chosen)]
            chosen = np.flatnonzero(flags)
        codes.append(chunk.codes[chosen])
        numbers.append(numbers_of(chunk, chosen))
    empty = np.empty((0, rows.width), np.uint64)
    return np.concatenate([empty, *codes]), np.concatenate([np.empty(0, np.uint64), *numbers])
