"""One query of everything that an index by similarity holds: one call, and nothing is allocated."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from neardup.kernels.index.scoring import (
    ENTRY,
    FOUND,
    SKETCH_WORDS,
    STAMP,
    STATES,
    HitArrays,
    Queries,
    Scratch,
)
from neardup.kernels.index.similar import search_parts
from neardup.kernels.index.tail import search_rows, tail_at
from neardup.kernels.jit import fill, inner, kernel
from neardup.kernels.segment_addresses import addresses_of, float64s, int64s, uint64s
from neardup.kernels.similarity.join_arguments import Condition

NO_ROOM: Final = -1
_LAST_STAMP: Final = (1 << 32) - (1 << 20)
_SEEN: Final = 1 << 10
_FOUND: Final = 1 << 8


class Room(NamedTuple):
    """What a search needs, made once, for one search at a time.

    Args:
        chosen: int64, as long as the longest query, at least.
        heavy: uint64, likewise.
        spreads: uint64, likewise.
        sketch: uint64 (SKETCH_WORDS + 1,).
        seen: uint64 (2**b,), zeros at first.
        parts: int64: of what was found the place of the segment, behind the last that of the tail.
        queries: int64, likewise: 0.
        numbers: int64, likewise: the set, or row of the tail.
        scores: float64, likewise: how similar it is.
        state: int64 (STATES,), zeros at first.
        offsets: int64 (2,), zeros at first.
    """

    chosen: Any
    heavy: Any
    spreads: Any
    sketch: Any
    seen: Any
    parts: Any
    queries: Any
    numbers: Any
    scores: Any
    state: Any
    offsets: Any


def new_room(longest: int) -> Room:
    """New working memory for queries of a number of features."""
    return Room(
        np.empty(longest, np.int64), np.empty(longest, np.uint64), np.empty(longest, np.uint64),
        np.zeros(SKETCH_WORDS + 1, np.uint64), np.zeros(_SEEN, np.uint64),
        np.empty(_FOUND, np.int64), np.empty(_FOUND, np.int64), np.empty(_FOUND, np.int64),
        np.empty(_FOUND, np.float64), np.zeros(STATES, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip


def room_places(room: Room) -> Any:
    """A room as `seek` takes it: int64."""
    return addresses_of([(array, array.dtype) for array in room])


@inner
def _room_at(row: Any) -> Any:
    return Room(
        int64s(row[0], row[1]), uint64s(row[2], row[3]), uint64s(row[4], row[5]),
        uint64s(row[6], row[7]), uint64s(row[8], row[9]), int64s(row[10], row[11]),
        int64s(row[12], row[13]), int64s(row[14], row[15]), float64s(row[16], row[17]),
        int64s(row[18], row[19]), int64s(row[20], row[21]),
    )  # fmt: skip


@inner
def _seek(features: Any, parts: Any, tail: Any, rows: int, condition: Condition, room: Room) -> int:
    state, seen = room.state, room.seen
    room.offsets[1] = features.size
    room.sketch[SKETCH_WORDS] = 0
    queries = Queries(features, room.offsets, np.int64(0), np.int64(1))
    scratch = Scratch(room.chosen, room.heavy, room.spreads, room.sketch)
    hits = HitArrays(room.parts, room.queries, room.numbers, room.scores)
    fill(state, 0, STAMP, 0)
    state[ENTRY] = -1
    state[STAMP] += 1
    if state[STAMP] > _LAST_STAMP:
        fill(seen, 0, seen.size, 0)
        state[STAMP] = 1
    if not search_parts(queries, parts, condition, scratch, seen, hits, state):
        return NO_ROOM
    if rows and not search_rows(queries, tail, rows, condition, scratch, seen, hits, state):
        return NO_ROOM
    return np.int64(state[FOUND])


@kernel
def seek(
    features: Any, parts: Any, tail: Any, rows: int, measure: int, similarity: float, room: Room
) -> int:
    """Find everything that is similar to one query, in segments and in a tail.

    Args:
        features: uint64, ascending, no more than the room is for.
        parts: As of `search_sets`.
        tail: As of `search_tail`.
        rows: As of `search_tail`.
        measure: See Condition.
        similarity: The least that is asked for.
        room: int64: what `room_places` gives; the room has what was found then, by part.

    Returns:
        How much was found; NO_ROOM if there is more than the room holds.
    """
    condition = Condition(measure, similarity, np.int64(0))
    return _seek(features, parts, tail_at(tail), rows, condition, _room_at(room))
