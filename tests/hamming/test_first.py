"""Of many matches of a query the first are kept, the others counted, as if all had been sorted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.hamming.search.build import build_searcher, plan_for
from neardup.hamming.search.searchers import First


@pytest.mark.parametrize("plan", ["bits", "mih:4", "scan"])
@given(
    seed=st.integers(0, 10**6),
    count=st.sampled_from([1, 64, 600, 1100]),
    bits=st.sampled_from([64, 128]),
    distance=st.sampled_from([0, 2, 7, 40]),
    most=st.sampled_from([1, 2, 10, 5000]),
    by_age=st.booleans(),
    some_dead=st.booleans(),
)
def test_the_first_matches_are_those_of_a_sort(
    plan: str, seed: int, count: int, bits: int, distance: int, most: int, *, by_age: bool,
    some_dead: bool,
) -> None:  # fmt: skip
    draw = np.random.default_rng(seed)
    width = bits // 64
    bases = draw.integers(0, 2**64, (4, width), dtype=np.uint64)
    codes = bases[draw.integers(0, 4, count)]
    for _ in range(3):
        bit = draw.integers(0, bits, count)
        turned = np.uint64(1) << (bit % 64).astype(np.uint64)
        codes[np.arange(count), bit // 64] ^= turned * draw.integers(0, 2, count).astype(np.uint64)
    dead = draw.random(count) < 0.3 if some_dead else None
    queries = codes[draw.integers(0, count, 9)]
    first = First(most, dead, by_age=by_age)
    if distance == 40 and plan == "mih:4":
        plan = "auto"  # it would look up too many signatures
    searcher = build_searcher(codes, plan_for(codes, distance, bits, plan), distance, bits, 2)
    hits = searcher.search(queries, distance, 2, first)
    apart = np.bitwise_count(queries[:, None, :] ^ codes[None, :, :]).sum(axis=2, dtype=np.int64)
    near = apart <= distance
    if dead is not None:
        near &= ~dead
    cut = 0
    for q in range(len(queries)):
        rows = np.flatnonzero(near[q]).tolist()
        if not by_age:
            rows.sort(key=lambda row: (apart[q, row], row))
        cut += len(rows[most:])
        here = hits.only(hits.queries == q)
        assert sorted(here.rows.tolist()) == sorted(rows[:most])
        assert here.distances.tolist() == apart[q, here.rows].tolist()
    assert first.cut == cut
