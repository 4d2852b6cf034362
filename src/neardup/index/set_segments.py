"""Segments of an index by similarity: documents that do not change, with what finds them.

Equal documents are one set. The sets stand by size, so that the sizes that can be similar enough
are a range, and are found by the first of their features in an order that is the segment's own.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from neardup.index.id_columns import IdColumn
from neardup.index.ranking import RankedSets, all_living, living_sets
from neardup.index.segment_files import id_arrays, write_arrays
from neardup.index.set_arrays import (
    Places,
    Room,
    Sets,
    collapsed,
    order_of,
    postings_of,
    sketches_of,
)
from neardup.index.stored_rows import SegmentRows
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import stop_if_abandoned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from neardup.index.kind_settings import SimilaritySettings
    from neardup.index.ranking import Ranking
    from neardup.index.segment_files import SegmentFile
    from neardup.kernels.index.sets import Order
    from neardup.runtime.types import Flags

__all__ = [
    "FoundRows",
    "SetRows",
    "SetSegment",
    "build",
    "joined",
    "merged",
    "next_merge",
    "no_order",
]

ARRAYS: Final = (
    "features", "offsets", "set_of", "members", "member_starts", "sizes", "firsts", "order_keys",
    "order_ranks", "starts", "entries", "rest_starts", "rest_entries", "numbers", "sketches",
)  # fmt: skip
"""What a file holds of a segment."""
SEGMENTS_A_LEVEL: Final = 4
LEVEL_ROWS: Final = 4096
"""Of a segment of the lowest level, at most."""
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
    set_of: Any
    ids: IdColumn
    numbers: Any


class FoundRows(NamedTuple):
    """What a search found: int64 `queries`, ascending, int64 `rows`, float64 `scores`.

    Fewer rows than in all where there is a limit: then `cut` are left out.
    """

    queries: Any
    rows: Any
    scores: Any
    cut: int

    def first(self, most: int, numbers: Any, *, by_age: bool = False) -> FoundRows:
        """At most so many for each query: the most similar, or the oldest by `numbers` of rows."""
        if len(self.rows) <= most:
            return self
        ages = numbers[self.rows]
        order = np.lexsort((ages, self.queries) if by_age else (ages, -self.scores, self.queries))
        ordered = self.queries[order]
        first = np.searchsorted(ordered, ordered, side="left")
        order = order[np.arange(len(ordered)) - first < most]
        cut = self.cut + len(self.rows) - len(order)
        return FoundRows(self.queries[order], self.rows[order], self.scores[order], cut)


class SetSegment(SegmentRows):
    """Documents and what finds them.

    Args:
        arrays: By name: features, offsets, set_of, members, member_starts, sizes, firsts,
            order_keys, order_ranks, starts, entries, rest_starts, rest_entries, sketches, numbers.
        ids: Of the rows.
        dead: bool (n,), True for removed rows; taken over, and not changed.
        file: Of SegmentRows.
        changed: Of SegmentRows.
    """

    COPIED = ("features", "offsets", "set_of", "numbers", "ids", "ends")

    def __init__(
        self,
        arrays: dict[str, Any],
        ids: IdColumn,
        dead: Flags | None = None,
        file: SegmentFile | None = None,
        changed: frozenset[int] = frozenset(),
    ) -> None:
        """Take the arrays."""
        from neardup.kernels.index.sets import Order
        from neardup.kernels.index.similar import stored_sets

        super().__init__(ids, arrays["numbers"], dead, file, changed)
        self.arrays = {name: frozen(array) for name, array in arrays.items()}
        self.order = Order(self.arrays["order_keys"], self.arrays["order_ranks"])
        self.places = stored_sets(self.arrays)
        """Where the arrays are that are searched, as `search_sets` takes it."""
        self._ranked = RankedSets()

    @classmethod
    def of_file(
        cls, file: SegmentFile, dead: Flags | None = None, changed: frozenset[int] = frozenset()
    ) -> Self:
        """Map the arrays of a file; nothing is read yet."""
        return cls({name: file.array(name) for name in ARRAYS}, file.ids(), dead, file, changed)

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
        mine = {**self.arrays, **id_arrays(self.ids)}
        write_arrays(path, facts | (header or {}), mine | (arrays or {}))

    def stats(self, settings: SimilaritySettings) -> dict[str, Any]:
        """Rows, and what they hold."""
        sets = self.sets
        return {
            **super().stats(settings), "sets": sets.size, "features": int(sets.offsets[-1]),
        }  # fmt: skip

    @property
    def sets(self) -> Sets:
        """The distinct sets."""
        return Sets(self.arrays["features"], self.arrays["offsets"])

    def contents(self, rows: Any) -> Sets:
        """The features of some rows (int64)."""
        return self.sets.take(self.arrays["set_of"][rows].astype(np.int64))

    def nearest(self, features: Any, ranking: Ranking, n: int, floor: float) -> FoundRows:
        """The n most similar living rows, and others; those below `floor` may be missing."""
        members, starts = self.arrays["members"], self.arrays["member_starts"]
        living = living_sets(members, starts, self.dead) if self.removed else all_living()
        numbers, scores = self._ranked.best(self.sets, features, ranking, n, floor, living)
        return self.rows((np.zeros(len(numbers), np.int64), numbers, scores), n)

    def rows(self, found: tuple[Any, Any, Any], most: int | None) -> FoundRows:
        """The living rows of found sets; of equal ones at most so many."""
        queries, numbers, scores = found
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
        known: dict[int, Any] = {}
        parts, cut = [_NONE], 0
        for number in numbers.tolist():
            if number not in known:
                every = members[starts[number] : starts[number + 1]].astype(np.int64)
                known[number] = every[self.alive(every)]
            parts.append(known[number][:most])
            cut += max(0, len(known[number]) - most)
        taken = np.array([len(part) for part in parts[1:]], np.int64)
        return FoundRows(
            np.repeat(queries, taken), np.concatenate(parts), np.repeat(scores, taken), cut
        )

    def _living(self, queries: Any, rows: Any, scores: Any, cut: int) -> FoundRows:
        if not self.removed:
            return FoundRows(queries, rows, scores, cut)
        keep = self.alive(rows)
        return FoundRows(queries[keep], rows[keep], scores[keep], cut)

    def living_rows(self) -> SetRows:
        """Those that are not removed, with all sets."""
        stop_if_abandoned()
        self.verify()
        set_of = self.arrays["set_of"].astype(np.int64)
        if not self.removed:
            return SetRows(self.sets, set_of, self.ids, self.numbers)
        live = self.live_rows()
        ids = IdColumn(self.ids.values.take(pa.array(live)))
        return SetRows(self.sets, set_of[live], ids, self.numbers[live])


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
        # Where smaller ones lie between, as many of the level: else a large one is copied for few.
        are_due = run[-1:] == [level] or run.count(level) >= SEGMENTS_A_LEVEL
        if len(run) >= SEGMENTS_A_LEVEL and are_due:
            rows = sum(each.living for each in segments[first:])
            return None if most is not None and rows > most else (first, len(levels))
    return None


def joined(
    segments: list[SetSegment], settings: SimilaritySettings, folder: Path | None = None
) -> SetSegment:
    """The living rows of segments that stand one after the other, as one.

    Raises:
        DataError: If one of them is damaged: what is copied gets a new checksum.
        FileError: If there is no room in the folder.
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
    """One segment of documents that stand one after the other; none may be empty.

    Sets of no document are left out. Each set that stays is copied once, from where it is.

    Args:
        parts: Which.
        settings: Of the index.
        folder: Where the larger arrays are put if they are many bytes, in files without a name.

    Raises:
        FileError: If these cannot be written.
    """
    stop_if_abandoned()
    places, set_of = [], []
    before = 0
    for part in parts:
        used = np.zeros(part.sets.size, np.bool_)
        used[part.set_of] = True
        set_of.append((np.cumsum(used) - 1 + before)[part.set_of])
        before += int(used.sum())
        places.append(Places.of(part.sets, used))
    room = Room(folder, sum(int(each.sizes.sum()) for each in places))
    sets, place_of = collapsed(Places.joined(places), room)
    del places
    ids = IdColumn(pa.concat_arrays([part.ids.values for part in parts]))
    numbers = np.concatenate([part.numbers for part in parts])
    documents = place_of[np.concatenate(set_of)]
    del set_of, place_of
    return _found_by(sets, documents, ids, numbers, settings, room)


def build(rows: SetRows, settings: SimilaritySettings) -> SetSegment:
    """Make what finds documents; none may be empty."""
    return merged([rows], settings)


def _found_by(
    sets: Sets, set_of: Any, ids: IdColumn, numbers: Any, settings: SimilaritySettings, room: Room
) -> SetSegment:
    """The segment of different sets, by size, and of documents, each of one of them."""
    count = sets.size
    arrays = {"features": sets.features, "offsets": sets.offsets} | _members(set_of, count)
    sizes, firsts = np.unique(np.diff(sets.offsets), return_index=True)
    order = order_of(sets)
    arrays |= {
        "sizes": sizes.astype(np.int64), "firsts": np.append(firsts, count).astype(np.int64),
        "order_keys": order.keys, "order_ranks": order.ranks, "numbers": numbers,
        "sketches": sketches_of(sets, room),
    }  # fmt: skip
    return SetSegment(arrays | postings_of(sets, order, settings, room), ids)


def _members(set_of: Any, count: int) -> dict[str, Any]:
    """Of documents the set, and of sets the documents."""
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
