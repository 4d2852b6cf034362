"""Files beside the inputs that somebody else wrote: one line each, which steers no terminal."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from commands import Here
from neardup.errors import MOST_CHARACTERS

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "a\x1b[2Jb\u202ec\nneardup: all is well\x07\x9b31m\u2066"
LONG = "y" * (1 << 20)


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    records = [{"id": f"d{i}", "text": f"one two three four five {i // 2}"} for i in range(6)]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "in.jsonl").write_text(lines)
    return Here(tmp_path, monkeypatch, capsys)


def one_line(outputs: tuple[str, str]) -> str:
    """The line of an error, after checks of its length and characters."""
    out, err = outputs
    assert out == ""
    assert err.count("\n") == 1, err[:3000]
    line = err.removesuffix("\n")
    assert line.startswith("neardup: ")
    assert line.isprintable(), repr(line)
    assert len(line) < 2 * MOST_CHARACTERS, line
    return line


TABLES: dict[str, tuple[bytes, int]] = {
    "empty.csv": (b"", 1),
    "zeros.csv": (bytes(5000), 1),
    "evil.csv": (f'"{EVIL}","{EVIL}"\n"{EVIL}","{EVIL}"\n'.encode(), 1),
    "ragged.csv": (b"id1,id2,label\nd0\nd1,d2,1,2,3\n", 1),
    "long.csv": (f"id1,id2,label\nd0,d1,{LONG}\n".encode(), 1),
    "label.csv": (f'id1,id2,label\nd0,d1,"{EVIL}"\n'.encode(), 1),
    "quote.csv": (b'id1,id2\n"d0,d1\n', 1),
    "latin.csv": ("id1,id2\n\u00e9,d1\n".encode("latin-1"), 1),
    "broken.jsonl": (b'{"id1": "d0", "id2"', 1),
    "evil.jsonl": (json.dumps([EVIL]).encode() + b"\n", 1),
    "number.jsonl": (b"17\n", 1),
    "deep.jsonl": (b"[" * 100_000 + b"\n", 1),
    "none.parquet": (b"PAR1" + bytes(100) + b"PAR1", 1),
    "none.xyz": (b"a,b\n", 1),
    "none.csv.gz": (b"no gzip", 1),
    "lists.jsonl": (b'{"id1": ["d0"], "id2": {}, "label": []}\n', 1),
    "word.jsonl": (
        b'{"first": "d0", "second": "d1", "answer": "yes", "label": 1, "similarity": "x"}\n',
        1,
    ),
    "nested.jsonl": (
        b'{"first": "d0", "second": "d1", "answer": "yes", "label": 1, "similarity": [1]}\n',
        1,
    ),
    "large.jsonl": (b'{"id1": "d0", "id2": "d1", "similarity": 1e999}\n', 1),
    "more.csv": (b"a,c\n1,2,3\n", 1),
}


@pytest.mark.parametrize("name", TABLES)
def test_labels_and_pairs_of_strangers_are_one_line(name: str, here: Here) -> None:
    data, code = TABLES[name]
    (here.folder / name).write_bytes(data)
    one_line(here("evaluate", "--docs", "in.jsonl", "--labels", name, code=code))
    one_line(here("review", name, "in.jsonl", "--id", "id", "--no-open", code=code))
    if name in {"empty.csv", "zeros.csv"}:
        return  # there are no answers yet
    options = ("in.jsonl", "--id", "id")
    one_line(here("dedup", *options, "-o", "o.jsonl", "--decisions", name, code=code))
    (here.folder / "p.csv").write_text("id1,id2\nd0,d1\n")
    one_line(here("review", "p.csv", *options, "--answers", name, "--no-open", code=code))
    assert (here.folder / name).read_bytes() == data


def test_labels_and_pairs_of_unknown_ids_are_one_line(here: Here) -> None:
    (here.folder / "p.csv").write_text(f'id1,id2\n"{EVIL}","{EVIL}2"\n')
    one_line(here("evaluate", "--docs", "in.jsonl", "--labels", "p.csv", code=2))
    one_line(here("review", "p.csv", "in.jsonl", "--id", "id", "--no-open", code=2))
    pq.write_table(pa.table({"left": [2**62], "right": [-1]}), here.folder / "p.parquet")
    one_line(here("review", "p.parquet", "in.jsonl", "--id", "id", "--no-open", code=2))


@pytest.mark.parametrize("name", ["hash", "tokens", "normalize", "preset", "bits", EVIL])
def test_a_recipe_with_a_value_of_a_megabyte_is_one_short_line(name: str, here: Here) -> None:
    recipe = json.loads(nd.Recipe().to_json())
    for value in (LONG, EVIL, [LONG] * 2, {LONG: EVIL}, 10**4000):
        text = json.dumps(recipe | {name: value})
        (here.folder / "r.json").write_text(text)
        options = ("dedup", "in.jsonl", "-o", "o.jsonl", "--recipe", "r.json")
        one_line(here(*options, code=2))


def test_ids_and_numbers_of_an_index_are_taken_as_they_are(here: Here) -> None:
    (here.folder / "evil.jsonl").write_text(json.dumps({"id": EVIL, "text": "one two three four"}))
    here("index", "create", "s.index")
    here("index", "add", "s.index", "evil.jsonl", "in.jsonl", "--id", "id")
    nearest = ("index", "nearest", "s.index")
    out, _ = here(*nearest, "--id", EVIL, "-n", "9223372036854775807")
    assert all(line.isprintable() for line in out.splitlines())
    one_line(here(*nearest, "--id", f"{EVIL}2", code=1))
    one_line(here(*nearest, "--id", LONG[: 1 << 16], code=1))
    for count in ("0", "-1", "1e9", "x"):
        one_line(here(*nearest, "--id", EVIL, "-n", count, code=2))
    here(*nearest, "--id", EVIL, "-n", "9" * 30)
    options = ("--id-field", "id", "-n", "4294967296", "-o", "hits.csv", "--json")
    assert json.loads(here(*nearest, "in.jsonl", *options)[0])["hits"] >= 36


@pytest.mark.parametrize("kind", ["s3://bucket/x.index", "file:///x"])
def test_an_address_is_no_folder_of_an_index(kind: str, here: Here) -> None:
    options = ("dedup", "in.jsonl", "-o", "o.jsonl", "--id", "id")
    for more in ((), ("--update",)):
        assert "an index is a folder" in one_line(here(*options, "--against", kind, *more, code=2))
    assert "an index is a folder" in one_line(here("index", "create", kind, code=2))
    assert here.files() == ["in.jsonl"]


def test_fields_and_names_of_strangers_are_one_line(here: Here) -> None:
    for name in ("calibrate", "dedup"):
        more = () if name == "calibrate" else ("-o", "o.jsonl")
        one_line(here(name, "in.jsonl", *more, "--text", EVIL, code=1))
        one_line(here(name, "in.jsonl", *more, "--text", LONG[: 1 << 16], code=1))
    record = {f"{EVIL}{i}": EVIL for i in range(3000)} | {LONG: 1}
    (here.folder / "many.jsonl").write_text(json.dumps(record))
    one_line(here("dedup", "many.jsonl", "-o", "o.jsonl", code=1))
    pq.write_table(pa.table({key: ["x"] for key in record}), here.folder / "many.parquet")
    one_line(here("dedup", "many.parquet", "-o", "o.parquet", code=1))
    (here.folder / "many.csv").write_text(",".join(f'"{key}"' for key in record) + "\n" + "1" * 9)
    one_line(here("dedup", "many.csv", "-o", "o.csv", code=1))


def test_names_in_an_archive_lead_nowhere(here: Here) -> None:
    with zipfile.ZipFile(here.folder / "in.zip", "w") as packed:
        for name in ("../../evil.jsonl", "/etc/evil.jsonl", f"{EVIL}.jsonl", "C:\\evil.jsonl"):
            packed.writestr(name, '{"text": "one two three"}\n')
    before = {*here.files()}
    line = one_line(here("dedup", "in.zip", "-o", "out/", code=1))
    assert 'in.zip: its entry "../../evil.jsonl" leads out of the archive' in line
    assert {*here.files()} == before


def test_every_command_that_reads_documents_limits_them_by_memory(here: Here) -> None:
    here("dedup", "in.jsonl", "-o", "o.jsonl", "--id", "id", "--duplicates", "d.jsonl")
    long = {"id": "d0", "text": "x" * (17 << 20)}
    (here.folder / "long.jsonl").write_text(json.dumps(long) + "\n")
    here("index", "create", "s.index")
    for command in (
        ("fingerprint", "long.jsonl", "-o", "f.parquet"),
        ("idf", "learn", "long.jsonl", "-o", "w.idf"),
        ("index", "add", "s.index", "long.jsonl"),
        ("index", "query", "s.index", "long.jsonl", "-o", "h.csv"),
        ("index", "nearest", "s.index", "long.jsonl", "-o", "h.csv"),
        ("dedup", "long.jsonl", "-o", "l.jsonl"),
        ("calibrate", "long.jsonl"),
    ):
        line = one_line(here(*command, "--memory", "64M", code=1))
        assert "long.jsonl:1: " in line, line
        one_line(here(*command, "--memory", "1M", code=2))
    for command in (
        ("show", "d.jsonl", "long.jsonl", "--id", "id"),
        ("review", "d.jsonl", "long.jsonl", "--id", "id", "--no-open"),
    ):  # which pass over bad records
        assert "such as 'd0'" in one_line(here(*command, "--memory", "64M", code=2))
