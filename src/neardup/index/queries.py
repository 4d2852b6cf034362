"""Asking an index: what is within a distance, what is nearest, what is there.

Queries take no lock: they read one tuple of segments and the tail, which writers replace and never
change, but for marks of removal and rows behind the tail's end.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.fingerprinting.values import check_distance
from neardup.hamming.plans.blocks import multipliers_of
from neardup.hamming.plans.search import scan_plan
from neardup.hamming.search.searchers import Neighbours, ScanSearcher, first_hits, within_room
from neardup.index.clock import Clock
from neardup.index.hits import Hits, Places, sorted_table
from neardup.index.ids import ID_KINDS, IdColumn, id_array, id_kind
from neardup.index.incoming import (
    as_count,
    fingerprint_of_text,
    many_fingerprints,
    one_fingerprint,
    recipe_of_texts,
)
from neardup.index.segments import Segment, Tail
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.settings import Settings

__all__ = ["Queries"]

MOST_APART: Final = 1 << 40


class Queries:
    """The state of an index, and every question about it; see BaseIndex."""

    def __init__(self, settings: Settings) -> None:
        """Start empty."""
        self._settings = settings
        self._lock = threading.RLock()
        self._odd = multipliers_of(settings.width)
        self._narrow_end = 1 << settings.bits if settings.width == 1 else 0
        self._kind: str | None = None
        self._next = 0
        self._clock = Clock()
        self._state: tuple[tuple[Segment, ...], Tail] = ((), Tail(settings.width))

    @property
    def distance(self) -> int:
        """The distance that queries search unless they say a smaller one."""
        return self._settings.distance

    @property
    def bits(self) -> int:
        """Width of the fingerprints."""
        return self._settings.bits

    @property
    def recipe(self) -> Recipe | None:
        """How texts become fingerprints; None if only fingerprints are taken."""
        return self._settings.recipe

    @property
    def id_kind(self) -> str | None:
        """What the ids are, "int" or "str"; None before the first one."""
        return self._kind

    def __repr__(self) -> str:
        """What it holds, for people."""
        segments, tail = self._state
        count = sum(each.living for each in segments) + len(tail.rows)
        kind = type(self).__name__
        return f"<{kind} of {count:,} documents, {self.bits} bits, distance {self.distance}>"

    def __len__(self) -> int:
        """Documents stored."""
        segments, tail = self._read()
        return sum(each.living for each in segments) + len(tail.rows)

    def __contains__(self, identity: Any) -> bool:
        """Whether a document of this id is stored."""
        segments, tail = self._read()
        if id_kind(identity) != self._kind:
            return False
        if identity in tail.rows:
            return True
        for segment in segments:
            row = segment.ids.find_one(identity)
            if row >= 0 and not segment.dead[row]:
                return True
        return identity in tail.rows  # it may have been replaced meanwhile

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        """Each document's (id, fingerprint), in order of insertion."""
        for ids, codes in self.batches():
            columns = [codes[:, w].tolist() for w in range(codes.shape[1])]
            for identity, *parts in zip(ids.to_pylist(), *columns, strict=True):
                yield identity, sum(part << 64 * w for w, part in enumerate(parts))

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """All ids (an Arrow array) and fingerprints, uint64 (n, width), in order of insertion."""
        segments, tail = self._read()
        parts = [*segments, tail.segment(self._kind)] if self._kind and len(tail) else segments
        for segment in parts:
            if segment.removed:
                live = np.flatnonzero(~segment.dead)
                yield segment.ids.values.take(pa.array(live)), segment.codes[live]
            else:
                yield segment.ids.values, segment.codes

    def query(
        self, fingerprint: Any, distance: int | None = None, limit: int | None = None
    ) -> Hits:
        """Find every stored document within the distance.

        Args:
            fingerprint: An int, uint64 (width,), or a text if the index has a recipe.
            distance: At most the index's, which it is unless said.
            limit: The most to return.

        Returns:
            A list of (id, distance), by distance, then by insertion; its `total` says how many
            there are, more than returned where `limit` cut.

        Raises:
            UsageError: For a larger distance than the index was made for, or a wrong fingerprint.
        """
        codes = self._one(fingerprint)
        reach = self._reach(distance)
        if limit is not None:
            limit = as_count("limit", limit)
        if codes is None:
            return Hits([], 0)
        found, total = self._hits(codes, reach, limit)
        if not total:
            return Hits([], 0)
        return Hits([(hit[2], hit[0]) for hit in found[:limit]], total)

    def query_batch(
        self,
        fingerprints: Any,
        distance: int | None = None,
        limit: int | None = None,
        workers: int | None = None,
    ) -> Any:
        """Find every stored document within the distance of each of many.

        Args:
            fingerprints: uint64 (q,) or (q, width), a list of ints, Arrow, or texts.
            distance: At most the index's, which it is unless said.
            limit: The most for one query.
            workers: Threads; one per core unless said.

        Returns:
            pyarrow.Table with row (int64: which query), id, distance (int16), sorted by row,
            distance and insertion. Its schema's metadata says under "cut" how many `limit` cut.

        Raises:
            UsageError: As `query`.
        """
        return self._answers(fingerprints, distance, limit, workers)

    def fingerprint_of(self, text: str) -> int | None:
        """Fingerprint a text by the index's recipe, as neardup.fingerprint.

        Raises:
            UsageError: If it has none.
        """
        return fingerprint_of_text(text, self._settings)

    def fingerprints_of(self, texts: Any) -> Any:
        """Fingerprint texts by the index's recipe, as neardup.fingerprints.

        Raises:
            UsageError: If it has none.
        """
        from neardup.fingerprinting.fingerprints import fingerprints

        return fingerprints(texts, recipe_of_texts(self._settings))

    def first_within(self, fingerprints: Any, distance: int | None = None) -> pa.Table:
        """Find for each of many the document within the distance that was added first.

        Args:
            fingerprints: As of `query_batch`.
            distance: As of `query_batch`.

        Returns:
            row, id, distance as of `query_batch`: at most one for a row.
        """
        return self._answers(fingerprints, distance, 1, None, by_age=True)

    def fingerprints_by_id(self, ids: Any) -> Any:
        """The stored fingerprints of documents, uint64 (n, width).

        Raises:
            KeyError: If an id is not present.
        """
        wanted = id_array(ids)
        segments, tail = self._read()
        places = self._places(IdColumn(wanted))
        absent = np.flatnonzero(~places.present)
        if len(absent):
            raise KeyError(wanted[int(absent[0])].as_py())
        codes = np.empty((len(wanted), self._settings.width), np.uint64)
        for i, stored in enumerate([*(segment.codes for segment in segments), tail.codes]):
            here = places.segments == i
            codes[here] = stored[places.rows[here]]
        return codes

    def nearest(self, fingerprint: Any, n: int = 10) -> list[tuple[Any, int]]:
        """The n stored documents with the smallest distances, however large these are.

        Args:
            fingerprint: As of `query`.
            n: How many.

        Returns:
            A list of (id, distance), by distance, then by insertion.

        Raises:
            UsageError: For n below 0 or a wrong fingerprint.
        """
        n = as_count("n", n)
        codes = self._one(fingerprint)
        if codes is None or n == 0:
            return []
        found, total = self._hits(codes, self.distance, n)
        if total < n:
            found = self._nearest_by_scan(codes, n)
        return [(hit[2], hit[0]) for hit in found[:n]]

    def _read(self) -> tuple[tuple[Segment, ...], Tail]:
        """What a query looks at."""
        return self._state

    def _answers(
        self,
        fingerprints: Any,
        distance: int | None,
        limit: int | None,
        workers: int | None,
        *,
        by_age: bool = False,
    ) -> pa.Table:
        codes, rows = many_fingerprints(fingerprints, self._settings)
        reach, threads = self._reach(distance), worker_count(workers)
        if limit is not None:
            limit = as_count("limit", limit)
        segments, tail = self._read()
        parts = [
            (segment.search(codes, reach, self._settings, threads), segment.numbers, segment.ids)
            for segment in segments
        ]
        dead = list(tail.dead)  # before the count: then what replaced these is counted
        count = len(tail)
        if count:
            found = self._scan_tail(tail, count, dead, codes, reach, threads)
            ids = IdColumn(pa.array(tail.ids[:count], ID_KINDS[self._kind or "int"]))
            parts.append((found, tail.numbers, ids))
        return sorted_table(parts, rows, ID_KINDS[self._kind or "int"], limit, by_age=by_age)

    def _hits(
        self, codes: Any, distance: int, most: int | None = None
    ) -> tuple[list[tuple[int, int, Any]], int]:
        """The (distance, number, id) within the distance, sorted, and how many there are.

        Of many, at least the first `most`.
        """
        segments, tail = self._read()
        found: list[tuple[int, int, Any]] = []
        total = 0
        for segment in segments:
            hits, count = segment.search_once(codes, distance, self._settings, most)
            if count:
                found += hits
                total += count
        count = len(tail.ids)
        if count:
            hits = self._tail_hits(tail, count, codes, distance)
            while len(tail.ids) > count:  # a row that was removed may have been replaced
                count = len(tail.ids)
                hits = self._tail_hits(tail, count, codes, distance)
            found += hits
            total += len(hits)
        if total > 1:
            found.sort(key=_by_distance)
        return found, total

    def _tail_hits(
        self, tail: Tail, count: int, codes: Any, distance: int
    ) -> list[tuple[int, int, Any]]:
        from neardup.kernels.hamming.tables import search_rows_once

        room = within_room(search_rows_once, codes, tail.flat, count, self._odd, distance)
        hits, _ = first_hits(room, None, None)
        numbers, dead = tail.numbers, tail.dead
        return [(d, int(numbers[row]), tail.ids[row]) for d, row in hits if row not in dead]

    def _scan_tail(
        self, tail: Tail, count: int, dead: list[int], codes: Any, distance: int, threads: int
    ) -> Neighbours:
        plan = scan_plan(count, self.bits)
        found = ScanSearcher(frozen(tail.codes[:count]), plan).search(codes, distance, threads)
        removed = np.zeros(count, np.bool_)
        removed[dead] = True
        return found.only(~removed[found.rows])

    def _nearest_by_scan(self, codes: Any, n: int) -> list[tuple[int, int, Any]]:
        """As `_hits`, for the n nearest: the smallest distance that has as many, by bisection."""
        segments, tail = self._read()
        best: list[tuple[int, int, Any]] = []
        for segment in segments:
            apart = np.bitwise_count(segment.codes ^ codes).sum(axis=1, dtype=np.int64)
            apart[segment.dead] = MOST_APART
            rows = np.argsort(apart, kind="stable")[: min(n, segment.living)]
            best += [
                (int(apart[row]), int(segment.numbers[row]), segment.ids.values[int(row)].as_py())
                for row in rows
            ]
        if len(tail):
            best += self._tail_hits(tail, len(tail), codes, self.bits)
        best.sort(key=_by_distance)
        return best

    def _reach(self, distance: int | None) -> int:
        if distance is None:
            return self._settings.distance
        check_distance(distance)
        if distance > self.distance:
            raise UsageError(
                f"distance is {distance}, but the index was made for {self.distance}:"
                " use `nearest`, or make an index for the larger one"
            )
        return distance

    def _one(self, fingerprint: Any) -> Any:
        """Bring one fingerprint into uint64 (width,); None for a document without one."""
        if type(fingerprint) is int and 0 <= fingerprint < self._narrow_end:
            codes = np.empty(1, np.uint64)
            codes[0] = fingerprint
            return codes
        return one_fingerprint(fingerprint, self._settings)

    def _places(self, column: IdColumn) -> Places:
        """Where each id is stored."""
        segments, tail = self._state
        places = Places.nowhere(len(column))
        if column.kind != self._kind:
            return places
        for i, segment in enumerate(segments):
            rows = segment.ids.find(column)
            here = np.flatnonzero(rows >= 0)
            here = here[~segment.dead[rows[here]]]
            places.put(here, i, rows[here])
        if tail.rows:
            for at, identity in enumerate(column.values.to_pylist()):
                if identity in tail.rows:
                    places.put(at, len(segments), tail.rows[identity])
        return places


def _by_distance(hit: tuple[int, int, Any]) -> tuple[int, int]:
    return hit[0], hit[1]
