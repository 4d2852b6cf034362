"""Passages cut out: the text loses them, and everything else stays as it was."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import neardup as nd
from commands import Here, delimited, lines, read
from strategies import texts
from suite import examples, needs_jit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PASSAGES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 9)).map(lambda x: (x[0], sum(x))), min_size=1
)


@settings(max_examples=examples(100, 30))
@given(st.lists(texts(), min_size=1, max_size=4), st.data())
def test_documents_are_cut_or_dropped(documents: list[str], data: st.DataObject) -> None:
    documents = [naive.without_surrogates(text) for text in documents]
    rows = data.draw(st.lists(st.tuples(st.integers(0, len(documents) - 1), PASSAGES)))
    around, most = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    table = pa.table(
        {
            "document": pa.array([row for row, _ in rows], pa.int64()),
            "start": pa.array([own[0][0] for _, own in rows], pa.int64()),
            "end": pa.array([own[0][1] for _, own in rows], pa.int64()),
            "passages": pa.array([own[1:] for _, own in rows], pa.list_(pa.list_(pa.int64(), 2))),
        }
    )
    expected: list[str | None] = []
    for number, text in enumerate(documents):
        own = [passage for row, passages in rows if row == number for passage in passages]
        left, cuts = naive.cut(text, own, around)
        is_kept = not own or (left.strip() and cuts <= most)
        expected.append(left if is_kept else None)
    assert nd.cut_passages(documents, table, around, most).to_pylist() == expected


LEAK = "How many moons does the planet Mars have in all?"
FAR = f" \U0001f30d, und\n{' weiter weg' * 9} "
"""Enough words that passages on both sides are two."""
ROWS: list[dict[str, Any]] = [
    {"id": "a", "text": f"Größe: {LEAK.upper()}, sagt er.", "n": "1", "more": "x\ny"},
    {"id": "b", "text": 'Nothing of the kind, "not" at all, ever.', "n": "2", "more": "é中"},
    {"id": "c", "text": LEAK, "n": "3", "more": ""},
    {"id": "d", "text": f"{LEAK}{FAR}{LEAK} So.", "n": "4", "more": ","},
]
LEFT = ["Größe: , sagt er.", f"?{FAR}? So."]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Here:
    """Commands run in a folder with questions."""
    (tmp_path / "quiz.jsonl").write_bytes(lines([{"text": LEAK}]))
    return Here(tmp_path, monkeypatch, capfd)


def _write_arrow(path: Path) -> None:
    with pa.ipc.new_file(path, (table := pa.Table.from_pylist(ROWS)).schema) as file:
        file.write_table(table)


def _read_arrow(path: Path) -> list[dict[str, Any]]:
    with pa.ipc.open_file(path) as file:
        rows: list[dict[str, Any]] = file.read_all().to_pylist()
        return rows


FORMS: dict[str, tuple[Callable[[Path], object], Callable[[Path], list[dict[str, Any]]]]] = {
    "jsonl": (lambda path: path.write_bytes(lines(ROWS)), read),
    "json": (
        lambda path: path.write_text(json.dumps(ROWS)),
        lambda path: json.loads(path.read_text()),
    ),
    "csv": (lambda path: path.write_bytes(delimited(ROWS, ",")), read),
    "parquet": (lambda path: pq.write_table(pa.Table.from_pylist(ROWS), path), read),
    "arrow": (_write_arrow, _read_arrow),
}


@needs_jit
@pytest.mark.parametrize("form", FORMS)
def test_records_of_every_format_lose_the_passages_only(here: Here, form: str) -> None:
    make, rows_of = FORMS[form]
    make(here.folder / f"t.{form}")
    summary = here.summary(
        "decontaminate", f"t.{form}", "--against", "quiz.jsonl", "-o", f"c.{form}", "--cut", "0"
    )
    expected = [dict(ROWS[0], text=LEFT[0].replace(", sagt", "?, sagt")), ROWS[1], dict(ROWS[3])]
    expected[2]["text"] = LEFT[1]
    left = rows_of(here.folder / f"c.{form}")
    assert [x["id"] for x in left] == ["a", "b", "c", "d"]
    assert left[2]["text"] == "?"
    assert [left[0], left[1], left[3]] == expected
    assert (summary["cut"], summary["kept"], summary["dropped"]) == (3, 4, 0)
    summary = here.summary("decontaminate", f"t.{form}", "--against", "quiz.jsonl",
                           "-o", f"d.{form}", "--cut", "1", "--max-cuts", "1")  # fmt: skip
    assert [x["id"] for x in rows_of(here.folder / f"d.{form}")] == ["a", "b"]
    assert (summary["cut"], summary["kept"], summary["dropped"]) == (1, 2, 2)


@needs_jit
def test_every_other_byte_of_a_line_stays(here: Here) -> None:
    begin = b'{ "x":[1.50, 12345678901234567890] ,"meta": {"text" : "\\u00e9 a\\nb '
    data = (
        begin
        + LEAK.encode()
        + b' c\\u006e", "n":{}} , "title":"t"}\r\n{"meta":{"text":"b"}, "title":""}'
    )
    (here.folder / "t.jsonl").write_bytes(data)
    here("decontaminate", "t.jsonl", "--against", "quiz.jsonl", "--text", "meta.text",
         "--parts", "text", "-o", "c.jsonl", "--cut", "1")  # fmt: skip
    left = data.replace(b" " + LEAK.encode(), b"")
    assert (here.folder / "c.jsonl").read_bytes() == left


@needs_jit
@pytest.mark.parametrize("field", ["doc.body", "title"])
def test_nested_columns_and_dictionaries_are_cut(here: Here, field: str) -> None:
    texts = [f"one {LEAK} two", "three", None, f"four {LEAK} five"]
    table = pa.table(
        {
            "doc": pa.array([{"n": 1, "body": x} for x in texts]),
            "title": pa.array(texts).dictionary_encode(),
        }
    )
    pq.write_table(table, here.folder / "t.parquet")
    here("decontaminate", "t.parquet", "--against", "quiz.jsonl", "--text", field, "--parts",
         "text", "-o", "c.parquet", "--cut", "1", "--on-error", "skip")  # fmt: skip
    left = pq.read_table(here.folder / "c.parquet")
    assert left.schema == pq.read_schema(here.folder / "t.parquet")
    kept, new = [texts[0], texts[1], texts[3]], ["one two", "three", "four five"]
    bodies = new if field == "doc.body" else kept
    assert left["doc"].to_pylist() == [{"n": 1, "body": x} for x in bodies]
    assert left["title"].to_pylist() == (new if field == "title" else kept)


@needs_jit
def test_cut_and_dropped_documents_of_several_files(here: Here) -> None:
    for name, kinds in (("a", "dcnc"), ("b", "nddc"), ("c", "cdn")):
        texts = {"d": LEAK + FAR + LEAK, "c": f"one {LEAK} two", "n": "nothing of that kind"}
        rows = [{"id": f"{name}{at}", "text": texts[kind]} for at, kind in enumerate(kinds)]
        (here.folder / f"{name}.jsonl").write_bytes(lines(rows))
    command = "decontaminate a.jsonl b.jsonl c.jsonl --against quiz.jsonl --cut 1 --max-cuts 1 -o"
    for output, names in (("o.jsonl", "o.jsonl"), ("o/", "o/a.jsonl o/b.jsonl o/c.jsonl")):
        summary = here.summary(*command.split(), output)
        left = [row for name in names.split() for row in read(here.folder / name)]
        assert [x["id"] for x in left] == ["a1", "a2", "a3", "b0", "b3", "c0", "c2"]
        assert [x["text"][:7] for x in left] == ["one two", "nothing", "one two", "nothing",
                                                 "one two", "one two", "nothing"]  # fmt: skip
        assert (summary["cut"], summary["dropped"]) == (4, 4)
    cut = ("--cut", "1", "--max-cuts", "1", "-o", "p.jsonl", "--report", "page.html")
    here("decontaminate", "b.jsonl", "--against", "quiz.jsonl", *cut)
    (numbers,) = re.findall(r'id="summary">(.*?)</script>', (here.folder / "page.html").read_text())
    assert [json.loads(numbers)[x] for x in ("read", "kept", "cut", "dropped")] == [4, 1, 1, 2]


@needs_jit
def test_a_document_that_still_holds_a_question_is_dropped(here: Here) -> None:
    words = [f"w{at}" for at in range(24)]
    (here.folder / "quiz.jsonl").write_bytes(lines([{"text": " ".join(words)}]))
    parts = [*words[:8], *"abcdefghi", *words[8:16], *"jklmnopqr", *words[16:]]
    (here.folder / "t.jsonl").write_bytes(lines([{"text": " ".join(parts)}]))
    rule = ("decontaminate", "t.jsonl", "--against", "quiz.jsonl", "-o", "c.jsonl", "--cut", "0")
    assert here.summary(*rule, "--share", "0.8")["cut"] == 1
    assert here.summary(*rule, "--share", "0.5")["dropped"] == 1


@needs_jit
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--found f.csv --cut 3", "--cut requires documents to write: pass -o CLEAN"),
        ("-o c.jsonl --max-cuts 3", "--max-cuts requires --cut N"),
        ("-o c.jsonl --cut -1", "use a whole number from 0 up"),
        ("-o c.jsonl --cut 1 --extract all", "leave out --extract"),
        (
            "-o c.jsonl --cut 1 --text text,more --parts text",
            "takes passages out of one field",
        ),
        ("-o c.mbox --cut 1 --format mbox", "whose records are copied whole: --cut requires"),
    ],
)
def test_what_cannot_be_cut_is_refused(here: Here, options: str, message: str) -> None:
    (here.folder / "t.jsonl").write_bytes(lines(ROWS))
    _, err = here("decontaminate", "t.jsonl", "--against", "quiz.jsonl", *options.split(), code=2)
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("cuts", [10, 11])
def test_ten_cuts_are_made_where_no_number_is_given(cuts: int) -> None:
    document = "k" * (2 * cuts + 1)
    starts = [[2 * at + 1, 2 * at + 2] for at in range(cuts)]
    found = pa.table({"document": [0], "start": [1], "end": [2], "passages": [starts]})
    left = nd.cut_passages([document], found).to_pylist()
    assert left == (["k" * (cuts + 1)] if cuts == 10 else [None])
