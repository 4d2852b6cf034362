"""`pairs` finds every pair within the distance, once, whatever the plan, width, skew or workers."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neardup.errors import TooManyPairsError, UsageError
from neardup.hamming import all_pairs
from neardup.hamming.all_pairs import pairs
from neardup.hamming.chance import chance_warning
from neardup.hamming.join import join_engine, mih_join, sinks
from neardup.hamming.join.row_partition import Groups, group_equal
from neardup.hamming.join.sinks import pairs_within, unpacked_pairs
from neardup.hamming.plans.join_plan import plan_pairs, spilled_seconds
from neardup.hamming.plans.plan_checks import check_join_plan
from planted import JIT, ROWS, brute, planted
from suite import examples, needs_jit


def rows_of(table: Any) -> list[tuple[int, int, int]]:
    """The rows of a result, in its order."""
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def plans(bits: int, distance: int) -> list[str]:
    """All plans that work for a width and a distance."""
    multi = [f"multi:{distance + extra}" for extra in (1, 2, 4) if distance + extra <= bits]
    mih = turned_plans(bits, distance)
    return ["auto", "scan", "blocks", *multi, *mih, *searched_plans(bits, distance)]


def turned_plans(bits: int, distance: int) -> list[str]:
    """Those that turn bits of few blocks, where these are not too many for a test."""
    if bits > 192:
        return []
    numbers = sorted({m for m in (1, 2, 3, distance // 3, distance + 2) if 0 < m <= bits})
    return [f"mih:{m}" for m in numbers if distance // m <= (2 if JIT else 0)]


def searched_plans(bits: int, distance: int) -> list[str]:
    """Those that ask an index, where the signatures to look up are not too many for a test."""
    if bits > 128:
        return []
    signatures = sum(comb(bits, flips) for flips in range(min(bits, distance) + 1))
    return ["bits", "probe"] if signatures <= (2500 if JIT else 100) else ["bits"]


@pytest.mark.parametrize("bits", [1, 7, 63, 64, 65, 100, 128, 192, 256, 1024])
def test_every_plan_equals_brute_force(bits: int) -> None:
    """For every width, at distances from 0 to beyond the width."""
    few = (0, 1, 3, 6, 8, 12, bits - 1, bits, bits + 5)
    for distance in sorted(set(few if bits <= 128 else few[:6])):
        fps = planted(bits, distance, bits)
        want = brute(fps, distance)
        for plan in plans(bits, distance):
            assert rows_of(pairs(fps, distance, bits, plan)) == want, (distance, plan)


@pytest.mark.parametrize("heavy", [2, 7, 40])
def test_heavy_buckets_change_nothing(heavy: int) -> None:
    """Buckets that are split again by other bits give the same pairs."""
    for bits, distance in ((7, 1), (64, 3), (64, 8), (128, 3), (100, 6)):
        fps = planted(bits, distance, heavy, 40 * min(heavy, 10) if JIT else 24)
        skewed = fps.copy()
        skewed[:, 0] &= np.uint64(0xFFF)
        for data in (fps, skewed):
            want = brute(data, distance)
            for plan in plans(bits, distance):
                assert rows_of(pairs(data, distance, bits, plan, heavy=heavy)) == want, plan


@settings(max_examples=examples(60, 10), deadline=None)
@given(
    values=st.lists(
        st.integers(0, 2**12 - 1) | st.sampled_from([0, 2**63, 2**64 - 1]), max_size=40
    ),
    distance=st.integers(0, 13),
    extra=st.integers(1, 4),
    heavy=st.sampled_from([2, 5, 8192]),
)
def test_small_lists_equal_brute_force(
    values: list[int], distance: int, extra: int, heavy: int
) -> None:
    """For arbitrary lists with few distinct values."""
    fps = np.array(values, np.uint64)
    want = brute(fps, distance)
    mih = f"mih:{max(1, distance - 2)}"
    for plan in ("auto", "scan", "blocks", "bits", f"multi:{distance + extra}", mih):
        assert rows_of(pairs(fps, distance, plan=plan, heavy=heavy)) == want


@pytest.mark.parametrize("plan", ["auto", "scan", "blocks", "multi:5", "mih:3", "bits"])
def test_degenerate_inputs(plan: str) -> None:
    """No rows, one, two, all equal, few distinct values, constant top bits."""
    rng = np.random.default_rng(1)
    top = np.uint64(0xABCD_EF01_0000_0000)
    for fps in (
        np.zeros(0, np.uint64),
        np.zeros((0, 2), np.uint64),
        np.zeros(1, np.uint64),
        np.array([0, 2**63], np.uint64),
        np.full(ROWS, 2**64 - 1, np.uint64),
        rng.integers(0, 8, ROWS).astype(np.uint64),
        top | rng.integers(0, 2**32, ROWS, dtype=np.uint64),
    ):
        assert rows_of(pairs(fps, 3, plan=plan)) == brute(fps, 3)


def test_masked_rows_never_match() -> None:
    """A masked row is a document without features; masks of shape (n,) and (n, W) are alike."""
    fps = planted(128, 3, 5)
    skipped = np.arange(0, len(fps), 3)
    mask = np.zeros(fps.shape, bool)
    mask[skipped] = True
    want = brute(fps, 3, skipped)
    for plan in ("auto", "scan", "multi:5", "mih:4", "bits"):
        assert rows_of(pairs(np.ma.masked_array(fps, mask), plan=plan)) == want
    one = np.ma.masked_array(fps[:, 0], mask[:, 0])
    assert rows_of(pairs(one)) == brute(fps[:, :1], 3, skipped)
    assert pairs(np.ma.masked_all(5, np.uint64)).num_rows == 0


def test_int64_and_lists_are_taken_bit_for_bit() -> None:
    """The same bits give the same pairs, whatever holds them."""
    fps = planted(64, 3, 6)[:, 0]
    want = pairs(fps)
    assert pairs(fps.view(np.int64)).equals(want)
    assert pairs(fps.tolist()).equals(want)
    wide = [1 << 100, 0, (1 << 100) | 1]
    assert rows_of(pairs(wide, 1)) == [(0, 1, 1), (0, 2, 1)]


@pytest.mark.parametrize("plan", ["auto", "scan", "multi:5", "mih:2", "bits"])
def test_a_limit_raises_with_the_true_count(plan: str) -> None:
    """Counting goes on after storing stopped, and equal rows are counted by arithmetic."""
    fps = planted(64, 3, 7)
    count = len(brute(fps, 3))
    assert pairs(fps, plan=plan, limit=count).num_rows == count
    for limit in (0, 1, count - 1):
        with pytest.raises(TooManyPairsError) as caught:
            pairs(fps, plan=plan, limit=limit)
        assert caught.value.count == count


def test_without_a_limit_pairs_take_half_of_the_free_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(all_pairs, "free_memory", lambda: 2 * 6 * all_pairs.BYTES_PER_PAIR)
    assert pairs(np.full(4, 77, np.uint64)).num_rows == 6
    with pytest.raises(TooManyPairsError, match="10 pairs"):
        pairs(np.full(5, 77, np.uint64))


@needs_jit
@pytest.mark.parametrize("plan", ["auto", "blocks", "multi:5"])
def test_a_million_equal_rows_are_counted_at_once(plan: str) -> None:
    """Groups of equal fingerprints cost no comparisons."""
    n = 1_000_000
    with pytest.raises(TooManyPairsError) as caught:
        pairs(np.full(n, 77, np.uint64), plan=plan, limit=10)
    assert caught.value.count == n * (n - 1) // 2


@needs_jit
def test_skewed_millions_stay_quick() -> None:
    """Constant halves and tiny ranges are far from quadratic; their counts are right."""
    rng = np.random.default_rng(3)
    half = rng.integers(0, 2**32, 200_000, dtype=np.uint64)
    for fps in (half, half << np.uint64(32) | np.uint64(99)):
        result = [pairs(fps, 1, plan=plan) for plan in ("auto", "blocks", "multi:3")]
        assert result[0].equals(result[1])
        assert result[0].equals(result[2])
        assert result[0].num_rows > 0
    small = rng.integers(0, 2**10, 300_000)
    counts = np.bincount(small, minlength=2**10)
    apart = np.bitwise_count(np.arange(2**10)[:, None] ^ np.arange(2**10)).astype(int)
    pairs_of_rows = int(((apart <= 2) * np.outer(counts, counts)).sum() - len(small)) // 2
    with pytest.raises(TooManyPairsError) as caught:
        pairs(small.astype(np.uint64), 2, limit=1000)
    assert caught.value.count == pairs_of_rows


@needs_jit
def test_workers_change_nothing() -> None:
    """One, two and three threads give identical tables, equal to a scan's."""
    fps = planted(64, 3, 8, 30_000)
    want = pairs(fps, plan="scan", workers=1)
    for workers in (1, 2, 3):
        for plan in ("auto", "scan", "blocks", "multi:6", "mih:2", "bits"):
            assert pairs(fps, plan=plan, workers=workers).equals(want)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"plan": "magic"}, "magic"),
        ({"plan": "permute:9"}, "bits, probe"),
        ({"plan": "mih:0"}, "1 to 64 blocks"),
        ({"plan": "mih:65"}, "1 to 64 blocks"),
        ({"plan": "mih:1", "distance": 9}, "more blocks"),
        ({"plan": "probe", "distance": 12}, "signatures"),
        ({"plan": "multi:3"}, "too few"),
        ({"plan": "multi:65"}, "more blocks"),
        ({"distance": -1}, "-1"),
        ({"distance": 2.5}, "2.5"),
        ({"bits": 65}, "65"),
        ({"fingerprints": np.array([8], np.uint64), "bits": 3}, "beyond bits = 3"),
        ({"fingerprints": np.zeros(3)}, "float64"),
        ({"fingerprints": np.zeros((2, 2, 2), np.uint64)}, "shape"),
        ({"fingerprints": [-1]}, "whole numbers"),
        ({"limit": -1}, "limit"),
    ],
)
def test_wrong_usage_says_what_is_wrong(change: dict[str, Any], word: str) -> None:
    """Each message names the bad value."""
    arguments = {"fingerprints": np.zeros(3, np.uint64), "distance": 3} | change
    with pytest.raises(UsageError, match=word):
        pairs(**arguments)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_group_equal_names_the_smallest_equal_row(width: int) -> None:
    """For few and for many distinct values."""
    rng = np.random.default_rng(width)
    for span in (1, 5, ROWS):
        fps = rng.integers(0, span, (ROWS, width)).astype(np.uint64)
        rows = [tuple(row) for row in fps.tolist()]
        assert group_equal(fps, 2).tolist() == [rows.index(row) for row in rows]


@given(values=st.lists(st.integers(0, 5), min_size=1, max_size=30), step=st.integers(1, 40))
def test_pairs_of_equal_rows_are_listed_some_at_a_time(values: list[int], step: int) -> None:
    groups = Groups.of(group_equal(np.array(values, np.uint64)[:, None], 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sinks, "STEP", step)
        parts = [unpacked_pairs(part) for part in pairs_within(groups.members, groups)]
    listed = [pair for part in parts for pair in zip(*map(np.ndarray.tolist, part), strict=True)]
    every_two = combinations(range(len(values)), 2)
    assert sorted(listed) == [(i, j) for i, j in every_two if values[i] == values[j]]


def test_block_masks_are_disjoint_and_cover_the_width() -> None:
    """Also where most bits never vary."""
    rng = np.random.default_rng(2)
    constant = rng.integers(0, 2**9, (500, 2)).astype(np.uint64)
    for sample in (None, constant):
        for m in (4, 9, 30):
            masks = plan_pairs(10**6, 3, 100, sample, f"multi:{m}").masks
            assert np.bitwise_count(masks).sum() == 100
            assert np.bitwise_count(np.bitwise_or.reduce(masks, axis=0)).sum() == 100


@given(
    log_n=st.floats(0, 40),
    distance=st.integers(0, 14),
    bits=st.sampled_from([15, 64, 100]),
    share=st.sampled_from([0.0, 1e-6]),
)
def test_auto_is_the_cheapest_of_the_plans_of_a_join(
    log_n: float, distance: int, bits: int, share: float
) -> None:
    n = int(2**log_n)
    near = n * n * share
    auto = plan_pairs(n, distance, bits, near=near)
    blocks = range(distance + 1, min(bits, distance + 4) + 1)
    for name in ("scan", *(f"multi:{m}" for m in blocks), *(f"mih:{m}" for m in range(1, 5))):
        try:
            check_join_plan(name, distance, bits)
        except UsageError:
            continue
        plan = plan_pairs(n, distance, bits, plan=name, near=near)
        assert plan.name == name
        assert auto.seconds <= plan.seconds


def test_a_spilled_join_also_takes_the_time_of_a_pass_for_each_slab() -> None:
    n, plan = 10**8, plan_pairs(10**8, 3, 64)
    times = [spilled_seconds(n, 3, 64, n // slabs, 1, plan) for slabs in (1, 2, 4)]
    assert plan.seconds < times[0] < times[1]
    assert times[2] - times[1] == pytest.approx(2 * (times[1] - times[0]))
    assert spilled_seconds(n, 3, 64, n, 4, plan) == times[0] / 4


@pytest.mark.parametrize("radii", [[1, 1], [1, 0, 0], [0, 0, -1]])
def test_candidates_are_the_pairs_near_in_a_block(
    radii: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fps = np.random.default_rng(4).integers(0, 2**12, (1000, 1), np.uint64)
    distance = sum(radius + 1 for radius in radii) - 1
    chosen = plan_pairs(len(fps), distance, 12, plan=f"mih:{len(radii)}")
    assert [part.radius for part in chosen.mih] == radii
    expected = 0.0
    for mask, radius in zip(chosen.masks[:, 0], radii, strict=True):
        near = np.bitwise_count((fps ^ fps.T) & mask) <= radius
        expected += int(np.triu(near, 1).sum())
    assert mih_join.candidates(fps, chosen) == expected
    monkeypatch.setattr(mih_join, "ROWS_COUNTED", 500)
    assert mih_join.candidates(fps, chosen) == pytest.approx(expected, rel=0.1)


@needs_jit
def test_rows_that_are_denser_than_expected_change_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    fps = planted(64, 8, 8, 20_000)
    assert plan_pairs(len(fps), 8, 64).mih
    monkeypatch.setattr(join_engine, "EXPECTED_TIMES", -np.inf)
    assert pairs(fps, 8).equals(pairs(fps, 8, plan="scan"))


@given(
    distance=st.integers(0, 20),
    bits=st.sampled_from([8, 16, 64]),
    documents=st.integers(2, 10**7),
)
@example(distance=8, bits=64, documents=10**7)
@example(distance=9, bits=64, documents=850_000)
def test_a_warning_of_chance_names_the_largest_distance_without_one(
    distance: int, bits: int, documents: int
) -> None:
    def per_document(distance: int) -> Fraction:
        near = sum(comb(bits, apart) for apart in range(distance + 1))
        return Fraction(near * (documents - 1), 2**bits)

    warning = chance_warning(distance, bits, documents)
    rare = [smaller for smaller in range(distance) if per_document(smaller) * 1000 < 1]
    if per_document(distance) * documents < 2 or per_document(distance) * 1000 < 1:
        assert warning is None
    else:
        best = f"distance {rare[-1]}" + " or less" * (rare[-1] > 0) if rare else "more bits"
        assert warning is not None
        assert f"; use {'--' * bool(rare)}{best}, or --verify" in warning
