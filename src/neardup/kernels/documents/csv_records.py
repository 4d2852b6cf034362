"""Find columns of CSV records outside Python's lock, 64 bytes at a time.

A quote opens or closes a quoted stretch, and a doubled one does both, so the marks are the
delimiters and line ends that have an even number of quotes before them (RFC 4180; found as in
Langdale and Lemire, Parsing gigabytes of JSON per second, VLDB Journal 2019). That is right for
fields that are quoted as a whole or not at all, with quotes inside doubled; every field is checked
for it, and any other form is left to a complete parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.bits import equal_mask64, popcount, trailing_zeros
from neardup.kernels.documents.byte_spans import (
    between_quotes,
    carried,
    copy_span,
    load_tail,
    next_bit,
)
from neardup.kernels.jit import inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Int32s, Int64s, Offsets, Uint64s

_GIVEN_UP: Final = -1
_QUOTE: Final = np.uint8(ord('"'))
_NEWLINE: Final = np.uint8(ord("\n"))
_RETURN: Final = np.uint8(ord("\r"))
_ONE: Final = np.uint64(1)


class Marked(NamedTuple):
    """Arrays that `find_marks` has written."""

    marks: Any  # int32
    quotes: Any  # uint64
    line_numbers: Any  # int32 (m,)


class Records(NamedTuple):
    """Arrays for the results of `walk_marks` in m lines, for F fields."""

    ends: Any  # int64 (m,): the byte behind each record or blank line
    accepted: Any  # bool (m,): False for blank lines
    rows: Any  # int64 (m,): for each record, the line where it begins, from 0
    places: Any  # int32 (F, m, 2): first byte of each record's field, and the one behind


@kernel
def find_marks(
    data: Bytes, tail: Bytes, delimiter: np.uint8, marks: Int32s, quotes: Uint64s,
    line_numbers: Int32s,
) -> Any:  # fmt: skip
    """Find the delimiters and line ends outside quotes; O(bytes).

    Args:
        data: uint8 (n,), from the start of a record on; may be read-only.
        tail: uint8 (64,), for work.
        delimiter: uint8.
        marks: int32 (up to n + 1,), written: their positions, ascending, and n if the last record
            has no line end.
        quotes: uint64 (n // 64 + 1,), written: a bit for each byte.
        line_numbers: int32, as long, written: for each record's end how many lines end up to it.

    Returns:
        How many marks and records there are up to the last whole record; (-1, 0) where a carriage
        return outside quotes ends no line, or there are more marks than room for them.
    """
    n = data.size
    count, records, position, lines = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    whole = np.int64(0)
    inside = np.uint64(0)
    while position < n:
        at, source = position, data
        if position + 64 > n:
            load_tail(data, position, tail)
            at, source = np.int64(0), tail
        places = equal_mask64(source, at, _QUOTE)
        quotes[position >> 6] = places
        quoted = between_quotes(places, inside)
        inside, outside = carried(quoted), ~quoted
        ends = equal_mask64(source, at, _NEWLINE)
        returns = equal_mask64(source, at, _RETURN) & outside
        while returns:
            behind = position + trailing_zeros(returns) + 1
            if behind >= n or data[behind] != _NEWLINE:
                return np.int64(_GIVEN_UP), np.int64(0)
            returns &= returns - _ONE
        places = (ends | equal_mask64(source, at, delimiter)) & outside
        if position + 64 > n:  # what fills the tail may be the delimiter
            places &= (_ONE << np.uint64(n - position)) - _ONE
        if count + popcount(places) >= marks.size:
            return np.int64(_GIVEN_UP), np.int64(0)
        while places:
            bit = places & (~places + _ONE)
            marks[count] = position + trailing_zeros(places)
            count += 1
            if ends & bit:
                line_numbers[records] = lines + popcount(ends & (bit | (bit - _ONE)))
                records += 1
                whole = count
            places &= places - _ONE
        lines += popcount(ends)
        position += 64
    if n and not inside and data[n - 1] != _NEWLINE:
        marks[count] = n
        line_numbers[records] = lines + 1
        return count + 1, records + 1
    return whole, records


@inner
def _is_whole(data: Bytes, quotes: Uint64s, begin: int, end: int) -> bool:
    """Whether a field is quoted from its first to its last byte, or has no quote."""
    quote = next_bit(quotes, begin, end)
    if quote == end:
        return True
    if quote != begin or end - begin < 2 or data[end - 1] != _QUOTE:
        return False
    quote = next_bit(quotes, begin + 1, end - 1)
    while quote < end - 1:
        if quote + 2 > end - 1 or data[quote + 1] != _QUOTE:
            return False
        quote = next_bit(quotes, quote + 2, end - 1)
    return True


@kernel
def walk_marks(
    data: Bytes, marked: Marked, count: int, width: int, columns: Int64s, records: Records
) -> int:
    """Check every field and note where the wanted ones are; O(marks + bytes / 64).

    Args:
        data: uint8 (n,), as for `find_marks`.
        marked: Marks, from `find_marks`.
        count: Marks.
        width: Fields of a record.
        columns: int64 (F,), which fields.
        records: Written.

    Returns:
        How many records there are, or -1 for what is left to a complete parser.
    """
    marks, quotes, line_numbers = marked.marks, marked.quotes, marked.line_numbers
    ends, accepted, rows, places = records.ends, records.accepted, records.rows, records.places
    n = data.size
    # Before each mark: `line` lines and `record` records are done, and `field` fields of the next
    # record; the next field begins with byte `begin`.
    line, record, field, begin = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(count):
        mark = np.int64(marks[i])
        is_last = mark == n or data[mark] == _NEWLINE
        end = mark
        if is_last and mark < n and end > begin and data[end - 1] == _RETURN:
            end -= 1
        is_blank = is_last and field == 0 and end == begin
        if not is_blank and not _is_whole(data, quotes, begin, end):
            return _GIVEN_UP
        for j in range(columns.size):
            if columns[j] == field:
                places[j, record, 0], places[j, record, 1] = begin, end
        field += 1
        begin = mark + 1
        if is_last:
            if not is_blank and field != width:
                return _GIVEN_UP
            ends[line] = min(begin, n)
            accepted[line] = not is_blank
            rows[record] = line_numbers[line - 1] if line else 0
            record += np.int64(not is_blank)
            line += 1
            field = np.int64(0)
    return record


@kernel
def gather(
    data: Bytes, quotes: Uint64s, places: Int32s, records: int, out: Bytes, offsets: Offsets
) -> None:
    """Write one field of every record, one after the other, without the quotes of CSV.

    Args:
        data: uint8 (n,), as for `find_marks`.
        quotes: uint64, from there.
        places: int32 (records or more, 2), of the field, from `walk_marks`.
        records: How many there are.
        out: uint8 (n + 64,), written.
        offsets: int64 (records + 1,), written: where in `out` each is.
    """
    to = np.int64(0)
    offsets[0] = 0
    for record in range(records):
        begin, end = np.int64(places[record, 0]), np.int64(places[record, 1])
        if begin < end and data[begin] == _QUOTE:
            begin, end = begin + 1, end - 1
        while begin < end:
            quote = next_bit(quotes, begin, end)
            stop = min(quote + 1, end)
            to = copy_span(data, begin, stop, out, to)
            begin = quote + 2
        offsets[record + 1] = to
