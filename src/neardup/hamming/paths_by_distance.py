"""The matches that lead from a dropped document of a transitive group to the one kept for it.

The flow: rows within the limit of their kept one are one step from it. The other rows of their
groups are put under the values of their blocks, and the walk goes outwards from those, level by
level. Of equal rows the first goes, for all. So the time grows with the rows that share a block,
and not with the length of the paths.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from neardup.fingerprinting.values import distance
from neardup.runtime.arrays import cut

__all__ = ["paths_by_distance"]

ROWS_AT_ONCE: Final = 1 << 20
"""The rows of groups that are handled together; a larger group is walked as a whole."""
STEPS_AT_ONCE: Final = 1 << 12
"""The number of rows between two checks for an interrupt."""


def paths_by_distance(values: Any, kept_by: Any, limit: int) -> Any:
    """The next document on a shortest path from each dropped document to the kept one.

    Args:
        values: uint64 (n, width), masked where a document is empty.
        kept_by: int64 (n,).
        limit: Bits.

    Returns:
        int64 (n,): the next document on the path, of several the nearest, of those the first; a
        kept one names itself.
    """
    codes, via = np.ma.getdata(values), kept_by.copy()
    if not len(codes):
        return via
    far = distance(codes, codes[kept_by]) > limit
    has_far = np.zeros(len(codes), np.bool_)
    has_far[kept_by[far]] = True
    rows = np.flatnonzero(has_far[kept_by])
    rows = rows[np.argsort(kept_by[rows], kind="stable")]
    begins = np.flatnonzero(np.diff(kept_by[rows], prepend=-1))
    ends = np.append(begins, rows.size)
    for first, last in cut(np.diff(ends), ROWS_AT_ONCE):
        some = np.sort(rows[ends[first] : ends[last]])
        next_rows = _next_rows(codes[some], kept_by[some], far[some], limit)
        via[some[far[some]]] = some[next_rows[far[some]]]
    return via


def _next_rows(codes: Any, group: Any, far: Any, limit: int) -> Any:
    """The next row on the path of each far row; int64 (m,)."""
    from neardup.kernels.paths import BACK, LEVEL, Queue, Rows, name_blocks, reach_rows, under_names

    first = _first_equal(codes, group)
    goes = first == np.arange(len(codes))
    masks, m = _blocks(codes, limit), len(codes)
    steps = np.where(far, 0, 1)
    rows = Rows(codes, group, masks, np.arange(m), np.zeros(m, np.int64), steps)
    starts, rest = np.flatnonzero(goes & ~far), np.flatnonzero(goes & far)
    queue = Queue(np.append(starts, np.zeros(rest.size, np.int64)), np.zeros(3, np.int64))
    queue.state[[LEVEL, BACK]] = starts.size
    unreached, _ = under_names(name_blocks(rest, rows), np.repeat(rest, len(masks)))
    # The kernel comes back from time to time, for an interrupt; it goes on where it was.
    while reach_rows(rows, limit, unreached, queue, STEPS_AT_ONCE):
        pass
    return rows.via[first]


def _first_equal(codes: Any, group: Any) -> Any:
    """The first row of the same group with the same fingerprint; int64 (m,)."""
    order = np.lexsort((*codes.T, group))
    of_group = np.column_stack([codes, group.astype(np.uint64)])[order]
    begins = np.append(True, (of_group[1:] != of_group[:-1]).any(axis=1))
    first = np.empty(len(codes), np.int64)
    first[order] = order[begins][np.cumsum(begins) - 1]
    return first


def _blocks(codes: Any, limit: int) -> Any:
    """The masks of limit + 1 blocks of the differing bits; uint64 (blocks, width).

    One block of no bits, so that each row meets all of its group, where looks at so many blocks of
    so few bits would be more.
    """
    differ = np.bitwise_or.reduce(codes ^ codes[0], axis=0)
    places = np.flatnonzero(np.unpackbits(differ.view(np.uint8), bitorder="little"))
    count = limit + 1
    if places.size // count <= np.log2(count):
        return np.zeros((1, codes.shape[1]), np.uint64)
    bits = np.zeros((count, 64 * codes.shape[1]), np.uint8)
    for block, its in enumerate(np.array_split(places, count)):
        bits[block, its] = 1
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
