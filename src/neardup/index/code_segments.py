"""Segments: stored fingerprints that do not change, with their ids; and how segments are merged.

New fingerprints wait in a tail of at most TAIL_ROWS, which queries scan. A full tail becomes a
segment, and two neighbouring segments of one level are merged, a level being GROWTH times as large
as the one below: so an index has few segments, and a row is copied a few times a level in its life.
Segments stand in order of insertion. Removed rows are only marked, and left out by the next merge.
Neither a segment nor a tail changes: what is added or removed makes another, which shares the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.hamming.plans.blocks import multipliers_of
from neardup.hamming.search.build import build_searcher, plan_for
from neardup.index.id_columns import ID_KINDS, IdColumn
from neardup.index.stored_rows import MarkedRows, TailRows, sound_from
from neardup.index.stored_rows import Tail as BaseTail
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import stop_if_abandoned, worker_count

if TYPE_CHECKING:
    from neardup.hamming.search.searchers import First, Neighbours, Searcher
    from neardup.index.kind_settings import Settings
    from neardup.runtime.types import Code, Codes, Flags, Rows, Words

__all__ = ["TAIL_ROWS", "Segment", "Tail", "due", "merged", "settled", "threads_for"]

TAIL_ROWS: Final = 4096
GROWTH: Final = 16
WORTH_THREADS: Final = 0.005
"""Seconds of work from which on threads are started, which takes up to a millisecond."""


class Segment(MarkedRows):
    """Fingerprints in order of insertion.

    Args:
        codes: uint64 (n, width).
        ids: Their ids, all different.
        numbers: int64 (n,), ascending: the place of each in the order of all insertions.
        dead: bool (n,), True for removed rows; taken over, and not changed.
        searcher: What finds rows in it, if it was made before.
    """

    def __init__(
        self,
        codes: Codes,
        ids: IdColumn,
        numbers: Rows,
        dead: Flags | None = None,
        searcher: Searcher | None = None,
    ) -> None:
        """Make no searcher yet."""
        super().__init__(ids, numbers, dead)
        self.codes = codes
        self._made = [searcher]  # one list for all segments of these rows

    def contents(self, rows: Rows) -> Codes:
        """The fingerprints of some rows (int64)."""
        return self.codes[rows]

    def stats(self, settings: Settings) -> dict[str, Any]:
        """Rows, and how they are searched."""
        searcher = self.searcher(settings)
        return {
            **super().stats(settings),
            "plan": searcher.plan.name,
            "tables": len(searcher.plan.masks),
            "key_bits": searcher.plan.key_bits,
            "table_bytes": searcher.nbytes,
        }

    def searcher(self, settings: Settings) -> Searcher:
        """What finds rows in it; made when it is first asked for."""
        made = self._made[0]
        if made is None:
            memory = settings.table_memory()
            plan = plan_for(self.codes, settings.distance, settings.bits, settings.plan, memory)
            made = build_searcher(self.codes, plan, settings.distance, settings.bits)
            self._made[0] = made
        return made

    def search(
        self,
        queries: Codes,
        distance: int,
        settings: Settings,
        workers: int | None,
        first: First | None = None,
    ) -> Neighbours:
        """Living rows within the distance of each query; with `first` those that it asks."""
        searcher = self.searcher(settings)
        threads = threads_for(workers, searcher.plan.seconds * len(queries))
        if first is not None:
            first.dead = self.dead if self.removed else None
        found = searcher.search(queries, distance, threads, first)
        return found.only(~self.dead[found.rows]) if self.removed and first is None else found

    def search_once(
        self, query: Code, distance: int, settings: Settings, most: int | None = None
    ) -> tuple[list[tuple[int, int, Any]], int]:
        """The (distance, number, id) of the living rows within the distance of one query.

        Of many, at least the first `most`; and how many there are.
        """
        searcher = self._made[0] or self.searcher(settings)
        marks, recent = self.gone
        room = most + len(recent) if recent and most is not None else most
        hits, count = searcher.search_once(query, distance, room, marks)
        if not count:
            return [], 0
        if recent and len(hits) < count:
            hits, count = searcher.search_once(query, distance, most, self.dead)
        elif recent:
            hits = [hit for hit in hits if hit[1] not in recent]
            count = len(hits)
        return [(d, int(self.numbers[row]), self.ids.value(row)) for d, row in hits], count


class TailCodes(TailRows):
    """The fingerprints of a tail.

    Args:
        width: uint64 words of each.
    """

    def __init__(self, width: int) -> None:
        """No row."""
        super().__init__(TAIL_ROWS)
        self.codes = np.zeros((TAIL_ROWS, width), np.uint64)
        self.flat = frozen(self.codes).reshape(-1)
        self.multipliers = multipliers_of(width)

    def put(self, row: int, content: Any) -> None:
        """See TailRows.put."""
        self.codes[row] = content

    def content(self, row: int) -> Any:
        """See TailRows.content."""
        return self.codes[row]

    def fresh(self) -> TailCodes:
        """See TailRows.fresh."""
        return TailCodes(self.codes.shape[1])


class Tail(BaseTail[TailCodes]):
    """The newest rows, which queries scan: at most TAIL_ROWS."""

    __slots__ = ()

    @classmethod
    def empty(cls, width: int) -> Tail:
        """Without rows, for fingerprints of so many words."""
        return cls(TailCodes(width))

    @property
    def codes(self) -> Codes:
        """uint64 (rows, width)."""
        return self._rows.codes[: self._count]

    @property
    def flat(self) -> Words:
        """The words of all fingerprints one after the other, and of rows that are not there yet."""
        flat: Words = self._rows.flat
        return flat

    @property
    def multipliers(self) -> tuple[Any, ...]:
        """As kernels take them, for fingerprints of this width."""
        return self._rows.multipliers

    def contents(self, rows: Rows) -> Codes:
        """The fingerprints of some rows (int64)."""
        return self.codes[rows]

    def segment(self, kind: str | None) -> Segment:
        """Its living rows."""
        live = self.live_rows()
        ids = pa.array([self.ids[row] for row in live.tolist()], ID_KINDS[kind or "int"])
        return Segment(self.codes[live], IdColumn(ids), self.numbers[live])


def threads_for(workers: int | None, seconds: float) -> int:
    """So many as said; else as many as are worth it for work that takes so long."""
    return worker_count(workers) if workers or seconds > WORTH_THREADS else 1


def merged(segments: list[Segment]) -> Segment:
    """The living rows of several segments that stand one after the other.

    Raises:
        DataError: If one of them is damaged: what is copied gets a new checksum.
    """
    for each in segments:
        stop_if_abandoned()
        each.verify()
    keep = [each.live_rows() if each.removed else None for each in segments]
    codes = [_kept(each.codes, rows) for each, rows in zip(segments, keep, strict=True)]
    numbers = [_kept(each.numbers, rows) for each, rows in zip(segments, keep, strict=True)]
    ids = [
        each.ids.values if rows is None else each.ids.values.take(pa.array(rows))
        for each, rows in zip(segments, keep, strict=True)
    ]
    column = IdColumn(pa.concat_arrays(ids))
    stop_if_abandoned()
    return Segment(np.concatenate(codes), column, np.concatenate(numbers))


def due(segments: list[Segment], most: int | None = None) -> tuple[int, int] | None:
    """Which segments `settled` would merge first; see Held.due."""
    for last, segment in enumerate(segments):
        if 2 * segment.removed > len(segment):
            return last, last + 1
        first = last
        while first > 0 and _level(segments[first - 1]) <= _level_of(segments[first : last + 1]):
            rows = sum(each.living for each in segments[first - 1 : last + 1])
            if most is not None and rows > most:
                break
            first -= 1
        if first < last:
            return first, last + 1
    return None


def settled(segments: list[Segment]) -> list[Segment]:
    """The same rows in segments of falling levels, none mostly of removed rows.

    A damaged segment is left as it is, so that the damage stays where its checksum shows it.
    """
    stack: list[Segment] = []
    for segment in segments:
        if not segment.living:
            continue
        stack += _merged_if_sound([segment]) if 2 * segment.removed > len(segment) else [segment]
        first = len(stack) - 1
        while first > 0 and _level(stack[first - 1]) <= _level_of(stack[first:]):
            first -= 1
        if first < len(stack) - 1:
            stack[first:] = _merged_if_sound(stack[first:])
    return stack


def _merged_if_sound(segments: list[Segment]) -> list[Segment]:
    """The same rows, merged if there are several; up to the last damaged segment as they are."""
    sound = sound_from(segments)
    rest = segments[sound:]
    is_whole = len(rest) == 1 and sound > 0
    return [*segments[:sound], *(rest if is_whole or not rest else [merged(rest)])]


def _kept(values: Any, rows: Rows | None) -> Any:
    return values if rows is None else values[rows]


def _level(segment: Segment) -> int:
    return _level_of([segment])


def _level_of(segments: list[Segment]) -> int:
    living = sum(each.living for each in segments)
    level = 0
    while living > TAIL_ROWS * GROWTH**level:
        level += 1
    return level
