"""What a writer has added and removed since its last commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.index.durable.records import Record
from neardup.index.ids import ID_KINDS

if TYPE_CHECKING:
    from neardup.index.clock import Clock

__all__ = ["Pending"]


class Pending:
    """Rows with numbers from `first` on, removed numbers, and contents by number.

    Args:
        first: The number of the next row.
    """

    def __init__(self, first: int) -> None:
        """Nothing is pending."""
        self.first = first
        self.contents: dict[int, bytes | None] = {}
        self._parts: list[tuple[Any, Any]] = []
        self._ids: list[Any] = []
        self._codes: list[Any] = []
        self._removed: list[Any] = []
        self._rows = 0

    def __len__(self) -> int:
        """Rows added and rows removed."""
        return self._rows

    def add_one(self, identity: Any, codes: Any) -> None:
        """The row of the next number."""
        self._ids.append(identity)
        self._codes.append(codes)
        self._rows += 1

    def add(self, ids: Any, codes: Any) -> None:
        """The rows of the next numbers."""
        self._flush(ids.type)
        self._parts.append((ids, codes))
        self._rows += len(codes)

    def remove(self, numbers: Any) -> None:
        """Rows, pending or not, are removed."""
        self._removed.append(numbers)
        self._rows += len(numbers)

    def record(self, kind: str, width: int, clock: Clock) -> Record:
        """All of it, for ids of a kind and fingerprints of so many words."""
        self._flush(ID_KINDS[kind])
        none = np.empty((0, width), np.uint64)
        ids = [pa.array([], ID_KINDS[kind]), *(ids for ids, _ in self._parts)]
        codes = np.concatenate([none, *(codes for _, codes in self._parts)])
        removed = np.concatenate([np.empty(0, np.int64), *self._removed])
        return Record(self.first, pa.concat_arrays(ids), codes, removed, clock)

    def _flush(self, kind: Any) -> None:
        if self._ids:
            self._parts.append((pa.array(self._ids, kind), np.stack(self._codes)))
            self._ids, self._codes = [], []
