"""The plan `bits`: a bitmap of rows for each bit position; the bitmaps are added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.plans.blocks import SAMPLE_ROWS, agreement
from neardup.hamming.search.searchers import First, Neighbours, in_parts, kept_first
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from neardup.hamming.plans.search_plan import SearchPlan
    from neardup.runtime.types import Code, Codes, Flags

__all__ = ["SlicesSearcher"]

BLOCKS_PER_TASK: Final = 256


class SlicesSearcher:
    """A searcher that counts the differences of 512 rows at a time, bit by bit."""

    def __init__(self, codes: Codes, plan: SearchPlan, bits: int, workers: int) -> None:
        """Slice uint64 (n, width); the positions that vary most come first."""
        from neardup.kernels.bit_counters import GROUP, LANES
        from neardup.kernels.transpose64 import BLOCK_ROWS, slice_rows

        self.plan = plan
        self._count, self._width = codes.shape
        sample = codes[:: max(1, self._count // SAMPLE_ROWS)]
        self._order = frozen(np.argsort(-agreement(sample, bits), kind="stable"))
        places = np.full(64 * self._width, -1, np.int64)
        places[self._order] = np.arange(bits)
        blocks = -(-self._count // BLOCK_ROWS)
        self._places = -(-bits // GROUP) * GROUP
        slices = np.zeros(blocks * self._places * LANES, np.uint64)

        def build(_: int, first: int) -> None:
            last = min(first + BLOCKS_PER_TASK, blocks)
            slice_rows(codes.reshape(-1), self._width, first, last, places, slices)

        in_threads(workers, build, range(0, blocks, BLOCKS_PER_TASK))
        self._slices = frozen(slices)

    @property
    def nbytes(self) -> int:
        """Bytes of the slices."""
        return int(self._slices.nbytes)

    def search(
        self, queries: Codes, distance: int, workers: int, first: First | None = None
    ) -> Neighbours:
        """See Searcher."""
        from neardup.kernels.hamming.bit_lists import search_slices

        if first is not None and first.is_kept(self._count):
            return self._first(queries, distance, workers, first)
        codes = frozen(queries)
        where = (self._slices, self._count, codes, self._order, self._places)

        def part(begin: int, end: int) -> Neighbours:
            return Neighbours(*search_slices(*where, begin, end, distance))

        return in_parts(len(queries), workers, part, first, self._count)

    def _first(self, queries: Codes, distance: int, workers: int, first: First) -> Neighbours:
        """The first matches of each query, block by block; the others are counted."""
        from neardup.kernels.hamming.bit_lists import broadcast_bits, first_in_slices

        codes = frozen(queries)

        def find(begin: int, end: int, *rule: Any) -> int:
            broadcast = broadcast_bits(codes, self._order, self._places, begin, end)
            where = (self._slices, self._count, broadcast, self._places)
            left_out: int = first_in_slices(*where, distance, *rule)
            return left_out

        return kept_first(len(queries), workers, find, first, self._count)

    def search_once(
        self, query: Code, distance: int, most: int | None = None, dead: Flags | None = None
    ) -> tuple[list[tuple[int, int]], int]:
        """See Searcher."""
        return self.search(query[None, :], distance, 1).first(most, dead)
