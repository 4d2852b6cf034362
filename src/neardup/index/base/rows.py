"""Rows with ids, some of which are removed: what every segment is, whatever its rows hold."""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.index.ids import IdColumn
    from neardup.runtime.types import Flags, Rows

__all__ = ["CHUNK_ROWS", "MarkedRows", "StoredRows", "sound_from"]

_LOGGER: Final = logging.getLogger("neardup")

RECENT: Final = 256
"""Removed rows of a segment that wait to be marked together."""
FEW_ROWS: Final = 64
CHUNK_ROWS: Final = 1 << 15
"""Rows whose marks are written together."""


class MarkedRows:
    """Rows in order of insertion; what is removed from them makes another segment of the same rows.

    Args:
        ids: Their ids, all different.
        numbers: int64 (n,), ascending: the place of each in the order of all insertions.
        dead: bool (n,), True for removed rows; taken over, and not changed.
    """

    def __init__(self, ids: IdColumn, numbers: Rows, dead: Flags | None = None) -> None:
        """Take them."""
        self.ids, self.numbers = ids, numbers
        self.removed = 0 if dead is None else int(np.count_nonzero(dead))
        self.gone: tuple[Flags | None, frozenset[int]] = (
            dead if self.removed else None,
            frozenset(),
        )
        """Marks of removal, and removed rows without one: marks are copied for many at a time."""

    def __len__(self) -> int:
        """Rows, removed ones included."""
        return len(self.numbers)

    @property
    def living(self) -> int:
        """Rows that are not removed."""
        return len(self) - self.removed

    @property
    def dead(self) -> Flags:
        """Which rows are removed: bool (n,), not to be changed."""
        marks, recent = self.gone
        if recent or marks is None:
            marks = self._marked()
            self.gone = marks, frozenset()
        return marks

    def live_rows(self) -> Rows:
        """The rows that are not removed, ascending."""
        return np.flatnonzero(~self.dead) if self.removed else np.arange(len(self))

    def alive(self, rows: Rows) -> Flags:
        """Which of these rows are not removed."""
        marks, recent = self.gone
        if recent and len(rows) > FEW_ROWS:
            return ~self.dead[rows]
        keep = np.ones(len(rows), np.bool_) if marks is None else ~marks[rows]
        if recent:
            keep &= np.array([row not in recent for row in rows.tolist()], np.bool_)
        return keep

    def find(self, identity: Any) -> int:
        """The row of a living document of an id of the column's kind, or -1."""
        row = self.ids.find_one(identity)
        return row if row >= 0 and not self.is_dead(row) else -1

    def is_dead(self, row: int) -> bool:
        """Whether a row is removed."""
        marks, recent = self.gone
        return row in recent or (marks is not None and bool(marks[row]))

    def stats(self, settings: Any) -> dict[str, Any]:
        """Rows, and their file."""
        del settings
        return {"rows": len(self), "removed": self.removed, "file": None, "file_bytes": 0}

    def verify(self) -> None:
        """Raise DataError if the rows are not as they were written; those in memory are."""

    def without(self, rows: Rows) -> Self:
        """The same rows, with more of them removed; these were living."""
        found = copy.copy(self)
        found.removed += len(rows)
        marks, recent = self.gone
        if len(rows) + len(recent) <= RECENT:
            found.gone = marks, recent.union(rows.tolist())
        else:
            marks = self._marked()
            marks[rows] = True
            found.gone = marks, frozenset()
        return found

    def _marked(self) -> Flags:
        """A copy of the marks, all of them."""
        marks, recent = self.gone
        copied = np.zeros(len(self), np.bool_) if marks is None else marks.copy()
        copied[np.fromiter(recent, np.int64, len(recent))] = True
        return copied


class StoredRows(MarkedRows):
    """Rows of a file.

    Args:
        file: The file: a SegmentFile.
        changed: Chunks of CHUNK_ROWS rows, some of which were removed since they were last written.
    """

    file: Any
    changed: frozenset[int]

    def without(self, rows: Rows) -> Self:
        """See MarkedRows.without."""
        found = super().without(rows)
        found.changed = self.changed.union(np.unique(rows // CHUNK_ROWS).tolist())
        return found

    def stats(self, settings: Any) -> dict[str, Any]:
        """See MarkedRows.stats."""
        found = super().stats(settings)
        return found | {"file": self.file.path.name, "file_bytes": self.file.nbytes}

    def written(self) -> Self:
        """The same, all of whose marks of removal were written."""
        found = copy.copy(self)
        found.changed = frozenset()
        return found


def sound_from(segments: Sequence[MarkedRows]) -> int:
    """The place behind the last damaged one, which is left as it is: the log says why."""
    sound = 0
    for i, each in enumerate(segments):
        try:
            each.verify()
        except DataError as error:
            _LOGGER.warning("not merged: %s", error)
            sound = i + 1
    return sound
