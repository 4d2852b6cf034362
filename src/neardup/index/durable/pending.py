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
        self._words: list[Any] = []
        self._removed: list[Any] = []
        self._rows = 0

    def __len__(self) -> int:
        """Rows added and rows removed."""
        return self._rows

    def add_one(self, identity: Any, words: Any) -> None:
        """The row of the next number."""
        self._ids.append(identity)
        self._words.append(words)
        self._rows += 1

    def add(self, ids: Any, words: Any) -> None:
        """The rows of the next numbers."""
        self._flush(ids.type)
        self._parts.append((ids, words))
        self._rows += len(words)

    def remove(self, numbers: Any) -> None:
        """Rows, pending or not, are removed."""
        self._removed.append(numbers)
        self._rows += len(numbers)

    def record(self, kind: str, width: int, clock: Clock) -> Record:
        """All of it, for ids of a kind and fingerprints of so many words."""
        self._flush(ID_KINDS[kind])
        none = np.empty((0, width), np.uint64)
        ids = [pa.array([], ID_KINDS[kind]), *(ids for ids, _ in self._parts)]
        words = np.concatenate([none, *(words for _, words in self._parts)])
        removed = np.concatenate([np.empty(0, np.int64), *self._removed])
        return Record(self.first, pa.concat_arrays(ids), words, removed, clock)

    def _flush(self, kind: Any) -> None:
        if self._ids:
            self._parts.append((pa.array(self._ids, kind), np.stack(self._words)))
            self._ids, self._words = [], []
