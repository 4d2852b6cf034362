"""Hash tables from ids to their rows. Ids are runs of bytes; whole numbers are 8 of them each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.kernels.bits import prefetch
from neardup.kernels.features.xxh3 import seeded_secret, xxh3_64
from neardup.kernels.jit import inlined, inner, kernel
from neardup.kernels.segment_addresses import addresses_of, bytes_at, int64s, uint32s

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Flags, Int64s, Offsets, Uint32s


@inlined
def _begin(offsets: Offsets, row: int) -> int:
    """The byte at which an id begins; without offsets every id has 8 bytes."""
    return np.int64(offsets[row]) if len(offsets) > 0 else np.int64(8 * row)


@inner
def _same(a: Any, i: int, b: Any, j: int, size: int) -> bool:
    for at in range(size):  # noqa: SIM110  # Numba has no all()
        if a[i + at] != b[j + at]:
            return False
    return True


@inlined
def _hash(data: Any, begin: int, size: int, secret: Any, lanes: Any) -> int:
    return np.int64(xxh3_64(data, begin, size, np.uint64(0), secret, lanes))


@inner
def _slot_of(
    data: Any, begin: int, size: int, hashed: int, stored: Any, offsets: Offsets, slots: Any
) -> int:  # fmt: skip
    """The slot that holds this id's row plus 1, or the free one where it belongs.

    -1 where slots and offsets, which may come from a file, do not agree: nothing beyond the stored
    ids is read, and a table without a free slot ends the search.
    """
    last = np.int64(len(slots) - 1)
    rows = np.int64(len(offsets) - 1) if len(offsets) > 0 else np.int64(len(stored) // 8)
    slot = hashed & last
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
        hashed = _hash(data, begin, size, secret, lanes)
        slot = _slot_of(data, begin, size, hashed, data, offsets, slots)
        if slots[slot] != 0:
            replaced[np.int64(slots[slot]) - 1] = True
            repeats += 1
        slots[slot] = row + 1
    return repeats


def table_of(data: Any, offsets: Any, slots: Any) -> Any:
    """The ids of some rows and their hash table as `find_ids` takes them: int64 (6,)."""
    return addresses_of([(data, np.uint8), (offsets, np.int64), (slots, np.uint32)])


@kernel
def find_ids(data: Bytes, offsets: Offsets, tables: Int64s, rows: Any) -> int:
    """Write the row that each id has in each of several tables, or -1, to `rows`.

    Args:
        data: uint8, the ids one after the other.
        offsets: int64 (n + 1,) or, for ids of 8 bytes, empty.
        tables: int64 (t, 6): what `table_of` gives, of ids of the same kind.
        rows: int64 (t, n).

    Returns:
        The table that does not agree with its ids; -1 if all do.
    """
    secret, lanes = seeded_secret(np.uint64(0)), np.empty(8, np.uint64)
    for i in range(rows.shape[1]):
        begin = _begin(offsets, i)
        size = _begin(offsets, i + 1) - begin
        hashed = _hash(data, begin, size, secret, lanes)
        for t in range(rows.shape[0]):
            slots = uint32s(tables[t, 4], tables[t, 5])
            prefetch(slots, hashed & np.int64(slots.size - 1))
        for t in range(rows.shape[0]):
            stored, there = bytes_at(tables[t, 0], tables[t, 1]), int64s(tables[t, 2], tables[t, 3])
            slots = uint32s(tables[t, 4], tables[t, 5])
            slot = _slot_of(data, begin, size, hashed, stored, there, slots)
            if slot < 0:
                return t
            rows[t, i] = np.int64(slots[slot]) - 1
    return -1
