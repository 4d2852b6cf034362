"""Inputs as people have them: HTML, other encodings and delimiters, fields in fields."""

from __future__ import annotations

import builtins
import csv
import gzip
import html
import io
import sys
import time
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup.documents import InputFormat, OutputSet, ReadOptions, open_sources, write_outputs
from neardup.documents.files.encodings import guessed
from neardup.documents.formats.csv_lines import sniffed_delimiter
from neardup.documents.markup import main_extractor, visible_text
from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

LAYOUT = (
    "<html><head><title>The Daily</title><style>p {{color: red}}</style></head><body>"
    "<nav>Home News Sport Weather Search Login Subscribe Contact Imprint Terms Privacy</nav>"
    "<main><article><h1>{0}</h1><p>{1}</p></article></main>"
    "<footer>Copyright of the daily, all rights reserved in all countries for ever</footer>"
    "<script>var page = '{0}';</script></body></html>"
)


def page(name: str) -> str:
    return LAYOUT.format(name, " ".join(f"{name}{i} is told" for i in range(40)))


PAGES = {name: page(name) for name in ("tea", "milk", "rain")}
PAGES["tea-again"] = page("tea").replace("Home", "Start").replace("Copyright", "(c)")


def put(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def kept_through(source: Any, path: Path, out: Path, keep: list[bool], **options: Any) -> bytes:
    """Read a file, keep some records, and give the bytes written."""
    (read,) = open_sources([str(path)], None, source)
    assert sum(len(batch.texts) for batch in read.batches(ReadOptions(**options))) == len(keep)
    with OutputSet(read.paths) as outputs:
        write_outputs([read], [np.array(keep)], str(out), outputs)
        outputs.commit()
    return out.read_bytes()


def texts_of(path: Path, hints: InputFormat | str | None = None, **options: Any) -> list[str]:
    (source,) = open_sources([str(path)], None, hints)
    result = (batch.texts.to_pylist() for batch in source.batches(ReadOptions(**options)))
    return [text for texts in result for text in texts]


# HTML


def test_pages_of_a_folder_are_compared_by_their_main_content_and_kept_as_they_are(
    tmp_path: Path,
) -> None:
    pytest.importorskip("resiliparse")
    for name, text in PAGES.items():
        put(tmp_path / "pages" / f"{name}.html", text)
    put(tmp_path / "pages" / "note.txt", page("tea"))
    result = nd.dedup(tmp_path / "pages", f"{tmp_path}/out/")
    assert result.duplicates["dropped"].to_pylist() == ["tea.html"]
    assert result.duplicates["kept"].to_pylist() == ["tea-again.html"]
    written = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert written == {f"{x}.html": PAGES[x] for x in ("tea-again", "milk", "rain")} | {
        "note.txt": page("tea")
    }
    (note,) = result.summary.notes
    assert "compared the main content of 4 HTML texts" in note


@pytest.mark.parametrize(
    ("extract", "first"),
    [("all", "Home News"), ("none", "<html>"), ("main", "tea")],
)
def test_fields_and_texts_are_extracted_if_asked(tmp_path: Path, extract: str, first: str) -> None:
    if extract == "main":
        pytest.importorskip("resiliparse")
    rows = [{"text": text} for text in [*PAGES.values(), "3 < 4 & 5"]]
    path = put(tmp_path / "in.jsonl", b"".join(orjson.dumps(row) + b"\n" for row in rows))
    texts = texts_of(path, extract=extract)
    assert texts[0].startswith(first)
    assert texts[-1] == "3 < 4 & 5"
    assert nd.dedup([row["text"] for row in rows], extract=extract).summary.read == 5
    kept = kept_through(None, path, tmp_path / "out.jsonl", [True] * 5, extract=extract)
    assert kept == path.read_bytes()


class Trafilatura(types.ModuleType):
    """Stands for the library: it finds nothing in pages without an article."""

    def extract(self, page: str, *, include_comments: bool) -> str | None:
        """What the library's function has as its result."""
        assert not include_comments
        return "TEA" if "tea" in page else None


def test_the_main_content_is_that_of_trafilatura_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", Trafilatura("trafilatura"))
    main_extractor.cache_clear()
    for name in ("tea", "milk"):
        put(tmp_path / "pages" / f"{name}.html", page(name))
    texts = texts_of(tmp_path / "pages", extract="trafilatura")
    assert texts == [visible_text(page("milk")), "TEA"]
    (note,) = nd.dedup(tmp_path / "pages", extract="trafilatura").summary.notes
    assert "compared the main content of 2 HTML texts (--extract trafilatura)" in note
    with nd.Index(similarity=0.8, recipe=nd.Recipe(), extract="trafilatura") as index:
        index.add([0], ["TEA"])
        assert index.query(page("tea")) == [(0, 1.0)]
    main_extractor.cache_clear()


def test_trafilatura_takes_menus_out_and_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("trafilatura")
    main_extractor.cache_clear()
    menu = "".join(f"<li><a href='/{n}'>Section {n}</a></li>" for n in range(20))
    sentence = "The harbour opened again on Monday after three days of storm. "
    article = "".join(f"<p>{n}. {sentence * 4}</p>" for n in range(5))
    extract = main_extractor("trafilatura")
    texts = extract(f"<html><body><nav><ul>{menu}</ul></nav><article>{article}</article></body>")
    assert "harbour" in texts
    assert "Section" not in texts
    assert extract("<p>\x00</p>").strip("\x00") == ""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("extract", "module", "extra"),
    [
        (None, "resiliparse", "html"),
        ("main", "resiliparse", "html"),
        ("trafilatura", "trafilatura", "trafilatura"),
    ],
)
def test_main_content_without_its_extra_says_what_to_install(
    extract: str | None, module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith(module):
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    main_extractor.cache_clear()
    path = put(tmp_path / "a.html", page("tea"))
    with pytest.raises(UsageError, match=rf"neardup\[{extra}\]'.*--extract all"):
        nd.dedup(path, extract=extract)
    assert nd.dedup(path, extract="all").summary.kept == 1


def test_records_that_begin_like_markup_are_told(tmp_path: Path) -> None:
    rows = [{"text": text} for text in PAGES.values()]
    path = put(tmp_path / "in.jsonl", b"".join(orjson.dumps(row) + b"\n" for row in rows))
    with pytest.warns(nd.DoubtfulResultWarning, match="100% of the first texts begin like HTML"):
        nd.dedup(path)
    with pytest.warns(nd.DoubtfulResultWarning, match="pass extract='main' or 'all'"):
        nd.dedup(list(PAGES.values()))
    assert nd.dedup(path, extract="none").summary.warnings == []
    assert nd.dedup(["<3 you", "a < b", "plain"]).summary.warnings == []


def test_an_unknown_way_to_extract_is_refused() -> None:
    with pytest.raises(UsageError, match="extract is 'body': use one of main, trafilatura, all"):
        nd.dedup(["a"], extract="body")


words = st.text("abcä&<>\"' \n", max_size=12)
inline = st.sampled_from(["b", "em", "span", "a href='x>y'"])
block = st.sampled_from(["p", "div", 'li class="a"', "h1"])


@given(st.lists(st.tuples(st.booleans(), st.data(), words), max_size=6))
def test_the_visible_text_of_written_markup_is_what_was_written(parts: Any) -> None:
    source, expected = "<!-- no --><script>no();</script>", ""
    for is_inline, data, text in parts:
        tag = data.draw(inline if is_inline else block)
        name = tag.split()[0]
        source += f"<{tag}>{html.escape(text)}</{name}>"
        expected += text if is_inline else f"\n{text}\n"
    lines = (" ".join(line.split()) for line in expected.split("\n"))
    actual = [line.strip() for line in visible_text(source).split("\n")]
    assert [x for x in actual if x] == [line for line in lines if line]


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<a ",
        "<!--",
        "<a '",
        '<a "',
        "<script>",
        "<a href='\"",
        "&",
        "<p",
        "</",
        "<svg ",
        "<a '\"",
    ],
)
def test_broken_markup_takes_time_in_proportion_to_its_length(piece: str) -> None:
    begun = time.process_time()
    visible_text(piece * 40_000)
    assert time.process_time() - begun < 2


# Encodings


GERMAN = "id;text\n1;Grüße aus München, schöne Straße\n2;Öl & Käse für 3 €\n3;plain\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_kept_records_of_another_encoding_keep_their_bytes(
    tmp_path: Path, encoding: str, ending: str
) -> None:
    lines = GERMAN.splitlines(keepends=True)
    data, expected = GERMAN.encode(encoding), "".join(lines[:2] + lines[3:]).encode(encoding)
    pack = gzip.compress if ending else bytes
    path = put(tmp_path / f"in.csv{ending}", pack(data))
    has_mark = encoding in {"utf-16", "utf-32"}
    hints = None if has_mark else InputFormat(encoding=encoding)
    out = tmp_path / f"out.csv{ending}"
    output = kept_through(hints, path, out, [True, False, True])
    assert (gzip.decompress(output) if ending else output) == expected
    assert texts_of(path, hints) == [line.split(";")[1].rstrip() for line in lines[1:]]


def test_an_encoding_with_several_character_sets_ends_in_its_first_one(tmp_path: Path) -> None:
    records = ["text\n", "一つの 文章\n", "日本語"]  # the last line has no end
    path = put(tmp_path / "in.csv", "".join(records).encode("iso2022_jp"))
    hints = InputFormat(encoding="iso2022_jp")
    output = kept_through(hints, path, tmp_path / "out.csv", [False, True])
    assert output == (records[0] + records[2]).encode("iso2022_jp")


def test_json_lines_of_another_encoding_keep_their_mark(tmp_path: Path) -> None:
    text = '{"text":"é"}\r\n{"text":"日本"}\r\n'
    path = put(tmp_path / "in.jsonl", text.encode("utf-16"))
    output = kept_through(None, path, tmp_path / "out.jsonl", [False, True])
    assert output == '{"text":"日本"}\r\n'.encode("utf-16")
    assert texts_of(tmp_path / "out.jsonl") == ["日本"]


def test_an_encoding_that_explains_the_bytes_is_named_and_skipping_is_not_advised(
    tmp_path: Path,
) -> None:
    path = put(tmp_path / "in.csv", GERMAN.encode("cp1252"))
    with pytest.raises(DataError, match=r"in.csv:2: not UTF-8, it looks like cp1252; pass --enc"):
        texts_of(path)
    with pytest.raises(DataError, match=r"not UTF-8.*cp1252; pass --encoding cp1252$"):
        texts_of(put(tmp_path / "a.txt", GERMAN.encode("cp1252")))
    with pytest.raises(DataError, match=r"not gb18030 .byte .*: pass another --encoding"):
        texts_of(put(tmp_path / "b.csv", b"text\n\xff\xff\n"), InputFormat(encoding="gb18030"))
    with pytest.raises(DataError, match=r"c.csv:3: not cp1252 .byte 0x81.: pass"):
        texts_of(put(tmp_path / "c.csv", b"text\na\x0cb\n\x81\n"), InputFormat(encoding="cp1252"))
    with pytest.raises(UsageError, match="encoding is 'klingon'"):
        InputFormat(encoding="klingon")


def test_text_files_are_read_in_the_encoding_they_declare(tmp_path: Path) -> None:
    declared = "<html><meta charset=iso-8859-9><p>Işık ağır</p></html>".encode("cp1254")
    put(tmp_path / "in" / "a.html", declared)
    put(tmp_path / "in" / "b.txt", "Grüße".encode("utf-16"))
    result = nd.dedup(tmp_path / "in", f"{tmp_path}/out/", extract="all")
    assert "1 files were read as cp1254" in result.summary.notes
    assert "1 files were read as utf-16-le" in result.summary.notes
    assert (tmp_path / "out" / "a.html").read_bytes() == declared
    assert texts_of(tmp_path / "in", extract="all") == ["Işık ağır", "Grüße"]


def test_an_encoding_that_cannot_give_the_bytes_back_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "in.csv", b"text\n\x87\x90\n")  # one of two codes for one character
    with pytest.raises(DataError, match="writes some of its characters in several ways"):
        texts_of(path, InputFormat(encoding="cp932"))


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("Müller, größer".encode("latin-1"), "cp1252"),
        ("Şişli'de ağır ışık çığ".encode("cp1254"), "cp1254"),
        ("Привет, как дела сегодня".encode("cp1251"), "?"),
        ("这是一个句子没有别的".encode("gb18030"), "?"),
        ("plain words".encode("utf-16-le"), "utf-16-le"),
        ("plain words".encode("utf-16-be"), "utf-16-be"),
        ("größer Käse Straße".encode() + b"\xff", None),
        (b"\x00\x01\xff\xd8\x02\xf3", None),
        (b"ascii", None),
    ],
)
def test_encodings_are_guessed(data: bytes, name: str | None) -> None:
    assert guessed(data) == name


# CSV


@given(
    st.sampled_from(",;\t|"),
    st.lists(st.lists(st.text('ab,;|" \n', max_size=6), min_size=3, max_size=3), max_size=4),
)
def test_the_delimiter_that_a_file_was_written_with_is_found(
    mark: str, rows: list[list[str]]
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=mark, lineterminator="\n").writerows([["id", "name", "text"], *rows])
    assert sniffed_delimiter(text.getvalue()) == mark


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("text\na;b\n", ","),
        ("id,text;x\n1,2;3\n", ","),
        ("a;b, c;d\n1;2;3\n", ";"),
        ("", ","),
    ],
)
def test_a_comma_is_kept_unless_another_mark_fits_better(text: str, mark: str) -> None:
    assert sniffed_delimiter(text) == mark


def test_a_line_that_names_the_separator_is_kept(tmp_path: Path) -> None:
    path = put(tmp_path / "in.csv", "sep=|\r\nid|text\r\n1|a, b\r\n2|c\r\n")
    output = kept_through(None, path, tmp_path / "out.csv", [False, True])
    assert output == b"sep=|\r\nid|text\r\n2|c\r\n"
    assert texts_of(path) == ["a, b", "c"]


def test_a_delimiter_can_be_named(tmp_path: Path) -> None:
    path = put(tmp_path / "in.csv", "id:text\n1:a,b;c\n")
    assert texts_of(path, InputFormat(delimiter=":")) == ["a,b;c"]
    assert InputFormat(delimiter="\\t").delimiter == "\t"
    for mark in ("", "::", '"', "é"):
        with pytest.raises(UsageError, match="delimiter is"):
            InputFormat(delimiter=mark)


# Fields


NESTED = [{"id": 1, "doc": {"body": "one", "t": "x"}}, {"id": 2, "doc": {"body": "two", "t": "y"}}]


def test_fields_in_fields_are_named_with_dots(tmp_path: Path) -> None:
    lines = put(tmp_path / "in.jsonl", b"".join(orjson.dumps(row) + b"\n" for row in NESTED))
    array = put(tmp_path / "in.json", orjson.dumps(NESTED, option=orjson.OPT_INDENT_2))
    table = pa.Table.from_pylist(NESTED)
    parquet = tmp_path / "in.parquet"
    pq.write_table(table, parquet)
    for path in (lines, array, parquet):
        assert texts_of(path, text=("doc.body", "doc.t"), id="id") == ["one\nx", "two\ny"]
        assert texts_of(path, text=("doc.body",)) == ["one", "two"]
        with pytest.raises(DataError, match=r"doc.*--text doc\.body"):
            texts_of(path, text=("doc",))
        with pytest.raises(DataError, match="did you mean --id id"):
            texts_of(path, text=("doc.body",), id="ID")
    assert nd.dedup(table, text="doc.body").summary.kept == 2
    literal = put(tmp_path / "dots.jsonl", b'{"doc.body":"three","doc":{"body":"four"}}\n')
    assert texts_of(literal, text=("doc.body",)) == ["three"]


def test_lists_of_strings_are_one_text(tmp_path: Path) -> None:
    table = pa.table({"text": [["a", "b"], [], None, ["c", None]]})
    path = tmp_path / "in.parquet"
    pq.write_table(table, path)
    assert texts_of(path, skip_errors=True) == ["a\nb", ""]
    assert nd.dedup(table, on_error="skip").kept.tolist() == [True, True, False, False]


strings = st.lists(st.text(max_size=4), max_size=3)


@given(st.lists(st.one_of(st.text(max_size=4), strings), min_size=1, max_size=6), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_arrays_of_strings_in_json_are_one_text(
    tmp_path: Path, values: list[Any], as_array: bool
) -> None:
    rows = [{"id": str(i), "doc": {"text": value}} for i, value in enumerate(values)]
    data = b"\n".join(map(orjson.dumps, rows))
    path = put(tmp_path / "in.json", orjson.dumps(rows) if as_array else data)
    joined = ["\n".join(x) if isinstance(x, list) else x for x in values]
    assert texts_of(path, text=("doc.text",)) == joined
    assert texts_of(path, text=("doc.text",), id="id") == joined


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('["a",1]', "text is an array with a number, not of strings"),
        ("[null]", "text is an array with null, not of strings"),
        ('[["a"]]', "text is an array with an array, not of strings"),
        ("7", "text is a number, not a string"),
    ],
)
def test_other_arrays_are_bad_records(tmp_path: Path, value: str, message: str) -> None:
    path = put(tmp_path / "in.jsonl", f'{{"text":["a"]}}\n{{"text":{value}}}\n')
    with pytest.raises(DataError, match=f"in.jsonl:2: {message}"):
        texts_of(path)
    assert texts_of(path, skip_errors=True) == ["a"]


@pytest.mark.parametrize(
    ("field", "advice"),
    [
        ("contents", "did you mean --text content?"),
        ("text", "such as --text content"),
        (" Content", "did you mean --text content?"),
    ],
)
def test_a_missing_field_offers_the_nearest_or_the_one_with_text(
    tmp_path: Path, field: str, advice: str
) -> None:
    row = {"doc_id": "7" * 99, "content": "a longer text than any", "lang": "en"}
    frame = pa.table({name: [value] for name, value in row.items()})
    pq.write_table(frame, tmp_path / "in.parquet")
    put(tmp_path / "in.jsonl", orjson.dumps(row))
    put(tmp_path / "in.csv", ",".join(row) + "\n" + ",".join(row.values()) + "\n")
    for name in ("in.parquet", "in.jsonl", "in.csv"):
        with pytest.raises(DataError, match="it has .*" + advice.replace("?", r"\?")):
            texts_of(tmp_path / name, text=(field,))


def test_names_beside_tables_that_begin_with_a_line_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "lake" / "day=1" / "part-0.jsonl", b'{"text":"one two"}\n')
    put(tmp_path / "lake" / "_SUCCESS", b"")
    put(tmp_path / "lake" / "_delta_log" / "0.json", b'{"commit":1}\n')
    assert nd.dedup(tmp_path / "lake").summary.read == 1
    for name in ("_draft.txt", "run.log"):
        put(tmp_path / "texts" / name, name.encode())
    assert nd.dedup(tmp_path / "texts").summary.read == 2
    assert nd.dedup(tmp_path / "texts" / "run.log").summary.read == 1


# Outputs


def test_a_name_says_whether_an_output_is_a_file_or_a_folder(tmp_path: Path) -> None:
    paths = [put(tmp_path / f"{x}.jsonl", b'{"text":"%c"}\n' % x) for x in b"ab"]
    for _ in range(2):
        result = nd.dedup(paths, tmp_path / "out")
        assert result.summary.outputs == [str(tmp_path / "out" / path.name) for path in paths]
    assert result.summary.notes == [f"{path} was replaced" for path in result.summary.outputs]
    for name in ("out.docx", "out.d", "out.txt.gz"):
        with pytest.raises(UsageError, match="unknown extension"):
            nd.dedup(paths, tmp_path / name)
    with pytest.raises(UsageError, match="unknown extension"):
        nd.dedup(paths, duplicates=tmp_path / "dropped.docx")
    with pytest.raises(UsageError, match="would be excel, but"):
        nd.dedup(paths, tmp_path / "out.xlsx")
    put(tmp_path / "plain", b"")
    with pytest.raises(UsageError, match="is a file, and a name without an extension"):
        nd.dedup(paths, tmp_path / "plain")


def test_a_file_that_is_read_only_is_not_replaced(tmp_path: Path) -> None:
    path = put(tmp_path / "in.jsonl", b'{"text":"a"}\n')
    out = put(tmp_path / "out.jsonl", b"precious")
    out.chmod(0o400)
    with pytest.raises(nd.FileError, match="read-only"):
        nd.dedup(path, out)
    assert out.read_bytes() == b"precious"


def test_a_number_that_no_record_has_is_no_priority(tmp_path: Path) -> None:
    path = put(tmp_path / "in.jsonl", b'{"text":"a","score":1}\n{"text":"b"}\n')
    assert nd.dedup(path, keep="max:score").summary.kept == 2
    with pytest.raises(UsageError, match="no record has a number in the field scores"):
        nd.dedup(path, keep="max:scores")
    assert nd.dedup(put(tmp_path / "none.jsonl", b""), keep="max:scores").summary.read == 0
