"""The index of the exact similarity join: the documents under each key, in classes by size.

How far two similar documents differ at most depends on their sizes, so it is computed once for a
class. The *sketches* of its documents tell most of them apart: bit b of a sketch is the parity of
the features that are hashed to b, so documents whose sketches differ in d bits differ in at least d
features (Sandes, Teodoro and Melo, Bitmap filter, Information Systems 88, 2020).

The documents of a class lie in blocks, the first of one document, larger ones later: however many
there are, memory is read in order. Where components are looked for, documents found to be of one
component leave the blocks for a ring, so that they are passed over by one look.

The index is an array of rows, uint32 (rows, COLUMNS), row 0 being none:

- class: SIZE, CLASS (the next class of the key), COUNT (documents in the last block), NEXT (block),
  LAST (block), RINGS (the first one); it begins the first block;
- beginning of another block: ROOM (for so many documents, which follow it) and NEXT;
- document in a block: DOCUMENT, BEFORE (features before the key), LOW and HIGH (its sketch);
- document in a ring: the same, AROUND (the next of the ring) and OTHER (the first one of the next
  ring of the class).

`used`, int64 (USED,), counts: ROWS, SLOTS of the table, KEYS put in, candidates VERIFIED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import popcount
from neardup.kernels.jit import inner, kernel
from neardup.kernels.similarity.measures import needed_overlap

if TYPE_CHECKING:
    from neardup.kernels.similarity.arguments import Condition, Keys, Postings, Probe

SIZE, CLASS, COUNT, NEXT, LAST, RINGS = range(6)
ROOM: Final = 0
DOCUMENT, BEFORE, LOW, HIGH, AROUND, OTHER = range(6)
COLUMNS: Final = 6
ROWS, SLOTS, KEYS, VERIFIED = range(4)
USED: Final = 4
ROWS_A_KEY: Final = 5
"""No index has more rows than so many for each key that was put in: at most four in blocks, and one
in a ring."""

SECOND_BLOCK, BLOCK_TIMES, LARGEST_BLOCK = 3, 4, 48
"""Documents of a class's second block, of each later one over the one before, of the largest."""

CLASSES_TRIED: Final = 64
"""A document whose class is none of the newest ones begins another, so that this takes O(1)."""

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_KEY, _HEAD = 0, 1


@inner
def sketch_of(features: Any, begin: int, end: int) -> Any:
    """The sketch of features[begin:end], which are distinct; uint64."""
    sketch = np.uint64(0)
    for i in range(begin, end):
        sketch ^= np.uint64(1) << ((features[i] * _SPREAD) >> np.uint64(58))
    return sketch


@inner
def _slot(table: Any, key: Any) -> int:
    """Where `key` is, or would be put, in an open table; keys are never 0."""
    mask = np.uint64(len(table) - 1)
    slot = np.int64((key * _SPREAD) >> np.uint64(20) & mask)
    while table[slot, _KEY] != key and table[slot, _KEY] != np.uint64(0):
        slot = np.int64(np.uint64(slot + 1) & mask)
    return slot


@inner
def _key(h: Any) -> Any:
    return h if h else _SPREAD


@kernel
def rehash(old: Any, table: Any) -> None:
    """Move the entries of one index table to a larger, empty one (zeros); O(slots)."""
    for at in range(len(old)):
        if old[at, _KEY]:
            slot = _slot(table, old[at, _KEY])
            table[slot, _KEY], table[slot, _HEAD] = old[at, _KEY], old[at, _HEAD]


@inner
def first_class(table: Any, h: Any) -> int:
    """The first class under a feature; 0 if there is none."""
    return np.int64(table[_slot(table, _key(h)), _HEAD])


@inner
def link(rows: Any, at: int, column: int) -> int:
    """What a row has in a column; int64."""
    return np.int64(rows[at, column])


@inner
def most_before(rows: Any, head: int, size: int, before: int, condition: Condition) -> int:
    """Features that a document of a class may have before the key, to be similar to one given.

    That one has `size` features, `before` of them before the key. Below 0 if it has too many.
    """
    other = link(rows, head, SIZE)
    needed = needed_overlap(size, other, condition)
    return other - needed if size - before >= needed else -1


@inner
def is_near(rows: Any, at: int, sketch: Any, most: int, size: int, other: int) -> bool:
    """Whether the document of a row may be similar to one of this size and sketch.

    `most` is that of `most_before`, `other` the size of the row's class.
    """
    theirs = np.uint64(rows[at, LOW]) | np.uint64(rows[at, HIGH]) << np.uint64(32)
    apart = popcount(sketch ^ theirs)
    return apart <= size - other + 2 * most and np.int64(rows[at, BEFORE]) <= most


@inner
def room_in(rows: Any, head: int, block: int) -> int:
    """How many documents fit in a block of a class."""
    return np.int64(1) if block == head else link(rows, block, ROOM)


@inner
def block_end(rows: Any, head: int, block: int) -> int:
    """The row after the last document of a block of a class; they begin one after the block."""
    if block == link(rows, head, LAST):
        return block + 1 + link(rows, head, COUNT)
    return block + 1 + room_in(rows, head, block)


@inner
def block_after(rows: Any, head: int, block: int) -> int:
    """The next block of a class, or 0 after the last one."""
    return np.int64(0) if block == link(rows, head, LAST) else link(rows, block, NEXT)


@inner
def any_near(rows: Any, head: int, sketch: Any, most: int, size: int) -> bool:
    """Whether a document in the blocks of a class may be similar to one of this size and sketch."""
    other, block = link(rows, head, SIZE), np.int64(head)
    while block:
        for at in range(block + 1, block_end(rows, head, block)):
            if is_near(rows, at, sketch, most, size, other):
                return True
        block = block_after(rows, head, block)
    return False


@inner
def copy_document(rows: Any, at: int, to: int) -> None:
    """Copy a document's row, but for rings."""
    for column in range(AROUND):
        rows[to, column] = rows[at, column]


@inner
def _new_place(rows: Any, head: int, used: Any) -> int:
    """A row for one more document of a class."""
    block, count = link(rows, head, LAST), link(rows, head, COUNT)
    room = room_in(rows, head, block)
    if count == room:
        if not rows[block, NEXT]:
            room = SECOND_BLOCK if block == head else min(BLOCK_TIMES * room, LARGEST_BLOCK)
            rows[block, NEXT] = used[ROWS] + 1
            used[ROWS] += 1 + room
            after = link(rows, block, NEXT)
            rows[after, ROOM], rows[after, NEXT] = room, 0
        block, count = link(rows, block, NEXT), np.int64(0)
        rows[head, LAST] = block
    rows[head, COUNT] = count + 1
    return block + 1 + count


@inner
def insert(probe: Probe, keys: Keys, postings: Postings) -> None:
    """Put a document under its keys."""
    table, rows, used = postings.table, postings.rows, postings.used
    size, sketch = probe.size, probe.sketch
    used[KEYS] += probe.last - probe.first
    for k in range(probe.first, probe.last):
        key = _key(keys.keys[k])
        slot = _slot(table, key)
        if not table[slot, _KEY]:
            table[slot, _KEY] = key
            used[SLOTS] += 1
        head, tried = np.int64(table[slot, _HEAD]), 0
        while head and link(rows, head, SIZE) != size:
            tried += 1
            head = link(rows, head, CLASS) if tried < CLASSES_TRIED else np.int64(0)
        if not head:
            head = used[ROWS] + 1
            used[ROWS] += 2
            rows[head, SIZE], rows[head, CLASS] = size, table[slot, _HEAD]
            rows[head, COUNT], rows[head, NEXT], rows[head, RINGS] = 0, 0, 0
            rows[head, LAST] = head
            table[slot, _HEAD] = head
        at = _new_place(rows, head, used)
        rows[at, DOCUMENT], rows[at, BEFORE] = probe.x, keys.before[k]
        rows[at, LOW] = sketch & np.uint64(0xFFFFFFFF)
        rows[at, HIGH] = sketch >> np.uint64(32)


@inner
def join_rings(rows: Any, ring: int, other: int) -> None:
    """Make one ring of two; neither is part of the other."""
    rows[ring, AROUND], rows[other, AROUND] = rows[other, AROUND], rows[ring, AROUND]


@inner
def put_in_ring(rows: Any, at: int, head: int, ring: int, used: Any) -> int:
    """Put a document in a ring of its class, a new one if `ring` is 0; returns the ring."""
    used[ROWS] += 1
    own = used[ROWS]
    copy_document(rows, at, own)
    rows[own, AROUND] = own
    if ring:
        join_rings(rows, ring, own)
        return ring
    rows[own, OTHER] = rows[head, RINGS]
    rows[head, RINGS] = own
    return own
