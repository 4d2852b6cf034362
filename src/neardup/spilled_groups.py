"""Label the transitive groups of fingerprints that do not fit in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.clusters import UniteCollector
from neardup.errors import UsageError
from neardup.join import Engine
from neardup.memory import memory_bytes
from neardup.pair_batches import Limits, check_request
from neardup.partition import workers_or_default
from neardup.planner import check_plan
from neardup.progress import Quiet
from neardup.row_sources import open_rows
from neardup.spilled_join import Budget, SpilledJoin

if TYPE_CHECKING:
    from neardup.join import Collector
    from neardup.progress import Progress
    from neardup.row_files import RowFile
    from neardup.spilled_join import Taker

__all__ = ["spilled_components"]


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
        bits: Width of a fingerprint; what the files say, or 64 * words, unless said.
        plan: As for `pairs`.
        limits: Memory, folder for spill files, threads; no pair is stored, so no limit of pairs.
        progress: Told where the join is.

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
    limits = limits or Limits()
    check_request(distance, plan, limits)
    workers = workers_or_default(limits.workers)
    with open_rows(source, bits, limits.tmp) as (rows, width):
        check_plan(plan, distance, width)
        budget = limits.budget or _budget(memory_bytes(limits.memory), rows, workers)
        parent = np.arange(rows.count, dtype=np.uint32 if rows.number_bytes == 4 else np.uint64)
        join = SpilledJoin(
            Engine(distance, width, workers), budget, limits.tmp, progress or Quiet()
        )
        join.run(rows, ForestTaker(parent), plan)
    return _flat(parent)


def _budget(memory: int, rows: RowFile, workers: int) -> Budget:
    """What is left beside the labels; each thread has a union-find of the slab."""
    labels = rows.number_bytes * rows.count
    if labels > memory // 2:
        raise UsageError(
            f"memory is {memory:,} bytes, and the labels of {rows.count:,} rows take {labels:,}:"
            f" use {2 * labels:,} or more"
        )
    return Budget.of(memory - labels, rows, 4 * workers)


def _flat(parent: Any) -> Any:
    from neardup.kernels.partition import flatten

    flatten(parent, parent)
    return parent


@dataclass(frozen=True, slots=True)
class ForestTaker:
    """Unites what is found in slabs in one union-find of all rows."""

    parent: Any  # uint32 or uint64 (n,)

    def slab(self, words: Any, numbers: Any) -> Collector:
        """A collector with a union-find of the slab for each thread."""
        return SlabForests(len(words), numbers)

    def finish(self, collector: Collector) -> None:
        """Unite the rows that are united in a slab."""
        assert isinstance(collector, SlabForests)  # noqa: S101
        collector.merge_into(self.parent)

    def expect(self, pairs: int) -> None:
        """No pair is stored, so there are never too many."""

    def collapsed(self, groups: list[Any], due: bool) -> Taker:  # noqa: ARG002
        """Unite equal rows; the first of each stands for the others."""
        from neardup.kernels.partition import unite_all

        for numbers in groups:
            unite_all(self.parent, np.full(len(numbers), numbers[0]), numbers)
        return self


class SlabForests(UniteCollector):
    """Union-finds of a slab's rows, one for each thread."""

    def __init__(self, rows: int, numbers: Any) -> None:
        """Start with every row on its own."""
        super().__init__(rows)
        self._numbers = numbers

    def merge_into(self, parent: Any) -> None:
        """Unite the rows in the union-find of all rows, by their numbers."""
        from neardup.kernels.slabs import unite_numbers

        for forest in self._forests.values():
            unite_numbers(forest, self._numbers, parent)
