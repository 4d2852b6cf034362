"""Fields of JSON lines, found by a kernel where it vouches for them."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.documents.files.line_ranges import read_lines
from neardup.documents.formats.field_spans import (
    SLACK,
    Fields,
    is_utf8,
    joined_fields,
    named_columns,
    room_for_marks,
    text_array,
)
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.documents.batch import ReadOptions

__all__ = ["JsonFields"]

_KEPT_BYTES: Final = 4 << 20
"""The largest block whose working memory, six times as much, is used again."""


class JsonFields:
    """Finds the wanted fields of blocks of whole lines, in any number of threads."""

    def __init__(self, options: ReadOptions) -> None:
        """Take the fields; nothing is compiled yet."""
        self._options = options
        self._idle: list[_Finder] = []

    def find(self, block: bytes, part_bytes: int) -> list[Fields | bytes]:
        """Find the fields of lines in memory; see `find_in_file`."""
        finder = self._finder()
        stretches = finder.find_by_parts(block, 0, len(block), part_bytes)
        if len(block) <= _KEPT_BYTES:
            self._idle.append(finder)
        return stretches

    def find_in_file(
        self, file: int, begin: int, end: int, part_bytes: int
    ) -> list[Fields | bytes] | None:
        """Find the fields of the lines that begin in a stretch of a file.

        Args:
            file: Descriptor.
            begin: The first byte of the stretch.
            end: The byte behind its last.
            part_bytes: About how many bytes need a complete parser together if a line does.

        Returns:
            In order, fields of lines, and lines for which a complete parser is needed; None if the
            last is longer than the stretch.

        Raises:
            OSError: If the read fails.
        """
        finder = self._finder()
        fields = finder.find_in_file(file, begin, end, part_bytes)
        self._idle.append(finder)
        return fields

    def _finder(self) -> _Finder:
        try:
            return self._idle.pop()
        except IndexError:
            return _Finder(self._options)


class _Finder:
    """Finds fields in one thread at a time, in memory that is used again for the next block."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        names = [name.encode("utf-8", "surrogatepass") for name in options.fields]
        self._names = np.frombuffer(b"".join(names), np.uint8)
        self._name_ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        self._tail = np.empty(64, np.uint8)
        self._marks = np.empty(0, np.int32)
        self._backslashes = np.empty(0, np.uint64)
        self._scratch = np.empty(0, np.uint8)
        self._buffer: mmap.mmap | None = None

    def find_in_file(
        self, file: int, begin: int, end: int, part_bytes: int
    ) -> list[Fields | bytes] | None:
        """See JsonFields.find_in_file."""
        if self._buffer is None or len(self._buffer) < 2 * (end - begin):
            self._buffer = mmap.mmap(-1, 2 * (end - begin))
        place = read_lines(file, begin, end, self._buffer)
        return None if place is None else self.find_by_parts(self._buffer, *place, part_bytes)

    def find_by_parts(
        self, lines: bytes | mmap.mmap, at: int, last: int, part_bytes: int
    ) -> list[Fields | bytes]:
        """See JsonFields.find_in_file, for lines that are in memory from `at` to `last`."""
        whole, stretches = memoryview(lines), list[Fields | bytes]()
        # All at once first: every call waits for Python's lock, and few files have such lines.
        if (fields := self.find(whole[at:last])) is not None:
            return [fields]
        waiting: list[Fields] = []
        while at < last:
            stop = lines.find(b"\n", min(at + part_bytes, last) - 1, last) + 1 or last
            fields = self.find(whole[at:stop])
            if fields is not None:
                waiting.append(fields)
            else:
                stretches += [*([joined_fields(waiting)] if waiting else []), bytes(whole[at:stop])]
                waiting = []
            at = stop
        return [*stretches, joined_fields(waiting)] if waiting else stretches

    def find(self, block: memoryview) -> Fields | None:
        """The fields of every record, or None where a complete parser is needed."""
        from neardup.kernels.documents.json_lines import FieldRule, Records, find_marks, walk_marks

        if len(block) >= 2**31 or not is_utf8(block):
            return None
        data = frozen(np.frombuffer(block, np.uint8))
        self._make_room(len(block))
        count, lines = find_marks(data, self._tail, self._marks, self._backslashes)
        if count < 0:
            return None
        fields = len(self._name_ends)
        ends, accepted = np.empty(lines, np.int64), np.empty(lines, np.bool_)
        places, kinds = np.empty((fields, lines, 2), np.int32), np.empty((fields, lines), np.uint8)
        rule = FieldRule(self._names, self._name_ends, self._allowed())
        records = walk_marks(
            data, self._marks, count, self._backslashes, rule, self._scratch,
            Records(ends, accepted, places, kinds),
        )  # fmt: skip
        if records < 0:
            return None
        columns: list[Any] = [
            self._column(data, places[i], kinds[i, :records]) for i in range(fields)
        ]
        if any(column is None for column in columns):
            return None
        order = self._options.order
        if order is not None and not order.dates:
            columns[-1] = columns[-1].cast(pa.float64())
        elif order is not None:
            columns[-1], bad = order.of_column(columns[-1])
            if bad.any():
                return None
        named = named_columns(self._options, columns)
        return Fields(
            named, np.diff(ends, prepend=0), accepted, np.flatnonzero(accepted), int(lines)
        )

    def _make_room(self, nbytes: int) -> None:
        if len(self._scratch) < nbytes + SLACK:
            self._marks = np.empty(room_for_marks(nbytes), np.int32)
            self._backslashes = np.empty(nbytes // 64 + 1, np.uint64)
            self._scratch = np.empty(nbytes + SLACK, np.uint8)

    def _allowed(self) -> npt.NDArray[np.int64]:
        """The kinds of value that each field may have."""
        from neardup.kernels.documents.json_lines import BOOLEAN, FRACTION, INTEGER, NULL, STRING

        options = self._options
        kinds = [STRING] * len(options.text)
        kinds += [STRING | INTEGER] * (options.id is not None)
        kinds += [STRING | INTEGER | BOOLEAN | NULL] * (options.within is not None)
        if options.number is not None:
            kinds.append(STRING | NULL if options.dates else INTEGER | FRACTION | NULL)
        return np.array(kinds, np.int64)

    def _column(self, data: Any, places: Any, kinds: Any) -> pa.LargeStringArray | None:
        """One field of every record; None for a bad escape."""
        from neardup.kernels.documents.json_lines import NULL, gather

        values, offsets = np.empty(len(data) + SLACK, np.uint8), np.empty(len(kinds) + 1, np.int64)
        if not gather(data, self._backslashes, places, kinds, len(kinds), values, offsets):
            return None
        return text_array(values, offsets, kinds != NULL)
