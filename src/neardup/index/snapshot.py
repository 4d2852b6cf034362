"""Fingerprints at one moment, unchanging, and every answer that they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.hamming.plans.search import scan_plan
from neardup.hamming.search.nearest import nearest_neighbours
from neardup.hamming.search.searchers import (
    First,
    Neighbours,
    ScanSearcher,
    first_hits,
    within_room,
)
from neardup.index.base.held import Held
from neardup.index.code_segments import Segment, Tail, due, merged, settled, threads_for
from neardup.index.hits import sorted_table
from neardup.index.id_columns import ID_KINDS, IdColumn
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from neardup.index.hits import Places
    from neardup.index.kind_settings import Settings
    from neardup.runtime.types import Codes

__all__ = ["Snapshot"]

Hit = tuple[int, int, Any]
"""Distance, number, id."""


class Snapshot(Held):
    """Fingerprints at one moment; see Held."""

    __slots__ = ()

    @classmethod
    def new_tail(cls, settings: Settings, segments: Iterable[Any]) -> Tail:
        """See Held."""
        del segments
        return Tail.empty(settings.width)

    @classmethod
    def new_segment(cls, settings: Settings, ids: IdColumn, contents: Any, numbers: Any) -> Segment:
        """See Held."""
        del settings
        return Segment(frozen(contents), ids, numbers)

    @classmethod
    def joined(cls, settings: Settings, segments: list[Any]) -> Segment:
        """See Held."""
        del settings
        return merged(segments)

    @classmethod
    def due(cls, segments: list[Any], most: int | None = None) -> tuple[int, int] | None:
        """See Held."""
        return due(segments, most)

    @classmethod
    def merging_bytes(cls, stored: float) -> float:
        """See Held: what is written is made in memory."""
        return 2.5 * stored

    @classmethod
    def arranged(cls, settings: Any, segments: list[Any]) -> list[Any]:
        """See Held."""
        del settings
        return settled(segments)

    @classmethod
    def stored(cls, file: Any, dead: Any = None, changed: frozenset[int] = frozenset()) -> Any:
        """See Held."""
        from neardup.index.segment_files import StoredSegment

        return StoredSegment(file, dead, changed)

    @classmethod
    def write(cls, settings: Settings, segment: Any, path: Path) -> None:
        """See Held."""
        from neardup.index.segment_files import write_segment

        write_segment(path, segment, settings)

    @staticmethod
    def none(settings: Settings) -> Any:
        """See Held."""
        return np.empty((0, settings.width), np.uint64)

    @staticmethod
    def concatenated(parts: list[Any]) -> Any:
        """See Held."""
        return np.concatenate(parts)

    @staticmethod
    def taken(contents: Any, rows: Any) -> Any:
        """See Held."""
        return contents[rows]

    @staticmethod
    def row(contents: Any, row: int) -> Any:
        """See Held."""
        return contents[row]

    @staticmethod
    def bunched(contents: list[Any]) -> Any:
        """See Held."""
        return np.stack(contents)

    @staticmethod
    def equal(left: Any, right: Any) -> Any:
        """See Held."""
        return (left == right).all(axis=1)

    def whole(self) -> Segment:
        """All living rows in one segment."""
        parts = self.parts()
        if len(parts) == 1 and not parts[0].removed:
            found: Segment = parts[0]
            return found
        return merged([*parts, Tail.empty(self.settings.width).segment(self.kind)])

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """All ids (an Arrow array) and fingerprints, uint64 (n, width), in order of insertion."""
        for part in self.parts():
            if part.removed:
                live = part.live_rows()
                yield part.ids.values.take(pa.array(live)), part.codes[live]
            else:
                yield part.ids.values, part.codes

    def contents_at(self, places: Places) -> Any:
        """The fingerprints of stored documents, uint64 (n, width)."""
        codes = np.empty((len(places.rows), self.settings.width), np.uint64)
        stored = [*(segment.codes for segment in self.segments), self.tail.codes]
        for i, part in enumerate(stored):
            here = places.segments == i
            codes[here] = part[places.rows[here]]
        return codes

    def hits(self, codes: Codes, distance: int, most: int | None = None) -> tuple[list[Hit], int]:
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

    def nearest(self, codes: Codes, rows: Any, n: int, workers: int | None) -> pa.Table:
        """The n nearest of each of many, however far: all rows are compared.

        Args:
            codes: uint64 (q, width).
            rows: int64 (q,): what the table calls each.
            n: How many.
            workers: Threads; one per core if None.

        Returns:
            See Queries.nearest_batch.
        """
        threads, tail = worker_count(workers), self.tail
        parts = [
            (
                nearest_neighbours(
                    segment.codes, codes, n, threads, segment.dead if segment.removed else None
                ),
                segment.numbers,
                segment.ids,
            )
            for segment in self.segments
        ]
        kind = ID_KINDS[self.kind or "int"]
        if len(tail):
            dead = tail.dead if tail.removed else None
            found = nearest_neighbours(tail.codes, codes, n, threads, dead)
            parts.append((found, tail.numbers, IdColumn(pa.array(tail.ids[: len(tail)], kind))))
        return sorted_table(parts, rows, kind, n)[0]

    def search(
        self,
        codes: Codes,
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
        asked = range(len(self.segments) + 1)
        firsts = [None if limit is None else First(max(limit, 1), by_age=by_age) for _ in asked]
        parts = [
            (
                segment.search(codes, distance, self.settings, workers, first),
                segment.numbers,
                segment.ids,
            )
            for segment, first in zip(self.segments, firsts, strict=False)
        ]
        kind = ID_KINDS[self.kind or "int"]
        tail = self.tail
        if len(tail):
            found = self._scan_tail(codes, distance, workers, firsts[-1])
            ids = IdColumn(pa.array(tail.ids[: len(tail)], kind))
            parts.append((found, tail.numbers, ids))
        table, cut = sorted_table(parts, rows, kind, limit, by_age=by_age)
        cut += sum(first.cut for first in firsts if first is not None)
        return table.replace_schema_metadata({"cut": str(cut)})

    def _tail_hits(self, codes: Codes, distance: int) -> list[Hit]:
        from neardup.kernels.hamming.tables import search_rows_once

        tail = self.tail
        words, count = tail.flat, len(tail)
        room = within_room(search_rows_once, codes, words, count, tail.multipliers, distance)
        hits, _ = first_hits(room, None, None)
        if tail.removed:
            hits = [hit for hit in hits if not tail.is_dead(hit[1])]
        numbers, ids = tail.numbers, tail.ids
        return [(d, int(numbers[row]), ids[row]) for d, row in hits]

    def _scan_tail(
        self, codes: Codes, distance: int, workers: int | None, first: First | None
    ) -> Neighbours:
        tail = self.tail
        plan = scan_plan(len(tail), self.settings.bits)
        threads = threads_for(workers, plan.seconds * len(codes))
        if first is not None:
            first.dead = tail.dead if tail.removed else None
        found = ScanSearcher(frozen(tail.codes), plan).search(codes, distance, threads, first)
        return found.only(~tail.dead[found.rows]) if tail.removed and first is None else found


def _by_distance(hit: Hit) -> tuple[int, int]:
    return hit[0], hit[1]
