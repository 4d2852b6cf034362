"""`components` and `greedy` equal their definitions, in memory proportional to the rows."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import UsageError
from neardup.hamming.clusters import components, greedy
from neardup.hamming.join.sinks import merge
from suite import JIT, examples, needs_jit


def near(fps: Any, distance: int) -> Any:
    """Which rows are within the distance of which: bool (n, n)."""
    codes = fps if fps.ndim == 2 else fps[:, None]
    apart = np.bitwise_count(codes[:, None] ^ codes[None]).sum(axis=2, dtype=np.int64)
    return apart <= distance


def components_by_definition(close: Any) -> list[int]:
    """The smallest row reachable from each row."""
    labels = np.arange(len(close))
    for _ in range(len(close)):
        spread = np.where(close, labels, len(close)).min(axis=1, initial=len(close))
        if (spread == labels).all():
            break
        labels = spread
    return labels.tolist()


def greedy_by_definition(close: Any, order: Any) -> list[int]:
    """Walk the rows in order, with the list of those kept."""
    kept_of, kept = [0] * len(close), []
    for row in order:
        match = next((other for other in kept if close[row, other]), None)
        kept_of[row] = int(row if match is None else match)
        if match is None:
            kept.append(row)
    return kept_of


def linked(bits: int, rows: int, seed: int) -> Any:
    """Fingerprints in chains: each a few bits from an earlier one."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, (rows, -(-bits // 64) * 64), dtype=np.uint8)
    table[:, bits:] = 0
    for row in range(1, rows):
        if rng.random() < 0.8:
            table[row] = table[rng.integers(0, row)]
            table[row, rng.integers(0, bits, rng.integers(0, 5))] ^= 1
    return np.packbits(table, axis=1, bitorder="little").view(np.uint64)


@pytest.mark.parametrize("bits", [7, 64, 100, 256])
@pytest.mark.parametrize("heavy", [2, 20, 8192])
def test_both_equal_their_definitions(bits: int, heavy: int) -> None:
    """For several widths, distances, plans and orders, and one and two threads."""
    fps = linked(bits, min(300, 30 * heavy) if JIT else 40, bits)
    rng = np.random.default_rng(bits)
    for distance in (0, 1, 3, 8, bits) if JIT else (3, bits):
        close = near(fps, distance)
        order = rng.permutation(len(fps))
        want = components_by_definition(close)
        want_kept = greedy_by_definition(close, order)
        plans = ["auto", "scan", "blocks"]
        if distance + 3 <= bits:
            plans.append(f"multi:{distance + 2}")
        for plan in plans:
            for workers in (1, 2):
                actual = components(fps, distance, bits, plan, workers, heavy=heavy)
                assert actual.tolist() == want
                kept = greedy(fps, order, distance, bits, plan, workers, heavy=heavy)
                assert kept.tolist() == want_kept
        in_order = greedy(fps, None, distance, bits, heavy=heavy).tolist()
        assert in_order == greedy_by_definition(close, range(len(fps)))


@settings(max_examples=examples(60, 10), deadline=None)
@given(
    values=st.lists(st.integers(0, 2**10 - 1) | st.sampled_from([2**63, 2**64 - 1]), max_size=40),
    distance=st.integers(0, 11),
    heavy=st.sampled_from([2, 5, 8192]),
    data=st.data(),
)
def test_small_lists_equal_the_definitions(
    values: list[int], distance: int, heavy: int, data: st.DataObject
) -> None:
    """For arbitrary lists and orders."""
    fps = np.array(values, np.uint64)
    order = data.draw(st.permutations(range(len(values))))
    close = near(fps, distance)
    for plan in ("auto", "blocks", f"multi:{distance + 2}"):
        labels = components(fps, distance, plan=plan, heavy=heavy).tolist()
        assert labels == components_by_definition(close)
        kept = greedy(fps, np.array(order, np.int64), distance, plan=plan, heavy=heavy).tolist()
        assert kept == greedy_by_definition(close, order)


def test_masked_rows_stay_alone() -> None:
    """A document without features is kept and is no one's neighbour."""
    fps = linked(64, 60, 3)[:, 0]
    mask = np.arange(60) % 4 == 0
    close = near(fps, 3) & ~mask[:, None] & ~mask[None] | np.eye(60, dtype=bool)
    order = np.arange(60)[::-1]
    masked = np.ma.masked_array(fps, mask)
    assert components(masked).tolist() == components_by_definition(close)
    assert greedy(masked, order).tolist() == greedy_by_definition(close, order)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19))), min_size=3, max_size=3)
)
def test_merge_does_not_depend_on_order_or_nesting(links: list[list[tuple[int, int]]]) -> None:
    """Any order and any nesting of merges groups the rows alike."""

    def forest(which: int) -> Any:
        parent = np.arange(20, dtype=np.uint32)
        for a, b in links[which]:
            roots = []
            for row in (a, b):
                root = row
                while parent[root] != root:
                    root = int(parent[root])
                roots.append(root)
            parent[max(roots)] = min(roots)
        return parent

    def groups(parent: Any) -> list[int]:
        labels = parent.astype(np.int64)
        while (labels != labels[labels]).any():
            labels = labels[labels]
        return labels.tolist()

    left = merge(merge(forest(0), forest(1)), forest(2))
    right = merge(forest(0), merge(forest(1), forest(2)))
    mih = merge(merge(forest(2), forest(0)), forest(1))
    assert groups(left) == groups(right) == groups(mih)


@needs_jit
def test_a_cluster_of_100_000_stays_in_linear_memory() -> None:
    """Billions of pairs within the distance are never stored."""
    rng = np.random.default_rng(4)
    one = np.uint64(1)
    fps = np.full(300_000, 0x1234_5678_9ABC_DEF0, np.uint64)
    for _ in range(4):
        fps ^= one << rng.integers(0, 64, len(fps)).astype(np.uint64)
    fps = np.unique(fps)[:100_000]
    components(fps[:10])
    greedy(fps[:10])
    tracemalloc.start()
    started = time.perf_counter()
    assert (components(fps) == 0).all()
    kept = greedy(fps)
    took = time.perf_counter() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500 * len(fps)
    assert took < 20
    chosen = np.flatnonzero(kept == np.arange(len(fps)))
    assert len(chosen) < len(fps)
    assert near(fps[chosen[:500]], 3).sum() == min(len(chosen), 500)


@needs_jit
def test_a_large_component_of_many_kept_rows_is_walked_by_tables() -> None:
    """More kept rows than a list is good for, equal to the definition."""
    fps = linked(64, 1, 1)[:, 0]
    rng = np.random.default_rng(5)
    chain = [int(fps[0])]
    for _ in range(9_000):
        bits = rng.choice(64, 2, replace=False)
        chain.append(chain[-1] ^ (1 << int(bits[0])) ^ (1 << int(bits[1])))
    fps = np.array(chain, np.uint64)
    kept = greedy(fps, distance=2)
    close = near(fps, 2)
    assert kept.tolist() == greedy_by_definition(close, range(len(fps)))
    assert (kept == np.arange(len(fps))).sum() > 1100


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [0, 1, 3], [0.0, 1.0, 2.0]])
def test_an_order_must_name_every_row_once(order: list[Any]) -> None:
    """Anything else is refused."""
    with pytest.raises(UsageError, match="order"):
        greedy(np.zeros(3, np.uint64), np.array(order))


def test_no_rows_give_no_labels() -> None:
    """Zero and one row."""
    assert components(np.zeros(0, np.uint64)).tolist() == []
    assert greedy(np.zeros(0, np.uint64)).tolist() == []
    assert greedy(np.zeros(1, np.uint64)).tolist() == [0]


@settings(max_examples=examples(40, 10), deadline=None)
@given(
    values=st.lists(st.integers(0, 40), max_size=80),
    distance=st.integers(0, 3),
    within=st.integers(1, 3),
    data=st.data(),
)
def test_equal_rows_stand_in_for_each_other_within_their_group_only(
    values: list[int], distance: int, within: int, data: st.DataObject
) -> None:
    """Most rows are equal to others, also to some that they must not match."""
    fps = np.array(values, np.uint64)
    groups = np.arange(len(fps), dtype=np.int32) % within
    order = np.array(data.draw(st.permutations(range(len(values)))), np.int64)
    close = near(fps, distance) & (groups[:, None] == groups)
    kept = greedy(fps, order, distance, groups=groups).tolist()
    assert kept == greedy_by_definition(close, order)
    assert components(fps, distance, groups=groups).tolist() == components_by_definition(close)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 1000])
def test_all_rows_equal_keep_the_first_in_order(n: int) -> None:
    fps = np.full(n, 2**63 + 5, np.uint64)
    assert greedy(fps).tolist() == components(fps).tolist() == [0] * n
    assert greedy(fps, np.arange(n)[::-1].copy()).tolist() == [max(0, n - 1)] * n
