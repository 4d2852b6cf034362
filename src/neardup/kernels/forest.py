"""Union-find: the groups of rows that were united, as a forest of row numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.kernels.jit import kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Numbers, Rows


@kernel
def find_root(parent: Numbers, row: int) -> int:
    """Root of `row` in a union-find forest (uint32), halving the path in place; int64."""
    here = np.int64(row)
    while True:
        above = np.int64(parent[here])
        if above == here:
            return here
        # Parents only ever move up the same tree, so halving changes no set.
        over = parent[above]
        parent[here] = over
        here = np.int64(over)


@kernel
def unite(parent: Numbers, left: int, right: int) -> None:
    """Join two sets in place; the smaller root stays, so a root is its set's smallest row."""
    a, b = find_root(parent, left), find_root(parent, right)
    # The smaller root stays on top: a root is its set's smallest row, in whatever order sets join.
    if a < b:
        parent[b] = a
    elif b < a:
        parent[a] = b


@kernel
def unite_all(parent: Numbers, lefts: Rows | Numbers, rights: Rows | Numbers) -> None:
    """Join lefts[i] with rights[i] for every i, in place."""
    for i in range(len(lefts)):
        unite(parent, lefts[i], rights[i])


@kernel
def merge_forests(into: Numbers, other: Numbers) -> None:
    """Make `into` the finest forest coarser than both, in place: associative, commutative."""
    for row in range(len(other)):
        if other[row] != row:
            unite(into, row, other[row])


@kernel
def flatten(parent: Numbers, labels: Rows | Numbers) -> None:
    """Write each row's root to `labels` (int64)."""
    for row in range(len(parent)):
        labels[row] = find_root(parent, row)
