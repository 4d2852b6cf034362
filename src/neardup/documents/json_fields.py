"""Fields of JSON lines by a kernel, which runs outside Python's lock, where it vouches for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.batch import Columns

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.documents.batch import ReadOptions

    FoundFields = tuple[Columns, npt.NDArray[np.int64], npt.NDArray[np.bool_]]
    """The accepted records of a block; the length of each line, and whether it is one of them."""

__all__ = ["FieldFinder"]

_JOINT = pa.scalar("\n", pa.large_string())
_SLACK = 64  # bytes that the kernels may write behind what they mean


class FieldFinder:
    """Finds the wanted fields of whole blocks of lines.

    A block is found only if a complete parser would take every line and give the same, so whoever
    is refused one (None) has lost nothing but the time.
    """

    def __init__(self, options: ReadOptions) -> None:
        """Take the fields; nothing is compiled yet."""
        self._options = options
        names = [name.encode("utf-8", "surrogatepass") for name in options.fields]
        self._names = np.frombuffer(b"".join(names), np.uint8)
        self._name_ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        self._tail = np.empty(64, np.uint8)
        self._marks = np.empty(0, np.int32)
        self._backslashes = np.empty(0, np.uint64)
        self._scratch = np.empty(0, np.uint8)

    def find(self, block: bytes) -> FoundFields | None:
        """Find the fields of every record, or None where a complete parser is needed."""
        from neardup.kernels.json_lines import find_marks, walk_marks

        if len(block) >= 2**31 or not _is_utf8(block):
            return None
        data = np.frombuffer(block, np.uint8)
        self._make_room(len(block))
        count, lines = find_marks(data, self._tail, self._marks, self._backslashes)
        if count < 0:
            return None
        fields = len(self._name_ends)
        ends, accepted = np.empty(lines, np.int64), np.empty(lines, np.bool_)
        places, kinds = np.empty((fields, lines, 2), np.int32), np.empty((fields, lines), np.uint8)
        records = walk_marks(
            data, self._marks, count, self._backslashes, self._names, self._name_ends,
            self._allowed(), self._scratch, ends, accepted, places, kinds,
        )  # fmt: skip
        if records < 0:
            return None
        columns = [self._column(data, places[i], kinds[i], records) for i in range(fields)]
        if any(column is None for column in columns):
            return None
        return self._named(columns), np.diff(ends, prepend=0), accepted

    def _make_room(self, nbytes: int) -> None:
        if len(self._marks) <= nbytes:
            self._marks = np.empty(nbytes + 1, np.int32)
            self._backslashes = np.empty(nbytes // 64 + 1, np.uint64)
            self._scratch = np.empty(nbytes + _SLACK, np.uint8)

    def _allowed(self) -> npt.NDArray[np.int64]:
        """The kinds of value that each field may have."""
        from neardup.kernels.json_lines import BOOLEAN, FRACTION, INTEGER, NULL, STRING

        options = self._options
        kinds = [STRING] * len(options.text)
        kinds += [STRING | INTEGER] * (options.id is not None)
        kinds += [STRING | INTEGER | BOOLEAN | NULL] * (options.within is not None)
        kinds += [INTEGER | FRACTION | NULL] * (options.number is not None)
        return np.array(kinds, np.int64)

    def _column(self, data: Any, places: Any, kinds: Any, records: int) -> Any:
        """One field as a LargeStringArray; None for a bad escape."""
        from neardup.kernels.json_lines import NULL, gather

        values, offsets = np.empty(len(data) + _SLACK, np.uint8), np.empty(records + 1, np.int64)
        if not gather(data, self._backslashes, places, kinds, records, values, offsets):
            return None
        present = kinds[:records] != NULL
        bitmap = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
        buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(values)]
        return pa.Array.from_buffers(pa.large_string(), records, buffers)

    def _named(self, columns: list[Any]) -> Columns:
        options, rest = self._options, iter(columns)
        parts = [next(rest) for _ in options.text]
        texts = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _JOINT)
        ids = None if options.id is None else next(rest)
        within = None if options.within is None else next(rest)
        numbers = None if options.number is None else next(rest).cast(pa.float64())
        return Columns(texts, ids, within, numbers)


def _is_utf8(block: bytes) -> bool:
    """Whether the bytes are valid UTF-8; Arrow looks outside Python's lock."""
    offsets = pa.py_buffer(np.array([0, len(block)], np.int64))
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(block)])
    try:
        whole.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True
