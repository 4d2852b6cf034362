"""The kind of index whose rows are fingerprints, searched by Hamming distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.fingerprinting.values import check_distance
from neardup.hamming.plans.search_plan import scan_plan
from neardup.hamming.search.closest_rows import closest_rows
from neardup.hamming.search.nearest_rows import nearest_neighbours
from neardup.hamming.search.searchers import (
    First,
    Neighbours,
    ScanSearcher,
    first_hits,
    in_workspace,
)
from neardup.index.code_segments import CodeSegment, CodeTail, merged, next_merge, threads_for
from neardup.index.hits import Closest, Hits, sorted_table
from neardup.index.id_columns import ID_KINDS, IdColumn
from neardup.index.incoming import many_fingerprints, one_fingerprint
from neardup.index.kind_settings import DistanceSettings, check_same_recipe
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from neardup.index.hits import Id
    from neardup.index.protocol import Documents
    from neardup.index.segment_files import SegmentFile
    from neardup.index.stored_rows import Content, SegmentRows
    from neardup.index.versions import Version
    from neardup.runtime.types import Code, Codes, Flags, Rows

__all__ = ["ByDistance"]

WORD: Final = 64
SPREAD: Final = 0x9E3779B97F4A7C15
"""A factor whose multiples are far apart, in the bits of which tables are made."""


class ByDistance(DistanceSettings):
    """Fingerprints, uint64 (n, width), searched exactly within a Hamming distance; see Kind."""

    __slots__ = ()

    name: ClassVar[str] = "distance"
    noun: ClassVar[str] = "fingerprints"
    scores: ClassVar[pa.DataType] = pa.int16()
    keeps: ClassVar[str] = ""

    @property
    def reach(self) -> float:
        """The distance for which it was made."""
        return self.distance

    def settings(self) -> dict[str, Any]:
        """See Kind."""
        return self.described()

    def describe(self, reach: float) -> dict[str, Any]:
        """See Kind."""
        return {
            "distance": reach, "made_for_distance": self.distance, "bits": self.bits,
            "plan": self.plan, "recipe": self.recipe.digest if self.recipe else None,
        }  # fmt: skip

    def title(self, reach: float) -> str:
        """See Kind."""
        return f"{self.bits} bits, distance {reach}"

    def within(self, limit: float, reach: float) -> float:
        """See Kind."""
        check_distance(limit)  # type: ignore[arg-type]  # which it looks at
        if limit > reach:
            raise UsageError(
                f"distance is {limit}, but the index was made for {reach}:"
                " use `nearest`, or make an index for the larger one"
            )
        return limit

    def one(self, document: Documents) -> Code | None:
        """See Kind: uint64 (width,), read-only as kernels are compiled for."""
        code: Code | None
        if type(document) is int and document >= 0 == document >> self.bits and self.bits <= WORD:
            code = np.empty(1, np.uint64)
            code[0] = document
        else:
            code = one_fingerprint(document, self)
        if code is not None:
            code.flags.writeable = False
        return code

    def many(self, documents: Documents, workers: int | None = None) -> tuple[Codes, Rows, int]:
        """See Kind."""
        del workers
        values: Any = documents
        codes, rows = many_fingerprints(values, self)
        return codes, rows, len(values)

    def tail(self, segments: Sequence[SegmentRows]) -> CodeTail:
        """See Kind."""
        del segments
        return CodeTail.empty(self.width)

    def build(self, ids: IdColumn, contents: Codes, numbers: Rows) -> CodeSegment:
        """See Kind."""
        return CodeSegment(frozen(contents), ids, numbers)

    def merge(self, segments: list[CodeSegment], folder: Path | None = None) -> CodeSegment:
        """See Kind."""
        del folder
        return merged(segments)

    def next_merge(
        self, segments: Sequence[SegmentRows], most: int | None = None
    ) -> tuple[int, int] | None:
        """See Kind."""
        return next_merge(segments, most)

    def merging_bytes(self, stored: float) -> float:
        """See Kind: the arrays are made in memory before they are written."""
        return 2.5 * stored

    def read(
        self, file: SegmentFile, dead: Flags | None = None, changed: frozenset[int] = frozenset()
    ) -> CodeSegment:
        """See Kind."""
        return CodeSegment.of_file(file, dead, changed)

    def write(self, segment: CodeSegment, path: Path) -> None:
        """See Kind."""
        segment.write(self, path)

    def save(
        self, version: Version[Codes], path: Path, header: dict[str, Any], arrays: dict[str, Any]
    ) -> None:
        """See Kind."""
        self._whole(version).write(self, path, {"index": self.described(), **header}, arrays)

    def numbers(self, version: Version[Codes]) -> Rows:
        """See Kind."""
        return self._whole(version).numbers

    def packed(self, version: Version[Codes]) -> list[Any]:
        """See Kind."""
        whole = self._whole(version)
        return [(whole.codes, whole.ids.values, whole.numbers)] if len(whole) else []

    def unpacked(self, packed: list[Any]) -> tuple[CodeSegment, ...]:
        """See Kind."""
        return tuple(
            CodeSegment(frozen(codes), IdColumn(ids), numbers) for codes, ids, numbers in packed
        )

    def hits(
        self, version: Version[Codes], content: Code, reach: float, most: int | None
    ) -> Hits[int]:
        """See Kind."""
        rows, total = self._hits(version, content, int(reach), most)
        return Hits([(hit[2], hit[0]) for hit in rows[:most]] if total else [], total)

    def closest(self, version: Version[Codes], contents: Codes, reach: float) -> Closest:
        """See Kind; a score is one more than the reach where none is near."""
        distance, tail = int(reach), version.tail
        parts: list[Any] = [
            (segment.searcher(self), segment.dead if segment.removed else None)
            for segment in version.segments
        ]
        if len(tail):
            searcher = ScanSearcher(frozen(tail.codes), scan_plan(len(tail), self.bits))
            parts.append((searcher, tail.dead if tail.removed else None))
        seconds = sum(searcher.plan.seconds for searcher, _ in parts) * len(contents)
        rows = closest_rows(contents, parts, distance, threads_for(None, seconds))
        return Closest(rows.parts, rows.rows, rows.distances)

    def search(
        self, version: Version[Codes], documents: Documents, reach: float, limit: int | None,
        workers: int | None, *, by_age: bool = False,
    ) -> tuple[pa.Table, int]:  # fmt: skip
        """See Kind."""
        codes, rows = many_fingerprints(documents, self)
        threads = None if workers is None else worker_count(workers)
        distance, tail = int(reach), version.tail
        places = range(len(version.segments) + 1)
        firsts = [None if limit is None else First(max(limit, 1), by_age=by_age) for _ in places]
        parts = [
            (
                segment.search(codes, distance, self, threads, first),
                segment.numbers,
                segment.ids,
            )
            for segment, first in zip(version.segments, firsts, strict=False)
        ]
        id_type = ID_KINDS[version.id_kind or "int"]
        if len(tail):
            neighbours = self._scan(tail, codes, distance, threads, firsts[-1])
            ids = IdColumn(pa.array(tail.ids[: len(tail)], id_type))
            parts.append((neighbours, tail.numbers, ids))
        table, cut = sorted_table(parts, rows, id_type, limit, by_age=by_age)
        cut += sum(first.cut for first in firsts if first is not None)
        return table.replace_schema_metadata({"cut": str(cut)}), len(codes)

    def nearest(
        self, version: Version[Codes], content: Code, n: int, reach: float, by: str | None
    ) -> list[tuple[Id, int]]:
        """See Kind."""
        _check_by(by)
        rows, total = self._hits(version, content, int(reach), n)
        if total < n:
            table = self._scanned(version, content[None, :], np.zeros(1, np.int64), n, None)
            return list(zip(table["id"].to_pylist(), table["distance"].to_pylist(), strict=True))
        return [(hit[2], hit[0]) for hit in rows[:n]]

    def nearest_batch(
        self, version: Version[Codes], documents: Documents, n: int, reach: float, by: str | None,
        workers: int | None,
    ) -> pa.Table:  # fmt: skip
        """See Kind; one scan for all of them."""
        del reach
        _check_by(by)
        codes, rows = many_fingerprints(documents, self)
        chosen = slice(None) if n else slice(0)
        return self._scanned(version, codes[chosen], rows[chosen], max(n, 1), workers)

    def example(self, row: int) -> int:
        """See Kind."""
        return row * SPREAD % (1 << self.bits)

    def check_merging(self, other: ByDistance, *, foreign: bool) -> None:
        """See Kind."""
        if self.bits != other.bits:
            raise UsageError(f"the other index has {other.bits} bits, this one {self.bits}")
        check_same_recipe(self.recipe, other.recipe, foreign=foreign)

    def batches(self, version: Version[Codes]) -> Iterator[tuple[pa.Array, Codes]]:
        """See Kind."""
        for part in version.parts():
            if part.removed:
                live = part.live_rows()
                yield part.ids.values.take(pa.array(live)), part.codes[live]
            else:
                yield part.ids.values, part.codes

    def values(self, contents: Codes) -> list[int]:
        """See Kind."""
        columns = [contents[:, w].tolist() for w in range(contents.shape[1])]
        return [
            sum(part << 64 * w for w, part in enumerate(parts))
            for parts in zip(*columns, strict=True)
        ]

    def none(self) -> Codes:
        """See Kind."""
        return np.empty((0, self.width), np.uint64)

    def joined(self, parts: list[Codes]) -> Codes:
        """See Kind."""
        return np.concatenate(parts)

    def taken(self, contents: Codes, rows: Rows) -> Codes:
        """See Kind."""
        return contents[rows]

    def row(self, contents: Codes, row: int) -> Code:
        """See Kind."""
        code: Code = contents[row]
        return code

    def bunched(self, contents: list[Content]) -> Codes:
        """See Kind."""
        return np.stack(contents)

    def equal(self, left: Codes, right: Codes) -> Flags:
        """See Kind."""
        is_equal: Flags = (left == right).all(axis=1)
        return is_equal

    def _whole(self, version: Version[Codes]) -> CodeSegment:
        """All living rows in one segment."""
        parts = version.parts()
        if len(parts) == 1 and not parts[0].removed:
            segment: CodeSegment = parts[0]
            return segment
        return merged([*parts, CodeTail.empty(self.width).segment(version.id_kind)])

    def _hits(
        self, version: Version[Codes], code: Code, distance: int, most: int | None
    ) -> tuple[list[tuple[int, int, Id]], int]:
        """Distance, number and id of the rows within the distance, sorted, and their number.

        At least the first `most` are returned.
        """
        rows: list[tuple[int, int, Id]] = []
        total = 0
        for segment in version.segments:
            hits, count = segment.search_once(code, distance, self, most)
            if count:
                rows += hits
                total += count
        if len(version.tail):
            hits = _tail_hits(version.tail, code, distance)
            rows += hits
            total += len(hits)
        if total > 1:
            rows.sort(key=_by_distance)
        return rows, total

    def _scanned(
        self, version: Version[Codes], codes: Codes, rows: Rows, n: int, workers: int | None
    ) -> pa.Table:
        """The n nearest rows of each query, by comparing all rows."""
        threads, tail = worker_count(workers), version.tail
        parts = [
            (
                nearest_neighbours(
                    segment.codes, codes, n, threads, segment.dead if segment.removed else None
                ),
                segment.numbers,
                segment.ids,
            )
            for segment in version.segments
        ]
        id_type = ID_KINDS[version.id_kind or "int"]
        if len(tail):
            dead = tail.dead if tail.removed else None
            neighbours = nearest_neighbours(tail.codes, codes, n, threads, dead)
            parts.append(
                (neighbours, tail.numbers, IdColumn(pa.array(tail.ids[: len(tail)], id_type)))
            )
        return sorted_table(parts, rows, id_type, n)[0]

    def _scan(
        self, tail: CodeTail, codes: Codes, distance: int, workers: int | None, first: First | None
    ) -> Neighbours:
        plan = scan_plan(len(tail), self.bits)
        threads = threads_for(workers, plan.seconds * len(codes))
        if first is not None:
            first.dead = tail.dead if tail.removed else None
        neighbours = ScanSearcher(frozen(tail.codes), plan).search(codes, distance, threads, first)
        return (
            neighbours.only(~tail.dead[neighbours.rows])
            if tail.removed and first is None
            else neighbours
        )


def _tail_hits(tail: CodeTail, code: Code, distance: int) -> list[tuple[int, int, Id]]:
    from neardup.kernels.hamming.hash_tables import search_rows_once

    words, count = tail.flat, len(tail)
    workspace = in_workspace(search_rows_once, code, words, count, tail.multipliers, distance)
    hits, _ = first_hits(workspace, None, None)
    if tail.removed:
        hits = [hit for hit in hits if not tail.is_dead(hit[1])]
    numbers, ids = tail.numbers, tail.ids
    return [(d, int(numbers[row]), ids[row]) for d, row in hits]


def _by_distance(hit: tuple[int, int, Id]) -> tuple[int, int]:
    return hit[0], hit[1]


def _check_by(by: str | None) -> None:
    if by not in {None, "distance"}:
        raise UsageError(f"by is {by!r:.60}, but the index is by distance: leave it out")
