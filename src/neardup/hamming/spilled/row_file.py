"""Fingerprints that exceed memory: rows of words in a file, read by chunks in threads.

Temporary files are unlinked when they are made, so nothing is left behind, however a run ends.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.runtime.storage.temporary import read_exactly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.runtime.types import Bitmap, Codes, Rows

__all__ = ["CHUNK_BYTES", "RowFile", "clear_bits"]

CHUNK_BYTES: Final = 1 << 20
AHEAD_BYTES: Final = 1 << 23
SAMPLE_RUNS: Final = 1024
EVERY: Final = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class RowFile:
    """A collection of fingerprints on disk.

    Args:
        fd: Descriptor of the file; words lie row by row, 64-bit, little-endian.
        count: Rows.
        width: Words of a row.
        offset: Byte of the first row.
        numbers_fd: Descriptor of a file with the row numbers (uint64); None: base + 0, 1, 2...
        base: Number of the first row.
        numbers_offset: Byte of the first number.
        present: uint8 (ceil(count / 8)): bit 0 where a row takes no part; empty: all do.
    """

    fd: int
    count: int
    width: int
    offset: int = 0
    numbers_fd: int | None = None
    base: int = 0
    numbers_offset: int = 0
    present: Bitmap = field(default_factory=lambda: EVERY)

    @property
    def nbytes(self) -> int:
        """The bytes that one pass reads."""
        return self.count * (8 * self.width + (0 if self.numbers_fd is None else 8))

    @property
    def number_bytes(self) -> int:
        """The bytes of a row number: 4 or 8."""
        return 4 if self.numbers_fd is None and self.base + self.count <= 1 << 32 else 8

    def chunk_rows(self) -> int:
        """The number of rows read at a time: a multiple of 8."""
        return max(8, CHUNK_BYTES // (8 * self.width) & ~7)

    def parts(self, count: int) -> list[tuple[int, int]]:
        """Up to `count` ranges of rows of about equal size; borders are multiples of 8."""
        # Two parts never share a byte of `present`, which a chunk reads from a whole byte on.
        step = max(8, -(-self.count // count) + 7 & ~7)
        starts = range(0, self.count, step)
        return [(start, min(start + step, self.count)) for start in starts]

    def chunks(self, first: int, last: int) -> Iterator[Any]:
        """The rows first..last-1 as kernel Chunks, each valid until the next one is read."""
        from neardup.kernels.hamming.slabs import Chunk

        step = self.chunk_rows()
        room = np.empty((min(step, max(last - first, 1)), self.width), np.uint64)
        named = self.numbers_fd is not None
        names = np.empty(len(room) if named else 0, np.uint64)
        ahead = max(1, AHEAD_BYTES // (8 * self.width * step)) * step
        for at in range(first, last, step):
            if (at - first) % ahead == 0:
                self._announce(at + ahead, min(at + 2 * ahead, last))
            size = min(step, last - at)
            self.read_codes(at, room[:size])
            if named:
                self.read_numbers(at, names[:size])
            present = self.present[at >> 3 : at + size + 7 >> 3] if len(self.present) else EVERY
            codes = room[:size].view()
            codes.flags.writeable = False
            yield Chunk(codes, names[: size if named else 0], present, self.base + at)

    def read_codes(self, first: int, into: Codes) -> None:
        """Read rows from `first` on into a uint64 (rows, W) array."""
        read_exactly(self.fd, into, self.offset + 8 * self.width * first)

    def read_numbers(self, first: int, into: Codes) -> None:
        """Read or generate the numbers of rows from `first` on into a uint64 array."""
        if self.numbers_fd is None:
            into[:] = np.arange(self.base + first, self.base + first + len(into), dtype=np.uint64)
        else:
            read_exactly(self.numbers_fd, into, self.numbers_offset + 8 * first)

    def sample(self, rows: int) -> Codes:
        """A sample of about a number of present rows, from all over the file: uint64 (s, W)."""
        runs = 1 if self.count <= rows else min(SAMPLE_RUNS, rows)
        size = min(self.count, rows // runs)
        starts = np.arange(runs) * (self.count // runs)
        blocks = []
        for start in starts.tolist():
            codes = np.empty((min(size, self.count - start), self.width), np.uint64)
            self.read_codes(start, codes)
            if len(self.present):
                bits = self.present[start >> 3 : start + len(codes) + 7 >> 3]
                flags = np.unpackbits(bits, bitorder="little")[start & 7 :][: len(codes)]
                codes = codes[flags.astype(bool)]
            blocks.append(codes)
        return np.concatenate(blocks)

    def without(self, present: Bitmap) -> RowFile:
        """A copy of the rows with another bitmap of rows that take part."""
        return replace(self, present=present)

    def all_present(self) -> Bitmap:
        """A writable bitmap of the rows that take part: uint8."""
        if len(self.present):
            return self.present.copy()
        return np.full(self.count + 7 >> 3, 0xFF, np.uint8)

    def _announce(self, first: int, last: int) -> None:
        if hasattr(os, "posix_fadvise") and last > first:
            begin, size = self.offset + 8 * self.width * first, 8 * self.width * (last - first)
            os.posix_fadvise(self.fd, begin, size, os.POSIX_FADV_WILLNEED)


def clear_bits(present: Bitmap, rows: Rows) -> None:
    """Clear bits of `present` (uint8) in place, so that distinct rows take no part."""
    np.bitwise_and.at(present, rows >> 3, ~(np.uint8(1) << (rows & 7).astype(np.uint8)))
