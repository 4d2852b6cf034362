"""What a writer of an index by similarity has added and removed since its last commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.index.durable.records import Record
from neardup.index.ids import ID_KINDS
from neardup.index.similar.sets import Sets, joined_sets

if TYPE_CHECKING:
    from neardup.index.clock import Clock

__all__ = ["SimilarPending"]


class SimilarPending:
    """Rows with numbers from `first` on, and removed numbers."""

    def __init__(self, first: int) -> None:
        """Nothing is pending."""
        self.first = first
        self._parts: list[tuple[Any, Sets]] = []
        self._ids: list[Any] = []
        self._features: list[Any] = []
        self._removed: list[Any] = []
        self._rows = 0

    def __len__(self) -> int:
        """Rows added and rows removed."""
        return self._rows

    def add_one(self, identity: Any, features: Any) -> None:
        """The row of the next number."""
        self._ids.append(identity)
        self._features.append(features)
        self._rows += 1

    def add(self, ids: Any, sets: Sets) -> None:
        """The rows of the next numbers."""
        self._flush(ids.type)
        self._parts.append((ids, sets))
        self._rows += sets.size

    def remove(self, numbers: Any) -> None:
        """Rows, pending or not, are removed."""
        self._removed.append(numbers)
        self._rows += len(numbers)

    def record(self, kind: str, clock: Clock) -> Record:
        """All of it, for ids of a kind."""
        self._flush(ID_KINDS[kind])
        ids = pa.concat_arrays([pa.array([], ID_KINDS[kind]), *(ids for ids, _ in self._parts)])
        removed = np.concatenate([np.empty(0, np.int64), *self._removed])
        sets = joined_sets([sets for _, sets in self._parts])
        return Record(self.first, ids, np.empty((len(ids), 0), np.uint64), removed, clock, sets)

    def _flush(self, kind: Any) -> None:
        if self._ids:
            offsets = np.zeros(len(self._ids) + 1, np.int64)
            np.cumsum([len(each) for each in self._features], out=offsets[1:])
            sets = Sets(np.concatenate(self._features), offsets)
            self._parts.append((pa.array(self._ids, kind), sets))
            self._ids, self._features = [], []
