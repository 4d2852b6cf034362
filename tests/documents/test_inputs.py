"""Arrow files, folders and patterns, URIs, and the fields that steer a run."""

from __future__ import annotations

import builtins
import io
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.cli import main
from neardup.documents import OutputSet, ReadOptions, open_sources, write_table
from neardup.errors import DataError, FileError, UsageError
from neardup.hamming.clusters import components, greedy
from neardup.hamming.join.greedy_keep import PAIRWISE_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., str]

LONG = "the quick brown fox jumps over the lazy dog while seven wizards quietly watch it"
OTHER = "entirely different words stand here and nobody would call them near duplicates at all"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line; checks the exit code and gives the standard error."""

    def call(*arguments: str | Path, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["neardup", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        message = capsys.readouterr().err
        assert stopped.value.code == code, message
        if code:
            assert message.splitlines()[-1].startswith("neardup: ")
        return message

    return call


def files_in(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def jsonl(*rows: dict[str, Any]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def source_of(path: Path) -> Any:
    (source,) = open_sources([str(path)])
    return source


def texts(*values: str) -> bytes:
    return jsonl(*({"text": value} for value in values))


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# Arrow


def arrow_bytes(table: pa.Table, kind: str, codec: str | None = None) -> bytes:
    sink = io.BytesIO()
    make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with make(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


def arrow_table(data: bytes, kind: str) -> pa.Table:
    opened = pa.ipc.open_stream if kind == "stream" else pa.ipc.open_file
    return opened(pa.BufferReader(data)).read_all()


TABLE = pa.table(
    {
        "n": [1, 2, 3, 4],
        "text": [LONG, OTHER, LONG, ""],
        "kind": pa.array(["a", "b", "a", None]).dictionary_encode(),
        "nested": [[{"x": 1}], None, [], [{"x": None}]],
    }
).replace_schema_metadata({"made": "here"})


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_kept_arrow_rows_keep_schema_and_kind_and_are_compressed(
    tmp_path: Path, run: Run, kind: str, codec: str | None
) -> None:
    path = put(tmp_path / "in.arrow", arrow_bytes(TABLE, kind, codec))
    out = tmp_path / "out.arrow"
    run("dedup", path, "-o", out, "--id", "n", "--duplicates", tmp_path / "d.jsonl")
    data = out.read_bytes()
    assert data.startswith(b"ARROW1") == (kind == "file")
    expected = TABLE.take([0, 1, 3])
    table = arrow_table(data, kind)
    assert table.schema.equals(TABLE.schema, check_metadata=True)
    assert table.to_pylist() == expected.to_pylist()
    assert orjson.loads((tmp_path / "d.jsonl").read_bytes())["dropped"] == "3"
    messages = pa.ipc.MessageReader.open_stream(data[8 * (kind == "file") :])
    rows = next(x for x in messages if x.type == "record batch")
    assert b"\x28\xb5\x2f\xfd" in rows.body.to_pybytes(), "no frame of Zstandard"


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_without_rows_has_no_documents(tmp_path: Path, run: Run, ending: str) -> None:
    path, kept, none = tmp_path / f"in.{ending}", tmp_path / f"kept.{ending}", TABLE[:0]
    if ending == "parquet":
        pq.ParquetWriter(path, none.schema).close()  # no row group
    else:
        put(path, arrow_bytes(none, "file"))
    assert list(source_of(path).batches(ReadOptions())) == []
    run("dedup", path, "-o", kept)
    written = pq.read_table(kept) if ending == "parquet" else arrow_table(kept.read_bytes(), "file")
    assert written.equals(none)


def test_arrow_batches_are_small_and_name_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "in.feather"
    pyarrow.feather.write_feather(TABLE, str(path))
    source = source_of(path)
    batches = list(source.batches(ReadOptions(id="n", within="kind", batch_bytes=1)))
    assert [batch.rows.tolist() for batch in batches] == [[1], [2], [3], [4]]
    assert [batch.within.to_pylist()[0] for batch in batches] == ["a", "b", "a", None]
    assert sum(batch.nbytes for batch in batches) == path.stat().st_size


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_damaged_arrow_file_is_a_data_error(tmp_path: Path, run: Run, kind: str) -> None:
    whole = arrow_bytes(TABLE, kind)
    path = tmp_path / "in.arrow"
    for data in (b"", b"nonsense, not Arrow", whole[: len(whole) // 2]):
        path.write_bytes(data)
        message = run("dedup", path, "-o", tmp_path / "out.arrow", code=1)
        assert "not a readable Arrow file" in message
    assert list(files_in(tmp_path)) == ["in.arrow"]


def test_arrow_files_are_joined_unless_their_dictionaries_or_schemas_differ(
    tmp_path: Path, run: Run
) -> None:
    for name, values in (("1", ["a", "b"]), ("2", ["c", "d"])):
        plain = pa.table({"text": values})
        encoded = pa.table({"text": values, "kind": pa.array(values).dictionary_encode()})
        put(tmp_path / f"{name}.arrow", arrow_bytes(plain, "file"))
        put(tmp_path / f"{name}.ipc", arrow_bytes(encoded, "file"))
    out = tmp_path / "out.arrow"
    run("dedup", tmp_path / "1.arrow", tmp_path / "2.arrow", "-o", out)
    assert arrow_table(out.read_bytes(), "file")["text"].to_pylist() == ["a", "b", "c", "d"]
    both = (tmp_path / "1.ipc", tmp_path / "2.ipc")
    message = run("dedup", *both, "-o", tmp_path / "no.ipc", code=2)
    assert "write to a folder" in message
    message = run("dedup", tmp_path / "1.arrow", both[1], "-o", tmp_path / "no.ipc", code=2)
    assert "differ in their schema" in message
    assert not (tmp_path / "no.ipc").exists()


# Folders, patterns, text files


def test_each_file_of_a_folder_is_a_document(tmp_path: Path, run: Run) -> None:
    docs = tmp_path / "docs"
    put(docs / "b.txt", LONG.encode())
    put(docs / "sub" / "deep" / "a.md", b"\xef\xbb\xbf" + LONG.encode() + b"\r\n")
    put(docs / "a" / "other", OTHER.encode())
    put(docs / "empty.txt", b"")
    put(docs / ".hidden.txt", LONG.encode())
    put(docs / ".git" / "x.txt", LONG.encode())
    out, table = tmp_path / "new" / "out", tmp_path / "d.jsonl"
    (tmp_path / "new").mkdir()
    run("dedup", docs, "-o", f"{out}/", "--duplicates", table)
    before = files_in(docs)
    assert files_in(out) == {name: before[name] for name in ("a/other", "b.txt", "empty.txt")}
    row = orjson.loads(table.read_bytes())
    assert (row["dropped"], row["kept"]) == ("sub/deep/a.md", "b.txt")
    message = run("dedup", docs, "-o", out, code=2)
    assert "is not empty" in message
    names = [".d.jsonl.options.json", "d.jsonl", "docs", "new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_longest_text_file_is_kept_and_compressed_ones_are_read(tmp_path: Path, run: Run) -> None:
    import gzip

    docs = tmp_path / "docs"
    data = gzip.compress(f"{LONG}!".encode())
    put(docs / "a.txt", LONG.encode())
    put(docs / "b.txt.gz", data)
    run("dedup", docs, "-o", f"{tmp_path}/out/", "--keep", "longest")
    assert files_in(tmp_path / "out") == {"b.txt.gz": data}


def test_text_files_need_a_folder_and_have_no_fields(tmp_path: Path, run: Run) -> None:
    path = put(tmp_path / "a.txt", LONG.encode())
    message = run("dedup", path, "-o", tmp_path / "out.txt", code=2)
    assert "name a folder" in message
    out = f"{tmp_path}/out/"
    for option in (["--id", "x"], ["--text", "x"], ["--within", "x"], ["--keep", "max:x"]):
        message = run("dedup", path, "-o", out, *option, code=2)
        assert "text files have no fields" in message
    twin = put(tmp_path / "sub" / "a.txt", LONG.encode())
    message = run("dedup", path, twin, "-o", out, code=2)
    assert "2 files are both named a.txt; name the folder" in message
    assert sorted(files_in(tmp_path)) == ["a.txt", "sub/a.txt"]


def test_a_text_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path, run: Run) -> None:
    docs = tmp_path / "docs"
    put(docs / "a.txt", LONG.encode())
    put(docs / "b.txt", b"fine\nbad \xff\n")
    message = run("dedup", docs, "-o", f"{tmp_path}/out/", code=1)
    assert (
        f"{docs}/b.txt:2: not UTF-8 (byte 10 of the file), it looks like cp1252; pass --enc"
        in message
    )
    rejects = tmp_path / "rejects.jsonl"
    options = ("--on-error", "skip", "--rejects", rejects)
    run("dedup", docs, "-o", f"{tmp_path}/out/", *options)
    assert list(files_in(tmp_path / "out")) == ["a.txt"]
    assert orjson.loads(rejects.read_bytes())["file"] == f"{docs}/b.txt"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_an_unreadable_file_in_a_folder_is_a_file_error(tmp_path: Path, run: Run) -> None:
    put(tmp_path / "docs" / "a.txt", b"x").chmod(0)
    assert "Permission denied" in run("dedup", tmp_path / "docs", "-o", f"{tmp_path}/o/", code=3)


def test_a_text_file_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    path = put(tmp_path / "docs" / "a.txt", LONG.encode())
    source = source_of(tmp_path / "docs")
    assert [batch.ids.to_pylist() for batch in source.batches(ReadOptions())] == [["a.txt"]]
    path.write_bytes(LONG.upper().encode())
    with OutputSet() as outputs, pytest.raises(FileError, match="changed while it was being read"):
        source.copy_kept(np.ones(1, np.bool_), outputs.create_tree(str(tmp_path / "out")))
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]


def test_a_folder_of_records_keeps_relative_paths_and_compression(tmp_path: Path, run: Run) -> None:
    import gzip

    shards = tmp_path / "shards"
    put(shards / "x" / "1.jsonl.gz", gzip.compress(texts(LONG, "one")))
    put(shards / "y" / "1.jsonl.gz", gzip.compress(texts("two", LONG)))
    run("dedup", shards, "-o", f"{tmp_path}/out/deep/", "--duplicates", tmp_path / "d.jsonl")
    paths = files_in(tmp_path / "out" / "deep")
    assert {name: gzip.decompress(data) for name, data in paths.items()} == {
        "x/1.jsonl.gz": texts(LONG, "one"),
        "y/1.jsonl.gz": texts("two"),
    }
    row = orjson.loads((tmp_path / "d.jsonl").read_bytes())
    assert row["dropped"] == f"{shards}/y/1.jsonl.gz:2"
    run("dedup", shards, "-o", tmp_path / "one.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == texts(LONG, "one", "two")


def test_patterns_are_expanded_in_order(tmp_path: Path, run: Run) -> None:
    put(tmp_path / "news" / "b.jsonl", texts("one"))
    put(tmp_path / "news" / "a.jsonl", texts("two"))
    put(tmp_path / "news" / "x" / "c.jsonl", texts("three"))
    put(tmp_path / "news" / "notes.txt", b"")
    out = tmp_path / "out.jsonl"
    run("dedup", tmp_path / "news" / "*.jsonl", "-o", out)
    assert out.read_bytes() == texts("two", "one")
    run("dedup", tmp_path / "news" / "**" / "*.jsonl", "-o", f"{tmp_path}/out/")
    assert sorted(files_in(tmp_path / "out")) == ["a.jsonl", "b.jsonl", "x/c.jsonl"]
    assert "no file matches" in run("dedup", f"{tmp_path}/*.csv", "-o", out, code=3)


def test_records_and_documents_do_not_mix(tmp_path: Path, run: Run) -> None:
    put(tmp_path / "in" / "a.jsonl", texts("one"))
    put(tmp_path / "in" / "README", LONG.encode())
    out = f"{tmp_path}/out/"
    message = run("dedup", tmp_path / "in", "-o", out, code=2)
    assert "a.jsonl holds records, and" in message
    assert "README is one document" in message
    run("dedup", tmp_path / "in", "-o", out, "--format", "text")
    assert files_in(tmp_path / "out") == files_in(tmp_path / "in")
    message = run("dedup", tmp_path / "in" / "README", "-o", f"{tmp_path}/2/", code=2)
    assert "pass --format text" in message
    message = run("dedup", tmp_path / "in", "-o", out, "--format", "xml", code=2)
    assert "unknown format 'xml'" in message


def test_a_folder_without_documents_is_a_data_error(tmp_path: Path, run: Run) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    put(tmp_path / "in" / ".hidden", b"")
    message = run("dedup", tmp_path / "in", "-o", f"{tmp_path}/out/", code=1)
    assert "in: the folder has no documents" in message


def test_a_file_name_that_is_not_utf8_is_escaped(tmp_path: Path, run: Run) -> None:
    name = os.fsencode(tmp_path) + b"/docs/\xe9.txt"
    put(tmp_path / "docs" / "b.txt", b"other words")
    with open(name, "wb") as file:  # noqa: PTH123
        file.write(LONG.encode())
    clusters = tmp_path / "c.csv"
    run("dedup", tmp_path / "docs", "-o", f"{tmp_path}/x/out/", "--clusters", clusters)
    assert b"\\xe9.txt" in clusters.read_bytes()
    assert sorted(os.listdir(os.fsencode(tmp_path) + b"/x/out")) == [b"b.txt", b"\xe9.txt"]  # noqa: PTH208


def test_more_shards_than_open_files_allowed(tmp_path: Path, run: Run) -> None:
    import resource

    for i in range(200):
        put(tmp_path / "in" / f"{i:03}.jsonl", texts(f"document number {i}"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = len(os.listdir("/dev/fd"))  # noqa: PTH208  # those of the tests before
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files + 60, hard))
    try:
        run("dedup", tmp_path / "in", "-o", f"{tmp_path}/out/", "--distance", "0")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert files_in(tmp_path / "out") == files_in(tmp_path / "in")


def test_a_folder_is_fingerprinted(tmp_path: Path, run: Run) -> None:
    put(tmp_path / "docs" / "s" / "a.txt", LONG.encode())
    run("fingerprint", tmp_path / "docs", "-o", tmp_path / "f.parquet")
    assert pq.read_table(tmp_path / "f.parquet")["id"].to_pylist() == ["s/a.txt"]


def test_thousands_of_small_files_are_few_batches(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for i in range(2000):
        (folder / f"{i:04}.txt").write_bytes(b"document %d" % i)
    source = source_of(folder)
    batches = list(source.batches(ReadOptions()))
    assert sum(len(batch.texts) for batch in batches) == 2000
    assert len(batches) < 20
    assert sum(batch.nbytes for batch in batches) == source.nbytes


# URIs


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system behind memory://, empty."""
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    yield fs
    for path in fs.find("/"):
        fs.rm(path)
    fs.pseudo_dirs[:] = [""]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv.zst", "a.parquet", "a.arrow"])
def test_a_run_in_memory_equals_a_run_on_disk(
    tmp_path: Path, run: Run, memory: Any, name: str
) -> None:
    rows = pa.table({"text": [LONG, OTHER, LONG], "id": ["x", "y", "z"]})
    local = tmp_path / name
    if name == "a.arrow":
        put(local, arrow_bytes(rows, "file"))
    else:
        with OutputSet() as outputs:
            write_table(outputs, str(local), rows.schema, rows.to_batches())
            outputs.commit()
    memory.pipe(f"/in/{name}", local.read_bytes())
    for base, out in (("memory://in", "memory://out"), (str(tmp_path), f"{tmp_path}/out")):
        run(
            "dedup", f"{base}/{name}", "-o", f"{out}/", "--id", "id",
            "--duplicates", f"{base}/d.csv", "--clusters", f"{base}/c.parquet",
        )  # fmt: skip
    assert memory.cat(f"/out/{name}") == (tmp_path / "out" / name).read_bytes()
    assert memory.cat("/in/d.csv") == (tmp_path / "d.csv").read_bytes()
    assert pq.read_table(tmp_path / "c.parquet").equals(
        pq.read_table(pa.BufferReader(memory.cat("/in/c.parquet")))
    )


def test_folders_and_patterns_behind_a_uri(run: Run, memory: Any) -> None:
    memory.pipe({"/docs/a.txt": LONG.encode(), "/docs/s/b.md": LONG.encode()})
    memory.pipe({"/docs/s/c.md": OTHER.encode(), "/docs/.d": b""})
    run("dedup", "memory://docs", "-o", "memory://kept/")
    assert memory.find("/kept") == ["/kept/a.txt", "/kept/s/c.md"]
    assert memory.cat("/kept/s/c.md") == OTHER.encode()
    assert "is not empty" in run("dedup", "memory://docs/", "-o", "memory://kept", code=2)
    memory.pipe({"/r/a.jsonl": texts(LONG), "/r/x/b.jsonl": texts(LONG, "b")})
    run("dedup", "memory://r/**/*.jsonl", "-o", "memory://records/")
    assert memory.cat("/records/x/b.jsonl") == texts("b")


def test_a_uri_that_cannot_be_is_one_clear_line(tmp_path: Path, run: Run, memory: Any) -> None:
    out = tmp_path / "out.jsonl"
    message = run("dedup", "memory://none/a.jsonl", "-o", out, code=3)
    assert "cannot read memory://none/a.jsonl: No such file" in message
    message = run("dedup", "nonsense://none/a.jsonl", "-o", out, code=2)
    assert "Protocol not known" in message
    memory.pipe("/in/a.jsonl", texts(LONG, LONG))
    message = run("dedup", "memory://in/a.jsonl", "-o", "memory:///in/a.jsonl", code=2)
    assert "is an input" in message
    assert memory.cat("/in/a.jsonl") == texts(LONG, LONG)
    memory.pipe("/in/b.jsonl", b"{broken\n")
    memory.pipe("/in/d.csv", b"old")
    table = ("--duplicates", "memory://in/d.csv")
    run("dedup", "memory://in/b.jsonl", "-o", "memory://in/o.jsonl", *table, code=1)
    assert sorted(memory.find("/in")) == ["/in/a.jsonl", "/in/b.jsonl", "/in/d.csv"]
    assert memory.cat("/in/d.csv") == b"old"


@pytest.mark.parametrize(
    ("stopped_by", "expected"),
    [
        (ConnectionError("the network\nis away"), FileError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_an_upload_that_stops_puts_back_what_was_there(
    tmp_path: Path,
    memory: Any,
    monkeypatch: pytest.MonkeyPatch,
    stopped_by: BaseException,
    expected: type[BaseException],
) -> None:
    memory.pipe("/out/a", b"old")
    upload = type(memory).put_file

    def failing(self: Any, source: str, target: str, **options: Any) -> None:
        if target.endswith("c"):
            raise stopped_by
        upload(self, source, target, **options)

    monkeypatch.setattr(type(memory), "put_file", failing)
    with OutputSet(tmp=str(tmp_path)) as outputs:
        for name in ("a", "b", "c"):
            outputs.create(f"memory://out/{name}").write(b"new")
        with pytest.raises(expected) as caught:
            outputs.commit()
    if expected is FileError:
        assert str(caught.value) == "cannot write memory://out/c: the network is away"
    assert memory.find("/out") == ["/out/a"]
    assert memory.cat("/out/a") == b"old"
    assert list(tmp_path.iterdir()) == []


def test_a_uri_of_a_local_file_is_that_file(tmp_path: Path, run: Run) -> None:
    put(tmp_path / "a.jsonl", texts(LONG, LONG))
    run("dedup", f"file://{tmp_path}/a.jsonl", "-o", f"file://{tmp_path}/out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == texts(LONG)
    message = run("dedup", f"file://{tmp_path}/a.jsonl", "-o", tmp_path / "a.jsonl", code=2)
    assert "is an input" in message


def test_without_fsspec_the_error_says_what_to_install(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def refusing(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "fsspec":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refusing)
    message = run("dedup", "s3://bucket/a.jsonl", "-o", tmp_path / "out.jsonl", code=2)
    assert "s3:// needs fsspec; install it: pip install 'neardup[s3]'" in message


@pytest.fixture(scope="module")
def s3_server() -> Iterator[str]:
    """An S3-compatible server on this machine."""
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'neardup[dev]'")
    server = pytest.importorskip(
        "moto.server", reason="moto is not installed: pip install 'neardup[dev]'"
    )
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The file system behind s3://, with the bucket `news`."""
    import s3fs

    settings = {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    fs = s3fs.S3FileSystem()
    fs.mkdir("news")
    yield fs
    fs.rm("news", recursive=True)
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_whole_run_on_s3(s3: Any, run: Run) -> None:
    import gzip

    s3.pipe("news/in/x/1.jsonl.gz", gzip.compress(texts(LONG, "one")))
    s3.pipe("news/in/y/1.jsonl.gz", gzip.compress(texts("two", LONG) + b"{broken\n"))
    run(
        "dedup", "s3://news/in/*/*.jsonl.gz", "-o", "s3://news/out/",
        "--duplicates", "s3://news/d.parquet", "--on-error", "skip", "--rejects", "s3://news/r.jsonl",
    )  # fmt: skip
    s3.invalidate_cache()
    assert gzip.decompress(s3.cat("news/out/x/1.jsonl.gz")) == texts(LONG, "one")
    assert gzip.decompress(s3.cat("news/out/y/1.jsonl.gz")) == texts("two")
    table = pq.read_table(pa.BufferReader(s3.cat("news/d.parquet"))).to_pylist()
    assert table[0]["dropped"] == "s3://news/in/y/1.jsonl.gz:2"
    assert orjson.loads(s3.cat("news/r.jsonl"))["record"] == "{broken"


def test_parquet_and_text_files_on_s3(s3: Any, run: Run, tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": [LONG, LONG, OTHER]}), tmp_path / "a.parquet")
    s3.put(str(tmp_path / "a.parquet"), "news/a.parquet")
    run("dedup", "s3://news/a.parquet", "-o", "s3://news/out.parquet")
    kept = pq.read_table(pa.BufferReader(s3.cat("news/out.parquet")))
    assert kept["text"].to_pylist() == [LONG, OTHER]
    s3.pipe({"news/docs/a.txt": LONG.encode(), "news/docs/s/b.txt": LONG.encode()})
    run("dedup", "s3://news/docs/", "-o", "s3://news/kept/")
    s3.invalidate_cache()
    assert s3.find("news/kept") == ["news/kept/a.txt"]


def test_what_is_not_on_s3_is_one_clear_line(s3: Any, run: Run, tmp_path: Path) -> None:
    for path in ("s3://news/none.jsonl", "s3://no-such-bucket/a.jsonl"):
        message = run("dedup", path, "-o", tmp_path / "out.jsonl", code=3)
        assert f"cannot read {path}: No such file or directory" in message
    s3.pipe("news/a.jsonl", texts(LONG))
    message = run("dedup", "s3://news/a.jsonl", "-o", "s3://no-such-bucket/out.jsonl", code=3)
    assert "cannot write s3://no-such-bucket/out.jsonl: " in message


# Fields


FIELD_ROWS: list[dict[str, Any]] = [
    {"title": LONG, "body": "b", "lang": "en", "stars": 1},
    {"title": LONG, "body": "b", "lang": "de", "stars": None},
    {"title": LONG, "body": "b", "lang": "en", "stars": 7},
    {"title": LONG, "body": "b", "lang": None, "stars": 0.5},
    {"title": LONG, "body": "b", "lang": None, "stars": 9},
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
@pytest.mark.parametrize("mode", [[], ["--distance", "3"], ["--policy", "components"]])
def test_within_compares_only_equal_values_and_max_keeps_the_largest(
    tmp_path: Path, run: Run, name: str, mode: list[str]
) -> None:
    table = pa.Table.from_pylist(
        [
            row | {"stars": None if row["stars"] is None else float(row["stars"])}
            for row in FIELD_ROWS
        ]
    )
    with OutputSet() as outputs:
        write_table(outputs, str(tmp_path / name), table.schema, table.to_batches())
        outputs.commit()
    clusters = tmp_path / "c.jsonl"
    for keep, expected in (("max:stars", [2, 3, 5]), ("min:stars", [1, 2, 4]), ("last", [2, 3, 5])):
        run(
            "dedup", tmp_path / name, "--clusters", clusters, "--text", "title,body",
            "--within", "lang", "--keep", keep, *mode,
        )  # fmt: skip
        rows = [orjson.loads(line) for line in clusters.read_bytes().splitlines()]
        assert [i for i, row in enumerate(rows, 1) if row["kept"]] == expected


def test_values_of_any_scalar_type_are_groups_and_others_are_bad_records(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    values = ["x", 1, True, None, 2**70, "1", "true"]
    path.write_bytes(b"".join(b'{"text":"t","f":%s}\n' % orjson_any(v) for v in values))
    source = source_of(path)
    (batch,) = source.batches(ReadOptions(within="f", skip_errors=True))
    assert batch.within.to_pylist() == ["x", "1", "true", None, "1", "true"]
    path.write_bytes(jsonl({"text": "t", "f": [1]}))
    with pytest.raises(DataError, match=r"a.jsonl:1: f is an array, not a string, a whole number"):
        list(source_of(path).batches(ReadOptions(within="f")))
    path.write_bytes(jsonl({"text": "t"}))
    with pytest.raises(DataError, match=r'no field "f" .*; pass --within FIELD'):
        list(source_of(path).batches(ReadOptions(within="f")))


def orjson_any(value: Any) -> bytes:
    import json

    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, 3.0), (2.5, 2.5), (None, None), (2**60 + 1, 2.0**60), (..., None)],
)
def test_numbers_of_json_lines(tmp_path: Path, value: Any, expected: float | None) -> None:
    rows: list[dict[str, Any]] = [{"text": "t", "n": 1}, {"text": "t", "n": value}]
    if value is ...:
        del rows[1]["n"]
    path = put(tmp_path / "a.jsonl", jsonl(*rows))
    (batch,) = source_of(path).batches(ReadOptions(number="n"))
    assert batch.numbers.to_pylist() == [1.0, expected]


@pytest.mark.parametrize("value", ["7", True, [1]])
def test_what_is_no_number_is_a_bad_record(tmp_path: Path, run: Run, value: Any) -> None:
    path = put(tmp_path / "a.jsonl", jsonl({"text": "t", "n": 1}, {"text": "t", "n": value}))
    message = run("dedup", path, "-o", tmp_path / "o.jsonl", "--keep", "max:n", code=1)
    assert "a.jsonl:2: n is a" in message
    assert "not a number" in message


def test_numbers_of_csv(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", b"text,n\na, 2.5\nb,\nc,1e3\n")
    (batch,) = source_of(path).batches(ReadOptions(number="n"))
    assert batch.numbers.to_pylist() == [2.5, None, 1000.0]
    for bad in (b"x", b"nan"):
        put(path, b"text,n\na,%s\n" % bad)
        with pytest.raises(DataError, match=r'a.csv:2: n is "(x|nan)", not a number'):
            list(source_of(path).batches(ReadOptions(number="n")))


def test_a_keep_without_a_field_is_refused(tmp_path: Path, run: Run) -> None:
    path = put(tmp_path / "a.jsonl", texts("one"))
    for keep in ("max:", "best", "max"):
        message = run("dedup", path, "-o", tmp_path / "o.jsonl", "--keep", keep, code=2)
        assert "max:FIELD, min:FIELD" in message


def test_tables_in_memory_have_the_same_fields() -> None:
    table = pa.table({"text": [LONG] * 4, "g": [1, 2, 1, None], "n": [1.0, 2.0, 3.0, None]})
    result = nd.dedup(table, within="g", keep="max:n")
    assert result.kept.tolist() == [False, True, True, True]
    with pytest.raises(UsageError, match="plain texts have no fields"):
        nd.dedup([LONG], within="g")
    with pytest.raises(UsageError, match="use one of numbers"):
        nd.dedup(table.append_column("s", pa.array(["x"] * 4)), keep="min:s")


# Groups in exact mode, against the plain definition


def plain_greedy(
    values: list[int], groups: list[int], order: list[int], distance: int
) -> list[int]:
    kept: list[int] = []
    kept_by = list(range(len(values)))
    for row in order:
        for other in kept:
            near = (values[row] ^ values[other]).bit_count() <= distance
            if near and groups[row] == groups[other]:
                kept_by[row] = other
                break
        else:
            kept.append(row)
    return kept_by


def plain_components(values: list[int], groups: list[int], distance: int) -> list[int]:
    label = list(range(len(values)))
    for a in range(len(values)):
        for b in range(a):
            near = (values[a] ^ values[b]).bit_count() <= distance
            if near and groups[a] == groups[b]:
                low, high = sorted((label[a], label[b]))
                label = [low if x == high else x for x in label]
    return label


@given(
    rows=st.lists(st.tuples(st.integers(0, 255), st.integers(0, 3)), max_size=40),
    distance=st.integers(0, 3),
    masked=st.sets(st.integers(0, 39), max_size=3),
    data=st.data(),
)
def test_groups_equal_the_plain_definition(
    rows: list[tuple[int, int]], distance: int, masked: set[int], data: st.DataObject
) -> None:
    masked = {row for row in masked if row < len(rows)}
    values = [value for value, _ in rows]
    numbers = [100 + i if i in masked else group for i, (_, group) in enumerate(rows)]
    order = data.draw(st.permutations(range(len(rows))))
    words = np.ma.array(np.array(values, np.uint64).reshape(-1, 1), mask=False)
    for row in masked:
        words[row] = np.ma.masked
    groups = np.array([group for _, group in rows], np.int32)
    kept_by = greedy(words, np.array(order, np.int64), distance, 64, groups=groups)
    assert kept_by.tolist() == plain_greedy(values, numbers, list(order), distance)
    labels = components(words, distance, 64, groups=groups)
    assert labels.tolist() == plain_components(values, numbers, distance)


def test_a_large_part_of_a_mixed_component_is_joined_by_its_own_matches() -> None:
    chain = np.cumsum(np.uint64(1) << (np.arange(64, dtype=np.uint64)), dtype=np.uint64)
    values = np.tile(chain, PAIRWISE_ROWS // 16).reshape(-1, 1)
    groups = (np.arange(len(values)) % 64 == 31).astype(np.int32)
    labels = components(values, 1, 64, groups=groups)
    place = np.arange(len(values)) % 64
    expected = np.where(place < 31, 0, np.where(place == 31, 31, 32))
    assert labels.tolist() == expected.tolist()
