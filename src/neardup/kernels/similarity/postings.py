"""The index of the exact similarity join: the documents under each key, in classes by size.

A class has the documents of an octave of sizes, so that one look passes over those that are too
small or too large. How far two similar documents differ at most depends on their sizes. *Sketches*
tell most of them apart: bit b of a sketch is the parity of the features that are hashed to b, so
documents whose sketches differ in d bits differ in at least d features (Sandes, Teodoro and Melo,
Bitmap filter, Information Systems 88, 2020). A row has the sketch folded to 64 bits; the whole one
is asked before two documents are compared.

The documents of a class lie in blocks, the first of one document, larger ones later: however many
there are, memory is read in order. Where components are looked for, documents found to be of one
component leave the blocks for a ring, so that they are passed over by one look.

The index is an array of rows, uint32 (rows, COLUMNS), row 0 being none:

- class: OCTAVE (of the sizes), CLASS (the next class of the key), COUNT (documents in the last
  block), NEXT (block), LAST (block), RINGS (the first one); it begins the first block;
- beginning of another block: ROOM (for so many documents, which follow it) and NEXT;
- document in a block: DOCUMENT, BEFORE (features before the key), LOW and HIGH (its sketch), SIZE;
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
    from neardup.kernels.similarity.arguments import Condition, Keys, Postings, Probe, Sets

OCTAVE, CLASS, COUNT, NEXT, LAST, RINGS = range(6)
ROOM: Final = 0
DOCUMENT, BEFORE, LOW, HIGH, SIZE, AROUND, OTHER = range(7)
COLUMNS: Final = 7
ROWS, SLOTS, KEYS, VERIFIED = range(4)
USED: Final = 4
ROWS_A_KEY: Final = 5
"""No index has more rows than so many for each key that was put in: at most four in blocks, and one
in a ring."""

SECOND_BLOCK, BLOCK_TIMES, LARGEST_BLOCK = 3, 4, 48
"""Documents of a class's second block, of each later one over the one before, of the largest."""

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_KEY, _HEAD = 0, 1


SKETCH_WORDS: Final = 4


@inner
def sketch(features: Any, begin: int, end: int, sketches: Any, x: int) -> Any:
    """Write sketches[x], of features[begin:end], which are distinct; returns it folded to 64 bits.

    Parities of words that are folded are parities again: a sketch of fewer bits.
    """
    for word in range(SKETCH_WORDS):
        sketches[x, word] = np.uint64(0)
    for i in range(begin, end):
        bit = (features[i] * _SPREAD) >> np.uint64(56)
        sketches[x, np.int64(bit >> np.uint64(6))] ^= np.uint64(1) << (bit & np.uint64(63))
    folded = np.uint64(0)
    for word in range(SKETCH_WORDS):
        folded ^= sketches[x, word]
    return folded


@kernel
def write_sketches(documents: Any, sets: Sets, sketches: Any) -> None:
    """Write the sketches of documents to their rows; O(features).

    Args:
        documents: int64 (m,): which.
        sets: Sets.
        sketches: uint64 (n, words), written.
    """
    for x in documents:
        sketch(sets.features, sets.offsets[x], sets.offsets[x + 1], sketches, x)


@inner
def folded_sketch(sketches: Any, x: int) -> Any:
    """A document's sketch folded to 64 bits, as `sketch` returned it."""
    folded = np.uint64(0)
    for word in range(sketches.shape[1]):
        folded ^= sketches[x, word]
    return folded


@inner
def sketches_apart(sketches: Any, x: int, y: int) -> int:
    """In how many bits two whole sketches differ: no more than the documents in features."""
    apart = np.int64(0)
    for word in range(SKETCH_WORDS):
        apart += popcount(sketches[x, word] ^ sketches[y, word])
    return apart


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
def octave_of(size: int) -> int:
    """The class of documents of a size: those of up to twice as many features."""
    octave, rest = np.int64(0), np.int64(size)
    while rest > 1:
        rest >>= 1
        octave += 1
    return octave


@inner
def may_have_near(rows: Any, head: int, probe: Probe) -> bool:
    """Whether a class has a size that may be similar to the probe's."""
    octave = link(rows, head, OCTAVE)
    return probe.smallest >> octave < 2 and probe.largest >> octave > 0


@inner
def is_near(rows: Any, at: int, probe: Probe, before: int, condition: Condition) -> bool:
    """Whether the document of a row may be similar to the probe, by sizes, key and sketches.

    `before` features of the probe are before the key.
    """
    theirs = np.uint64(rows[at, LOW]) | np.uint64(rows[at, HIGH]) << np.uint64(32)
    apart = popcount(probe.sketch ^ theirs)
    if apart > probe.most_apart:
        return False
    other = link(rows, at, SIZE)
    needed = needed_overlap(probe.size, other, condition)
    return (
        apart <= probe.size + other - 2 * needed
        and np.int64(rows[at, BEFORE]) <= other - needed
        and before <= probe.size - needed
    )


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
def any_near(rows: Any, head: int, probe: Probe, before: int, condition: Condition) -> bool:
    """Whether a document in the blocks of a class may be similar to the probe; see `is_near`."""
    block = np.int64(head)
    while block:
        for at in range(block + 1, block_end(rows, head, block)):
            if is_near(rows, at, probe, before, condition):
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
    size, octave = probe.size, octave_of(probe.size)
    used[KEYS] += probe.last - probe.first
    for k in range(probe.first, probe.last):
        key = _key(keys.keys[k])
        slot = _slot(table, key)
        if not table[slot, _KEY]:
            table[slot, _KEY] = key
            used[SLOTS] += 1
        head = np.int64(table[slot, _HEAD])
        while head and link(rows, head, OCTAVE) != octave:
            head = link(rows, head, CLASS)
        if not head:
            head = used[ROWS] + 1
            used[ROWS] += 2
            rows[head, OCTAVE], rows[head, CLASS] = octave, table[slot, _HEAD]
            rows[head, COUNT], rows[head, NEXT], rows[head, RINGS] = 0, 0, 0
            rows[head, LAST] = head
            table[slot, _HEAD] = head
        at = _new_place(rows, head, used)
        rows[at, DOCUMENT], rows[at, BEFORE] = probe.x, keys.before[k]
        rows[at, LOW] = probe.sketch & np.uint64(0xFFFFFFFF)
        rows[at, HIGH] = probe.sketch >> np.uint64(32)
        rows[at, SIZE] = size


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
