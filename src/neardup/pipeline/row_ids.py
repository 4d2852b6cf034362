"""The ids of the rows that occur in pairs, kept on disk: a billion ids would not fit in memory."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.runtime.storage.temporary import TemporaryRows

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["RowIds"]


class RowIds:
    """Ids of some rows, looked up by the rows' numbers.

    Args:
        rows: How many rows there are.
        tmp: Folder for unlinked temporary files; the system's own if None.

    Example:
        >>> with RowIds(3) as ids:
        ...     ids.want(np.array([2]))
        ...     ids.fill([pa.array(["a", "b", "c"], pa.large_string())])
        ...     ids.take(np.array([2])).to_pylist()
        ['c']
    """

    def __init__(self, rows: int, tmp: str | None = None) -> None:
        """Want none; takes rows / 4 bytes of memory."""
        self._bits = np.zeros(-(-rows // 64) * 8, np.uint8)
        self._before = np.empty(0, np.int64)
        self._ends, self._text = TemporaryRows(tmp), TemporaryRows(tmp)
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Bytes on disk."""
        return self._ends.nbytes + self._text.nbytes

    def want(self, numbers: Any) -> None:
        """Ask for the ids of rows, before `fill`."""
        places = (numbers >> 3).astype(np.int64)
        np.bitwise_or.at(self._bits, places, np.uint8(1) << (numbers & 7).astype(np.uint8))

    def fill(self, batches: Iterable[Any]) -> None:
        """Keep the wanted ids of all rows' ids (Arrow large strings, in order)."""
        first, total = 0, 0
        self._ends.append(np.zeros(1, np.int64))
        for batch in batches:
            last = first + len(batch)
            flags = np.unpackbits(self._bits[first >> 3 : last + 7 >> 3], bitorder="little")
            wanted = np.flatnonzero(flags[first & 7 :][: len(batch)])
            first = last
            if not len(wanted):
                continue
            ids = batch.take(pa.array(wanted)).fill_null("")
            self._ends.append(total + np.cumsum(pc.binary_length(ids).to_numpy()))
            data = b"".join(ids.cast(pa.large_binary()).to_pylist())
            self._text.append(np.frombuffer(data, np.uint8))
            total, self._count = total + len(data), self._count + len(ids)
        held = np.bitwise_count(self._bits.view(np.uint64)).astype(np.int64)
        self._before = np.cumsum(held) - held

    def take(self, numbers: Any) -> pa.Array:
        """The ids of wanted rows."""
        words = self._bits.view(np.uint64)[numbers >> 6]
        below = (np.uint64(1) << (numbers & 63).astype(np.uint64)) - np.uint64(1)
        places = self._before[numbers >> 6] + np.bitwise_count(words & below)
        buffers = [pa.py_buffer(_mapped(file)) for file in (self._ends, self._text)]
        held = pa.LargeStringArray.from_buffers(self._count, *buffers)
        return held.take(pa.array(places))

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the disk space back."""
        self._ends.close()
        self._text.close()


def _mapped(file: TemporaryRows) -> Any:
    return mmap.mmap(file.fd, file.nbytes, access=mmap.ACCESS_READ) if file.nbytes else b""
