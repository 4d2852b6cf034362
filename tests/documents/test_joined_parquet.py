"""Kept rows of Parquet are encoded by threads, and the file is the one that Arrow alone writes."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents import OutputSet, ReadOptions, Rejects, open_sources, write_outputs
from neardup.documents.formats import columnar, parquet
from neardup.documents.formats.joined_parquet import JoinedParquet
from neardup.errors import DataError, FileError

STRING_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
]
WORDS = st.sampled_from(["", "a", "é", "word " * 9])
ROWS = st.fixed_dictionaries(
    {
        "text": WORDS,
        "number": st.none() | st.integers(-(2**63), 2**63 - 1),
        "lists": st.none() | st.lists(st.fixed_dictionaries({"x": st.floats(0, 1), "y": WORDS})),
        "kind": st.none() | WORDS,
        "map": st.lists(st.tuples(WORDS, st.booleans())),
        "bytes": st.none() | st.binary(max_size=9),
    }
)
NUM_ROWS = b"\x00\x16\x04\x19\x1c"
"""The end of the schema, two rows, and a list of one row group: the fields by what is added."""
CODECS = st.sampled_from(["none", "snappy", "gzip", "zstd"])


@st.composite
def tables(draw: st.DrawFn) -> list[pa.Table]:
    """Tables with the same schema, each with metadata of its own, some without a row."""
    schema = pa.schema(
        {
            "text": draw(st.sampled_from(STRING_TYPES)),
            "number": pa.int64(),
            "lists": pa.list_(pa.struct({"x": pa.float64(), "y": pa.string()})),
            "kind": pa.dictionary(pa.int8(), pa.string()),
            "map": pa.map_(pa.string(), pa.bool_()),
            "bytes": pa.large_binary(),
        }
    )
    lists = draw(st.lists(st.lists(ROWS, max_size=20), min_size=1, max_size=4))
    return [
        pa.Table.from_pylist(rows, schema.with_metadata({"place": str(i)} if i else {}))
        for i, rows in enumerate(lists, draw(st.integers(0, 1)))
    ]


def written(tables: list[pa.Table], schema: pa.Schema, codec: str, **how: Any) -> bytes:
    """The tables as row groups of a file that Arrow writes."""
    file = io.BytesIO()
    with pq.ParquetWriter(file, schema, compression=codec, **how) as writer:
        for table in tables:
            writer.write_table(table)
    return file.getvalue()


def joined(files: list[bytes], empty: bytes) -> bytes:
    target = io.BytesIO()
    joining = JoinedParquet(target.write, memoryview(empty))
    for file in files:
        joining.append(memoryview(file))
    joining.close()
    return target.getvalue()


@given(tables(), CODECS)
def test_joined_files_are_the_file_that_arrow_writes(some: list[pa.Table], codec: str) -> None:
    schema = some[0].schema
    files = [written([table], schema, codec) for table in some]
    assert joined(files, written([], schema, codec)) == written(some, schema, codec)


@pytest.mark.parametrize("groups", [0, 1, 14, 15, 16, 300])
def test_any_number_of_row_groups_is_joined_from_any_files(groups: int) -> None:
    some = [pa.table({"n": [i] * (i % 3)}, pa.schema({"n": pa.int64()})) for i in range(groups)]
    schema = pa.schema({"n": pa.int64()})
    whole = written(some, schema, "zstd")
    files = [written(some[i : i + 7], schema, "zstd") for i in range(0, groups, 7)]
    assert joined(files, written([], schema, "zstd")) == whole
    assert joined([whole], written([], schema, "zstd")) == whole
    twice = joined([whole, whole], written([], schema, "zstd"))
    assert twice == written([*some, *some], schema, "zstd")


def test_a_footer_may_number_fields_in_full_and_have_sorting_columns() -> None:
    table = pa.table({"n": pa.array([1, 2], pa.uint8())})
    how = {"sorting_columns": [pq.SortingColumn(0, descending=True)]}
    file = written([table], table.schema, "zstd", **how)
    empty = written([], table.schema, "zstd")
    assert joined([file, file], empty) == written([table, table], table.schema, "zstd", **how)
    rows = file.rindex(NUM_ROWS) + 1  # after the end of the schema's last element
    footer = int.from_bytes(file[-8:-4], "little") + 1
    full = b"".join(
        [file[:rows], b"\x06\x06", file[rows + 1 : -8], footer.to_bytes(4, "little"), b"PAR1"]
    )
    assert pq.read_table(pa.BufferReader(full)).equals(table)
    assert joined([full], empty) == file


@given(tables(), CODECS, st.integers(1, 2000), st.data())
def test_kept_rows_are_those_of_the_inputs_with_any_number_of_threads(
    tmp_path_factory: pytest.TempPathFactory,
    some: list[pa.Table],
    codec: str,
    nbytes: int,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    paths = [str(folder / f"{i}.parquet") for i in range(len(some))]
    for path, table in zip(paths, some, strict=True):
        pq.write_table(table, path, compression=codec, row_group_size=data.draw(st.integers(1, 9)))
    keeps = [np.array(data.draw(flags(len(table))), np.bool_) for table in some]
    files = [kept_file(paths, keeps, folder, workers, nbytes) for workers in (1, 4)]
    assert files[0] == files[1]
    result = pq.read_table(pa.BufferReader(files[0]))
    assert result.schema.equals(pq.read_schema(paths[0]), check_metadata=True)
    assert result.to_pylist() == [
        row
        for table, keep in zip(some, keeps, strict=True)
        for row, is_kept in zip(table.to_pylist(), keep, strict=True)
        if is_kept
    ]


def flags(count: int) -> st.SearchStrategy[list[bool]]:
    anyhow = st.lists(st.booleans(), min_size=count, max_size=count)
    return anyhow | st.just([False] * count) | st.just([True] * count)


def kept_file(
    paths: list[str], keeps: list[Any], folder: Path, workers: int, nbytes: int = 2000
) -> bytes:
    """The output of all inputs, in row groups and parts of about so many bytes."""
    out = str(folder / f"{workers}.out.parquet")
    with pytest.MonkeyPatch.context() as patch, OutputSet() as outputs:
        patch.setattr(columnar, "_WRITE_BYTES", nbytes)
        patch.setattr(columnar, "_READ_BYTES", nbytes)
        patch.setattr(parquet, "_RUN_BYTES", nbytes // 4)
        patch.setattr(parquet, "_DECODED_BYTES", nbytes // 2)
        write_outputs(read(paths), keeps, out, outputs, None, workers)
        outputs.commit()
    return Path(out).read_bytes()


@pytest.mark.parametrize("damaged", [False, True])
def test_row_groups_that_threads_decode_are_read_as_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    """Batches, what is refused, and where damage ends the reading."""
    path = tmp_path / "in.parquet"
    texts = [None if i % 90 == 7 else f"text {i} " * (i % 9) for i in range(600)]
    pq.write_table(
        pa.table({"text": texts, "id": range(600)}), path, row_group_size=50,
        write_page_checksum=True, compression="none", use_dictionary=False,
    )  # fmt: skip
    if damaged:
        content = bytearray(path.read_bytes())
        content[content.index(b"text 440 ") + 2] ^= 1
        path.write_bytes(content)
    monkeypatch.setattr(parquet, "_RUN_BYTES", 3000)
    monkeypatch.setattr(parquet, "_DECODED_BYTES", 800)
    seen = []
    for workers in (1, 4, 16):
        rejects, rows, error = Rejects(), list[Any](), ""
        options = ReadOptions(id="id", skip_errors=True, batch_bytes=600, workers=workers)
        (source,) = open_sources([str(path)])
        try:
            for batch in source.batches(options, rejects):
                rows.append((batch.rows.tolist(), batch.texts.to_pylist(), batch.ids.to_pylist()))
        except DataError as failure:
            error = str(failure)
        seen.append((rows, rejects.count, error))
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0][0]) > 20
    assert ("not a readable Parquet file" in seen[0][2]) is damaged
    assert seen[0][1] == (5 if damaged else 7)


def read(paths: list[str]) -> list[Any]:
    sources = open_sources(paths)
    for source in sources:
        assert sum(len(batch.rows) for batch in source.batches(ReadOptions())) >= 0
    return sources


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    """Many row groups of what cannot be compressed."""
    random = np.random.default_rng(1)
    values = [random.bytes(2000).hex() for _ in range(1000)]
    table = pa.table({"text": values, "other": values[::-1]})
    path = tmp_path / "noise.parquet"
    pq.write_table(table, path, row_group_size=100, write_page_checksum=True, compression="none")
    return path


@pytest.mark.parametrize("workers", [1, 4])
def test_a_full_disk_ends_the_threads(
    noise: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(columnar, "_WRITE_BYTES", 1 << 20)
    sources, before = read([str(noise)]), threading.active_count()
    with OutputSet() as outputs:
        keeps = [np.ones(1000, np.bool_)]
        sources[0].begin_writing(None, workers)
        with pytest.raises(FileError) as caught:  # it holds all frames
            sources[0].write_joined(sources, keeps, outputs.create("/dev/full"))
        assert threading.active_count() == before
    assert str(caught.value).startswith("cannot write /dev/full: no space left")


@pytest.mark.parametrize("workers", [1, 4])
def test_damage_in_the_middle_is_found_and_ends_the_threads(noise: Path, workers: int) -> None:
    column = pq.read_metadata(noise).row_group(5).column(1)
    data = bytearray(noise.read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    noise.write_bytes(data)
    before = threading.active_count()
    with pytest.raises(DataError, match=r"noise\.parquet: not a readable Parquet file"):
        kept_file([str(noise)], [np.ones(1000, np.bool_)], noise.parent, workers, 1 << 20)
    assert threading.active_count() == before
    assert [path.name for path in noise.parent.iterdir()] == [noise.name]
