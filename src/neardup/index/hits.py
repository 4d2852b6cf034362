"""Answers: the list of one query, the table of many, and where ids are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from neardup.runtime.types import Flags, Rows

__all__ = [
    "ABSENT",
    "NEW_STATES",
    "OTHER",
    "SAME",
    "Answer",
    "Closest",
    "Hits",
    "Id",
    "Places",
    "sorted_table",
]

ABSENT: Final = -1
OTHER: Final = 0
SAME: Final = 1
"""States of an id: not stored, stored with other content than a document's, or with the same."""
Id: TypeAlias = int | str
"""The id of a document; an index has ids of one type."""
C = TypeVar("C")
"""Closeness: a distance, or a similarity."""


State: TypeAlias = Literal["new", "seen", "stored", "replaced", "empty", "refused"]
"""The outcome of an offer: see Answer."""
NEW_STATES: Final = frozenset({"new", "replaced", "stored"})
"""States of documents to which no other one is near."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a document that was offered.

    Args:
        state: "new", it was stored; "replaced", it was stored and replaced the version of its id;
            "stored", its id was stored before, and that version stays; "seen", another one is near;
            "empty", it has no tokens, so it matches nothing and is not stored; "refused", it could
            not be prepared, as `Prepared.problems` says.
        near: (id, distance) or (id, similarity) of the closest other one, if it was seen.

    Example:
        >>> Answer("seen", ("a", 0.9)).is_new, Answer("new").is_new, Answer("empty").is_empty
        (False, True, True)
    """

    state: State
    near: tuple[Id, float] | None = None

    @property
    def is_new(self) -> bool:
        """Whether no other document is near: a version of it is stored now."""
        return self.state in NEW_STATES

    @property
    def is_empty(self) -> bool:
        """Whether it has no tokens."""
        return self.state == "empty"


class Hits(list[tuple[Id, C]]):
    """(id, distance) or (id, similarity), the closest first, then by insertion.

    Args:
        hits: The hits that are returned.
        total: The number of hits, with those beyond the limit.

    Example:
        >>> hits = Hits([("a", 0), ("b", 2)], total=5)
        >>> hits[0], hits.cut
        (('a', 0), True)
    """

    def __init__(self, hits: list[tuple[Id, C]], total: int) -> None:
        """Take the hits."""
        super().__init__(hits)
        self.total = total

    @property
    def cut(self) -> bool:
        """Whether a limit left hits out."""
        return self.total > len(self)


@dataclass(slots=True)
class Places:
    """The places of ids: `segments` (int64, -1 for nowhere) and `rows` in them (int64)."""

    segments: Rows
    rows: Rows

    @classmethod
    def nowhere(cls, count: int) -> Self:
        """Places of ids none of which is stored."""
        return cls(np.full(count, -1, np.int64), np.full(count, -1, np.int64))

    @classmethod
    def of_one(cls, segment: int, row: int) -> Self:
        """The place of one id."""
        return cls(np.array([segment]), np.array([row]))

    def put(self, at: Rows, segment: int, rows: Rows) -> None:
        """Store the places of the ids at these positions."""
        self.segments[at], self.rows[at] = segment, rows

    @property
    def present(self) -> Flags:
        """Whether each id is stored: bool."""
        return self.segments >= 0


class Closest(NamedTuple):
    """The closest stored document of each of several; of equally close ones the first added.

    Args:
        segments: int64 (n,): its segment, the tail counting as the last; -1 if none is near.
        rows: int64 (n,): its row there.
        scores: Its distance or similarity; meaningless where none is near.
    """

    segments: Rows
    rows: Rows
    scores: Any

    def put(self, queries: Rows, segment: int, rows: Rows, scores: Any) -> None:
        """Store these rows as the closest ones of these documents, each of which comes once."""
        self.segments[queries], self.rows[queries], self.scores[queries] = segment, rows, scores


def sorted_table(
    parts: list[Any], rows: Rows, kind: pa.DataType, limit: int | None, *, by_age: bool = False
) -> tuple[pa.Table, int]:
    """Join the hits of the parts of an index into one table.

    Args:
        parts: For each (HitRows, numbers of its rows, IdColumn of its rows), in order of insertion.
        rows: int64: the row of each query.
        kind: Arrow type of the ids.
        limit: The most for one query.
        by_age: Sort by insertion alone, not by distance first.

    Returns:
        row, id, distance, sorted by row, distance and insertion; and the number that `limit` cut.
    """
    queries = np.concatenate([*(hits.queries for hits, _, _ in parts), _NONE])
    distances = np.concatenate([*(hits.distances for hits, _, _ in parts), _NONE])
    numbers = np.concatenate([*(numbers[hits.rows] for hits, numbers, _ in parts), _NONE])
    ids = pa.concat_arrays(
        [pa.array([], kind), *(ids.values.take(pa.array(hits.rows)) for hits, _, ids in parts)]
    )
    keys = (numbers, queries) if by_age else (numbers, distances, queries)
    order = np.lexsort(keys)
    queries = queries[order]
    cut = 0
    if limit is not None:
        begins = np.searchsorted(queries, queries, side="left")
        keep = np.arange(len(queries)) - begins < limit
        cut = int(len(keep) - np.count_nonzero(keep))
        order, queries = order[keep], queries[keep]
    columns = {
        "row": pa.array(rows[queries]),
        "id": ids.take(pa.array(order)),
        "distance": pa.array(distances[order].astype(np.int16)),
    }
    return pa.table(columns), cut


_NONE = np.empty(0, np.int64)
