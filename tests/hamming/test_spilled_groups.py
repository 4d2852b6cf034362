"""Greedy keep of fingerprints that do not fit in memory, and the file of clusters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
from commands import Here
from neardup.errors import UsageError
from neardup.fingerprinting.fingerprint_files import fingerprint_table
from neardup.fingerprinting.recipe import Recipe
from neardup.hamming.clusters import components, greedy
from neardup.hamming.join.greedy_keep import keep_within
from neardup.hamming.join.problem import Engine
from neardup.hamming.spilled import spilled_groups
from neardup.hamming.spilled.batches import Limits
from neardup.hamming.spilled.slab_join import Budget
from neardup.hamming.spilled.sources import open_rows
from neardup.hamming.spilled.spilled_groups import keep_greedily, label_ranges, spilled_greedy
from neardup.pipeline import clusters_file
from shapes import SPLIT_AGAIN, shapes
from suite import examples

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("shape", ["plain", "equal", "constant", "ball"])
def test_greedy_keep_is_that_of_the_join_in_memory(shape: str) -> None:
    for bits, distance in ((64, 3), (65, 1), (128, 4)):
        fps = shapes(bits, distance)[shape]
        want = greedy(fps, None, distance, bits).tolist()
        for budget in (SPLIT_AGAIN, Budget(1 << 20, 1 << 20)):
            limits = Limits(budget=budget, workers=2)
            assert spilled_greedy(fps, distance, bits, "blocks", limits).tolist() == want


@settings(max_examples=examples(60, 10), deadline=None)
@given(
    values=st.lists(st.integers(0, 2**8 - 1), max_size=60),
    distance=st.integers(0, 3),
    most=st.integers(1, 130),
    shift=st.integers(1, 10),
)
@example(values=[0, 0], distance=0, most=2, shift=1)
@example(values=[0] * 4 + [255] * 4, distance=0, most=6, shift=10)
def test_some_components_at_a_time_keep_what_all_at_once_keep(
    values: list[int], distance: int, most: int, shift: int
) -> None:
    fps = np.array(values, np.uint64)
    labels = components(fps, distance, 64).astype(np.uint32)
    engine, sizes = Engine(distance, 64, 1), [0]

    def measured(codes: Any, *rest: Any) -> Any:
        sizes.append(len(codes))
        return keep_within(codes, *rest)

    with pytest.MonkeyPatch.context() as patch, open_rows(fps) as (rows, _):
        patch.setattr(spilled_groups, "RANGE_BITS", shift)
        patch.setattr(spilled_groups, "ROWS_AT_ONCE", 16)
        patch.setattr(spilled_groups, "keep_within", measured)
        try:
            ranges = label_ranges(labels, most)
        except UsageError:
            dropped = labels[labels != np.arange(len(values))]
            counts = Counter((dropped >> max(0, len(values).bit_length() - shift)).tolist())
            assert max(counts.values()) > most // 2
            return
        assert not ranges or (ranges[0][0], ranges[-1][1]) == (0, len(values))
        keep_greedily(rows, labels, engine, most)
    assert max(sizes) <= most
    assert labels.tolist() == naive.greedy(list(values), distance, list(range(len(values))))


def fingerprint_files(folder: Path, values: list[int]) -> None:
    """Two files, with ids."""
    codes = np.array(values, np.uint64)[:, None]
    ids = pa.array([f"d{i}" for i in range(len(values))], pa.large_string())
    table = fingerprint_table(ids, codes, Recipe(bits=64))
    half = len(values) // 2
    pq.write_table(table[:half], folder / "1.parquet")
    pq.write_table(table[half:], folder / "2.parquet")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Here:
    """Commands run in this process, in a folder with fingerprint files."""
    fingerprint_files(tmp_path, [0, 0b111, 0b111111, 0xFF << 56, (0xFF << 56) + 1])
    return Here(tmp_path, monkeypatch, capfd)


@pytest.mark.parametrize(
    ("policy", "rows"),
    [
        ("greedy", [("d0", True), ("d0", False), ("d2", True), ("d3", True), ("d3", False)]),
        ("components", [("d0", True), ("d0", False), ("d0", False), ("d3", True), ("d3", False)]),
    ],
)
def test_the_command_writes_the_cluster_of_every_row(
    here: Here, policy: str, rows: list[Any]
) -> None:
    files = ["1.parquet", "2.parquet"]
    _, message = here("pairs", *files, "--clusters", "c.csv", "--policy", policy, "--memory", "64M")
    assert f"{sum(kept for _, kept in rows)} kept within 3 bits among 5 fingerprints" in message
    lines = [f"d{i},{label},{kept}" for i, (label, kept) in enumerate(rows)]
    assert (here.folder / "c.csv").read_text().splitlines() == ["id,cluster,kept", *lines]
    assert clusters_file(files, "again.csv", policy=policy).fingerprints == 5
    assert (here.folder / "again.csv").read_bytes() == (here.folder / "c.csv").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "say what to write"),
        (["-o", "a.csv", "--clusters", "b.csv"], "say what to write"),
        (["-o", "a.csv", "--policy", "greedy"], "--policy requires --clusters"),
        (["--clusters", "b.csv", "--policy", "best"], "'best': use greedy or components"),
    ],
)
def test_wrong_options_are_one_clear_line(here: Here, options: list[str], message: str) -> None:
    out, err = here("pairs", "1.parquet", *options, code=2)
    assert message in err
    assert out == ""
    assert here.files() == ["1.parquet", "2.parquet"]
