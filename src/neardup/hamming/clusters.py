"""Groups of fingerprints within a Hamming distance: transitive components, or greedy keep.

Memory is O(n) however large a cluster is: matches are united while they are found, never stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError, suggests_names
from neardup.fingerprinting.values import as_codes, check_distance
from neardup.hamming.join.greedy_keep import PAIRWISE_ROWS, keep_within
from neardup.hamming.join.join_engine import solve
from neardup.hamming.join.problem import HEAVY_ROWS, Engine, Problem
from neardup.hamming.join.sinks import UnionFinds
from neardup.hamming.plans.plan_checks import check_join_plan
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["components", "greedy", "split_labels"]

PAIRS_AT_ONCE: Final = 1 << 20


@suggests_names
def components(
    fingerprints: Any,
    distance: int = 3,
    bits: int | None = None,
    plan: str = "auto",
    workers: int | None = None,
    *,
    groups: Any = None,
    heavy: int = HEAVY_ROWS,
) -> Any:
    """Label the transitive groups of fingerprints within `distance` bits of each other.

    Args:
        fingerprints: As for `pairs`. A masked row is a group of its own.
        distance: Largest Hamming distance, 0 or more.
        bits: Width of a fingerprint; by default 64 * width.
        plan: As for `pairs`.
        workers: Threads; by default one per core.
        groups: int32 (n,): only rows with the same number match; None: all may.
        heavy: As for `pairs`; for tests.

    Returns:
        int64 (n,): for each row the smallest row of its group.

    Raises:
        UsageError: For a wrong plan, distance, width, dtype or shape.

    Example:
        >>> components([0b0000, 0b1111, 0b0001, 0b0011], distance=1).tolist()
        [0, 1, 0, 0]
    """
    codes, rows, bits = as_codes(fingerprints, bits)
    check_distance(distance)
    check_join_plan(plan, distance, bits)
    engine = Engine(distance, bits, worker_count(workers), max(2, heavy))
    labels = _component_labels(codes, engine, plan)
    if groups is not None:
        groups = groups if rows is None else groups[rows]
        mixed = _is_mixed(labels, groups)
        labels = split_labels(labels, groups)
        _connect_again(codes, labels, mixed, engine, plan)
    return _widened(labels, rows, len(fingerprints))


@suggests_names
def greedy(
    fingerprints: Any,
    order: Any = None,
    distance: int = 3,
    bits: int | None = None,
    plan: str = "auto",
    workers: int | None = None,
    *,
    groups: Any = None,
    heavy: int = HEAVY_ROWS,
) -> Any:
    """Keep documents in order of priority; drop one only if it is within `distance` of a kept one.

    Args:
        fingerprints: As for `pairs`. A masked row is always kept.
        order: int64 (n,), the rows from the highest priority down; by default input order.
        distance: Largest Hamming distance, 0 or more.
        bits: Width of a fingerprint; by default 64 * width.
        plan: As for `pairs`.
        workers: Threads; by default one per core.
        groups: int32 (n,): only rows with the same number match; None: all may.
        heavy: As for `pairs`; for tests.

    Returns:
        int64 (n,): for a dropped row the kept row of highest priority within the distance; a kept
        row names itself.

    Raises:
        UsageError: For a wrong plan, distance, width, dtype or shape, or an order that is no
            permutation of the rows.

    Example:
        >>> greedy([0b0000, 0b0001, 0b0011], distance=1).tolist()
        [0, 0, 2]
    """
    codes, rows, bits = as_codes(fingerprints, bits)
    check_distance(distance)
    check_join_plan(plan, distance, bits)
    rank = _ranks(order, len(fingerprints), rows)
    engine = Engine(distance, bits, worker_count(workers), max(2, heavy))
    labels = _component_labels(codes, engine, plan)
    if groups is not None:
        labels = split_labels(labels, groups if rows is None else groups[rows])
    return _widened(keep_within(codes, labels, rank, engine), rows, len(fingerprints))


def _component_labels(codes: Any, engine: Engine, plan: str) -> Any:
    sink = UnionFinds(len(codes))
    solve(Problem(codes), engine, sink, plan if engine.distance < engine.bits else "scan")
    return sink.labels()


def split_labels(labels: Any, groups: Any) -> Any:
    """Split each label by group: int64 (n,), the smallest row with the same label and group.

    Args:
        labels: int64 (n,).
        groups: integers (n,).

    Example:
        >>> split_labels(np.array([0, 0, 0, 3]), np.array([5, 6, 5, 5])).tolist()
        [0, 1, 0, 3]
    """
    order = np.lexsort((groups, labels))
    ordered, of_group = labels[order], groups[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (ordered[1:] != ordered[:-1]) | (of_group[1:] != of_group[:-1])
    starts = np.flatnonzero(begins)
    split = np.empty(len(order), np.int64)
    split[order] = np.repeat(order[starts], np.diff(starts, append=len(order)))
    return split


def _is_mixed(labels: Any, groups: Any) -> Any:
    """Whether each row's component has rows of several groups, which may be all that joins it."""
    differs = groups != groups[labels]
    mixed = np.zeros(len(labels), np.bool_)
    mixed[labels[differs]] = True
    return mixed[labels]


def _connect_again(codes: Any, labels: Any, mixed: Any, engine: Engine, plan: str) -> None:
    """Relabel, in place, the rows of split components by the matches within each part."""
    from neardup.kernels.forest import flatten, unite_all

    rows = np.flatnonzero(mixed)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(labels[rows], prepend=-1))
    sizes = np.diff(starts, append=len(rows))
    forest = np.arange(len(rows), dtype=np.uint32)
    for left, right in _pairs_within(starts, sizes):
        differ = np.bitwise_count(codes[rows[left]] ^ codes[rows[right]]).sum(axis=1)
        near = differ <= engine.distance
        unite_all(forest, left[near], right[near])
    roots = np.empty(len(rows), np.int64)
    flatten(forest, roots)
    labels[rows] = rows[roots]
    for part in np.flatnonzero(sizes > PAIRWISE_ROWS).tolist():
        members = rows[starts[part] : starts[part] + sizes[part]]
        within = _component_labels(np.ascontiguousarray(codes[members]), engine, plan)
        labels[members] = members[within]


def _pairs_within(starts: Any, sizes: Any) -> Iterator[tuple[Any, Any]]:
    """All pairs of places in runs of at most PAIRWISE_ROWS, about a million pairs at a time."""
    for size in np.unique(sizes[(sizes > 1) & (sizes <= PAIRWISE_ROWS)]).tolist():
        first, second = np.triu_indices(size, 1)
        begins = starts[sizes == size]
        step = max(1, PAIRS_AT_ONCE // len(first))
        for at in range(0, len(begins), step):
            base = begins[at : at + step, None]
            yield (base + first).ravel(), (base + second).ravel()


def _widened(labels: Any, rows: Any, n: int) -> Any:
    """The labels of unmasked rows, extended to all rows."""
    if rows is None:
        return labels
    wide = np.arange(n)
    wide[rows] = rows[labels]
    return wide


def _ranks(order: Any, n: int, rows: Any) -> Any:
    """The place of each unmasked row in the order of priority; None for input order."""
    if order is None:
        return None
    places = np.asarray(order)
    if places.shape != (n,) or places.dtype.kind not in "iu":
        raise UsageError(f"order is {places.dtype} {places.shape}: use each of the {n:,} rows once")
    if n and not (places.min() >= 0 and places.max() < n and np.bincount(places).max() == 1):
        raise UsageError(f"order is not a permutation: use each row from 0 to {n - 1:,} once")
    rank = np.empty(n, np.int64)
    rank[places] = np.arange(n)
    return rank if rows is None else rank[rows]
