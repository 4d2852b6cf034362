"""Nothing that somebody else wrote steers the terminal or makes a line of its own."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from commands import Here
from neardup.runtime.progress import shown

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "a\x1b[2Jb\u202ec\nneardup: all is well\x07\x9b31m\u2066"


@given(st.text())
def test_what_is_shown_is_printable_and_plain_text_stays(text: str) -> None:
    assert shown(text).isprintable()
    assert all(line.isprintable() for line in shown(text, lines=True).split("\n"))
    if text.isprintable():
        assert shown(text) == text


def clean(*outputs: str) -> None:
    for output in outputs:
        assert all(line.isprintable() for line in output.split("\n")), repr(output)
        assert not any(line.startswith("neardup: all is well") for line in output.split("\n"))


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    return Here(tmp_path, monkeypatch, capsys)


def test_ids_names_and_texts_are_shown_escaped(here: Here) -> None:
    records = [{"id": f"{EVIL}{i}", "text": f"one two three four {EVIL}"} for i in range(2)]
    name = f"in{EVIL.replace('/', '')}.jsonl"
    (here.folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    clean(*here("dedup", name, "-o", f"out{EVIL}.jsonl", "--id", "id", "--duplicates", "d.jsonl"))
    clean(*here("show", "d.jsonl", name, "--id", "id"))
    clean(*here("dedup", name, "-o", "x.jsonl", "--text", EVIL, code=1))
    clean(*here("dedup", f"no{EVIL}", "-o", "x.jsonl", code=3))
    clean(*here("dedup", name, "-o", f"no{EVIL}/x.jsonl", code=3))
    folder = f"index{EVIL}"
    clean(*here("index", "create", folder, "--distance", "3"))
    clean(*here("index", "add", folder, name, "--id", "id"))
    clean(*here("index", "query", folder, "--query-text", records[0]["text"]))
    clean(*here("index", "check", folder))
    clean(*here("index", "remove", folder, f"none{EVIL}", code=1))
    (here.folder / "t.txt").write_text(EVIL)
    clean(*here("explain", "t.txt"))


def test_what_newer_commands_show_is_escaped(here: Here) -> None:
    text = f"one two three four {EVIL}"
    records = [{"id": f"{EVIL}{i}", "text": f"{text} {'x' * (i > 1)}"} for i in range(4)]
    name, folder = f"in{EVIL}.jsonl", f"similar{EVIL}.index"
    (here.folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    clean(
        *here(
            "dedup",
            name,
            "-o",
            "a.jsonl",
            "--id",
            "id",
            "--duplicates",
            "c.csv",
            "--report",
            f"page{EVIL}.html",
        )
    )
    clean(*here("report", "c.csv", name, "-o", f"again{EVIL}.html", "--id", "id"))
    clean(*here("calibrate", name))
    clean(*here("compare", f"{name}:1", f"{name}:3"))
    clean(*here("compare", f"{name}:1", f"{name}:77", code=1))
    clean(*here("fingerprint", name, "-o", f"f{EVIL}.parquet", "--id", "id"))
    clean(*here("pairs", f"f{EVIL}.parquet", "-o", f"pairs{EVIL}.csv"))
    clean(
        *here("pairs", f"f{EVIL}.parquet", "--against", f"no{EVIL}.parquet", "-o", "x.csv", code=3)
    )
    clean(*here("show", f"pairs{EVIL}.csv", name, "--id", "id", code=1))
    clean(*here("index", "create", folder, "--similarity", "0.8"))
    clean(*here("index", "add", folder, name, "--id", "id"))
    clean(*here("index", "query", folder, "--query-text", text))
    clean(*here("index", "query", folder, "--query-text", text, "--distance", "1", code=2))
    for command in ("stats", "check", "compact"):
        clean(*here("index", command, folder))
    clean(*here("index", "backup", folder, f"copy{EVIL}"))
    clean(*here("index", "create", f"copy{EVIL}", "--distance", "3", code=3))
    clean(*here("dedup", name, "-o", "b.jsonl", "--against", folder, "--id", "id"))


@pytest.mark.parametrize("safe", [False, True])
def test_tables_of_other_commands_are_safe_on_request(safe: bool, here: Here) -> None:
    records = [{"id": f"={i}", "text": "one two three four"} for i in range(2)]
    (here.folder / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    option = ["--csv-safe"] if safe else []
    here("fingerprint", "in.jsonl", "-o", "f.parquet", "--id", "id")
    here("pairs", "f.parquet", "-o", "pairs.csv", *option)
    here("pairs", "f.parquet", "--clusters", "clusters.csv", *option)
    here("pairs", "f.parquet", "--against", "f.parquet", "-o", "new.csv", *option)
    for kind in ("distance=3", "similarity=0.8"):
        here("index", "create", f"{kind}.index", f"--{kind}")
        here("index", "add", f"{kind}.index", "in.jsonl", "--id", "id")
        here(
            "index",
            "query",
            f"{kind}.index",
            "in.jsonl",
            "-o",
            f"{kind}.csv",
            "--id",
            "id",
            *option,
        )
    for path in here.folder.glob("*.csv"):
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row if "=" in cell]
        assert cells, path
        assert all(cell.startswith("'=") is safe for cell in cells), path


def test_cells_are_safe_for_spreadsheets_on_request(tmp_path: Path) -> None:
    names = ["=1+1", "+a", "-b", "@c", "\td", "\re", "plain", "'=quoted"]
    path, out = tmp_path / "in.jsonl", tmp_path / "clusters.csv"
    records = [{"id": name, "text": f"{name} {i}"} for i, name in enumerate(names)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    for safe in (False, True):
        nd.dedup(path, clusters=out, id="id", csv_safe=safe)
        with out.open(newline="") as file:
            rows = [row["id"] for row in csv.DictReader(file)]
        assert rows == [f"'{x}" if safe and x[0] in "=+-@\t\r" else x for x in names]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\n"])
def test_a_line_end_in_a_name_is_shown_as_one(end: str, here: Here) -> None:
    shown_end = ascii(end)[1:-1]
    (here.folder / "docs").mkdir()
    name = f"docs/a{end}b.txt"
    (here.folder / name).write_bytes(b"\xff\xff")
    plain = f"docs/a{shown_end}b.txt"
    out, err = here("dedup", "docs", "-o", "out/", code=1)
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"neardup: {plain}:1: not UTF-8")
    out, err = here("dedup", f"no{end}ne.jsonl", "-o", "out/", code=3)
    assert err == f"neardup: cannot read no{shown_end}ne.jsonl: No such file or directory\n"
    lines = f"in{end}.jsonl"
    (here.folder / lines).write_text('{"text": "one two three four"}\n' * 3)
    _, err = here("dedup", lines, "-o", f"o{end}.jsonl", "--duplicates", "d.jsonl")
    assert f"wrote     o{shown_end}.jsonl\n" in err
    out, _ = here("show", "d.jsonl", lines)
    assert f"kept in{shown_end}.jsonl:1, dropped in{shown_end}.jsonl:2\n" in out
    _, err = here("dedup", lines, "-o", f"o{end}.jsonl")
    assert f"note      o{shown_end}.jsonl was replaced\n" in err
    clean(*here("dedup", lines, "--dry-run"))
