"""Runs of which no record, or less than half, is left; and what is advised for a bad record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import neardup as nd
from commands import Here

if TYPE_CHECKING:
    from pathlib import Path

DATES = [f"{1 + i % 28:02}.01.2024" for i in range(30)]
LEFT = "no record is left: 30 of 30 were rejected, and nothing is written"
COMMANDS = {
    "dedup": ("dedup", "in.csv", "-o", "out.csv", "--keep", "max:Tarih", "--duplicates", "d.csv"),
    "fingerprint": ("fingerprint", "in.jsonl", "-o", "f.parquet"),
    "query": ("index", "query", "i.index", "in.jsonl", "-o", "hits.csv"),
    "add": ("index", "add", "i.index", "in.jsonl"),
}


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    rows = "".join(f"{i},text number {i},{day}\n" for i, day in enumerate(DATES))
    (tmp_path / "in.csv").write_text(f"id,text,Tarih\n{rows}")
    (tmp_path / "in.jsonl").write_text('{"text": null}\n' * 30)
    return Here(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_of_which_no_record_is_left_fails_and_writes_nothing(name: str, here: Here) -> None:
    here("index", "create", "i.index", "--distance", "3")
    (here.folder / "out.csv").write_text("an earlier result\n")
    before = sorted(x.name for x in here.folder.iterdir())
    command = (*COMMANDS[name], "--on-error", "skip", "--rejects", "r.jsonl")
    out, err = here(*command, code=1)
    rest = "leave out --on-error skip to read why the first one was"
    assert (out, err) == ("", f"neardup: {LEFT}; {rest}\n")
    assert sorted(x.name for x in here.folder.iterdir()) == before
    assert (here.folder / "out.csv").read_text() == "an earlier result\n"


def test_calibration_of_which_no_record_is_left_fails_and_less_than_half_warns(here: Here) -> None:
    command = ("calibrate", "in.jsonl", "--on-error", "skip", "--report", "c.html")
    assert LEFT in here(*command, code=1)[1]
    assert not (here.folder / "c.html").exists()
    lines = ['{"text": "one two three"}'] * 2 + ['{"text": null}'] * 3
    (here.folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    assert "warning: 3 of 5 records were rejected" in "".join(here(*command))


def test_a_run_of_which_less_than_half_is_left_warns(here: Here) -> None:
    lines = ['{"text": "one two three"}'] * 2 + ['{"text": null}'] * 3
    (here.folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    words = "3 of 5 records were rejected: check that the options name the right fields"
    here("index", "create", "i.index", "--distance", "3")
    for name in ("fingerprint", "add", "query"):
        assert words in here(*COMMANDS[name], "--on-error", "skip")[1], name
    dedup = ("dedup", "in.jsonl", "-o", "out.jsonl", "--on-error", "skip")
    assert f"warning   {words}" in here(*dedup)[1]
    assert here.summary(*dedup)["warnings"] == [words]
    (here.folder / "in.jsonl").write_text("\n".join(lines[:4]) + "\n")
    assert "were rejected" not in here(*dedup)[1]
    (here.folder / "in.jsonl").write_text("")
    assert here.summary(*dedup)["read"] == 0


def test_documents_in_memory_of_which_none_is_left_are_an_error() -> None:
    with pytest.raises(nd.DataError, match=r"row 0: text is null \(2 of 2 .*name another column"):
        nd.dedup([None, None], on_error="skip")
    with pytest.raises(nd.DataError, match="name another column"):
        nd.similar_pairs([None], on_error="skip")
    table = pa.table({"text": ["a b", "c", "d"], "id": pa.array([1, None, None])})
    with pytest.warns(nd.errors.DoubtfulResultWarning, match="2 of 3 records were rejected"):
        assert nd.dedup(table, id="id", on_error="skip").kept.tolist() == [True, False, False]


def test_files_of_which_no_record_is_left_are_an_error_in_python(here: Here) -> None:
    with pytest.raises(nd.DataError, match=LEFT):
        nd.dedup(here.folder / "in.jsonl", on_error="skip")


@pytest.mark.parametrize(
    ("value", "options", "advice"),
    [
        ("2024-01-02", {"keep": "max:at"}, "--keep max: and min: compare numbers: name a FIELD"),
        (True, {"keep": "min:at"}, "--keep max: and min: compare numbers: name a FIELD"),
        (1.5, {"id": "at"}, "fix the line or pass --id FIELD"),
        ([1], {"within": "at"}, "fix the line or pass --within FIELD"),
        (17, {"text": "at"}, "fix the line or pass --text FIELD"),
        ([17], {"text": "at"}, "fix the line or pass --text FIELD"),
    ],
)
def test_to_skip_is_not_advised_where_a_field_has_another_type(
    value: Any, options: dict[str, str], advice: str, tmp_path: Path
) -> None:
    record = json.dumps({"text": "a b c", "at": value})
    for name, data in (("in.jsonl", record), ("in.json", f"[{record}]")):
        (tmp_path / name).write_text(f"{data}\n")
        with pytest.raises(nd.DataError, match=r"at is ") as caught:
            nd.dedup(tmp_path / name, **options)
        assert advice in str(caught.value)
        assert "--on-error" not in str(caught.value)


@pytest.mark.parametrize("cell", ["01.01.2024", "2024-01-01", "0.0.0", "x", "nan"])
def test_to_skip_is_not_advised_for_a_cell_that_is_no_number(cell: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(f'text,at\na b,1\nc d,"{cell}"\n')
    with pytest.raises(nd.DataError, match=f'in.csv:3: at is "{cell}", not a number; --keep') as e:
        nd.dedup(tmp_path / "in.csv", keep="max:at")
    assert "--on-error" not in str(e.value)


def test_to_skip_is_advised_for_a_missing_value(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"text": null}\n')
    with pytest.raises(nd.DataError, match=r"text is null, not a string; .* pass --on-error skip"):
        nd.dedup(tmp_path / "in.jsonl")


@pytest.mark.parametrize("call", [nd.dedup, nd.fingerprints, nd.similar_pairs])
def test_a_set_of_documents_is_refused(call: Any) -> None:
    for texts in ({"a b c", "d"}, frozenset(["a"]), set[str]()):
        with pytest.raises(nd.UsageError, match=r"a set, whose order .*: pass sorted\(texts\)"):
            call(texts)
    assert len(nd.fingerprints(dict.fromkeys(["a", "b"]).keys())) == 2
