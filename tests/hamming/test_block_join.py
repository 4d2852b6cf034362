"""The shares of all blocks together are all pairs, each once, whatever the rows are like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.hamming import block_join as shares
from neardup.hamming import labels_of_block, pairs_of_block
from neardup.hamming.join import row_partition
from planted import JIT, brute, planted
from similarity.test_join import components_by_definition
from suite import examples

if TYPE_CHECKING:
    from collections.abc import Iterator


def blocks(bits: int, distance: int) -> Any:
    """Masks of distance + 1 runs of bits, in Python numbers; some are empty if there are more."""
    cuts = [bits * i // (distance + 1) for i in range(distance + 2)]
    masks = [(1 << cuts[i + 1]) - (1 << cuts[i]) for i in range(distance + 1)]
    words = range(-(-bits // 64))
    return np.array([[mask >> 64 * w & (1 << 64) - 1 for w in words] for mask in masks], np.uint64)


def shared(codes: Any, bits: int, distance: int) -> list[tuple[int, int, int]]:
    """What all shares give, of which each is in order."""
    masks, result = blocks(bits, distance), []
    for block in range(distance + 1):
        columns = pairs_of_block(codes, masks[: block + 1], distance, bits)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        assert rows == sorted(rows)
        result += rows
    return sorted(result)


def united(codes: Any, bits: int, distance: int) -> list[int]:
    """The groups that the labels of all blocks join; in a block they join matches alone."""
    masks, links = blocks(bits, distance), set()
    for block in range(distance + 1):
        labels = labels_of_block(codes, masks[: block + 1], distance, bits).tolist()
        links |= set(enumerate(labels))
    return components_by_definition(len(codes), links)


@pytest.fixture(params=[False, True], ids=["auto", "own plan"], scope="module")
def _plan(request: pytest.FixtureRequest) -> Iterator[None]:
    """Also where the plan of a block alone seems dear, or rows seem few, or enough for threads."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            patch.setattr(shares, "DOUBT", 0.0)
            patch.setattr(shares, "FEW_ROWS", 2)
            patch.setattr(row_partition, "ROWS_OF_A_THREAD", 50)
        yield


@pytest.mark.usefixtures("_plan")
@pytest.mark.parametrize("bits", [3, 33, 64, 100, 128])
@pytest.mark.parametrize("distance", [0, 1, 3, 6, 12])
@pytest.mark.parametrize("rows", [0, 1, 40, 700 if JIT else 300])
def test_the_shares_are_all_pairs(bits: int, distance: int, rows: int) -> None:
    codes = planted(bits, distance, rows, max(1, rows))[:rows]
    pairs = brute(codes, distance)
    assert shared(codes, bits, distance) == pairs
    assert united(codes, bits, distance) == components_by_definition(
        len(codes), {pair[:2] for pair in pairs}
    )


@pytest.mark.usefixtures("_plan")
@settings(max_examples=examples(40, 6), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    values=st.sampled_from([1, 7, 300, 2**12, 2**20]),
    turned=st.integers(0, 63),
    distance=st.integers(0, 5),
)
def test_skewed_rows_are_shared_too(seed: int, values: int, turned: int, distance: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(0, values, (600 if JIT else 300, 1)).astype(np.uint64)
    codes ^= np.uint64(1) << np.uint64(turned)
    assert shared(codes, 64, distance) == brute(codes, distance)
