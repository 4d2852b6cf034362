"""Every pair of a new and an old fingerprint within the distance, each once, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import DataError, RecipeError, UsageError
from neardup.fingerprinting.fingerprint_files import fingerprint_table
from neardup.hamming import cross_pairs
from neardup.pipeline import new_pairs_file

if TYPE_CHECKING:
    from pathlib import Path


def near(random: np.random.Generator, source: Any, count: int, bits: int) -> Any:
    """Copies of rows of `source`, each with up to 8 bits turned."""
    rows = source[random.integers(0, len(source), count)].copy()
    for row in rows:
        for bit in random.choice(bits, random.integers(0, 9), replace=False):
            row[bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
    return rows


def by_hand(new: Any, old: Any, distance: int) -> list[tuple[int, int, int]]:
    result = []
    for right, code in enumerate(old):
        for left, other in enumerate(new):
            masked = np.ma.is_masked(code) or np.ma.is_masked(other)
            apart = sum(int(a ^ b).bit_count() for a, b in zip(code.data, other.data, strict=True))
            if not masked and apart <= distance:
                result.append((left, right, apart))
    return result


def rows_of(batches: Any) -> list[tuple[int, int, int]]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@given(st.integers(0, 2**32), st.sampled_from([33, 64, 100]), st.sampled_from([0, 1, 3, 6]))
def test_it_finds_what_comparing_all_finds(seed: int, bits: int, distance: int) -> None:
    random = np.random.default_rng(seed)
    width = -(-bits // 64)
    new = random.integers(0, 2**64, (12, width), dtype=np.uint64)
    if bits % 64:
        new[:, -1] &= np.uint64((1 << bits % 64) - 1)
    old = near(random, new, 40, bits)
    masks = [np.repeat((random.random(n) < 0.2)[:, None], width, axis=1) for n in (12, 40)]
    one, other = (np.ma.MaskedArray(x, mask) for x, mask in zip((new, old), masks, strict=True))
    batches = [other[:17], other[17:17], other[17:]]
    pairs = rows_of(cross_pairs(one, batches, distance, bits))
    assert pairs == by_hand(one, other, distance)


@pytest.mark.parametrize("plan", ["auto", "scan", "bits", "blocks", "multi:4", "mih:2", "probe"])
def test_every_exact_plan_finds_the_same(plan: str) -> None:
    random = np.random.default_rng(3)
    new = random.integers(0, 2**64, (30, 1), dtype=np.uint64)
    old = near(random, new, 60, 64)
    assert rows_of(cross_pairs(new, [old], 1, plan=plan)) == by_hand(
        np.ma.array(new), np.ma.array(old), 1
    )


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="is approximate"):
        list(cross_pairs([1], [[2]], plan="permute:4"))
    with pytest.raises(UsageError, match="fingerprints have 65,536 bits: use up to 32,767"):
        list(cross_pairs(np.zeros((1, 1024), np.uint64), [np.zeros((2, 1024), np.uint64)]))
    with pytest.raises(UsageError, match="bits is 64: 2 words hold 65 to 128"):
        list(cross_pairs([1], [np.zeros((1, 2), np.uint64)]))
    assert list(cross_pairs(np.zeros(0, np.uint64), [[1, 2]])) == []


def test_files_are_joined_with_their_ids(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    new = random.integers(0, 2**64, (20, 1), dtype=np.uint64)
    old = near(random, new, 50, 64)
    new[-1] = old[7] = 0
    new = np.ma.masked_equal(new, 0)  # a missing one is not near a fingerprint of zero
    for name, codes, first in (("new", new, 0), ("1", old[:30], 0), ("2", old[30:], 30)):
        ids = pa.array([f"{name[:3]}-{first + i}" for i in range(len(codes))], pa.large_string())
        pq.write_table(fingerprint_table(ids, codes, nd.Recipe()), tmp_path / f"{name}.parquet")
    others = [str(tmp_path / "1.parquet"), str(tmp_path / "2.parquet")]
    actual = new_pairs_file(str(tmp_path / "new.parquet"), others, str(tmp_path / "p.parquet"))
    rows = pq.read_table(tmp_path / "p.parquet").to_pylist()
    expected = by_hand(new, np.ma.array(old), 3)
    assert [(row["left"], row["right"], row["distance"]) for row in rows] == expected
    assert actual.pairs == len(expected) > 0
    assert actual.fingerprints == 70
    for row in rows:
        assert row["left_id"] == f"new-{row['left']}"
        assert row["right_id"] == f"{1 if row['right'] < 30 else 2}-{row['right']}"


def test_files_of_other_recipes_and_other_files_are_refused(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{name}.parquet") for name in ("a", "b", "c")]
    for path, recipe in zip(paths, (nd.Recipe(), nd.Recipe(ngram=2)), strict=False):
        pq.write_table(
            fingerprint_table(pa.array(["x"]), nd.fingerprints(["x"], recipe), recipe), path
        )
    with pytest.raises(RecipeError, match="make them with one recipe"):
        new_pairs_file(paths[0], paths[1], str(tmp_path / "p.csv"))
    pq.write_table(pa.table({"text": ["x"]}), paths[2])
    with pytest.raises(DataError, match="make the file with `neardup fingerprint`"):
        new_pairs_file(paths[0], paths[2], str(tmp_path / "p.csv"))
    assert not (tmp_path / "p.csv").exists()
