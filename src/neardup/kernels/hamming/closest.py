"""The closest stored fingerprint of each query, in many parts that are searched together.

A row that several tables find is compared again and changes nothing, so no look-up checks whether
another one reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.bits import prefetch
from neardup.kernels.hamming.hash_tables import (
    FETCHED_LINES,
    IN_FLIGHT,
    LINE_WORDS,
    RUN_ROWS,
    TILE_ROWS,
    Probes,
    SearchTables,
    apart,
    count_within,
    is_heavy,
    probe_key,
    viewed,
)
from neardup.kernels.jit import inner, kernel
from neardup.kernels.segment_addresses import bytes_at

if TYPE_CHECKING:
    from neardup.kernels.array_types import Flags, Int64s, Words


class Nearest(NamedTuple):
    """The closest of each query so far: int64 (q,) distances, parts and rows there.

    Where nothing is near, the distance is one more than the largest allowed, and the part is -1. Of
    equally close rows the first one of the first part counts, in whatever order they are met.
    """

    distances: Any
    parts: Any
    rows: Any


class Part(NamedTuple):
    """The number of a part, and which of its rows are removed: uint8, of size 0 where none is."""

    number: Any
    dead: Any


@inner
def _reach_in(nearest: Any, q: int, part: int) -> int:
    """The largest distance at which another row of the part may be closer."""
    best = nearest.distances[q]
    return best if part <= nearest.parts[q] else best - 1


@inner
def _keep(nearest: Any, q: int, part: int, row: int, distance: int) -> None:
    best, before = nearest.distances[q], nearest.parts[q]
    is_first = part < before or (part == before and row < nearest.rows[q])
    if distance < best or (distance == best and is_first):
        nearest.distances[q], nearest.parts[q], nearest.rows[q] = distance, part, row


@inner
def _in_tables(
    queries: Words, first: int, last: int, tables: SearchTables, probes: Probes, part: Part,
    scratch: Int64s, nearest: Any,
) -> bool:  # fmt: skip
    """Look queries first..last-1 up; False where a bucket is too heavy, or cannot be right."""
    width, number = len(tables.multipliers), len(probes.tables)
    stored = np.int64(tables.rows.shape[1])
    for begin in range(first * number, last * number, IN_FLIGHT):
        some = min(np.int64(IN_FLIGHT), last * number - begin)
        for i in range(some):
            q, p = (begin + i) // number, (begin + i) % number
            key = probe_key(queries, q * width, p, tables, probes)
            scratch[i] = key
            prefetch(tables.starts[probes.tables[p]], key)
        for i in range(some):
            table, key = probes.tables[(begin + i) % number], scratch[i]
            scratch[i] = np.int64(tables.starts[table, key])
            scratch[IN_FLIGHT + i] = np.int64(tables.starts[table, key + 1])
            for line in range(FETCHED_LINES):
                at = scratch[i] * width + line * LINE_WORDS
                if at < scratch[IN_FLIGHT + i] * width:
                    prefetch(tables.codes[table], at)
        for i in range(some):
            q, p, low = (begin + i) // number, (begin + i) % number, scratch[i]
            high = scratch[IN_FLIGHT + i]
            if is_heavy(tables, low, high):
                return False
            table = probes.tables[p]
            codes = tables.codes[table]
            for run in range(low, high, RUN_ROWS):
                end, reach = min(run + RUN_ROWS, high), _reach_in(nearest, q, part.number)
                if not count_within(queries, q * width, codes, run, end, reach, tables.multipliers):
                    continue
                for place in range(run, end):
                    d = apart(queries, q * width, codes, place * width, tables.multipliers)
                    if d <= reach:
                        row = np.int64(tables.rows[table, place])
                        if row >= stored:
                            return False
                        if not part.dead.size or not part.dead[row]:
                            _keep(nearest, q, part.number, row, d)
    return True


@kernel
def closest_in_tables(
    queries: Words, first: int, last: int, views: Any, parts: Int64s, multipliers: tuple[Any, ...],
    nearest: Nearest, is_done: Flags,
) -> None:  # fmt: skip
    """Look queries first..last-1 up in the tables of several parts.

    Args:
        queries: uint64 (q * W,), read-only.
        first: See above.
        last: See above.
        views: uint64 (t, 13): what `view_of` gives of the tables of each part.
        parts: int64 (t, 3): its number, and address and size of which rows are removed,
            uint8, of size 0 where none is.
        multipliers: The tables' constants.
        nearest: Nearest, written.
        is_done: bool (t,), written: False where a bucket is too heavy, or cannot be right.
    """
    scratch = np.empty(2 * IN_FLIGHT, np.int64)
    for t in range(len(parts)):
        tables, probes = viewed(views[t], multipliers)
        part = Part(parts[t, 0], bytes_at(parts[t, 1], parts[t, 2]))
        is_done[t] = _in_tables(queries, first, last, tables, probes, part, scratch, nearest)


@kernel
def closest_in_rows(
    queries: Words, first: int, last: int, codes: Words, count: int, part: Part,
    multipliers: tuple[Any, ...], nearest: Nearest,
) -> None:  # fmt: skip
    """Compare queries first..last-1 with all rows of a part; O(rows) each.

    Args:
        queries: uint64 (q * W,), read-only.
        first: See above.
        last: See above.
        codes: uint64 (rows * W,), read-only.
        count: Rows.
        part: Which, and which of its rows are removed.
        multipliers: For this width.
        nearest: Nearest, written.
    """
    width = len(multipliers)
    for low in range(0, count, TILE_ROWS):
        high = min(low + TILE_ROWS, count)
        for q in range(first, last):
            for run in range(low, high, RUN_ROWS):
                end, reach = min(run + RUN_ROWS, high), _reach_in(nearest, q, part.number)
                if not count_within(queries, q * width, codes, run, end, reach, multipliers):
                    continue
                for row in range(run, end):
                    d = apart(queries, q * width, codes, row * width, multipliers)
                    if d <= reach and (not part.dead.size or not part.dead[row]):
                        _keep(nearest, q, part.number, row, d)
