"""Columns of CSV and TSV, found by a kernel where it vouches for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.documents.files.problems import BadRecordError
from neardup.documents.formats.fields import SLACK, Fields, is_utf8, named_columns, text_array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neardup.documents.batch import ReadOptions

__all__ = ["CsvFields"]


class CsvFields:
    """Finds the wanted columns of blocks that begin with a record.

    Args:
        options: What is read.
        delimiter: One ASCII character.
        width: Columns of the header.
        wanted: Where the options' fields are among them, in that order.
        parse: From the text of a field to its number, or None where there is none.
    """

    def __init__(
        self,
        options: ReadOptions,
        delimiter: str,
        width: int,
        wanted: Sequence[int],
        parse: Callable[[str], float | None],
    ) -> None:
        """Take the fields; nothing is compiled yet."""
        self._options = options
        self._delimiter = np.uint8(ord(delimiter))
        self._width = width
        self._wanted = np.array(wanted, np.int64)
        self._parse = parse
        self._tail = np.empty(64, np.uint8)
        self._marks = np.empty(0, np.int32)
        self._line_numbers = np.empty(0, np.int32)
        self._quotes = np.empty(0, np.uint64)

    def find(self, block: bytes) -> Fields | None:
        """Find the whole records of a block, at least one, or None; see `Found`."""
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
        rows, places = np.empty(lines, np.int64), np.empty((len(self._wanted), lines, 2), np.int32)
        marked = Marked(self._marks, self._quotes, self._line_numbers)
        found = Records(ends, accepted, rows, places)
        records = walk_marks(data, marked, count, self._width, self._wanted, found)
        if records < 0:
            return None
        columns = [self._column(data, places[i], records) for i in range(len(self._wanted))]
        if self._options.number is not None:
            try:
                numbers = [self._parse(field) for field in columns[-1].to_pylist()]
            except BadRecordError:
                return None
            columns[-1] = pa.array(numbers, pa.float64())
        named = named_columns(self._options, columns)
        used = int(self._line_numbers[lines - 1])
        return Fields(named, np.diff(ends, prepend=0), accepted, rows[:records], used)

    def _make_room(self, nbytes: int) -> None:
        if len(self._marks) <= nbytes:
            self._marks = np.empty(nbytes + 1, np.int32)
            self._line_numbers = np.empty(nbytes + 1, np.int32)
            self._quotes = np.empty(nbytes // 64 + 1, np.uint64)

    def _column(self, data: Any, places: Any, records: int) -> pa.LargeStringArray:
        from neardup.kernels.documents.csv_records import gather

        values, offsets = np.empty(len(data) + SLACK, np.uint8), np.empty(records + 1, np.int64)
        gather(data, self._quotes, places, records, values, offsets)
        return text_array(values, offsets)
