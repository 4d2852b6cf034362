"""Searching the segments of an index by similarity, all in one call of the kernel."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.index.set_segments import FoundRows
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.index.set_arrays import Sets
    from neardup.index.set_segments import Segment
    from neardup.index.set_tail import Tail
    from neardup.kernels.similarity.arguments import Condition

__all__ = ["search", "seek"]

RANGES_A_THREAD: Final = 4
PARTS: Final = 25
"""Numbers of a segment, as `search_sets` takes it."""
SEEKER_FEATURES: Final = 1 << 12
"""Of a query, in a room: longer ones are searched for as many are."""
LIMITED_QUERIES: Final = 64
"""Queries of which all that was found is held before a limit is applied to it."""


_NO_PARTS: Final = np.empty((0, PARTS), np.int64)
_ROOMS: Final = list[tuple[Any, Any]]()
"""Rooms that no search is in."""


def seek(
    segments: Sequence[Segment], tail: Tail, features: Any, similarity: float, most: int | None
) -> list[tuple[Any, FoundRows]] | None:
    """Find the living rows of segments and the tail that are similar enough to one query.

    Returns:
        Those parts in which there are some, and what was found; None where there is too much of
        something for this way, which is the quickest one.
    """
    from neardup.kernels.index.seeking import new_room, room_places

    if len(features) > SEEKER_FEATURES:
        return None
    try:
        room, places = _ROOMS.pop()
    except IndexError:
        room = new_room(SEEKER_FEATURES)
        places = room_places(room)
    count = tail.seek(features, _parts(segments), similarity, places)
    if count <= 0:
        _ROOMS.append((room, places))
        return [] if count == 0 else None
    raw = tuple(
        each[:count].copy() for each in (room.parts, room.queries, room.numbers, room.scores)
    )
    _ROOMS.append((room, places))
    found: list[tuple[Any, FoundRows]] = [
        (segments[at], rows) for at, rows in _by_part(segments, raw, most, by_age=False)
    ]
    behind = int(np.searchsorted(raw[0], len(segments)))
    if behind < count:
        rows = tail.found(*(each[behind:] for each in raw[1:]))
        found += [(tail, rows)] if len(rows.rows) else []
    return found


def _parts(segments: Sequence[Segment]) -> Any:
    """Segments as kernels take them."""
    if not segments:
        return _NO_PARTS
    parts = np.concatenate([segment.places for segment in segments])
    parts.shape = len(segments), PARTS
    return parts


def search(
    segments: Sequence[Segment], queries: Sets, condition: Condition, workers: int,
    most: int | None, *, by_age: bool = False,
) -> list[tuple[Segment, FoundRows]]:  # fmt: skip
    """Find the living rows of segments that are similar enough: see SimilarSnapshot.table.

    Returns:
        Those segments in which there are some, in their order, and what was found.
    """
    count, ranges = queries.size, RANGES_A_THREAD * workers if workers > 1 else 1
    if most is not None:
        ranges = max(ranges, -(-count // LIMITED_QUERIES))
    if not segments or not count:
        return []
    parts = _parts(segments)

    def ask(first: int, last: int) -> list[tuple[int, FoundRows]]:
        return _found(segments, parts, queries, (first, last), condition, most, by_age=by_age)

    if ranges == 1 or count == 1:
        return [(segments[at], rows) for at, rows in ask(0, count)]
    edges = np.unique(np.linspace(0, count, ranges + 1).astype(int)).tolist()
    found: list[list[tuple[int, FoundRows]]] = [[]] * (len(edges) - 1)

    def run(_: int, part: int) -> None:
        found[part] = ask(edges[part], edges[part + 1])

    in_threads(workers, run, range(len(found)))
    by_segment: dict[int, list[FoundRows]] = {}
    for at, rows in itertools.chain(*found):
        by_segment.setdefault(at, []).append(rows)
    return [(segments[at], _joined(by_segment[at])) for at in sorted(by_segment)]


def _found(
    segments: Sequence[Segment], parts: Any, queries: Sets, asked: tuple[int, int],
    condition: Condition, most: int | None, *, by_age: bool,
) -> list[tuple[int, FoundRows]]:  # fmt: skip
    """What some of the queries find, by the place of the segment."""
    from neardup.kernels.index.similar import search_sets

    found = search_sets(*queries, *asked, parts, condition)
    return _by_part(segments, found, most, by_age=by_age) if len(found[0]) else []


def _by_part(
    segments: Sequence[Segment], found: Any, most: int | None, *, by_age: bool
) -> list[tuple[int, FoundRows]]:
    """The living rows of what `search_sets` has found, by the place of the segment."""
    places, queried, numbers, scores = found
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


def _joined(parts: list[FoundRows]) -> FoundRows:
    if len(parts) == 1:
        return parts[0]
    queried, rows, scores, cuts = zip(*parts, strict=True)
    return FoundRows(
        np.concatenate(queried), np.concatenate(rows), np.concatenate(scores), sum(cuts)
    )
