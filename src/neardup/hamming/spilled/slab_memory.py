"""The memory of a spilled join: how the budget is divided, and the arrays of a slab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from neardup.hamming.spilled.row_file import RowFile
    from neardup.runtime.types import Codes, Numbers, RowNumbers

__all__ = ["Budget", "SlabBuffers"]

IDS_AT_ONCE: Final = 1 << 20
MOST_SLAB_ROWS: Final = (1 << 32) - 1
OWN_MEMORY: Final = 300 << 20
"""The bytes of the interpreter and its libraries."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The memory limits of a spilled join.

    Args:
        slab_rows: Rows of a slab.
        whole_rows: Rows, in addition to a slab, of a problem that is solved as a whole.
        pairs_at_once: Pairs that a thread holds.
        pair_bytes: Bytes for sorting the pairs in the end; an eighth holds pairs before.
    """

    slab_rows: int
    whole_rows: int
    pairs_at_once: int = 1 << 20
    pair_bytes: int = 1 << 28

    @classmethod
    def of(cls, memory: int, rows: RowFile, extra: int = 0) -> Budget:
        """The division of `memory` bytes; `extra`: a collector's bytes for each row of a slab."""
        width = rows.width
        free = memory - min(OWN_MEMORY, memory // 4)
        slab_rows = int(free * 0.68) // (8 * width + 4 + rows.number_bytes + extra)
        whole_rows = int(free * 0.2) // (96 + 40 * width + extra)
        at_once = max(1 << 16, free // 512)
        return cls(min(slab_rows, MOST_SLAB_ROWS), whole_rows, at_once, int(free * 0.4))


@dataclass(slots=True)
class SlabBuffers:
    """The arrays of a slab, reused for the next one."""

    codes: Codes
    ids: RowNumbers
    numbers: Numbers

    @classmethod
    def of(cls, rows: int, source: RowFile) -> SlabBuffers:
        """Buffers for a number of a file's rows."""
        small = source.number_bytes == 4
        numbers: Numbers = np.empty(rows, np.uint32) if small else np.empty(rows, np.uint64)
        buffers = cls(np.empty((rows, source.width), np.uint64), np.empty(rows, np.uint32), numbers)
        buffers.reset_ids(rows)
        return buffers

    def fits(self, rows: int, source: RowFile) -> bool:
        """Whether a number of a file's rows fits."""
        same = self.codes.shape[1] == source.width
        return len(self.ids) >= rows and same and self.numbers.itemsize == source.number_bytes

    def reset_ids(self, rows: int) -> None:
        """Number the first rows from 0; uniting in a slab reorders the ids."""
        for begin in range(0, rows, IDS_AT_ONCE):
            end = min(begin + IDS_AT_ONCE, rows)
            self.ids[begin:end] = np.arange(begin, end, dtype=np.uint32)
