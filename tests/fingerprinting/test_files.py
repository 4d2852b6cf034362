"""Fingerprint files: what is written is what is read, and nothing else is taken for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents import OutputSet, write_table
from neardup.errors import DataError, FileError, RecipeError
from neardup.fingerprinting.fingerprint_files import Sealing, fingerprint_table, read_fingerprints
from neardup.fingerprinting.recipe import Recipe

if TYPE_CHECKING:
    from pathlib import Path

MASK64 = (1 << 64) - 1


def values_of(rows: list[list[int] | None], words: int) -> Any:
    data = np.array([row or [0] * words for row in rows], np.uint64).reshape(-1, words)
    missing = np.array([[row is None] * words for row in rows], bool).reshape(-1, words)
    return np.ma.MaskedArray(data, missing) if missing.any() else data


def saved(folder: Path, table: pa.Table) -> str:
    path = str(folder / "fps.parquet")
    pq.write_table(table, path)
    return path


def ids(count: int) -> pa.Array:
    return pa.array([f"d{i}" for i in range(count)], pa.large_string())


@given(data=st.data(), bits=st.sampled_from([1, 63, 64, 65, 128, 256]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, bits: int
) -> None:
    recipe = Recipe(bits=bits)
    whole = st.integers(0, (1 << bits) - 1)
    words = whole.map(lambda x: [x >> 64 * i & MASK64 for i in range(recipe.words)])
    values = values_of(data.draw(st.lists(st.none() | words, max_size=6)), recipe.words)
    table = fingerprint_table(ids(len(values)), values, recipe)
    fingerprints = read_fingerprints(saved(tmp_path_factory.mktemp("fps"), table))
    assert fingerprints.recipe == recipe
    assert fingerprints.bits == bits
    assert fingerprints.ids.to_pylist() == [f"d{i}" for i in range(len(values))]
    assert fingerprints.values.shape == (len(values), recipe.words)
    assert fingerprints.values.dtype == np.uint64
    assert fingerprints.values.tolist() == values.tolist()


def test_the_file_is_what_others_can_read(tmp_path: Path) -> None:
    table = fingerprint_table(ids(2), values_of([[1 << 63], None], 1), Recipe())
    stored = pq.read_table(saved(tmp_path, table))
    assert stored.schema.field("fingerprint").type == pa.uint64()
    assert stored["fingerprint"].to_pylist() == [1 << 63, None]
    assert stored.schema.metadata[b"neardup.digest"].decode() == Recipe().digest
    wide = fingerprint_table(ids(2), values_of([[1, 2], None], 2), Recipe(bits=128))
    assert wide.schema.field("fingerprint").type == pa.list_(pa.uint64(), 2)
    assert wide["fingerprint"].to_pylist() == [[1, 2], None]


def test_plain_integers_without_a_recipe_are_read(tmp_path: Path) -> None:
    for kind, stored in ((pa.uint64(), MASK64), (pa.int64(), -1)):
        fingerprints = read_fingerprints(
            saved(tmp_path, pa.table({"fingerprint": pa.array([stored, 1, None], kind)}))
        )
        assert fingerprints.recipe is None
        assert fingerprints.bits == 64
        assert fingerprints.values.tolist() == [[MASK64], [1], [None]]
        assert fingerprints.ids.to_pylist() == ["0", "1", "2"]


def test_many_row_groups_are_one(tmp_path: Path) -> None:
    path = str(tmp_path / "fps.parquet")
    rows = [[i, i + 1] for i in range(10)]
    table = fingerprint_table(ids(10), values_of([*rows[:9], None], 2), Recipe(bits=128))
    pq.write_table(table, path, row_group_size=3)
    assert read_fingerprints(path).values.tolist() == [*rows[:9], [None, None]]


def test_what_is_no_fingerprint_file_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.parquet"
    text.write_text("not parquet at all")
    with pytest.raises(DataError, match=r"text\.parquet: not a Parquet file"):
        read_fingerprints(str(text))
    with pytest.raises(FileError, match=r"no\.parquet: no such file"):
        read_fingerprints(str(tmp_path / "no.parquet"))
    with pytest.raises(DataError, match="no column 'fingerprint' among \\['text'\\]"):
        read_fingerprints(saved(tmp_path, pa.table({"text": ["a"]})))
    for column in (["ff"], [1.5], [[1, 2]]):
        with pytest.raises(DataError, match="uint64 or a fixed-size list of it is read"):
            read_fingerprints(saved(tmp_path, pa.table({"fingerprint": column})))


def test_a_changed_recipe_is_noticed(tmp_path: Path) -> None:
    table = fingerprint_table(ids(1), values_of([[1]], 1), Recipe())
    for changed, error, message in (
        ({b"neardup.digest": b"0" * 16}, DataError, "e56a096a51e6beda, but the file says 0000"),
        ({b"neardup.recipe": Recipe(ngram=2).to_json().encode()}, DataError, "has digest"),
        ({b"neardup.recipe": b'{"version":2}'}, RecipeError, "recipe version 2"),
    ):
        metadata = table.schema.metadata | changed
        path = saved(tmp_path, table.replace_schema_metadata(metadata))
        with pytest.raises(error, match=message):
            read_fingerprints(path)


def test_a_recipe_of_another_width_is_refused(tmp_path: Path) -> None:
    table = fingerprint_table(ids(1), values_of([[1]], 1), Recipe())
    recipe = Recipe(bits=128)
    metadata = {b"neardup.recipe": recipe.to_json(), b"neardup.digest": recipe.digest}
    with pytest.raises(DataError, match="128 bits"):
        read_fingerprints(saved(tmp_path, table.replace_schema_metadata(metadata)))


def test_bits_beyond_the_width_are_refused(tmp_path: Path) -> None:
    recipe = Recipe(bits=60)
    table = fingerprint_table(ids(1), values_of([[1 << 60]], 1), recipe)
    with pytest.raises(DataError, match="60 bits"):
        read_fingerprints(saved(tmp_path, table))


def sealed(path: str, table: pa.Table, cuts: list[int]) -> str:
    """A file as `neardup fingerprint` writes it, the rows cut into batches."""
    sealing, ends = Sealing(Recipe()), [*cuts, len(table)]
    parts = (table[begin:end] for begin, end in zip([0, *cuts], ends, strict=True))
    rows = sealing.passing(batch for part in parts for batch in part.to_batches())
    with OutputSet([]) as written:
        write_table(written, path, table.schema, rows, closing=sealing.metadata)
        written.commit()
    return path


def seal_of(path: str) -> bytes:
    return pq.ParquetFile(path).metadata.metadata[b"neardup.checksums"]


@given(cuts=st.lists(st.integers(0, 9), max_size=4).map(sorted))
def test_checksums_do_not_tell_how_rows_were_cut(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    folder, rows = tmp_path_factory.mktemp("fps"), [[i] if i % 3 else None for i in range(9)]
    table = fingerprint_table(ids(9), values_of(rows, 1), Recipe())
    cut = sealed(str(folder / "cut.parquet"), table, cuts)
    assert seal_of(cut) == seal_of(sealed(str(folder / "whole.parquet"), table, []))
    fingerprints = read_fingerprints(cut)
    assert (fingerprints.ids.to_pylist(), fingerprints.recipe) == (ids(9).to_pylist(), Recipe())
    assert fingerprints.values.tolist() == [row or [None] for row in rows]


def test_what_was_not_written_so_is_refused(tmp_path: Path) -> None:
    recipe = Recipe()
    table = fingerprint_table(ids(3), values_of([[1], None, [3]], 1), recipe)
    seal = seal_of(sealed(str(tmp_path / "good.parquet"), table, []))
    others = {
        "fingerprint": table.set_column(1, "fingerprint", pa.array([1, 0, 3], pa.uint64())),
        "id": table.set_column(0, "id", pa.array(["d0", "d", "1d2"], pa.large_string())),
        "footer": table.drop_columns("id"),
        "rows": table[:2],
        "recipe": table.replace_schema_metadata(
            {"neardup.recipe": Recipe(ngram=2).to_json(), "neardup.digest": Recipe(ngram=2).digest}
        ),
        "none": table.replace_schema_metadata(None),
    }
    for name, other in others.items():
        path = str(tmp_path / f"{name}.parquet")
        with pq.ParquetWriter(path, other.schema) as writer:
            writer.write_table(other)
            writer.add_key_value_metadata({b"neardup.checksums": seal})
        what = f"column '{name}'" if name in {"id", "fingerprint"} else "footer"
        with pytest.raises(DataError, match=f"its {what} does not agree with its checksums"):
            read_fingerprints(path)
