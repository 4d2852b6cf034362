"""The newest documents of an index by similarity, which are found one feature at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.index.id_columns import ID_KINDS, IdColumn
from neardup.index.ranking import all_living
from neardup.index.set_arrays import Sets
from neardup.index.set_segments import FoundRows, SetRows, SetSegment, merged
from neardup.index.stored_rows import Tail, TailRows
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.index.kind_settings import SimilaritySettings
    from neardup.index.ranking import Ranking
    from neardup.kernels.index.sets import Order

__all__ = ["TAIL_ROWS", "SetTail", "TailFeatures"]

TAIL_ROWS: Final = 4096
FIRST_ROWS: Final = 1024
"""Of a tail that does not know yet which features are heavy: following their chains takes long."""
FIRST_ENTRIES: Final = 1 << 10
FIRST_FEATURES: Final = 1 << 12


class TailFeatures(TailRows):
    """The features of a tail, chained.

    Args:
        order: Of features: any will do, that of a segment saves time.
        settings: Of the index.
    """

    def __init__(self, order: Order, settings: SimilaritySettings) -> None:
        """No row."""
        from neardup.kernels.index.scoring import SKETCH_WORDS
        from neardup.kernels.index.tail import TailSets, tail_sets

        super().__init__(TAIL_ROWS if len(order.keys) > 1 else min(TAIL_ROWS, FIRST_ROWS))
        self._order, self.settings = order, settings
        self.made_for = settings.kind.number, float(settings.similarity)
        self._entries = 0
        self._room = FIRST_FEATURES, FIRST_ENTRIES
        self._sums = np.empty(0, np.float64)
        self.lock = threading.Lock()
        """Held while the chains are changed or followed: the writer appends to them in place, and a
        reader who came upon half a change would follow a chain out of them."""
        self._sets: Any = TailSets(
            np.empty(FIRST_FEATURES, np.uint64), np.zeros(len(self.numbers) + 1, np.int64),
            np.zeros(FIRST_ENTRIES, np.uint32), np.empty(2 * FIRST_ENTRIES, np.uint64),
            np.empty(SKETCH_WORDS * len(self.numbers), np.uint64), order, SKETCH_WORDS,
        )  # fmt: skip
        self.places_of_arrays = tail_sets(self._sets)
        """Where these arrays are."""

    def put(self, row: int, content: Any) -> None:
        """See TailRows.put."""
        from neardup.kernels.index.tail import append_set

        with self.lock:
            used, more = int(self._sets.offsets[row]), len(content)
            if used + more > self._room[0] or self._entries + more > self._room[1]:
                self._make_room(used, more)
            self._entries = append_set(
                frozen(content), self.places_of_arrays, row, self._entries, *self.made_for
            )

    def content(self, row: int) -> Any:
        """See TailRows.content."""
        return self.sets(row + 1).of(row)

    def fresh(self) -> TailFeatures:
        """See TailRows.fresh."""
        return TailFeatures(self._order, self.settings)

    def sets(self, count: int) -> Sets:
        """The sets of the first rows."""
        with self.lock:
            offsets = frozen(self._sets.offsets[: count + 1])
            return Sets(frozen(self._sets.features[: int(offsets[-1])]), offsets)

    def sums(self, count: int, ranking: Ranking) -> Any:
        """What the features of each of the first rows weigh: float64 (count,)."""
        sets = self.sets(count)
        if ranking.weights is None:
            return ranking.sums(sets)
        known = self._sums
        if len(known) < count:
            new = Sets(sets.features, frozen(sets.offsets[len(known) :]))
            known = self._sums = np.concatenate([known, ranking.sums(new)])
        return known[:count]

    def search(self, queries: Sets, count: int, similarity: float) -> tuple[Any, Any, Any]:
        """Queries, rows among the first `count`, and similarities; removed rows are among them."""
        from neardup.kernels.index.tail import search_tail

        condition = self.settings.condition(similarity)
        with self.lock:
            return search_tail(  # type: ignore[no-any-return]
                *queries, 0, queries.size, self.places_of_arrays, count, condition
            )

    def _make_room(self, used: int, more: int) -> None:
        """Room for a row of so many features: in other arrays, readers may have these."""
        from neardup.kernels.index.tail import link_entries, tail_sets

        held, count = self._sets, self._entries
        if used + more > self._room[0]:
            features = np.empty(2 * (used + more), np.uint64)
            features[:used] = held.features[:used]
            held = held._replace(features=features)
        if count + more > self._room[1]:
            room = 1 << (count + more).bit_length()
            entries, heads = np.empty(2 * room, np.uint64), np.zeros(room, np.uint32)
            entries[: 2 * count] = held.entries[: 2 * count]
            link_entries(entries, count, heads)
            held = held._replace(entries=entries, heads=heads)
        self._room = len(held.features), len(held.heads)
        self._sets, self.places_of_arrays = held, tail_sets(held)


class SetTail(Tail[TailFeatures]):
    """The newest documents: at most TAIL_ROWS."""

    __slots__ = ()

    @property
    def sets(self) -> Sets:
        """The features of all rows."""
        return self.rows.sets(self.count)

    def search(self, queries: Sets, similarity: float) -> FoundRows:
        """Living rows that are so similar to queries."""
        return self.found(*self.rows.search(queries, self.count, similarity))

    def found(self, asked: Any, rows: Any, scores: Any) -> FoundRows:
        """The living ones of rows that were found."""
        if self.removed and len(rows):
            keep = self.alive(rows)
            return FoundRows(asked[keep], rows[keep], scores[keep], 0)
        return FoundRows(asked, rows, scores, 0)

    def nearest(self, features: Any, ranking: Ranking) -> FoundRows:
        """Living rows that share a feature, and how similar they are."""
        from neardup.kernels.index.related import Compared, score_related

        sets, scores = self.sets, np.empty(len(self), np.float64)
        compared = Compared(
            frozen(sets.features), frozen(sets.offsets),
            frozen(self.rows.sums(len(self), ranking)), all_living(),
        )  # fmt: skip
        score_related(
            ranking.asked(features), compared, 0, len(self), ranking.measure.number, scores
        )
        rows = np.flatnonzero((scores > 0) & ~self.dead)
        return FoundRows(np.zeros(len(rows), np.int64), rows, scores[rows], 0)

    def contents(self, rows: Any) -> Sets:
        """The features of some rows (int64)."""
        return self.sets.take(rows)

    def living_rows(self, id_kind: str | None) -> SetRows:
        """Those that are not removed."""
        live = self.live_rows()
        ids = pa.array([self.ids[row] for row in live.tolist()], ID_KINDS[id_kind or "int"])
        return SetRows(
            self.sets.take(live), np.arange(len(live)), IdColumn(ids), self.numbers[live]
        )

    def segment(self, id_kind: str | None) -> SetSegment:
        """See Tail.segment."""
        return merged([self.living_rows(id_kind)], self.rows.settings)
