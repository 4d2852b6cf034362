"""The tables of a plan: the hash of their keys, and the buckets that a query opens."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import DataError
from neardup.hamming.join.row_partition import Groups, group_equal
from neardup.hamming.plans.blocks import bits_of, choices, multipliers_of
from neardup.hamming.plans.search_plan import SearchPlan
from neardup.hamming.search.searchers import (
    NOTHING,
    QUERIES_CUT_AT_ONCE,
    First,
    Neighbours,
    Searcher,
    first_hits,
    in_parts,
    in_workspace,
)
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from neardup.hamming.plans.search_plan import SearchPlan
    from neardup.runtime.types import Code, Codes, Flags, Masks, Offsets, Rows, Words

__all__ = ["TableSearcher", "build_tables", "key_factors", "probes_of"]

HEAVY_BUCKET: Final = 1 << 16
"""The number of rows from which a searcher of a bucket costs less than comparing them all (some 20
us)."""
HEAVY_TIMES: Final = 32
FINE_FROM: Final = 12


def probes_of(plan: SearchPlan, distance: int) -> Any:
    """The buckets that a query of a distance opens.

    Where the m masks are disjoint and share the distance (mih, probe), rows within k bits differ
    from the query in at most k // m bits of one of the first k % m + 1 blocks, or in less of
    another (Norouzi, Punjani and Fleet, CVPR 2012). Else they agree with it on one mask.
    """
    from neardup.kernels.hamming.hash_tables import Probes

    number, width = plan.masks.shape
    radii = np.zeros(number, np.int64)
    if plan.kind in {"mih", "probe"}:
        radii[:] = distance // number
        radii[distance % number + 1 :] -= 1
    flips = [
        (table, chosen)
        for table, mask in enumerate(plan.masks)
        for chosen in choices(bits_of(mask), int(radii[table]))
    ]
    flipped = np.zeros((len(flips), width), np.uint64)
    for i, (_, chosen) in enumerate(flips):
        for bit in chosen:
            flipped[i, bit // 64] ^= np.uint64(1 << bit % 64)
    tables = np.array([table for table, _ in flips], np.int64)
    return Probes(flipped, tables, radii)


def key_factors(masks: Masks, key_bits: int) -> Masks:
    """The multipliers of the words under each mask; the key is the top bits of the sum.

    A mask of no more bits than the key has them moved there side by side, so that different bits
    have different keys (almost, where a word has several runs of them). More bits are spread by the
    generalised golden ratio, brought to the mask's lowest bit: the multiples of other numbers, such
    such as the ratio times a power of two, may be in clumps (the three-gap theorem).

    Args:
        masks: uint64 (tables, width).
        key_bits: Bits of the keys.

    Returns:
        uint64 (tables, width).
    """
    spread = _golden(masks.shape[1])
    rows = [
        _side_by_side(mask, key_bits)
        or [
            ratio >> max((bits & -bits).bit_length() - 1, 0) | 1
            for ratio, bits in zip(spread, mask, strict=True)
        ]
        for mask in masks.tolist()
    ]
    return np.array(rows, np.uint64)


def _side_by_side(mask: list[int], key_bits: int) -> list[int] | None:
    """Factors that move a mask's runs of ones to the top, next to each other; None if none do.

    A product only moves bits up.
    """
    if sum(bits.bit_count() for bits in mask) > key_bits:
        return None
    factors, end = [0] * len(mask), 64
    for word, bits in enumerate(mask):
        for low, length in reversed(_runs(bits)):
            end -= length
            if end < low:
                return None
            factors[word] |= 1 << end - low
    return factors


def _golden(width: int) -> list[int]:
    """Powers of 1 / x as fractions of 2**64, where x ** (width + 1) = x + 1."""
    x = 2.0
    for _ in range(64):
        x = (1 + x) ** (1 / (width + 1))
    return [int(x ** -(w + 1) * 2**64) for w in range(width)]


def _runs(bits: int) -> list[tuple[int, int]]:
    """The lowest bit and the length of each run of ones."""
    return [(run.start(), len(run[0])) for run in re.finditer("1+", f"{bits:b}"[::-1])]


def build_tables(codes: Codes, plan: SearchPlan, workers: int) -> Any:
    """The plan's tables of uint64 (n, width) rows; each thread builds whole tables."""
    from neardup.kernels.hamming.hash_tables import SearchTables, build_table

    count, width = codes.shape
    number, keys = len(plan.masks), 1 << plan.key_bits
    tables = SearchTables(
        np.empty((number, count * width), np.uint64),
        np.empty((number, count), np.uint32),
        np.empty((number, keys + 1), np.uint32),
        frozen(plan.masks),
        np.uint64(64 - plan.key_bits),
        frozen(key_factors(plan.masks, plan.key_bits)),
        multipliers_of(width),
        max(HEAVY_BUCKET, HEAVY_TIMES * int(plan.candidates) // max(plan.lookups, 1)),
    )
    threads = min(workers, number)
    spare = [
        (np.empty(count * width, np.uint64), np.empty(count, np.uint32)) for _ in range(threads)
    ]
    fine = np.uint64(plan.key_bits // 2 if plan.key_bits > FINE_FROM else 0)
    flat = codes.reshape(-1)

    def build(slot: int, t: int) -> None:
        build_table(flat, tables, t, fine, *spare[slot])

    in_threads(threads, build, range(number))
    return tables._replace(**{x: frozen(getattr(tables, x)) for x in ("codes", "rows", "starts")})


class TableSearcher:
    """A searcher that looks a query up in tables by some of its bits."""

    def __init__(
        self,
        codes: Codes,
        plan: SearchPlan,
        distance: int,
        searcher_within: Callable[[Codes], Searcher],
        workers: int,
        tables: Any = None,
    ) -> None:
        """Build every table of the plan for uint64 (n, width), unless tables are passed.

        A bucket that is too large to be compared row by row gets what `searcher_within` makes of
        its distinct fingerprints.
        """
        from neardup.kernels.hamming.hash_tables import search_tables_once, view_of

        self.plan = plan
        self._codes, self._searcher_within = codes, searcher_within
        self._tables = tables or build_tables(codes, plan, workers)
        self._probes = probes_of(plan, distance)
        self._view, self._multipliers = (
            view_of(self._tables, self._probes),
            self._tables.multipliers,
        )
        self._once = search_tables_once
        self._children: dict[tuple[int, int], _HeavyBucket] = {}
        self._lock = threading.Lock()

    @property
    def tables(self) -> Any:
        """The kernels' Tables."""
        return self._tables

    @property
    def view(self) -> Any:
        """The tables and a query's buckets, as `view_of` returns them."""
        return self._view

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return sum(x.nbytes for x in self._tables[:3])

    def search(
        self, queries: Codes, distance: int, workers: int, first: First | None = None
    ) -> Neighbours:
        """See Searcher.

        Raises:
            DataError: If a given table does not agree with the rows.
        """
        flat = frozen(queries).reshape(-1)
        heavy: list[Any] = []

        def part(begin: int, end: int) -> Neighbours:
            hits, too_heavy = self._search(flat, begin, end, distance)
            heavy.append(too_heavy)
            return Neighbours(*hits)

        neighbours = in_parts(len(queries), workers, part, first)
        waiting = np.concatenate([*heavy, np.empty((0, 4), np.int64)])
        parts = self._in_heavy(waiting, queries, distance, workers, first)
        return Neighbours.joined([neighbours, *parts])

    def _search(self, flat: Words, first: int, last: int, distance: int) -> Any:
        from neardup.kernels.hamming.hash_tables import search_tables

        return search_tables(flat, first, last, self._tables, self._probes, distance)

    def search_once(
        self, query: Code, distance: int, most: int | None = None, dead: Flags | None = None
    ) -> tuple[list[tuple[int, int]], int]:
        """See Searcher."""
        hits = in_workspace(self._once, query, self._view, self._multipliers, distance)
        if hits is NOTHING:
            return [], 0
        if hits is None:
            return self.search(query[None, :], distance, 1).first(most, dead)
        return first_hits(hits, most, dead)

    def _in_heavy(
        self, waiting: Any, queries: Codes, distance: int, workers: int, first: First | None
    ) -> Iterator[Neighbours]:
        """The matches in heavy buckets, for the queries that open one."""
        waiting = waiting[np.lexsort((waiting[:, 2], waiting[:, 1]))]
        edges = np.flatnonzero(np.any(waiting[1:, 1:3] != waiting[:-1, 1:3], axis=1)) + 1
        for group in np.split(waiting, edges) if len(waiting) else []:
            probe, low, high = group[0, 1:].tolist()
            child = self._child(int(self._probes.tables[probe]), low, high)
            dead = None if first is None else first.dead
            members, starts = child.members(dead)
            size = len(group) if first is None else QUERIES_CUT_AT_ONCE
            for begin in range(0, len(group), size):
                numbers = group[begin : begin + size, 0]
                own_queries = queries[numbers]
                inside = child.search(own_queries, distance, workers)
                inside = inside.only(
                    self._due(own_queries[inside.queries] ^ child.codes(inside), probe)
                )
                neighbours = _expanded(inside, members, starts, first)
                if first is not None:
                    neighbours = first.of(neighbours, len(own_queries))
                yield neighbours._replace(queries=numbers[neighbours.queries])

    def _due(self, differ: Any, probe: int) -> Any:
        """The rows that a probe reports, as the kernel's `due_here`: bool."""
        masks, table = self._tables.masks, self._probes.tables[probe]
        due = ~((differ ^ self._probes.flips[probe]) & masks[table]).any(axis=1)
        for mask, radius in zip(masks[:table], self._probes.radii[:table], strict=True):
            due &= np.bitwise_count(differ & mask).sum(axis=1) > radius
        return due

    def _child(self, table: int, low: int, high: int) -> _HeavyBucket:
        # Threads ask at once; the first to come makes the child, and all others find it.
        with self._lock:
            child = self._children.get((table, low))
            if child is None:
                rows = self._tables.rows[table, low:high].astype(np.int64)
                if not 0 < high - low == len(rows) or rows.max() >= len(self._codes):
                    raise DataError("a search table does not agree with the rows: make it again")
                child = _HeavyBucket(self._codes, rows, self._searcher_within)
                self._children[table, low] = child
            return child


class _HeavyBucket:
    """The rows of a heavy bucket: their distinct fingerprints, and the rows with each."""

    def __init__(
        self, codes: Codes, rows: Rows, searcher_within: Callable[[Codes], Searcher]
    ) -> None:
        self._groups = Groups.of(group_equal(codes[rows], 1))
        self._rows = rows[self._groups.members]
        self._distinct = codes[rows[self._groups.firsts]]
        self._searcher = searcher_within(self._distinct)

    def search(self, queries: Codes, distance: int, workers: int) -> Neighbours:
        """See Searcher; the rows are the distinct fingerprints."""
        return self._searcher.search(queries, distance, workers)

    def codes(self, neighbours: Neighbours) -> Codes:
        """The fingerprints of matches, uint64 (m, width)."""
        codes: Codes = self._distinct[neighbours.rows]
        return codes

    def members(self, dead: Flags | None) -> tuple[Rows, Offsets]:
        """The living rows of each distinct fingerprint, ascending, and their begins."""
        if dead is None:
            return self._rows, self._groups.starts
        living = ~dead[self._rows]
        return self._rows[living], np.append(0, np.cumsum(living))[self._groups.starts]


def _expanded(
    neighbours: Neighbours, members: Rows, starts: Offsets, first: First | None
) -> Neighbours:
    """The rows with the matching fingerprints, up to a limit for each."""
    begins = starts[neighbours.rows]
    sizes = starts[neighbours.rows + 1] - begins
    if first is not None:
        cut = np.minimum(sizes, first.most)
        first.note(int(sizes.sum() - cut.sum()))
        sizes = cut
    ends = np.cumsum(sizes)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
    return Neighbours(
        np.repeat(neighbours.queries, sizes),
        members[np.repeat(begins, sizes) + within],
        np.repeat(neighbours.distances, sizes),
    )
