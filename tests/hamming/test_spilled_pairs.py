"""A join that does not fit in memory finds what the join in memory finds, and leaves nothing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from neardup.errors import DataError, FileError, RecipeError, TooManyPairsError, UsageError
from neardup.fingerprinting.fingerprint_files import FingerprintReader, fingerprint_table
from neardup.fingerprinting.recipe import Recipe
from neardup.hamming.clusters import components
from neardup.hamming.spilled import sources
from neardup.hamming.spilled.batches import Limits, pair_batches
from neardup.hamming.spilled.pair_spool import PairSpool
from neardup.hamming.spilled.row_file import RowFile
from neardup.hamming.spilled.slab_join import Budget, SpilledJoin
from neardup.hamming.spilled.spilled_groups import spilled_components
from neardup.pipeline import pairs_file
from neardup.runtime.arrays import cut
from neardup.runtime.storage.temporary import TemporaryRows
from planted import brute, planted
from shapes import SPLIT_AGAIN, shapes
from suite import JIT, examples

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
MANY_SLABS = Budget(slab_rows=70, whole_rows=40, pairs_at_once=50, pair_bytes=1 << 14)


def found(source: Any, distance: int, bits: int | None = None, **options: Any) -> list[Any]:
    """The rows of all batches, in their order."""
    budget, plan = options.pop("budget", MANY_SLABS), options.pop("plan", "blocks")
    limits = Limits(workers=options.pop("workers", 2), budget=budget, **options.pop("limits", {}))
    batches = pair_batches(source, distance, bits, plan, limits, **options)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("width", [1, 2])
def test_a_map_of_a_file_is_read_where_it_is(tmp_path: Path, width: int) -> None:
    codes = np.arange(12 * width, dtype=np.uint64).reshape(12, width)
    np.save(tmp_path / "codes.npy", codes[:, 0] if width == 1 else codes)
    mapped = np.load(tmp_path / "codes.npy", mmap_mode="r")
    assert found(mapped, 2) == found(codes, 2) != []


@pytest.mark.parametrize("row", [0, 2])
def test_a_value_of_a_map_that_has_more_bits_is_refused(row: int, tmp_path: Path) -> None:
    codes = np.array([1, 2, 3], np.uint64)
    codes[row] = 1 << 40
    np.save(tmp_path / "codes.npy", codes)
    mapped = np.load(tmp_path / "codes.npy", mmap_mode="r")
    with pytest.raises(UsageError, match="40"):
        found(mapped, 1, 40)


@pytest.mark.parametrize("bits", [7, 64, 65, 128])
@pytest.mark.parametrize("shape", ["plain", "equal", "constant", "ball"])
def test_many_slabs_and_splits_find_what_comparing_all_finds(bits: int, shape: str) -> None:
    for distance in (0, 1, 3, 4):
        fps = shapes(bits, distance)[shape]
        want = brute(fps, distance)
        assert found(fps, distance, bits, budget=MANY_SLABS) == want
        for plan in ("blocks", f"multi:{min(bits, distance + 2)}"):
            if JIT or distance == 3:
                assert found(fps, distance, bits, budget=SPLIT_AGAIN, plan=plan) == want, plan


@settings(max_examples=examples(40, 5), deadline=None)
@given(
    values=st.lists(
        st.integers(0, 2**10 - 1) | st.sampled_from([0, 2**63, 2**64 - 1]), max_size=60
    ),
    distance=st.integers(0, 4),
    slab=st.integers(8, 40),
    whole=st.integers(2, 12),
)
def test_small_lists_equal_the_oracle(
    values: list[int], distance: int, slab: int, whole: int
) -> None:
    budget = Budget(max(slab, whole), whole, 3, 1 << 10)
    fps = np.array(values, np.uint64)
    want = [(i, j, d) for i, j, d in naive.pairs(values, distance)]
    assert found(fps, distance, 64, budget=budget) == sorted(want)


@pytest.mark.parametrize("first_row", [0, 2**31 - 5, 2**32 - 5, 2**40, 2**48 - 1000])
def test_row_numbers_go_beyond_32_bits(first_row: int) -> None:
    fps = shapes(64, 3)["equal"]
    want = [(left + first_row, right + first_row, d) for left, right, d in brute(fps, 3)]
    assert found(fps, 3, first_row=first_row, budget=SPLIT_AGAIN) == want


def test_workers_change_nothing() -> None:
    fps = shapes(64, 3)["plain"]
    want = brute(fps, 3)
    assert all(found(fps, 3, workers=workers) == want for workers in (1, 2, 5))


@pytest.mark.parametrize("shape", ["plain", "equal", "constant", "ball"])
def test_components_are_those_of_the_join_in_memory(shape: str) -> None:
    for bits, distance in ((64, 3), (65, 1), (128, 4)):
        fps = shapes(bits, distance)[shape]
        want = components(fps, distance, bits).tolist()
        for budget in (MANY_SLABS, SPLIT_AGAIN, Budget(1 << 20, 1 << 20)):
            limits = Limits(budget=budget, workers=2)
            assert spilled_components(fps, distance, bits, "blocks", limits).tolist() == want


def test_every_source_gives_the_same_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 100)
    fps = planted(64, 3, 5)
    want = brute(fps, 3)
    np.save(tmp_path / "fps.npy", fps)
    mapped = np.load(tmp_path / "fps.npy", mmap_mode="r")
    table = fingerprint_table(pa.array([str(i) for i in range(len(fps))]), fps, Recipe(bits=64))
    halves = [str(tmp_path / f"{part}.parquet") for part in "ab"]
    pq.write_table(table[:100], halves[0])
    pq.write_table(table[100:], halves[1])
    for source in (fps, fps[:, 0], mapped, mapped[:], iter([fps[:7], fps[7:]]), halves):
        assert found(source, 3) == want
    assert found(mapped[9:], 3) == brute(fps[9:], 3)


def test_progress_ends_where_it_was_said_to() -> None:
    """Every pass over rows that no value and no bin is common among."""
    rows = np.random.default_rng(3).integers(0, 2**64, (160, 2), np.uint64)
    totals, advances = [], []

    class Counted:
        def begin(self, step: str, total: int | None = None) -> None:
            totals.append((step, total))

        def advance(self, units: int) -> None:
            advances.append(units)

    found(rows, 3, progress=Counted())
    passes, nbytes = 4, rows.nbytes
    assert totals[0] == ("join", passes * nbytes)
    assert sum(advances) == passes * nbytes


def test_masked_rows_never_match() -> None:
    fps = planted(128, 3, 5)
    skipped = np.arange(0, len(fps), 3)
    mask = np.zeros(fps.shape, bool)
    mask[skipped] = True
    masked = np.ma.masked_array(fps, mask)
    assert found(masked, 3) == brute(fps, 3, skipped)
    assert found(iter([fps[:50], masked[50:61], masked[61:]]), 3) == brute(
        fps, 3, skipped[skipped >= 50]
    )


@needs_proc
@pytest.mark.parametrize("end", ["success", "error", "interrupt", "too many", "closed early"])
def test_nothing_is_left_behind(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fps = shapes(64, 3)["ball"]
    errors = {"error": FileError("disk"), "interrupt": KeyboardInterrupt()}
    if end in errors:

        def fail(*_: Any) -> None:
            raise errors[end]

        monkeypatch.setattr(SpilledJoin, "_join_heavy", fail)
    limits = {"tmp": str(tmp_path), "limit": 5 if end == "too many" else None}
    before = len(list(Path("/proc/self/fd").iterdir()))
    try:
        if end == "closed early":
            batches = pair_batches(fps, limits=Limits(budget=SPLIT_AGAIN, **limits))
            assert next(batches).num_rows
            assert list(tmp_path.iterdir()) == []
            batches.close()
        else:
            found(fps, 3, budget=SPLIT_AGAIN, limits=limits)
        assert end in {"success", "closed early"}
    except (FileError, KeyboardInterrupt, TooManyPairsError):
        assert end not in {"success", "closed early"}
    assert list(tmp_path.iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_limit_names_the_count_so_far() -> None:
    fps = shapes(64, 3)["equal"]
    with pytest.raises(TooManyPairsError) as caught:
        found(fps, 3, limits={"limit": 10})
    assert caught.value.count > 10
    assert str(caught.value).startswith("at least ")
    count = len(brute(fps, 3))
    assert len(found(fps, 3, limits={"limit": count})) == count


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"plan": "magic"}, "magic"),
        ({"plan": "multi:2"}, "too few"),
        ({"distance": -1}, "-1"),
        ({"bits": 65}, "65"),
        ({"limits": {"limit": -1}}, "limit"),
        ({"limits": {"memory": "3 elephants"}}, "elephants"),
        ({"first_row": 2**48}, "row numbers"),
        ({"source": iter([np.zeros(3, np.uint64), np.zeros((3, 2), np.uint64)])}, "words"),
    ],
)
def test_wrong_usage_says_what_is_wrong(change: dict[str, Any], word: str) -> None:
    arguments: dict[str, Any] = {"source": np.zeros(3, np.uint64), "distance": 3} | change
    with pytest.raises(UsageError, match=word):
        found(**arguments)


def test_a_folder_that_is_not_there_is_a_clear_error() -> None:
    with pytest.raises(FileError, match="--tmp"):
        found(np.zeros(3, np.uint64), 3, limits={"tmp": "/no/such/folder"})


def test_a_file_that_became_shorter_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(bytes(80))
    with path.open("rb") as file, pytest.raises(FileError, match="shorter"):
        list(RowFile(file.fileno(), 11, 1).chunks(0, 11))


def test_recipes_do_not_mix(tmp_path: Path) -> None:
    paths = []
    for ngram in (2, 3):
        table = fingerprint_table(
            pa.array(["a"]), planted(64, 3, 1)[:1], Recipe(ngram=ngram, bits=64)
        )
        paths.append(str(tmp_path / f"{ngram}.parquet"))
        pq.write_table(table, paths[-1])
    with pytest.raises(RecipeError, match="one recipe"):
        FingerprintReader(paths)
    (tmp_path / "text.parquet").write_text("text")
    with pytest.raises(DataError, match="not a Parquet file"):
        FingerprintReader([str(tmp_path / "text.parquet")])


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_files_of_pairs_name_the_ids(ending: str, tmp_path: Path) -> None:
    fps = planted(64, 3, 9)
    ids = [f"document é {i}" * (i % 3) for i in range(len(fps))]
    table = fingerprint_table(pa.array(ids), fps, Recipe(bits=64))
    for name, part in (("a", table[:150]), ("b", table[150:])):
        pq.write_table(part, tmp_path / f"{name}.parquet", row_group_size=33)
    output = tmp_path / f"pairs.{ending}"
    limits = Limits(budget=MANY_SLABS, tmp=str(tmp_path))
    summary = pairs_file([str(tmp_path / "[ab].parquet")], str(output), 3, limits=limits)
    want = [(*row, ids[row[0]], ids[row[1]]) for row in brute(fps, 3)]
    assert (summary.pairs, summary.fingerprints) == (len(want), len(fps))
    if ending == "parquet":
        assert [tuple(row.values()) for row in pq.read_table(output).to_pylist()] == want
    else:
        assert len(output.read_text("utf8").splitlines()) == len(want) + (ending == "csv")
    assert sorted(x.name for x in tmp_path.iterdir()) == ["a.parquet", "b.parquet", output.name]


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1), st.integers(0, 2**15 - 1)),
        max_size=40,
    ),
    memory=st.sampled_from([1, 200, 4000, 1 << 20]),
)
def test_a_spool_gives_what_it_took_in_order(rows: list[Any], memory: int) -> None:
    with PairSpool(limit=100, memory=memory) as spool:
        for left, right, distance in rows:
            spool.add(*(np.array([x]) for x in (left, right, distance)))
        got = [row for part in spool.sorted_parts() for row in zip(*part, strict=True)]
        assert spool.count == len(rows)
    want = sorted((min(a, b), max(a, b)) for a, b, _ in rows)
    assert [(int(a), int(b)) for a, b, _ in got] == want
    assert sorted(int(d) for *_, d in got) == sorted(d for *_, d in rows)


@given(totals=st.lists(st.integers(0, 9), max_size=30), most=st.integers(1, 12))
def test_cuts_cover_every_row_and_keep_to_the_limit(totals: list[int], most: int) -> None:
    sizes = np.array(totals, np.int64)
    ranges = cut(sizes, most)
    assert sum(int(sizes[a:b].sum()) for a, b in ranges) == sum(totals)
    assert all(a < b for a, b in ranges)
    assert all(b <= c for (_, b), (c, _) in pairwise(ranges))
    assert all(
        int(sizes[a:b].sum()) <= most or np.count_nonzero(sizes[a:b]) == 1 for a, b in ranges
    )


@pytest.mark.parametrize("memory", [1 << 16, 1 << 24, 1 << 34])
def test_slabs_and_sorted_pairs_fit_in_the_memory(memory: int) -> None:
    budget = Budget.of(memory, RowFile(-1, 1000, 2, 0), extra=4)
    slab, whole = budget.slab_rows * (16 + 4 + 4 + 4), budget.whole_rows * (96 + 80 + 4)
    assert memory / 4 < slab < slab + whole < memory
    assert memory / 4 < budget.pair_bytes < memory


def test_a_temporary_file_has_no_name(tmp_path: Path) -> None:
    file = TemporaryRows(str(tmp_path))
    file.append(np.arange(4, dtype=np.uint64))
    assert file.nbytes == 32
    assert list(tmp_path.iterdir()) == []
    file.close()
