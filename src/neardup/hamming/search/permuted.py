"""The plan `permute:N`: sorted lists of permuted fingerprints, with a measured recall."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.plans.blocks import multipliers_of
from neardup.hamming.plans.join_costs import PERMUTE_WINDOW
from neardup.hamming.plans.search_plan import SearchPlan, scan_plan
from neardup.hamming.search.searchers import First, Neighbours, ScanSearcher, in_parts
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from neardup.hamming.search.searchers import Searcher
    from neardup.runtime.types import Code, Codes, Flags

__all__ = ["PermutedSearcher", "measured_recall"]

SAMPLED_QUERIES: Final = 256
SAMPLED_COMPARISONS: Final = 1 << 30
SEED: Final = 20050625


class PermutedSearcher:
    """A searcher of a window around the query's place in N sorted lists; approximate.

    `plan.recall` is what it measured on its own rows: of sampled rows with as many bits turned as
    the distance allows, the share that it finds of what a scan finds.
    """

    def __init__(
        self, codes: Codes, plan: SearchPlan, distance: int, bits: int, workers: int
    ) -> None:
        """Sort uint64 (n, width) once for every permutation."""
        from neardup.kernels.hamming.permute import permute_rows

        count, width = codes.shape
        draw = np.random.default_rng(SEED)
        self._tables = frozen(
            np.array([_byte_tables(draw.permutation(bits), width) for _ in range(plan.lookups)])
        )
        lists = np.empty((plan.lookups, count * width), np.uint64)
        rows = np.empty((plan.lookups, count), np.uint32)

        def sort(_: int, t: int) -> None:
            out = np.empty(count * width, np.uint64)
            permute_rows(codes.reshape(-1), self._tables[t], out)
            order = np.argsort(out.reshape(count, width)[:, 0])
            lists[t] = out.reshape(count, width)[order].reshape(-1)
            rows[t] = order

        in_threads(workers, sort, range(plan.lookups))
        self._lists, self._rows = frozen(lists), frozen(rows)
        self._multipliers = multipliers_of(width)
        self.plan = plan
        self.plan = replace(plan, recall=measured_recall(self, codes, distance, bits, workers))

    @property
    def nbytes(self) -> int:
        """Bytes of the lists."""
        return int(self._lists.nbytes + self._rows.nbytes)

    def search(
        self, queries: Codes, distance: int, workers: int, first: First | None = None
    ) -> Neighbours:
        """See Searcher; approximate: some rows within the distance are missed."""
        from neardup.kernels.hamming.permute import SortedLists, search_windows

        flat = frozen(queries).reshape(-1)
        lists = SortedLists(self._lists, self._rows, self._tables, self._multipliers)

        def part(begin: int, end: int) -> Neighbours:
            hits = search_windows(flat, begin, end, lists, PERMUTE_WINDOW, distance)
            return _distinct(Neighbours(*hits))

        return in_parts(len(queries), workers, part, first)

    def search_once(
        self, query: Code, distance: int, most: int | None = None, dead: Flags | None = None
    ) -> tuple[list[tuple[int, int]], int]:
        """See Searcher."""
        return self.search(query[None, :], distance, 1).first(most, dead)


def measured_recall(
    searcher: Searcher, codes: Codes, distance: int, bits: int, workers: int = 1
) -> float:
    """The share of the rows exactly `distance` bits from a query that a searcher finds.

    The queries are sampled rows with random bits flipped; a scan finds the true matches.
    """
    if not len(codes):
        return 1.0
    draw = np.random.default_rng(SEED)
    count = max(16, min(SAMPLED_QUERIES, SAMPLED_COMPARISONS // len(codes)))
    flips = np.argsort(draw.random((count, bits)), axis=1)[:, :distance]
    flipped = np.zeros((count, codes.shape[1] * 64), np.uint8)
    np.put_along_axis(flipped, flips, 1, axis=1)
    masks = np.packbits(flipped, axis=1, bitorder="little").view("<u8")
    queries = codes[draw.integers(0, len(codes), count)] ^ masks
    scan = ScanSearcher(codes, scan_plan(len(codes), bits))
    there = scan.search(queries, distance, workers)
    neighbours = searcher.search(queries, distance, workers)
    due = np.count_nonzero(there.distances == distance)
    return float(np.count_nonzero(neighbours.distances == distance) / due) if due else 1.0


def _byte_tables(target: Any, width: int) -> Any:
    """The target of each bit for each value of each byte: uint64 (8 * width, 256, width)."""
    tables = np.zeros((8 * width, 256, width), np.uint64)
    values = np.arange(256)
    for bit, to in enumerate(target.tolist()):
        chosen = (values >> (bit & 7) & 1).astype(bool)
        tables[bit >> 3, chosen, to >> 6] |= np.uint64(1) << np.uint64(to & 63)
    return tables


def _distinct(neighbours: Neighbours) -> Neighbours:
    """Distinct matches."""
    order = np.lexsort((neighbours.rows, neighbours.queries))
    queries, rows = neighbours.queries[order], neighbours.rows[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (queries[1:] != queries[:-1]) | (rows[1:] != rows[:-1])
    return neighbours.only(order[fresh])
