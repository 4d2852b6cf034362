"""A hash table from ids to their rows. Ids are runs of bytes; whole numbers are 8 of them each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.kernels.features.xxh3 import seeded_secret, xxh3_64
from neardup.kernels.jit import inlined, inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Flags, Offsets, Rows, Uint32s


@inlined
def _begin(offsets: Offsets, row: int) -> int:
    """Where an id begins; without offsets every id has 8 bytes."""
    return np.int64(offsets[row]) if len(offsets) > 0 else np.int64(8 * row)


@inner
def _same(a: Any, i: int, b: Any, j: int, size: int) -> bool:
    for at in range(size):  # noqa: SIM110  # Numba has no all()
        if a[i + at] != b[j + at]:
            return False
    return True


@inner
def _slot_of(
    data: Any, begin: int, size: int, secret: Any, lanes: Any, stored: Any, offsets: Offsets,
    slots: Any,
) -> int:  # fmt: skip
    """The slot that holds this id's row plus 1, or the free one where it belongs.

    -1 where slots and offsets, which may come from a file, do not agree: nothing beyond the stored
    ids is read, and a table without a free slot ends the search.
    """
    last = np.int64(len(slots) - 1)
    rows = np.int64(len(offsets) - 1) if len(offsets) > 0 else np.int64(len(stored) // 8)
    slot = np.int64(xxh3_64(data, begin, size, np.uint64(0), secret, lanes)) & last
    for _ in range(len(slots)):
        if slots[slot] == 0:
            return slot
        row = np.int64(slots[slot]) - 1
        if row >= rows:
            return np.int64(-1)
        there, end = _begin(offsets, row), _begin(offsets, row + 1)
        if there < 0 or end < there or end > len(stored):
            return np.int64(-1)
        if end - there == size and _same(data, begin, stored, there, size):
            return slot
        slot = (slot + 1) & last
    return np.int64(-1)


@kernel
def fill_slots(data: Bytes, offsets: Offsets, count: int, slots: Uint32s, replaced: Flags) -> int:
    """Enter every id, the last of equal ones for good.

    Args:
        data: uint8, the ids one after the other; may be read-only.
        offsets: int64 (count + 1,) or, for ids of 8 bytes, empty.
        count: Ids.
        slots: uint32, a power of two above `count`, all 0; written: rows plus 1.
        replaced: bool (count,), written: True for a row whose id comes again later.

    Returns:
        How many rows are replaced.
    """
    secret, lanes = seeded_secret(np.uint64(0)), np.empty(8, np.uint64)
    repeats = np.int64(0)
    for row in range(count):
        begin = _begin(offsets, row)
        size = _begin(offsets, row + 1) - begin
        slot = _slot_of(data, begin, size, secret, lanes, data, offsets, slots)
        if slots[slot] != 0:
            replaced[np.int64(slots[slot]) - 1] = True
            repeats += 1
        slots[slot] = row + 1
    return repeats


@kernel
def find_ids(
    data: Any, offsets: Offsets, count: int, stored: Any, stored_offsets: Any, slots: Any,
    rows: Rows,
) -> None:  # fmt: skip
    """Write the stored row of each id to `rows` (int64), or -1; arguments as of `fill_slots`.

    -2 where the table does not agree with the stored ids.
    """
    secret, lanes = seeded_secret(np.uint64(0)), np.empty(8, np.uint64)
    for i in range(count):
        begin = _begin(offsets, i)
        size = _begin(offsets, i + 1) - begin
        slot = _slot_of(data, begin, size, secret, lanes, stored, stored_offsets, slots)
        rows[i] = np.int64(slots[slot]) - 1 if slot >= 0 else np.int64(-2)
