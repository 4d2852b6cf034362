"""The pairs within a Hamming distance of fingerprints that exceed memory, as Arrow batches."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from neardup.errors import UsageError
from neardup.fingerprinting.values import check_distance
from neardup.hamming.join.problem import Engine
from neardup.hamming.plans.plan_checks import check_join_plan
from neardup.hamming.spilled.mergers import PairMerger
from neardup.hamming.spilled.pair_spool import PairSpool, pairs_that_fit
from neardup.hamming.spilled.slab_join import Budget, SpilledJoin
from neardup.hamming.spilled.sources import open_rows
from neardup.runtime.free_memory import memory_bytes
from neardup.runtime.progress import Quiet
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.hamming.spilled.row_file import RowFile
    from neardup.runtime.progress import Progress

__all__ = ["PAIRS", "FoundPairs", "Limits", "check_request", "joined_rows", "pair_batches"]

PAIRS: Final = pa.schema([("left", pa.int64()), ("right", pa.int64()), ("distance", pa.int16())])


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources that a join may use.

    Args:
        memory: Bytes or a size such as "12G"; by default half of the machine's, at most 4 GiB.
        tmp: Folder for spill files; the system's own if None. They are unlinked as soon as they are
            made: nothing is left behind after success, an error, an interrupt or a kill.
        workers: Threads; by default one per core.
        limit: The most pairs; by default as many as fit half of the free space in `tmp`.
        budget: Rows instead of bytes; for tests.

    Example:
        >>> Limits(memory="12G", workers=2).workers
        2
    """

    memory: str | int | None = None
    tmp: str | None = None
    workers: int | None = None
    limit: int | None = None
    budget: Budget | None = None


@dataclass(frozen=True, slots=True)
class FoundPairs:
    """The result of a join, valid while its files exist.

    Args:
        spool: The pairs.
        rows: Rows that were joined, masked ones among them.
        bits: Width of a fingerprint.
        spilled: Bytes written to disk by the join itself.
    """

    spool: PairSpool
    rows: int
    bits: int
    spilled: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The pairs, sorted, as batches of the schema PAIRS."""
        for left, right, distance in self.spool.sorted_parts():
            yield pa.record_batch([pa.array(x) for x in (left, right, distance)], schema=PAIRS)


def pair_batches(
    source: Any,
    distance: int = 3,
    bits: int | None = None,
    plan: str = "auto",
    limits: Limits | None = None,
    *,
    first_row: int = 0,
    progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Every pair of fingerprints within `distance` bits, for any number of rows and pairs.

    Args:
        source: A whole np.memmap of uint64 or int64, (n,) or (n, width), low word first; the path
            of a fingerprint file, or a list of paths; an array; or an iterable of arrays.
        distance: Largest Hamming distance, 0 or more.
        bits: Width of a fingerprint; by default what the files say, or 64 * words.
        plan: As for `pairs`.
        limits: Memory, folder for spill files, threads, most pairs.
        first_row: Number of the first row.
        progress: Shows the progress.

    Yields:
        Batches of left (int64), right (int64), distance (int16): left < right, in order, each pair
        once. They begin when all pairs are found.

    Raises:
        UsageError: For a wrong plan, distance, width, dtype or shape.
        DataError, FileError: For a file that cannot be used, or a full disk.
        TooManyPairsError: As soon as there are more pairs than the limit, with the count so far.

    Example:
        >>> import numpy as np
        >>> [batch.to_pylist() for batch in pair_batches([np.array([8, 7, 15], np.uint64)], 1)]
        [[{'left': 1, 'right': 2, 'distance': 1}]]
    """
    limits = limits or Limits()
    check_request(distance, plan, limits)
    with (
        open_rows(source, bits, limits.tmp, first_row) as (rows, width),
        joined_rows(rows, width, distance, plan, limits, progress) as pairs,
    ):
        yield from pairs.batches()


def check_request(distance: int, plan: str, limits: Limits) -> None:
    """Refuse, before reading, a request that would fail after it.

    Raises:
        UsageError: For a wrong distance, plan, memory or limit.
    """
    check_distance(distance)
    check_join_plan(plan, distance, 1 << 20)
    memory_bytes(limits.memory)
    if limits.limit is not None and limits.limit < 0:
        raise UsageError(f"limit is {limits.limit}: use 0 or more")


@contextmanager
def joined_rows(
    rows: RowFile,
    bits: int,
    distance: int,
    plan: str,
    limits: Limits,
    progress: Progress | None = None,
) -> Iterator[FoundPairs]:
    """A context with the pairs of the rows of a file."""
    check_join_plan(plan, distance, bits)
    memory = memory_bytes(limits.memory)
    budget = limits.budget or Budget.of(memory, rows)
    most = pairs_that_fit(limits.tmp) if limits.limit is None else limits.limit
    workers = worker_count(limits.workers)
    engine = Engine(distance, bits, workers, pairs_at_once=budget.pairs_at_once)
    with PairSpool(most, budget.pair_bytes, limits.tmp) as spool:
        join = SpilledJoin(engine, budget, limits.tmp, progress or Quiet())
        join.run(rows, PairMerger(spool), plan)
        yield FoundPairs(spool, rows.count, bits, join.spilled + spool.nbytes)
