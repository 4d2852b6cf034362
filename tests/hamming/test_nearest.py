"""The nearest rows are those of a sort of all distances, whatever the tiles, threads and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.hamming.search import nearest_rows as module
from neardup.hamming.search.nearest_rows import nearest_neighbours
from suite import JIT


def by_definition(codes: Any, queries: Any, n: int, dead: Any) -> list[list[tuple[int, int]]]:
    """(distance, row) of the first n of all."""
    result = []
    for query in queries.tolist():
        every = [
            (sum((a ^ b).bit_count() for a, b in zip(query, row, strict=True)), number)
            for number, row in enumerate(codes.tolist())
            if not dead[number]
        ]
        result.append(sorted(every)[:n])
    return result


def nearest(codes: Any, queries: Any, n: int, workers: int, dead: Any) -> list[Any]:
    """The same of what the scan finds."""
    neighbours = nearest_neighbours(codes, queries, n, workers, dead)
    chosen: list[Any] = [[] for _ in queries]
    for query, row, distance in zip(*(column.tolist() for column in neighbours), strict=True):
        chosen[query].append((distance, row))
    return [sorted(each)[:n] for each in chosen]


@given(
    st.integers(0, 5_000 if JIT else 300),
    st.integers(0, 5),
    st.sampled_from([1, 2, 10, 400, 10_000]),
    st.integers(1, 3),
    st.sampled_from([1, 2]),
    st.sampled_from([0, 1, 2**8 - 1, 2**64 - 1]),
    st.integers(0, 2**32 - 1),
)
def test_the_nearest_are_those_of_a_sort(
    count: int, asked: int, n: int, workers: int, width: int, mask: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2**64, (count, width), np.uint64) & np.uint64(mask)
    queries = rng.integers(0, 2**64, (asked, width), np.uint64) & np.uint64(mask)
    dead = rng.random(count) < rng.choice([0.0, 0.5])
    expected = by_definition(codes, queries, n, dead)
    assert nearest(codes, queries, n, workers, dead) == expected


@pytest.mark.parametrize("rows", [255, 256, 2047, 2048, 2049, 65_536, 65_537])
def test_ever_nearer_rows_fill_the_room_again_and_again(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row is nearer than those before, or as near: the bound never helps."""
    monkeypatch.setattr(module, "ROWS_OF_A_THREAD", 100)
    rows = rows if JIT else min(rows, 600)
    ones = (64 - np.arange(rows) * 64 // rows).astype(np.uint64)
    codes = np.array([(1 << each) - 1 for each in ones.tolist()], np.uint64)[:, None]
    queries = np.zeros((3, 1), np.uint64)
    expected = by_definition(codes, queries[:1], 5, np.zeros(rows, bool))
    for workers, room in ((1, module.ROOM_AT_ONCE), (2, 1), (7, module.ROOM_AT_ONCE)):
        monkeypatch.setattr(module, "ROOM_AT_ONCE", room)
        assert nearest(codes, queries, 5, workers, np.zeros(rows, bool)) == 3 * expected


def test_each_query_is_compared_behind_rows_that_are_far_from_another() -> None:
    codes = np.full((1500, 1), (1 << 40) - 1, np.uint64)
    codes[1450] = 2**64 - 1
    queries, dead = np.array([[0], [2**64 - 1]], np.uint64), np.zeros(1500, bool)
    expected = by_definition(codes, queries, 5, dead)
    assert expected[1][0] == (0, 1450)
    assert nearest(codes, queries, 5, 1, dead) == expected
