"""Names of files that are not UTF-8, as old systems left them: inputs, outputs, indexes, states."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from neardup.cli import main
from neardup.runtime.storage.durable_files import name_as_text

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES = "caf\udce9\udcff"
TEXT = r"caf\xe9\xff"
RECORDS = [{"id": f"t{i}", "text": f"one two three four {i // 2}"} for i in range(6)]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Call a command in the folder; its exit code."""
    monkeypatch.chdir(tmp_path)

    def call(*command: str) -> int:
        monkeypatch.setattr("sys.argv", ["neardup", *command])
        with pytest.raises(SystemExit) as end:
            main()
        sys.stderr.flush()
        return int(end.value.code or 0)

    return call


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain é", "plain é"),
        (BYTES, TEXT),
        ("\ud800", r"\ud800"),
        ("a\\xe9", "a\\xe9"),
        ("", ""),
    ],
)
def test_a_name_as_text_is_utf8_and_names_that_are_stay(name: str, text: str) -> None:
    assert name_as_text(name) == text


def test_a_file_whose_name_is_not_utf8_is_an_input_like_others(run: Callable[..., int]) -> None:
    Path(f"{BYTES}.jsonl").write_text(f"{LINES}bad\n")
    for state in ([], ["--resume", f"{BYTES}.state"]):
        code = run(
            "dedup", f"{BYTES}.jsonl", "-o", f"{BYTES}/", "--duplicates", "d.jsonl",
            "--on-error", "skip", "--rejects", "r.jsonl", *state,
        )  # fmt: skip
        assert code == 0
        assert json.loads(Path("r.jsonl").read_text())["file"] == f"{TEXT}.jsonl"
        dropped = [json.loads(line) for line in Path("d.jsonl").read_text().splitlines()]
        assert [row["dropped"] for row in dropped] == [f"{TEXT}.jsonl:{row}" for row in (2, 4, 6)]
        assert Path(BYTES, f"{BYTES}.jsonl").read_text().count("\n") == 3
        Path(BYTES, f"{BYTES}.jsonl").unlink()


def test_an_address_in_such_a_file_is_found(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(f"{BYTES}.jsonl").write_text(LINES)
    assert run("compare", f"{BYTES}.jsonl:1", f"{BYTES}.jsonl:2") == 0
    assert run("compare", f"{BYTES}.jsonl:1", f"{BYTES}.jsonl:77") == 1
    assert "no document at 77" in capsys.readouterr().err


def test_columns_are_read_from_such_a_file(run: Callable[..., int]) -> None:
    table = pa.table({"text": [record["text"] for record in RECORDS]})
    with Path(f"{BYTES}.parquet").open("wb") as file:
        pq.write_table(table, file)
    assert run("dedup", f"{BYTES}.parquet", "-o", f"{BYTES}o.parquet") == 0
    with Path(f"{BYTES}o.parquet").open("rb") as file:
        assert pq.read_table(file).num_rows == 3


@pytest.mark.parametrize("kind", ["distance=3", "similarity=0.8"])
def test_an_index_has_such_a_name(kind: str, run: Callable[..., int]) -> None:
    Path(f"{BYTES}.jsonl").write_text(LINES)
    assert run("index", "create", BYTES, f"--{kind}") == 0
    assert run("index", "add", BYTES, f"{BYTES}.jsonl") == 0
    for command in ("compact", "check", "stats"):
        assert run("index", command, BYTES) == 0
    assert run("index", "backup", BYTES, f"{BYTES}.copy") == 0
    with nd.DurableIndex.open(f"{BYTES}.copy", readonly=True) as index:
        assert [name for ids, *_ in index.documents() for name in ids.to_pylist()] == [
            f"{TEXT}.jsonl:{row}" for row in range(1, 7)
        ]


def test_where_arrow_opens_the_file_it_is_one_line(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("in.jsonl").write_text(LINES)
    assert run("fingerprint", "in.jsonl", "-o", f"{BYTES}.parquet") == 0
    assert run("pairs", f"{BYTES}.parquet", "-o", "pairs.csv") == 3
    Path(f"{BYTES}.csv").write_text("first,second,label\n")
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.endswith("its name is not UTF-8; rename it")
    assert run("evaluate", "--docs", "in.jsonl", "--labels", f"{BYTES}.csv") == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.endswith(".csv has no labels")
