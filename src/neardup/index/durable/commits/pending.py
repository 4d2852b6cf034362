"""What a writer has added and removed since its last commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.index.durable.log.records import Record
from neardup.index.ids import ID_KINDS

if TYPE_CHECKING:
    from neardup.index.base.held import Held
    from neardup.runtime.types import Rows

__all__ = ["Pending"]


class Pending:
    """Rows with numbers from `first` on, removed numbers, and what is kept by number.

    Args:
        held: What they are added to.
    """

    def __init__(self, held: Held) -> None:
        """Nothing is pending."""
        self.first = held.next
        self.contents: dict[int, bytes | None] = {}
        self._held = held
        self._parts: list[tuple[Any, Any]] = []
        self._ids: list[Any] = []
        self._ones: list[Any] = []
        self._removed: list[Rows] = []
        self._rows = 0

    def __len__(self) -> int:
        """Rows added and rows removed."""
        return self._rows

    def add_one(self, identity: Any, one: Any) -> None:
        """The row of the next number."""
        self._ids.append(identity)
        self._ones.append(one)
        self._rows += 1

    def add(self, ids: Any, many: Any) -> None:
        """The rows of the next numbers."""
        self._flush(ids.type)
        self._parts.append((ids, many))
        self._rows += len(ids)

    def remove(self, numbers: Rows) -> None:
        """Rows, pending or not, are removed."""
        self._removed.append(numbers)
        self._rows += len(numbers)

    def record(self, state: Held) -> Record:
        """All of it, which led to a state."""
        kind = ID_KINDS[state.kind or "int"]
        self._flush(kind)
        ids = [pa.array([], kind), *(ids for ids, _ in self._parts)]
        contents = [state.none(state.settings), *(many for _, many in self._parts)]
        removed = np.concatenate([np.empty(0, np.int64), *self._removed])
        return Record.of(
            self.first, pa.concat_arrays(ids), state.concatenated(contents), removed, state.clock
        )

    def _flush(self, kind: Any) -> None:
        if self._ids:
            ids = pa.array(self._ids, kind)
            self._parts.append((ids, self._held.bunched(self._ones)))
            self._ids, self._ones = [], []
