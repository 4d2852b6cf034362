"""Reading and writing JSON lines, CSV and TSV."""

from __future__ import annotations

import csv
import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neardup.documents import OutputSet, ReadOptions, Rejects, open_sources, write_outputs
from neardup.errors import DataError, FileError, UsageError
from suite import JIT

if TYPE_CHECKING:
    from collections.abc import Sequence

LONG = 70_000 if JIT else 7000
SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
BOM = b"\xef\xbb\xbf"
SKIP = ReadOptions(skip_errors=True)
ID = ReadOptions(id="id", skip_errors=True)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


def put(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    if name.endswith(".gz"):
        data = gzip.compress(data)
    elif name.endswith(".zst"):
        data = zstd(data) if data else b""
    path.write_bytes(data)
    return str(path)


def get(path: str) -> bytes:
    data = Path(path).read_bytes()
    if path.endswith(".gz"):
        return gzip.decompress(data)
    if path.endswith(".zst"):
        return pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
    return data


def read(path: str, options: ReadOptions = SKIP, rejects: Any = None) -> dict[str, list[Any]]:
    (source,) = open_sources([path])
    columns = {"texts": [], "rows": [], "ids": []}
    for batch in source.batches(options, rejects):
        assert len(batch.texts) > 0
        assert batch.texts.null_count == 0
        assert batch.rows.dtype == np.int64
        columns["texts"] += batch.texts.to_pylist()
        columns["rows"] += batch.rows.tolist()
        columns["ids"] += [] if batch.ids is None else batch.ids.to_pylist()
    source.close()
    return columns


def rewrite(
    paths: Sequence[str], keeps: Sequence[Sequence[bool]], out: str, options: ReadOptions = SKIP
) -> None:
    sources = open_sources(paths)
    for source in sources:
        for _ in source.batches(options, None):
            pass
    with OutputSet([source.path for source in sources]) as outputs:
        write_outputs(sources, [np.array(keep, np.bool_) for keep in keeps], out, outputs)
        outputs.commit()
    for source in sources:
        source.close()


def refusal(path: str, options: ReadOptions | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read(path, options or ReadOptions())
    assert "\n" not in str(caught.value)
    return str(caught.value)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.just("x" * LONG)
endings = st.sampled_from([b"\n", b"\r\n"])
blanks = st.sampled_from([b"", b"\n", b"\r\n", b" \t\n"])
jsonl_lines = st.lists(st.tuples(texts, endings, blanks, st.booleans()), max_size=12)


@SAME_FOLDER
@given(
    lines=jsonl_lines,
    final=st.booleans(),
    bom=st.booleans(),
    ending=st.sampled_from(["", ".gz", ".zst"]),
    batch_bytes=st.sampled_from([1, 100, 8 << 20]),
)
def test_kept_json_lines_come_out_byte_for_byte(
    tmp_path: Path,
    lines: list[tuple[str, bytes, bytes, bool]],
    final: bool,
    bom: bool,
    ending: str,
    batch_bytes: int,
) -> None:
    records = [
        orjson.dumps({"text": text, "n": i}) + end for i, (text, end, _, _) in enumerate(lines)
    ]
    parts = [record + line[2] for record, line in zip(records, lines, strict=True)]
    if records and not final:
        records[-1] = parts[-1] = records[-1].rstrip(b"\r\n")
    path = put(tmp_path, "in.jsonl" + ending, (BOM if bom else b"") + b"".join(parts))
    options = ReadOptions(batch_bytes=batch_bytes)
    assert read(path, options)["texts"] == [line[0] for line in lines]
    out = str(tmp_path / ("out.jsonl" + ending))
    rewrite([path], [[line[3] for line in lines]], out, options)
    kept = [record for record, line in zip(records, lines, strict=True) if line[3]]
    assert get(out) == b"".join(kept)


@SAME_FOLDER
@given(
    rows=st.lists(st.tuples(texts, texts, st.booleans()), max_size=8),
    terminator=st.sampled_from(["\n", "\r\n"]),
    final=st.booleans(),
    name=st.sampled_from(["in.csv", "in.tsv", "in.csv.gz", "in.tsv.zst"]),
    batch_bytes=st.sampled_from([1, 100, 8 << 20]),
)
def test_kept_csv_records_come_out_byte_for_byte(
    tmp_path: Path,
    rows: list[tuple[str, str, bool]],
    terminator: str,
    final: bool,
    name: str,
    batch_bytes: int,
) -> None:
    def encode(fields: list[str]) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(
            text,
            delimiter="\t" if "tsv" in name else ",",
            lineterminator=terminator,
            quoting=csv.QUOTE_ALL,
        )
        writer.writerow(fields)
        return text.getvalue().encode()

    header = encode(["id", "text"])
    records = [encode([first, text]) for first, text, _ in rows]
    if records and not final:
        records[-1] = records[-1].removesuffix(terminator.encode())
    path = put(tmp_path, name, header + b"".join(records))
    options = ReadOptions(id="id", batch_bytes=batch_bytes)
    columns = read(path, options)
    assert columns["texts"] == [row[1] for row in rows]
    assert columns["ids"] == [row[0] for row in rows]
    before = [header + b"".join(records[:i]) for i in range(len(records))]
    assert columns["rows"] == [data.count(b"\n") + 1 for data in before]
    out = str(tmp_path / name.replace("in", "out"))
    rewrite([path], [[row[2] for row in rows]], out, options)
    kept = [record for record, row in zip(records, rows, strict=True) if row[2]]
    assert get(out) == header + b"".join(kept)


@pytest.mark.parametrize("bad_at", range(6))
@pytest.mark.parametrize("batch_bytes", [1, 40, 8 << 20])
def test_a_bad_record_is_skipped_alone_wherever_it_stands(
    tmp_path: Path, bad_at: int, batch_bytes: int
) -> None:
    lines = [b'{"text":"t%d"}\n' % i for i in range(6)]
    lines[bad_at] = b'{"text":\n'
    path = put(tmp_path, "in.jsonl", b"".join(lines))
    rejects = Rejects()
    columns = read(path, ReadOptions(skip_errors=True, batch_bytes=batch_bytes), rejects)
    assert columns["rows"] == [i + 1 for i in range(6) if i != bad_at]
    assert rejects.count == 1
    assert refusal(path, ReadOptions(batch_bytes=batch_bytes)).startswith(f"{path}:{bad_at + 1}: ")
    rewrite([path], [[True] * 5], str(tmp_path / "out.jsonl"))
    assert get(str(tmp_path / "out.jsonl")) == b"".join(lines[:bad_at] + lines[bad_at + 1 :])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"text": "a"', "not valid JSON: "),
        (b'["a"]', "an array, not a JSON object"),
        (b'"text"', "a string, not a JSON object"),
        (b"7", "a number, not a JSON object"),
        (b"null", "null, not a JSON object"),
        (b'{"body": "a", "lang": "en"}', 'no field "text" (it has "body", "lang")'),
        (b"{}", 'no field "text" (it has none)'),
        (b'{"text": null}', "text is null"),
        (b'{"text": 1}', "text is a number"),
        (b'{"text": true}', "text is a boolean"),
        (b'{"text": [1]}', "text is an array with a number"),
        (b'{"text": "\xff"}', "not UTF-8 (byte 11)"),
        (b'{"text": "\\ud800"}', "not valid JSON: "),
        (b'{"text": "a"}{"text": "b"}', "not valid JSON: "),
        (b'{"text": ' + b"[" * 2000 + b"]" * 2000 + b"}", "not valid JSON: "),
    ],
)
def test_what_is_wrong_with_a_json_line_is_said(tmp_path: Path, line: bytes, words: str) -> None:
    path = put(tmp_path, "in.jsonl", b'{"text": "fine"}\n' + line + b"\n")
    message = refusal(path)
    assert message.startswith(f"{path}:2: {words}")
    assert any(x in message for x in ("pass --on-error skip", "pass --text FIELD", "--encoding"))
    assert read(path)["texts"] == ["fine"]


def test_the_column_where_json_ends_too_early_is_said(tmp_path: Path) -> None:
    path = put(tmp_path, "in.jsonl", b'{"text": "a"}\n{"text": "abc", "n": \r\n')
    assert "(column 21)" in refusal(path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"null", "id is null"),
        (b"1.5", "id is a number"),
        (b"true", "id is a boolean"),
        (b"{}", "id is an object"),
        (b"1e400", "not valid JSON"),
    ],
)
def test_an_id_is_a_string_or_a_whole_number(tmp_path: Path, value: bytes, words: str) -> None:
    line = b'{"text": "a", "id": ' + value + b"}\n"
    path = put(tmp_path, "in.jsonl", b'{"text": "a", "id": 1}\n' + line)
    assert words in refusal(path, ReadOptions(id="id"))
    path = put(tmp_path, "no.jsonl", b'{"text": "a"}\n')
    assert refusal(path, ReadOptions(id="id")).endswith('(it has "text"); pass --id FIELD')


def test_ids_are_read_as_text(tmp_path: Path) -> None:
    big = 2**64 - 1
    for first, second in (("x", "é"), (1, -2), (1, big), (big, big), ("x", big), (0, "")):
        lines = b"".join(orjson.dumps({"text": "a", "id": i}) + b"\n" for i in (first, second))
        for more in (b"", b"\n"):
            path = put(tmp_path, "in.jsonl", lines + more)
            assert read(path, ReadOptions(id="id"))["ids"] == [str(first), str(second)]
    for other in (True, 1.0, None):
        lines = b"".join(orjson.dumps({"text": "a", "id": i}) + b"\n" for i in (1, other))
        assert read(put(tmp_path, "in.jsonl", lines), ID)["ids"] == ["1"]


def test_several_fields_are_joined_by_a_line_end(tmp_path: Path) -> None:
    options = ReadOptions(text=("title", "body"), id="n")
    path = put(tmp_path, "in.jsonl", b'{"title":"a","body":"b","n":1}\n')
    assert read(path, options) == {"texts": ["a\nb"], "rows": [1], "ids": ["1"]}
    path = put(tmp_path, "in.csv", b"n,body,title\n1,b,a\n")
    assert read(path, options) == {"texts": ["a\nb"], "rows": [2], "ids": ["1"]}
    path = put(tmp_path, "bad.jsonl", b'{"title":"a","body":2,"n":1}\n')
    assert "body is a number" in refusal(path, options)


def test_a_json_array_file_is_read_and_kept_elements_stay_as_they_are(tmp_path: Path) -> None:
    pretty = b'\n [\n  {"text": "a",  "n": 1},\n  {"n": 2, "text": "b"}\n]\n'
    for name, data, kept in (
        ("in.json", b'[{"text": "a"}, {"text":"b"}]', b'[{"text": "a"}]'),
        ("in.json.gz", pretty, b'\n [\n  {"text": "a",  "n": 1}\n]\n'),
        (
            "utf16.json",
            '[{"text":"a"},{"text":"ü"}]'.encode("utf-16"),
            '[{"text":"a"}]'.encode("utf-16"),
        ),
    ):
        path = put(tmp_path, name, data)
        assert len(read(path)["texts"]) == 2
        out = str(tmp_path / ("out" + name))
        rewrite([path], [[True, True]], out)
        assert get(out) == data
        rewrite([path], [[True, False]], out)
        assert get(out) == kept
    assert read(put(tmp_path, "none.json", BOM + b" [ ]\n"))["texts"] == []
    broken = put(tmp_path, "broken.json", b'[{"text": "a"},\n {"text": 1},\n {"x"]')
    assert refusal(broken, SKIP).startswith(f"{broken}:3: not valid JSON: ")
    assert refusal(broken).startswith(f"{broken}:2: text is a number")


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "in.tsv", "in.jsonl.gz", "in.csv.zst"])
def test_an_empty_file_is_zero_documents(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, name, b"")
    assert read(path)["texts"] == []
    out = str(tmp_path / ("out" + name))
    rewrite([path], [[]], out)
    assert get(out) == b""
    (tmp_path / name).write_bytes(b"")
    assert read(path)["texts"] == []


@pytest.mark.parametrize("codec", ["gz", "zst"])
def test_several_compressed_members_are_one_file(tmp_path: Path, codec: str) -> None:
    squeeze = gzip.compress if codec == "gz" else zstd
    parts = [b'{"text":"a"}\n{"te', b'xt":"b"}\n']
    path = tmp_path / f"in.jsonl.{codec}"
    path.write_bytes(b"".join(map(squeeze, parts)))
    assert read(str(path))["texts"] == ["a", "b"]


@pytest.mark.parametrize("codec", ["gz", "zst"])
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
@pytest.mark.parametrize("damage", ["cut", "last byte", "junk after", "not compressed"])
def test_a_broken_compressed_file_is_named_with_the_line_reached(
    tmp_path: Path, codec: str, kind: str, damage: str
) -> None:
    squeeze = gzip.compress if codec == "gz" else zstd
    noise = np.random.default_rng(1).integers(97, 123, (5000, 100), np.uint8)
    form = b'{"text":"%s"}\n' if kind == "jsonl" else b"%s\n"
    lines = [form % row.tobytes() for row in noise]
    head = b"text\n" if kind == "csv" else b""
    data = squeeze(head + b"".join(lines))
    broken = {
        "cut": data[: len(data) * 3 // 4],
        "last byte": data[:-1],
        "junk after": data + b"junk",
        "not compressed": lines[0],
    }[damage]
    path = tmp_path / f"in.{kind}.{codec}"
    path.write_bytes(broken)
    message = refusal(str(path), ReadOptions(skip_errors=True))
    where = int(message.removeprefix(f"{path}:").partition(":")[0])
    assert "stream is broken near here" in message
    if damage == "cut":
        assert 2000 < where < 4500
    if damage == "not compressed":
        assert where == 1


@pytest.mark.parametrize("codec", [None, "gz", "zst"])
def test_standard_input_is_read_once_and_leaves_no_copy_behind(
    tmp_path: Path, codec: str | None
) -> None:
    lines = [b'{"text":"t%d"}\r\n' % i for i in range(50)] + [b'{"text":"end"}']
    squeeze = {None: bytes, "gz": gzip.compress, "zst": zstd}[codec]
    script = """if True:
        import sys, numpy as np
        from neardup.documents import *
        source, = open_sources(["-"], tmp=sys.argv[1])
        n = sum(len(batch.texts) for batch in source.batches(ReadOptions(batch_bytes=64), None))
        with OutputSet([source.path]) as outputs:
            write_outputs([source], [np.arange(n) % 2 == 0], "-", outputs)
            outputs.commit()
        source.close()
    """
    process = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        input=squeeze(b"".join(lines)),
        capture_output=True,
        check=True,
    )
    assert process.stdout == b"".join(lines[::2])
    assert list(tmp_path.iterdir()) == []


def test_a_named_pipe_is_an_input_too(tmp_path: Path) -> None:
    path = str(tmp_path / "in.jsonl")
    os.mkfifo(path)
    lines = [b'{"text":"t%d"}\n' % i for i in range(5)]

    def feed() -> None:
        Path(path).write_bytes(b"".join(lines))

    feeder = threading.Thread(target=feed)
    feeder.start()
    rewrite([path], [[False, True, True, False, True]], str(tmp_path / "out.jsonl"))
    feeder.join()
    assert get(str(tmp_path / "out.jsonl")) == lines[1] + lines[2] + lines[4]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (b"1\n", "1 fields where the header has 2"),
        (b"1,a,b\n", "3 fields where the header has 2"),
        (b'1,"a\nb\n', "a quote is opened and never closed"),
        (b'1,"a"b\n', "not valid CSV: "),
        (b"1,\xff\n", "not UTF-8"),
        (b"1,a\rb\n", "not valid CSV: new-line character seen in unquoted field"),
    ],
)
def test_what_is_wrong_with_a_csv_record_is_said(tmp_path: Path, record: bytes, words: str) -> None:
    path = put(tmp_path, "in.csv", b'id,text\n0,"fine\n"\n' + record)
    assert refusal(path).startswith(f"{path}:4: {words}")
    rejects = Rejects()
    assert read(path, SKIP, rejects)["texts"] == ["fine\n"]
    assert rejects.count == 1
    rewrite([path], [[True]], str(tmp_path / "out.csv"))
    assert get(str(tmp_path / "out.csv")) == b'id,text\n0,"fine\n"\n'


def test_a_missing_csv_column_stops_even_when_bad_records_are_skipped(tmp_path: Path) -> None:
    path = put(tmp_path, "in.csv", b"id,body\n1,a\n")
    assert refusal(path, SKIP).endswith(
        '(it has "id", "body"); pass --text FIELD, such as --text body'
    )
    path = put(tmp_path, "two.csv", b"text,text\n1,a\n")
    assert 'two columns "text"' in refusal(path, SKIP)


def test_csv_takes_a_mark_blank_lines_nuls_and_very_long_fields(tmp_path: Path) -> None:
    long = "y" * 300_000
    data = BOM + f'"text",n\r\n\r\na\0b,1\r\n{long},2\r\n'.encode()
    path = put(tmp_path, "in.csv", data)
    assert read(path)["texts"] == ["a\0b", long]
    assert read(path)["rows"] == [3, 4]
    rewrite([path], [[True, False]], str(tmp_path / "out.csv"))
    assert get(str(tmp_path / "out.csv")) == BOM + b'"text",n\r\na\0b,1\r\n'


def test_a_file_that_changes_between_the_readings_is_an_error(tmp_path: Path) -> None:
    path = put(tmp_path, "in.jsonl", b'{"text":"a"}\n')
    (source,) = open_sources([path])
    assert len(list(source.batches(ReadOptions(), None))) == 1
    put(tmp_path, "in.jsonl", b'{"text":"bb"}\n')
    with (
        OutputSet() as outputs,
        pytest.raises(FileError, match=r"in\.jsonl changed while it was being read"),
    ):
        source.write_kept(np.array([True]), outputs.create(str(tmp_path / "out.jsonl")))
    assert names(tmp_path) == ["in.jsonl"]


def test_one_flag_for_each_record_is_wanted(tmp_path: Path) -> None:
    path = put(tmp_path, "in.jsonl", b'{"text":"a"}\n')
    with pytest.raises(UsageError, match="2 keep flags for 1 records"):
        rewrite([path], [[True, True]], str(tmp_path / "out.jsonl"))


def test_progress_adds_up_to_the_size_of_the_input(tmp_path: Path) -> None:
    for name in ("in.jsonl", "in.csv.gz", "in.jsonl.zst"):
        data = b"text\n" * ("csv" in name) + b'{"text":"abc"}\n' * 1000
        path = put(tmp_path, name, data)
        (source,) = open_sources([path])
        batches = list(source.batches(ReadOptions(batch_bytes=500), None))
        assert sum(batch.nbytes for batch in batches) == source.nbytes == Path(path).stat().st_size


def test_a_line_longer_than_a_batch_is_one_record(tmp_path: Path) -> None:
    letters = 5_000_000 if JIT else 50_000
    line = orjson.dumps({"text": "é" * letters}) + b"\n"
    path = put(tmp_path, "in.jsonl", line * 2)
    assert list(map(len, read(path, ReadOptions(batch_bytes=1))["texts"])) == [letters] * 2


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="no text field"):
        ReadOptions(text=())
    with pytest.raises(UsageError, match="batch_bytes is 0"):
        ReadOptions(batch_bytes=0)
