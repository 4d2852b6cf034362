"""The closest row in many parts, against a comparison with every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.hamming.search import closest_rows as closest
from neardup.hamming.search import table_search
from neardup.hamming.search.build import build_searcher, plan_for
from neardup.hamming.search.searchers import FEW_HITS, first_hits

WIDTHS = {8: 1, 64: 1, 70: 2}


@pytest.mark.parametrize("heavy", [table_search.HEAVY_BUCKET, 2])
@given(
    bits=st.sampled_from([*WIDTHS]),
    distance=st.integers(0, 3),
    plans=st.lists(st.sampled_from(["scan", "multi:5", "blocks", "bits"]), max_size=4),
    seed=st.integers(0, 2**32),
)
def test_the_closest_of_all_parts_is_the_first_of_the_closest(
    heavy: int, bits: int, distance: int, plans: list[str], seed: int
) -> None:
    draw, width = np.random.default_rng(seed), WIDTHS[bits]
    pool = draw.integers(0, 2 ** min(bits, 62), (5, width)).astype(np.uint64)
    pool[:, -1] &= np.uint64((1 << (bits % 64 or 64)) - 1)

    def codes(count: int) -> Any:
        flips = np.uint64(1) << draw.integers(0, min(bits, 64), (count, 1)).astype(np.uint64)
        some = pool[draw.integers(0, len(pool), count)].copy()
        some[:, :1] ^= np.where(draw.random((count, 1)) < 0.7, flips, np.uint64(0))
        return some

    parts, rows = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_search, "HEAVY_BUCKET", heavy)
        patch.setattr(table_search, "HEAVY_TIMES", 0)
        patch.setattr(closest, "RANGE", 3)
        for at, name in enumerate(plans):
            stored, dead = codes(int(draw.integers(1, 60))), None
            if draw.random() < 0.5:
                dead = draw.random(len(stored)) < 0.4
            plan = plan_for(stored, distance, bits, name if bits == 64 else "auto")
            parts.append((build_searcher(stored, plan, distance, bits, 1), dead))
            living = np.ones(len(stored), bool) if dead is None else ~dead
            rows += [(at, row, stored[row]) for row in np.flatnonzero(living).tolist()]
        queries = codes(9)
        neighbours = closest.closest_rows(queries, parts, distance, 1)
    for q, query in enumerate(queries):
        near = [(int(np.bitwise_count(code ^ query).sum()), at, row) for at, row, code in rows]
        best = min((each for each in near if each[0] <= distance), default=None)
        assert neighbours.distances[q] == (distance + 1 if best is None else best[0])
        assert neighbours.parts[q] == (-1 if best is None else best[1])
        assert best is None or neighbours.rows[q] == best[2]


def test_of_many_hits_the_nearest_are_the_first() -> None:
    rows = np.arange(2 * FEW_HITS)
    hits = np.stack([rows, np.where(rows % 50 == 49, 1, 3)])
    first, count = first_hits(hits, 10, None)
    assert count == 2 * FEW_HITS
    assert sorted(first) == [(1, row) for row in range(49, 549, 50)][:10]
    dead = rows % 100 == 99
    first, count = first_hits(hits, 5, dead)
    assert sorted(first) == [(1, row) for row in range(49, 549, 100)][:5]
