"""Groups of fingerprints that exceed memory: transitive components, or greedy keep.

Matches never leave a component, and most components are small. So greedy keep is decided for some
components at a time, whose rows are read again.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.hamming.join.greedy_keep import keep_within
from neardup.hamming.join.problem import Engine
from neardup.hamming.plans.plan_checks import check_join_plan
from neardup.hamming.spilled.batches import Limits, check_request
from neardup.hamming.spilled.mergers import ForestMerger
from neardup.hamming.spilled.slab_join import Budget, SpilledJoin
from neardup.hamming.spilled.sources import open_rows
from neardup.runtime.free_memory import memory_bytes
from neardup.runtime.progress import Quiet
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.hamming.spilled.row_file import RowFile
    from neardup.runtime.progress import Progress
    from neardup.runtime.types import Numbers, Rows

__all__ = ["spilled_components", "spilled_greedy"]

RANGE_BITS: Final = 20
ROWS_AT_ONCE: Final = 1 << 22
BYTES_OF_A_MEMBER: Final = 96
"""The memory of a member beside three copies of its words: row numbers, labels, and the search in
its component."""


def spilled_components(
    source: Any,
    distance: int = 3,
    bits: int | None = None,
    plan: str = "auto",
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Any:
    """Label the transitive groups of fingerprints within `distance` bits of each other.

    Args:
        source: As for `pair_batches`. A masked row is a group of its own.
        distance: Largest Hamming distance, 0 or more.
        bits: Width of a fingerprint; by default what the files say, or 64 * words.
        plan: As for `pairs`.
        limits: Memory, folder for spill files, threads; no pair is stored, so no limit of pairs.
        progress: Shows the progress.

    Returns:
        uint32 (n,), uint64 beyond 2^32 rows: for each row the smallest row of its group. It counts
        towards the memory.

    Raises:
        UsageError: For a wrong plan, distance or width, or memory too small for the labels.
        DataError, FileError: For a file that cannot be used, or a full disk.

    Example:
        >>> spilled_components(np.array([0b0000, 0b1111, 0b0001, 0b0011], np.uint64), 1).tolist()
        [0, 1, 0, 0]
    """
    with _joined(source, distance, bits, plan, limits or Limits(), progress) as (_, labels, _):
        return labels


def spilled_greedy(
    source: Any,
    distance: int = 3,
    bits: int | None = None,
    plan: str = "auto",
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Any:
    """Keep fingerprints in order; drop one only if it is within `distance` of a kept one.

    Args:
        source: As for `pair_batches`. A masked row is always kept.
        distance: As for `spilled_components`, like all that follow.
        bits: Width of a fingerprint.
        plan: As for `pairs`.
        limits: Memory, folder for spill files, threads.
        progress: Shows the progress.

    Returns:
        uint32 (n,), uint64 beyond 2^32 rows: for a dropped row the first kept row within the
        distance; a kept row names itself.

    Raises:
        UsageError, DataError, FileError: As `spilled_components`; UsageError too for a component
            whose rows do not fit in memory.

    Example:
        >>> spilled_greedy(np.array([0b0000, 0b0001, 0b0011], np.uint64), 1).tolist()
        [0, 0, 2]
    """
    limits = limits or Limits()
    with _joined(source, distance, bits, plan, limits, progress) as (rows, labels, engine):
        left = memory_bytes(limits.memory) - labels.nbytes
        most = max(1, left // (BYTES_OF_A_MEMBER + 24 * rows.width))
        keep_greedily(rows, labels, engine, most)
        return labels


@contextmanager
def _joined(
    source: Any,
    distance: int,
    bits: int | None,
    plan: str,
    limits: Limits,
    progress: Progress | None,
) -> Iterator[tuple[RowFile, Any, Engine]]:
    """The rows of a source, the labels of `spilled_components`, and the search."""
    check_request(distance, plan, limits)
    with open_rows(source, bits, limits.tmp) as (rows, width):
        check_join_plan(plan, distance, width)
        engine = Engine(distance, width, worker_count(limits.workers))
        budget = limits.budget or _budget(memory_bytes(limits.memory), rows, engine.workers)
        count, small = rows.count, rows.number_bytes == 4
        parent: Numbers = (
            np.arange(count, dtype=np.uint32) if small else np.arange(count, dtype=np.uint64)
        )
        join = SpilledJoin(engine, budget, limits.tmp, progress or Quiet())
        join.run(rows, ForestMerger(parent), plan)
        yield rows, _flat(parent), engine


def keep_greedily(rows: RowFile, labels: Rows, engine: Engine, most: int) -> None:
    """Replace the component labels by the kept row of each row, in place.

    Components are taken from the last label down: a kept row is never before the component's
    first, so what is written cannot be taken for a label that is still to come.

    Args:
        rows: The fingerprints.
        labels: As in `spilled_components`.
        engine: Of the search.
        most: The most rows of components that may be in memory.

    Raises:
        UsageError: If a component has more.
    """
    # From the last label down: see above; the other way round a kept row that was written could be
    # read as the label of a component that is still to come.
    for first, last in reversed(label_ranges(labels, most)):
        dropped = _rows_between(labels, first, last)
        members = np.union1d(dropped, labels[dropped])
        codes = _words_of(rows, members)
        _, places = np.unique(labels[members], return_inverse=True)
        labels[members] = members[keep_within(codes, places, None, engine)]


def label_ranges(labels: Rows, most: int) -> list[tuple[int, int]]:
    """Ranges of labels, each with at most `most` rows in components of several.

    Raises:
        UsageError: If a component has more.
    """
    n = len(labels)
    shift = max(0, n.bit_length() - RANGE_BITS)
    counts = np.zeros((n >> shift) + 1, np.int64)
    for begin in range(0, n, ROWS_AT_ONCE):
        part = labels[begin : begin + ROWS_AT_ONCE]
        joined = part[part != np.arange(begin, begin + len(part))]
        places = (joined >> part.dtype.type(shift)).astype(np.int64)
        counts += np.bincount(places, minlength=len(counts))
    counts *= 2  # each range may have as many firsts
    if len(counts) and counts.max() > most:
        raise UsageError(
            f"a group has up to {counts.max():,} rows, and memory holds {most:,}: use more memory,"
            " or --policy components"
        )
    ranges, begin, rows = [], 0, 0
    for place in np.flatnonzero(counts).tolist():
        if rows + counts[place] > most:
            ranges.append((begin << shift, place << shift))
            begin, rows = place, 0
        rows += int(counts[place])
    return [*ranges, (begin << shift, n)] if rows else ranges


def _rows_between(labels: Rows, first: int, last: int) -> Any:
    """The rows of labels first..last-1 that are not the first of their component."""
    parts = []
    for begin in range(0, len(labels), ROWS_AT_ONCE):
        part = labels[begin : begin + ROWS_AT_ONCE]
        chosen = (part >= first) & (part < last)
        rows = np.flatnonzero(chosen) + begin
        parts.append(rows[labels[rows] != rows])
    return np.concatenate(parts)


def _words_of(rows: RowFile, members: Any) -> Any:
    """The fingerprints of some rows, ascending: uint64 (m, W)."""
    codes = np.empty((len(members), rows.width), np.uint64)
    step = rows.chunk_rows()
    workspace = np.empty((step, rows.width), np.uint64)
    for begin in range(0, rows.count, step):
        size = min(step, rows.count - begin)
        low, high = np.searchsorted(members, (begin, begin + size))
        if low < high:
            rows.read_codes(begin, workspace[:size])
            codes[low:high] = workspace[members[low:high] - begin]
    return codes


def _budget(memory: int, rows: RowFile, workers: int) -> Budget:
    """The memory left next to the labels; each thread has a union-find of the slab."""
    labels = rows.number_bytes * rows.count
    if labels > memory // 2:
        raise UsageError(
            f"memory is {memory:,} bytes, and the labels of {rows.count:,} rows take {labels:,}:"
            f" use {2 * labels:,} or more"
        )
    return Budget.of(memory - labels, rows, 4 * workers)


def _flat(parent: Any) -> Any:
    from neardup.kernels.forest import flatten

    flatten(parent, parent)
    return parent
