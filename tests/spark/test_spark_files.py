"""Files on Sail come out as on one machine, byte for byte; what cannot be is told in one line."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import fsspec
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from neardup import spark
from neardup.spark.engine_session import check_master
from neardup.spark.publishing import in_batches
from spark_cases import DOCUMENTS, WARNINGS, call, engine_or_skip, outputs, write_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = WARNINGS

WIDE = pa.schema([("at", pa.large_string())])


def same_here_and_there(folder: Path, inputs: list[str], *options: str) -> dict[str, bytes]:
    """Run on one machine and on Sail, and compare every byte that comes out; gives it."""
    engine_or_skip("sail")
    result = []
    for name, engine in (("here", ()), ("there", ("--engine", "spark"))):
        tables = ["--duplicates", f"{name}.jsonl", "--clusters", f"{name}.csv"]
        if "--on-error" in options:
            tables += ["--rejects", f"{name}.rejects.jsonl"]
        call(folder, *inputs, "-o", f"{name}/", *tables, *options, *engine)
        result.append(outputs(folder, name))
    assert result[0] == result[1]
    assert result[0][".jsonl"], "nothing is dropped at all"
    assert not list(folder.glob(".neardup-*"))
    return result[0]


def test_files_come_out_byte_for_byte(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    same_here_and_there(tmp_path, ["in*.jsonl"], "--similarity", "0.5", "--keep", "longest")


def test_parquet_comes_out_byte_for_byte(tmp_path: Path) -> None:
    for part in range(2):
        pq.write_table(DOCUMENTS.slice(part * 41, 41), tmp_path / f"in{part}.parquet")
    result = same_here_and_there(tmp_path, ["in0.parquet", "in1.parquet"], "--distance", "12")
    assert {x for x in result if x.endswith(".parquet")} == {"/in0.parquet", "/in1.parquet"}


@pytest.mark.parametrize("extension", ["parquet", "arrow", "jsonl.zst", "csv.gz"])
def test_tables_of_every_format_come_out_byte_for_byte(tmp_path: Path, extension: str) -> None:
    engine_or_skip("sail")
    write_inputs(tmp_path)
    for name, engine in (("here", ()), ("there", ("--engine", "spark"))):
        tables = ["--duplicates", f"{name}.1.{extension}", "--clusters", f"{name}.2.{extension}"]
        call(tmp_path, "in*.jsonl", *tables, "--similarity", "0.5", *engine)
    assert len(outputs(tmp_path, "here")) == 2
    assert outputs(tmp_path, "here") == outputs(tmp_path, "there")


@hypothesis.given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_parts_of_a_table_are_joined_to_batches_of_one_size(sizes: list[int], rows: int) -> None:
    table = pa.table({"at": [str(x) for x in range(sum(sizes))]}).cast(WIDE)
    ends = np.cumsum([0, *sizes])
    parts = [
        table.slice(begin, size).combine_chunks().to_batches()
        for begin, size in zip(ends, sizes, strict=False)
    ]
    result = list(in_batches((x for part in parts for x in part), rows))
    assert result == (table.to_batches(rows) if sum(sizes) else [])


def test_text_files_are_copied_as_on_one_machine(tmp_path: Path) -> None:
    for number, row in enumerate(DOCUMENTS.to_pylist()):
        file = tmp_path / "pages" / f"{number % 5}" / f"{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(row["text"], "utf-8")
    (tmp_path / "pages" / "bad.txt").write_bytes(b"\xff\xfe\xff")
    options = ("--on-error", "skip", "--similarity", "0.5", "--policy", "components")
    same_here_and_there(tmp_path, ["pages"], *options)


def test_bad_records_and_document_frequencies_travel(tmp_path: Path) -> None:
    lines = [json.dumps(row) for row in DOCUMENTS.to_pylist()]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines[:40], "{", *lines[40:]]), "utf-8")
    (tmp_path / "b.jsonl").write_text('{"id": 3}\n' + lines[7] + "\n", "utf-8")
    (tmp_path / "c.jsonl").write_text('{"text": "like no other text here"}\n', "utf-8")
    table = nd.DocumentFrequencies.learn(DOCUMENTS["text"], nd.Recipe(ngram=1))
    table.save(str(tmp_path / "words.idf"))
    recipe = ("--ngram", "1", "--weight", "tfidf", "--idf", "words.idf", "--distance", "9")
    inputs = ["a.jsonl", "b.jsonl", "c.jsonl"]
    same_here_and_there(tmp_path, inputs, "--on-error", "skip", *recipe)


def test_an_index_drops_what_it_holds(tmp_path: Path) -> None:
    lines = [json.dumps(row) + "\n" for row in DOCUMENTS.to_pylist()]
    (tmp_path / "new.jsonl").write_text("".join(lines[40:]), "utf-8")
    old = DOCUMENTS.slice(0, 40)
    with nd.DurableIndex.create(tmp_path / "seen", 12, recipe=nd.Recipe(), store="text") as index:
        texts = old["text"].to_pylist()
        index.add(old["id"].combine_chunks(), nd.fingerprints(old["text"]), texts)
        index.commit()
    options = ("--id", "id", "--against", "seen", "--similarity", "0.5", "--keep", "longest")
    same_here_and_there(tmp_path, ["new.jsonl"], *options)


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system behind memory://, which Sail's tasks in this process share."""
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()


@pytest.mark.parametrize("tmp", [(), ("--tmp", "waiting")])
def test_what_goes_to_uris_is_what_goes_to_a_disk(
    memory: Any, tmp: tuple[str, ...], tmp_path: Path
) -> None:
    engine_or_skip("sail")
    write_inputs(tmp_path)
    for file in tmp_path.glob("in*.jsonl"):
        memory.pipe_file(f"/news/{file.name}", file.read_bytes())
    (tmp_path / "waiting").mkdir()
    written = []
    for out, engine in (("here", ()), ("there", ("--engine", "spark", *tmp))):
        call(tmp_path, "memory://news/*.jsonl", "-o", f"memory://{out}/kept/", "--duplicates",
             f"memory://{out}/dropped.jsonl", "--similarity", "0.5", *engine)  # fmt: skip
        written.append({x.removeprefix(f"/{out}"): memory.cat_file(x) for x in memory.find(out)})
    assert written[0] == written[1]
    assert len(written[0]) == 4
    assert not list(tmp_path.glob("**/.neardup-*"))
    with pytest.raises(nd.UsageError, match="memory://there/kept/ is not empty"):
        call(tmp_path, "in*.jsonl", "-o", "memory://there/kept/", "--engine", "spark")


def test_an_upload_that_fails_leaves_nothing(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_or_skip("sail")
    write_inputs(tmp_path)
    plain = type(memory).put_file

    def put(self: Any, local: str, remote: str, **more: Any) -> None:
        if remote.endswith("in2.jsonl"):
            raise OSError("no room")
        plain(self, local, remote, **more)

    monkeypatch.setattr(type(memory), "put_file", put)
    with pytest.raises(nd.FileError, match=r"cannot write memory://out/in2\.jsonl: no room"):
        call(tmp_path, "in*.jsonl", "-o", "memory://out/", "--clusters", "groups.csv", "--engine",
             "spark")  # fmt: skip
    assert memory.find("/") == []
    assert sorted(x.name for x in tmp_path.iterdir()) == ["in0.jsonl", "in1.jsonl", "in2.jsonl"]


def test_the_summary_is_that_of_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine_or_skip("sail")
    monkeypatch.setattr("neardup.spark.workers.file_inputs.FILES_A_ROW", 4)
    pages = tmp_path / "pages"
    pages.mkdir()
    for number, text in enumerate(DOCUMENTS["text"].to_pylist()[:12]):
        page = f"<html><body><p>{text}</p><p>caf\xe9</p></body></html>"
        if number % 3:
            (pages / f"{number}.html").write_text(page, "cp1252")
        else:
            (pages / f"{number}.txt").write_bytes(text.encode())
    write_inputs(tmp_path)
    marked = [json.dumps({"text": f"<p>{x}</p>"}) for x in DOCUMENTS["text"].to_pylist()]
    (tmp_path / "marked.jsonl").write_text("\n".join(marked), "utf-8")
    (tmp_path / "old.csv").write_bytes(b"text;n\ncaf\xe9 au lait;1\ncaf\xe9 au lait;2\n")
    for inputs, options in (
        (["pages"], ("--extract", "all", "--encoding", "cp1252")),
        (["in0.jsonl", "marked.jsonl"], ("--keep", "max:stars", "--distance", "20")),
        (["old.csv"], ("--encoding", "cp1252", "--delimiter", ";")),
    ):
        messages = []
        for engine in ((), ("--engine", "spark")):
            (tmp_path / "groups.csv").touch()
            out = f"out-{inputs[0]}{len(engine)}/"
            call(tmp_path, *inputs, "-o", out, "--clusters", "groups.csv", "--json", *options,
                 *engine)  # fmt: skip
            messages.append(json.loads(capsys.readouterr().out))
        names = set(messages[0]) - {"seconds", "megabytes_per_second", "outputs"}
        assert {x: messages[0][x] for x in names} == {x: messages[1][x] for x in names}
        assert messages[0]["notes"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "sparks"), "--engine is 'sparks': use local or spark"),
        (("--master", "sail"), "--master requires --engine spark"),
        (("--engine", "spark", "--resume", "state"), "--resume requires --engine local"),
        (("--engine", "spark", "--report", "r.html"), "--report and --summary require --engine"),
        (("--engine", "spark", "--memory", "2G"), "--memory requires --engine local"),
        (("--engine", "spark", "--plan", "scan", "--distance", "3"), "--plan requires --engine"),
        (("--engine", "spark", "--master", "moon"), "--master is 'moon': use sail, local"),
        (("--engine", "spark", "--master", "local[x]"), "--master is 'local[x]': use sail, local"),
        (("--engine", "spark", "--master", "spark://head"), "--master is 'spark://head': use sail"),
        (("--engine", "spark", "-o", "one.jsonl"), "-o is 'one.jsonl': with --engine spark name"),
        (("--engine", "spark", "-o", "-"), "-o is '-': with --engine spark name a folder"),
        (("--engine", "spark", "-o", "."), "-o . exists: name a new folder, or remove it"),
        (("--engine", "spark", "-o", "no/out/"), "cannot write no/out/: there is no folder"),
        (("--engine", "spark", "--clusters", "x.doc"), "x.doc: unknown extension .doc"),
        (("--engine", "spark", "--keep", "max:size"), "no record has a number in the field size"),
        (("--engine", "spark", "--text", "body"), 'no field "body" (it has "id"'),
        (("--engine", "spark", "--tmp", "absent"), "--tmp"),
    ],
)
def test_wrong_use_is_one_line(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    if "spark" in options:
        engine_or_skip("sail")
    write_inputs(tmp_path)
    with pytest.raises(nd.NeardupError) as error:
        call(tmp_path, "in*.jsonl", "-o", "out/", *options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["in0.jsonl", "in1.jsonl", "in2.jsonl"]


def test_what_a_cluster_uploads_needs_a_place_to_wait(memory: Any, tmp_path: Path) -> None:
    del memory
    engine_or_skip("spark://127.0.0.1:9")
    write_inputs(tmp_path)
    with pytest.raises(nd.UsageError, match=r"all workers of spark://127\.0\.0\.1:9 see.*--tmp"):
        call(tmp_path, "in*.jsonl", "-o", "memory://out/", "--engine", "spark", "--master",
             "spark://127.0.0.1:9")  # fmt: skip


@pytest.mark.parametrize("master", ["sc://127.0.0.1:9", "spark://127.0.0.1:9", "sc://localhost:x"])
def test_an_engine_that_does_not_answer_is_told_at_once(master: str, tmp_path: Path) -> None:
    engine_or_skip(master)
    write_inputs(tmp_path)
    with pytest.raises(nd.NeardupError, match=f"{master} does not answer"):
        call(tmp_path, "in*.jsonl", "-o", "out/", "--engine", "spark", "--master", master)
    assert len(list(tmp_path.iterdir())) == 3


SERVER = """
import time
from pysail.spark import SparkConnectServer
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
print(server.listening_address[1], flush=True)
time.sleep(500)
"""


def test_an_engine_that_is_lost_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_or_skip("sail")
    monkeypatch.setattr("neardup.spark.engine_session.RETRIES", 1)
    write_inputs(tmp_path)
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        master = f"sc://127.0.0.1:{int(server.stdout.readline())}"

        def lose() -> None:
            while not list(tmp_path.glob(".neardup-*/work/0002-*")):
                time.sleep(0.01)
            server.kill()

        thread = threading.Thread(target=lose, daemon=True)
        thread.start()
        with pytest.raises(nd.NeardupError, match=r"the engine was lost: .*nothing was written"):
            call(tmp_path, "in*.jsonl", "-o", "out/", "--engine", "spark", "--master", master)
        thread.join()
    assert sorted(x.name for x in tmp_path.iterdir()) == ["in0.jsonl", "in1.jsonl", "in2.jsonl"]


def test_the_bytes_of_inputs_are_those_of_one_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine_or_skip("sail")
    good = b'{"text": "one two three four"}'
    files = {
        "no-end.jsonl": good,
        "crlf.csv": b"text\r\none two three four\r\n\r\n",
        "header.csv": b"text\n",
        "bad-only.jsonl": b"{\n{",
        "bad-end.jsonl": good + b"\n\n{\n",
        "bad.json": b"[{}, {}]\n",
        "bad.jsonl.gz": gzip.compress(b"{\n"),
        "two.jsonl.gz": gzip.compress(good) + gzip.compress(b"\n" + good),
        "wide.jsonl": good.decode().encode("utf-16-be"),
        "empty.jsonl": b"",
    }
    (tmp_path / "in").mkdir()
    for name, data in files.items():
        (tmp_path / "in" / name).write_bytes(data)
    rows = pa.table({"text": ["five six seven eight", None, "nine ten eleven twelve", None]})
    pq.write_table(rows, tmp_path / "in" / "rows.parquet", row_group_size=3)
    messages = []
    for out, engine in (("here.csv", ()), ("there.csv", ("--engine", "spark"))):
        call(tmp_path, "in", "--clusters", out, "--on-error", "skip", "--json", *engine)
        messages.append(json.loads(capsys.readouterr().out))
    size = sum(path.stat().st_size for path in (tmp_path / "in").iterdir())
    assert [each["nbytes"] for each in messages] == [size, size]
    counts = ("read", "kept", "dropped", "rejected", "empty", "clusters", "notes", "warnings")
    assert [messages[0][x] for x in counts] == [messages[1][x] for x in counts]


BAD: Final = {
    "a broken stream": {"a/z.jsonl.gz": gzip.compress(b'{"text": "a"}\n')[:-9]},
    "a missing field": {"a/4.jsonl": b'{"text": "a"}\n{"id": 3}\n'},
    "a table": {"a/4.parquet": b"PAR1 no more"},
    "not text": {"a/4.txt": b"\xff\xfe\xff", "a/0.txt": b"one two", "b/0.txt": b"one two"},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_the_first_bad_input_is_told_as_on_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: dict[str, bytes]
) -> None:
    engine_or_skip("sail")
    monkeypatch.setattr("neardup.spark.workers.file_inputs.FILES_A_ROW", 2)
    ending = next(iter(bad)).rpartition(".")[2]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for number in range(9):
            name = tmp_path / folder / f"{number}.{'txt' if ending == 'txt' else 'jsonl'}"
            late = b"\xff" if number > 4 else b'{"text": "one two three four"}\n'
            name.write_bytes(b"\xff\n" if folder == "b" else late)
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
    messages = []
    for engine in ((), ("--engine", "spark")):
        with pytest.raises(nd.NeardupError) as error:
            call(tmp_path, "a", "b/*", "--clusters", "groups.csv", *engine)
        messages.append((type(error.value), str(error.value)))
        assert sorted(x.name for x in tmp_path.iterdir()) == ["a", "b"]
    assert messages[0] == messages[1]
    assert str(tmp_path) not in messages[0][1]


def test_a_run_of_which_no_record_is_left_ends_as_on_one_machine(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    engine_or_skip("sail")
    lines = '{"text": "a b c", "at": "01.01.2024"}\n' * 3
    (tmp_path / "in.jsonl").write_text(lines)
    options = ["in.jsonl", "-o", "out/", "--keep", "max:at", "--on-error", "skip"]
    said = []
    for engine in ([], ["--engine", "spark"]):
        with pytest.raises(nd.DataError) as caught:
            call(tmp_path, *options, *engine)
        said.append(str(caught.value))
        assert sorted(x.name for x in tmp_path.iterdir()) == ["in.jsonl"]
    assert said[0] == said[1]
    assert "no record is left: 3 of 3 were rejected, and nothing is written" in said[0]
    (tmp_path / "in.jsonl").write_text(lines + '{"text": "a b c", "at": 1}\n')
    call(tmp_path, *options, "--engine", "spark")
    assert "warning   3 of 4 records were rejected" in capfd.readouterr().err


def test_zst_without_a_checksum_is_noted_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    engine_or_skip("sail")
    frame = pa.Codec("zstd").compress(b'{"text": "a b c"}\n', asbytes=True)
    (tmp_path / "t").mkdir()
    for name in ("a.jsonl.zst", "b.jsonl.zst", "t/a.txt.zst", "t/b.txt.zst"):
        (tmp_path / name).write_bytes(frame)
    for inputs in (["a.jsonl.zst", "b.jsonl.zst"], ["t"]):
        call(tmp_path, *inputs, "-o", f"out{len(inputs)}/", "--engine", "spark")
        assert capfd.readouterr().err.count("carries no checksum") == 1


def test_what_runs_on_workers_loads_no_pipeline() -> None:
    folder = Path(spark.__file__).parent / "workers"
    modules = ", ".join(f"neardup.spark.workers.{x.stem}" for x in folder.glob("[a-z]*.py"))
    code = f"import sys, {modules}; print([x for x in sys.modules if 'pipeline' in x])"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout == "[]\n"


def test_missing_packages_and_java_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.spark.engine_session.find_spec", lambda _: None)
        with pytest.raises(nd.UsageError, match=r"pip install 'neardup\[spark\]'"):
            check_master("sail")
    monkeypatch.setattr("neardup.spark.engine_session.find_spec", lambda _: object())
    monkeypatch.setattr("neardup.spark.engine_session.which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(nd.UsageError, match="there is no java"):
        check_master("local[2]")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(nd.UsageError, match="JAVA_HOME is /nowhere, where there is no bin/java"):
        check_master("local[2]")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setattr("neardup.spark.engine_session.which", str)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(nd.UsageError, match="yarn needs HADOOP_CONF_DIR"):
        check_master("yarn")


def test_numbers_in_one_input_and_dates_in_another_are_refused_as_on_one_machine(
    tmp_path: Path,
) -> None:
    engine_or_skip("sail")
    (tmp_path / "a.jsonl").write_text('{"text": "one two three", "at": 17}\n')
    day = pa.array([dt.date(2024, 1, 31)])
    pq.write_table(pa.table({"text": ["one two three"], "at": day}), tmp_path / "b.parquet")
    inputs = ("a.jsonl", "b.parquet")
    messages = []
    for engine in ("local", "spark"):
        with pytest.raises(nd.DataError) as refused:
            call(tmp_path, *inputs, "-o", "out/", "--keep", "max:at", "--engine", engine)
        messages.append(str(refused.value))
        assert not (tmp_path / "out").exists()
    assert messages[0].startswith("b.parquet: at has dates, and in a.jsonl it has numbers")
    assert messages[0] == messages[1]
