"""The newest rows of an index, which wait to become a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

import numpy as np

if TYPE_CHECKING:
    from neardup.runtime.types import Flags, Rows

__all__ = ["Tail", "TailRows"]

NEVER: Final = 1 << 62


class TailRows:
    """What all tails share of which each is the one before with a row more or fewer.

    Args:
        capacity: Rows at most.
    """

    def __init__(self, capacity: int) -> None:
        """No row."""
        self.numbers = np.zeros(capacity, np.int64)
        self.ended = np.full(capacity, NEVER, np.int64)
        """The version from which on a row is removed."""
        self.ids: list[Any] = []
        self.before: list[int] = []
        """The row that an id had when it got the row of this place, or -1."""
        self.places: dict[Any, int] = {}
        self.version = 0

    def put(self, row: int, content: Any) -> None:
        """Set the content of a row, the one behind the last."""
        raise NotImplementedError

    def content(self, row: int) -> Any:
        """What `put` was given."""
        raise NotImplementedError

    def fresh(self) -> Self:
        """Others of this kind, without rows."""
        raise NotImplementedError


R = TypeVar("R", bound=TailRows)


class Tail(Generic[R]):
    """The newest rows.

    A tail does not change. Rows behind its own, and removals of later versions, are not its.

    Args:
        rows: Shared with the tails before and after.
        count: Rows of this one, removed ones included.
        version: How many changes there were.
        removed: How many of the rows are removed.
    """

    __slots__ = ("_count", "_rows", "_version", "removed")

    def __init__(self, rows: R, count: int = 0, version: int = 0, removed: int = 0) -> None:
        """Take a state; the first has no rows."""
        self._rows, self._count, self._version, self.removed = rows, count, version, removed

    def __len__(self) -> int:
        """Rows, removed ones included."""
        return self._count

    @property
    def living(self) -> int:
        """Rows that are not removed."""
        return self._count - self.removed

    @property
    def room(self) -> int:
        """How many more rows there may be."""
        return len(self._rows.numbers) - self._count

    @property
    def numbers(self) -> Rows:
        """The place of each in the order of all insertions."""
        return self._rows.numbers[: self._count]

    @property
    def ids(self) -> list[Any]:
        """The id of each row; maybe of more."""
        return self._rows.ids

    @property
    def dead(self) -> Flags:
        """Which rows are removed."""
        return self._rows.ended[: self._count] <= self._version

    def live_rows(self) -> Rows:
        """The rows that are not removed, ascending."""
        return np.flatnonzero(~self.dead)

    def alive(self, rows: Rows) -> Flags:
        """Which of these rows are not removed."""
        return self._rows.ended[rows] > self._version

    def find(self, identity: Any) -> int:
        """The row of a living document, or -1."""
        rows = self._rows
        row = rows.places.get(identity, -1)
        while row >= self._count:
            row = rows.before[row]
        return row if row >= 0 and not self.is_dead(row) else -1

    def is_dead(self, row: int) -> bool:
        """Whether a row is removed."""
        return bool(self._rows.ended[row] <= self._version)

    def appended(self, identity: Any, content: Any, number: int) -> Self:
        """This and a row more, for which there must be room."""
        rows, row = self._own(), self._count
        rows.put(row, content)
        rows.numbers[row] = number
        rows.before[row:] = [rows.places.get(identity, -1)]  # also of an addition that failed
        rows.ids.append(identity)
        rows.places[identity] = row
        rows.version = self._version + 1
        return type(self)(rows, row + 1, rows.version, self.removed)

    def without(self, chosen: int | Rows) -> Self:
        """This without rows that are living: one, or many, each once."""
        rows = self._own()
        rows.version = self._version + 1
        rows.ended[chosen] = rows.version
        return type(self)(rows, self._count, rows.version, self.removed + np.size(chosen))

    def segment(self, kind: str | None) -> Any:
        """Its living rows, whose ids are of a kind, as a segment."""
        raise NotImplementedError

    def _own(self) -> R:
        """The rows, to go on from: copied if another tail went on from this one before."""
        rows = self._rows
        if rows.version == self._version and len(rows.ids) == self._count:
            return rows
        copied = rows.fresh()
        for row, identity in enumerate(rows.ids[: self._count]):
            copied.put(row, rows.content(row))
            copied.before.append(copied.places.get(identity, -1))
            copied.places[identity] = row
            copied.ids.append(identity)
        copied.numbers[: self._count] = self.numbers
        copied.ended[: self._count][self.dead] = self._version
        return copied
