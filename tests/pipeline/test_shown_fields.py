"""Fields beside the compared text, and the options of a run beside its table of duplicates."""

from __future__ import annotations

import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

import neardup as nd
from commands import Here, write
from neardup.documents import ReadOptions
from neardup.fingerprinting.recipe import Recipe
from neardup.pipeline.evidence.named_texts import fields_of
from neardup.pipeline.judgement.review_session import Review, ReviewOptions
from neardup.pipeline.run.kept_options import kept_inputs, kept_options, kept_rule
from suite import needs_jit

pytestmark = needs_jit

TEXT = "one two three four five six seven eight nine ten eleven twelve"
ROWS = [
    {"nr": "1", "note": TEXT, "Email": "a@b.org", "Date": "2024-01-01"},
    {"nr": "2", "note": TEXT + " thirteen", "Email": "a@b.org", "Date": "2024-02-01"},
    {"nr": "3", "note": "something else that nobody wrote before", "Email": "", "Date": ""},
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Here:
    """Commands run in a folder with a sheet and a run's table."""
    here = Here(tmp_path, monkeypatch, capfd)
    write(tmp_path / "sheet.csv", ROWS)
    here("dedup", "sheet.csv", "--text", "note", "--id", "nr", "--duplicates", "d.csv",
         "--similarity", "0.6")  # fmt: skip
    return here


def test_show_needs_no_option_of_the_run(here: Here) -> None:
    out, _ = here("show", "d.csv", "--fields", "Email,Date")
    assert "kept 1, dropped 2" in out
    assert "Email: a@b.org\n" in out
    assert "Date: [-2024-01-01-] {+2024-02-01+}\n" in out
    assert "{+thirteen+}" in out
    out, _ = here("show", "d.csv", "--fields", "Date", "--json")
    assert json.loads(out)["fields"] == {"Date": ["2024-01-01", "2024-02-01"]}


def test_a_field_that_is_not_there_is_one_line(here: Here) -> None:
    for command in (["show", "d.csv"], ["report", "d.csv"]):
        _, err = here(*command, "--fields", "Emial", code=2)
        line = "neardup: no record has the field 'Emial': they have nr, note, Email, Date\n"
        assert err.endswith(line)
    _, err = here("show", "d.csv", "--fields", "Email,", code=2)
    assert "--fields is 'Email,'" in err


def test_the_report_has_a_row_for_each_field(here: Here) -> None:
    here("report", "d.csv", "--fields", "Email,Date", "-o", "r.html")
    page = (here.folder / "r.html").read_text()
    assert re.search(r"<td><bdi>Email</bdi></td><td><bdi>a&#64;b.org</bdi></td>", page)
    assert "<td><del><bdi>2024-01-01</bdi></del></td><td><ins><bdi>2024-02-01</bdi></ins>" in page
    numbers = re.search(r'id="summary">(.*?)</script>', page)
    assert numbers is not None
    assert json.loads(numbers[1])["threshold"] == 0.6


def test_a_review_shows_them_too(here: Here) -> None:
    read, sheet = ReadOptions(("note",), "nr"), str(here.folder / "sheet.csv")
    judged = Review(
        "d.csv", [sheet], ReviewOptions("a.jsonl"), Recipe(), read, fields=["Date", "Email"]
    )
    pair = judged.pair(judged.following() or 0)
    judged.close()
    assert pair is not None
    assert pair.fields == (("Date", "2024-01-01", "2024-02-01"), ("Email", "a@b.org", "a@b.org"))


def test_show_reads_the_files_that_the_inputs_were_compared_with(here: Here) -> None:
    write(here.folder / "october.jsonl", [{"id": "o1", "text": "one two three four five"}])
    write(here.folder / "november.jsonl", [{"id": "n1", "text": "One two three four five!"}])
    here("dedup", "november.jsonl", "--id", "id", "--duplicates", "n.csv",
         "--against", "october.jsonl", "--only-against")  # fmt: skip
    out, _ = here("show", "n.csv")
    assert "kept o1, dropped n1\n[-one-]{+One+} two three four five{+!+}" in out
    assert kept_inputs("n.csv", kept_options("n.csv")) == ["november.jsonl"]
    Path("october.jsonl").unlink()
    assert (
        "the inputs do not contain o1: name the files" in here("show", "n.csv", "november.jsonl")[0]
    )


def test_inputs_that_are_patterns_or_in_archives_are_stored_too(here: Here) -> None:
    with zipfile.ZipFile(here.folder / "in.zip", "w") as archive:
        for year, note in (("2023", TEXT), ("2024", TEXT + " thirteen")):
            archive.writestr(f"{year}/n.jsonl", json.dumps({"nr": year, "note": note}))
    (here.folder / "sheet2.csv").write_bytes((here.folder / "sheet.csv").read_bytes())
    sheet = str(here.folder / "sheet.csv")
    for given, kept in (
        (["sheet?.csv"], ["sheet?.csv"]),
        (["in.zip/2023", "in.zip/2024"], ["in.zip/2023", "in.zip/2024"]),
        ([f"file://{sheet}"], [sheet]),
    ):
        here("dedup", *given, "--text", "note", "--id", "nr", "--duplicates", "p.csv")
        assert kept_inputs("p.csv", kept_options("p.csv")) == kept
        assert "{+thirteen+}" in here("show", "p.csv")[0]
    assert kept_inputs("p.csv", {"inputs": ["in.zip/2024", "sheet3.csv"]}) == []


def test_the_list_of_records_is_stored_too(here: Here) -> None:
    (here.folder / "in.json").write_text(json.dumps({"data": ROWS}))
    here("dedup", "in.json", "--records", "data", "--text", "note", "--id", "nr",
         "--duplicates", "j.csv")  # fmt: skip
    assert "{+thirteen+}" in here("show", "j.csv")[0]
    here("report", "j.csv", "-o", "j.html")


def test_a_report_of_a_run_with_answers(here: Here) -> None:
    write(here.folder / "answers.jsonl", [{"first": "1", "second": "3", "answer": "yes"}])
    here("dedup", "sheet.csv", "--text", "note", "--id", "nr", "--decisions", "answers.jsonl",
         "--duplicates", "a.csv")  # fmt: skip
    assert "3,1," in (here.folder / "a.csv").read_text()
    here("report", "a.csv", "-o", "a.html")
    result = nd.dedup(
        here.folder / "sheet.csv", text="note", id="nr", decisions=here.folder / "answers.jsonl"
    )
    result.report(here.folder / "a.html")


def test_show_of_one_document(here: Here) -> None:
    rows = [
        {"id": name, "text": text}
        for name, text in zip("abcd", ("x y z", "X Y Z", "p q r", "P q r"), strict=True)
    ]
    write(here.folder / "in.jsonl", rows)
    here("dedup", "in.jsonl", "--id", "id", "--duplicates", "p.parquet")
    for name, pair in (("a", "kept a, dropped b"), ("d", "kept c, dropped d")):
        out, _ = here("show", "p.parquet", "--of", name)
        assert "1 of 1 " in out
        assert pair in out
    assert here("show", "p.parquet", "--of", "e")[0] == "e is not in any pair\n"


def test_kept_options_belong_to_the_table_beside_them(here: Here) -> None:
    facts = kept_options("d.csv")
    assert facts["inputs"] == kept_inputs("d.csv", facts) == ["sheet.csv"]
    rule = kept_rule(facts)
    assert rule is not None
    assert (rule.similarity, rule.distance) == (0.6, None)
    assert facts["options"]["text"] == "note"
    own = Path("d.csv").read_bytes()
    Path("copy").mkdir()
    for name in ("d.csv", ".d.csv.options.json"):  # in an order, and with times, that say nothing
        Path("copy", name).write_bytes(Path(name).read_bytes())
        os.utime(f"copy/{name}", (0, 0) if name != "d.csv" else None)
    assert kept_options("copy/d.csv") == facts
    for other in (b"", own + b"\n", own.replace(b"1", b"3", 1)):
        Path("d.csv").write_bytes(other)
        os.utime("d.csv", (0, 0))  # as `mv` and `cp -p` of an older table do
        assert kept_options("d.csv") == {}
    _, err = here("show", "d.csv", code=2)
    assert "pass the inputs of the run as well" in err
    Path("d.csv").write_bytes(own)
    assert kept_options("d.csv") == facts
    Path(".d.csv.options.json").write_text("[1]")
    assert kept_options("d.csv") == {}
    here("dedup", "sheet.csv", "--text", "note", "--duplicates", "d.csv", "--distance", "40",
         "--verify", "0.5")  # fmt: skip
    rule = kept_rule(kept_options("d.csv"))
    assert rule is not None
    assert (rule.distance, rule.verify) == (40, 0.5)
    out, _ = here("show", "d.csv")
    assert "kept sheet.csv:2, dropped sheet.csv:3" in out


def test_values_of_all_kinds_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    rows = [{"a": {"b": 1.5}, "c": None}, {"a": {"b": True}, "c": ["x"], "d": {"e": "ü"}}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = {f"{path}:1", f"{path}:2"}
    fields = fields_of(names, ["a.b", "c", "d.e"], [str(path)], ReadOptions())
    assert fields == {f"{path}:1": ("1.5", None, None), f"{path}:2": ("true", '["x"]', "ü")}
