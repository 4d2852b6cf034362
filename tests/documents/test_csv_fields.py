"""The kernel gives what csv.reader gives, or nothing, whatever the records look like."""

from __future__ import annotations

import csv
import gzip
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents.batch import ReadOptions
from neardup.documents.files.output_set import OutputSet
from neardup.documents.files.problems import BadRecordError
from neardup.documents.formats.csv_lines import CsvFields
from neardup.documents.formats.open import open_sources
from neardup.documents.ordering import Order

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = ReadOptions(text=("text", "title"), id="id", number="score")
WANTED = (3, 0, 1, 4)
WIDTH = 5

fields = st.text(max_size=70).map(lambda x: x.replace("\r", "")) | st.sampled_from(
    ["", '"', '""', "\r\n", "\n", ",", "a,b", 'say "x"', "x" * 63 + '"', " ", "\0", "中文"]
)
records = st.lists(fields, min_size=WIDTH - 1, max_size=WIDTH - 1).flatmap(
    lambda record: st.sampled_from(["", " ", "7", "-1.5", "1e3"]).map(lambda n: [*record, n])
)


def written(rows: list[list[str]], end: str, quoting: Any, delimiter: str = ",") -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator=end, quoting=quoting, delimiter=delimiter).writerows(rows)
    return out.getvalue().encode()


def number(text: str) -> float | None:
    return Order("score").of_text(text)


def plainly(block: bytes, delimiter: str = ",") -> tuple[list[Any], list[int], list[int]] | None:
    """The records up to the last whole one, where they end and in which line they begin."""
    csv.field_size_limit((1 << 31) - 1)
    try:
        lines = [line.decode() for line in io.BytesIO(block).readlines()]
        reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
        fields, ends, begins, before = [], [], [], 0
        for row in reader:
            ends.append(sum(len(line.encode()) for line in lines[: reader.line_num]))
            if row:
                if len(row) != WIDTH:
                    return None
                picked = [row[i] for i in WANTED]
                fields.append((f"{picked[0]}\n{picked[1]}", picked[2], number(picked[3])))
                begins.append(before)
            before = reader.line_num
    except (csv.Error, UnicodeDecodeError, BadRecordError):
        return None
    return fields, ends, begins


def by_kernel(block: bytes, delimiter: str = ",") -> tuple[list[Any], list[int], list[int]] | None:
    result = CsvFields(OPTIONS, delimiter, WIDTH, WANTED).find(block)
    if result is None:
        return None
    columns = result.columns
    arrays = (columns.texts, columns.ids, columns.numbers)
    for array in arrays:
        array.validate(full=True)
    rows = list(zip(*(array.to_pylist() for array in arrays), strict=True))
    assert np.count_nonzero(result.accepted) == len(rows)
    return rows, np.cumsum(result.lengths).tolist(), result.rows.tolist()


@given(
    st.lists(records, min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from([",", "\t", " "]),
    st.booleans(),
)
def test_ordinary_records_are_found(
    rows: list[list[str]], end: str, quoting: Any, delimiter: str, ends: bool
) -> None:
    block = written(rows, end, quoting, delimiter)
    block = block if ends else block[: -len(end)]
    assert by_kernel(block, delimiter) == plainly(block, delimiter) is not None


@given(
    st.lists(records, max_size=4),
    st.sampled_from(["\n", "\r\n", "\n\n", "\n\r\n"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.data(),
)
def test_what_is_found_is_what_the_complete_parser_gives(
    rows: list[list[str]], end: str, quoting: Any, data: st.DataObject
) -> None:
    block = bytearray(written(rows, end, quoting))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(block)))
        marks = st.sampled_from([b'"', b'""', b",", b"\n", b"\r", b"\r\n", b" ", b"x", b"\xff"])
        block[at : at + data.draw(st.integers(0, 3))] = data.draw(marks)
    result = by_kernel(bytes(block))
    if result is not None:
        assert result == plainly(bytes(block[: result[1][-1]]))


@pytest.mark.parametrize(
    "record",
    [
        b"a,b,c,d", b"a,b,c,d,1,f", b'a"b,b,c,d,1', b' "a",b,c,d,1', b'"a"b,b,c,d,1',
        b"a\rb,b,c,d,1", b'"a" ,b,c,d,1', b'"a""",b"",c,d,1', b'a,b,c,d,"', b'a,b,"c,d,1',
        b"a,b,c,d,one", b"\xff,b,c,d,1", b'"",b,c,""",1', b"\r\r\n",
    ],
)  # fmt: skip
def test_what_is_odd_is_left_to_the_complete_parser(record: bytes) -> None:
    for block in (record, b"a,b,c,d,1\n" + record + b"\na,b,c,d,1\n"):
        result = by_kernel(block)
        assert result is None or result == plainly(block[: result[1][-1]])


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("room", [1, 28, 29, 30, 1000])
def test_records_with_more_marks_than_there_is_room_for_are_left_to_the_complete_parser(
    monkeypatch: pytest.MonkeyPatch, room: int, end: bytes
) -> None:
    """A record has four delimiters and an end; the last end may be that of the block."""
    monkeypatch.setattr("neardup.documents.formats.field_spans._MARK_EVERY", 1 << 30)
    monkeypatch.setattr("neardup.documents.formats.field_spans.PART_BYTES", room)
    block = b"\n".join([b"some text,b,c,an id,1"] * 6)
    found = by_kernel(block + end)
    assert (found is None) is (room < 29 + len(end))
    assert found is None or found == plainly(block + end)


def test_room_for_one_block_is_enlarged_for_each_longer_one() -> None:
    """As plain Python a kernel tells of an array that is too short."""
    fields = CsvFields(OPTIONS, ",", WIDTH, WANTED)
    for nbytes in range(9, 400):
        found = fields.find(b"a" * (nbytes - 9) + b",b,c,d,1\n")
        assert found is not None
        assert found.lengths.tolist() == [nbytes]


@pytest.mark.parametrize("name", ["in.csv", "in.tsv", "in.csv.gz"])
@pytest.mark.parametrize("batch_bytes", [300, 4_000, 1 << 20])
@pytest.mark.parametrize("marks", [9, 1 << 19])
def test_files_are_read_alike_with_the_kernel_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, batch_bytes: int, marks: int
) -> None:
    rows = [[str(i), 'naïve "中文"\n' * (i % 7), "t,u"] for i in range(500)]
    rows[77] = ["too", "few"]
    rows[300] = []
    delimiter = "\t" if ".tsv" in name else ","
    block = written([["id", "text", "more"], *rows], "\r\n", csv.QUOTE_MINIMAL, delimiter)
    block = b"\xef\xbb\xbf" + block.replace(b"\n399", b'\n"399" ') + b'500,"open'
    path = tmp_path / name
    path.write_bytes(gzip.compress(block) if name.endswith("gz") else block)
    options = ReadOptions(id="id", skip_errors=True, batch_bytes=batch_bytes)
    monkeypatch.setattr("neardup.documents.formats.csv.PART_BYTES", 200)
    monkeypatch.setattr("neardup.documents.formats.field_spans.PART_BYTES", marks)
    read = []
    for pays in (-1, 1 << 60):
        monkeypatch.setattr("neardup.documents.formats.csv._KERNEL_PAYS", pays)
        (source,) = open_sources([str(path)])
        batches = list(source.batches(options))
        read.append([x for b in batches for x in zip(b.rows.tolist(), b.texts, b.ids, strict=True)])
        with OutputSet() as outputs:
            kept = outputs.create(str(tmp_path / f"kept{pays}"))
            source.write_kept(np.arange(len(read[-1])) % 3 > 0, kept)
            outputs.commit()
        source.close()
    assert read[0] == read[1]
    assert len(read[0]) == 497
    assert (tmp_path / "kept-1").read_bytes() == (tmp_path / f"kept{1 << 60}").read_bytes()


def test_batches_end_with_the_same_records_whatever_the_process_has_parsed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [[str(i), "of several lines\n" * (i % 7)] for i in range(20_000)]
    rows[7_000:14_000:500] = [["too", "many", "fields"]] * 14
    monkeypatch.setattr("neardup.documents.formats.csv.PART_BYTES", 1 << 12)
    path = tmp_path / "in.csv"
    path.write_bytes(written([["id", "text"], *rows], "\n", csv.QUOTE_MINIMAL))
    batches = []
    for pays in (-1, 1 << 60):
        monkeypatch.setattr("neardup.documents.formats.csv._KERNEL_PAYS", pays)
        (source,) = open_sources([str(path)])
        options = ReadOptions(batch_bytes=1 << 17, skip_errors=True)
        batches.append([len(b.rows) for b in source.batches(options)])
    assert batches[0] == batches[1]  # `--resume` continues between two
    assert len(batches[0]) > 2
