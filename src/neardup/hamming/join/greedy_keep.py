"""Greedy keep inside the components that a join found."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.join.join_engine import DUPLICATE_SHARE, duplicate_share, sample_of
from neardup.hamming.join.row_partition import group_equal
from neardup.hamming.plans.blocks import multipliers_of
from neardup.hamming.plans.join_plan import plan_tables
from neardup.runtime.arrays import frozen
from neardup.runtime.partition_by_key import even_ranges
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from neardup.hamming.join.problem import Engine

__all__ = ["PAIRWISE_ROWS", "keep_within"]


LINEAR_KEPT: Final = 1024


PAIRWISE_ROWS: Final = 1024


def keep_within(codes: Any, labels: Any, rank: Any, engine: Engine) -> Any:
    """Greedy keep inside each component of several rows; no match leaves a component.

    Args:
        codes: uint64 (n, w).
        labels: int64 (n,), less than n: rows of a component have the same.
        rank: int64 (n,): each row's place in the order of priority; None: input order.
        engine: Of the search.

    Returns:
        int64 (n,): the kept row of each row.
    """
    from neardup.kernels.hamming.component_keep import Components, keep_components

    out = np.arange(len(codes))
    if not len(codes):
        return out
    several = np.bincount(labels, minlength=len(codes)) > 1
    members = np.flatnonzero(several[labels])
    if rank is not None:
        members = members[np.argsort(rank[members], kind="stable")]
    members = members[np.argsort(labels[members], kind="stable")]
    everyone, stand_ins = members, _first_equal(codes, labels, members, engine.workers)
    members = members[stand_ins == np.arange(len(members))]
    starts = np.append(np.flatnonzero(np.diff(labels[members], prepend=-1)), len(members))
    large = np.zeros(len(starts), np.uint8)
    width = codes.shape[1]
    multipliers, none = multipliers_of(width), _tables(np.zeros((0, width), np.uint64), 0)
    components = Components(frozen(codes), members, starts, engine.distance, multipliers)

    def keep(_: int, chunk: tuple[int, int]) -> None:
        kept, rows = np.empty((LINEAR_KEPT, width), np.uint64), np.empty(LINEAR_KEPT, np.int64)
        keep_components(components, *chunk, none, kept, rows, out, large)

    count = len(starts) - 1
    # Matches never leave a component, so each is decided alone, and its rows of `out` are its own.
    in_threads(engine.workers, keep, even_ranges(count, engine.workers * 8))
    for c in np.flatnonzero(large).tolist():
        _keep_large(codes, members[starts[c] : starts[c + 1]], engine, out)
    out[everyone] = out[everyone[stand_ins]]
    return out


def _first_equal(codes: Any, labels: Any, members: Any, workers: int) -> Any:
    """The place of the first equal row with the same label, for each member.

    Greedy keep decides alike for both: what keeps or drops the first one also drops the other.
    """
    chosen = frozen(codes[members])
    places = np.arange(len(members))
    if duplicate_share(sample_of(chosen)) <= DUPLICATE_SHARE:
        return places
    first = group_equal(chosen, workers)
    return np.where(labels[members[first]] == labels[members], first, places)


def _keep_large(codes: Any, rows: Any, engine: Engine, out: Any) -> None:
    """Greedy keep inside one component of many kept rows, with hash tables over them."""
    from neardup.kernels.hamming.component_keep import keep_component

    sample = codes[rows[:: max(1, len(rows) // 1024)]]
    masks, choose = plan_tables(len(rows), engine.distance, engine.bits, sample)
    chosen = list(combinations(range(len(masks)), choose)) if choose else []
    unions = [np.bitwise_or.reduce(masks[list(blocks)], axis=0) for blocks in chosen]
    width = codes.shape[1]
    most = min(len(rows), 16 * LINEAR_KEPT)
    done = -1
    while done < 0:
        most = min(len(rows), most * 4)
        tables = _tables(np.array(unions, np.uint64).reshape(-1, width), most)
        kept, kept_rows = np.empty((most, width), np.uint64), np.empty(most, np.int64)
        multipliers = multipliers_of(width)
        done = keep_component(
            codes, rows, engine.distance, multipliers, tables, kept, kept_rows, out
        )


def _tables(masks: Any, most: int) -> Any:
    from neardup.kernels.hamming.component_keep import KeptTables

    bits = max(8, min(22, most.bit_length()))
    heads = np.full((len(masks), 1 << bits), -1, np.int32)
    return KeptTables(masks, heads, np.empty((len(masks), most), np.int32), np.uint64(64 - bits))
