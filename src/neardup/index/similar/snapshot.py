"""Documents' features at one moment, unchanging, and every answer that they give."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.index.base.held import Held
from neardup.index.id_columns import ID_KINDS, IdColumn
from neardup.index.set_arrays import Sets, joined_sets
from neardup.index.set_segments import Rows, Segment, arranged, build, due, joined, no_order
from neardup.index.set_tail import Tail, TailFeatures
from neardup.index.similar.searching import search, seek
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from neardup.index.hits import Places
    from neardup.index.kind_settings import SimilarSettings
    from neardup.index.ranking import Ranking
    from neardup.index.set_segments import FoundRows

__all__ = ["SimilarSnapshot"]

MERGING_BYTES: Final = 200
"""Of a document while it is merged: measured, 130 with ids that are numbers; names are longer."""


class SimilarSnapshot(Held):
    """Documents at one moment; see Held."""

    __slots__ = ()

    @classmethod
    def new_tail(cls, settings: SimilarSettings, segments: Iterable[Any]) -> Tail:
        """See Held; what is heavy in the largest segment comes last in the tail too."""
        largest = max(segments, key=len, default=None)
        return Tail(TailFeatures(largest.order if largest else no_order(), settings))

    @classmethod
    def new_segment(
        cls, settings: SimilarSettings, ids: IdColumn, contents: Any, numbers: Any
    ) -> Segment:
        """See Held."""
        sets = joined_sets([contents])
        return build(Rows(sets, np.arange(len(ids)), ids, numbers), settings)

    @classmethod
    def joined(cls, settings: SimilarSettings, segments: list[Any]) -> Segment:
        """See Held."""
        return joined(segments, settings)

    @classmethod
    def due(cls, segments: list[Any], most: int | None = None) -> tuple[int, int] | None:
        """See Held."""
        return due(segments, most)

    @classmethod
    def merging_bytes(cls, stored: float) -> float:
        """See Held: features and what finds them are in files."""
        return min(2.5 * stored, MERGING_BYTES)

    @classmethod
    def arranged(cls, settings: Any, segments: list[Any]) -> list[Any]:
        """See Held."""
        return arranged(segments, settings)

    @classmethod
    def stored(cls, file: Any, dead: Any = None, changed: frozenset[int] = frozenset()) -> Any:
        """See Held."""
        from neardup.index.similar.files import StoredSimilarSegment

        return StoredSimilarSegment(file, dead, changed, file.path.parent)

    @classmethod
    def write(cls, settings: SimilarSettings, segment: Any, path: Path) -> None:
        """See Held."""
        from neardup.index.similar.files import write_similar

        del settings
        write_similar(path, segment)

    @staticmethod
    def none(settings: SimilarSettings) -> Sets:
        """See Held."""
        del settings
        return joined_sets([])

    @staticmethod
    def concatenated(parts: list[Any]) -> Sets:
        """See Held."""
        return joined_sets(parts)

    @staticmethod
    def taken(contents: Any, rows: Any) -> Sets:
        """See Held."""
        found: Sets = contents.take(rows)
        return found

    @staticmethod
    def row(contents: Any, row: int) -> Any:
        """See Held."""
        return contents.of(row)

    @staticmethod
    def bunched(contents: list[Any]) -> Sets:
        """See Held."""
        offsets = np.zeros(len(contents) + 1, np.int64)
        np.cumsum([len(each) for each in contents], out=offsets[1:])
        return Sets(np.concatenate(contents), offsets)

    @staticmethod
    def equal(left: Any, right: Any) -> Any:
        """See Held."""
        same = np.diff(left.offsets) == np.diff(right.offsets)
        for row in np.flatnonzero(same).tolist():
            same[row] = np.array_equal(left.of(row), right.of(row))
        return same

    def contents_at(self, places: Places) -> Sets:
        """The features of stored documents."""
        parts, order = [], []
        for i, part in enumerate([*self.segments, self.tail]):
            here = np.flatnonzero(places.segments == i)
            if len(here):
                parts.append(part.contents(places.rows[here]))
                order.append(here)
        whole = joined_sets(parts)
        rows = np.concatenate([*order, np.empty(0, np.int64)])
        return whole.take(np.argsort(rows)) if len(parts) > 1 else whole

    def living_parts(self) -> list[Rows]:
        """The documents of each part, in order of insertion."""
        parts = [segment.living_rows() for segment in self.segments]
        if len(self.tail):
            parts.append(self.tail.living_rows(self.kind))
        return [part for part in parts if len(part.ids)]

    def hits(
        self, features: Any, similarity: float, most: int | None
    ) -> tuple[list[tuple[Any, float]], int]:
        """The first (id, similarity), sorted, and how many there are."""
        if not len(features):
            return [], 0
        quickly = seek(self.segments, self.tail, features, similarity, most)
        if quickly is None:
            queries = Sets(features, _one_offsets(len(features)))
            parts = list(self.found(queries, similarity, 1, most))
        elif not quickly:
            return [], 0
        else:
            parts = [(rows, part.numbers[rows.rows], part.ids) for part, rows in quickly]
        found: list[tuple[float, int, Any, int]] = []
        total = 0
        for rows, numbers, ids in parts:
            total += len(rows.rows) + rows.cut
            found += zip(
                (-rows.scores).tolist(), numbers.tolist(), itertools.repeat(ids), rows.rows.tolist()
            )
        found.sort(key=_by_score)
        return [(_id(ids, row), -score) for score, _, ids, row in found[:most]], total

    def found(
        self,
        queries: Sets,
        similarity: float,
        workers: int,
        most: int | None,
        *,
        by_age: bool = False,
    ) -> Iterator[tuple[FoundRows, Any, Any]]:
        """For each part what was found in it, the numbers of these rows, and the part's ids."""
        condition = self.settings.condition(similarity)
        for segment, rows in search(
            self.segments, queries, condition, workers, most, by_age=by_age
        ):
            yield rows, segment.numbers[rows.rows], segment.ids
        tail = self.tail
        if len(tail):
            rows = tail.search(queries, similarity)
            if len(rows.rows):
                yield rows, tail.numbers[rows.rows], tail.ids

    def table(
        self,
        queries: Sets,
        similarity: float,
        workers: int,
        limit: int | None,
        *,
        by_age: bool = False,
    ) -> Any:
        """What is similar to each of many: see SimilarQueries.query_batch.

        Args:
            queries: Which.
            similarity: The least.
            workers: Threads.
            limit: The most for one.
            by_age: The first are those that were added first, not the most similar.
        """
        parts = list(self.found(queries, similarity, workers, limit, by_age=by_age))
        return _table(parts, ID_KINDS[self.kind or "int"], limit, by_age=by_age)

    def nearest(self, features: Any, n: int, ranking: Ranking) -> list[tuple[Any, float]]:
        """The n most similar that share a feature, by this ranking."""
        best = list[tuple[float, int, Any, int]]()
        if not len(features) or not n:
            return []
        for part in [self.tail, *sorted(self.segments, key=len, reverse=True)]:
            if not part.living:
                continue
            if part is self.tail:
                found = part.nearest(features, ranking)
            else:
                floor = -best[n - 1][0] if len(best) >= n else 0.0
                found = part.nearest(features, ranking, n, floor)
            numbers = part.numbers[found.rows]
            first = np.lexsort((numbers, -found.scores))[:n]
            best += zip(
                (-found.scores[first]).tolist(), numbers[first].tolist(),
                itertools.repeat(part.ids), found.rows[first].tolist(),
            )  # fmt: skip
            best = sorted(best, key=_by_score)[:n]
        return [(_id(ids, row), -score) for score, _, ids, row in best]


def _one_offsets(count: int) -> Any:
    return frozen(np.array([0, count], np.int64))


def _id(ids: Any, row: int) -> Any:
    return ids.value(row) if isinstance(ids, IdColumn) else ids[row]


def _by_score(hit: tuple[float, int, Any, int]) -> tuple[float, int]:
    return hit[0], hit[1]


def _table(
    parts: list[tuple[FoundRows, Any, Any]], kind: Any, limit: int | None, *, by_age: bool
) -> pa.Table:
    """One table of what was found in the parts."""
    queries = np.concatenate([np.empty(0, np.int64), *(rows.queries for rows, _, _ in parts)])
    scores = np.concatenate([np.empty(0), *(rows.scores for rows, _, _ in parts)])
    numbers = np.concatenate([np.empty(0, np.int64), *(numbers for _, numbers, _ in parts)])
    ids = [pa.array([], kind)]
    for rows, _, held in parts:
        if isinstance(held, IdColumn):
            ids.append(held.values.take(pa.array(rows.rows)))
        else:
            ids.append(pa.array([held[row] for row in rows.rows.tolist()], kind))
    order = np.lexsort((numbers, queries) if by_age else (numbers, -scores, queries))
    cut = sum(rows.cut for rows, _, _ in parts)
    if limit is not None:
        ordered = queries[order]
        keep = np.arange(len(ordered)) - np.searchsorted(ordered, ordered, side="left") < limit
        cut += int(len(keep) - np.count_nonzero(keep))
        order = order[keep]
    columns = {
        "row": pa.array(queries[order]),
        "id": pa.concat_arrays(ids).take(pa.array(order)),
        "similarity": pa.array(scores[order]),
    }
    return pa.table(columns).replace_schema_metadata({"cut": str(cut)})
