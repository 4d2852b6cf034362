"""Lines of CSV, one record after the other; a record that is too long is passed over."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Final

from neardup.documents.batch import too_long
from neardup.documents.files.compression import SHOWN_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.documents.files.compression import ByteReader, LongLine

__all__ = ["PART_BYTES", "CsvLines"]

PART_BYTES: Final = 1 << 19  # what is parsed at a time stays in the cache
_JOINED_LINES: Final = 1 << 16
"""A record of more lines, as behind a quote that never closes, holds them as one."""


class CsvLines:
    """Feeds physical lines to csv.reader and remembers those of the record in hand.

    Between two records a whole block can be taken instead.

    Args:
        reader: Of the file, from its start.
        longest: Bytes that a record may have, its last line end left out.
        passes: Whether there is a next record after one that is longer.
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
        """Whether a line that is too long for a record follows what is left of the block."""
        return self._long is not None

    def row(self) -> list[str]:
        """Parse the next record.

        Raises:
            StopIteration: At the end.
            csv.Error: If it is broken.
            BadRecordError: If it is too long; it is passed over if such records are.
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
        """Go on to the line end where the record's quotes are closed, or to the end of the file."""
        quotes = sum(line.count(b'"') for line in self.record[:-1]) + self._quotes(self.record[-1])
        self.record = [b"".join(self.record[:SHOWN_BYTES])[:SHOWN_BYTES]]
        while quotes % 2 and (line := self._next()):
            quotes += self._quotes(line)

    def _quotes(self, line: bytes) -> int:
        return line.count(b'"') if self._passed is None else self._passed.quotes

    def line(self) -> bytes:
        """Take the next line, which is no part of a record."""
        return self._next()

    def block(self, nbytes: int) -> bytes:
        """Whole lines that are yet to come, about `nbytes`; they stay to come."""
        if len(self._block) - self._at < nbytes and self._long is None:
            known = self.number + self._block.count(b"\n", self._at)
            self._fill(self._block[self._at :], nbytes, known)
        return self._block[self._at :]

    def skip(self, nbytes: int, lines: int) -> None:
        """Pass over so much of the block."""
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
    """The record in hand is too long."""
