"""Search all of an index by similarity for one query: one call, and nothing is allocated."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from neardup.kernels.index.scoring import (
    ENTRY,
    HITS,
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
_HITS: Final = 1 << 8


class Workspace(NamedTuple):
    """Scratch arrays of a search and its matches; made once, for one search at a time.

    Args:
        chosen: int64, as long as the longest query, at least.
        heavy: uint64, likewise.
        spreads: uint64, likewise.
        sketch: uint64 (SKETCH_WORDS + 1,).
        seen: uint64 (2**b,), zeros at first.
        parts: int64: for each match the position of its segment; the tail comes after the last.
        queries: int64, for each match: 0.
        numbers: int64, for each match: the set, or the row of the tail.
        scores: float64, for each match: its similarity.
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


def new_workspace(longest: int) -> Workspace:
    """New working memory for queries of a number of features."""
    return Workspace(
        np.empty(longest, np.int64), np.empty(longest, np.uint64), np.empty(longest, np.uint64),
        np.zeros(SKETCH_WORDS + 1, np.uint64), np.zeros(_SEEN, np.uint64),
        np.empty(_HITS, np.int64), np.empty(_HITS, np.int64), np.empty(_HITS, np.int64),
        np.empty(_HITS, np.float64), np.zeros(STATES, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip


def workspace_places(workspace: Workspace) -> Any:
    """A workspace as `seek` takes it: int64."""
    return addresses_of([(array, array.dtype) for array in workspace])


@inner
def _room_at(row: Any) -> Any:
    return Workspace(
        int64s(row[0], row[1]), uint64s(row[2], row[3]), uint64s(row[4], row[5]),
        uint64s(row[6], row[7]), uint64s(row[8], row[9]), int64s(row[10], row[11]),
        int64s(row[12], row[13]), int64s(row[14], row[15]), float64s(row[16], row[17]),
        int64s(row[18], row[19]), int64s(row[20], row[21]),
    )  # fmt: skip


@inner
def _seek(
    features: Any, parts: Any, tail: Any, rows: int, condition: Condition, workspace: Workspace
) -> int:
    state, seen = workspace.state, workspace.seen
    workspace.offsets[1] = features.size
    workspace.sketch[SKETCH_WORDS] = 0
    queries = Queries(features, workspace.offsets, np.int64(0), np.int64(1))
    scratch = Scratch(workspace.chosen, workspace.heavy, workspace.spreads, workspace.sketch)
    hits = HitArrays(workspace.parts, workspace.queries, workspace.numbers, workspace.scores)
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
    return np.int64(state[HITS])


@kernel
def seek(
    features: Any,
    parts: Any,
    tail: Any,
    rows: int,
    measure: int,
    similarity: float,
    workspace: Workspace,
) -> int:
    """Find all that is similar to one query, in segments and in a tail.

    Args:
        features: uint64, ascending, at most as many as the workspace was made for.
        parts: As of `search_sets`.
        tail: As of `search_tail`.
        rows: As of `search_tail`.
        measure: See Condition.
        similarity: Least similarity of a match.
        workspace: int64, from `workspace_places`; afterwards it has the matches, by part.

    Returns:
        The number of matches; NO_ROOM if there are more than the workspace can hold.
    """
    condition = Condition(measure, similarity, np.int64(0))
    return _seek(features, parts, tail_at(tail), rows, condition, _room_at(workspace))
