"""The index of the exact similarity join: the documents under each key, in classes by size.

A class has the documents of an octave of sizes, so that one look passes over those that are too
small or too large. The smaller of two similar documents has an early key that the larger one has
too (`most_before`). So documents of which the key is late have a class of their own, where only
smaller documents of which it is early look: by containment always, by other measures once the class
of all is long, since each class is a read of distant memory. Classes of COMMON_KEY are
parts of octaves, as a document most of which is common matches others only if they are short.

How far two similar documents differ at most depends on their sizes. *Sketches* tell most of them
apart: bit b of a sketch is the parity of the features that are hashed to b, so documents whose
sketches differ in d bits differ in at least d features (Sandes, Teodoro and Melo, Bitmap filter,
Information Systems 88, 2020). A row has the sketch folded to 64 bits, in an array of its own, so
that a look at eight of them reads one cache line, or to 256 where 64 tell nothing; the whole one is
asked before two documents are compared. By containment a bit is 1 if any feature is hashed to it,
since two sizes may be far apart: then bits that only the smaller document has are counted.

The documents of a class lie in blocks, the first of one document, larger ones later: however many
there are, memory is read in order. Where components are looked for, documents found to be of one
component leave the blocks for a ring, so that they are passed over by one look.

The index is an array of rows, uint32 (rows, COLUMNS), row 0 being none:

- class: KIND (of `kind_of`), CLASS (the next class of the key), COUNT (documents in the last
  block), NEXT (block), LAST (block), RINGS (the first one); it begins the first block;
- beginning of another block: ROOM (the number of documents that fit after it) and NEXT;
- document in a block: DOCUMENT, BEFORE (features before the key), SIZE;
- document in a ring: the same, AROUND (the next of the ring) and OTHER (the first one of the next
  ring of the class).

`folds`, uint64 (rows + PADDING, 1 or WIDE_WORDS), has the folded sketch of each row of a document;
folds[0] is that of the current document (threads that look up at once
have one each behind the padding). The table has RANGES, each an open table of its own for the keys
that are hashed to it, so that threads can fill different ranges at once. `used`, int64 (USED,),
counts: ROWS, KEYS put in, slots of each range (from SLOTS on), candidates VERIFIED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import near8, popcount, prefetch, trailing_zeros
from neardup.kernels.jit import general, inner, kernel
from neardup.kernels.similarity.measure_bounds import CONTAINMENT, needed_overlap
from neardup.kernels.similarity.rare_keys import COMMON_KEY
from neardup.kernels.similarity.wide import WIDE_WORDS, near8_wide

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Rows, Uint32s, Uint64s
    from neardup.kernels.similarity.join_arguments import Condition, Keys, Postings, Probe, Sets

KIND, CLASS, COUNT, NEXT, LAST, RINGS = range(6)
ROOM: Final = 0
DOCUMENT, BEFORE, SIZE, AROUND, OTHER = range(5)
COLUMNS: Final = 6
PADDING: Final = 8
"""Folded sketches behind the last row, which are read with it."""
PARTS_LOG2: Final = 3
LATE, FINE, LONG, PART_AT, OCTAVE_AT = 1, 2, 4, 3, 3 + PARTS_LOG2
"""Parts of a kind: bits that say whether the key is late in all documents, whether the class is of
a part of an octave, whether it is long; and where the number of that part and the octave begin."""
FETCHES: Final = 3
"""The number of steps of `fetch_places`."""
RANGES_LOG2: Final = 2
RANGES: Final = 1 << RANGES_LOG2
"""The ranges of a table, a power of two."""
ROWS, KEYS, SLOTS, VERIFIED = 0, 1, 2, 2 + RANGES
USED: Final = VERIFIED + 1
ROWS_A_KEY: Final = 5
"""The most rows of an index for each key that was put in: four in blocks, and one in a ring."""

SECOND_BLOCK, BLOCK_TIMES, LARGEST_BLOCK = 3, 4, 191
"""Sizes of the blocks of a class: the second one's, the factor of each later one, and the largest.

A class that has one of the largest is long."""

MOST_ROWS_A_KEY: Final = 1 + LARGEST_BLOCK
"""The most rows that one more document under a key takes."""

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_KEY, _HEAD = 0, 1
_ONE_WORD: Final = (0,)

LEAST_SKETCH_WORDS: Final = 4
WORDS_AT_ONCE: Final = 8
"""A sketch of more words has a multiple of these; after each group, enough bits may differ."""


@inner
def octave_of(size: int) -> int:
    """The octave of a size: the sizes from a power of two to twice as many."""
    octave, rest = np.int64(0), np.int64(size)
    while rest > 1:
        rest >>= 1
        octave += 1
    return octave


@inner
def kind_of(probe: Probe, key: np.uint64) -> int:
    """The kind of the class that holds a document under a key that is not late."""
    kind = probe.octave << OCTAVE_AT
    if key != COMMON_KEY:
        return kind
    part = (probe.size << PARTS_LOG2) >> probe.octave & ((1 << PARTS_LOG2) - 1)
    return kind + (part << PART_AT) + FINE


@inner
def _find_class(rows: Uint32s, first: int, kind: int) -> int:
    """The class of a kind in the list that begins with `first`; 0 if there is none."""
    head = first
    while head and link(rows, head, KIND) & ~LONG != kind:
        head = link(rows, head, CLASS)
    return head


@inner
def _class_of(
    rows: Uint32s, first: int, key: np.uint64, before: int, probe: Probe
) -> tuple[int, int]:
    """The class of a document in the list of a key, 0 if there is none yet; and its kind."""
    kind, head = kind_of(probe, key), np.int64(0)
    is_late, is_apart = before > probe.most_before, probe.is_late_apart
    if not is_late or not is_apart:
        head = _find_class(rows, first, kind)
        is_apart = head and link(rows, head, KIND) & LONG
    if is_late and is_apart:
        return _find_class(rows, first, kind + LATE), kind + LATE
    return head, kind


@inner
def _sizes_of(kind: int) -> tuple[int, int]:
    """The least and the most features of documents of a class."""
    octave = kind >> OCTAVE_AT
    if not kind & FINE:
        return np.int64(1) << octave, (np.int64(2) << octave) - 1
    parts = np.int64(1) << PARTS_LOG2
    first = parts + ((kind >> PART_AT) & (parts - 1))
    return (first << octave) >> PARTS_LOG2, (((first + 1) << octave) - 1) >> PARTS_LOG2


@inner
def sketch(features: Any, begin: int, end: int, is_union: bool, sketches: Uint64s, x: int) -> None:
    """Write sketches[x] from the distinct features[begin:end]: parities, or unions of bits.

    Words that are folded the same way are a sketch of fewer bits.
    """
    words = np.int64(sketches.shape[1])
    shift = np.uint64(58 - octave_of(words))
    for word in range(words):
        sketches[x, word] = np.uint64(0)
    for i in range(begin, end):
        bit = (features[i] * _SPREAD) >> shift
        word, mark = np.int64(bit >> np.uint64(6)), np.uint64(1) << (bit & np.uint64(63))
        sketches[x, word] = sketches[x, word] | mark if is_union else sketches[x, word] ^ mark


@kernel
def write_sketches(documents: Rows, sets: Sets, condition: Condition, sketches: Uint64s) -> None:
    """Write the sketches of documents to their rows; O(features).

    Args:
        documents: int64 (m,): which.
        sets: Sets.
        condition: Condition.
        sketches: uint64 (n, words), written.
    """
    is_union = condition.measure == CONTAINMENT
    for x in documents:
        sketch(sets.features, sets.offsets[x], sets.offsets[x + 1], is_union, sketches, x)


@inner
def fold_sketch(
    sketches: Uint64s, x: int, condition: Condition, folds: Uint64s, place: int
) -> None:
    """Fold a document's sketch into row `place` of `folds`, the sketch of the current probe."""
    is_union = condition.measure == CONTAINMENT
    words = np.int64(folds.shape[1])
    for word in range(words):
        folds[place, word] = sketches[x, word]
    for word in range(words, sketches.shape[1]):
        at, bits = word & (words - 1), sketches[x, word]
        folds[place, at] = folds[place, at] | bits if is_union else folds[place, at] ^ bits


@inner
def sketches_near(sketches: Uint64s, x: int, y: int, most: int) -> bool:
    """Whether two whole sketches differ in up to `most` bits; documents differ in no less."""
    apart = np.int64(0)
    if sketches.shape[1] < WORDS_AT_ONCE:
        for word in range(LEAST_SKETCH_WORDS):
            apart += popcount(sketches[x, word] ^ sketches[y, word])
        return apart <= most
    for first in range(0, sketches.shape[1], WORDS_AT_ONCE):
        for word in range(WORDS_AT_ONCE):
            apart += popcount(sketches[x, first + word] ^ sketches[y, first + word])
        if apart > most:
            return False
    return True


@inner
def sketch_contained(sketches: Uint64s, x: int, y: int, most: int) -> bool:
    """Whether y lacks at most `most` bits of the union of x; it lacks at least as many features."""
    missing = np.int64(0)
    for word in range(sketches.shape[1]):
        missing += popcount(sketches[x, word] & ~sketches[y, word])
        if missing > most:
            return False
    return True


@inner
def range_of(key: np.uint64) -> int:
    """The range of the table that has a key."""
    return np.int64((key * _SPREAD) >> np.uint64(64 - RANGES_LOG2))


@inner
def _first_slot(key: np.uint64, slots: int) -> int:
    """The slot in which a key is looked for first, in a table of so many slots."""
    mixed, size = key * _SPREAD, np.uint64(slots >> RANGES_LOG2)
    begin = (mixed >> np.uint64(64 - RANGES_LOG2)) * size
    return np.int64(begin + ((mixed >> np.uint64(20)) & (size - np.uint64(1))))


@inner
def _slot(table: Uint64s, key: np.uint64) -> int:
    """The slot of `key`, or a free one for it, in its range; keys are never 0.

    No range is ever full, see `KeyIndex.make_room`.
    """
    slot, mask = _first_slot(key, len(table)), (len(table) >> RANGES_LOG2) - 1
    while table[slot, _KEY] != key and table[slot, _KEY] != np.uint64(0):
        slot = (slot & ~mask) | ((slot + 1) & mask)
    return slot


@inner
def stored_key(h: np.uint64) -> Any:
    """The key in the table for a feature: never 0, which marks free slots."""
    return h if h else _SPREAD


@kernel
def count_by_range(keys: Uint64s, counts: Int64s) -> None:
    """Add the number of keys in each range to int64 (RANGES,); O(keys)."""
    for h in keys:
        counts[range_of(stored_key(h))] += 1


@kernel
def rehash(old: Uint64s, table: Uint64s, number: int) -> None:
    """Clear a range of a larger table, and move the entries of one to it; O(slots of a range)."""
    size, room = len(old) >> RANGES_LOG2, len(table) >> RANGES_LOG2
    for slot in range(number * room, (number + 1) * room):
        table[slot, _KEY] = table[slot, _HEAD] = np.uint64(0)
    for at in range(number * size, (number + 1) * size):
        if old[at, _KEY]:
            slot = _slot(table, old[at, _KEY])
            table[slot, _KEY], table[slot, _HEAD] = old[at, _KEY], old[at, _HEAD]


@inner
def first_class(table: Uint64s, h: np.uint64) -> int:
    """The first class under a feature; 0 if there is none."""
    return np.int64(table[_slot(table, stored_key(h)), _HEAD])


@inner
def fetch_block(rows: Uint32s, folds: Uint64s, block: int) -> None:
    """Prefetch the first row of a block."""
    prefetch(rows, COLUMNS * block)
    words = np.int64(folds.shape[1])
    prefetch(folds, (block + 1) * words)
    if words == WIDE_WORDS:
        prefetch(folds, (block + 3) * words)


@inner
def fetch_classes(probe: Probe, keys: Uint64s, postings: Postings) -> None:
    """Prefetch the first class of each key of a document, all at once."""
    table, rows, folds = postings.table, postings.rows, postings.folds
    for k in range(probe.first, probe.last):
        prefetch(table, 2 * _first_slot(stored_key(keys[k]), len(table)))
    for k in range(probe.first, probe.last):
        head = first_class(table, keys[k])
        fetch_block(rows, folds, head)


@inner
def fetch_places(fetch: int, number: int, probe: Probe, keys: Keys, postings: Postings) -> None:
    """Prefetch the rows where a document will go under its keys of a range: one of FETCHES steps.

    Each step reads what the step before has fetched, so other work belongs between them.
    """
    table, rows, folds = postings.table, postings.rows, postings.folds
    words = np.int64(folds.shape[1])
    for k in range(probe.first, probe.last):
        key = stored_key(keys.keys[k])
        if range_of(key) != number:
            continue
        if fetch == 0:
            prefetch(table, 2 * _first_slot(key, len(table)))
            continue
        head = first_class(table, key)
        if fetch == 1:
            prefetch(rows, COLUMNS * head)
            continue
        head, _ = _class_of(rows, head, key, keys.before[k], probe)
        block = link(rows, head, LAST)
        at = block + 1 + link(rows, head, COUNT)
        prefetch(rows, COLUMNS * block)
        prefetch(rows, COLUMNS * at)
        prefetch(folds, at * words)


@general
def link(rows: Uint32s, at: int, column: int) -> int:
    """The value of a row in a column; int64."""
    return np.int64(rows[at, column])


@inner
def may_have_near(
    rows: Uint32s, head: int, probe: Probe, before: int, condition: Condition
) -> bool:
    """Whether a class may have a document that is similar to the probe and is found by this key.

    `before` features of the probe are before the key.
    """
    kind = link(rows, head, KIND)
    least, most = _sizes_of(kind)
    is_early = before <= probe.most_before
    if kind & LATE:
        if not is_early or most < probe.size:
            return False
    elif not is_early and least > probe.size:
        return False
    if probe.smallest > most or probe.largest < least:
        return False
    return not kind & FINE or before <= probe.size - needed_overlap(probe.size, least, condition)


@inner
def _apart(folds: Uint64s, at: int, place: int) -> int:
    """The number of bits in which the entry of a row differs from that of the current document."""
    apart = popcount(folds[place, 0] ^ folds[at, 0])
    if folds.shape[1] == WIDE_WORDS:
        for word in range(1, WIDE_WORDS):
            apart += popcount(folds[place, word] ^ folds[at, word])
    return apart


@inner
def most_apart_in(rows: Uint32s, head: int, probe: Probe, condition: Condition) -> int:
    """The most features in which the probe and a similar document of a class differ.

    By every measure it is a convex function of the other's size, and so it is largest at one end of
    the sizes of the class. Overlaps are rounded up by less than one, differences by two.
    """
    least, most = _sizes_of(link(rows, head, KIND))
    low, high = max(probe.smallest, least), min(probe.largest, most)
    at_low = low - 2 * needed_overlap(probe.size, low, condition)
    at_high = high - 2 * needed_overlap(probe.size, high, condition)
    return probe.size + max(at_low, at_high) + 2


@inner
def _is_near(
    rows: Uint32s, at: int, apart: int, probe: Probe, before: int, condition: Condition
) -> bool:
    """As `is_near`, for sketches that differ in `apart` bits. No branches: none is predictable."""
    other = link(rows, at, SIZE)
    needed = needed_overlap(probe.size, other, condition)
    return (
        (apart <= probe.size + other - 2 * needed)
        & (link(rows, at, BEFORE) <= other - needed)
        & (before <= probe.size - needed)
    )


@inner
def is_near(postings: Postings, at: int, probe: Probe, before: int, condition: Condition) -> bool:
    """Whether the document of a row may be similar to the probe, by sizes, key and sketches.

    `before` features of the probe are before the key.
    """
    apart = _apart(postings.folds, at, probe.place)
    if apart > probe.most_apart:
        return False
    return _is_near(postings.rows, at, apart, probe, before, condition)


@inner
def only_near(
    postings: Postings, first: int, marked: np.uint64, probe: Probe, before: int,
    condition: Condition,
) -> Any:  # fmt: skip
    """Mark those of the rows first..first+7 in `marked` that `is_near`; O(the last of them)."""
    rows, folds = postings.rows, postings.folds
    near, rest, i = np.uint64(0), marked, np.int64(0)
    while rest:
        apart = _apart(folds, first + i, probe.place)
        is_one = _is_near(rows, first + i, apart, probe, before, condition)
        near |= np.uint64(is_one) << np.uint64(i)
        rest >>= np.uint64(1)
        i += 1
    return near & marked


@inner
def room_in(rows: Uint32s, head: int, block: int) -> int:
    """The number of documents that fit in a block of a class."""
    return np.int64(1) if block == head else link(rows, block, ROOM)


@inner
def block_end(rows: Uint32s, head: int, block: int) -> int:
    """The row after the last document of a block of a class; they begin one after the block."""
    if block == link(rows, head, LAST):
        return block + 1 + link(rows, head, COUNT)
    return block + 1 + room_in(rows, head, block)


@inner
def block_after(rows: Uint32s, head: int, block: int) -> int:
    """The next block of a class, or 0 after the last one."""
    return np.int64(0) if block == link(rows, head, LAST) else link(rows, block, NEXT)


@inner
def near_rows(folds: Uint64s, place: int, at: int, end: int, most: int) -> Any:
    """Mark which of the rows at..at+7, up to end - 1, have a sketch near that of folds[place]."""
    if folds.shape[1] == WIDE_WORDS:
        near = near8_wide(folds, at, place, most)
    else:
        near = near8(folds, at, place, most, _ONE_WORD)
    if end - at < PADDING:
        near &= (np.uint64(1) << np.uint64(end - at)) - np.uint64(1)
    return near


@inner
def any_near(
    postings: Postings, head: int, probe: Probe, before: int, condition: Condition
) -> bool:
    """Whether a document in the blocks of a class may be similar to the probe; see `is_near`."""
    rows, folds = postings.rows, postings.folds
    block = np.int64(head)
    while block:
        end = block_end(rows, head, block)
        for first in range(block + 1, end, PADDING):
            near = near_rows(folds, probe.place, first, end, probe.most_apart)
            while near:
                if is_near(postings, first + trailing_zeros(near), probe, before, condition):
                    return True
                near &= near - np.uint64(1)
        block = block_after(rows, head, block)
    return False


@inner
def copy_document(postings: Postings, at: int, to: int) -> None:
    """Copy a document's row, but not its links to rings."""
    rows, folds = postings.rows, postings.folds
    for word in range(folds.shape[1]):
        folds[to, word] = folds[at, word]
    for column in range(AROUND):
        rows[to, column] = rows[at, column]


@inner
def _new_place(rows: Uint32s, head: int, used: Int64s) -> int:
    """Make room for one more document of a class; returns its row."""
    block, count = link(rows, head, LAST), link(rows, head, COUNT)
    room = room_in(rows, head, block)
    if count == room:
        if not rows[block, NEXT]:
            room = SECOND_BLOCK if block == head else min(BLOCK_TIMES * room, LARGEST_BLOCK)
            rows[block, NEXT] = used[ROWS] + 1
            used[ROWS] += 1 + room
            after = link(rows, block, NEXT)
            rows[after, ROOM], rows[after, NEXT] = room, 0
            if room == LARGEST_BLOCK:
                rows[head, KIND] |= np.uint32(LONG)
        block, count = link(rows, block, NEXT), np.int64(0)
        rows[head, LAST] = block
    rows[head, COUNT] = count + 1
    return block + 1 + count


@inner
def insert_under(k: int, probe: Probe, keys: Keys, postings: Postings) -> None:
    """Put a document under its key number k."""
    table, rows, used = postings.table, postings.rows, postings.used
    folds = postings.folds
    used[KEYS] += 1
    key = stored_key(keys.keys[k])
    slot = _slot(table, key)
    if not table[slot, _KEY]:
        table[slot, _KEY] = key
        used[SLOTS + range_of(key)] += 1
    first = np.int64(table[slot, _HEAD])
    head, kind = _class_of(rows, first, key, keys.before[k], probe)
    if not head:
        head = used[ROWS] + 1
        used[ROWS] += 2
        rows[head, KIND], rows[head, CLASS] = kind, first
        rows[head, COUNT], rows[head, NEXT], rows[head, RINGS] = 0, 0, 0
        rows[head, LAST] = head
        table[slot, _HEAD] = head
    at = _new_place(rows, head, used)
    rows[at, DOCUMENT], rows[at, BEFORE] = probe.x, keys.before[k]
    rows[at, SIZE] = probe.size
    for word in range(folds.shape[1]):
        folds[at, word] = folds[probe.place, word]


@inner
def insert(probe: Probe, keys: Keys, postings: Postings) -> None:
    """Put a document under its keys."""
    for k in range(probe.first, probe.last):
        insert_under(k, probe, keys, postings)


@inner
def join_rings(rows: Uint32s, ring: int, other: int) -> None:
    """Make one ring of two; neither is part of the other."""
    rows[ring, AROUND], rows[other, AROUND] = rows[other, AROUND], rows[ring, AROUND]


@inner
def put_in_ring(postings: Postings, at: int, head: int, ring: int) -> int:
    """Put a document in a ring of its class, a new one if `ring` is 0; returns the ring."""
    rows, used = postings.rows, postings.used
    used[ROWS] += 1
    own = used[ROWS]
    copy_document(postings, at, own)
    rows[own, AROUND] = own
    if ring:
        join_rings(rows, ring, own)
        return ring
    rows[own, OTHER] = rows[head, RINGS]
    rows[head, RINGS] = own
    return own
