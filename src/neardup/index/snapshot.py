"""What an index holds at one moment, unchanging, and every answer that it gives.

Readers take a snapshot once a call, without a lock. Writers make the next one and put it in its
place, under a lock. So a call sees what was there when it began, whatever happens meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.hamming.plans.search import scan_plan
from neardup.hamming.search.searchers import Neighbours, ScanSearcher, first_hits, within_room
from neardup.index.clock import Clock
from neardup.index.hits import Places, sorted_table
from neardup.index.ids import ID_KINDS, IdColumn, id_array, id_kind, is_one_id
from neardup.index.segments import Segment, Tail, merged, threads_for
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.index.settings import Settings

__all__ = ["Snapshot"]

MOST_APART: Final = 1 << 40
Hit = tuple[int, int, Any]
"""Distance, number, id."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Segments and the tail, in order of insertion.

    Args:
        settings: Of the index.
        segments: Each with what is removed from it.
        tail: The newest rows.
        kind: Of the ids; None before the first one.
        next: The number that the next row gets.
        clock: When rows were added; numbers from `next` on are not this snapshot's.
    """

    settings: Settings
    segments: tuple[Segment, ...]
    tail: Tail
    kind: str | None
    next: int
    clock: Clock

    @classmethod
    def empty(cls, settings: Settings) -> Snapshot:
        """Without a document."""
        return cls(settings, (), Tail.empty(settings.width), None, 0, Clock())

    @classmethod
    def of_segments(
        cls, settings: Settings, segments: tuple[Segment, ...], end: int, clock: Clock
    ) -> Snapshot:
        """Segments, and an empty tail."""
        kind = segments[0].ids.kind if segments else None
        return cls(settings, segments, Tail.empty(settings.width), kind, end, clock)

    def __len__(self) -> int:
        """Documents."""
        return sum(each.living for each in self.segments) + self.tail.living

    def __contains__(self, identity: Any) -> bool:
        """Whether a document of this id is there."""
        return self.number(identity) is not None

    def parts(self) -> tuple[Segment, ...]:
        """All rows as segments."""
        tail = self.tail
        return (*self.segments, tail.segment(self.kind)) if len(tail) else self.segments

    def whole(self) -> Segment:
        """All living rows in one segment."""
        parts = self.parts()
        if len(parts) == 1 and not parts[0].removed:
            return parts[0]
        return merged([*parts, Tail.empty(self.settings.width).segment(self.kind)])

    def oldest(self) -> int:
        """A number that no living row is below."""
        numbers = self.segments[0].numbers if self.segments else self.tail.numbers
        return int(numbers[0]) if len(numbers) else self.next

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """All ids (an Arrow array) and fingerprints, uint64 (n, width), in order of insertion."""
        for part in self.parts():
            if part.removed:
                live = part.live_rows()
                yield part.ids.values.take(pa.array(live)), part.codes[live]
            else:
                yield part.ids.values, part.codes

    def number(self, identity: Any) -> int | None:
        """How many documents were added before this one; None if the id is not present."""
        if id_kind(identity) != self.kind:
            return None
        row = self.tail.find(identity)
        if row >= 0:
            return int(self.tail.numbers[row])
        for segment in self.segments:
            row = segment.find(identity)
            if row >= 0:
                return int(segment.numbers[row])
        return None

    def places(self, column: IdColumn) -> Places:
        """Where each id is stored."""
        places = Places.nowhere(len(column))
        if column.kind != self.kind:
            return places
        for i, segment in enumerate(self.segments):
            rows = segment.ids.find(column)
            here = np.flatnonzero(rows >= 0)
            if segment.removed:
                here = here[~segment.dead[rows[here]]]
            places.put(here, i, rows[here])
        if self.tail.living:
            found = np.array([self.tail.find(each) for each in column.values.to_pylist()], np.int64)
            here = np.flatnonzero(found >= 0)
            places.put(here, len(self.segments), found[here])
        return places

    def present(self, ids: Any) -> Places:
        """Where one id or each of many is stored.

        Raises:
            KeyError: If one is not.
        """
        wanted = id_array([ids] if is_one_id(ids) else ids)
        places = self.places(IdColumn(wanted))
        absent = np.flatnonzero(~places.present)
        if len(absent):
            raise KeyError(wanted[int(absent[0])].as_py())
        return places

    def codes_at(self, places: Places) -> Any:
        """The fingerprints of stored documents, uint64 (n, width)."""
        codes = np.empty((len(places.rows), self.settings.width), np.uint64)
        stored = [*(segment.codes for segment in self.segments), self.tail.codes]
        for i, part in enumerate(stored):
            here = places.segments == i
            codes[here] = part[places.rows[here]]
        return codes

    def numbers_at(self, places: Places) -> Any:
        """The numbers of stored documents, int64 (n,)."""
        numbers = np.empty(len(places.rows), np.int64)
        stored = [*(segment.numbers for segment in self.segments), self.tail.numbers]
        for i, part in enumerate(stored):
            here = places.segments == i
            numbers[here] = part[places.rows[here]]
        return numbers

    def hits(self, codes: Any, distance: int, most: int | None = None) -> tuple[list[Hit], int]:
        """What is within the distance of uint64 (width,), sorted, and how many there are.

        Of many, at least the first `most`.
        """
        found: list[Hit] = []
        total = 0
        for segment in self.segments:
            hits, count = segment.search_once(codes, distance, self.settings, most)
            if count:
                found += hits
                total += count
        if len(self.tail):
            hits = self._tail_hits(codes, distance)
            found += hits
            total += len(hits)
        if total > 1:
            found.sort(key=_by_distance)
        return found, total

    def nearest(self, codes: Any, n: int) -> list[Hit]:
        """The n nearest of uint64 (width,), sorted: all rows are compared."""
        best: list[Hit] = []
        for segment in self.segments:
            apart = np.bitwise_count(segment.codes ^ codes).sum(axis=1, dtype=np.int64)
            if segment.removed:
                apart[segment.dead] = MOST_APART
            rows = np.argsort(apart, kind="stable")[: min(n, segment.living)]
            best += [
                (int(apart[row]), int(segment.numbers[row]), segment.ids.value(int(row)))
                for row in rows
            ]
        if len(self.tail):
            best += self._tail_hits(codes, self.settings.bits)
        best.sort(key=_by_distance)
        return best[:n]

    def search(
        self,
        codes: Any,
        rows: Any,
        distance: int,
        limit: int | None,
        workers: int | None,
        *,
        by_age: bool = False,
    ) -> pa.Table:
        """What is within the distance of each of many.

        Args:
            codes: uint64 (q, width).
            rows: int64 (q,): what the table calls each.
            distance: How far.
            limit: The most for one query.
            workers: Threads; as many as are worth it if None.
            by_age: The first are those that were added first, not the nearest.

        Returns:
            See Queries.query_batch.
        """
        parts = [
            (
                segment.search(codes, distance, self.settings, workers),
                segment.numbers,
                segment.ids,
            )
            for segment in self.segments
        ]
        kind = ID_KINDS[self.kind or "int"]
        tail = self.tail
        if len(tail):
            found = self._scan_tail(codes, distance, workers)
            ids = IdColumn(pa.array(tail.ids[: len(tail)], kind))
            parts.append((found, tail.numbers, ids))
        return sorted_table(parts, rows, kind, limit, by_age=by_age)

    def _tail_hits(self, codes: Any, distance: int) -> list[Hit]:
        from neardup.kernels.hamming.tables import search_rows_once

        tail = self.tail
        words, count = tail.flat, len(tail)
        room = within_room(search_rows_once, codes, words, count, tail.multipliers, distance)
        hits, _ = first_hits(room, None, None)
        if tail.removed:
            hits = [hit for hit in hits if not tail.is_dead(hit[1])]
        numbers, ids = tail.numbers, tail.ids
        return [(d, int(numbers[row]), ids[row]) for d, row in hits]

    def _scan_tail(self, codes: Any, distance: int, workers: int | None) -> Neighbours:
        tail = self.tail
        plan = scan_plan(len(tail), self.settings.bits)
        threads = threads_for(workers, plan.seconds * len(codes))
        found = ScanSearcher(frozen(tail.codes), plan).search(codes, distance, threads)
        return found.only(~tail.dead[found.rows]) if tail.removed else found


def _by_distance(hit: Hit) -> tuple[int, int]:
    return hit[0], hit[1]
