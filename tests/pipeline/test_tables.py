"""Tables of results and labels are read in every format that documents have."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from commands import DOCS, Here
from neardup.documents import OutputSet, read_table, write_table
from neardup.errors import DataError, UsageError
from neardup.pipeline.evaluation.labels import read_truth
from neardup.pipeline.evidence.pair_rows import pair_rows
from neardup.pipeline.judgement.answers import Answers, read_answers
from neardup.pipeline.pair_files import RowIds

if TYPE_CHECKING:
    from collections.abc import Callable

WRITTEN = ("csv", "tsv", "jsonl", "parquet", "arrow", "xlsx", "csv.gz", "jsonl.zst")
OTHERS = ("array.json", "semicolon.csv", "utf16.csv")


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    return Here(tmp_path, monkeypatch, capsys)


def put(path: Path, rows: list[dict[str, Any]]) -> str:
    """Write a table as `dedup` does, or as a user may have it."""
    names = list(rows[0])
    if path.name.endswith("array.json"):
        path.write_text(json.dumps(rows, indent=1))
    elif path.name.endswith((".semicolon.csv", ".utf16.csv")):
        encoding = "utf-16" if "utf16" in path.name else "utf-8"
        with path.open("w", encoding=encoding, newline="") as file:
            table = csv.DictWriter(file, names, delimiter=";")
            table.writeheader()
            table.writerows(rows)
    else:
        table = pa.Table.from_pylist(rows)
        with OutputSet() as outputs:
            write_table(outputs, str(path), table.schema, table.to_batches())
            outputs.commit()
    return str(path)


@pytest.mark.parametrize("ending", [*WRITTEN, *OTHERS])
def test_labels_pairs_and_answers_are_read_in_every_format(ending: str, tmp_path: Path) -> None:
    pairs = [{"id1": "a", "id2": "b", "label": "1"}, {"id1": "a", "id2": "ç", "label": "0"}]
    path = put(tmp_path / f"p.{ending}", pairs)
    assert [(x.first, x.second, x.label) for x in pair_rows(path)] == [
        ("a", "b", True), ("a", "ç", False),
    ]  # fmt: skip
    truth = read_truth(path, ["a", "b", "ç"])
    assert (truth.pairs, truth.judged.tolist()) == (1, [[0, 1], [0, 2]])
    of_documents = [{"id": x, "cluster": y} for x, y in (("a", 1), ("b", 2), ("ç", 1))]
    truth = read_truth(put(tmp_path / f"c.{ending}", of_documents), ["a", "b", "ç"])
    assert truth.cluster.tolist() == [0, 1, 0]
    said = [{"first": "a", "second": "b", "answer": "yes"}]
    path = put(tmp_path / f"a.{ending}", said)
    assert [x.answer for x in read_answers(path).values()] == ["yes"]
    if ending != "jsonl":
        before = Path(path).read_bytes()
        with pytest.raises(UsageError, match="not a file of JSON lines, which answers"):
            Answers(path)
        assert Path(path).read_bytes() == before


@pytest.mark.parametrize("ending", [*WRITTEN, *OTHERS])
def test_what_a_run_wrote_is_shown_and_reported_in_every_format(ending: str, here: Here) -> None:
    (here.folder / "in.jsonl").write_text("".join(json.dumps(x) + "\n" for x in DOCS))
    here(
        "dedup", "in.jsonl", "-o", "o.jsonl", "--id", "id", "--similarity", "0.8",
        "--duplicates", "d.jsonl", "--clusters", "c.jsonl",
    )  # fmt: skip
    for name in ("d", "c"):
        rows = [row for _, row in read_table(f"{name}.jsonl")]
        put(here.folder / f"{name}.{ending}", rows)
    outputs = [here("show", x, "in.jsonl", "--id", "id")[0] for x in ("d.jsonl", f"d.{ending}")]
    assert outputs[0] == outputs[1] != ""
    options = ("in.jsonl", "--id", "id", "--similarity", "0.8")
    here("report", "d.jsonl", *options, "--clusters", "c.jsonl", "-o", "1.html")
    here("report", f"d.{ending}", *options, "--clusters", f"c.{ending}", "-o", "2.html")
    page = Path("1.html").read_text()
    for name, other in (
        ("1.html", "2.html"),
        ("d.jsonl", f"d.{ending}"),
        ("c.jsonl", f"c.{ending}"),
    ):
        page = page.replace(name, other)
    assert page == Path("2.html").read_text()


BROKEN: dict[str, Callable[[Path], object]] = {
    "short.csv": lambda x: x.write_text("id1,id2\na,b\nc\n"),
    "twice.csv": lambda x: x.write_text("id1,id1\na,b\n"),
    "latin.csv": lambda x: x.write_bytes(b"id1,id2\na,b\nc,\xe9\n"),
    "cut.jsonl": lambda x: x.write_text('{"id1": "a", "id2": "b"}\n{"id1": "a"'),
    "number.json": lambda x: x.write_text('[{"id1": "a", "id2": "b"}, 7]'),
    "cut.csv.gz": lambda x: x.write_bytes(gzip.compress(b"id1,id2\na,b\n" * 999)[:40]),
    "none.arrow": lambda x: x.write_bytes(b"\xff\xff\xff\xff"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_table_is_told_with_its_row_and_what_to_do(name: str, tmp_path: Path) -> None:
    BROKEN[name](tmp_path / name)
    with pytest.raises(DataError) as error:
        list(pair_rows(str(tmp_path / name)))
    text = str(error.value)
    assert text.startswith(str(tmp_path / name))
    assert "\n" not in text
    assert ";" in text
    if name in {"short.csv", "latin.csv"}:
        assert f"{name}:3: " in text
    if name in {"cut.jsonl", "number.json"}:
        assert f"{name}:2: " in text


def test_a_stream_of_answers_and_a_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="answers are read twice"):
        read_answers("-")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("one")
    with pytest.raises(UsageError, match=r"a.txt is a text, not a table"):
        list(pair_rows(str(tmp_path / "texts")))
    (tmp_path / "c.csv").write_text("id,cluster\na,1\nb,\n")
    with pytest.raises(DataError, match=r"c.csv:3: no cluster"):
        read_truth(str(tmp_path / "c.csv"), ["a", "b"])


def test_ids_of_requested_rows_come_from_all_batches(tmp_path: Path) -> None:
    ids = [f"id {n} " * (n % 5) for n in range(300)]
    rows = np.array([0, 63, 64, 99, 100, 101, 250, 299], np.uint32)
    with RowIds(300, str(tmp_path)) as some:
        some.want(rows[:5])
        some.want(rows[3:])
        some.fill(pa.array(ids[at : at + 100], pa.large_string()) for at in (0, 100, 200))
        assert some.take(rows[::-1]).to_pylist() == [ids[row] for row in rows[::-1]]


def test_answers_can_be_read_after_their_file_is_closed(tmp_path: Path) -> None:
    answers = Answers(str(tmp_path / "answers.jsonl"))
    answers.close()
    assert answers.by_pair == {}
