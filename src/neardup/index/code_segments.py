"""Segments: stored fingerprints that do not change, with their ids; and how segments are merged.

New fingerprints wait in a tail of at most TAIL_ROWS, which queries scan. A full tail becomes a
segment, and two neighbouring segments of one level are merged, a level being GROWTH times as large
as the one below: so an index has few segments, and a row is copied a few times a level in its life.
Segments are in order of insertion. Removed rows are only marked, and the next merge leaves them
out. Neither a segment nor a tail changes: an addition or removal makes another one, which shares
the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.errors import DataError
from neardup.hamming.plans.blocks import multipliers_of
from neardup.hamming.plans.search_plan import SearchPlan
from neardup.hamming.search.build import build_searcher, plan_for
from neardup.hamming.search.table_search import TableSearcher
from neardup.index.id_columns import IdColumn
from neardup.index.segment_files import damaged, id_arrays, write_arrays
from neardup.index.stored_rows import SegmentRows, Tail, TailRows
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import stop_if_abandoned, worker_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from neardup.hamming.search.searchers import First, Neighbours, Searcher
    from neardup.index.kind_settings import DistanceSettings
    from neardup.index.segment_files import SegmentFile
    from neardup.runtime.types import Code, Codes, Flags, Rows, Words

__all__ = ["TAIL_ROWS", "CodeSegment", "CodeTail", "merged", "next_merge", "threads_for"]

TAIL_ROWS: Final = 4096
GROWTH: Final = 16
SMALL_ROWS: Final = 1 << 14
"""Rows of a segment whose tables take less time than starting threads."""
PLAN_FIELDS: Final = (
    "name", "key_bits", "candidates", "bytes_per_row", "seconds", "recall", "lookups",
)  # fmt: skip
WORTH_THREADS: Final = 0.005
"""Seconds of work that are worth threads; starting them takes up to a millisecond."""


class CodeSegment(SegmentRows):
    """Fingerprints in order of insertion.

    Args:
        codes: uint64 (n, width).
        ids: Their ids, all different.
        numbers: int64 (n,), ascending: the place of each in the order of all insertions.
        dead: bool (n,), True for removed rows; taken over, and not changed.
        file: Of SegmentRows.
        changed: Of SegmentRows.
    """

    COPIED = ("words", "numbers", "ids", "ends")

    def __init__(
        self,
        codes: Codes,
        ids: IdColumn,
        numbers: Rows,
        dead: Flags | None = None,
        file: SegmentFile | None = None,
        changed: frozenset[int] = frozenset(),
    ) -> None:
        """Make no searcher yet."""
        super().__init__(ids, numbers, dead, file, changed)
        self.codes = codes
        # All segments of these rows share one list. Two readers may both make the searcher at
        # first: each is right, and the last one stays.
        self._searcher: list[Searcher | None] = [None]

    @classmethod
    def of_file(
        cls, file: SegmentFile, dead: Flags | None = None, changed: frozenset[int] = frozenset()
    ) -> Self:
        """Map the arrays of a file; nothing is read yet."""
        return cls(file.array("words"), file.ids(), file.array("numbers"), dead, file, changed)

    def write(
        self,
        settings: DistanceSettings,
        path: Path,
        header: dict[str, Any] | None = None,
        arrays: dict[str, Any] | None = None,
    ) -> None:
        """Write the segment, removed rows included, with further header entries and arrays.

        Raises:
            FileError: If it cannot be written.
        """
        stop_if_abandoned()
        searcher = self.searcher(settings)
        plan = {name: getattr(searcher.plan, name) for name in PLAN_FIELDS}
        mine = {"words": self.codes, "numbers": self.numbers, **id_arrays(self.ids)}
        mine["masks"] = searcher.plan.masks
        if isinstance(searcher, TableSearcher):
            tables = searcher.tables
            mine["table_words"], mine["table_rows"] = tables.codes, tables.rows
            mine["table_starts"], mine["table_factors"] = tables.starts, tables.factors
            plan["heavy"] = tables.heavy
        facts = {
            "rows": len(self), "ids": self.ids.kind, "ascending": self.ids.ascending,
            "bits": settings.bits, "plan": plan | {"distance": settings.distance},
        }  # fmt: skip
        mine = {name: np.ascontiguousarray(array) for name, array in mine.items()}
        write_arrays(path, facts | (header or {}), mine | (arrays or {}))

    def contents(self, rows: Rows) -> Codes:
        """The fingerprints of some rows (int64)."""
        return self.codes[rows]

    def stats(self, settings: DistanceSettings) -> dict[str, Any]:
        """Rows, and how they are searched."""
        searcher = self.searcher(settings)
        return {
            **super().stats(settings),
            "plan": searcher.plan.name,
            "tables": len(searcher.plan.masks),
            "key_bits": searcher.plan.key_bits,
            "table_bytes": searcher.nbytes,
        }

    def searcher(self, settings: DistanceSettings) -> Searcher:
        """The searcher of the segment's rows; made when it is first asked for."""
        searcher = self._searcher[0]
        if searcher is None and self.file is not None:
            searcher = self._searcher[0] = _searcher_in(self.file, settings)
        if searcher is None:
            distance, bits = settings.distance, settings.bits
            plan = plan_for(self.codes, distance, bits, settings.plan, settings.table_memory())
            workers = 1 if len(self) <= SMALL_ROWS else None
            searcher = build_searcher(self.codes, plan, distance, bits, workers)
            self._searcher[0] = searcher
        return searcher

    def search(
        self,
        queries: Codes,
        distance: int,
        settings: DistanceSettings,
        workers: int | None,
        first: First | None = None,
    ) -> Neighbours:
        """Living rows within the distance of each query; with `first` those that it selects."""
        searcher = self.searcher(settings)
        threads = threads_for(workers, searcher.plan.seconds * len(queries))
        if first is not None:
            first.dead = self.dead if self.removed else None
        try:
            neighbours = searcher.search(queries, distance, threads, first)
        except DataError as error:
            raise self._damaged(error) from None
        return (
            neighbours.only(~self.dead[neighbours.rows])
            if self.removed and first is None
            else neighbours
        )

    def search_once(
        self, query: Code, distance: int, settings: DistanceSettings, most: int | None = None
    ) -> tuple[list[tuple[int, int, Any]], int]:
        """The (distance, number, id) of the living rows within the distance of one query.

        At least the first `most` of them, and their number.
        """
        searcher = self._searcher[0] or self.searcher(settings)
        marks, recent = self.gone
        room = most + len(recent) if recent and most is not None else most
        try:
            hits, count = searcher.search_once(query, distance, room, marks)
            if not count:
                return [], 0
            if recent and len(hits) < count:
                hits, count = searcher.search_once(query, distance, most, self.dead)
            elif recent:
                hits = [hit for hit in hits if hit[1] not in recent]
                count = len(hits)
        except DataError as error:
            raise self._damaged(error) from None
        return [(d, int(self.numbers[row]), self.ids.value(row)) for d, row in hits], count

    def _damaged(self, error: DataError) -> DataError:
        """The error of a search whose rows lead out of their arrays, with the file."""
        return error if self.file is None else damaged(self.file.path, str(error))


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

    def put(self, row: int, content: Code) -> None:
        """See TailRows.put."""
        self.codes[row] = content

    def put_many(self, first: int, contents: Codes) -> None:
        """See TailRows.put_many."""
        self.codes[first : first + len(contents)] = contents

    def offer(self, first: int, contents: Codes, scores: Rows, reach: float) -> tuple[Rows, Rows]:
        """See TailRows.offer: a score is beyond `reach` where no stored one is near."""
        from neardup.kernels.hamming.hash_tables import offer_rows

        near, is_far = np.empty(len(contents), np.int64), scores > reach
        flat = frozen(np.ascontiguousarray(contents)).reshape(-1)
        codes = self.codes.reshape(-1)
        offer_rows(flat, scores, codes, first, self.multipliers, int(reach), near)
        return near, np.flatnonzero(is_far & (near < 0))

    def fresh(self) -> TailCodes:
        """See TailRows.fresh."""
        return TailCodes(self.codes.shape[1])


class CodeTail(Tail[TailCodes]):
    """The newest rows, which queries scan: at most TAIL_ROWS."""

    __slots__ = ()

    @classmethod
    def empty(cls, width: int) -> CodeTail:
        """An empty tail for fingerprints of `width` words."""
        return cls(TailCodes(width))

    @property
    def codes(self) -> Codes:
        """The fingerprints: uint64 (rows, width)."""
        return self.rows.codes[: self.count]

    @property
    def flat(self) -> Words:
        """The words of all fingerprints in one array, which has space for further rows."""
        flat: Words = self.rows.flat
        return flat

    @property
    def multipliers(self) -> tuple[Any, ...]:
        """The hash multipliers for fingerprints of this width, as kernels take them."""
        return self.rows.multipliers

    def contents(self, rows: Rows) -> Codes:
        """The fingerprints of some rows (int64)."""
        return self.codes[rows]

    def segment(self, id_kind: str | None) -> CodeSegment:
        """The living rows as a segment."""
        live = self.live_rows()
        return CodeSegment(self.codes[live], self.live_ids(id_kind), self.numbers[live])


def threads_for(workers: int | None, seconds: float) -> int:
    """The number of threads: the caller's, or the number that pays for work of this length."""
    return worker_count(workers) if workers or seconds > WORTH_THREADS else 1


def merged(segments: list[CodeSegment]) -> CodeSegment:
    """The living rows of consecutive segments.

    Raises:
        DataError: If one of them is damaged: copies get a new checksum.
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
    return CodeSegment(np.concatenate(codes), column, np.concatenate(numbers))


def next_merge(segments: Sequence[SegmentRows], most: int | None = None) -> tuple[int, int] | None:
    """The merge policy: neighbours of one level, or a segment mostly of removed rows.

    Args:
        segments: In order of insertion.
        most: Rows of a segment that is made of several, at most; None: any number.

    Returns:
        The first, and the one after the last; None if no merge is due.
    """
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


def _kept(values: Any, rows: Rows | None) -> Any:
    return values if rows is None else values[rows]


def _level(segment: SegmentRows) -> int:
    return _level_of([segment])


def _level_of(segments: Sequence[SegmentRows]) -> int:
    living = sum(each.living for each in segments)
    level = 0
    while living > TAIL_ROWS * GROWTH**level:
        level += 1
    return level


def _searcher_in(file: SegmentFile, settings: DistanceSettings) -> Searcher | None:
    """A searcher of the rows of a file, with the file's tables; None if it has none."""
    stored = file.header["plan"]
    if stored is None or stored["distance"] < settings.distance:
        return None
    plan = SearchPlan(masks=file.array("masks"), **{x: stored[x] for x in PLAN_FIELDS})
    codes, tables = file.array("words"), None
    if "table_factors" in file.header["arrays"]:
        from neardup.kernels.hamming.hash_tables import SearchTables

        tables = SearchTables(
            file.array("table_words"),
            file.array("table_rows"),
            file.array("table_starts"),
            plan.masks,
            np.uint64(64 - plan.key_bits),
            file.array("table_factors"),
            multipliers_of(codes.shape[1]),
            stored["heavy"],
        )
    elif plan.kind != "scan":
        return None
    searcher: Searcher = build_searcher(
        codes, plan, stored["distance"], settings.bits, tables=tables
    )
    return searcher
