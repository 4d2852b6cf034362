"""Compare the ways to search n fingerprints: what each should cost, and what it did cost."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.fingerprinting.values import as_codes, check_distance
from neardup.hamming.plans.blocks import SAMPLE_ROWS
from neardup.hamming.plans.choose import (
    exact_plans,
    named_plan,
    plan_search,
)
from neardup.hamming.plans.names import DEFAULT_PERMUTATIONS, DEFAULT_RECALL
from neardup.runtime.arrays import frozen
from neardup.runtime.markup import PrintedPlans, cells_of, text_table

if TYPE_CHECKING:
    from neardup.hamming.plans.search import SearchPlan
    from neardup.runtime.types import Codes

__all__ = ["Measured", "PlanTable", "measure_plan", "plan"]

MOST_MEASURED_ROWS: Final = 1 << 27
MOST_QUERIES: Final = 20_000
SECONDS_EACH: Final = 0.1
REPEATS: Final = 5
SEED: Final = 2007
COLUMNS: Final = (
    ("plan", "{}", "name"),
    ("tables", "{:,}", "tables"),
    ("key bits", "{}", "key_bits"),
    ("look-ups", "{:,}", "lookups"),
    ("candidates", "{:,.0f}", "candidates"),
    ("bytes/doc", "{:,.1f}", "bytes_per_document"),
    ("us/query", "{:,.2f}", "microseconds"),
    ("recall", "{:.3f}", "recall"),
    ("measured us", "{:,.2f}", "measured_microseconds"),
    ("build s", "{:,.2f}", "build_seconds"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a search did cost, on one thread.

    Args:
        microseconds: For one query of a batch.
        build_seconds: To build it, on all threads.
        bytes_per_document: Memory beside the fingerprints.
        recall: Of what is exactly at the distance, the share that is found.
    """

    microseconds: float
    build_seconds: float
    bytes_per_document: float
    recall: float


class PlanTable(PrintedPlans):
    """The plans for one question, the chosen one marked; prints as a table.

    Args:
        n: Fingerprints.
        distance: Largest distance of a query.
        bits: Width.
        chosen: What "auto" takes.
        plans: All that were compared, the quickest first.
        measured: By name, what was measured.
    """

    def __init__(
        self,
        n: int,
        distance: int,
        bits: int,
        chosen: SearchPlan,
        plans: list[SearchPlan],
        measured: dict[str, Measured],
    ) -> None:
        """Take what was compared."""
        self.n, self.distance, self.bits = n, distance, bits
        self.chosen, self.plans, self.measured = chosen, plans, measured

    def __str__(self) -> str:
        """A table for people."""
        columns = COLUMNS if self.measured else COLUMNS[:-2]
        lines = [["", *(title for title, _, _ in columns)]]
        lines += [["*" if row["chosen"] else "", *cells_of(row, columns)] for row in self]
        head = f"{self.n:,} fingerprints of {self.bits} bits, distance {self.distance}"
        return f"{head}\n{text_table(lines, names=2)}"

    def _row(self, each: SearchPlan) -> dict[str, Any]:
        row = {
            "name": each.name,
            "chosen": each.name == self.chosen.name,
            "tables": len(each.masks),
            "key_bits": each.key_bits,
            "lookups": each.lookups,
            "candidates": each.candidates,
            "bytes_per_document": each.bytes_per_row,
            "microseconds": each.seconds * 1e6,
            "recall": each.recall,
        }
        if each.name in self.measured:
            found = asdict(self.measured[each.name])
            row["build_seconds"] = found.pop("build_seconds")
            row |= {f"measured_{name}": value for name, value in found.items()}
        return row


def plan(
    n: int,
    distance: int = 3,
    bits: int = 64,
    *,
    fingerprints: Any = None,
    memory: float | None = None,
    measure: bool = False,
) -> PlanTable:
    """Compare the ways to search n fingerprints, and say which one an index would take.

    Args:
        n: Fingerprints.
        distance: Largest Hamming distance of a query.
        bits: Width.
        fingerprints: Some of them, as `pairs` takes them: the estimates then know which bits vary.
        memory: Bytes that the tables may take; no limit unless said.
        measure: Build each plan whose tables fit `memory` (half of what is free unless said) for n
            random fingerprints, or those given, and measure it on one thread. Takes a while.

    Returns:
        A table: for each plan its tables, the bits of their keys, the buckets that a query opens,
        the rows that it is expected to be compared with, bytes a document beside the fingerprint,
        expected microseconds a query of a batch on one thread, and the recall of what is exactly
        at the distance (1 for exact plans). `chosen` is what plan "auto" takes.

    Raises:
        UsageError: For a number, distance, width or fingerprints that cannot be.

    Example:
        >>> table = plan(10_000_000, distance=3)
        >>> table.chosen.name
        'multi:4'
        >>> [row["tables"] for row in table if row["name"] == "multi:5"]
        [10]
    """
    check_distance(distance)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise UsageError(f"n is {n!r}: use a whole number from 0")
    if isinstance(bits, bool) or not isinstance(bits, int) or bits < 1:
        raise UsageError(f"bits is {bits!r}: use a whole number from 1")
    codes = None if fingerprints is None else as_codes(fingerprints, bits)[0]
    sample = None if codes is None else codes[:: max(1, len(codes) // SAMPLE_ROWS)]
    limit = float("inf") if memory is None else memory
    chosen = plan_search(n, distance, bits, sample, memory=limit)
    plans = _rivals(n, distance, bits, sample, chosen)
    measured = {}
    if measure:
        _check_measurable(n if codes is None else len(codes))
        rows = codes if codes is not None else random_fingerprints(n, bits)
        measured = _measure_all(rows, plans, distance, bits, memory)
    return PlanTable(n, distance, bits, chosen, plans, measured)


def measure_plan(
    codes: Codes, each: SearchPlan, distance: int, bits: int, workers: int | None = None
) -> Measured:
    """Build a plan for uint64 (n, width) and ask it for rows near its own."""
    from neardup.hamming.search.build import build_searcher
    from neardup.hamming.search.permuted import measured_recall

    begin = time.perf_counter()
    searcher = build_searcher(codes, each, distance, bits, workers)
    built = time.perf_counter() - begin
    count = int(min(max(SECONDS_EACH / each.seconds, 8), MOST_QUERIES))
    queries = _queries(codes, count, distance, bits)
    searcher.search(queries[:1], distance, 1)
    times = []
    for _ in range(REPEATS):
        begin = time.thread_time()
        searcher.search(queries, distance, 1)
        times.append(time.thread_time() - begin)
    recall = measured_recall(searcher, codes, distance, bits) if each.recall < 1 else 1.0
    size = searcher.nbytes / max(len(codes), 1)
    return Measured(min(times) / count * 1e6, built, size, recall)


def random_fingerprints(n: int, bits: int) -> Codes:
    """Fingerprints of independent bits: uint64 (n, width), always the same."""
    width = -(-bits // 64)
    codes = np.random.default_rng(SEED).integers(0, 2**64, (n, width), dtype=np.uint64)
    if bits % 64:
        codes[:, -1] &= np.uint64(2 ** (bits % 64) - 1)
    made: Codes = frozen(codes)
    return made


def _rivals(n: int, distance: int, bits: int, sample: Any, chosen: SearchPlan) -> list[SearchPlan]:
    """The plans to compare, the quickest first: of one kind none that another beats in all."""
    if distance < bits:
        exact = exact_plans(n, distance, bits, sample)
        plans = [each for each in exact if not any(_beats(other, each) for other in exact)]
        for name in (f"bands:{DEFAULT_RECALL:g}", f"permute:{DEFAULT_PERMUTATIONS}"):
            try:
                plans.append(named_plan(n, distance, bits, sample, name))
            except UsageError:
                continue
    else:
        plans = [named_plan(n, distance, bits, sample, name) for name in ("scan", "bits")]
    if chosen.name not in {each.name for each in plans}:
        plans.append(chosen)
    return sorted(plans, key=lambda each: each.seconds)


def _beats(one: SearchPlan, other: SearchPlan) -> bool:
    same = one.kind == other.kind == "mih"
    return same and one.seconds < other.seconds and one.bytes_per_row <= other.bytes_per_row


def _check_measurable(n: int) -> None:
    if n > MOST_MEASURED_ROWS:
        raise UsageError(f"n is {n:,}: measure at most {MOST_MEASURED_ROWS:,} at once")


def _measure_all(
    codes: Codes, plans: list[SearchPlan], distance: int, bits: int, memory: float | None
) -> dict[str, Measured]:
    from neardup.runtime.memory import free_memory

    limit = memory if memory is not None else free_memory() / 2
    return {
        each.name: measure_plan(codes, replace(each), distance, bits)
        for each in plans
        if each.bytes_per_row * len(codes) <= limit and len(codes)
    }


def _queries(codes: Codes, count: int, distance: int, bits: int) -> Codes:
    """Sampled rows with up to `distance` bits as another row has them: uint64 (count, width).

    So a query is as near to the other rows as they are to each other, however skewed they are.
    """
    draw = np.random.default_rng(SEED)
    queries = codes[draw.integers(0, len(codes), count)].copy()
    for _ in range(min(distance, 64)):
        bit, other = draw.integers(0, bits, count), draw.integers(0, len(codes), count)
        at, mask = (np.arange(count), bit >> 6), np.uint64(1) << (bit & 63).astype(np.uint64)
        queries[at] ^= (queries[at] ^ codes[other, bit >> 6]) & mask
    made: Codes = frozen(queries)
    return made
