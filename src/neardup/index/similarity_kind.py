"""The kind of index whose rows are sets of features, searched by their exact similarity.

One query of all segments and the tail is one call of the kernel; see `hits`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from neardup.index.hits import Closest, Hits
from neardup.index.id_columns import ID_KINDS, IdColumn
from neardup.index.incoming import many_sets, one_set
from neardup.index.kind_settings import SimilaritySettings, check_same_recipe
from neardup.index.ranking import Ranking
from neardup.index.set_arrays import Sets, joined_sets
from neardup.index.set_segments import (
    HitRows,
    SetRows,
    SetSegment,
    SetTail,
    TailFeatures,
    joined,
    merged,
    next_merge,
    no_order,
)
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import in_threads, worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from neardup.index.hits import Id
    from neardup.index.protocol import Documents
    from neardup.index.segment_files import SegmentFile
    from neardup.index.stored_rows import Content, SegmentRows
    from neardup.index.versions import Version
    from neardup.kernels.similarity.join_arguments import Condition
    from neardup.runtime.types import Flags, Hashes, Rows

__all__ = ["BySimilarity", "search"]

MERGING_BYTES: Final = 200
"""Bytes of a document during a merge: 130 were measured with numbers as ids; strings are longer."""
RANGES_A_THREAD: Final = 4
PARTS: Final = 25
"""Numbers that describe a segment to `search_sets`."""
SEEKER_FEATURES: Final = 1 << 12
"""The most features of a query in a workspace; longer queries are searched like a batch."""
LIMITED_QUERIES: Final = 64
"""Queries whose hits are all in memory before a limit is applied."""

_HASH: Final = np.dtype(np.uint64)
_NO_PARTS: Final = np.empty((0, PARTS), np.int64)
_WORKSPACES: Final = list[tuple[Any, Any]]()
"""Unused workspaces. A list's `pop` and `append` are atomic under the interpreter's lock, so each
thread has a workspace to itself."""
Part = tuple[HitRows, Any, Any]
"""The hits in a part, the numbers of their rows, and the part's ids."""


class BySimilarity(SimilaritySettings):
    """Sets of feature hashes, searched exactly by similarity; see Kind."""

    __slots__ = ()

    name: ClassVar[str] = "similarity"
    noun: ClassVar[str] = "documents"
    scores: ClassVar[pa.DataType] = pa.float64()
    keeps: ClassVar[str] = "features"

    @property
    def reach(self) -> float:
        """The similarity that it was made for."""
        return float(self.similarity)

    def settings(self) -> dict[str, Any]:
        """See Kind."""
        return self.described()

    def describe(self, reach: float) -> dict[str, Any]:
        """See Kind."""
        return {
            "similarity": reach, "made_for_similarity": self.similarity,
            "measure": self.measure, "recipe": self.recipe.digest if self.recipe else None,
        }  # fmt: skip

    def title(self, reach: float) -> str:
        """See Kind."""
        return f"{self.measure} from {reach}"

    def within(self, limit: float, reach: float) -> float:
        """See Kind."""
        del reach
        return self.checked(limit)

    def one(self, document: Documents) -> Hashes | None:
        """See Kind: uint64, ascending."""
        from neardup.kernels.index.sets import sort_set

        if type(document) is np.ndarray and document.dtype == _HASH and document.ndim == 1:
            features = document.copy()
            features = features[: sort_set(features)]
            features.flags.writeable = False  # as the kernels are compiled for
        else:
            features = one_set(document, self)
        return features if len(features) else None

    def many(self, documents: Documents, workers: int | None = None) -> tuple[Sets, Rows, int]:
        """See Kind."""
        sets = many_sets(documents, self, workers)
        full = np.flatnonzero(np.diff(sets.offsets))
        return sets if len(full) == sets.size else sets.take(full), full, sets.size

    def tail(self, segments: Sequence[SegmentRows]) -> SetTail:
        """See Kind; heavy features of the largest segment come last in the tail too."""
        ready: list[Any] = [each for each in segments if each.is_ready]
        largest: Any = max(ready, key=len, default=None)
        return SetTail(TailFeatures(largest.order if largest else no_order(), self))

    def build(self, ids: IdColumn, contents: Sets, numbers: Rows) -> SetSegment:
        """See Kind."""
        sets = joined_sets([contents])
        return SetSegment.of_rows(SetRows(sets, np.arange(len(ids)), ids, numbers), self)

    def merge(self, segments: list[SetSegment], folder: Path | None = None) -> SetSegment:
        """See Kind."""
        return joined(segments, self, folder)

    def next_merge(
        self, segments: Sequence[SegmentRows], most: int | None = None
    ) -> tuple[int, int] | None:
        """See Kind."""
        return next_merge(segments, most)

    def merging_bytes(self, stored: float) -> float:
        """See Kind: features and postings are in files."""
        return min(2.5 * stored, MERGING_BYTES)

    def read(
        self, file: SegmentFile, dead: Flags | None = None, changed: frozenset[int] = frozenset()
    ) -> SetSegment:
        """See Kind."""
        return SetSegment.of_file(file, dead, changed)

    def write(self, segment: SetSegment, path: Path) -> None:
        """See Kind."""
        segment.write(path)

    def save(
        self, version: Version[Sets], path: Path, header: dict[str, Any], arrays: dict[str, Any]
    ) -> None:
        """See Kind."""
        rows = living_parts(version) or [_nothing(version.id_kind)]
        merged(rows, self).write(path, {"similar": self.described(), **header}, arrays)

    def numbers(self, version: Version[Sets]) -> Rows:
        """See Kind."""
        none = np.empty(0, np.int64)
        return np.concatenate([none, *(part.numbers for part in living_parts(version))])

    def packed(self, version: Version[Sets]) -> list[Any]:
        """See Kind."""
        rows = living_parts(version)
        return [(tuple(x.sets), x.set_of, x.ids.values, x.numbers) for x in rows]

    def unpacked(self, packed: list[Any]) -> tuple[SetSegment, ...]:
        """See Kind."""
        return tuple(
            merged([SetRows(Sets(*sets), set_of, IdColumn(ids), numbers)], self)
            for sets, set_of, ids, numbers in packed
        )

    def hits(
        self, version: Version[Sets], content: Hashes, reach: float, most: int | None
    ) -> Hits[float]:
        """See Kind: segments and the tail in one call of the kernel, if its workspace suffices."""
        from neardup.kernels.index.seeking import seek

        segments, tail = version.segments, version.tail
        if content.flags.writeable:
            content = frozen(content)  # the one form that is compiled
        if len(content) > SEEKER_FEATURES:
            return self._hits_of_much(version, content, reach, most)
        try:
            workspace, places = _WORKSPACES.pop()
        except IndexError:
            workspace, places = _new_workspace()
        parts, rows = _parts(segments) if segments else _NO_PARTS, tail.rows
        with rows.lock:  # see TailFeatures: the writer may append at any time
            count = seek(
                content, parts, rows.places_of_arrays, tail.count, rows.made_for[0], reach, places
            )
        if count == 0:
            _WORKSPACES.append((workspace, places))
            return Hits([], 0)
        # Copied before the workspace is returned: the next search writes over it.
        hits = (workspace.parts, workspace.queries, workspace.numbers, workspace.scores)
        raw = tuple(each[:count].copy() for each in hits) if count > 0 else ()
        _WORKSPACES.append((workspace, places))
        if not raw:
            return self._hits_of_much(version, content, reach, most)
        return Hits(*_sorted_hits(_living(segments, tail, raw, most), most))

    def closest(self, version: Version[Sets], contents: Sets, reach: float) -> Closest:
        """See Kind; a score is -1 where none is near."""
        count, segments, tail = contents.size, version.segments, version.tail
        best = Closest(np.full(count, -1), np.full(count, -1), np.full(count, -1.0))
        closest: list[tuple[int, HitRows, Rows]] = []
        if segments:
            parts, whole = _parts(segments), (0, count)
            condition = self.condition(reach)
            closest += [
                (at, rows, segments[at].numbers)
                for at, rows in _found(segments, parts, contents, whole, condition, 1, by_age=False)
            ]
        if tail.living:
            closest.append((len(segments), tail.search(contents, reach), tail.numbers))
        for at, rows, numbers in closest:  # a part that comes later has newer documents
            first = rows.first(1, numbers)
            closer = np.flatnonzero(first.scores > best.scores[first.queries])
            best.put(first.queries[closer], at, first.rows[closer], first.scores[closer])
        return best

    def search(
        self, version: Version[Sets], documents: Documents, reach: float, limit: int | None,
        workers: int | None, *, by_age: bool = False,
    ) -> tuple[pa.Table, int]:  # fmt: skip
        """See Kind."""
        threads = worker_count(workers)
        queries = many_sets(documents, self, threads)
        parts = list(self._found(version, queries, reach, threads, limit, by_age=by_age))
        table = _table(parts, ID_KINDS[version.id_kind or "int"], limit, by_age=by_age)
        return table, queries.size

    def nearest(
        self, version: Version[Sets], content: Hashes, n: int, reach: float, by: str | None
    ) -> list[tuple[Id, float]]:
        """See Kind."""
        return self._nearest(version, content, n, reach, Ranking.of(self, by or "similarity"))

    def nearest_batch(
        self, version: Version[Sets], documents: Documents, n: int, reach: float, by: str | None,
        workers: int | None,
    ) -> pa.Table:  # fmt: skip
        """See Kind."""
        ranking, threads = Ranking.of(self, by or "similarity"), worker_count(workers)
        queries = many_sets(documents, self, threads)
        answers: list[list[tuple[Id, float]]] = [[]] * queries.size

        def run(_: int, row: int) -> None:  # the version does not change; each has its row
            answers[row] = self._nearest(version, queries.of(row), n, reach, ranking)

        in_threads(threads, run, range(queries.size))
        rows = np.repeat(np.arange(queries.size), [len(hits) for hits in answers])
        hits = [hit for each in answers for hit in each]
        columns = {
            "row": pa.array(rows, pa.int64()),
            "id": pa.array([hit[0] for hit in hits], ID_KINDS[version.id_kind or "int"]),
            "similarity": pa.array([hit[1] for hit in hits], pa.float64()),
        }
        return pa.table(columns)

    def example(self, row: int) -> Hashes:
        """See Kind."""
        return np.arange(row, row + 20, dtype=np.uint64)

    def check_merging(self, other: BySimilarity, *, foreign: bool) -> None:
        """See Kind."""
        check_same_recipe(self.recipe, other.recipe, foreign=foreign)

    def batches(self, version: Version[Sets]) -> Iterator[tuple[pa.Array, Sets]]:
        """See Kind."""
        for rows in living_parts(version):
            yield rows.ids.values, rows.sets.take(rows.set_of)

    def values(self, contents: Sets) -> list[Hashes]:
        """See Kind."""
        return [contents.of(row) for row in range(contents.size)]

    def none(self) -> Sets:
        """See Kind."""
        return joined_sets([])

    def joined(self, parts: list[Sets]) -> Sets:
        """See Kind."""
        return joined_sets(parts)

    def taken(self, contents: Sets, rows: Rows) -> Sets:
        """See Kind."""
        return contents.take(rows)

    def row(self, contents: Sets, row: int) -> Hashes:
        """See Kind."""
        return contents.of(row)

    def bunched(self, contents: list[Content]) -> Sets:
        """See Kind."""
        offsets = np.zeros(len(contents) + 1, np.int64)
        np.cumsum([len(each) for each in contents], out=offsets[1:])
        return Sets(np.concatenate(contents), offsets)

    def equal(self, left: Sets, right: Sets) -> Flags:
        """See Kind."""
        same: Flags = np.diff(left.offsets) == np.diff(right.offsets)
        for row in np.flatnonzero(same).tolist():
            same[row] = np.array_equal(left.of(row), right.of(row))
        return same

    def _hits_of_much(
        self, version: Version[Sets], content: Hashes, reach: float, most: int | None
    ) -> Hits[float]:
        """The hits of a long document, or of one with many hits, by a batched search."""
        queries = Sets(content, frozen(np.array([0, len(content)], np.int64)))
        return Hits(*_sorted_hits(list(self._found(version, queries, reach, 1, most)), most))

    def _found(
        self, version: Version[Sets], queries: Sets, similarity: float, workers: int,
        most: int | None, *, by_age: bool = False,
    ) -> Iterator[Part]:  # fmt: skip
        """The hits in each part."""
        condition = self.condition(similarity)
        for segment, rows in search(
            version.segments, queries, condition, workers, most, by_age=by_age
        ):
            yield rows, segment.numbers[rows.rows], segment.ids
        tail = version.tail
        if len(tail):
            rows = tail.search(queries, similarity)
            if len(rows.rows):
                yield rows, tail.numbers[rows.rows], tail.ids

    def _nearest(
        self, version: Version[Sets], features: Hashes, n: int, reach: float, ranking: Ranking
    ) -> list[tuple[Id, float]]:
        """The n most similar documents that share a feature, by a ranking."""
        if not len(features) or not n:
            return []
        if ranking.measure is self.kind and ranking.weights is None:
            hits = self.hits(version, features, reach, n)
            if hits.total >= n:
                return list(hits)
        best = list[tuple[float, int, Any, int]]()
        for part in [version.tail, *sorted(version.segments, key=len, reverse=True)]:
            if not part.living:
                continue
            if part is version.tail:
                ranked = part.nearest(features, ranking)
            else:
                floor = -best[n - 1][0] if len(best) >= n else 0.0
                ranked = part.nearest(features, ranking, n, floor)
            numbers = part.numbers[ranked.rows]
            first = np.lexsort((numbers, -ranked.scores))[:n]
            best += zip(
                (-ranked.scores[first]).tolist(), numbers[first].tolist(),
                itertools.repeat(part.ids), ranked.rows[first].tolist(),
            )  # fmt: skip
            best = sorted(best, key=_by_score)[:n]
        return [(_id(ids, row), -score) for score, _, ids, row in best]


def living_parts(version: Version[Sets]) -> list[SetRows]:
    """The documents of each part, in order of insertion."""
    parts = [segment.living_rows() for segment in version.segments]
    if len(version.tail):
        parts.append(version.tail.living_rows(version.id_kind))
    return [part for part in parts if len(part.ids)]


def _new_workspace() -> tuple[Any, Any]:
    """New buffers for a search, and their addresses as the kernel takes them."""
    from neardup.kernels.index.seeking import new_workspace, workspace_places

    workspace = new_workspace(SEEKER_FEATURES)
    return workspace, workspace_places(workspace)


def _living(
    segments: Sequence[SetSegment], tail: SetTail, raw: tuple[Any, ...], most: int | None
) -> list[Part]:
    """The living rows among the hits of `seek`, by part."""
    parts: list[Part] = [
        (rows, segments[at].numbers[rows.rows], segments[at].ids)
        for at, rows in _by_part(segments, raw, most, by_age=False)
    ]
    behind = int(np.searchsorted(raw[0], len(segments)))
    if behind < len(raw[0]):
        rows = tail.found(*(each[behind:] for each in raw[1:]))
        parts += [(rows, tail.numbers[rows.rows], tail.ids)] if len(rows.rows) else []
    return parts


def _parts(segments: Sequence[SetSegment]) -> Any:
    """Segments in the form of the kernels."""
    return np.concatenate([segment.places for segment in segments]).reshape(-1, PARTS)


def search(
    segments: Sequence[SetSegment], queries: Sets, condition: Condition, workers: int,
    most: int | None, *, by_age: bool = False,
) -> list[tuple[SetSegment, HitRows]]:  # fmt: skip
    """Find the living rows of segments that are similar enough: see BySimilarity.search.

    Returns:
        The segments with hits, in their order, and the hits.
    """
    count, ranges = queries.size, RANGES_A_THREAD * workers if workers > 1 else 1
    if most is not None:
        ranges = max(ranges, -(-count // LIMITED_QUERIES))
    if not segments or not count:
        return []
    parts = _parts(segments)

    def ask(first: int, last: int) -> list[tuple[int, HitRows]]:
        return _found(segments, parts, queries, (first, last), condition, most, by_age=by_age)

    if ranges == 1 or count == 1:
        return [(segments[at], rows) for at, rows in ask(0, count)]
    edges = np.unique(np.linspace(0, count, ranges + 1).astype(int)).tolist()
    hits: list[list[tuple[int, HitRows]]] = [[]] * (len(edges) - 1)

    def run(_: int, part: int) -> None:
        hits[part] = ask(edges[part], edges[part + 1])

    in_threads(workers, run, range(len(hits)))
    by_segment: dict[int, list[HitRows]] = {}
    for at, rows in itertools.chain(*hits):
        by_segment.setdefault(at, []).append(rows)
    return [(segments[at], _joined(by_segment[at])) for at in sorted(by_segment)]


def _found(
    segments: Sequence[SetSegment], parts: Any, queries: Sets, range_: tuple[int, int],
    condition: Condition, most: int | None, *, by_age: bool,
) -> list[tuple[int, HitRows]]:  # fmt: skip
    """The hits of some of the queries, by the position of the segment."""
    from neardup.kernels.index.similar import search_sets

    hits = search_sets(*queries, *range_, parts, condition)
    return _by_part(segments, hits, most, by_age=by_age) if len(hits[0]) else []


def _by_part(
    segments: Sequence[SetSegment], hits: tuple[Any, ...], most: int | None, *, by_age: bool
) -> list[tuple[int, HitRows]]:
    """The living rows among the hits of `search_sets`, by the position of the segment."""
    places, queried, numbers, scores = hits
    edges = np.searchsorted(places, np.arange(len(segments) + 1)).tolist()
    by_part = []
    for at in range(len(segments)):
        begin, end = edges[at], edges[at + 1]
        if begin < end:
            those = queried[begin:end], numbers[begin:end], scores[begin:end]
            rows = segments[at].rows(those, most)
            if most is not None:
                rows = rows.first(most, segments[at].numbers, by_age=by_age)
            if len(rows.rows) or rows.cut:
                by_part.append((at, rows))
    return by_part


def _joined(parts: list[HitRows]) -> HitRows:
    if len(parts) == 1:
        return parts[0]
    queried, rows, scores, cuts = zip(*parts, strict=True)
    return HitRows(np.concatenate(queried), np.concatenate(rows), np.concatenate(scores), sum(cuts))


def _sorted_hits(parts: list[Part], most: int | None) -> tuple[list[tuple[Id, float]], int]:
    """The first hits, sorted, as (id, similarity), and the number of all."""
    hits: list[tuple[float, int, Any, int]] = []
    total = 0
    for rows, numbers, ids in parts:
        total += len(rows.rows) + rows.cut
        hits += zip(
            (-rows.scores).tolist(), numbers.tolist(), itertools.repeat(ids), rows.rows.tolist()
        )
    hits.sort(key=_by_score)
    return [(_id(ids, row), -score) for score, _, ids, row in hits[:most]], total


def _id(ids: IdColumn | list[Id], row: int) -> Id:
    return ids.value(row) if isinstance(ids, IdColumn) else ids[row]


def _by_score(hit: tuple[float, int, Any, int]) -> tuple[float, int]:
    return hit[0], hit[1]


def _table(parts: list[Part], kind: pa.DataType, limit: int | None, *, by_age: bool) -> pa.Table:
    """One table of the hits in the parts."""
    queries = np.concatenate([np.empty(0, np.int64), *(rows.queries for rows, _, _ in parts)])
    scores = np.concatenate([np.empty(0), *(rows.scores for rows, _, _ in parts)])
    numbers = np.concatenate([np.empty(0, np.int64), *(numbers for _, numbers, _ in parts)])
    ids = [pa.array([], kind)]
    for rows, _, part_numbers in parts:
        if isinstance(part_numbers, IdColumn):
            ids.append(part_numbers.values.take(pa.array(rows.rows)))
        else:
            ids.append(pa.array([part_numbers[row] for row in rows.rows.tolist()], kind))
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


def _nothing(id_kind: str | None) -> SetRows:
    none = np.empty(0, np.int64)
    sets = Sets(np.empty(0, np.uint64), np.zeros(1, np.int64))
    return SetRows(sets, none, IdColumn(pa.array([], ID_KINDS[id_kind or "int"])), none)
