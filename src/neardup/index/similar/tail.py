"""The newest documents of an index by similarity, which are found one feature at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.index.ids import ID_KINDS, IdColumn
from neardup.index.similar.segment import NEVER, Rows
from neardup.index.similar.sets import Sets
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.index.similar.settings import SimilarSettings
    from neardup.kernels.index.sets import Order

__all__ = ["TAIL_ROWS", "Tail"]

TAIL_ROWS: Final = 2048
HEAD_BITS: Final = 16
FIRST_FEATURES: Final = 1 << 12


class Tail:
    """At most TAIL_ROWS rows.

    Args:
        order: Of features: any will do, that of a segment saves time.
    """

    def __init__(self, order: Order) -> None:
        """Start empty."""
        from neardup.kernels.index.similar import TailSets

        self.order = order
        self.numbers = np.zeros(TAIL_ROWS, np.int64)
        self.died = np.full(TAIL_ROWS, NEVER, np.int64)
        self.ids: list[Any] = []
        self.row_of: dict[Any, int] = {}
        self._entries = 0
        self._lock = threading.Lock()
        """Held while the chains are changed or followed."""
        self._sets: Any = TailSets(
            np.empty(FIRST_FEATURES, np.uint64), np.zeros(TAIL_ROWS + 1, np.int64),
            np.zeros(1 << HEAD_BITS, np.int32), *_entries(FIRST_FEATURES), order,
        )  # fmt: skip

    def append(self, identity: Any, features: Any, number: int, settings: SimilarSettings) -> int:
        """Add a row, for which there must be place, and give its place."""
        from neardup.kernels.index.similar import append_set

        row = len(self.ids)
        with self._lock:
            self._make_room(int(self._sets.offsets[row]), len(features))
            self._entries = int(
                append_set(
                    frozen(features), self._sets, row, self._entries, settings.condition(),
                )
            )  # fmt: skip
        self.numbers[row] = number
        self.ids.append(identity)
        self.row_of[identity] = row
        return row

    def remove(self, row: int, stamp: int) -> None:
        """Remove a row from this stamp on."""
        self.died[row] = stamp
        if self.row_of.get(self.ids[row]) == row:
            del self.row_of[self.ids[row]]

    def search(
        self, queries: Sets, count: int, settings: SimilarSettings, similarity: float
    ) -> tuple[Any, Any, Any]:
        """Queries, rows among the first `count`, and similarities; removed rows are among them."""
        from neardup.kernels.index.similar import search_tail

        with self._lock:
            return search_tail(  # type: ignore[no-any-return]
                *queries, 0, queries.size, self._sets, count, settings.condition(similarity)
            )

    def sets(self, count: int) -> Sets:
        """The sets of the first rows."""
        with self._lock:
            offsets = frozen(self._sets.offsets[: count + 1])
            return Sets(frozen(self._sets.features[: int(offsets[-1])]), offsets)

    def living_rows(self, count: int, kind: str, stamp: int = NEVER - 1) -> Rows:
        """Those of the first `count` rows that are there at this stamp."""
        live = np.flatnonzero(self.died[:count] > stamp)
        ids = pa.array([self.ids[row] for row in live.tolist()], ID_KINDS[kind])
        sets = self.sets(count).take(live)
        return Rows(sets, np.arange(len(live)), IdColumn(ids), self.numbers[live])

    def _make_room(self, used: int, more: int) -> None:
        """Room for a row of so many features: in other arrays, readers may have these."""
        held = self._sets
        if used + more > len(held.features):
            features = np.empty(2 * (used + more), np.uint64)
            features[:used] = held.features[:used]
            held = held._replace(features=features)
        if self._entries + more > len(held.links):
            larger = _entries(2 * (self._entries + more))
            for new, old in zip(
                larger, (held.links, held.keys, held.rows, held.places), strict=True
            ):
                new[: self._entries] = old[: self._entries]
            links, keys, rows, places = larger
            held = held._replace(links=links, keys=keys, rows=rows, places=places)
        self._sets = held


def _entries(count: int) -> tuple[Any, Any, Any, Any]:
    """Room for so many entries: links, keys, rows, places."""
    return (
        np.empty(count, np.int32),
        np.empty(count, np.uint64),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
    )
