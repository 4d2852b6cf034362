"""Run a Hamming join: partition by each block, hand buckets to threads, solve heavy buckets again.

`neighbours` collects the pairs it finds and `clusters` unites them: both pass a collector.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np

from neardup.planner import SAMPLE_ROWS, JoinPlan, bins_log2, direct_sizes, plan_pairs

__all__ = ["Collector", "Engine", "Groups", "Problem", "group_equal", "solve", "workers_or_default"]

HEAVY_ROWS: Final = 8192
SCAN_STEP: Final = 256
PAIRS_START: Final = 1 << 14
DUPLICATE_SHARE: Final = 0.02
NO_IDS: Final = np.empty(0, np.uint32)
NO_WEIGHTS: Final = np.empty(0, np.int64)
NO_PAIRS: Final = np.empty(0, np.uint64)


class Collector(Protocol):
    """Takes what the kernels find; `pairs` and `components` have one each."""

    def parent(self, slot: int) -> Any:
        """The union-find of a thread, or an empty array to have pairs emitted."""

    def may_store(self, rows: int) -> bool:
        """Whether so many more pairs may be kept rather than only counted."""

    def add(self, count: int, pairs: Any) -> None:
        """Take pairs (uint64, left << 32 | right) and how many rows they stand for."""

    def collapsed(self, problem: Problem, groups: Groups) -> Collector:
        """Take a problem's equal rows; returns the collector for its representatives."""

    def expand(self, inner: Collector, problem: Problem, groups: Groups) -> None:
        """Take what the collector of the representatives found."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What stays the same throughout a join."""

    distance: int
    bits: int
    workers: int
    heavy: int = HEAVY_ROWS


@dataclass(frozen=True, slots=True)
class Problem:
    """Fingerprints to be joined, and the conditions from the joins around this one."""

    words: Any  # uint64 (n, W), C-contiguous, read-only
    rows: Any = field(default_factory=lambda: NO_IDS)  # uint32 (n,): their names; empty: 0 to n - 1
    weights: Any = field(default_factory=lambda: NO_WEIGHTS)  # int64 (n,); empty: all 1
    rules: Any = None  # uint64 (r, W): masks
    agree: Any = None  # bool (r,): whether a pair agrees on each
    distinct: bool = False

    def named(self, positions: Any) -> Any:
        """The names of the rows at these positions: uint32."""
        return self.rows[positions] if len(self.rows) else positions.astype(np.uint32)

    def part(self, chosen: Any, rules: Any, agree: Any) -> Problem:
        """The rows at positions `chosen` under more conditions."""
        return Problem(
            frozen(self.words[chosen]),
            self.named(chosen),
            self.weights[chosen] if len(self.weights) else self.weights,
            rules if self.rules is None else np.concatenate([self.rules, rules]),
            agree if self.agree is None else np.concatenate([self.agree, agree]),
            self.distinct,
        )


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows by equal fingerprint: members[starts[g]:starts[g + 1]], ascending, for each group g."""

    members: Any  # int64 (n,)
    starts: Any  # int64 (groups + 1,)

    @property
    def sizes(self) -> Any:
        """How many rows each group has."""
        return np.diff(self.starts)

    @property
    def firsts(self) -> Any:
        """The smallest row of each group."""
        return self.members[self.starts[:-1]]

    @classmethod
    def of(cls, first: Any) -> Groups:
        """Groups of rows with the same `first` row; groups ascend by it."""
        members = np.argsort(first, kind="stable")
        ordered = first[members]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return cls(members, np.append(starts, len(first)))


def frozen(words: Any) -> Any:
    """A read-only, contiguous view, so that kernels are compiled for one type only."""
    view = np.ascontiguousarray(words).view()
    view.flags.writeable = False
    return view


def workers_or_default(workers: int | None) -> int:
    """The number of threads: `workers`, or one per available core."""
    if workers is not None:
        return max(1, workers)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def multipliers(words: int) -> tuple[Any, ...]:
    """Odd constants for hashing fingerprints of so many words."""
    odd = [(0x9E3779B97F4A7C15 * (2 * w + 1) ^ (w << 40)) & (2**64 - 1) | 1 for w in range(words)]
    return tuple(np.uint64(value) for value in odd)


def in_threads(workers: int, work: Callable[[int, Any], None], tasks: Iterable[Any]) -> None:
    """Call work(slot, task) for every task, on `workers` threads with slots 0 to workers - 1."""
    todo = list(tasks)
    if workers == 1 or len(todo) < 2:
        for task in todo:
            work(0, task)
        return
    queue, lock = iter(todo), threading.Lock()

    def run(slot: int) -> None:
        while True:
            with lock:
                task = next(queue, None)
            if task is None:
                return
            work(slot, task)

    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(run, slot) for slot in range(workers)]:
            done.result()


@dataclass(slots=True)
class Partition:
    """Rows of a problem by the hash of a mask; the arrays are used again for the next mask."""

    words: Any  # uint64 (n, W)
    ids: Any  # uint32 (n,): positions in the source
    starts: Any  # int64 (bins + 1,)

    @classmethod
    def empty(cls, n: int, width: int) -> Partition:
        """Room for n rows of `width` words."""
        return cls(np.empty((n, width), np.uint64), np.empty(n, np.uint32), None)

    def fill(self, words: Any, mask: Any, workers: int) -> None:
        """Partition `words`, stable, every thread its own range of rows."""
        from neardup.kernels.partition import count_keys, scatter_rows

        n, width = words.shape
        bits = bins_log2(n, width)
        shift, odd = np.uint64(64 - bits), multipliers(width)
        share = -(-n // workers) if n > 1 << 16 else n
        ranges = [(t, low, min(low + share, n)) for t, low in enumerate(range(0, n, share))]
        counts = np.zeros((len(ranges), 1 << bits), np.int64)

        def count(_: int, part: tuple[int, int, int]) -> None:
            count_keys(words, part[1], part[2], mask, odd, shift, counts[part[0]])

        in_threads(workers, count, ranges)
        places = np.cumsum(counts.T.ravel()).reshape(-1, len(ranges)).T
        self.starts = np.append(0, places[-1])
        places = np.ascontiguousarray(places - counts)

        def scatter(_: int, part: tuple[int, int, int]) -> None:
            t, low, high = part
            scatter_rows(words, low, high, mask, odd, shift, places[t], self.words, self.ids)

        in_threads(workers, scatter, ranges)

    def chunks(self, workers: int) -> list[tuple[int, int]]:
        """Ranges of buckets with about equal rows, enough of them to keep the threads busy."""
        total = int(self.starts[-1])
        pieces = min(len(self.starts) - 1, workers * 16, max(1, total // 4096))
        cuts = np.searchsorted(self.starts, np.linspace(0, total, pieces + 1)[1:-1])
        edges = np.unique(np.concatenate([[0], cuts, [len(self.starts) - 1]])).tolist()
        return list(zip(edges[:-1], edges[1:], strict=True))


def group_equal(fps: Any, workers: int | None = None) -> Any:
    """For each row the smallest row with the same fingerprint.

    Args:
        fps: uint64 (n, words), C-contiguous, n < 2**32.
        workers: Threads; one per core unless said.

    Returns:
        int64 (n,). O(n) time and memory whatever the data.

    Example:
        >>> group_equal(np.array([[5], [7], [5]], np.uint64)).tolist()
        [0, 1, 0]
    """
    from neardup.kernels.partition import first_equal

    words, threads = frozen(fps), workers_or_default(workers)
    n, width = words.shape
    first = np.empty(n, np.int64)
    parts = Partition.empty(n, width)
    parts.fill(words, np.full(width, 2**64 - 1, np.uint64), threads)
    largest = int(np.diff(parts.starts).max(initial=1))
    tables = np.full((threads, 1 << (2 * largest).bit_length()), -1, np.int64)
    odd = multipliers(width)

    def group(slot: int, chunk: tuple[int, int]) -> None:
        first_equal(parts.words, parts.ids, parts.starts, *chunk, odd, tables[slot], first)

    in_threads(threads, group, parts.chunks(threads))
    return first


def solve(problem: Problem, engine: Engine, collector: Collector, plan: str = "auto") -> None:
    """Find every pair of the problem within the distance, exactly once, for the collector."""
    if len(problem.words) < 2:
        return
    sample = problem.words[:: max(1, len(problem.words) // SAMPLE_ROWS)][:SAMPLE_ROWS]
    if not problem.distinct and _duplicate_share(sample) > DUPLICATE_SHARE:
        solve_collapsed(problem, engine, collector, plan)
        return
    chosen = plan_pairs(len(problem.words), engine.distance, engine.bits, sample, plan)
    run_plan(problem, engine, collector, chosen)


def solve_collapsed(problem: Problem, engine: Engine, collector: Collector, plan: str) -> None:
    """Solve a problem for one row of each group of equal fingerprints."""
    groups = Groups.of(group_equal(problem.words, engine.workers))
    firsts = groups.firsts
    inner = collector.collapsed(problem, groups)
    distinct = replace(
        problem,
        words=frozen(problem.words[firsts]),
        rows=NO_IDS if inner is not collector else problem.named(firsts),
        weights=groups.sizes if inner is not collector else NO_WEIGHTS,
        distinct=True,
    )
    solve(distinct, engine, inner, plan)
    collector.expand(inner, problem, groups)


def _duplicate_share(sample: Any) -> float:
    return 1 - len(np.unique(sample, axis=0)) / len(sample)


def run_plan(problem: Problem, engine: Engine, collector: Collector, plan: JoinPlan) -> None:
    """Run a plan: a scan, or one partition for every block that can come first."""
    if plan.choose == 0:
        run_scan(problem, engine, collector)
        return
    from neardup.kernels.join import join_buckets

    n, width = problem.words.shape
    parts = Partition.empty(n, width)
    for block in range(len(plan.masks) - plan.choose + 1):
        parts.fill(problem.words, plan.masks[block], engine.workers)
        threads = Threads(problem, engine, collector, plan, int(np.diff(parts.starts).max()))

        def join(slot: int, chunk: tuple[int, int], block: int = block) -> None:
            scratch = threads.scratch(slot)
            blocks = threads.blocks
            threads.run(
                slot,
                lambda sink: join_buckets(
                    parts.words, parts.ids, parts.starts, *chunk, block, blocks, sink, scratch
                ),
            )

        in_threads(engine.workers, join, parts.chunks(engine.workers))
        for positions, prefix in threads.heavy:
            solve_heavy(problem, engine, collector, plan, positions, prefix)


def run_scan(problem: Problem, engine: Engine, collector: Collector) -> None:
    """Compare all pairs."""
    from neardup.kernels.scan import scan_rows

    n, width = problem.words.shape
    ids = np.arange(n, dtype=np.uint32)
    nothing = JoinPlan("scan", np.zeros((0, width), np.uint64), 0, 0, 0)
    threads = Threads(problem, engine, collector, nothing, 0)

    def scan(slot: int, first: int) -> None:
        last = min(first + SCAN_STEP, n)
        agree = threads.agree()
        blocks = threads.blocks
        threads.run(
            slot, lambda sink: scan_rows(problem.words, ids, first, last, agree, blocks, sink)
        )

    in_threads(engine.workers, scan, range(0, n, SCAN_STEP))


def solve_heavy(  # noqa: PLR0913
    problem: Problem,
    engine: Engine,
    collector: Collector,
    plan: JoinPlan,
    positions: Any,
    prefix: list[int],
) -> None:
    """Solve a heavy bucket as a problem of its own; pairs not due to its prefix are refused there."""
    last = prefix[-1] + 1
    agree = np.isin(np.arange(last), prefix)
    inside = problem.part(np.sort(positions).astype(np.int64), plan.masks[:last], agree)
    if not problem.distinct:
        solve_collapsed(inside, engine, collector, "auto")
    elif 2 * len(positions) > len(problem.words):
        run_scan(inside, engine, collector)
    else:
        solve(inside, engine, collector)


class Threads:
    """The kernels' arguments for each thread of one pass, and the heavy buckets it finds."""

    def __init__(
        self, problem: Problem, engine: Engine, collector: Collector, plan: JoinPlan, largest: int
    ) -> None:
        """Lay out the masks: the outer conditions first, then the blocks."""
        from neardup.kernels.join import Blocks

        width = problem.words.shape[1]
        rules = np.zeros((0, width), np.uint64) if problem.rules is None else problem.rules
        capacity = max(16 * engine.heavy, int(4 * largest_expected(problem, plan)))
        self.problem, self.collector, self.plan = problem, collector, plan
        self.heavy: list[tuple[Any, list[int]]] = []
        self.blocks = Blocks(
            np.ascontiguousarray(np.concatenate([rules, plan.masks])),
            len(rules),
            plan.choose,
            engine.distance,
            multipliers(width),
            direct_sizes(len(plan.masks), plan.choose, width, engine.heavy),
            engine.heavy,
            capacity,
        )
        self._rows = min(capacity, largest)
        self._scratch: dict[int, Any] = {}
        self._pairs: dict[int, Any] = {}

    def agree(self) -> Any:
        """Whether a pair must agree on each mask; the blocks' part is the kernel's to change."""
        flags = np.zeros(len(self.blocks.masks), np.uint8)
        if self.blocks.rules:
            flags[: self.blocks.rules] = self.problem.agree
        return flags

    def scratch(self, slot: int) -> Any:
        """Working memory of a thread."""
        from neardup.kernels.join import MAX_BINS_LOG2, Scratch

        if slot not in self._scratch:
            levels, width = max(self.plan.choose - 1, 1), self.problem.words.shape[1]
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
        """Run a kernel with a sink, again with larger arrays where they were too small."""
        from neardup.kernels.join import Sink

        parent = self.collector.parent(slot)
        pairs = self._pairs.get(slot, np.empty(0 if len(parent) else PAIRS_START, np.uint64))
        if not self.collector.may_store(1):
            pairs = NO_PAIRS
        heavy_rows, buckets = np.empty(0, np.uint32), 0
        while True:
            tally = np.zeros(4, np.int64)
            prefix = np.zeros((buckets, 2 + self.plan.choose), np.int64)
            weights, rows = self.problem.weights, self.problem.rows
            kernel(Sink(pairs, tally, parent, rows, weights, heavy_rows, prefix))
            count, stored, found, held = tally.tolist()
            too_small = found > buckets
            if too_small:
                heavy_rows, buckets = np.empty(held, np.uint32), found
            if stored > len(pairs) and self.collector.may_store(stored):
                pairs, too_small = np.empty(stored + stored // 4, np.uint64), True
            if not too_small:
                break
        self._pairs[slot] = pairs
        self.collector.add(count, pairs[: min(stored, len(pairs))].copy())
        starts = np.cumsum(prefix[:, 0]) - prefix[:, 0]
        for start, (size, depth, *blocks) in zip(starts.tolist(), prefix.tolist(), strict=True):
            self.heavy.append((heavy_rows[start : start + size], blocks[:depth]))


def largest_expected(problem: Problem, plan: JoinPlan) -> float:
    """Rows of a first-level bucket if the block with the fewest bits were random."""
    if plan.choose == 0:
        return 0
    n = len(problem.words)
    narrowest = int(np.bitwise_count(plan.masks).sum(axis=1).min())
    partitioned = bins_log2(n, problem.words.shape[1])
    return float(n / 2 ** min(narrowest, partitioned))
