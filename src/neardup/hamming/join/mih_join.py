"""The join by few blocks in which some bits may differ: sorts by each block, and joins near keys.

What it costs on skewed rows is known before it is run: `candidates` counts the rows that would be
compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.join.row_partition import ROWS_OF_A_THREAD
from neardup.hamming.plans.blocks import flips
from neardup.runtime.arrays import frozen
from neardup.runtime.partition_by_key import balanced_ranges, by_key, even_ranges
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.hamming.plans.join_plan import JoinPlan
    from neardup.runtime.types import Codes, RowNumbers

__all__ = ["SortedRows", "candidates", "join_keys"]

BINS_LOG2: Final = 10
PADDING: Final = 8
ROWS_COUNTED: Final = 1 << 18
ROWS_ASKED: Final = 1024
RANGES_A_THREAD: Final = 64
ROWS_A_RANGE: Final = 1 << 12


def candidates(codes: Any, plan: JoinPlan) -> float:
    """The estimated number of pairs that a plan of flipped blocks compares, from a sample of rows.

    Args:
        codes: uint64 (n, W).
        plan: A plan with `part` blocks.
    """
    from neardup.kernels.hamming.mih import count_blocks, count_near_keys

    sample = frozen(codes[:: -(-len(codes) // ROWS_COUNTED)])
    chosen = np.linspace(0, len(sample) - 1, min(len(sample), ROWS_ASKED)).astype(np.int64)
    total = 0.0
    for block, part in enumerate(plan.mih):
        if part.radius >= 0:
            key = _key_of(plan, block)
            counts = np.zeros(1 << key.bits, np.int64)
            count_blocks(sample, 0, len(sample), key, 0, counts)
            ball = flips(key.bits, part.radius)
            total += count_near_keys(sample, chosen, key, ball, counts) - len(chosen)
    return total / len(chosen) * (len(codes) / len(sample)) * len(codes) / 2


def _key_of(plan: JoinPlan, block: int) -> Any:
    from neardup.kernels.hamming.mih import BlockKey

    part = plan.mih[block]
    return BlockKey(part.first, part.length, part.key_bits)


@dataclass(slots=True)
class SortedRows:
    """Rows sorted by the key of a block; the arrays are reused for the next block."""

    codes: Codes  # by bins, the keys' upper bits
    numbers: RowNumbers  # likewise
    columns: Any  # uint64 (W, n + PADDING)
    ids: RowNumbers

    @classmethod
    def empty(cls, n: int, width: int) -> SortedRows:
        """Uninitialised arrays for n rows of `width` words."""
        columns = np.zeros((width, n + PADDING), np.uint64)
        return cls(np.empty((n, width), np.uint64), np.empty(n, np.uint32), columns,
                   np.empty(n, np.uint32))  # fmt: skip

    def fill(self, codes: Any, plan: JoinPlan, block: int, workers: int) -> Any:
        """Sort `codes` by a block's key; each thread takes a range of rows, then of bins.

        Returns:
            A Sorted of the kernels.
        """
        from neardup.kernels.hamming.mih import Sorted, count_blocks, order_bins, scatter_blocks

        n, key = len(codes), _key_of(plan, block)
        low = max(0, key.bits - BINS_LOG2)

        def count(first: int, last: int, counts: Any) -> None:
            count_blocks(codes, first, last, key, low, counts)

        def scatter(first: int, last: int, places: Any) -> None:
            scatter_blocks(codes, first, last, key, low, places, self.codes, self.numbers)

        ranges = even_ranges(n, workers if n > ROWS_OF_A_THREAD else 1)
        bins = by_key(ranges, 1 << (key.bits - low), workers, count, scatter)
        starts = np.full((1 << key.bits) + 1, n, np.int64)
        rows = Sorted(self.columns, self.ids, starts)

        def order(_: int, part: tuple[int, int]) -> None:
            order_bins(self.codes, self.numbers, bins, *part, key, low, rows)

        # A bin is one thread's: the places of its rows, and the starts of its keys, are its own.
        in_threads(workers, order, _ranges(bins, workers))
        return rows


def _ranges(starts: Any, workers: int) -> list[tuple[int, int]]:
    """Ranges of bins of about equal rows, enough of them to keep the threads busy."""
    pieces = min(workers * RANGES_A_THREAD, max(1, int(starts[-1]) // ROWS_A_RANGE))
    return balanced_ranges(starts, pieces)


def join_keys(
    codes: Any, plan: JoinPlan, workers: int, run: Callable[[int, Callable[[Any], None]], None],
    agree: Any, blocks: Any,
) -> None:  # fmt: skip
    """Find every pair within the distance exactly once, by near keys.

    Args:
        codes: uint64 (n, W).
        plan: A plan with `part` blocks.
        workers: Threads.
        run: Called as run(slot, kernel): calls the kernel with where its output goes.
        agree: uint8: the problem's conditions, as the kernels of `join` have them.
        blocks: Blocks of those kernels.
    """
    from neardup.kernels.hamming.mih import Ball, join_flipped

    sorted_rows = SortedRows.empty(*codes.shape)
    radii = np.array([part.radius for part in plan.mih], np.int64)
    for block, part in enumerate(plan.mih):
        if part.radius < 0:
            continue
        rows = sorted_rows.fill(codes, plan, block, workers)
        ball = Ball(block, flips(part.key_bits, part.radius), radii)

        def join(slot: int, part: tuple[int, int], rows: Any = rows, ball: Any = ball) -> None:
            run(slot, lambda output: join_flipped(rows, *part, ball, agree, blocks, output))

        # Threads read all rows and write none: a key of one range meets keys of others.
        in_threads(workers, join, _ranges(rows.starts, workers))
