"""Pairs between few new fingerprints and many old ones, which are read once.

Source: the batch mode of Manku, Jain and Das Sarma, Detecting near-duplicates for web crawling, WWW
2007, section 3.2: the new ones are kept in memory with search tables, the old ones are streamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.fingerprinting.values import as_codes, check_distance
from neardup.hamming.plans.plan_checks import check_search_plan
from neardup.hamming.search.build import build_searcher, plan_for
from neardup.hamming.spilled.batches import PAIRS
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["cross_pairs"]

ROWS_ASKED: Final = 1 << 16


def cross_pairs(
    new: Any,
    old: Iterable[Any],
    distance: int = 3,
    bits: int | None = None,
    plan: str = "auto",
    workers: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Find every pair of a new and an old fingerprint within `distance` bits, each once.

    Args:
        new: As for `pairs`; kept in memory, with search tables of some ten times their size.
        old: Batches of the others, each as `new` is; some rows of one batch are held at a time, so
            they may be far more than memory holds.
        distance: Largest Hamming distance, 0 or more.
        bits: Width of a fingerprint; by default 64 * width.
        plan: How the new ones are searched: an exact plan of `neardup.Index`; all find the same.
        workers: Threads; by default one per core.

    Yields:
        Batches of left (row of `new`), right (row among all of `old`, counted through) and
        distance, ordered by right, then left; none is empty.

    Raises:
        UsageError: For a wrong plan, distance, width, dtype or shape, or widths that differ.

    Example:
        >>> batches = cross_pairs([0b0000, 0b0111], [[0b1111], [0b0100, 0b0001]], distance=1)
        >>> [row for batch in batches for row in batch.to_pylist()]
        ... # doctest: +NORMALIZE_WHITESPACE
        [{'left': 1, 'right': 0, 'distance': 1}, {'left': 0, 'right': 1, 'distance': 1},
         {'left': 0, 'right': 2, 'distance': 1}]
    """
    codes, rows, bits = as_codes(new, bits)
    check_distance(distance)
    if check_search_plan(plan, distance, bits).kind == "permute":
        raise UsageError(f"plan {plan!r} is approximate: use auto, scan, blocks, multi:M or mih:M")
    codes, threads = frozen(codes), worker_count(workers)
    searcher = None
    first = 0
    for batch in old:
        queries, present, _ = as_codes(batch, bits)
        if searcher is None and len(codes):
            chosen = plan_for(codes, distance, bits, plan)
            searcher = build_searcher(codes, chosen, distance, bits, threads)
        if searcher is not None:
            numbers = np.arange(len(queries)) if present is None else present.astype(np.int64)
            for at in range(0, len(queries), ROWS_ASKED):
                neighbours = searcher.search(queries[at : at + ROWS_ASKED], distance, threads)
                if len(neighbours.rows):
                    right = first + numbers[neighbours.queries + at]
                    yield _ordered(rows, neighbours, right)
        first += len(batch)


def _ordered(rows: Any, neighbours: Any, right: Any) -> pa.RecordBatch:
    left = neighbours.rows if rows is None else rows[neighbours.rows].astype(np.int64)
    # Batches of old rows pass in order, so ordering each by `right` orders all of them.
    order = np.lexsort((left, right))
    columns = [left[order], right[order], neighbours.distances[order].astype(np.int16)]
    return pa.record_batch([pa.array(column) for column in columns], schema=PAIRS)
