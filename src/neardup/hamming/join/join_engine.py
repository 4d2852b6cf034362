"""The engine of a Hamming join: partitions rows by each block, and splits heavy buckets again.

The caller passes a sink: that of `hamming.all_pairs` lists the pairs, that of `hamming.clusters`
unites their rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.join.mih_join import candidates, join_keys
from neardup.hamming.join.problem import NO_IDS, NO_WEIGHTS, Engine, Problem
from neardup.hamming.join.row_partition import Groups, Partition, group_equal
from neardup.hamming.join.sinks import NO_PAIRS, Expanding
from neardup.hamming.plans.blocks import SAMPLE_ROWS, multipliers_of
from neardup.hamming.plans.join_plan import (
    JoinPlan,
    bins_log2,
    direct_sizes,
    plan_pairs,
    seconds_at,
)
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.hamming.join.sinks import Sink
    from neardup.runtime.types import RowNumbers

__all__ = ["DUPLICATE_SHARE", "duplicate_share", "join_block", "sample_of", "solve"]

SCAN_STEP: Final = 256
PAIRS_START: Final = 1 << 14
DUPLICATE_SHARE: Final = 0.02
NEIGHBOURS_SAMPLE: Final = 256
DENSE_NEIGHBOURS: Final = 50
SECONDS_ASKED: Final = 2e-3
"""The seconds of a join from which a sample is asked how many pairs will be listed."""
EXPECTED_TIMES: Final = 1.25
"""The factor of counted over expected comparisons up to which rows do not count as skewed."""


def solve(problem: Problem, engine: Engine, sink: Sink, plan: str = "auto") -> None:
    """Find every pair of the problem within the distance exactly once, and pass it to the sink."""
    if len(problem.codes) < 2:
        return
    sample = sample_of(problem.codes)
    if not problem.distinct and duplicate_share(sample) > DUPLICATE_SHARE:
        solve_collapsed(problem, engine, sink, plan)
        return
    run_plan(problem, engine, sink, choose_plan(problem, engine, sink, plan, sample))


def choose_plan(problem: Problem, engine: Engine, sink: Sink, plan: str, sample: Any) -> JoinPlan:
    """The named plan, or the cheapest; the cost of flipped blocks is counted on the rows.

    Skew can make buckets that meet much larger than the sample says; the other plans split those.
    """
    n, near = len(problem.codes), 0.0
    uniting = len(sink.parent(0)) > 0
    chosen = plan_pairs(n, engine.distance, engine.bits, sample, plan)
    if plan == "auto" and not uniting and chosen.seconds > SECONDS_ASKED:
        near = mean_neighbours(sample, engine.distance, n) * n / 2
        if near:
            chosen = plan_pairs(n, engine.distance, engine.bits, sample, near=near)
    if plan != "auto" or not chosen.mih:
        return chosen
    if uniting and mean_neighbours(sample, engine.distance, n) > DENSE_NEIGHBOURS:
        return plan_pairs(n, engine.distance, engine.bits, sample, mih=False)
    counted = candidates(problem.codes, chosen)
    if counted <= chosen.candidates * EXPECTED_TIMES + n:
        return chosen
    other = plan_pairs(n, engine.distance, engine.bits, sample, mih=False, near=near)
    return other if uniting or seconds_at(chosen, counted) > other.seconds else chosen


def mean_neighbours(sample: Any, distance: int, n: int) -> float:
    """The estimated number of rows within the distance of one, from a sample of n rows.

    Plans of agreeing blocks unite a dense bucket without comparing all rows; turned ones do not.
    """
    few = sample[:: -(-len(sample) // NEIGHBOURS_SAMPLE)]
    apart = np.bitwise_count(few[:, None] ^ few).sum(axis=2, dtype=np.int64)
    near = int((apart <= distance).sum()) - len(few)
    return near / len(few) ** 2 * n


def solve_collapsed(problem: Problem, engine: Engine, sink: Sink, plan: str) -> None:
    """Solve a problem for one row of each group of equal fingerprints."""
    groups = Groups.of(group_equal(problem.codes, engine.workers))
    firsts = groups.firsts
    distinct = replace(problem, codes=frozen(problem.codes[firsts]), distinct=True)
    forest = sink.parent(0)
    if len(forest):
        unite_groups(forest, problem, groups)
        named = problem.named(firsts)
        solve(replace(distinct, rows=named, weights=NO_WEIGHTS), engine, sink, plan)
        return
    inner = Expanding(sink, problem, groups)
    inner.add_within()  # first: if these are too many, no other pair needs to be stored
    solve(replace(distinct, rows=NO_IDS, weights=groups.sizes), engine, inner, plan)
    inner.flush()


def unite_groups(forest: RowNumbers, problem: Problem, groups: Groups) -> None:
    """Unite equal rows in a union-find; the first of each group takes part in the join."""
    from neardup.kernels.forest import unite_all

    firsts = np.repeat(groups.firsts, groups.sizes)
    unite_all(forest, problem.named(groups.members), problem.named(firsts))


def sample_of(codes: Any) -> Any:
    """Up to SAMPLE_ROWS rows from all parts of the words: uint64 (s, W)."""
    return codes[:: max(1, len(codes) // SAMPLE_ROWS)][:SAMPLE_ROWS]


def duplicate_share(sample: Any) -> float:
    """The share of rows that equal an earlier one; 0 without rows."""
    return (len(sample) - len(np.unique(sample, axis=0))) / max(1, len(sample))


def run_plan(problem: Problem, engine: Engine, sink: Sink, plan: JoinPlan) -> None:
    """Run a plan: a scan, or a partition for every block that can come first."""
    if plan.mih:
        threads = Threads(problem, engine, sink, plan, 0, 0)
        where = (threads.run, threads.agree(), threads.blocks)
        join_keys(problem.codes, plan, engine.workers, *where)
        return
    if plan.choose == 0:
        run_scan(problem, engine, sink)
        return
    n, width = problem.codes.shape
    parts = Partition.empty(n, width)
    expected = largest_expected(problem, plan)
    for block in range(len(plan.masks) - plan.choose + 1):
        parts.fill(problem.codes, plan.masks[block], engine.workers)
        join_block(problem, parts, block, engine, sink, plan, expected)


def join_block(
    problem: Problem,
    parts: Partition,
    block: int,
    engine: Engine,
    sink: Sink,
    plan: JoinPlan,
    expected: float,
) -> None:
    """Find the pairs of a problem whose first equal block is `block`.

    Args:
        problem: The rows.
        parts: All of them, partitioned by the block.
        block: Its number among the plan's masks.
        engine: What stays the same throughout a join.
        sink: Takes the pairs.
        plan: Not a scan.
        expected: Rows of the largest bucket if the blocks' bits were random; much larger ones are
            solved as problems of their own.
    """
    largest = int(np.diff(parts.starts).max(initial=0))
    threads = Threads(problem, engine, sink, plan, largest, expected)
    _join_partition(parts, block, threads, engine.workers)
    # After the threads: what a heavy bucket needs is all threads, and memory of its own.
    for positions, prefix in threads.heavy:
        solve_heavy(problem, engine, sink, plan, positions, prefix)


def _join_partition(parts: Partition, block: int, threads: Threads, workers: int) -> None:
    from neardup.kernels.hamming.bucket_join import join_buckets
    from neardup.kernels.hamming.hash_partition import Rows

    rows = Rows(parts.codes, parts.ids)

    def join(slot: int, chunk: tuple[int, int]) -> None:
        where = (rows, parts.starts, *chunk, block, threads.blocks)
        scratch = threads.scratch(slot)
        threads.run(slot, lambda output: join_buckets(*where, output, scratch))

    # A slot is one thread at a time, and each has its own scratch, pairs and union-find. Chunks are
    # ranges of buckets that no two threads share, as uniting reorders the rows of a bucket.
    in_threads(workers, join, parts.chunks(workers))


def run_scan(problem: Problem, engine: Engine, sink: Sink) -> None:
    """Compare all pairs of rows."""
    from neardup.kernels.hamming.scan import scan_rows

    n, width = problem.codes.shape
    ids = np.arange(n, dtype=np.uint32)
    nothing = JoinPlan("scan", np.zeros((0, width), np.uint64), 0, 0, 0)
    threads = Threads(problem, engine, sink, nothing, 0, 0)

    def scan(slot: int, first: int) -> None:
        last = min(first + SCAN_STEP, n)
        where = (problem.codes, ids, first, last, threads.agree(), threads.blocks)
        threads.run(slot, lambda output: scan_rows(*where, output))

    in_threads(engine.workers, scan, range(0, n, SCAN_STEP))


def solve_heavy(
    problem: Problem,
    engine: Engine,
    sink: Sink,
    plan: JoinPlan,
    positions: Any,
    prefix: list[int],
) -> None:
    """Solve a heavy bucket as a problem of its own, which accepts only pairs due to its prefix."""
    last = prefix[-1] + 1
    agree = np.isin(np.arange(last), prefix)
    inside = problem.part(np.sort(positions).astype(np.int64), plan.masks[:last], agree)
    if not problem.distinct:
        solve_collapsed(inside, engine, sink, "auto")
    # More than half of the rows again: other bits would not split it either, so it ends here.
    elif 2 * len(positions) > len(problem.codes):
        run_scan(inside, engine, sink)
    else:
        solve(inside, engine, sink)


class Threads:
    """The kernels' arguments for the threads of one pass, and the heavy buckets found in it."""

    def __init__(
        self,
        problem: Problem,
        engine: Engine,
        sink: Sink,
        plan: JoinPlan,
        largest: int,
        expected: float,
    ) -> None:
        """Lay out the masks: the outer conditions, then the blocks."""
        from neardup.kernels.hamming.bucket_join import Blocks

        width = problem.codes.shape[1]
        rules = np.zeros((0, width), np.uint64) if problem.rules is None else problem.rules
        capacity = max(16 * engine.heavy, int(4 * expected))
        self.problem, self.sink, self.plan = problem, sink, plan
        self._most = engine.pairs_at_once
        self.heavy: list[tuple[Any, list[int]]] = []
        self.blocks = Blocks(
            np.ascontiguousarray(np.concatenate([rules, plan.masks])),
            len(rules),
            plan.choose,
            engine.distance,
            multipliers_of(width, 1),
            direct_sizes(len(plan.masks), plan.choose, width, engine.heavy),
            engine.heavy,
            capacity,
        )
        self._rows = min(capacity, largest)
        self._scratch: dict[int, Any] = {}
        self._pairs: dict[int, Any] = {}

    def agree(self) -> Any:
        """Whether a pair must agree on each mask; the kernel changes the part of the blocks."""
        flags = np.zeros(len(self.blocks.masks), np.uint8)
        if self.blocks.rules:
            flags[: self.blocks.rules] = self.problem.agree
        return flags

    def scratch(self, slot: int) -> Any:
        """The working memory of a thread."""
        from neardup.kernels.hamming.bucket_join import MAX_BINS_LOG2, Scratch

        if slot not in self._scratch:
            levels, width = max(self.plan.choose - 1, 1), self.problem.codes.shape[1]
            bins = 2 << min(MAX_BINS_LOG2, max(self._rows, 1).bit_length())
            self._scratch[slot] = Scratch(
                np.empty((levels, self._rows, width), np.uint64),
                np.empty((levels, self._rows), np.uint32),
                np.empty((levels, bins + 1), np.int64),
                np.empty((levels + 1, width), np.uint64),
                self.agree(),
                np.empty((levels + 1, 5), np.int64),
            )
        return self._scratch[slot]

    def run(self, slot: int, kernel: Callable[[Any], None]) -> None:
        """Run a kernel with a sink, and again if its arrays were too small.

        More pairs than a thread may hold are taken one part after another, a run for each.
        """
        from neardup.kernels.hamming.bucket_join import Output

        parent = self.sink.parent(slot)
        pairs = self._pairs.get(slot, np.empty(0 if len(parent) else PAIRS_START, np.uint64))
        if not self.sink.may_store(1):
            pairs = NO_PAIRS
        heavy_rows, buckets, passed = np.empty(0, np.uint32), 0, 0
        # Runs of one kernel, which finds the same each time. The first one counts: if
        # the arrays were too small it is run again with enough of them, and nothing of it is kept.
        # Then the pairs are handed on; of more than a thread may hold, `passed` of them at a time:
        # the tally of pairs begins below 0, so that those handed on before fall outside the array.
        # Heavy buckets are noted in the first run whose arrays were large enough, and only in it.
        while True:
            tally = np.array([0, -passed, 0, 0], np.int64)
            prefix = np.zeros((buckets, 2 + self.plan.choose), np.int64)
            weights, rows = self.problem.weights, self.problem.rows
            kernel(Output(pairs, tally, parent, rows, weights, heavy_rows, prefix))
            count, left, matched, buffered = tally.tolist()
            if passed == 0:
                more = left > len(pairs) and self.sink.may_store(left)
                capacity = min(left + left // 4, self._most)
                if matched > buckets or (more and capacity > len(pairs)):
                    heavy_rows, buckets = np.empty(buffered, np.uint32), matched
                    pairs = (
                        np.empty(capacity, np.uint64) if more and capacity > len(pairs) else pairs
                    )
                    continue
                self._keep_heavy(heavy_rows, prefix)
            self.sink.add(pairs[: min(left, len(pairs))].copy(), 0 if passed else count)
            if not more or left <= len(pairs):
                break
            passed += len(pairs)
        self._pairs[slot] = pairs

    def _keep_heavy(self, heavy_rows: Any, prefix: Any) -> None:
        starts = np.cumsum(prefix[:, 0]) - prefix[:, 0]
        for start, (size, depth, *blocks) in zip(starts.tolist(), prefix.tolist(), strict=True):
            self.heavy.append((heavy_rows[start : start + size], blocks[:depth]))


def largest_expected(problem: Problem, plan: JoinPlan) -> float:
    """The rows of a first-level bucket if the block with the fewest bits were random."""
    if plan.choose == 0:
        return 0
    n = len(problem.codes)
    narrowest = int(np.bitwise_count(plan.masks).sum(axis=1).min())
    partitioned = bins_log2(n, problem.codes.shape[1])
    return float(n / 2 ** min(narrowest, partitioned))
