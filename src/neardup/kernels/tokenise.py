"""Normalise, fold case and cut a UTF-8 text into tokens, in one pass.

Plain ASCII goes 64 bytes at a time. Any other character is looked up in the tables; one that may
combine with what stands before it (`SLOW`) takes its whole segment, from the last character that
may not, through the full normalisation, and what was written for that last character is undone.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from neardup.kernels.bits import (
    high_mask64,
    pack_words64,
    popcount,
    trailing_zeros,
    word_mask64,
)
from neardup.kernels.classes import (
    CLASS_MASK,
    CLASS_SHIFT,
    CODE_POINT_MASK,
    EXTEND,
    IGNORED,
    MULTI,
    SLOW,
    SPACE,
    UNSPACED,
    WORD,
)
from neardup.kernels.jit import inlined, inner
from neardup.kernels.normalise import decompose, order_and_compose

BUFFER_RATIO: Final = 12
"""Bytes of normalised text, joiners included, that one byte of input can give, at most."""
TOKEN_RATIO: Final = 7
"""Tokens that one byte of input can give, at most."""
SEGMENT_RATIO: Final = 4
"""Twice the decomposed code points that one byte of a slow segment can give, at most."""
SLACK: Final = 128
"""Room behind each scratch array for writes in whole vectors."""

_LANES: Final = 64
_OVERREAD: Final = 80
_REPLACEMENT: Final = 0xFFFD
_BLANK: Final = 0x20
_PLAIN_UNSPACED: Final = UNSPACED << CLASS_SHIFT
_ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE: Final = np.uint64(1)


@inlined
def _decode(data: Any, at: int, end: int) -> tuple[int, int]:
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, 1
    if 0xC2 <= lead < 0xE0 and at + 1 < end:
        return (lead & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F), 2
    if 0xE0 <= lead < 0xF0 and at + 2 < end:
        middle = (np.int64(data[at + 1]) & 0x3F) << 6
        return (lead & 0x0F) << 12 | middle | (np.int64(data[at + 2]) & 0x3F), 3
    if 0xF0 <= lead < 0xF5 and at + 3 < end:
        high = (lead & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
        low = (np.int64(data[at + 2]) & 0x3F) << 6 | (np.int64(data[at + 3]) & 0x3F)
        return min(high | low, 0x10FFFF), 4
    return _REPLACEMENT, 1


@inlined
def _encode(cp: int, buffer: Any, to: int) -> int:
    if cp < 0x80:
        buffer[to] = cp
        return to + 1
    if cp < 0x800:
        buffer[to] = 0xC0 | cp >> 6
        buffer[to + 1] = 0x80 | cp & 0x3F
        return to + 2
    if cp < 0x10000:
        buffer[to] = 0xE0 | cp >> 12
        buffer[to + 1] = 0x80 | cp >> 6 & 0x3F
        buffer[to + 2] = 0x80 | cp & 0x3F
        return to + 3
    buffer[to] = 0xF0 | cp >> 18
    buffer[to + 1] = 0x80 | cp >> 12 & 0x3F
    buffer[to + 2] = 0x80 | cp >> 6 & 0x3F
    buffer[to + 3] = 0x80 | cp & 0x3F
    return to + 4


@inlined
def _emit(
    cp: int, kind: int, chars: bool, buffer: Any, starts: Any, to: int, count: int, state: int
) -> tuple[int, int, int]:
    """Write one normalised character; returns where to write next, tokens so far and the state.

    The state is the class of the open token (words), or 1 after white space (chars).
    """
    if kind == IGNORED:
        return to, count, state
    if chars:
        if kind == SPACE:
            return to, count, 1
        if state and count:
            starts[count] = to
            buffer[to] = _BLANK
            to, count = to + 1, count + 1
        starts[count] = to
        return _encode(cp, buffer, to), count + 1, 0
    if kind == WORD or kind == UNSPACED:  # membership compiles to a search
        if state == WORD and kind == WORD:
            return _encode(cp, buffer, to), count, state
        if state:
            buffer[to] = _BLANK
            to += 1
        starts[count] = to
        return _encode(cp, buffer, to), count + 1, kind
    if kind == EXTEND and state:
        return _encode(cp, buffer, to), count, state
    if state:
        buffer[to] = _BLANK
        to += 1
    return to, count, 0


@inlined
def _emit_entry(
    entry: int,
    cp: int,
    pool: Any,
    chars: bool,
    buffer: Any,
    starts: Any,
    to: int,
    count: int,
    state: int,
) -> tuple[int, int, int]:
    if entry & MULTI:
        at = entry & CODE_POINT_MASK
        for i in range(at + 1, at + 1 + np.int64(pool[at])):
            part = np.int64(pool[i])
            to, count, state = _emit(
                part & CODE_POINT_MASK,
                part >> CLASS_SHIFT & CLASS_MASK,
                chars,
                buffer,
                starts,
                to,
                count,
                state,
            )
        return to, count, state
    replaced = entry & CODE_POINT_MASK
    kind = entry >> CLASS_SHIFT & CLASS_MASK
    return _emit(replaced or cp, kind, chars, buffer, starts, to, count, state)


@inner
def _emit_ascii(
    words: Any, size: int, data: Any, at: int, case_bit: Any, buffer: Any, starts: Any, to: int,
    count: int, state: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Write the word characters among `size` ASCII bytes, marked in the mask `words`."""
    if state and (state != WORD or not words & _ONE):
        buffer[to] = _BLANK
        to += 1
        state = 0
    after = words << _ONE
    kept = words | (after & (_ALL >> np.uint64(64 - size)))
    pack_words64(buffer, to, data, at, case_bit, words, kept)
    begins = words & ~(after | _ONE) if state else words & ~after
    while begins:
        below = (begins & (~begins + _ONE)) - _ONE
        starts[count] = to + popcount(kept & below)
        count += 1
        begins &= begins - _ONE
    state = WORD if words >> np.uint64(size - 1) else 0
    return to + popcount(kept), count, state


@inner
def _emit_segment(
    data: Any, at: int, end: int, tables: Any, chars: bool, points: Any, classes: Any, buffer: Any,
    starts: Any, to: int, count: int, state: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Normalise and write one character and all slow ones behind it; first comes the new index."""
    size = np.int64(0)
    first = True
    while at < end:
        cp, width = _decode(data, at, end)
        entry = np.int64(tables.blocks[np.int64(tables.index[cp >> 8]) * 256 + (cp & 255)])
        if not (first or entry & SLOW):
            break
        size = decompose(cp, tables, points, size)
        at += width
        first = False
    for i in range(order_and_compose(points, classes, size, tables)):
        cp = np.int64(points[i])
        block = np.int64(tables.fold_index[cp >> 8])
        entry = np.int64(tables.fold_blocks[block * 256 + (cp & 255)])
        to, count, state = _emit_entry(
            entry, cp, tables.fold_pool, chars, buffer, starts, to, count, state
        )
    return at, to, count, state


@inner
def tokenise(
    data: Any, begin: int, end: int, tables: Any, chars: bool, case_bit: Any, points: Any,
    classes: Any, buffer: Any, starts: Any,
) -> int:  # fmt: skip
    """Write the tokens of data[begin:end] to `buffer`; returns how many there are.

    Token i is buffer[starts[i] : starts[i + 1] - gap]: words are followed by one space each
    (gap 1), characters by nothing (gap 0). So the tokens i to i + n - 1, joined, are
    buffer[starts[i] : starts[i + n] - gap].

    Args:
        data: uint8, UTF-8; may be read-only. Up to 80 bytes behind `end` may be read, never
            behind data.size.
        begin: First byte of the text.
        end: Byte behind its last.
        tables: neardup.unicode.Tables.
        chars: Tokens are code points instead of words.
        case_bit: uint8, 0x20 to fold case, else 0.
        points: uint32, scratch, SEGMENT_RATIO * (end - begin) + SLACK.
        classes: uint8, scratch, as long.
        buffer: uint8, BUFFER_RATIO * (end - begin) + SLACK, written.
        starts: int64, TOKEN_RATIO * (end - begin) + SLACK, written, count + 1 of it.
    """
    at, to, count, state = begin, np.int64(0), np.int64(0), np.int64(0)
    last, last_to, last_count, last_state = at, to, count, state
    # Taken out of the tuple once: an access in the loop would count references each time.
    index, blocks, pool = tables.index, tables.blocks, tables.pool
    while at < end:
        if data[at] < 0x80 and not chars and at + _OVERREAD <= data.size:
            size = min(trailing_zeros(high_mask64(data, at)), end - at, _LANES)
            words = word_mask64(data, at) & (_ALL >> np.uint64(64 - size))
            to, count, state = _emit_ascii(
                words, size, data, at, case_bit, buffer, starts, to, count, state
            )
            at += size
            last, last_to, last_count, last_state = at - 1, to, count, state
            if state:
                last_to -= 1
                if starts[count - 1] == last_to:
                    last_count, last_state = count - 1, np.int64(0)
            continue
        cp, width = _decode(data, at, end)
        entry = np.int64(blocks[np.int64(index[cp >> 8]) * 256 + (cp & 255)])
        if entry & SLOW:
            at, to, count, state = _emit_segment(
                data, last, end, tables, chars, points, classes, buffer, starts, last_to,
                last_count, last_state,
            )  # fmt: skip
            continue
        last, last_to, last_count, last_state = at, to, count, state
        if entry == _PLAIN_UNSPACED and width == 3 and not chars:
            # Most of a Chinese or Japanese text: the three bytes are the token.
            if state:
                buffer[to] = _BLANK
                to += 1
            buffer[to], buffer[to + 1], buffer[to + 2] = data[at], data[at + 1], data[at + 2]
            starts[count] = to
            at, to, count, state = at + 3, to + 3, count + 1, UNSPACED
            continue
        to, count, state = _emit_entry(entry, cp, pool, chars, buffer, starts, to, count, state)
        at += width
    if state and not chars:
        buffer[to] = _BLANK
        to += 1
    starts[count] = to
    return count
