"""Rows partitioned by the first bits of one column; what memory does not hold goes to disk.

Parts come in ascending order of these bits, and the rows of a part in the order in which they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.runtime.storage.temporary import TemporaryRows, read_exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["RadixSpool"]

_STEP_BITS: Final = 6
_BUCKETS: Final = 1 << _STEP_BITS
_MOST_STEPS: Final = 4
"""The most steps of a partition: each opens 64 files at once."""
_WORD: Final = 8


class RadixSpool:
    """A spool of uint64 rows; its parts fit `memory` unless all rows of one have the same key.

    Args:
        width: Columns.
        column: The one whose bits tell the parts.
        memory: Bytes that may be held; reading a part takes as much again.
        tmp: Folder for unlinked temporary files; the system's own if None.
        bits: No value of the column has more.

    Attributes:
        spilled: Bytes written to disk.

    Example:
        >>> spool = RadixSpool(1, 0, memory=8, bits=6)
        >>> spool.append(np.array([[9], [40], [9]], np.uint64))
        >>> [[row.tolist() for row in part()] for part in spool.parts()]
        [[[[9]], [[9]]], [[[40]]]]
    """

    def __init__(
        self, width: int, column: int, memory: int, tmp: str | None = None, bits: int = 64
    ) -> None:
        """Start empty, in memory."""
        self._width, self._column, self._tmp = width, column, tmp
        self._memory = memory
        self._bits, self._steps = bits, 1
        self._buffer: list[Any] = []
        self._buffered_bytes = 0
        self._files: list[TemporaryRows] = []
        self.spilled = 0

    def append(self, rows: Any) -> None:
        """Append uint64 rows (n, width); FileError if the disk is full."""
        self._buffer.append(rows)
        self._buffered_bytes += rows.nbytes
        if self._buffered_bytes > self._memory:
            self._spill()

    def parts(self) -> Iterator[Callable[[], Iterator[Any]]]:
        """Each part as a function that reads its rows in pieces, any number of times."""
        if not self._files:
            blocks = [np.concatenate(self._buffer)] if self._buffered_bytes else []
            self._buffer = []
            if blocks:
                yield lambda: iter(blocks)
            return
        self._spill()
        for file in self._files:
            if file.nbytes > self._memory and self._bits > _STEP_BITS and self._steps < _MOST_STEPS:
                yield from self._split(file)
            elif file.nbytes:
                yield lambda file=file: self._read(file)  # type: ignore[misc]
            file.close()

    def close(self) -> None:
        """Free the disk space."""
        for file in self._files:
            file.close()

    def _split(self, file: TemporaryRows) -> Iterator[Callable[[], Iterator[Any]]]:
        finer = RadixSpool(
            self._width, self._column, self._memory, self._tmp, self._bits - _STEP_BITS
        )
        finer._steps = self._steps + 1
        try:
            for rows in self._read(file):
                finer.append(rows)
            yield from finer.parts()
            self.spilled += finer.spilled
        finally:
            finer.close()

    def _spill(self) -> None:
        if not self._files:
            self._files = [TemporaryRows(self._tmp) for _ in range(_BUCKETS)]
        if not self._buffered_bytes:
            return
        rows = np.concatenate(self._buffer)
        self._buffer, self._buffered_bytes = [], 0
        buckets = rows[:, self._column] >> np.uint64(max(self._bits - _STEP_BITS, 0))
        buckets = (buckets & np.uint64(_BUCKETS - 1)).astype(np.uint8)
        order = np.argsort(buckets, kind="stable")  # rows of a part stay in the order they came in
        edges = np.concatenate([[0], np.cumsum(np.bincount(buckets, minlength=_BUCKETS))])
        for way, file in enumerate(self._files):
            file.append(rows[order[edges[way] : edges[way + 1]]])
        self.spilled += rows.nbytes

    def _read(self, file: TemporaryRows) -> Iterator[Any]:
        row = _WORD * self._width
        step = max(1, self._memory // row) * row
        for at in range(0, file.nbytes, step):
            rows = np.empty((min(step, file.nbytes - at) // row, self._width), np.uint64)
            read_exactly(file.fd, rows, at)
            yield rows
