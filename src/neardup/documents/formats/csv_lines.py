"""Lines of CSV: the layout of a file, and the bounds of its records and fields."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.documents.batch import too_long
from neardup.documents.files.compression import SHOWN_BYTES
from neardup.documents.files.problems import BadRecordError
from neardup.documents.formats.field_spans import (
    PART_BYTES,
    SLACK,
    Fields,
    is_utf8,
    named_columns,
    room_for_marks,
    text_array,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.documents.batch import ReadOptions
    from neardup.documents.files.compression import ByteReader, LongLine

__all__ = [
    "BLOCK_BYTES",
    "CsvFields",
    "CsvLines",
    "separator_line",
    "sniffed_delimiter",
]

_CANDIDATES: Final = ",;\t|"
_LINES: Final = 6
_SEPARATOR: Final = re.compile(r"\ufeff?\"?sep=(.)\"?\r?\n", re.ASCII)


def separator_line(text: str) -> str | None:
    """The delimiter that a first line "sep=;" names, as spreadsheets write it; None without one."""
    match = _SEPARATOR.match(text)
    return match[1] if match is not None and match[1].isascii() else None


def sniffed_delimiter(text: str) -> str:
    r"""The delimiter, judged by the first lines of a file, which end with a whole line.

    The result is a comma, unless the header has none, or another character divides it into more
    fields and the following records into the same number.

    Example:
        >>> sniffed_delimiter("id;title, long;text\n1;a, b;c\n")
        ';'
    """
    best, most = ",", 1
    for mark in _CANDIDATES:
        widths = _widths(text, mark)
        if not widths or widths[0] <= most:
            continue
        if mark == "," or most == 1 or all(width == widths[0] for width in widths[1:]):
            best, most = mark, widths[0]
    return best


def _widths(text: str, mark: str) -> list[int]:
    """Fields of the first records; a record that is cut or broken ends the list."""
    widths: list[int] = []
    rows = csv.reader(text.splitlines(keepends=True), delimiter=mark, strict=True)
    try:
        for row in rows:
            widths += [len(row)] if row else []
            if len(widths) == _LINES:
                break
    except csv.Error:
        pass
    return widths


class CsvFields:
    """Finds the needed columns of blocks that begin with a record.

    Args:
        options: For the fields.
        delimiter: One ASCII character.
        width: Columns of the header.
        columns: Where the options' fields are among them, in that order.
    """

    def __init__(
        self,
        options: ReadOptions,
        delimiter: str,
        width: int,
        columns: Sequence[int],
    ) -> None:
        """Take the fields; nothing is compiled yet."""
        self._options = options
        self._delimiter = np.uint8(ord(delimiter))
        self._width = width
        self._columns = np.array(columns, np.int64)
        self._tail = np.empty(64, np.uint8)
        self._marks = np.empty(0, np.int32)
        self._line_numbers = np.empty(0, np.int32)
        self._quotes = np.empty(0, np.uint64)

    def find(self, block: bytes) -> Fields | None:
        """The whole records of a block, at least one, or None; see `Fields`."""
        from neardup.kernels.documents.csv_records import Marked, Records, find_marks, walk_marks

        if len(block) >= 2**31 or not is_utf8(block):
            return None
        data = np.frombuffer(block, np.uint8)
        self._make_room(len(block))
        count, lines = find_marks(
            data, self._tail, self._delimiter, self._marks, self._quotes, self._line_numbers
        )
        if count <= 0:
            return None
        ends, accepted = np.empty(lines, np.int64), np.empty(lines, np.bool_)
        rows, places = np.empty(lines, np.int64), np.empty((len(self._columns), lines, 2), np.int32)
        marked = Marked(self._marks, self._quotes, self._line_numbers)
        located = Records(ends, accepted, rows, places)
        records = walk_marks(data, marked, count, self._width, self._columns, located)
        if records < 0:
            return None
        columns = [self._column(data, places[i], records) for i in range(len(self._columns))]
        order = self._options.order
        if order is not None:
            try:
                numbers = [order.of_text(field) for field in columns[-1].to_pylist()]
            except BadRecordError:
                return None
            columns[-1] = pa.array(numbers, pa.float64())
        named = named_columns(self._options, columns)
        used = int(self._line_numbers[lines - 1])
        return Fields(named, np.diff(ends, prepend=0), accepted, rows[:records], used)

    def _make_room(self, nbytes: int) -> None:
        room = room_for_marks(nbytes)
        if len(self._marks) < room:
            self._marks, self._line_numbers = np.empty(room, np.int32), np.empty(room, np.int32)
        if len(self._quotes) <= nbytes // 64:
            self._quotes = np.empty(nbytes // 64 + 1, np.uint64)

    def _column(self, data: Any, places: Any, records: int) -> pa.LargeStringArray:
        from neardup.kernels.documents.csv_records import gather

        values, offsets = np.empty(len(data) + SLACK, np.uint8), np.empty(records + 1, np.int64)
        gather(data, self._quotes, places, records, values, offsets)
        return text_array(values, offsets)


BLOCK_BYTES: Final = 4 << 20
"""What the kernel takes at a time, as every call waits for Python's lock."""
_JOINED_LINES: Final = 1 << 16
"""Lines above which a record, as after an open quote, stores them joined."""


class CsvLines:
    """Feeds physical lines to csv.reader and remembers those of the current record.

    Between two records a whole block can be taken instead.

    Args:
        reader: Of the file, from its start.
        longest: The most bytes of a record without its last line end.
        passes: Whether a longer record is skipped.
    """

    delimiter = ","

    def __init__(self, reader: ByteReader, longest: int, *, passes: bool) -> None:
        """Read nothing yet."""
        self._reader = reader
        self._passes = passes
        self._longest = longest
        self._rows: Iterator[list[str]] | None = None
        self._block = b""
        self._at = 0
        self._size = 0
        self._long: LongLine | None = None  # follows the block
        self._passed: LongLine | None = None  # the last line, if it was one
        self.offset = 0
        self.number = 0
        self.record: list[bytes] = []
        self.undecodable = False

    @property
    def is_long(self) -> bool:
        """Whether a line too long for a record follows the rest of the block."""
        return self._long is not None

    def row(self) -> list[str]:
        """Parse the next record.

        Raises:
            StopIteration: At the end.
            csv.Error: If it is broken.
            BadRecordError: If it is too long; then it is skipped, if such records are.
        """
        self.record, self._size, self.undecodable = [], 0, False
        if self._rows is None:
            self._rows = csv.reader(self._feed(), delimiter=self.delimiter, strict=True)
        try:
            return next(self._rows)
        except _LongRecordError:
            self._rows = None
            if self._passes:
                self._pass_over()
            raise too_long(self._size if self._passes else None, self._longest) from None

    def _feed(self) -> Iterator[str]:
        while line := self._next():
            if len(self.record) == _JOINED_LINES:
                self.record = [b"".join(self.record)]
            self.record.append(line)
            if self._passed is not None or self._size > self._longest + 1:
                raise _LongRecordError
            try:
                text = line.decode()
            except UnicodeDecodeError:
                self.undecodable = True
                text = line.decode(errors="surrogateescape")
            yield text.removeprefix("\ufeff") if self.number == 1 else text

    def _pass_over(self) -> None:
        """Skip to the line end where the record's quotes are closed, or to the end of the file."""
        quotes = sum(line.count(b'"') for line in self.record[:-1]) + self._quotes(self.record[-1])
        self.record = [b"".join(self.record[:SHOWN_BYTES])[:SHOWN_BYTES]]
        while quotes % 2 and (line := self._next()):
            quotes += self._quotes(line)

    def _quotes(self, line: bytes) -> int:
        return line.count(b'"') if self._passed is None else self._passed.quotes

    def line(self) -> bytes:
        """Take the next line, which is not a part of a record."""
        return self._next()

    def block(self, nbytes: int) -> bytes:
        """The next whole lines, about `nbytes`, without consuming them."""
        if len(self._block) - self._at < nbytes and self._long is None:
            known = self.number + self._block.count(b"\n", self._at)
            self._fill(self._block[self._at :], nbytes, known)
        return self._block[self._at :]

    def skip(self, nbytes: int, lines: int) -> None:
        """Consume bytes and lines of the block."""
        self.number += lines
        self.offset += nbytes
        self._at += nbytes

    def _next(self) -> bytes:
        """Take the next line; of one that is too long its beginning."""
        if self._at == len(self._block) and self._long is None:
            self._fill(b"", PART_BYTES, self.number)
        self._passed = None
        if self._at == len(self._block):
            self._passed, self._long = self._long, None
        if self._passed is not None:
            line, nbytes = self._passed.begin, self._passed.nbytes
        else:
            end = self._block.find(b"\n", self._at) + 1 or len(self._block)
            line, nbytes = self._block[self._at : end], end - self._at
            self._at = end
        self.number += bool(nbytes)
        self.offset += nbytes
        self._size += nbytes
        return line

    def _fill(self, rest: bytes, nbytes: int, known: int) -> None:
        self._block = rest + self._reader.block(nbytes, known, self._longest, passes=self._passes)
        self._at, self._long = 0, self._reader.long_line


class _LongRecordError(Exception):
    """The current record is too long."""
