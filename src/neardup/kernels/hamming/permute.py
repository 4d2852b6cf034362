"""Permute the bits of fingerprints, and search sorted lists of permuted ones by a window.

Rows whose first differing bit comes late stand near each other in a sorted list; a random
permutation of the bits makes it late for some list (Charikar, STOC 2002; Ravichandran, Pantel and
Hovy, ACL 2005). Distances are the same in every permutation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.hamming.hash_tables import FIRST_ROOM, HitBuffer, apart, more_room
from neardup.kernels.jit import inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Uint64s, Words


class SortedLists(NamedTuple):
    """N lists of the same n rows, each permuted in its own way and sorted by the first word."""

    codes: Any  # uint64 (N, n * W): the rows permuted
    rows: Any  # uint32 (N, n): which rows these are
    tables: Any  # uint64 (N, 8 * W, 256, W): the permutations, see `permute_rows`
    multipliers: tuple[Any, ...]  # of length W


@inner
def permute_one(codes: Words, at: int, tables: Uint64s, out: Uint64s, to: int) -> None:
    """Write the fingerprint at codes[at], its bits permuted, to out[to]."""
    width = tables.shape[2]
    for w in range(width):
        out[to + w] = np.uint64(0)
    for byte in range(8 * width):
        shift = np.uint64(8 * (byte & 7))
        value = np.int64((codes[at + (byte >> 3)] >> shift) & np.uint64(255))
        for w in range(width):
            out[to + w] |= tables[byte, value, w]


@kernel
def permute_rows(codes: Words, tables: Uint64s, out: Uint64s) -> None:
    """Permute the bits of every row; 8 look-ups a word.

    Args:
        codes: uint64 (n * W), may be read-only.
        tables: uint64 (8 * W, 256, W): where the bits of each value of each byte go.
        out: uint64 (n * W), written.
    """
    width = tables.shape[2]
    for row in range(len(codes) // width):
        permute_one(codes, row * width, tables, out, row * width)


@inner
def lower_bound(codes: Words, width: int, value: np.uint64) -> int:
    """The first row whose first word is not below `value`."""
    low, high = np.int64(0), np.int64(len(codes) // width)
    while low < high:
        middle = (low + high) >> 1
        # Only the first word is in order; the window around the place makes up for the rest.
        if codes[middle * width] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def search_windows(
    queries: Words, first: int, last: int, lists: SortedLists, window: int, distance: int
) -> Any:
    """Compare queries first..last-1 with the rows around their place in each list.

    O(lists * (log n + window)) a query.

    Args:
        queries: uint64 (q * W), may be read-only.
        first: The first query; `last` is the one after the last.
        last: See `first`.
        lists: SortedLists.
        window: Rows on either side.
        distance: The largest that is reported.

    Returns:
        Hits; a row is there once for each list that has it near.
    """
    words, rows, tables, multipliers = lists
    width, (number, count) = len(multipliers), rows.shape
    query = np.empty(width, np.uint64)
    hits = HitBuffer(
        np.empty(FIRST_ROOM, np.int64), np.empty(FIRST_ROOM, np.int64),
        np.empty(FIRST_ROOM, np.int64),
    )  # fmt: skip
    total = np.int64(0)
    for q in range(first, last):
        for t in range(number):
            permute_one(queries, q * width, tables[t], query, 0)
            codes = words[t]
            place = lower_bound(codes, width, query[0])
            if total + 2 * window > len(hits.rows):
                hits = more_room(hits, total, total + 2 * window)
            for at in range(max(place - window, 0), min(place + window, count)):
                d = apart(query, 0, codes, at * width, multipliers)
                if d <= distance:
                    hits.queries[total], hits.rows[total] = q, rows[t, at]
                    hits.distances[total] = d
                    total += 1
    return HitBuffer(hits.queries[:total], hits.rows[:total], hits.distances[:total])
