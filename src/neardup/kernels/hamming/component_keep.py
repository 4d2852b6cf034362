"""Greedy keep inside components: a row is dropped if an earlier kept row is within the distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.hamming.bucket_join import distance_between
from neardup.kernels.hamming.hash_partition import block_key
from neardup.kernels.jit import inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Codes, Int64s, Rows, Uint64s

TILE = 128


class Components(NamedTuple):
    """Rows by component: only rows of one component may drop each other."""

    codes: Any  # uint64 (n, W)
    members: Any  # int64: rows, component after component, each in order of priority
    starts: Any  # int64 (components + 1,): where each begins among the members
    distance: int
    lanes: tuple[Any, ...]  # of length W


class KeptTables(NamedTuple):
    """Hash tables of the kept rows, one for each union of blocks; if none, the list is walked."""

    masks: Any  # uint64 (tables, W)
    heads: Any  # int32 (tables, 2**(64 - shift)): newest kept row of a key, -1 for none
    nexts: Any  # int32 (tables, most kept rows): the one before it
    shift: Any  # uint64


@inner
def first_in_list(
    codes: Codes, row: int, kept: Uint64s, count: int, distance: int, lanes: tuple[np.uint64, ...]
) -> int:
    """Place of the first of `count` kept rows within the distance of the row, or -1; O(count)."""
    for tile in range(0, count, TILE):
        end = min(tile + TILE, count)
        hits = 0
        for i in range(tile, end):
            hits += distance_between(codes, row, kept, i, lanes) <= distance
        if hits > 0:
            for i in range(tile, end):
                if distance_between(codes, row, kept, i, lanes) <= distance:
                    return i
    return -1


@inner
def first_in_tables(
    codes: Codes, row: int, kept: Uint64s, distance: int, lanes: tuple[np.uint64, ...],
    tables: KeptTables,
) -> int:  # fmt: skip
    """As `first_in_list`, but of kept rows that share some table's bits, as all near ones do."""
    best = -1
    for t in range(len(tables.masks)):
        place = tables.heads[t, block_key(codes, row, tables.masks[t], lanes, tables.shift)]
        while place >= 0:
            if best < 0 or place < best:
                if distance_between(codes, row, kept, place, lanes) <= distance:
                    best = np.int64(place)
            place = tables.nexts[t, place]
    return best


@kernel
def keep_component(
    codes: Codes, rows: Rows, distance: int, lanes: tuple[np.uint64, ...], tables: KeptTables,
    kept: Uint64s, kept_rows: Int64s, out: Int64s,
) -> int:  # fmt: skip
    """Visit `rows` in order and write out[row] = its first kept match, or itself.

    `kept` (uint64, as many rows as may be kept, W) and `kept_rows` (int64) are working memory.
    Returns the rows kept; -1 if they were more than that, with `out` unfinished.
    """
    count = 0
    indexed = len(tables.masks) > 0
    # In order of priority: the kept rows are numbered in it, so the smallest place that is near is
    # the kept row of highest priority, whichever table found it.
    for row in rows:
        if indexed:
            place = first_in_tables(codes, row, kept, distance, lanes, tables)
        else:
            place = first_in_list(codes, row, kept, count, distance, lanes)
        if place >= 0:
            out[row] = kept_rows[place]
            continue
        if count == len(kept):
            return -1
        out[row] = row
        kept_rows[count] = row
        for w in range(len(lanes)):
            kept[count, w] = codes[row, w]
        for t in range(len(tables.masks)):
            key = block_key(codes, row, tables.masks[t], lanes, tables.shift)
            tables.nexts[t, count] = tables.heads[t, key]
            tables.heads[t, key] = count
        count += 1
    return count


@kernel
def keep_components(
    components: Components, first: int, last: int, tables: KeptTables, kept: Uint64s,
    kept_rows: Int64s, out: Int64s, large: Bytes,
) -> None:  # fmt: skip
    """Apply `keep_component` to components first..last-1; large[c] = 1 where one keeps too many."""
    codes, members, starts = components.codes, components.members, components.starts
    distance, lanes = components.distance, components.lanes
    for c in range(first, last):
        rows = members[starts[c] : starts[c + 1]]
        done = keep_component(codes, rows, distance, lanes, tables, kept, kept_rows, out)
        large[c] = done < 0
