"""All pairs of fingerprints within a Hamming distance, exactly."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from neardup.errors import UsageError, suggests_names
from neardup.fingerprinting.values import as_codes, check_distance
from neardup.hamming.join.join_engine import solve
from neardup.hamming.join.problem import HEAVY_ROWS, Engine, Problem
from neardup.hamming.join.row_partition import Groups, group_equal
from neardup.hamming.join.sinks import Expanding, PairList, packed_pairs
from neardup.hamming.plans.names import ASKED_PLANS
from neardup.hamming.plans.plan_checks import check_join_plan, check_search_plan
from neardup.runtime.arrays import frozen
from neardup.runtime.free_memory import free_memory
from neardup.runtime.threads import worker_count

__all__ = ["pairs"]

BYTES_PER_PAIR: Final = 48
ROWS_ASKED: Final = 1 << 14


@suggests_names
def pairs(
    fingerprints: Any,
    distance: int = 3,
    bits: int | None = None,
    plan: str = "auto",
    limit: int | None = None,
    workers: int | None = None,
    *,
    heavy: int = HEAVY_ROWS,
) -> Any:
    """Find every pair of fingerprints within `distance` bits: none missed, each once.

    Args:
        fingerprints: uint64 (n,) or (n, width), low word first; int64 is taken bit for bit; or a
            list of int. Masked rows of a NumPy masked array are skipped.
        distance: Largest Hamming distance, 0 or more.
        bits: Width of a fingerprint; by default 64 * width.
        plan: "auto" for the cheapest, "scan" to compare all, "blocks" for distance + 1 blocks of
            which one agrees, "multi:M" for M blocks of which M - distance agree, "mih:M" for M
            blocks of which one differs in distance // M bits; "bits" and "probe" ask an index for
            each row. All find the same.
        limit: The most rows to return; by default as many as fit half of the free memory.
        workers: Threads; by default one per core.
        heavy: Rows from which a bucket is split again by other bits; for tests.

    Returns:
        pyarrow.Table with left (int64), right (int64), distance (int16): left < right, sorted.

    Raises:
        UsageError: For a wrong plan, distance, width, dtype or shape.
        TooManyPairsError: For more rows than `limit` or memory allow; it has the true count.

    Example:
        >>> pairs([0b0000, 0b0111, 0b1111], distance=1).to_pylist()
        [{'left': 1, 'right': 2, 'distance': 1}]
    """
    import pyarrow as pa

    codes, rows, bits = as_codes(fingerprints, bits)
    check_distance(distance)
    if plan in ASKED_PLANS:
        check_search_plan(plan, distance, bits)
    else:
        check_join_plan(plan, distance, bits)
    if limit is not None and (not isinstance(limit, (int, np.integer)) or limit < 0):
        raise UsageError(f"limit is {limit!r}: use a whole number from 0 up")
    sink = PairList(limit if limit is not None else _rows_that_fit())
    engine = Engine(distance, bits, worker_count(workers), max(2, heavy))
    named = np.empty(0, np.uint32) if rows is None else rows
    problem = Problem(codes, named)
    if plan in ASKED_PLANS:
        solve_by_search(problem, engine, sink, plan)
    else:
        solve(problem, engine, sink, plan if distance < bits else "scan")
    left, right = sink.sorted_pairs()
    columns = [left, right, _distances(codes, left, right, rows)]
    return pa.table(columns, names=["left", "right", "distance"])


def _rows_that_fit() -> int:
    """The number of pairs that fit in half of the free memory."""
    return free_memory() // 2 // BYTES_PER_PAIR


def _distances(codes: Any, left: Any, right: Any, rows: Any) -> Any:
    distances = np.empty(len(left), np.int16)
    if rows is not None:
        left, right = np.searchsorted(rows, left), np.searchsorted(rows, right)
    for start in range(0, len(left), 1 << 20):
        part = slice(start, start + (1 << 20))
        differ = np.bitwise_count(codes[left[part]] ^ codes[right[part]])
        distances[part] = differ.sum(axis=1, dtype=np.int64)
    return distances


def solve_by_search(problem: Problem, engine: Engine, sink: PairList, plan: str) -> None:
    """Find the pairs by querying a searcher for the neighbours of each distinct row."""
    from neardup.hamming.search.build import build_searcher, plan_for

    if not len(problem.codes):
        return
    groups = Groups.of(group_equal(problem.codes, engine.workers))
    distinct = frozen(problem.codes[groups.firsts])
    chosen = plan_for(distinct, engine.distance, engine.bits, plan)
    searcher = build_searcher(distinct, chosen, engine.distance, engine.bits, engine.workers)
    inner = Expanding(sink, problem, groups)
    inner.add_within()
    for first in range(0, len(distinct), ROWS_ASKED):
        queries = distinct[first : first + ROWS_ASKED]
        hits = searcher.search(queries, engine.distance, engine.workers)
        rows = hits.queries + first
        # A pair is met from both of its rows; the smaller one reports it.
        later = hits.rows > rows
        left, right = rows[later], hits.rows[later]
        stands_for = int((groups.sizes[left] * groups.sizes[right]).sum())
        inner.add(packed_pairs(left, right), stands_for)
    inner.flush()
