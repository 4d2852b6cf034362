"""Records above the limit are bad records, and the others are read and kept as ever."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import neardup as nd
from neardup.documents import ReadOptions, open_sources
from neardup.documents.batch import longest_record
from neardup.documents.files.input_bytes import find_input
from neardup.documents.files.output_set import OutputSet
from neardup.documents.formats.csv import CsvSource
from neardup.documents.formats.csv_lines import CsvLines
from neardup.documents.formats.jsonl import JsonlSource
from neardup.documents.rejects import Rejects
from suite import needs_jit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST = 60
SIZES = st.lists(st.integers(0, 3 * LONGEST), max_size=12)
BATCHES = st.sampled_from([1, 30, 200, 1 << 20])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("long")


@pytest.fixture(autouse=True, params=[0, 1 << 40], ids=["plain", "kernel"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JsonlSource, "plainly_parsed", request.param)
    monkeypatch.setattr(CsvSource, "plainly_parsed", request.param)


def read(path: Path, batch_bytes: int = 1 << 20) -> Any:
    """Texts, rows of those, rows and records of rejects, and the file that keeps all."""
    options = ReadOptions(skip_errors=True, batch_bytes=batch_bytes, record_bytes=LONGEST)
    (source,) = open_sources([str(path)])
    rejected, kept = path.parent / "rejected.jsonl", path.with_name(f"kept.{path.name}")
    for old in (rejected, kept):
        old.unlink(missing_ok=True)
    texts: list[str] = []
    rows: list[int] = []
    with Rejects(str(rejected)) as rejects:
        for batch in source.batches(options, rejects):
            texts += batch.texts.to_pylist()
            rows += batch.rows.tolist()
    with OutputSet() as outputs:
        source.write_kept(np.ones(len(texts), np.bool_), outputs.create(str(kept)))
        outputs.commit()
    bad = [json.loads(line) for line in rejected.read_text().splitlines()]
    return texts, rows, bad, kept.read_bytes()


@given(SIZES, BATCHES, st.booleans(), st.sampled_from([b"", codecs.BOM_UTF8]))
@example([200], 1, False, codecs.BOM_UTF8)
def test_lines_above_the_limit_are_rejected(
    folder: Path, sizes: list[int], batch_bytes: int, ends: bool, mark: bytes
) -> None:
    lines = [json.dumps({"text": "é" * (i % 2) + "w" * n}, ensure_ascii=False).encode() + b"\n"
             for i, n in enumerate(sizes)]  # fmt: skip
    if lines and not ends:
        lines[-1] = lines[-1].rstrip()
    (folder / "in.jsonl").write_bytes(mark + b"".join(lines))
    texts, rows, bad, kept = read(folder / "in.jsonl", batch_bytes)
    length = [len(line.rstrip()) + (3 if mark and i == 0 else 0) for i, line in enumerate(lines)]
    good = [i for i, nbytes in enumerate(length) if nbytes <= LONGEST]
    assert texts == [json.loads(lines[i])["text"] for i in good]
    assert rows == [i + 1 for i in good]
    assert [each["row"] for each in bad] == [i + 1 for i in range(len(lines)) if i not in good]
    assert all("is too long: at most 0.0 MB fit in memory" in each["reason"] for each in bad)
    assert kept.rstrip() == b"".join(lines[i] for i in good).rstrip()


def rows_of(sizes: list[int], quoted: list[bool]) -> Iterator[bytes]:
    for i, (size, is_quoted) in enumerate(zip(sizes, quoted, strict=True)):
        text = 'a "b"\n' * (size // 6) + "x" * (size % 6) if is_quoted else "y" * size
        row = io.StringIO()
        csv.writer(row, lineterminator="\n").writerow([i, text])
        yield row.getvalue().encode()


@given(st.lists(st.tuples(st.integers(0, 3 * LONGEST), st.booleans()), max_size=10), BATCHES)
@example([(20, False), (170, True), (170, False), (20, True)], 1 << 20)
def test_rows_above_the_limit_are_rejected_also_those_of_many_lines(
    folder: Path, given_rows: list[tuple[int, bool]], batch_bytes: int
) -> None:
    rows = list(rows_of([n for n, _ in given_rows], [is_quoted for _, is_quoted in given_rows]))
    (folder / "in.csv").write_bytes(b"id,text\n" + b"".join(rows))
    texts, numbers, bad, kept = read(folder / "in.csv", batch_bytes)
    good = [i for i, row in enumerate(rows) if len(row) - 1 <= LONGEST]
    assert texts == [next(csv.reader(io.StringIO(rows[i].decode())))[1] for i in good]
    lines = np.cumsum([2, *(row.count(b"\n") for row in rows)]).tolist()
    assert numbers == [lines[i] for i in good]
    assert [each["row"] for each in bad] == [lines[i] for i in range(len(rows)) if i not in good]
    assert all("is too long" in each["reason"] for each in bad)
    assert kept == b"id,text\n" + b"".join(rows[i] for i in good)


def test_a_quote_that_never_closes_is_one_bad_row_to_the_end(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('id,text\n1,one\n2,"two\n' + "3,three\n" * 50)
    texts, rows, bad, kept = read(tmp_path / "in.csv")
    assert (texts, rows) == (["one"], [2])
    assert [(each["row"], each["reason"]) for each in bad] == [
        (3, "a record of 0.0 MB is too long: at most 0.0 MB fit in memory")
    ]
    assert kept == b"id,text\n1,one\n"


def test_a_header_above_the_limit_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,text," + "x" * 200 + "\n1,one,x\n")
    with pytest.raises(nd.DataError, match=r"in\.csv:1: the header row: a record .* long"):
        read(tmp_path / "in.csv")


def test_long_lines_of_other_encodings_are_rejected_too(tmp_path: Path) -> None:
    lines = [json.dumps({"text": "ü" * n}, ensure_ascii=False) for n in (5, 500, 6)]
    (tmp_path / "in.jsonl").write_bytes("\n".join(lines).encode("utf-16"))
    texts, _, bad, kept = read(tmp_path / "in.jsonl")
    assert [len(text) for text in texts] == [5, 6]
    assert [each["row"] for each in bad] == [2]
    assert kept.decode("utf-16").split() == [x for i in (0, 2) for x in lines[i].split()]


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_files_above_the_limit_are_rejected_as_they_are_and_unpacked(
    ending: str, tmp_path: Path
) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".zst": lambda x: pa.Codec("zstd").compress(x)}[ending]
    folder = tmp_path / "in"
    folder.mkdir()
    for name, size in (("a", LONGEST), ("b", LONGEST + 1), ("c", 5000), ("d", 1)):
        (folder / f"{name}.txt{ending}").write_bytes(bytes(pack(b"x" * size)))
    options = ReadOptions(skip_errors=True, record_bytes=LONGEST)
    (source,) = open_sources([str(folder)])
    with Rejects(str(tmp_path / "r.jsonl")) as rejects:
        ids = [name for batch in source.batches(options, rejects) for name in batch.ids.to_pylist()]
    assert [name[0] for name in ids] == ["a", "d"]
    bad = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert ["too long" in each["reason"] for each in bad] == [True, True]
    with pytest.raises(nd.DataError, match=r"b\.txt.*:1: a record is too long: .* --memory"):
        list(source.batches(ReadOptions(record_bytes=LONGEST)))


def test_an_array_is_held_in_memory_and_may_be_four_records_long(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    element = '{"text": "one two three"}'
    for count, fits in ((7, True), (12, False)):
        path.write_text(f"[{', '.join([element] * count)}]")
        (source,) = open_sources([str(path)])
        options = ReadOptions(record_bytes=LONGEST)
        if fits:
            assert sum(len(batch.texts) for batch in source.batches(options)) == count
        else:
            with pytest.raises(nd.DataError, match=r"more than 0\.0 MB do not fit.*jq -c"):
                list(source.batches(options))


@needs_jit
def test_the_budget_says_how_long_a_record_may_be(tmp_path: Path) -> None:
    assert longest_record(4 << 30) == 256 << 20
    assert longest_record(64 << 20) == 16 << 20
    record = json.dumps({"text": "w " * (9 << 20)})
    (tmp_path / "in.jsonl").write_text(f'{{"text": "one"}}\n{record}\n')
    out = str(tmp_path / "out.jsonl")
    with pytest.raises(nd.DataError, match=r"in\.jsonl:2: a record is too long: at most 16\.8 MB"):
        nd.dedup([str(tmp_path / "in.jsonl")], out, memory="64M")
    summary = nd.dedup([str(tmp_path / "in.jsonl")], out, memory="64M", on_error="skip").summary
    assert (summary.kept, summary.rejected) == (1, 1)
    assert nd.dedup([str(tmp_path / "in.jsonl")], out, memory="1G").summary.kept == 2


def test_rows_of_parquet_above_the_limit_are_rejected(tmp_path: Path) -> None:
    texts = ["x" * n for n in (LONGEST, LONGEST + 1, 1, 5000)]
    for name, column in (("a", pa.array(texts)), ("b", pa.array(texts).dictionary_encode())):
        pq.write_table(pa.table({"text": column}), tmp_path / f"{name}.parquet")
        options = ReadOptions(skip_errors=True, record_bytes=LONGEST)
        (source,) = open_sources([str(tmp_path / f"{name}.parquet")])
        rows = [row for batch in source.batches(options) for row in batch.rows.tolist()]
        assert rows == [1, 3]
        with pytest.raises(nd.DataError, match=r"parquet:2: a record of .* is too long"):
            list(source.batches(ReadOptions(record_bytes=LONGEST)))


def test_a_bad_row_of_parquet_as_long_as_the_limit_is_not_called_too_long(tmp_path: Path) -> None:
    table = pa.table({"text": ["x" * LONGEST], "id": pa.array([None], pa.string())})
    pq.write_table(table, tmp_path / "in.parquet")
    (source,) = open_sources([str(tmp_path / "in.parquet")])
    with pytest.raises(nd.DataError, match=r"parquet:1: id is null"):
        list(source.batches(ReadOptions(id="id", record_bytes=LONGEST)))


@pytest.mark.parametrize("name", ["text", "a.b", "doc.body", "parts"])
def test_parquet_is_read_in_parts_of_the_batch_size_wherever_the_text_is(
    tmp_path: Path, name: str
) -> None:
    texts = [f"{i} " * 50 for i in range(1000)]
    columns = {"text": texts, "a.b": texts, "doc": [{"body": x} for x in texts]}
    pq.write_table(pa.table(columns | {"parts": [[x] for x in texts]}), tmp_path / "in.parquet")
    (source,) = open_sources([str(tmp_path / "in.parquet")])
    batches = list(source.batches(ReadOptions(text=(name,), batch_bytes=30_000)))
    assert [x for batch in batches for x in batch.texts.to_pylist()] == texts
    assert max(batch.texts.nbytes for batch in batches) < 40_000


@pytest.mark.parametrize("nested", [False, True])
def test_few_bytes_of_parquet_that_name_a_long_value_often_are_read_in_small_parts(
    nested: bool, tmp_path: Path
) -> None:
    rows = 150
    texts = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["y z " * (1 << 18)])
    column = pa.StructArray.from_arrays([texts], ["body"]) if nested else texts
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"doc": column}), path)
    assert path.stat().st_size < 1 << 17
    (source,) = open_sources([str(path)])
    batches = source.batches(ReadOptions(text=("doc.body" if nested else "doc",)))
    assert [len(batch.texts) for batch in batches] == [64, 64, 22]


def test_a_row_of_very_many_lines_takes_memory_for_its_bytes(tmp_path: Path) -> None:
    lines = 2 * (1 << 16) + 7
    text = "\n" * lines
    (tmp_path / "in.csv").write_text(f'id,text\n1,"{text}"\n2,two\n3,"a\nb"\n')
    (source,) = open_sources([str(tmp_path / "in.csv")])
    batches = list(source.batches(ReadOptions(record_bytes=1 << 20)))
    assert [x for batch in batches for x in batch.texts.to_pylist()] == [text, "two", "a\nb"]
    assert [x for batch in batches for x in batch.rows.tolist()] == [2, lines + 3, lines + 4]
    with find_input(str(tmp_path / "in.csv")).open() as reader:
        rows = CsvLines(reader, 1 << 20, passes=True)
        assert (rows.row(), rows.row()) == (["id", "text"], ["1", text])
        assert len(rows.record) <= 1 << 16
        assert b"".join(rows.record) == f'1,"{text}"\n'.encode()
