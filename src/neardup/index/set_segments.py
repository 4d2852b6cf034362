"""Segments and the tail of an index by similarity: documents and their postings.

Equal documents are one set. The sets are sorted by size, so that the sizes that can be similar
enough are a range. They are found by their first features in an order of the segment's own.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from neardup.index.id_columns import IdColumn
from neardup.index.ranking import RankedSets, all_living, living_sets
from neardup.index.segment_files import id_arrays, write_arrays
from neardup.index.set_arrays import (
    Places,
    Sets,
    Workspace,
    collapsed,
    order_of,
    postings_of,
    sketches_of,
)
from neardup.index.stored_rows import SegmentRows, Tail, TailRows
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import stop_if_abandoned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from neardup.index.kind_settings import SimilaritySettings
    from neardup.index.ranking import Ranking
    from neardup.index.segment_files import SegmentFile
    from neardup.kernels.index.sets import Order
    from neardup.runtime.types import Flags, Hashes, Rows, Scores

__all__ = [
    "HitRows", "SetRows", "SetSegment", "SetTail", "TailFeatures", "joined", "merged",
    "next_merge", "no_order",
]  # fmt: skip

ARRAYS: Final = (
    "features", "offsets", "set_of", "members", "member_starts", "sizes", "firsts", "order_keys",
    "order_ranks", "starts", "entries", "rest_starts", "rest_entries", "sketches",
)  # fmt: skip
"""The arrays of a segment in a file, in addition to ids and numbers."""
SEGMENTS_A_LEVEL: Final = 4
LEVEL_ROWS: Final = 4096
"""The most rows of a segment of the lowest level."""
TAIL_ROWS: Final = 4096
FIRST_ROWS: Final = 1024
"""Rows of a tail before its heavy features are known, whose chains are slow to follow."""
FIRST_ENTRIES: Final = 1 << 10
FIRST_FEATURES: Final = 1 << 12
_NONE: Final = np.empty(0, np.int64)


class SetRows(NamedTuple):
    """Documents in order of insertion.

    Args:
        sets: Sets of features, each of one document or more.
        set_of: int64 (n,): the set of each document.
        ids: IdColumn, all different.
        numbers: int64 (n,), ascending: the place of each in the order of all insertions.
    """

    sets: Sets
    set_of: Rows
    ids: IdColumn
    numbers: Rows


class HitRows(NamedTuple):
    """The result of a search: int64 `queries`, ascending, int64 `rows`, float64 `scores`.

    With a limit, `cut` is the number of rows that are left out.
    """

    queries: Rows
    rows: Rows
    scores: Scores
    cut: int

    def first(self, most: int, numbers: Rows, *, by_age: bool = False) -> HitRows:
        """The first `most` of each query: the most similar, or the oldest by `numbers` of rows."""
        if len(self.rows) <= most:
            return self
        ages = numbers[self.rows]
        order = np.lexsort((ages, self.queries) if by_age else (ages, -self.scores, self.queries))
        ordered = self.queries[order]
        first = np.searchsorted(ordered, ordered, side="left")
        order = order[np.arange(len(ordered)) - first < most]
        cut = self.cut + len(self.rows) - len(order)
        return HitRows(self.queries[order], self.rows[order], self.scores[order], cut)


class SetArrays:
    """The arrays of a segment: from a file, or made from rows at their first use.

    The arrays of an addition that is merged before any query are never made.

    Args:
        rows: The rows from which they are made; None if `arrays` has them.
        arrays: The arrays by name, if they exist.
    """

    def __init__(
        self, rows: tuple[SetRows, SimilaritySettings] | None, arrays: dict[str, Any] | None = None
    ) -> None:
        """Take the rows or arrays."""
        self._of = rows
        self._making = threading.Lock()
        if arrays is not None:
            self._take(arrays)

    @property
    def rows(self) -> SetRows | None:
        """The rows from which the arrays will be made; None if they are made."""
        source = self._of
        return None if source is None else source[0]

    @property
    def by_name(self) -> dict[str, Any]:
        """The arrays; other threads wait while they are made."""
        if self._of is not None:
            with self._making:
                if self._of is not None:
                    rows, settings = self._of
                    self._take(arrays_of([rows], settings))
                    self._of = None  # last: a thread that sees no rows finds arrays
        return self._arrays

    def _take(self, arrays: dict[str, Any]) -> None:
        from neardup.kernels.index.sets import Order
        from neardup.kernels.index.similar import stored_sets

        frozen_arrays = {name: frozen(array) for name, array in arrays.items()}
        self.order = Order(frozen_arrays["order_keys"], frozen_arrays["order_ranks"])
        self.places = stored_sets(frozen_arrays)
        self._arrays = frozen_arrays


class SetSegment(SegmentRows):
    """Documents and their postings.

    Args:
        made: The arrays by name: features, offsets, set_of, members, member_starts, sizes, firsts,
            order_keys, order_ranks, starts, entries, rest_starts, rest_entries, sketches.
        ids: Of the rows.
        numbers: Of SegmentRows.
        dead: bool (n,), True for removed rows; taken over, and not changed.
        file: Of SegmentRows.
        changed: Of SegmentRows.
    """

    COPIED = ("features", "offsets", "set_of", "numbers", "ids", "ends")

    def __init__(
        self,
        made: SetArrays,
        ids: IdColumn,
        numbers: Rows,
        dead: Flags | None = None,
        file: SegmentFile | None = None,
        changed: frozenset[int] = frozenset(),
    ) -> None:
        """Take them."""
        super().__init__(ids, numbers, dead, file, changed)
        self._arrays = made
        self._ranked = RankedSets()

    @classmethod
    def of_rows(cls, rows: SetRows, settings: SimilaritySettings) -> Self:
        """A segment of rows, none of them empty; its arrays are made at the first search."""
        return cls(SetArrays((rows, settings)), rows.ids, rows.numbers)

    @classmethod
    def of_file(
        cls, file: SegmentFile, dead: Flags | None = None, changed: frozenset[int] = frozenset()
    ) -> Self:
        """Map the arrays of a file; nothing is read yet."""
        arrays = SetArrays(None, {name: file.array(name) for name in ARRAYS})
        return cls(arrays, file.ids(), file.array("numbers"), dead, file, changed)

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays by name."""
        return self._arrays.by_name

    @property
    def places(self) -> Any:
        """The addresses of the searched arrays, as `search_sets` takes them."""
        self.make_ready()
        return self._arrays.places

    @property
    def order(self) -> Order:
        """The order of features."""
        self.make_ready()
        return self._arrays.order

    @property
    def is_ready(self) -> bool:
        """See SegmentRows."""
        return self._arrays.rows is None

    def make_ready(self) -> None:
        """See SegmentRows."""
        if not self.is_ready:
            _ = self._arrays.by_name

    def write(
        self,
        path: Path,
        header: dict[str, Any] | None = None,
        arrays: dict[str, Any] | None = None,
    ) -> None:
        """Write it, removed rows as well, with more for the header and more arrays.

        Raises:
            FileError: If it cannot be written.
        """
        facts = {"rows": len(self), "ids": self.ids.kind, "ascending": self.ids.ascending}
        mine = {**self.arrays, "numbers": self.numbers, **id_arrays(self.ids)}
        write_arrays(path, facts | (header or {}), mine | (arrays or {}))

    def stats(self, settings: SimilaritySettings) -> dict[str, Any]:
        """Counts of rows, sets and features."""
        sets = self.sets
        return {
            **super().stats(settings), "sets": sets.size, "features": int(sets.offsets[-1]),
        }  # fmt: skip

    @property
    def sets(self) -> Sets:
        """The distinct sets."""
        return Sets(self.arrays["features"], self.arrays["offsets"])

    def contents(self, rows: Rows) -> Sets:
        """The features of some rows (int64)."""
        taken_rows = self._arrays.rows
        if taken_rows is not None:
            return taken_rows.sets.take(taken_rows.set_of[rows])
        return self.sets.take(self.arrays["set_of"][rows].astype(np.int64))

    def nearest(self, features: Hashes, ranking: Ranking, n: int, floor: float) -> HitRows:
        """The n most similar living rows, and perhaps others; rows below `floor` may be missing."""
        members, starts = self.arrays["members"], self.arrays["member_starts"]
        living = living_sets(members, starts, self.dead) if self.removed else all_living()
        numbers, scores = self._ranked.best(self.sets, features, ranking, n, floor, living)
        return self.rows((np.zeros(len(numbers), np.int64), numbers, scores), n)

    def rows(self, hits: tuple[Rows, Rows, Scores], most: int | None) -> HitRows:
        """The living rows of matching sets; at most `most` of equal ones."""
        queries, numbers, scores = hits
        starts, members = self.arrays["member_starts"], self.arrays["members"]
        begins, counts = starts[numbers], starts[numbers + 1] - starts[numbers]
        if len(numbers) and int(counts.max()) == 1:
            return self._living(queries, members[begins].astype(np.int64), scores, 0)
        if most is None or not self.removed:
            taken = counts if most is None else np.minimum(counts, most)
            firsts = np.cumsum(taken) - taken
            within = np.arange(int(taken.sum())) - np.repeat(firsts, taken)
            rows = members[np.repeat(begins, taken) + within].astype(np.int64)
            cut = int(counts.sum() - taken.sum())
            return self._living(np.repeat(queries, taken), rows, np.repeat(scores, taken), cut)
        result: dict[int, Any] = {}
        parts, cut = [_NONE], 0
        for number in numbers.tolist():
            if number not in result:
                every = members[starts[number] : starts[number + 1]].astype(np.int64)
                result[number] = every[self.alive(every)]
            parts.append(result[number][:most])
            cut += max(0, len(result[number]) - most)
        taken = np.array([len(part) for part in parts[1:]], np.int64)
        return HitRows(
            np.repeat(queries, taken), np.concatenate(parts), np.repeat(scores, taken), cut
        )

    def _living(self, queries: Rows, rows: Rows, scores: Scores, cut: int) -> HitRows:
        if not self.removed:
            return HitRows(queries, rows, scores, cut)
        keep = self.alive(rows)
        return HitRows(queries[keep], rows[keep], scores[keep], cut)

    def living_rows(self) -> SetRows:
        """The rows that are not removed, with all sets."""
        stop_if_abandoned()
        self.verify()
        rows = self._arrays.rows
        if rows is not None:
            sets, set_of = rows.sets, rows.set_of
        else:
            sets, set_of = self.sets, self.arrays["set_of"].astype(np.int64)
        if not self.removed:
            return SetRows(sets, set_of, self.ids, self.numbers)
        live = self.live_rows()
        ids = IdColumn(self.ids.values.take(pa.array(live)))
        return SetRows(sets, set_of[live], ids, self.numbers[live])


def next_merge(segments: Sequence[SegmentRows], most: int | None = None) -> tuple[int, int] | None:
    """The merge policy: several segments of a level, or one mostly of removed rows.

    Args:
        segments: In order of insertion.
        most: Rows of a segment that is made of several, at most; None: any number.

    Returns:
        The first, and one behind the last; None where nothing is to be merged.
    """
    for at, segment in enumerate(segments):
        if 2 * segment.removed > len(segment):
            return at, at + 1
    levels = [_level(each) for each in segments]
    for level in sorted(set(levels)):
        first = len(levels)
        while first and levels[first - 1] <= level:
            first -= 1
        run = levels[first:]
        # If smaller ones are in between, as many of this level: else a large one is copied for few
        # rows.
        are_due = run[-1:] == [level] or run.count(level) >= SEGMENTS_A_LEVEL
        if len(run) >= SEGMENTS_A_LEVEL and are_due:
            rows = sum(each.living for each in segments[first:])
            return None if most is not None and rows > most else (first, len(levels))
    return None


def joined(
    segments: list[SetSegment], settings: SimilaritySettings, folder: Path | None = None
) -> SetSegment:
    """The living rows of consecutive segments, as one segment.

    Raises:
        DataError: If one of them is damaged: what is copied gets a new checksum.
        FileError: If the disk is full.
    """
    parts = [each.living_rows() for each in segments]
    with contextlib.ExitStack() as reading:
        for each in segments:
            reading.enter_context(each.read_in_order())
        return merged(parts, settings, folder)


def _level(segment: SegmentRows) -> int:
    level = 0
    while segment.living > LEVEL_ROWS * SEGMENTS_A_LEVEL**level:
        level += 1
    return level


def merged(
    parts: list[SetRows], settings: SimilaritySettings, folder: Path | None = None
) -> SetSegment:
    """One segment of consecutive documents, none of them empty.

    Sets without documents are left out. Each other set is copied once, from its address.

    Args:
        parts: The documents, part by part.
        settings: Of the index.
        folder: For large arrays, in files without a name.

    Raises:
        FileError: If these cannot be written.
    """
    arrays = arrays_of(parts, settings, folder)
    ids = IdColumn(pa.concat_arrays([part.ids.values for part in parts]))
    numbers = np.concatenate([part.numbers for part in parts])
    return SetSegment(SetArrays(None, arrays), ids, numbers)


def arrays_of(
    parts: list[SetRows], settings: SimilaritySettings, folder: Path | None = None
) -> dict[str, Any]:
    """The search arrays of documents; see `merged`."""
    stop_if_abandoned()
    places, set_of = [], []
    before = 0
    for part in parts:
        used = np.zeros(part.sets.size, np.bool_)
        used[part.set_of] = True
        set_of.append((np.cumsum(used) - 1 + before)[part.set_of])
        before += int(used.sum())
        places.append(Places.of(part.sets, used))
    room = Workspace(folder, sum(int(each.sizes.sum()) for each in places))
    sets, place_of = collapsed(Places.joined(places), room)
    del places
    documents = place_of[np.concatenate(set_of)]
    del set_of, place_of
    order = order_of(sets)
    sizes, firsts = np.unique(np.diff(sets.offsets), return_index=True)
    arrays = {"features": sets.features, "offsets": sets.offsets} | _members(documents, sets.size)
    arrays |= {
        "sizes": sizes.astype(np.int64), "firsts": np.append(firsts, sets.size).astype(np.int64),
        "order_keys": order.keys, "order_ranks": order.ranks, "sketches": sketches_of(sets, room),
    }  # fmt: skip
    return arrays | postings_of(sets, order, settings, room)


def _members(set_of: Rows, count: int) -> dict[str, Any]:
    """The set of each document, and the documents of each set."""
    member_starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(set_of, minlength=count), out=member_starts[1:])
    members = np.argsort(set_of, kind="stable").astype(np.uint32)
    return {
        "set_of": set_of.astype(np.uint32), "members": members, "member_starts": member_starts,
    }  # fmt: skip


def no_order() -> Order:
    """The order in which no feature is heavy."""
    from neardup.kernels.index.sets import Order

    return Order(frozen(np.zeros(1, np.uint64)), frozen(np.zeros(1, np.uint32)))


class TailFeatures(TailRows):
    """The features of a tail, chained.

    Args:
        order: Any order of features; that of a segment saves time.
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
        reader that met half a change would follow a chain out of the arrays."""
        self._sets: Any = TailSets(
            np.empty(FIRST_FEATURES, np.uint64), np.zeros(len(self.numbers) + 1, np.int64),
            np.zeros(FIRST_ENTRIES, np.uint32), np.empty(2 * FIRST_ENTRIES, np.uint64),
            np.empty(SKETCH_WORDS * len(self.numbers), np.uint64), order, SKETCH_WORDS,
        )  # fmt: skip
        self.places_of_arrays = tail_sets(self._sets)
        """The addresses of these arrays."""

    def put(self, row: int, content: Hashes) -> None:
        """See TailRows.put."""
        from neardup.kernels.index.tail import append_set

        with self.lock:
            self._make_room(row, len(content))
            self._entries = append_set(
                frozen(content), self.places_of_arrays, row, self._entries, *self.made_for
            )

    def put_many(self, first: int, contents: Sets) -> None:
        """See TailRows.put_many."""
        from neardup.kernels.index.scoring import Queries
        from neardup.kernels.index.tail import append_sets

        queries = Queries(frozen(contents.features), frozen(contents.offsets), 0, contents.size)
        with self.lock:
            self._make_room(first, int(contents.offsets[-1] - contents.offsets[0]))
            self._entries = append_sets(
                queries, self.places_of_arrays, first, self._entries, self.settings.condition()
            )

    def offer(self, first: int, contents: Sets, scores: Scores, reach: float) -> tuple[Rows, Rows]:
        """See TailRows.offer: a score is below 0 where no stored one is near."""
        from neardup.kernels.index.offers import offer_sets
        from neardup.kernels.index.scoring import Queries

        queries = Queries(frozen(contents.features), frozen(contents.offsets), 0, contents.size)
        near = np.empty(contents.size, np.int64)
        is_far = scores < 0
        with self.lock:
            self._make_room(first, len(contents.features))
            self._entries = offer_sets(
                queries, scores, self.places_of_arrays, first, self._entries,
                self.settings.condition(), self.settings.condition(reach), near,
            )  # fmt: skip
        return near, np.flatnonzero(is_far & (near < 0))

    def fresh(self) -> TailFeatures:
        """See TailRows.fresh."""
        return TailFeatures(self._order, self.settings)

    def sets(self, count: int) -> Sets:
        """The sets of the first rows."""
        with self.lock:
            offsets = frozen(self._sets.offsets[: count + 1])
            return Sets(frozen(self._sets.features[: int(offsets[-1])]), offsets)

    def sums(self, count: int, ranking: Ranking) -> Any:
        """The sum of the feature weights of each of the first rows: float64 (count,)."""
        sets = self.sets(count)
        if ranking.weights is None:
            return ranking.sums(sets)
        sums = self._sums
        if len(sums) < count:
            new = Sets(sets.features, frozen(sets.offsets[len(sums) :]))
            sums = self._sums = np.concatenate([sums, ranking.sums(new)])
        return sums[:count]

    def search(self, queries: Sets, count: int, similarity: float) -> tuple[Any, Any, Any]:
        """Queries, matching rows among the first `count`, removed ones too, and similarities."""
        from neardup.kernels.index.tail import search_tail

        condition = self.settings.condition(similarity)
        with self.lock:
            return search_tail(  # type: ignore[no-any-return]
                *queries, 0, queries.size, self.places_of_arrays, count, condition
            )

    def _make_room(self, row: int, more: int) -> None:
        """Copy to larger arrays, for more features: readers may still use the old ones."""
        used = int(self._sets.offsets[row])
        if used + more <= self._room[0] and self._entries + more <= self._room[1]:
            return
        from neardup.kernels.index.tail import link_entries, tail_sets

        sets, count = self._sets, self._entries
        if used + more > self._room[0]:
            features = np.empty(2 * (used + more), np.uint64)
            features[:used] = sets.features[:used]
            sets = sets._replace(features=features)
        if count + more > self._room[1]:
            room = 1 << int(count + more).bit_length()
            entries, heads = np.empty(2 * room, np.uint64), np.zeros(room, np.uint32)
            entries[: 2 * count] = sets.entries[: 2 * count]
            link_entries(entries, count, heads)
            sets = sets._replace(entries=entries, heads=heads)
        room_of, places = (len(sets.features), len(sets.heads)), tail_sets(sets)
        # No call between: an interrupt could come after it.
        self._room, self._sets, self.places_of_arrays = room_of, sets, places


class SetTail(Tail[TailFeatures]):
    """The newest documents: at most TAIL_ROWS."""

    __slots__ = ()

    @property
    def sets(self) -> Sets:
        """The features of all rows."""
        return self.rows.sets(self.count)

    def search(self, queries: Sets, similarity: float) -> HitRows:
        """Living rows that are at least this similar to queries."""
        return self.found(*self.rows.search(queries, self.count, similarity))

    def found(self, queries: Rows, rows: Rows, scores: Scores) -> HitRows:
        """The living ones of some matching rows."""
        if self.removed and len(rows):
            keep = self.alive(rows)
            return HitRows(queries[keep], rows[keep], scores[keep], 0)
        return HitRows(queries, rows, scores, 0)

    def nearest(self, features: Hashes, ranking: Ranking) -> HitRows:
        """Living rows that share a feature, and how similar they are."""
        from neardup.kernels.index.related import Compared, score_related

        sets, scores = self.sets, np.empty(len(self), np.float64)
        compared = Compared(
            frozen(sets.features), frozen(sets.offsets),
            frozen(self.rows.sums(len(self), ranking)), all_living(),
        )  # fmt: skip
        score_related(
            ranking.query_of(features), compared, 0, len(self), ranking.measure.number, scores
        )
        rows = np.flatnonzero((scores > 0) & ~self.dead)
        return HitRows(np.zeros(len(rows), np.int64), rows, scores[rows], 0)

    def contents(self, rows: Rows) -> Sets:
        """The features of some rows (int64)."""
        return self.sets.take(rows)

    def living_rows(self, id_kind: str | None) -> SetRows:
        """The rows that are not removed."""
        live, ids = self.live_rows(), self.live_ids(id_kind)
        return SetRows(self.sets.take(live), np.arange(len(live)), ids, self.numbers[live])

    def segment(self, id_kind: str | None) -> SetSegment:
        """See Tail.segment."""
        return merged([self.living_rows(id_kind)], self.rows.settings)
