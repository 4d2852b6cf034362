"""The walk by distance: each document goes on to the nearest of those one step before it.

Two rows within k bits of each other agree in one of k + 1 blocks of bits, by which they meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.bits import popcount
from neardup.kernels.jit import inner, kernel
from neardup.kernels.ways.walk import name_of, put_back, run_of, take_next

if TYPE_CHECKING:
    from neardup.kernels.ways.walk import Queue, Unreached

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


class Rows(NamedTuple):
    """State and result of the walk over m rows."""

    codes: Any  # uint64 (m, w)
    group: Any  # int64 (m,): only rows of one group match
    masks: Any  # uint64 (b, w): the bits of each block
    via: Any  # int64 (m,), written for rows that are reached
    apart: Any  # int64 (m,), written: in how many bits
    steps: Any  # int64 (m,), written: from the kept row; 0 for rows that are to be reached


@inner
def _block_name(rows: Rows, row: int, block: int) -> Any:
    codes, masks = rows.codes, rows.masks
    key = np.uint64(block)
    for word in range(codes.shape[1]):
        key = (key * _SPREAD) ^ (codes[row, word] & masks[block, word])
        key ^= key >> np.uint64(29)
    return name_of(key, rows.group[row])


@kernel
def name_blocks(numbers: Any, rows: Rows) -> Any:
    """Name the blocks of rows (int64 (r,)) by their groups, bits and values; uint64 (r * b,)."""
    blocks = len(rows.masks)
    names = np.empty(numbers.size * blocks, np.uint64)
    for i in range(numbers.size):
        for block in range(blocks):
            names[i * blocks + block] = _block_name(rows, numbers[i], block)
    return names


@inner
def _reach(x: int, rows: Rows, limit: int, unreached: Unreached, queue: Queue) -> None:
    """Reach what is within the limit of row x; of a level the nearest, first row stays the next."""
    codes, steps, apart, documents = rows.codes, rows.steps, rows.apart, unreached.documents
    for block in range(len(rows.masks)):
        run = run_of(unreached, _block_name(rows, x, block))
        if run < 0:
            continue
        at, to = unreached.begins[run], unreached.ends[run]
        while at < to:
            y = documents[at]
            if 0 < steps[y] <= steps[x]:  # the last one takes its place
                to -= 1
                documents[at] = documents[to]
                continue
            at += 1
            count = 0
            for word in range(codes.shape[1]):
                count += popcount(codes[x, word] ^ codes[y, word])
            if count > limit or rows.group[x] != rows.group[y]:
                continue
            if not steps[y]:
                steps[y] = steps[x] + 1
                put_back(queue, y)
            elif count >= apart[y]:
                continue
            rows.via[y], apart[y] = x, count
        unreached.ends[run] = to


@kernel
def reach_rows(rows: Rows, limit: int, unreached: Unreached, queue: Queue, most: int) -> bool:
    """Reach what is within the limit of the next `most` rows of the queue, level by level.

    Args:
        rows: Rows, written.
        limit: Bits.
        unreached: Unreached, from `name_blocks`, written.
        queue: Queue, written; it begins with the rows one step from their kept ones.
        most: How many are taken from the queue, so that the caller can be interrupted.

    Returns:
        Whether there may be more.
    """
    for _ in range(most):
        x = take_next(queue)
        if x < 0:
            return False
        _reach(x, rows, limit, unreached, queue)
    return True
