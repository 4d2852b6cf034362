"""The planner: recall as stated, tables as the pigeonhole says, the cheapest plan that fits."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import UsageError
from neardup.hamming.plans.blocks import agreement, block_radii, shares_within, signatures
from neardup.hamming.plans.choose import named_plan, plan_search
from neardup.hamming.plans.names import JOIN_PLANS, SEARCH_PLANS, listed_plans
from neardup.hamming.plans.plan_checks import check_join_plan, check_search_plan
from neardup.hamming.plans.search_plan import matches
from neardup.hamming.search.build import build_searcher, plan_for
from neardup.hamming.search.permuted import measured_recall
from neardup.hamming.search.table_search import key_factors
from suite import needs_jit


def random_fingerprints(n: int, bits: int) -> Any:
    """Fingerprints of independent bits: uint64 (n, words)."""
    return np.random.default_rng(2007).integers(0, 2**64, (n, bits // 64), dtype=np.uint64)


def masks_of(plan: str, distance: int, bits: int) -> list[int]:
    """A plan's masks as whole numbers."""
    masks = named_plan(1000, distance, bits, None, plan).masks
    return [sum(int(word) << 64 * w for w, word in enumerate(mask)) for mask in masks]


@pytest.mark.parametrize("plan", ["blocks", "multi:4", "multi:5", "multi:6"])
@given(flips=st.sets(st.integers(0, 63), max_size=3))
def test_whatever_three_bits_differ_some_table_finds_the_row(plan: str, flips: set[int]) -> None:
    """The pigeonhole principle."""
    differ = sum(1 << bit for bit in flips)
    assert any(not differ & mask for mask in masks_of(plan, 3, 64))


@pytest.mark.parametrize(("plan", "tables"), [("blocks", 4), ("multi:5", 10), ("multi:6", 20)])
def test_the_designs_of_2007_have_their_number_of_tables(plan: str, tables: int) -> None:
    """4, 10 and 20 at 64 bits and distance 3; masks all differ."""
    masks = masks_of(plan, 3, 64)
    assert len(masks) == len(set(masks)) == tables
    assert named_plan(1000, 3, 64, None, plan).lookups == tables


def test_keys_have_as_many_bits_as_the_designs_of_2007() -> None:
    """16 bits with 4 tables, 25 with 10, 31 with 20."""
    fewest = {
        plan: min(mask.bit_count() for mask in masks_of(plan, 3, 64))
        for plan in ("multi:4", "multi:5", "multi:6")
    }
    assert fewest == {"multi:4": 16, "multi:5": 25, "multi:6": 31}


@pytest.mark.parametrize("bits", [7, 64, 100, 128])
def test_the_key_of_a_probe_is_the_whole_fingerprint(bits: int) -> None:
    assert masks_of("probe", 2, bits) == [2**bits - 1]


@pytest.mark.parametrize(
    ("plan", "bits", "most"),
    [("multi:4", 64, 1.2), ("multi:5", 64, 1.5), ("multi:8", 64, 1.5), ("multi:3", 128, 1.2)],
)
def test_keys_do_not_clump(plan: str, bits: int, most: float) -> None:
    """A query's bucket is hardly larger than if rows were spread evenly: no block is hashed badly.

    With one multiplier for all masks, one block of four had buckets of nine times the rows.
    """
    n, distance = 2**16, int(plan[6:]) - 1 if plan in {"multi:4", "multi:3"} else 3
    codes = random_fingerprints(n, bits)
    chosen = named_plan(n, distance, bits, None, plan)
    factors = key_factors(chosen.masks, chosen.key_bits)
    for mask, row in zip(chosen.masks, factors, strict=True):
        products = ((codes & mask) * row).sum(axis=1, dtype=np.uint64)
        keys = (products >> np.uint64(64 - chosen.key_bits)).astype(np.int64)
        sizes = np.bincount(keys).astype(float)
        assert (sizes**2).sum() / n <= most * (1 + n / 2**chosen.key_bits)


def test_rare_bits_do_not_mislead_the_estimates() -> None:
    """Candidates and matches as they are, where each bit is 1 in one row of eight."""
    rng = np.random.default_rng(3)
    codes = random_fingerprints(4096, 64).copy()
    for _ in range(2):
        codes &= rng.integers(0, 2**64, codes.shape, dtype=np.uint64)
    apart = np.bitwise_count(codes[:64, None, 0] ^ codes[None, :, 0])
    there = (apart <= 10).sum() / 64
    assert matches(4096, 10, agreement(codes[:1024], 64)) == pytest.approx(there, rel=0.5)


@needs_jit
@pytest.mark.parametrize("plan", ["permute:8", "permute:32"])
@pytest.mark.parametrize(("bits", "distance"), [(64, 3), (64, 6), (128, 6)])
def test_an_approximate_plan_finds_the_share_it_states(plan: str, bits: int, distance: int) -> None:
    """Of rows exactly at the distance; what it finds is within the distance, each once."""
    codes = random_fingerprints(20_000, bits)
    planned = plan_for(codes, distance, bits, plan)
    searcher = build_searcher(codes, planned, distance, bits)
    recall = measured_recall(searcher, codes, distance, bits)
    for stated in (planned.recall, searcher.plan.recall):
        assert recall >= stated - 4 * np.sqrt(stated * (1 - stated) / 256) - 1 / 256
    hits = searcher.search(codes[:100], distance, 1)
    places = list(zip(hits.queries.tolist(), hits.rows.tolist(), strict=True))
    assert len(places) == len(set(places))
    apart = np.bitwise_count(codes[hits.queries] ^ codes[hits.rows]).sum(axis=1)
    assert apart.tolist() == hits.distances.tolist()
    assert max(hits.distances.tolist()) <= distance
    only = hits.queries == 0
    found = zip(hits.distances[only].tolist(), hits.rows[only].tolist(), strict=True)
    count = np.count_nonzero(only)
    assert searcher.search_once(codes[0], distance) == (sorted(found), count)


@needs_jit
def test_the_permuted_lists_say_the_recall_that_they_measured() -> None:
    """Not the planned one: on skewed rows a window is full of rows that share their first bits."""
    codes = random_fingerprints(20_000, 64) & np.uint64(0xFFFFF)
    plan = plan_for(codes, 3, 64, "permute:4")
    searcher = build_searcher(codes, plan, 3, 64)
    assert searcher.plan.recall == measured_recall(searcher, codes, 3, 64)
    assert searcher.plan.recall < plan.recall


@pytest.mark.parametrize(("plan", "radii"), [("mih:4", [1, 1, 1, 0]), ("mih:2", [3, 2])])
def test_candidates_agree_in_a_block_or_have_a_key_by_chance(plan: str, radii: list[int]) -> None:
    """Keys as long as the block, and shorter ones."""
    n, size = 10**7, 64 // len(radii)
    chosen = named_plan(n, sum(radii) + len(radii) - 1, 64, None, plan)
    assert chosen.key_bits == min(size, 22)
    keys = [signatures(size, radius) for radius in radii]
    by_chance = [key / 2**22 for key in keys if size > 22]
    expected = n * (sum(keys) / 2**size + sum(by_chance))
    assert chosen.candidates == pytest.approx(expected)
    assert chosen.lookups == sum(keys)


def test_plans_state_their_memory_for_each_row() -> None:
    """The bits once more, or in each table the row, its number, and its share of the buckets."""
    bits, tables = (named_plan(2**20, 3, 64, None, plan) for plan in ("bits", "multi:5"))
    assert (bits.lookups, bits.bytes_per_row) == (64, 8)
    assert tables.bytes_per_row == 10 * (8 + 4 + 4 * 2 ** (tables.key_bits - 20))


@pytest.mark.parametrize(("plan", "distance"), [("probe", 12), ("mih:1", 9)])
def test_a_search_for_too_many_signatures_is_refused(plan: str, distance: int) -> None:
    with pytest.raises(UsageError, match="signatures"):
        check_search_plan(plan, distance, 64)


def test_auto_takes_the_plan_of_least_time_that_fits_the_memory() -> None:
    """Fewer bytes allowed, fewer tables; none at all leaves the scan."""
    sizes = [
        plan_search(10**7, 3, memory=memory).bytes_per_row * 10**7
        for memory in (1e12, 5e8, 2.9e8, 1e8, 0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[1] <= 5e8
    assert sizes[-1] == 0
    assert plan_search(10**7, 3, memory=0).name == "scan"
    assert plan_search(10, 64).name == "scan"


def test_bits_that_never_vary_do_not_mislead_the_estimates() -> None:
    """With a sample the candidates are those of the bits that vary."""
    rng = np.random.default_rng(1)
    sample = rng.integers(0, 2**24, (1000, 1)).astype(np.uint64)
    blind = named_plan(10**7, 3, 64, None, "multi:4").candidates
    seen = named_plan(10**7, 3, 64, sample, "multi:4").candidates
    assert seen > 100 * blind


def test_plans_print_as_a_table_with_the_chosen_one_marked() -> None:
    """One row a plan, the same as `to_pylist`."""
    table = nd.plan(2**26, 3)
    rows = table.to_pylist()
    assert [row["name"] for row in rows if row["chosen"]] == [table.chosen.name]
    lines = str(table).splitlines()
    assert len(lines) == len(rows) + 2
    assert [line.split()[0] for line in lines].count("*") == 1
    assert {"scan", "bits", "multi:4", "multi:5", "multi:6"} <= {row["name"] for row in rows}
    assert [row["microseconds"] for row in rows] == sorted(row["microseconds"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"n": -1}, "n is -1"),
        ({"n": 1.5}, "1.5"),
        ({"n": 5, "distance": -1}, "-1"),
        ({"n": 5, "bits": 0}, "bits is 0"),
        ({"n": 5, "fingerprints": np.zeros(3)}, "float64"),
    ],
)
def test_wrong_usage_says_what_is_wrong(arguments: dict[str, Any], word: str) -> None:
    """Each message names the bad value."""
    with pytest.raises(nd.UsageError, match=word):
        nd.plan(**arguments)


@pytest.mark.parametrize("n", [0, 1, 2, 2**40])
def test_every_size_has_a_table(n: int) -> None:
    """Also on paper."""
    for distance in (0, 3, 12, 64, 100):
        assert str(nd.plan(n, distance)).count("*") == 1


SHORT = [
    ("the harbour opened again on monday morning", "the harbour opened again on tuesday morning"),
    ("cheap flights to lisbon in may from berlin", "cheap flights to lisbon in june from berlin"),
    ("error 404 page not found on this server", "error 403 page not found on this server"),
    ("large blue cotton shirt for men size m", "large blue cotton shirt for men size l"),
]


def test_short_texts_need_small_features_and_a_larger_distance() -> None:
    """One word of eight changes: three-word shingles part the texts, character shingles do not."""
    shingles = nd.Recipe()
    characters = nd.Recipe(tokens="chars", ngram=3)
    texts = [text for pair in SHORT for text in pair]
    pairs = nd.pairs(nd.fingerprints(texts, characters), distance=12).to_pylist()
    assert [(row["left"], row["right"]) for row in pairs] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert nd.pairs(nd.fingerprints(texts, characters), distance=3).num_rows == 0

    def farthest(recipe: nd.Recipe) -> int:
        return max(
            nd.distance(nd.fingerprint(a, recipe), nd.fingerprint(b, recipe)) for a, b in SHORT
        )

    assert farthest(shingles) > 12
    assert farthest(characters) < farthest(shingles)


def test_help_and_planners_know_the_plans_of_one_table() -> None:
    named = {"M": "4", "MxM": "4x4", "RECALL": "0.9", "N": "2"}
    for written in sorted({*SEARCH_PLANS, *JOIN_PLANS}):
        kind, colon, letter = written.partition(":")
        plan = kind + colon + named.get(letter, "")
        assert written in listed_plans(SEARCH_PLANS)
        assert plan_search(100, 3, plan=plan).name == plan or plan == "auto"
        if written in JOIN_PLANS:
            assert written in listed_plans(JOIN_PLANS)
            assert check_join_plan(plan, 3, 64).name == plan
        else:
            with pytest.raises(UsageError, match="plan"):
                check_join_plan(plan, 3, 64)


@given(st.integers(0, 9), st.integers(-1, 11))
def test_values_within_a_distance_are_counted(bits: int, distance: int) -> None:
    near = [value for value in range(1 << bits) if value.bit_count() <= distance]
    assert signatures(bits, distance) == len(near)


@given(st.lists(st.floats(0, 1), max_size=6), st.integers(-1, 7))
def test_shares_within_a_distance_add_up_over_all_choices_of_bits(
    differ: list[float], distance: int
) -> None:
    shares = shares_within(np.array(differ), distance)
    for bits in range(len(differ) + 1):
        few = [x for x in product([0, 1], repeat=bits) if sum(x) <= distance]
        chances = [
            prod(share if bit else 1 - share for bit, share in zip(x, differ, strict=False))
            for x in few
        ]
        assert shares[bits] == pytest.approx(sum(chances))


@given(st.integers(0, 80), st.integers(1, 80))
def test_radii_of_blocks_leave_no_near_row_out(distance: int, m: int) -> None:
    radii = block_radii(distance, m)
    assert sum(radius + 1 for radius in radii) == distance + 1
