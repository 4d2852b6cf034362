"""Group fingerprints within a Hamming distance: transitive components, or greedy keep.

Memory is O(n) however large a cluster is: matches are united while they are found, never stored.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.join import (
    DUPLICATE_SHARE,
    HEAVY_ROWS,
    Collector,
    Engine,
    Problem,
    duplicate_share,
    sample_of,
    solve,
)
from neardup.neighbours import as_words, check_distance
from neardup.partition import (
    Groups,
    frozen,
    group_equal,
    in_threads,
    multipliers,
    workers_or_default,
)
from neardup.planner import check_plan, plan_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["components", "greedy", "keep_within", "merge", "split_labels"]

LINEAR_KEPT: Final = 1024
PAIRWISE_ROWS: Final = 1024
"""Up to this many rows are compared pairwise, where rows of other groups joined a component."""
PAIRS_AT_ONCE: Final = 1 << 20


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
        bits: Width of a fingerprint; 64 * words unless said.
        plan: As for `pairs`.
        workers: Threads; one per core unless said.
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
    words, rows, bits = as_words(fingerprints, bits)
    check_distance(distance)
    check_plan(plan, distance, bits)
    engine = Engine(distance, bits, workers_or_default(workers), max(2, heavy))
    labels = _component_labels(words, engine, plan)
    if groups is not None:
        groups = groups if rows is None else groups[rows]
        mixed = _is_mixed(labels, groups)
        labels = split_labels(labels, groups)
        _connect_again(words, labels, mixed, engine, plan)
    return _widened(labels, rows, len(fingerprints))


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
        order: int64 (n,), the rows from the highest priority down; input order unless said.
        distance: Largest Hamming distance, 0 or more.
        bits: Width of a fingerprint; 64 * words unless said.
        plan: As for `pairs`.
        workers: Threads; one per core unless said.
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
    words, rows, bits = as_words(fingerprints, bits)
    check_distance(distance)
    check_plan(plan, distance, bits)
    rank = _ranks(order, len(fingerprints), rows)
    engine = Engine(distance, bits, workers_or_default(workers), max(2, heavy))
    labels = _component_labels(words, engine, plan)
    if groups is not None:
        labels = split_labels(labels, groups if rows is None else groups[rows])
    return _widened(keep_within(words, labels, rank, engine), rows, len(fingerprints))


def merge(first: Any, second: Any) -> Any:
    """Unite two groupings of the same rows: the finest one in which both are contained.

    Args:
        first: uint32 (n,), a union-find forest: the parent of each row, a root's being itself.
        second: Another, for the same rows.

    Returns:
        `first`, changed in place. The grouping does not depend on order or nesting of merges.

    Example:
        >>> merge(np.array([0, 0, 2], np.uint32), np.array([0, 1, 1], np.uint32)).tolist()
        [0, 0, 0]
    """
    from neardup.kernels.partition import merge_forests

    merge_forests(first, second)
    return first


class UniteCollector:
    """Unites matches in one union-find per thread."""

    def __init__(self, n: int) -> None:
        """Start with n rows on their own."""
        self._n = n
        self._forests: dict[int, Any] = {0: np.arange(n, dtype=np.uint32)}

    def parent(self, slot: int) -> Any:
        """The union-find of a thread."""
        if slot not in self._forests:
            self._forests[slot] = np.arange(self._n, dtype=np.uint32)
        return self._forests[slot]

    def may_store(self, rows: int) -> bool:  # noqa: ARG002
        """No pair is ever stored."""
        return False

    def add(self, count: int, pairs: Any) -> None:
        """No pair comes."""

    def collapsed(self, problem: Problem, groups: Groups) -> Collector:
        """Unite equal rows; their representatives go on as rows of the same forests."""
        from neardup.kernels.partition import unite_all

        firsts = np.repeat(groups.firsts, groups.sizes)
        unite_all(self.parent(0), problem.named(groups.members), problem.named(firsts))
        return self

    def expand(self, inner: Collector, problem: Problem, groups: Groups) -> None:
        """Everything is united already."""

    def labels(self) -> Any:
        """The smallest row of each row's group: int64 (n,)."""
        from neardup.kernels.partition import flatten

        forest = self._forests.pop(0)
        while self._forests:
            merge(forest, self._forests.popitem()[1])
        labels = np.empty(self._n, np.int64)
        flatten(forest, labels)
        return labels


def _component_labels(words: Any, engine: Engine, plan: str) -> Any:
    collector = UniteCollector(len(words))
    solve(Problem(words), engine, collector, plan if engine.distance < engine.bits else "scan")
    return collector.labels()


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
    """Whether each row's component has rows of several groups, perhaps all that joins it."""
    differs = groups != groups[labels]
    mixed = np.zeros(len(labels), np.bool_)
    mixed[labels[differs]] = True
    return mixed[labels]


def _connect_again(words: Any, labels: Any, mixed: Any, engine: Engine, plan: str) -> None:
    """Label anew, in place, the rows of split components by the matches within each part."""
    from neardup.kernels.partition import flatten, unite_all

    rows = np.flatnonzero(mixed)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(labels[rows], prepend=-1))
    sizes = np.diff(starts, append=len(rows))
    forest = np.arange(len(rows), dtype=np.uint32)
    for left, right in _pairs_within(starts, sizes):
        differ = np.bitwise_count(words[rows[left]] ^ words[rows[right]]).sum(axis=1)
        near = differ <= engine.distance
        unite_all(forest, left[near], right[near])
    roots = np.empty(len(rows), np.int64)
    flatten(forest, roots)
    labels[rows] = rows[roots]
    for part in np.flatnonzero(sizes > PAIRWISE_ROWS).tolist():
        members = rows[starts[part] : starts[part] + sizes[part]]
        within = _component_labels(np.ascontiguousarray(words[members]), engine, plan)
        labels[members] = members[within]


def _pairs_within(starts: Any, sizes: Any) -> Iterator[tuple[Any, Any]]:
    """All pairs of places in runs of at most PAIRWISE_ROWS, about a million at once."""
    for size in np.unique(sizes[(sizes > 1) & (sizes <= PAIRWISE_ROWS)]).tolist():
        first, second = np.triu_indices(size, 1)
        begins = starts[sizes == size]
        step = max(1, PAIRS_AT_ONCE // len(first))
        for at in range(0, len(begins), step):
            base = begins[at : at + step, None]
            yield (base + first).ravel(), (base + second).ravel()


def _widened(labels: Any, rows: Any, n: int) -> Any:
    """Labels of the rows that are not masked as labels of all rows."""
    if rows is None:
        return labels
    wide = np.arange(n)
    wide[rows] = rows[labels]
    return wide


def _ranks(order: Any, n: int, rows: Any) -> Any:
    """Each unmasked row's place in the order of priority, or None for input order."""
    if order is None:
        return None
    places = np.asarray(order)
    if places.shape != (n,) or places.dtype.kind not in "iu":
        raise UsageError(f"order is {places.dtype} {places.shape}: use each of the {n:,} rows once")
    if n and not (places.min() >= 0 and places.max() < n and np.bincount(places).max() == 1):
        raise UsageError(f"order is no permutation: use each row from 0 to {n - 1:,} once")
    rank = np.empty(n, np.int64)
    rank[places] = np.arange(n)
    return rank if rows is None else rank[rows]


def keep_within(words: Any, labels: Any, rank: Any, engine: Engine) -> Any:
    """Greedy keep inside each component of several rows: matches never leave a component.

    Args:
        words: uint64 (n, w).
        labels: int64 (n,), less than n: rows of a component have the same.
        rank: int64 (n,): each row's place in the order of priority; None: input order.
        engine: Of the search.

    Returns:
        int64 (n,): the kept row of each row.
    """
    from neardup.kernels.greedy import keep_components

    out = np.arange(len(words))
    if not len(words):
        return out
    several = np.bincount(labels, minlength=len(words)) > 1
    members = np.flatnonzero(several[labels])
    if rank is not None:
        members = members[np.argsort(rank[members], kind="stable")]
    members = members[np.argsort(labels[members], kind="stable")]
    everyone, stand_ins = members, _first_equal(words, labels, members, engine.workers)
    members = members[stand_ins == np.arange(len(members))]
    starts = np.append(np.flatnonzero(np.diff(labels[members], prepend=-1)), len(members))
    large = np.zeros(len(starts), np.uint8)
    width = words.shape[1]
    odd, none = multipliers(width), _tables(np.zeros((0, width), np.uint64), 0)

    def keep(_: int, chunk: tuple[int, int]) -> None:
        kept, rows = np.empty((LINEAR_KEPT, width), np.uint64), np.empty(LINEAR_KEPT, np.int64)
        distance = engine.distance
        keep_components(words, members, starts, *chunk, distance, odd, none, kept, rows, out, large)

    count = len(starts) - 1
    cuts = np.unique(np.linspace(0, count, engine.workers * 8 + 1).astype(np.int64)).tolist()
    in_threads(engine.workers, keep, pairwise(cuts))
    for c in np.flatnonzero(large).tolist():
        _keep_large(words, members[starts[c] : starts[c + 1]], engine, out)
    out[everyone] = out[everyone[stand_ins]]
    return out


def _first_equal(words: Any, labels: Any, members: Any, workers: int) -> Any:
    """For each place among the members one, not later, of an equal row with the same label.

    Greedy keep decides alike for both: what keeps or drops the first one also drops the other.
    """
    chosen = frozen(words[members])
    places = np.arange(len(members))
    if duplicate_share(sample_of(chosen)) <= DUPLICATE_SHARE:
        return places
    first = group_equal(chosen, workers)
    return np.where(labels[members[first]] == labels[members], first, places)


def _keep_large(words: Any, rows: Any, engine: Engine, out: Any) -> None:
    """Greedy keep inside one component of many kept rows, with hash tables over them."""
    from neardup.kernels.greedy import keep_component

    sample = words[rows[:: max(1, len(rows) // 1024)]]
    masks, choose = plan_tables(len(rows), engine.distance, engine.bits, sample)
    chosen = list(combinations(range(len(masks)), choose)) if choose else []
    unions = [np.bitwise_or.reduce(masks[list(blocks)], axis=0) for blocks in chosen]
    width = words.shape[1]
    most = min(len(rows), 16 * LINEAR_KEPT)
    done = -1
    while done < 0:
        most = min(len(rows), most * 4)
        tables = _tables(np.array(unions, np.uint64).reshape(-1, width), most)
        kept, kept_rows = np.empty((most, width), np.uint64), np.empty(most, np.int64)
        odd = multipliers(width)
        done = keep_component(words, rows, engine.distance, odd, tables, kept, kept_rows, out)


def _tables(masks: Any, most: int) -> Any:
    from neardup.kernels.greedy import Tables

    bits = max(8, min(22, most.bit_length()))
    heads = np.full((len(masks), 1 << bits), -1, np.int32)
    return Tables(masks, heads, np.empty((len(masks), most), np.int32), np.uint64(64 - bits))
