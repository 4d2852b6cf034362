"""The matches that lead from a dropped document of a transitive group to the one kept for it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from neardup.fingerprinting.values import distance

__all__ = ["ways_by_distance"]

PAIRS_AT_ONCE: Final = 1 << 21


def ways_by_distance(values: Any, kept_by: Any, limit: int) -> Any:
    """Find for each dropped document one within `limit` bits, on a shortest way to the kept one.

    Only documents that do not match their kept one are compared with others of their group, each
    with those one step nearer to it.

    Args:
        values: uint64 (n, width), masked where a document is empty.
        kept_by: int64 (n,).
        limit: Bits.

    Returns:
        int64 (n,): the next document on the way; a kept one names itself.
    """
    codes, via = np.ma.getdata(values), kept_by.copy()
    far = np.flatnonzero(distance(codes, codes[kept_by]) > limit) if len(codes) else via
    if not far.size:
        return via
    concerned = np.flatnonzero(np.isin(kept_by, kept_by[far]))
    concerned = concerned[np.argsort(kept_by[concerned], kind="stable")]
    edges = np.flatnonzero(np.diff(kept_by[concerned])) + 1
    is_far = np.zeros(len(codes), np.bool_)
    is_far[far] = True
    for members in np.split(concerned, edges):
        reached, rest = members[~is_far[members]], members[is_far[members]]
        while rest.size and reached.size:
            found = _first_within(codes[reached], codes[rest], limit)
            is_next = found >= 0
            via[rest[is_next]] = reached[found[is_next]]
            reached, rest = rest[is_next], rest[~is_next]
    return via


def _first_within(codes: Any, others: Any, limit: int) -> Any:
    """For each of `others` the row of the nearest of `codes`, or -1 beyond the limit; int64."""
    found = np.empty(len(others), np.int64)
    rows = max(1, PAIRS_AT_ONCE // len(codes))
    for begin in range(0, len(others), rows):
        part = others[begin : begin + rows]
        apart = distance(part[:, None, :], codes[None, :, :]).reshape(len(part), len(codes))
        nearest = apart.argmin(axis=1)
        within = apart[np.arange(len(part)), nearest] <= limit
        found[begin : begin + rows] = np.where(within, nearest, -1)
    return found
