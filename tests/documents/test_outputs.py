"""Outputs appear whole or not at all; rejects, result tables, Parquet."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents import (
    OutputSet,
    ReadOptions,
    Rejects,
    format_of_path,
    open_sources,
    plan_outputs,
    write_outputs,
    write_table,
)
from neardup.documents.files.input_bytes import RegularInput
from neardup.documents.formats import kept_runs
from neardup.documents.result_tables import write_rows
from neardup.errors import DataError, FileError, UsageError
from suite import needs_jit

SKIP = ReadOptions(skip_errors=True)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def jsonl(path: Path, *names: str, end: str = "\n") -> str:
    path.write_bytes(("\n".join(f'{{"text":"{name}"}}' for name in names) + end).encode())
    return str(path)


def dedup(
    paths: list[str], keeps: list[list[bool]], out: str, *, commit: bool = True, workers: int = 1
) -> list[str]:
    sources = open_sources(paths)
    plan_outputs(sources, out)
    for source in sources:
        for _ in source.batches(SKIP, None):
            pass
    with OutputSet([source.path for source in sources]) as outputs:
        masks = [np.array(keep, np.bool_) for keep in keeps]
        written = write_outputs(sources, masks, out, outputs, workers=workers)
        if commit:
            outputs.commit()
    return written


@pytest.mark.parametrize("share", [0.01, 0.5, 0.999])
def test_kept_lines_are_the_same_bytes_for_any_number_of_workers(
    tmp_path: Path, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, small in {"_TASK_BYTES": 4000, "_GAP_BYTES": 100, "_MOST_VIEWS": 7}.items():
        monkeypatch.setattr(kept_runs, name, small)
    random = np.random.default_rng(5)
    paths, keeps, expected = [], [], b""
    for name in ("a", "b", "c"):
        lines = [b'{"text":"%s"}' % (b"x" * int(n)) for n in random.integers(1, 300, 1000)]
        lines[500] = b'{"text":"%s"}' % (b"y" * 20_000)  # of several tasks
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(lines))  # no line end at its end
        keep = random.random(1000) < share
        keep[[500, -1]] = True
        expected += b"".join(line + b"\n" for line, kept in zip(lines, keep, strict=True) if kept)
        paths.append(str(tmp_path / f"{name}.jsonl"))
        keeps.append(keep.tolist())
    for workers in (1, 2, 5):
        dedup(paths, keeps, str(tmp_path / "out.jsonl"), workers=workers)
        assert (tmp_path / "out.jsonl").read_bytes() == expected[:-1]


def test_an_input_that_becomes_shorter_while_it_is_copied_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = jsonl(tmp_path / "in.jsonl", "a", "b")
    monkeypatch.setattr(RegularInput, "check_unchanged", lambda _: None)
    sources = open_sources([path])
    assert sum(len(batch.texts) for batch in sources[0].batches(SKIP)) == 2
    os.truncate(path, 10)
    with pytest.raises(FileError, match="became shorter"), OutputSet() as outputs:
        write_outputs(sources, [np.ones(2, np.bool_)], str(tmp_path / "out.jsonl"), outputs)


@given(
    texts=st.lists(st.none() | st.text() | st.sampled_from(['"', "\\", "\x00", "\x7f", "\u2028"])),
    values=st.lists(st.tuples(st.none() | st.floats(), st.none() | st.booleans()), min_size=9),
    begin=st.integers(0, 3),
)
def test_a_table_of_json_lines_is_what_orjson_writes(
    texts: list[str | None], values: list[tuple[float | None, bool | None]], begin: int
) -> None:
    n = min(len(texts), len(values))
    floats, flags = zip(*values, strict=True)
    names, numbers = pa.array(texts[:n], pa.large_string()), pa.array(range(n), pa.int32())
    columns = [names, pa.array(texts[:n]).cast(pa.string()), pa.array(floats[:n], pa.float64())]
    columns += [pa.array(flags[:n], pa.bool_()), numbers, pa.array([[i] for i in range(n)])]
    batch = pa.record_batch(columns, ["a", 'b"', "c", "d", "e", "f"]).slice(begin)
    file = io.BytesIO()
    write_rows(file, "jsonl", batch.schema, [batch])  # type: ignore[arg-type]
    rows = [orjson.dumps(row) + b"\n" for row in batch.to_pylist()]
    assert file.getvalue() == b"".join(rows)


def test_without_a_commit_nothing_is_left(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "in.jsonl", "a", "b")
    dedup([path], [[True, True]], str(tmp_path / "out.jsonl"), commit=False)
    dedup([path], [[True, True]], str(tmp_path / "folder") + "/", commit=False)
    assert names(tmp_path) == ["in.jsonl"]


def test_an_exception_removes_the_outputs_and_keeps_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), OutputSet() as outputs:  # noqa: PT012
        for name in ("a", "b.gz", "c.zst"):
            outputs.create(str(tmp_path / name)).write(b"new" * 1000)
        raise KeyboardInterrupt
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_outputs_appear_together_with_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    with OutputSet() as outputs:
        for name in ("a", "b.gz", "c.zst"):
            outputs.create(str(tmp_path / name)).write(memoryview(b"hello"))
        assert all(name.startswith(".") for name in names(tmp_path))
        outputs.commit()
    assert sorted(names(tmp_path)) == ["a", "b.gz", "c.zst"]
    (tmp_path / "model").touch()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1
    assert (tmp_path / "a").read_bytes() == b"hello"
    assert gzip.decompress((tmp_path / "b.gz").read_bytes()) == b"hello"
    with pa.CompressedInputStream(str(tmp_path / "c.zst"), "zstd") as stream:
        assert stream.read() == b"hello"


def test_a_rename_that_fails_puts_everything_back(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with OutputSet() as outputs:
        for name in ("a", "b", "c"):
            outputs.create(str(tmp_path / name)).write(b"new")
        (tmp_path / "c").mkdir()
        with pytest.raises(FileError, match=r"cannot write .*/c: Is a directory"):
            outputs.commit()
    assert sorted(names(tmp_path)) == ["a", "c"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_an_output_that_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "in.jsonl", "a")
    os.link(path, tmp_path / "hard.jsonl")
    (tmp_path / "soft.jsonl").symlink_to(path)
    outputs = OutputSet([path, None])
    for name in ("in.jsonl", "hard.jsonl", "soft.jsonl", "./in.jsonl"):
        with pytest.raises(UsageError, match="is an input"):
            outputs.create(str(tmp_path / name))
    with pytest.raises(UsageError, match="is a folder"):
        outputs.create(str(tmp_path))
    with pytest.raises(FileError, match="there is no folder"):
        outputs.create(str(tmp_path / "none" / "out.jsonl"))
    with outputs:
        outputs.create(str(tmp_path / "out"))
        with pytest.raises(UsageError, match="two outputs"):
            outputs.create(str(tmp_path / "." / "out"))


def test_a_link_is_written_through_and_a_device_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with OutputSet() as outputs:
        outputs.create(str(tmp_path / "link")).write(b"new")
        outputs.create(os.devnull).write(b"gone")
        outputs.commit()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@needs_jit
@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst", "out.parquet"])
def test_a_full_disk_is_one_clear_error_and_leaves_nothing_behind(
    tmp_path: Path, name: str
) -> None:
    noise = [np.random.default_rng(i).bytes(300).hex() for i in range(10_000)]
    if "parquet" in name:
        path = str(tmp_path / "in.parquet")
        pq.write_table(pa.table({"text": noise}), path)
    else:
        path = jsonl(tmp_path / "in.jsonl", *noise)
    script = """if True:
        import resource, sys, numpy as np
        from neardup.documents import *
        source, = open_sources([sys.argv[1]])
        n = sum(len(batch.texts) for batch in source.batches(ReadOptions(), None))
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        try:
            with OutputSet([source.path]) as outputs:
                write_outputs([source], [np.ones(n, bool)], sys.argv[2], outputs)
                outputs.commit()
        except Exception as error:
            print(type(error).__name__, error)
    """
    arguments = [sys.executable, "-W", "error", "-c", script, path, str(tmp_path / name)]
    process = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert process.stdout == f"FileError cannot write {tmp_path / name}: File too large\n"
    assert process.stderr == ""
    assert names(tmp_path) == [Path(path).name]


def test_a_full_disk_says_what_to_do(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "in.jsonl", "a")
    message = r"cannot write /dev/full: no space left on device; free some space$"
    with OutputSet([path]) as outputs:
        outputs.create("/dev/full").write(b"x")
        with pytest.raises(FileError, match=message):
            outputs.commit()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_a_file_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="Permission denied"):
        OutputSet().create(str(tmp_path / "out"))


def test_inputs_are_checked_before_any_is_read(tmp_path: Path) -> None:
    good = jsonl(tmp_path / "in.jsonl", "a")
    (tmp_path / "in.what").touch()
    with pytest.raises(FileError, match="No such file"):
        open_sources([good, str(tmp_path / "none.jsonl")])
    with pytest.raises(UsageError, match=r"unknown extension; known are \.jsonl, .*\.gz or \.zst"):
        open_sources([str(tmp_path / "in.what")])
    with pytest.raises(UsageError, match=r" \.xls, .* \.mbox, .* \.txt, .*archives: \.zip, "):
        open_sources([str(tmp_path / "in.what")])
    with pytest.raises(UsageError, match="named twice"):
        open_sources(["-", "-"])
    with pytest.raises(UsageError, match="unknown format 'xml': use one of jsonl, json, csv"):
        open_sources([good], format="xml")
    assert open_sources([str(tmp_path / "in.what")], format="csv")[0].format == "csv"


def test_extensions_name_formats() -> None:
    names = ["a.jsonl", "a.NDJSON.zst", "a.json.gz", "a.csv", "a.tsv.gz", "a.pq", "a.parquet.gz"]
    formats = [format_of_path(name) for name in names]
    assert formats == ["jsonl", "jsonl", "jsonl", "csv", "tsv", "parquet", None]


def test_several_inputs_are_joined_and_a_missing_last_line_end_is_added(tmp_path: Path) -> None:
    first = jsonl(tmp_path / "1.jsonl", "a", "b", end="")
    second = jsonl(tmp_path / "2.jsonl", "c", "d", end="")
    out = str(tmp_path / "out.jsonl")
    assert dedup([first, second], [[False, True], [True, True]], out) == [out]
    assert Path(out).read_bytes() == b'{"text":"b"}\n{"text":"c"}\n{"text":"d"}'
    dedup([first, second], [[False, True], [False, False]], out)
    assert Path(out).read_bytes() == b'{"text":"b"}'


def test_joined_csv_has_one_header_and_unequal_headers_are_refused(tmp_path: Path) -> None:
    contents = {"1.csv": b"", "2.csv": b"text,n", "3.csv": b"text,n\r\na,1", "4.csv": b"n,text\n"}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    paths = [str(tmp_path / name) for name in contents]
    out = str(tmp_path / "out.csv")
    dedup(paths[:3], [[], [], [True]], out)
    assert Path(out).read_bytes() == b"text,n\na,1"
    with pytest.raises(UsageError, match="differ in their header"):
        plan_outputs(open_sources(paths), out)


def test_a_folder_gets_one_output_for_each_input(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    first, second = jsonl(tmp_path / "a.jsonl", "1"), jsonl(tmp_path / "x" / "b.jsonl", "2", "3")
    out = str(tmp_path / "out") + "/"
    written = dedup([first, second], [[True], [False, True]], out)
    assert written == [str(tmp_path / "out" / name) for name in ("a.jsonl", "b.jsonl")]
    assert Path(written[1]).read_bytes() == b'{"text":"3"}\n'
    same = jsonl(tmp_path / "x" / "a.jsonl", "4")
    with pytest.raises(UsageError, match="would both be written to"):
        plan_outputs(open_sources([first, same]), out)


@pytest.mark.parametrize("workers", [1, 3, 16])
def test_the_outputs_of_a_folder_are_the_same_for_any_number_of_workers(
    tmp_path: Path, workers: int
) -> None:
    random, paths, keeps, expected = np.random.default_rng(3), [], [], {}
    pack = {"": bytes, ".gz": gzip.compress, ".zst": pa.Codec("zstd").compress}
    unpack = {"": bytes, ".gz": gzip.decompress, ".zst": unpacked}
    for number, ending in enumerate([*pack] * 5):
        name = f"{number}.jsonl{ending}"
        lines = [b'{"text":"%d of %d"}\n' % (row, number) for row in range(number * 100)]
        (tmp_path / name).write_bytes(bytes(memoryview(pack[ending](b"".join(lines)))))
        keep = random.random(len(lines)) < 0.5
        expected[name] = b"".join(line for line, kept in zip(lines, keep, strict=True) if kept)
        paths.append(str(tmp_path / name))
        keeps.append(keep.tolist())
    written = dedup(paths, keeps, f"{tmp_path}/out/", workers=workers)
    assert written == [str(tmp_path / "out" / name) for name in expected]
    for path in map(Path, written):
        assert unpack[path.suffix.replace(".jsonl", "")](path.read_bytes()) == expected[path.name]


def unpacked(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return stream.read() if data else b""


@pytest.mark.parametrize("workers", [1, 4])
def test_of_many_outputs_one_that_fails_leaves_none(tmp_path: Path, workers: int) -> None:
    paths = [jsonl(tmp_path / f"{number}.jsonl", "a", "b") for number in range(9)]
    sources = open_sources(paths)
    for source in sources:
        assert sum(len(batch.texts) for batch in source.batches(SKIP)) == 2
    jsonl(Path(paths[5]), "another")
    masks, out = [np.ones(2, np.bool_)] * 9, f"{tmp_path}/out/"
    with pytest.raises(FileError, match=r"5\.jsonl changed"), OutputSet(paths) as outputs:
        write_outputs(sources, masks, out, outputs, workers=workers)
    assert not (tmp_path / "out").exists()


def test_inputs_are_not_looked_up_for_each_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [jsonl(tmp_path / f"{number}.jsonl", "a") for number in range(30)]
    looked_up: list[object] = []
    look_up = os.stat
    monkeypatch.setattr(
        os, "stat", lambda path, **kw: looked_up.append(path) or look_up(path, **kw)
    )
    dedup(paths, [[True]] * 30, f"{tmp_path}/out/")
    assert len([path for path in looked_up if str(path) in paths]) < 10 * len(paths)


def test_inputs_of_two_formats_cannot_share_an_output(tmp_path: Path) -> None:
    first = jsonl(tmp_path / "a.jsonl", "1")
    (tmp_path / "b.csv").write_bytes(b"text\n")
    sources = open_sources([first, str(tmp_path / "b.csv")])
    with pytest.raises(UsageError, match="cannot share one output"):
        plan_outputs(sources, str(tmp_path / "out.jsonl"))
    with pytest.raises(UsageError, match="would be csv"):
        plan_outputs(sources[:1], str(tmp_path / "out.csv"))
    with pytest.raises(UsageError, match="no inputs"):
        plan_outputs([], "-")


def test_rejects_tell_where_why_and_what(tmp_path: Path) -> None:
    path = tmp_path / "rejects.jsonl.gz"
    with Rejects(str(path)) as rejects:
        rejects.add("in.jsonl", 2, "bad", "é".encode())
        rejects.add("in.jsonl", 3, "worse", b"\xff")
        assert not path.exists()
    lines = [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert lines[0] == {"file": "in.jsonl", "row": 2, "reason": "bad", "record": "é"}
    assert base64.b64decode(lines[1].pop("record_base64")) == b"\xff"
    assert rejects.count == len(lines) == 2


def test_rejects_do_not_appear_after_an_exception_or_without_a_commit(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Rejects(str(tmp_path / "a")):
        raise KeyError
    with OutputSet() as outputs, Rejects(str(tmp_path / "b"), outputs) as rejects:
        rejects.add("x", 1, "bad", b"")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "name", ["t.jsonl", "t.ndjson.gz", "t.csv", "t.tsv.zst", "t.pq", "t.arrow"]
)
def test_a_result_table_reads_back_the_same(tmp_path: Path, name: str) -> None:
    rows = [
        {"dropped": 'a "q",\n\t', "distance": 3, "similarity": 0.1 + 0.2},
        {"dropped": "b", "distance": None, "similarity": None},
    ]
    schema = pa.schema(
        [("dropped", pa.string()), ("distance", pa.int16()), ("similarity", pa.float64())]
    )
    batches = [pa.RecordBatch.from_pylist([row], schema) for row in rows]
    path = str(tmp_path / name)
    with OutputSet() as outputs:
        write_table(outputs, path, schema, iter(batches))
        outputs.commit()
    if name.endswith(".pq"):
        assert pq.read_table(path).equals(pa.Table.from_batches(batches))
        return
    if name.endswith(".arrow"):
        with pa.ipc.open_file(path) as file:
            assert file.read_all().equals(pa.Table.from_batches(batches))
        return
    with pa.input_stream(path) as stream:
        data = stream.read()
    if "csv" in name or "tsv" in name:
        delimiter = "," if "csv" in name else "\t"
        result = list(csv.reader(data.decode().splitlines(keepends=True), delimiter=delimiter))
        assert result[0] == schema.names
        assert result[1] == [rows[0]["dropped"], "3", repr(0.1 + 0.2)]
        assert result[2] == ["b", "", ""]
    else:
        assert [orjson.loads(line) for line in data.splitlines()] == rows


STRING_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.dictionary(pa.int32(), pa.string()),
]


def parquet(path: Path, values: list[Any], kind: pa.DataType = STRING_TYPES[0], **how: Any) -> str:
    text = pa.array(values, pa.binary() if pa.types.is_binary(kind) else pa.string()).cast(kind)
    nested = pa.array([[{"a": i, "b": [None, "x"]}] for i in range(len(values))])
    columns = {"n": pa.array(range(len(values))), "text": text, "nested": nested}
    table = pa.table(columns).replace_schema_metadata({"made": "here"})
    pq.write_table(table, path, **how)
    return str(path)


@pytest.mark.parametrize("kind", STRING_TYPES, ids=str)
@pytest.mark.parametrize("batch_bytes", [1, 8 << 20])
def test_kept_parquet_rows_keep_schema_and_compression(
    tmp_path: Path, kind: pa.DataType, batch_bytes: int
) -> None:
    values = ["a", "é", "", None, "a", "z" * 1000]
    path = parquet(tmp_path / "in.parquet", values, kind, compression="gzip", row_group_size=2)
    (source,) = open_sources([path])
    batches = list(source.batches(ReadOptions(id="n", batch_bytes=batch_bytes, skip_errors=True)))
    texts = [text for batch in batches for text in batch.texts.to_pylist()]
    assert texts == ["a", "é", "", "a", "z" * 1000]
    assert [i for batch in batches for i in batch.ids.to_pylist()] == ["0", "1", "2", "4", "5"]
    assert np.concatenate([batch.rows for batch in batches]).tolist() == [1, 2, 3, 5, 6]
    assert sum(batch.nbytes for batch in batches) == source.nbytes
    out = str(tmp_path / "out.parquet")
    with OutputSet() as outputs:
        source.write_kept(np.array([True, False, False, True, True]), outputs.create(out))
        outputs.commit()
    before, after = pq.read_table(path), pq.read_table(out)
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after.equals(pa.concat_tables([before.slice(0, 1), before.slice(4, 2)]))
    assert pq.ParquetFile(out).metadata.row_group(0).column(0).compression == "GZIP"


def test_bad_parquet_rows_are_named(tmp_path: Path) -> None:
    path = parquet(tmp_path / "in.parquet", [b"a", None, b"\xff", b"b"], pa.binary())
    (source,) = open_sources([path])
    with pytest.raises(DataError, match=r"in.parquet:2: text is null; fix the row"):
        list(source.batches(ReadOptions(), None))
    with Rejects(str(tmp_path / "rejects")) as rejects:
        (batch,) = source.batches(SKIP, rejects)
    assert batch.texts.to_pylist() == ["a", "b"]
    lines = [orjson.loads(line) for line in (tmp_path / "rejects").read_bytes().splitlines()]
    assert [line["reason"] for line in lines] == ["text is null", "text is not UTF-8"]
    assert lines[0]["record"] == '{"text":null}'
    assert lines[1]["record_base64"] == base64.b64encode(b"\xff").decode()


def test_a_parquet_file_that_cannot_be_used_is_a_data_error(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    whole = Path(parquet(path, ["a" * 50, "b"])).read_bytes()
    for data in (b"", b"nonsense", whole[: len(whole) // 2]):
        path.write_bytes(data)
        with pytest.raises(DataError, match="not a readable Parquet file") as caught:
            list(open_sources([str(path)])[0].batches(ReadOptions(), None))
        assert "\n" not in str(caught.value)
    path.write_bytes(whole)
    with pytest.raises(DataError, match=r'no column "body" .* pass --text FIELD'):
        list(open_sources([str(path)])[0].batches(ReadOptions(text=("body",)), None))
    with pytest.raises(DataError, match='column "n" is int64, not a string'):
        list(open_sources([str(path)])[0].batches(ReadOptions(text=("n",)), None))


def test_parquet_fields_are_joined_and_files_too(tmp_path: Path) -> None:
    path = str(tmp_path / "in.parquet")
    pq.write_table(pa.table({"a": ["1", "2"], "b": ["x", "y"]}), path)
    (source,) = open_sources([path])
    (batch,) = source.batches(ReadOptions(text=("a", "b")), None)
    assert batch.texts.to_pylist() == ["1\nx", "2\ny"]
    shutil.copy(path, tmp_path / "again.parquet")
    with pytest.raises(UsageError, match="is named twice"):
        open_sources([path, path])
    sources = open_sources([path, str(tmp_path / "again.parquet")])
    for one in sources:
        list(one.batches(ReadOptions(text=("a",)), None))
    out = str(tmp_path / "out.parquet")
    with OutputSet([path]) as outputs:
        write_outputs(sources, [np.array([True, False]), np.array([True, True])], out, outputs)
        outputs.commit()
    assert pq.read_table(out).column("a").to_pylist() == ["1", "1", "2"]


def test_an_unequal_schema_cannot_be_joined(tmp_path: Path) -> None:
    paths = [str(tmp_path / "1.parquet"), str(tmp_path / "2.parquet")]
    pq.write_table(pa.table({"text": ["1"]}), paths[0])
    pq.write_table(pa.table({"text": ["1"], "n": [1]}), paths[1])
    with pytest.raises(UsageError, match="differ in their schema"):
        plan_outputs(open_sources(paths), str(tmp_path / "out.parquet"))
    with pytest.raises(UsageError, match="Parquet cannot be read from a stream"):
        open_sources(["-"], format="parquet")


@pytest.mark.parametrize("name", ["out.gz", "out.zst"])
@pytest.mark.parametrize("megabytes", [0, 1, 9])
def test_compressed_outputs_of_many_blocks_are_one_stream(
    tmp_path: Path, name: str, megabytes: int
) -> None:
    data = np.random.default_rng(1).integers(97, 101, megabytes << 20, np.uint8).tobytes()
    with OutputSet() as outputs:
        file = outputs.create(str(tmp_path / name))
        for at in range(0, len(data), 777_777):
            file.write(data[at : at + 777_777])
        outputs.commit()
    packed = tmp_path / name
    assert packed.stat().st_size < max(100, len(data) / 2)
    with pa.CompressedInputStream(str(packed), "gzip" if name == "out.gz" else "zstd") as stream:
        assert stream.read() == data
    if name == "out.gz":
        assert gzip.decompress(packed.read_bytes()) == data
