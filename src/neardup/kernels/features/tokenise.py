"""Normalise, fold case and cut a UTF-8 text into tokens, in one pass.

Plain ASCII goes 64 bytes at a time. Any other character is looked up in the tables; one that may
combine with what stands before it (`SLOW`) takes its whole segment, from the last character that
may not, through the full normalisation, and what was written for that last character is undone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import (
    copy64,
    high_mask64,
    load32,
    pack_words64,
    popcount,
    store32,
    trailing_zeros,
    word_mask64,
)
from neardup.kernels.features.character_classes import (
    CLASS_MASK,
    CLASS_SHIFT,
    CODE_POINT_MASK,
    EXTEND,
    IGNORED,
    MULTI,
    OTHER,
    SLOW,
    SPACE,
    UNSPACED,
    WORD,
)
from neardup.kernels.features.normalise import decompose, order_and_compose
from neardup.kernels.features.token_arguments import Capacity, Tokens
from neardup.kernels.jit import inlined, inner, making
from neardup.kernels.utf8 import decode, encode

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Offsets, Uint32s
    from neardup.kernels.features.token_arguments import Cutting

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
_BLANK: Final = 0x20
_PLAIN_UNSPACED: Final = UNSPACED << CLASS_SHIFT
_ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE, _ONE, _U8 = np.uint64(0), np.uint64(1), np.uint64(8)
_UNKNOWN: Final = np.int64(-1)


def plain_tokens(capacity: Capacity) -> Tokens:
    """Make arrays for the tokens of a text that needs this capacity; called from Python."""
    points = np.empty(capacity.points + SLACK, np.uint32)
    return Tokens(
        np.empty(capacity.nbytes + SLACK, np.uint8),
        np.empty(capacity.tokens + SLACK, np.int64),
        points,
        np.empty(points.size, np.uint8),
    )


made_tokens: Final[Any] = making(plain_tokens)
"""As `plain_tokens`, called from kernels."""


@making
def scratch_tokens(longest: int) -> Tokens:
    """Make arrays for the tokens of any text of up to `longest` bytes."""
    return made_tokens(
        Capacity(TOKEN_RATIO * longest, BUFFER_RATIO * longest, SEGMENT_RATIO * longest)
    )


@inlined
def _emit(
    cp: int, kind: int, chars: bool, buffer: Bytes, starts: Offsets, to: int, count: int, state: int
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
        return encode(cp, buffer, to), count + 1, 0
    if kind == WORD or kind == UNSPACED:  # membership compiles to a search
        if state == WORD and kind == WORD:
            return encode(cp, buffer, to), count, state
        if state:
            buffer[to] = _BLANK
            to += 1
        starts[count] = to
        return encode(cp, buffer, to), count + 1, kind
    if kind == EXTEND and state:
        return encode(cp, buffer, to), count, state
    if state:
        buffer[to] = _BLANK
        to += 1
    return to, count, 0


@inlined
def _emit_entry(
    entry: int, cp: int, pool: Uint32s, chars: bool, tokens: Tokens, to: int, count: int, state: int
) -> tuple[int, int, int]:
    buffer, starts = tokens.buffer, tokens.starts
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


@inlined
def _put_places(mask: np.uint64, to: int, starts: Offsets, count: int) -> int:
    """Append `to` + the index of each 1 bit; returns the new count. May write 8 more behind it."""
    place = np.uint64(count)
    count += popcount(mask)
    while mask:
        # Eight at a time: a branch on the number of words in 64 bytes could not be predicted.
        for _ in range(8):
            starts[place] = to + trailing_zeros(mask)
            mask &= mask - _ONE
            place += _ONE
    return count


@inlined
def _emit_words(
    words: np.uint64, size: int, tokens: Tokens, at: int, case_bit: np.uint8, to: int, count: int,
    state: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Write the word bytes among the `size` from buffer[at] on, marked in the mask `words`."""
    buffer, starts = tokens.buffer, tokens.starts
    if state == UNSPACED:
        buffer[to] = _BLANK
        to += 1
    goes_on = np.uint64(state == WORD)
    kept = words | (words << _ONE | goes_on) & (_ALL >> np.uint64(64 - size))
    blanks = pack_words64(buffer, to, buffer, at, case_bit, words, kept)
    written = popcount(kept)
    if written:
        begins = (blanks << _ONE | (goes_on ^ _ONE)) & (_ALL >> np.uint64(64 - written))
        count = _put_places(begins, to, starts, count)
    return to + written, count, np.int64(words >> np.uint64(size - 1)) * WORD


@inlined
def _mark_letters(
    data: Bytes, at: int, size: int, end: int, tables: Any, words: np.uint64, high: np.uint64,
    buffer: Bytes,
) -> tuple[int, Any]:  # fmt: skip
    """Put the letters of two bytes into the chunk and the mask `words`, and leave out separators.

    The chunk is the end of the buffer. Returns how many of the `size` bytes can be written so, and
    the mask.
    """
    index, blocks, chunk_at = tables.index, tables.blocks, buffer.size - _LANES
    while high:
        place = trailing_zeros(high)
        cp, width = decode(data, at + place, end)
        entry = np.int64(blocks[np.uint64(index[np.uint64(cp >> 8)]) << _U8 | np.uint64(cp & 255)])
        kind = entry >> CLASS_SHIFT
        if place + width > size:
            return place, words
        marks = _ALL >> np.uint64(64 - width) << np.uint64(place)
        if kind == WORD and width == 2:
            replaced = entry & CODE_POINT_MASK or cp
            if not 0x80 <= replaced < 0x800:
                return place, words
            if replaced != cp:
                buffer[chunk_at + place] = 0xC0 | replaced >> 6
                buffer[chunk_at + place + 1] = 0x80 | replaced & 0x3F
            words |= marks
        elif kind != OTHER and kind != SPACE:
            return place, words
        high &= ~marks
    return size, words


@inlined
def _emit_unspaced(
    data: Bytes, at: int, end: int, tables: Any, tokens: Tokens, to: int, count: int
) -> tuple[int, int, int, int]:
    """Write, behind one of its kind, a run of three-byte characters that are a token each.

    Separators of three bytes may stand among them: a blank goes before each token anyway.
    """
    index, blocks, buffer, starts = tables.index, tables.blocks, tokens.buffer, tokens.starts
    is_token = np.int64(1)
    while at < end:
        octets = np.int64(load32(data, at))
        cp = (octets & 0x0F) << 12 | (octets >> 2 & 0xFC0) | (octets >> 16 & 0x3F)
        entry = blocks[np.uint64(index[np.uint64(cp >> 8)]) << _U8 | np.uint64(cp & 255)]
        kind = entry >> CLASS_SHIFT
        next_is = np.int64(entry == _PLAIN_UNSPACED)
        if octets & 0xF0 != 0xE0 or not (next_is | (kind == OTHER) | (kind == SPACE)):
            break
        is_token = next_is
        store32(buffer, to, np.uint64(octets << 8 | _BLANK))
        starts[np.uint64(count)] = to + 1
        at, to, count = at + 3, to + 4 * is_token, count + is_token
    if is_token:
        return at, to, count, UNSPACED
    buffer[to] = _BLANK
    return at, to + 1, count, 0


@inner
def _before_last(
    data: Bytes, begin: int, at: int, starts: Offsets, to: int, count: int, state: int
) -> tuple[int, int, int, int]:  # fmt: skip
    """The index of the last character, and index, count and state of the output before it."""
    last = at - 1
    while last > begin and data[last] & 0xC0 == 0x80:
        last -= 1
    if state:
        to -= at - last
        if starts[count - 1] == to:
            return last, to, count - 1, 0
    return last, to, count, state


@inner
def _emit_segment(
    data: Bytes, at: int, end: int, cutting: Cutting, tokens: Tokens, to: int, count: int,
    state: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Normalise and write a character and all slow ones behind it; returns the new index first."""
    tables, points, classes = cutting.tables, tokens.points, tokens.classes
    size = np.int64(0)
    first = True
    while at < end:
        cp, width = decode(data, at, end)
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
            entry, cp, tables.fold_pool, cutting.chars, tokens, to, count, state
        )
    return at, to, count, state


@inner
def tokenise(data: Bytes, begin: int, end: int, cutting: Cutting, tokens: Tokens) -> int:
    """Cut data[begin:end] into tokens; returns how many there are.

    Args:
        data: uint8, UTF-8; may be read-only. Up to 80 bytes behind `end` may be read, never
            behind data.size.
        begin: First byte of the text.
        end: Byte behind its last.
        cutting: Cutting.
        tokens: Tokens, with room for the text, written.
    """
    tables, case_bit, chars = cutting.tables, cutting.case_bit, cutting.chars
    buffer, starts = tokens.buffer, tokens.starts
    index, blocks, pool = tables.index, tables.blocks, tables.pool
    # The last character that was written and may be undone: where it began, in the text and in the
    # buffer, the tokens and the state before it; at _UNKNOWN, `_before_last` finds it.
    at, to, count, state = begin, np.int64(0), np.int64(0), np.int64(0)
    last, last_to, last_count, last_state = at, to, count, state
    chunk_at = buffer.size - _LANES
    whole = np.int64(-1) if chars or not cutting.plain else data.size - _OVERREAD
    while at < end:
        if data[at] < 0xE0 and at <= whole:
            size = min(end - at, _LANES)
            inside = _ALL >> np.uint64(64 - size)
            words, high = word_mask64(data, at), high_mask64(data, at) & inside
            copy64(data, at, buffer, chunk_at)
            if high:
                size, words = _mark_letters(data, at, size, end, tables, words, high, buffer)
                inside = _ALL >> np.uint64(64 - size) if size else _NONE
            if size:
                to, count, state = _emit_words(
                    words & inside, size, tokens, chunk_at, case_bit, to, count, state
                )
                at, last = at + size, _UNKNOWN
                continue
        cp, width = decode(data, at, end)
        entry = np.int64(blocks[np.int64(index[cp >> 8]) * 256 + (cp & 255)])
        if entry & SLOW:
            if last == _UNKNOWN:
                last, last_to, last_count, last_state = _before_last(
                    data, begin, at, starts, to, count, state
                )
            at, to, count, state = _emit_segment(
                data, last, end, cutting, tokens, last_to, last_count, last_state
            )
            continue
        last, last_to, last_count, last_state = at, to, count, state
        if entry == _PLAIN_UNSPACED and width == 3 and not chars:
            if state:
                buffer[to] = _BLANK
                to += 1
            buffer[to], buffer[to + 1], buffer[to + 2] = data[at], data[at + 1], data[at + 2]
            starts[count] = to
            at, to, count, state = at + 3, to + 3, count + 1, UNSPACED
            if at < min(end - 2, whole):
                at, to, count, state = _emit_unspaced(
                    data, at, min(end - 2, whole), tables, tokens, to, count
                )
                last = _UNKNOWN
            continue
        to, count, state = _emit_entry(entry, cp, pool, chars, tokens, to, count, state)
        at += width
    if state and not chars:
        buffer[to] = _BLANK
        to += 1
    starts[count] = to
    return count
