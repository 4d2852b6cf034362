"""Find fields in JSON lines outside Python's lock: 64 bytes at a time, then mark by mark.

First the marks are found: quotes that no backslash escapes, and outside strings structure, line
ends and where numbers and literals begin (Langdale and Lemire, Parsing gigabytes of JSON per
second, VLDB Journal 2019). Then a machine with one state walks over them. It knows the grammar of
RFC 8259, but gives up on what is rare (a wanted key twice, nesting below 60 levels, very long
numbers, bad lines), which is left to a complete parser: that parser accepts all that this one
accepts, with the same meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.bits import json_masks64, popcount, trailing_zeros
from neardup.kernels.documents.byte_spans import (
    between_quotes,
    carried,
    copy_span,
    load_tail,
    next_bit,
)
from neardup.kernels.jit import inlined, inner, kernel
from neardup.kernels.utf8 import encode

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Int32s, Int64s, Offsets, Uint64s

STRING, INTEGER, FRACTION, BOOLEAN, NULL = 1, 2, 4, 8, 16
"""Kinds of values, as bits to be added; an INTEGER is written as it prints and fits 63 bits."""

_GIVEN_UP: Final = -1
_QUOTE, _BACKSLASH, _NEWLINE = ord('"'), ord("\\"), ord("\n")
_OPEN_OBJECT, _CLOSE_OBJECT = ord("{"), ord("}")
_OPEN_ARRAY, _CLOSE_ARRAY = ord("["), ord("]")
_COLON, _COMMA = ord(":"), ord(",")
_MINUS, _PLUS, _POINT, _ZERO, _NINE = ord("-"), ord("+"), ord("."), ord("0"), ord("9")
_E, _U, _X20 = ord("e"), ord("u"), 0x20
_LINE, _FIRST_KEY, _KEY, _AFTER_KEY, _VALUE, _FIRST_VALUE, _NEXT, _DONE = range(8)
_DEEPEST: Final = 60
_MOST_INTEGER_DIGITS: Final = 18
_MOST_DIGITS: Final = 200  # and 2 of an exponent: no double overflows
_SHORT_ESCAPES: Final = np.full(256, _GIVEN_UP, np.int8)
_SHORT_ESCAPES[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
_ONE: Final = np.uint64(1)
_EVEN: Final = np.uint64(0x5555555555555555)
_LOW_6: Final = np.uint64(63)


class FieldRule(NamedTuple):
    """The F fields to read, and the kinds of value that each may have."""

    names: Any  # uint8, their keys, one after the other
    name_ends: Any  # int64 (F,), where each ends
    allowed: Any  # int64 (F,), the kinds that each may have


class Records(NamedTuple):
    """Arrays for the results of `walk_marks` in a number of lines."""

    ends: Any  # int64 (lines,): the byte behind each line
    accepted: Any  # bool (lines,): False for blank lines
    places: Any  # int32 (F, lines, 2): first byte of each record's field, and the one behind
    kinds: Any  # uint8 (F, lines)


@kernel
def find_marks(data: Bytes, tail: Bytes, marks: Int32s, backslashes: Uint64s) -> Any:
    """Find the marks of JSON; O(bytes).

    Args:
        data: uint8 (n,), whole lines; may be read-only.
        tail: uint8 (64,), for work.
        marks: int32 (up to n + 1,), written: positions, ascending; quotes, {}[]:, and line ends
            outside strings, the first bytes of numbers and literals; and n if the last line has no
            end.
        backslashes: uint64 (n // 64 + 1,), written: a bit for each byte.

    Returns:
        How many marks and line ends there are, the one at n included, or (-1, 0) where a string has
        a control character or no end, or there are more marks than room for them.
    """
    n = data.size
    count, lines, position = np.int64(0), np.int64(0), np.int64(0)
    escape, inside, scalar = np.uint64(0), np.uint64(0), np.uint64(0)
    while position < n:
        if position + 64 <= n:
            masks = json_masks64(data, position)
        else:
            load_tail(data, position, tail)
            masks = json_masks64(tail, np.int64(0))
        quotes, slashes, structure, ends, white, controls = masks
        backslashes[position >> 6] = slashes
        escaped = escape
        if slashes:
            slashes &= ~escape
            follows = slashes << _ONE | escape
            odd_starts = slashes & ~_EVEN & ~follows
            runs = odd_starts + slashes
            escape = np.uint64(runs < slashes)
            escaped = (_EVEN ^ runs << _ONE) & follows
        else:
            escape = np.uint64(0)
        quotes &= ~escaped
        string = between_quotes(quotes, inside)
        inside = carried(string)
        if controls & string:
            return np.int64(_GIVEN_UP), np.int64(0)
        others = ~(string | quotes | structure | ends | white)
        places = quotes | (structure | ends) & ~string | others & ~(others << _ONE | scalar)
        scalar = others >> _LOW_6
        if count + popcount(places) >= marks.size:
            return np.int64(_GIVEN_UP), np.int64(0)
        while places:
            marks[count] = position + trailing_zeros(places)
            count += 1
            places &= places - _ONE
        lines += popcount(ends)
        position += 64
    if inside:
        return np.int64(_GIVEN_UP), np.int64(0)
    if n and data[n - 1] != _NEWLINE:
        marks[count] = n
        return count + 1, lines + 1
    return count, lines


@inlined
def _is_digit(byte: int) -> bool:
    return _ZERO <= byte <= _NINE


@inner
def _digits(data: Bytes, at: int) -> int:
    """The index behind the digits from `at` on."""
    while at < data.size and _is_digit(data[at]):
        at += 1
    return at


@inner
def _number(data: Bytes, begin: int) -> int:
    """The end of a number, times 32, plus its kind; or -1."""
    at = np.int64(begin) + np.int64(data[begin] == _MINUS)
    whole = _digits(data, at)
    if whole == at or (whole - at > 1 and data[at] == _ZERO) or whole - at > _MOST_DIGITS:
        return _GIVEN_UP
    minus_zero = data[begin] == _MINUS and data[at] == _ZERO
    kind = FRACTION if whole - at > _MOST_INTEGER_DIGITS or minus_zero else INTEGER
    at = whole
    if at < data.size and data[at] == _POINT:
        kind, begin, at = FRACTION, at + 1, _digits(data, at + 1)
        if at == begin or at - begin > _MOST_DIGITS:
            return _GIVEN_UP
    if at < data.size and data[at] | _X20 == _E:
        at += 1
        if at < data.size and (data[at] == _PLUS or data[at] == _MINUS):
            at += 1
        kind, begin, at = FRACTION, at, _digits(data, at)
        if at == begin or at - begin > 2:
            return _GIVEN_UP
    return at * 32 + kind


@inner
def _literal(data: Bytes, begin: int, word: Any, kind: int) -> int:
    if begin + len(word) > data.size:
        return _GIVEN_UP
    for i in range(len(word)):
        if data[begin + i] != word[i]:
            return _GIVEN_UP
    return (begin + len(word)) * 32 + kind


@inner
def _scalar(data: Bytes, begin: int) -> int:
    """The end of a number or literal, times 32, plus its kind; or -1."""
    byte = data[begin]
    if byte == ord("t"):
        return _literal(data, begin, b"true", BOOLEAN)
    if byte == ord("f"):
        return _literal(data, begin, b"false", BOOLEAN)
    if byte == ord("n"):
        return _literal(data, begin, b"null", NULL)
    return _number(data, begin)


@inlined
def _ends_scalar(data: Bytes, at: int) -> bool:
    if at == data.size:
        return True
    byte = data[at]
    return (
        byte == _X20 or byte == _COMMA or byte == _CLOSE_OBJECT or byte == _CLOSE_ARRAY
        or byte == _NEWLINE or byte == ord("\r") or byte == ord("\t")
    )  # fmt: skip


@inner
def _fields_of(data: Bytes, begin: int, end: int, names: Bytes, name_ends: Int64s) -> int:
    """The fields to read that have this key, a bit for each."""
    fields, start = 0, 0
    for field in range(name_ends.size):
        if name_ends[field] - start == end - begin:
            equal = True
            for i in range(end - begin):
                if data[begin + i] != names[start + i]:
                    equal = False
                    break
            if equal:
                fields |= 1 << field
        start = name_ends[field]
    return fields


@inner
def _hex4(data: Bytes, at: int, end: int) -> int:
    """The value of four hexadecimal digits, or -1."""
    if at + 4 > end:
        return _GIVEN_UP
    value = 0
    for i in range(at, at + 4):
        byte = np.int64(data[i])
        letter = byte | _X20
        if _is_digit(byte):
            value = value << 4 | (byte - _ZERO)
        elif ord("a") <= letter <= ord("f"):
            value = value << 4 | (letter - ord("a") + 10)
        else:
            return _GIVEN_UP
    return value


@inner
def _code_point(data: Bytes, at: int, end: int) -> int:
    r"""The character of \uXXXX, or of two for one beyond U+FFFF; `at` is behind the u; or -1."""
    value = _hex4(data, at, end)
    if value >> 11 != 0xD800 >> 11:
        return value
    if value >= 0xDC00 or at + 6 > end or data[at + 4] != _BACKSLASH or data[at + 5] != _U:
        return _GIVEN_UP
    low = _hex4(data, at + 6, end)
    if low >> 10 != 0xDC00 >> 10:
        return _GIVEN_UP
    return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00)


@inner
def _decode(data: Bytes, backslashes: Uint64s, begin: int, end: int, out: Bytes, to: int) -> int:
    """Write a string without its escapes; gives the place behind it, or -1 for a bad escape.

    Up to 64 bytes behind that place may be overwritten.
    """
    while True:
        stop = next_bit(backslashes, begin, end)
        to = copy_span(data, begin, stop, out, to)
        if stop == end:
            return to
        if stop + 2 > end:
            return _GIVEN_UP
        if data[stop + 1] == _U:
            point = _code_point(data, stop + 2, end)
            begin = stop + (12 if point >= 0x10000 else 6)
        else:
            point = np.int64(_SHORT_ESCAPES[data[stop + 1]])
            begin = stop + 2
        if point < 0:
            return _GIVEN_UP
        to = encode(point, out, to)


@kernel
def walk_marks(
    data: Bytes, marks: Int32s, count: int, backslashes: Uint64s, fields: FieldRule, scratch: Bytes,
    records: Records,
) -> int:  # fmt: skip
    """Check the grammar and note where the wanted fields are; O(marks + bytes with backslashes).

    Args:
        data: uint8 (n,), as for `find_marks`.
        marks: int32, `count` of them from `find_marks`.
        count: Marks.
        backslashes: uint64, from there.
        fields: Which fields.
        scratch: uint8 (n + 64,), for work.
        records: Written.

    Returns:
        How many records there are, or -1 for what is left to a complete parser.
    """
    names, name_ends, allowed = fields.names, fields.name_ends, fields.allowed
    ends, accepted, places, kinds = records.ends, records.accepted, records.places, records.kinds
    # Before marks[i], `depth` brackets are open, whose kinds are the bits of `objects`, and `state`
    # says what may come; `present` has a bit for each field to read that the record has shown so
    # far, and `matching` for each one that the next value belongs to.
    line, record, depth, i = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    state, objects = np.int64(_LINE), np.int64(0)
    present, matching, all_fields = np.int64(0), np.int64(0), (1 << name_ends.size) - 1
    while i < count:
        begin = np.int64(marks[i])
        i += 1
        byte = np.int64(data[begin]) if begin < data.size else np.int64(_NEWLINE)
        end, kind = begin + 1, np.int64(0)
        wants_value = state == _VALUE or state == _FIRST_VALUE
        if byte == _NEWLINE:
            if state != _LINE and (state != _DONE or present != all_fields):
                return _GIVEN_UP
            accepted[line] = state == _DONE
            record += np.int64(state == _DONE)
            ends[line] = min(end, data.size)
            line += 1
            state, present = np.int64(_LINE), np.int64(0)
            continue
        if byte == _QUOTE:
            begin, end = end, np.int64(marks[i])
            i += 1
            escapes = next_bit(backslashes, begin, end) < end
            if state == _FIRST_KEY or state == _KEY:
                if depth == 1:
                    if escapes:
                        return _GIVEN_UP
                    matching = np.int64(_fields_of(data, begin, end, names, name_ends))
                state = np.int64(_AFTER_KEY)
                if not escapes:
                    continue
            elif not wants_value:
                return _GIVEN_UP
            else:
                kind, state = np.int64(STRING), np.int64(_NEXT)
            if escapes and (kind == 0 or not matching or depth > 1):
                if _decode(data, backslashes, begin, end, scratch, np.int64(0)) < 0:
                    return _GIVEN_UP
            if kind == 0:
                continue
        elif byte == _COLON:
            if state != _AFTER_KEY:
                return _GIVEN_UP
            state = np.int64(_VALUE)
            continue
        elif byte == _COMMA:
            if state != _NEXT:
                return _GIVEN_UP
            state = np.int64(_KEY if objects & 1 else _VALUE)
            continue
        elif byte == _OPEN_OBJECT or byte == _OPEN_ARRAY:
            is_object = byte == _OPEN_OBJECT
            begins = wants_value or (state == _LINE and is_object)
            if not begins or depth == _DEEPEST or (depth == 1 and matching):
                return _GIVEN_UP
            objects = objects << 1 | np.int64(is_object)
            depth += 1
            state = np.int64(_FIRST_KEY if is_object else _FIRST_VALUE)
            continue
        elif byte == _CLOSE_OBJECT or byte == _CLOSE_ARRAY:
            is_object = byte == _CLOSE_OBJECT
            first = _FIRST_KEY if is_object else _FIRST_VALUE
            if (state != _NEXT and state != first) or np.int64(is_object) != objects & 1:
                return _GIVEN_UP
            objects >>= 1
            depth -= 1
            state = np.int64(_NEXT if depth else _DONE)
            continue
        else:
            scalar = _scalar(data, begin)
            if not wants_value or scalar < 0 or not _ends_scalar(data, scalar >> 5):
                return _GIVEN_UP
            end, kind, state = scalar >> 5, scalar & 31, np.int64(_NEXT)
        if depth == 1 and matching:
            if matching & present:
                return _GIVEN_UP
            for field in range(name_ends.size):
                if matching >> field & 1:
                    if not allowed[field] & kind:
                        return _GIVEN_UP
                    places[field, record, 0], places[field, record, 1] = begin, end
                    kinds[field, record] = kind
            present |= matching
            matching = np.int64(0)
    return record


@kernel
def gather(
    data: Bytes, backslashes: Uint64s, places: Int32s, kinds: Bytes, records: int, out: Bytes,
    offsets: Offsets,
) -> bool:  # fmt: skip
    """Write one field of every record, one after the other, strings without their escapes.

    Args:
        data: uint8 (n,), as for `find_marks`.
        backslashes: uint64, from there.
        places: int32 (records or more, 2), of the field, from `walk_marks`.
        kinds: uint8 (records or more,), of the field.
        records: How many there are.
        out: uint8 (n + 64,), written.
        offsets: int64 (records + 1,), written: where in `out` each is.

    Returns:
        Whether all escapes are good.
    """
    to = np.int64(0)
    offsets[0] = 0
    for record in range(records):
        if kinds[record] != NULL:
            begin, end = np.int64(places[record, 0]), np.int64(places[record, 1])
            to = _decode(data, backslashes, begin, end, out, to)
        if to < 0:
            return False
        offsets[record + 1] = to
    return True
