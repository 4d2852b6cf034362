"""Merges that put their arrays into files: the same bytes, in a memory that has a bound."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.index import set_arrays as arrays
from neardup.index import set_arrays as places
from neardup.index.durable import folder_store
from neardup.index.id_columns import IdColumn
from neardup.index.kind_settings import SimilaritySettings
from neardup.index.set_arrays import Sets
from neardup.index.set_segments import SetRows, merged
from suite import needs_jit

if TYPE_CHECKING:
    from pathlib import Path

FEW = st.integers(0, 30).map(lambda number: number * 0x9E3779B97F4A7C15 % 2**64)
document = st.one_of(
    st.sets(FEW, max_size=25), st.sets(st.integers(0, 2**64 - 1), max_size=40), st.just(set())
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merges")


def rows_of(documents: list[set[int]], first: int) -> SetRows:
    features = [sorted(each) for each in documents]
    offsets = np.cumsum([0, *map(len, features)])
    sets = Sets(np.array([x for each in features for x in each], np.uint64), offsets)
    numbers = np.arange(first, first + len(documents))
    return SetRows(sets, np.arange(len(documents)), IdColumn(pa.array(numbers)), numbers)


@given(
    st.lists(st.lists(document, min_size=1, max_size=30), min_size=1, max_size=4),
    st.sampled_from(["jaccard", "cosine", "containment", "dice"]),
    st.tuples(st.integers(1, 60), st.integers(1, 60)),
    st.booleans(),
)
def test_slices_make_the_same_segment(
    folder: Path,
    parts: list[list[set[int]]],
    measure: str,
    sizes: tuple[int, int],
    is_sampled: bool,
) -> None:
    settings = SimilaritySettings(0.6, measure, None)
    rows = [rows_of(part, 100 * i) for i, part in enumerate(parts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "SAMPLED_SETS", 0 if is_sampled else 1 << 11)
        whole = merged(rows, settings)
        patch.setattr(places, "SPOOLED", 0)
        patch.setattr(places, "SLICE", sizes[0])
        patch.setattr(arrays, "ENTRIES_A_RANGE", sizes[1])
        sliced = merged(rows, settings, folder)
    assert sliced.arrays.keys() == whole.arrays.keys()
    for name, array in whole.arrays.items():
        other = sliced.arrays[name]
        assert (other.dtype, other.shape, other.tobytes()) == (
            array.dtype, array.shape, array.tobytes(),
        ), name  # fmt: skip
    assert list(folder.iterdir()) == []


@given(st.lists(document, min_size=12, max_size=60), st.integers(0, 10))
def test_the_order_does_not_depend_on_how_many_counters_there_are(
    documents: list[set[int]], bits: int
) -> None:
    sets = rows_of(documents, 0).sets
    result = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "SAMPLED_SETS", 12)
        for most in (26, bits):
            patch.setattr(arrays, "MOST_CELL_BITS", most)
            order = arrays.order_of(sets)
            ranks = dict(zip(order.keys.tolist(), order.ranks.tolist(), strict=True))
            result.append({key: rank for key, rank in ranks.items() if key})
    assert result[0] == result[1]


def stored(home: Path, count: int, size: int) -> Any:
    """An index of two stored segments, removed rows among them."""
    random = np.random.default_rng(size)
    index = nd.DurableIndex.open(home, similarity=0.8)
    for first in (0, count):
        sets = random.integers(0, 1 << 64, (count, size), np.uint64)
        index.add(np.arange(first, first + count), sets)
        index.commit()
    index.remove(np.arange(0, count, 7))
    index.commit()
    return index


def test_a_folder_is_the_same_by_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "similarity", 40)
    result = []
    for name in ("whole", "sliced"):
        with stored(tmp_path / name, 60, 20) as index:
            if name == "sliced":
                monkeypatch.setattr(places, "SPOOLED", 0)
                monkeypatch.setattr(places, "SLICE", 50)
            index.compact()
            assert index.check() == []
        result += [path.read_bytes() for path in (tmp_path / name).glob("*.nds")]
    assert len(result) == 2
    assert result[0] == result[1]


@needs_jit
def test_a_merge_takes_memory_for_documents_not_for_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 10,000 documents of 1,000 features, 80 MB; a slice is a megabyte."""
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "similarity", 100)
    monkeypatch.setattr(places, "SPOOLED", 0)
    monkeypatch.setattr(places, "SLICE", 1 << 17)
    monkeypatch.setattr(arrays, "ENTRIES_A_RANGE", 1 << 17)
    monkeypatch.setattr(arrays, "MOST_CELL_BITS", 20)
    with stored(tmp_path / "index", 5_000, 1_000) as index:
        index.query(np.arange(5))
        tracemalloc.start()
        index.compact()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert sum(each["features"] for each in index.stats()["segments"]) > 8_000_000
    assert peak < 24 << 20


def test_a_folder_that_takes_no_files_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "SPOOLED", 0)
    rows, settings = rows_of([{1, 2}], 0), SimilaritySettings(0.6, "jaccard", None)
    with pytest.raises(nd.FileError, match=r"cannot write temporary features in .*nowhere"):
        merged([rows], settings, tmp_path / "nowhere")
