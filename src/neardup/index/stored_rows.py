"""Rows with ids, some of them removed: segments and tails of both kinds of index."""

from __future__ import annotations

import contextlib
import copy
import logging
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import DataError
from neardup.index.id_columns import ID_KINDS, IdColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.index.hits import Id
    from neardup.index.id_columns import IdColumns
    from neardup.index.segment_files import SegmentFile
    from neardup.runtime.types import Flags, Rows

__all__ = ["CHUNK_ROWS", "Content", "SegmentRows", "Tail", "TailRows", "sound_from"]

Content = npt.NDArray[np.uint64]
"""The content of a document: its fingerprint, uint64 (width,), or its features, uint64 (n,),
ascending."""

_LOGGER: Final = logging.getLogger("neardup")
RECENT: Final = 256
"""The most removed rows of a segment that wait to be marked together."""
FEW_ROWS: Final = 64
CHUNK_ROWS: Final = 1 << 15
"""Rows whose marks are written together."""


class SegmentRows:
    """Rows in order of insertion, in memory or in a file.

    A segment does not change, so readers need no lock: `without` makes another one, which shares
    the rows.

    Args:
        ids: Their ids, all different.
        numbers: int64 (n,), ascending: the place of each in the order of all insertions.
        dead: bool (n,), True for removed rows; taken over, and not changed.
        file: The file of the rows; None if they are in memory.
        changed: Chunks of CHUNK_ROWS rows, some of which were removed since they were last written.
    """

    COPIED: ClassVar[tuple[str, ...]]
    """Arrays of a file that a merge copies; it makes the others again."""

    def __init__(
        self,
        ids: IdColumn,
        numbers: Rows,
        dead: Flags | None = None,
        file: SegmentFile | None = None,
        changed: frozenset[int] = frozenset(),
    ) -> None:
        """Take them."""
        self.ids, self.numbers = ids, numbers
        self.file, self.changed = file, changed
        self.removed = 0 if dead is None else int(np.count_nonzero(dead))
        self.gone: tuple[Flags | None, frozenset[int]] = (
            dead if self.removed else None,
            frozenset(),
        )
        """Marks of removal, and removed rows without a mark: marks are copied for many rows at a
        time."""

    def __len__(self) -> int:
        """Rows, removed ones included."""
        return len(self.numbers)

    @property
    def is_ready(self) -> bool:
        """Whether a search can begin without building arrays."""
        return True

    def make_ready(self) -> None:
        """Build the arrays of a search, unless they exist."""

    def numbered(self, first: int) -> Self:
        """The same rows with the numbers from `first` on, before readers see them."""
        copied = copy.copy(self)
        copied.numbers = np.arange(first, first + len(self))
        return copied

    @property
    def living(self) -> int:
        """Rows that are not removed."""
        return len(self) - self.removed

    @property
    def dead(self) -> Flags:
        """Whether each row is removed: bool (n,), not to be changed."""
        marks, recent = self.gone
        if recent or marks is None:
            marks = self._marked()
            self.gone = marks, frozenset()
        return marks

    def live_rows(self) -> Rows:
        """The rows that are not removed, ascending."""
        return np.flatnonzero(~self.dead) if self.removed else np.arange(len(self))

    def alive(self, rows: Rows) -> Flags:
        """Whether each of these rows is alive."""
        marks, recent = self.gone
        if recent and len(rows) > FEW_ROWS:
            return ~self.dead[rows]
        keep = np.ones(len(rows), np.bool_) if marks is None else ~marks[rows]
        if recent:
            keep &= np.array([row not in recent for row in rows.tolist()], np.bool_)
        return keep

    def is_dead(self, row: int) -> bool:
        """Whether a row is removed."""
        marks, recent = self.gone
        return row in recent or (marks is not None and bool(marks[row]))

    def stats(self, settings: Any) -> dict[str, Any]:
        """Rows, and their file."""
        del settings
        name, size = (None, 0) if self.file is None else (self.file.path.name, self.file.nbytes)
        return {"rows": len(self), "removed": self.removed, "file": name, "file_bytes": size}

    def verify(self) -> None:
        """Raise DataError if the arrays that a merge copies are damaged."""
        if self.file is not None:
            self.file.verify(self.COPIED)

    def read_in_order(self) -> contextlib.AbstractContextManager[None]:
        """A context for reading rows from the first to the last."""
        return contextlib.nullcontext() if self.file is None else self.file.read_in_order()

    def contents(self, rows: Rows) -> Any:
        """The contents of some rows."""
        raise NotImplementedError

    def without(self, rows: Rows) -> Self:
        """The same rows, with more of them, which were living, removed."""
        copied = copy.copy(self)
        copied.removed += len(rows)
        marks, recent = self.gone
        if len(rows) + len(recent) <= RECENT:
            copied.gone = marks, recent.union(rows.tolist())
        else:
            marks = self._marked()
            marks[rows] = True
            copied.gone = marks, frozenset()
        if self.file is not None:
            copied.changed = self.changed.union(np.unique(rows // CHUNK_ROWS).tolist())
        return copied

    def written(self) -> Self:
        """The same rows, with all marks of removal written."""
        copied = copy.copy(self)
        copied.changed = frozenset()
        return copied

    def _marked(self) -> Flags:
        """A copy of the marks, all of them."""
        marks, recent = self.gone
        copied = np.zeros(len(self), np.bool_) if marks is None else marks.copy()
        copied[np.fromiter(recent, np.int64, len(recent))] = True
        return copied


def sound_from(segments: Sequence[SegmentRows]) -> int:
    """The position after the last damaged segment, which stays as it is; the log says why."""
    sound = 0
    for i, each in enumerate(segments):
        try:
            each.verify()
        except DataError as error:
            _LOGGER.warning("not merged: %s", error)
            sound = i + 1
    return sound


NEVER: Final = 1 << 62
CHANGING: Final = -1
"""The version of the rows of a tail during a change, which an interrupt may cut short."""


class TailRows:
    """Arrays shared by a chain of tails, each with a row more or fewer than the previous one.

    Args:
        capacity: The most rows.
    """

    def __init__(self, capacity: int) -> None:
        """Begin without rows."""
        self.numbers = np.zeros(capacity, np.int64)
        self.ended = np.full(capacity, NEVER, np.int64)
        """The version that removed a row."""
        self.ids: list[Id] = []
        self.before: list[int] = []
        """The previous row of each row's id, or -1."""
        self.places: dict[Id, int] = {}
        self.version = 0
        self.ids_before: tuple[Any, IdColumns] | None = None
        """Segments before the tail, perhaps of a newer version, and their ids."""

    def put(self, row: int, content: Content) -> None:
        """Set the content of the next row."""
        raise NotImplementedError

    def put_many(self, first: int, contents: Any) -> None:
        """As `put`, for rows from `first` on; slower than `put` for one or two."""
        raise NotImplementedError

    def offer(self, first: int, contents: Any, scores: Any, reach: float) -> tuple[Rows, Rows]:
        """Append each of many documents to `first` rows, unless a stored or a new one is near.

        Args:
            first: The number of rows; all documents must fit.
            contents: Of the documents.
            scores: As in Closest, for the stored ones; without one, the kind's value. Written: the
                score of the closest of all.
            reach: The distance or similarity at which one is near.

        Returns:
            int64 (n,): the new row that is closer than all stored ones, or -1; and which documents
            were put, ascending.
        """
        raise NotImplementedError

    def fresh(self) -> Self:
        """New arrays of this kind, without rows."""
        raise NotImplementedError


R = TypeVar("R", bound=TailRows)


class Tail(Generic[R]):
    """The newest rows.

    A tail does not change, though it shares its arrays with the tails before and after it: it
    ignores rows after its own `count`, and removals of later versions. So the writer, which alone
    extends the newest tail, under the lock of its store, never disturbs a reader of an older tail.

    Args:
        rows: Shared with the tails before and after.
        count: Rows of this tail, removed ones included.
        version: The number of changes.
        removed: The number of removed rows.
    """

    __slots__ = ("_version", "count", "removed", "rows")

    def __init__(self, rows: R, count: int = 0, version: int = 0, removed: int = 0) -> None:
        """Take a state; the first has no rows."""
        self.rows, self.count, self._version, self.removed = rows, count, version, removed

    def __len__(self) -> int:
        """Rows, removed ones included."""
        return self.count

    @property
    def living(self) -> int:
        """Rows that are not removed."""
        return self.count - self.removed

    @property
    def room(self) -> int:
        """The number of rows that still fit."""
        return len(self.rows.numbers) - self.count

    @property
    def numbers(self) -> Rows:
        """The number of each row in the order of all insertions."""
        return self.rows.numbers[: self.count]

    @property
    def ids(self) -> list[Id]:
        """The id of each row, and perhaps of further rows."""
        return self.rows.ids

    @property
    def dead(self) -> Flags:
        """Whether each row is removed."""
        return self.rows.ended[: self.count] <= self._version

    def live_rows(self) -> Rows:
        """The rows that are not removed, ascending."""
        return np.flatnonzero(~self.dead) if self.removed else np.arange(self.count)

    def live_ids(self, kind: str | None) -> IdColumn:
        """The ids of the living rows, as a column of a kind."""
        ids = self.rows.ids[: self.count]
        if self.removed:
            ids = [ids[row] for row in self.live_rows().tolist()]
        return IdColumn(pa.array(ids, ID_KINDS[kind or "int"]))

    def alive(self, rows: Rows) -> Flags:
        """Whether each of these rows is alive."""
        return self.rows.ended[rows] > self._version

    def find(self, identity: Id) -> int:
        """The row of a living document, or -1."""
        rows = self.rows
        row = rows.places.get(identity, -1)
        while row >= self.count:
            row = rows.before[row]
        return row if row >= 0 and not self.is_dead(row) else -1

    def rows_of(self, ids: list[Id]) -> dict[int, int]:
        """The rows of those ids that living documents have, by the position of the id."""
        places = self.rows.places
        rows = {at: self.find(each) for at, each in enumerate(ids) if each in places}
        return {at: row for at, row in rows.items() if row >= 0}

    def is_dead(self, row: int) -> bool:
        """Whether a row is removed."""
        return bool(self.rows.ended[row] <= self._version)

    def appended(self, identity: Id, content: Content, number: int) -> Self:
        """A tail with one more row, which must fit."""
        rows, row = self._own(), self.count
        rows.put(row, content)
        rows.numbers[row] = number
        rows.before[row:] = [rows.places.get(identity, -1)]  # also after an addition that failed
        rows.ids.append(identity)
        rows.places[identity] = row
        rows.version = self._version + 1
        return type(self)(rows, row + 1, rows.version, self.removed)

    def extended(self, ids: list[Id], contents: Any, number: int) -> Self:
        """A tail with more rows, numbered from `number` on, which must fit."""
        rows = self._own()
        rows.put_many(self.count, contents)
        return self._with(rows, ids, number)

    def offered(
        self, ids: list[Id], contents: Any, scores: Any, reach: float, number: int
    ) -> tuple[Self, Rows, Rows]:
        """A tail with those of many documents that are not near an earlier one.

        Args:
            ids: Different, and not in this tail.
            contents: As in `TailRows.offer`.
            scores: As in `TailRows.offer`.
            reach: As in `TailRows.offer`.
            number: Number of the first new row.

        Returns:
            The tail, and what `TailRows.offer` returns.
        """
        rows, first = self._own(), self.count
        near, added = rows.offer(first, contents, scores, reach)
        if not len(added):
            rows.version = self._version
            return self, near, added
        return self._with(rows, [ids[at] for at in added.tolist()], number), near, added

    def _with(self, rows: R, ids: list[Id], number: int) -> Self:
        """The tail after rows with these ids, all different, were put."""
        first, count = self.count, self.count + len(ids)
        rows.numbers[first:count] = np.arange(number, number + len(ids))
        # Also where a failed addition left some.
        rows.before[first:] = [rows.places.get(each, -1) for each in ids]
        rows.ids += ids
        rows.places.update(zip(ids, range(first, count), strict=True))
        rows.version = self._version + 1
        return type(self)(rows, count, rows.version, self.removed)

    def without(self, chosen: int | Rows) -> Self:
        """A tail without the living rows at some positions: one, or many, each once."""
        rows, version = self._own(), self._version + 1
        rows.ended[chosen] = version
        rows.version = version
        return type(self)(rows, self.count, version, self.removed + np.size(chosen))

    def contents(self, rows: Rows) -> Any:
        """The contents of some rows."""
        raise NotImplementedError

    def segment(self, id_kind: str | None) -> Any:
        """The living rows as a segment, with ids of a type."""
        raise NotImplementedError

    def _own(self) -> R:
        """The rows for a next tail: copied if another tail extends this one, or began to."""
        rows = self.rows
        if rows.version == self._version and len(rows.ids) == self.count:
            rows.version = CHANGING
            return rows
        copied = rows.fresh()
        copied.version = CHANGING
        copied.put_many(0, self.contents(np.arange(self.count)))
        for row, identity in enumerate(rows.ids[: self.count]):
            copied.before.append(copied.places.get(identity, -1))
            copied.places[identity] = row
            copied.ids.append(identity)
        copied.numbers[: self.count] = self.numbers
        copied.ended[: self.count][self.dead] = self._version
        return copied
