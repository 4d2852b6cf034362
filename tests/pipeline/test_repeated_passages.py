"""`neardup lines` against the oracle: what many documents have goes, and no other byte changes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from commands import Here, read, write
from neardup.documents import ReadOptions
from neardup.documents.batch import InputFormat
from neardup.documents.sheets import workbook
from neardup.errors import UsageError
from neardup.pipeline import Limits, LineOutputs, Repeated, lines_files
from neardup.pipeline.repeated_units import RepeatedUnits
from neardup.runtime.storage.radix_spool import RadixSpool
from suite import EXAMPLES, needs_jit

if TYPE_CHECKING:
    from pathlib import Path

BREAKS = ["\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\f", "\n\f", "\v", "\x85", "\u2028", "\u2029"]
UNITS = [
    'Cookie notice: we use "cookies".',
    'cookie  notice: WE use "cookies".',
    "one, two",
    'a "" b',
    "Straße",
    "STRASSE",
    "你好世界",
    "\\u0041 \\n",
    "  indented  line",
    "😀 smile",
]
TEXTS = st.lists(st.sampled_from(BREAKS + UNITS), max_size=14).map("".join)
CASES = st.lists(TEXTS, min_size=1, max_size=6)
RULES = st.builds(
    Repeated,
    unit=st.sampled_from(["paragraph", "line"]),
    seen_in=st.integers(2, 3),
    min_words=st.integers(1, 3),
    keep=st.sampled_from(["first", "none"]),
)


def expected(texts: list[str], rule: Repeated) -> tuple[list[str], list[tuple[Any, ...]]]:
    """What the oracle leaves, and its table."""
    left, table = naive.without_repeated(texts, rule.unit, rule.seen_in, rule.keep, rule.min_words)
    return left, sorted(table, key=lambda row: (row[1], row[0]))


def ran(folder: Path, name: str, rule: Repeated, **options: Any) -> tuple[Path, list[Any]]:
    """The output of a file, and the table of what was cut."""
    out, cut = folder / f"out-{name}", folder / "cut.jsonl"
    format_name = options.pop("format", None)
    lines_files(
        [str(folder / name)],
        LineOutputs(str(out), str(cut)),
        rule,
        ReadOptions(input_format=InputFormat(**(format_name or {})), **options),
        Limits(workers=2),
    )
    rows = [json.loads(line) for line in cut.read_bytes().splitlines()]
    table = [
        (x["text"], int(x["first"].rpartition(":")[2]) - 1, x["documents"], x["cuts"], x["bytes"])
        for x in rows
    ]
    return out, sorted(table, key=lambda row: (row[1], row[0]))


@settings(max_examples=2 * EXAMPLES)
@given(CASES, RULES, st.booleans())
def test_json_lines_are_left_as_the_oracle_leaves_them(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], rule: Repeated, escapes: bool
) -> None:
    folder = tmp_path_factory.mktemp("case")
    records = [
        json.dumps({"n": n, "text": text, "more": [text]}, ensure_ascii=escapes)
        for n, text in enumerate(texts)
    ]
    (folder / "in.jsonl").write_text("\n".join(records), "utf-8", newline="")
    out, table = ran(folder, "in.jsonl", rule)
    left, cut = expected(texts, rule)
    target = [
        json.dumps({"n": n, "text": text, "more": [texts[n]]}, ensure_ascii=escapes)
        for n, text in enumerate(left)
    ]
    assert out.read_bytes().decode() == "\n".join(target)
    assert table == cut


@settings(max_examples=EXAMPLES)
@given(CASES, RULES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_cells_are_left_as_the_oracle_leaves_them(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    rule: Repeated,
    end: str,
    alone: bool,
) -> None:
    folder = tmp_path_factory.mktemp("case")
    texts = [text or "x" for text in texts]
    names = ["text"] if alone else ["n", "text", "more"]

    def table(values: list[str]) -> list[list[str]]:
        return [[x] if alone else [str(n), x, f"a,{texts[n]}"] for n, x in enumerate(values)]

    file = io.StringIO(newline="")
    # Python writes \r without quotes where it does not end lines, and does not read it again.
    quoting = csv.QUOTE_ALL if "\r" in "".join(texts) else csv.QUOTE_MINIMAL
    csv.writer(file, lineterminator=end, quoting=quoting).writerows([names, *table(texts)])
    (folder / "in.csv").write_bytes(file.getvalue().encode())
    out, _ = ran(folder, "in.csv", rule, format={"delimiter": ","})
    rows = list(csv.reader(io.StringIO(out.read_bytes().decode(), newline="")))
    left, _ = expected(texts, rule)
    assert rows == [names, *table(left)]


@settings(max_examples=EXAMPLES // 2)
@given(CASES, RULES, st.sampled_from(["string", "large_string", "binary", "dictionary", "struct"]))
def test_columns_are_left_as_the_oracle_leaves_them(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], rule: Repeated, kind: str
) -> None:
    folder = tmp_path_factory.mktemp("case")
    column = pa.array(texts)
    if kind == "dictionary":
        column = column.dictionary_encode()
    elif kind == "struct":
        column = pa.StructArray.from_arrays([column, pa.array(texts)], ["body", "other"])
    else:
        column = column.cast(getattr(pa, kind)())
    table = pa.table({"n": range(len(texts)), "text": column, "more": texts})
    pq.write_table(table, folder / "in.parquet")
    out, _ = ran(folder, "in.parquet", rule, text=("text.body" if kind == "struct" else "text",))
    result, (left, _) = pq.read_table(out), expected(texts, rule)
    assert result.schema.equals(pq.read_table(folder / "in.parquet").schema, check_metadata=True)
    values = result["text"].to_pylist()
    if kind == "struct":
        assert [x["other"] for x in values] == texts
        values = [x["body"] for x in values]
    assert [x.decode() if isinstance(x, bytes) else x for x in values] == left
    assert result.select(["n", "more"]).equals(table.select(["n", "more"]))


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 3), st.integers(1, 9)),
        max_size=40,
    ),
    st.integers(2, 3),
    st.booleans(),
)
def test_groups_are_the_same_in_however_small_pieces(
    units: list[tuple[int, int, int, int]], seen_in: int, first: bool
) -> None:
    documents = sorted(each[2] for each in units)
    rows = np.array(
        [
            [low << 62 | low, high, document, number, nbytes]
            for number, ((low, high, _, nbytes), document) in enumerate(
                zip(units, documents, strict=True)
            )
        ],
        np.uint64,
    ).reshape(-1, 5)
    result = []
    for memory in (1 << 30, 16 * 80, 16):
        repeated = RepeatedUnits(seen_in, keeps_first=first, memory=memory, tmp=None)
        for row in range(len(rows)):
            repeated.add(rows[row : row + 1])
        cuts = repeated.cuts(4)
        parts = [piece for part in cuts.parts() for piece in part()]
        every = np.concatenate([np.empty((0, 6), np.uint64), *parts])
        result.append((sorted(map(tuple, every.tolist())), repeated.repeated, repeated.cut))
        repeated.close()
        cuts.close()
    assert result[0] == result[1] == result[2]


@given(st.lists(st.integers(0, 99), max_size=60), st.sampled_from([8, 64, 1 << 20]))
def test_a_spool_gives_back_what_it_took_by_its_first_bits(values: list[int], memory: int) -> None:
    spool = RadixSpool(2, 0, memory, bits=7)
    for place, value in enumerate(values):
        spool.append(np.array([[value, place]], np.uint64))
    parts = [np.concatenate(list(part())).tolist() for part in spool.parts()]
    spool.close()
    together = [tuple(row) for part in parts for row in part]
    assert sorted(together) == sorted((value, place) for place, value in enumerate(values))
    for part in parts:
        places = {value: [p for v, p in part if v == value] for value, _ in part}
        assert all(each == sorted(each) for each in places.values())
    if len(parts) > 1:
        assert all(max(a)[0] < min(b)[0] for a, b in pairwise(parts))


NOTICE = "We use cookies to improve your experience here."
PAGES = [f"Page {n} has a text of its own.\n\n{NOTICE}\n\nThe end of page {n}.\n" for n in range(9)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Here:
    """Commands run in a folder with pages."""
    lines = [json.dumps({"id": f"p{n}", "text": text}) + "\n" for n, text in enumerate(PAGES)]
    (tmp_path / "in.jsonl").write_text("".join(lines), "utf-8")
    return Here(tmp_path, monkeypatch, capfd)


@needs_jit
def test_what_was_cut_is_told(here: Here) -> None:
    summary = here.summary("lines", "in.jsonl", "-o", "out.jsonl", "--cut", "cut.csv", "--id", "id")
    (row,) = read(here.folder / "cut.csv")
    assert row == {"text": NOTICE, "documents": "9", "first": "p0", "cuts": "8",
                   "bytes": str(8 * len(NOTICE))}  # fmt: skip
    counts = [summary[x] for x in ("documents", "changed", "emptied", "units", "repeated", "cut")]
    assert counts == [9, 8, 0, 27, 1, 8]
    texts = [each["text"] for each in read(here.folder / "out.jsonl")]
    assert texts[0] == PAGES[0]
    assert texts[1:] == [page.replace(f"{NOTICE}\n\n", "") for page in PAGES[1:]]


@needs_jit
def test_cores_and_memory_change_no_byte(here: Here) -> None:
    base = ("lines", "in.jsonl", "--unit", "line", "--seen-in", "2", "--min-words", "1")
    here(*base, "-o", "a.jsonl", "--cut", "a.csv", "--workers", "1")
    here(*base, "-o", "b.jsonl", "--cut", "b.csv", "--workers", "3", "--memory", "64M")
    for name in ("jsonl", "csv"):
        assert (here.folder / f"a.{name}").read_bytes() == (here.folder / f"b.{name}").read_bytes()


@needs_jit
def test_files_keep_their_encoding_and_compression(here: Here) -> None:
    folder = here.folder / "texts"
    folder.mkdir()
    texts = {f"{n}.txt": f"Über {n}\r\n{NOTICE} größer\r\n" for n in range(4)}
    for n, (name, text) in enumerate(texts.items()):
        (folder / name).write_bytes(text.encode(["utf-8", "utf-8-sig", "utf-16", "utf-8"][n]))
    (folder / "5.txt.gz").write_bytes(gzip.compress(texts["3.txt"].encode(), mtime=0))
    here("lines", "texts", "-o", "out/", "--unit", "line", "--keep", "none", "--seen-in", "5")
    for n, (name, text) in enumerate(texts.items()):
        encoding = ["utf-8", "utf-8-sig", "utf-16", "utf-8"][n]
        expected = text.partition("\r\n")[0]
        assert (here.folder / "out" / name).read_bytes() == (expected + "\r\n").encode(encoding)
    packed = (here.folder / "out/5.txt.gz").read_bytes()
    assert gzip.decompress(packed).decode() == "Über 3\r\n"


@needs_jit
def test_other_encodings_arrays_and_sheets(here: Here) -> None:
    records = [{"id": n, "text": f"größer {n}\n{NOTICE}\n"} for n in range(5)]
    text = "id;text\r\n" + "".join(f'{x["id"]};"{x["text"]}"\r\n' for x in records)
    (here.folder / "in.csv").write_bytes(text.encode("cp1252"))
    (here.folder / "in.json").write_text(json.dumps(records, indent=1, ensure_ascii=False))
    options = ("--unit", "line", "--keep", "none")
    here("lines", "in.csv", "-o", "out.csv", "--encoding", "cp1252", *options)
    expected = text.replace(f"{NOTICE}\n", "").replace('\n"', '\n"').encode("cp1252")
    assert (here.folder / "out.csv").read_bytes() == expected
    here("lines", "in.json", "-o", "out.json", *options)
    left = [{**x, "text": str(x["text"]).replace(f"{NOTICE}\n", "")} for x in records]
    assert (here.folder / "out.json").read_text() == json.dumps(left, indent=1, ensure_ascii=False)


@needs_jit
def test_inputs_are_counted_together_and_bad_records_are_left_out(here: Here) -> None:
    for number, name in enumerate(("a.jsonl", "b.jsonl", "c.jsonl")):
        rows = [json.dumps({"text": f"{name} {n}\n{NOTICE}"}) for n in range(2)]
        rows.insert(number, "{" if number else "")
        (here.folder / name).write_text("\n".join(rows))
    options = ("--unit", "line", "--on-error", "skip", "--cut", "cut.jsonl")
    names = ("a.jsonl", "b.jsonl", "c.jsonl")
    summary = here.summary("lines", *names, "-o", "all.jsonl", *options)
    texts = [x["text"] for x in read(here.folder / "all.jsonl")]
    first, *others = [f"{name} {n}" for name in names for n in (0, 1)]
    assert texts == [f"{first}\n{NOTICE}", *others]
    assert (summary["documents"], summary["rejected"], summary["changed"]) == (6, 2, 5)
    here("lines", *names, "-o", "each/", *options)
    joined = b"".join(
        (here.folder / "each" / name).read_bytes().rstrip(b"\n") + b"\n" for name in names
    )
    assert joined == (here.folder / "all.jsonl").read_bytes().rstrip(b"\n") + b"\n"


@needs_jit
def test_a_sheet_loses_what_goes_of_its_cells(here: Here) -> None:
    rows = [["nr", "text"], *([n, f"größer {n}\n{NOTICE}"] for n in range(5))]
    (here.folder / "in.xlsx").write_bytes(workbook("in.xlsx", rows[0], rows[1:]))
    here("lines", "in.xlsx", "-o", "out.csv", "--unit", "line", "--keep", "none")
    assert [x["text"] for x in read(here.folder / "out.csv")] == [f"größer {n}" for n in range(5)]


@needs_jit
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--unit", "sentence"), "unit is 'sentence': use one of paragraph, line"),
        (("--seen-in", "1"), "use a whole number from 2 up"),
        (("--keep", "last"), "keep is 'last': use one of first, none"),
        (("--text", "id,text"), "passages are cut out of one field; name one"),
        (("--text", "tags"), "in.jsonl:1: "),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    here: Here, options: tuple[str, ...], message: str
) -> None:
    code = 1 if options[1] == "tags" else 2
    _, err = here("lines", "in.jsonl", "-o", "out.jsonl", *options, code=code)
    assert message in err
    assert err.count("\n") == 1
    assert not (here.folder / "out.jsonl").exists()


@pytest.mark.parametrize("end", ["jsonl", "parquet"])
def test_a_list_of_texts_is_refused_where_it_would_be_cut(here: Here, end: str) -> None:
    write(here.folder / f"lists.{end}", [{"text": [f"Page {n}", NOTICE]} for n in range(5)])
    _, err = here("lines", f"lists.{end}", "-o", f"out.{end}", "--unit", "line", code=1)
    assert '"text" is a list of texts' in err
    assert not (here.folder / f"out.{end}").exists()


@needs_jit
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="later ones read as deep as orjson does")
def test_a_record_that_is_nested_too_deeply_is_one_line(here: Here) -> None:
    deep = '{"deep": ' + "[" * 1000 + "]" * 1000 + ', "text": '
    records = [f"{deep}{json.dumps(f'Page {n}{chr(10)}{NOTICE}')}}}" for n in range(5)]
    (here.folder / "deep.jsonl").write_text("\n".join(records))
    _, err = here("lines", "deep.jsonl", "-o", "out.jsonl", "--unit", "line", code=1)
    assert "deep.jsonl: a record is too deeply nested" in err


def test_a_number_of_words_that_cannot_be_is_refused() -> None:
    for words in (0, 1 << 64):
        with pytest.raises(UsageError, match=r"min_words is .*: use 1 to 2,147,483,647"):
            Repeated(min_words=words)
