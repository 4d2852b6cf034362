"""Spreadsheets in and out."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import importlib.util
import io
import json
import resource
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from damage import RIGHT, address_space, in_victim
from neardup.documents import ReadOptions, open_sources
from neardup.documents.extensions import READ_EXTENSIONS
from neardup.documents.sheets import MOST_CHARACTERS, as_table, read_sheet, workbook
from neardup.errors import DataError, FileError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("python_calamine")
xlsxwriter = pytest.importorskip("xlsxwriter")

SAME = "the harbour opened again on Monday after three days"
DAY, MOMENT = dt.date(2026, 11, 22), dt.datetime(2026, 11, 22, 9, 30)  # noqa: DTZ001
HEADER = ["nr", "text", "score", "day", "at", "mixed", "open"]
ROWS: list[list[Any]] = [
    [1, SAME, 2.5, DAY, MOMENT, 7, True],
    [2, SAME.upper() + "!", 9, DAY, MOMENT, "x", False],
    [3, "=1+1", "", "", "", DAY, ""],
    [4, "", -1, DAY, MOMENT, "", True],
]


def book(path: Path, rows: list[list[Any]], *, others: int = 0, at: int = 0) -> Path:
    """Write a workbook whose first sheet is empty and whose second has rows from row `at`."""
    with xlsxwriter.Workbook(path) as workbook:
        formats = {dt.date: "yyyy-mm-dd", dt.datetime: "yyyy-mm-dd hh:mm"}
        styles = {kind: workbook.add_format({"num_format": form}) for kind, form in formats.items()}
        workbook.add_worksheet("Cover")
        sheet = workbook.add_worksheet("News")
        for y, row in enumerate(rows, at):
            for x, cell in enumerate(row):
                if type(cell) in styles:
                    sheet.write_datetime(y, x, cell, styles[type(cell)])
                elif isinstance(cell, str):
                    sheet.write_string(y, x, cell)
                elif cell != "":
                    sheet.write(y, x, cell)
        for i in range(others):
            workbook.add_worksheet(f"More{i}").write(0, 0, "x")
    return path


def cells(path: Path) -> list[list[Any]]:
    sheet = read_sheet(path.name, path.read_bytes())
    return [sheet.header, *sheet.rows]


def test_a_sheet_is_read_and_its_kept_rows_written_as_values(tmp_path: Path) -> None:
    source, out = book(tmp_path / "in.xlsx", [HEADER, *ROWS], others=2), tmp_path / "out.xlsx"
    dropped = tmp_path / "dropped.xlsx"
    result = nd.dedup(source, out, id="nr", keep="max:score", duplicates=dropped)
    assert result.kept.tolist() == [False, True, True, True]
    assert cells(out) == [HEADER, *ROWS[1:]]
    assert cells(dropped)[1] == ["1", "2", 0, 1, "2"]
    (note,) = result.summary.notes
    assert 'the sheet "News" was read; others are "More0", "More1"' in note
    other = nd.dedup(source, out, text="x", format="excel:More1")
    assert 'the sheet "More1" was read; others are "News", "More0"' in other.summary.notes[0]
    with pytest.raises(UsageError, match='no sheet "Cover" with cells; there are "News", "More0"'):
        nd.dedup(source, out, format="excel:Cover")
    nd.dedup(source, out, id="nr", keep="max:score")
    assert nd.dedup(source, out).summary.notes[1] == f"{out} was replaced"
    first = out.read_bytes()
    nd.dedup(source, out)
    assert out.read_bytes() == first


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow", "tsv"])
def test_kept_rows_go_to_other_formats_by_the_extension(tmp_path: Path, ending: str) -> None:
    source, out = book(tmp_path / "in.xlsx", [HEADER, *ROWS]), tmp_path / f"out.{ending}"
    assert nd.dedup(source, out).summary.kept == 3
    if ending == "parquet":
        assert pq.read_table(out).to_pylist()[1] == {
            "nr": 3, "text": "=1+1", "score": None, "day": None, "at": None,
            "mixed": "2026-11-22", "open": None,
        }  # fmt: skip
    if ending == "csv":
        line = f"1,{SAME},2.5,2026-11-22,2026-11-22 09:30:00,7,True"
        assert out.read_text().splitlines()[1] == line
    again = nd.dedup(out)
    assert (again.summary.kept, again.summary.dropped) == (3, 0)


def test_rows_have_the_numbers_that_the_program_shows(tmp_path: Path) -> None:
    blank: list[list[Any]] = [["", ""], ["", ""]]
    rows = [["id", "text"], ["a", SAME], *blank, ["b", SAME], ["c", ""]]
    source = book(tmp_path / "in.xlsx", rows, at=3)
    result = nd.dedup(source)
    assert result.duplicates.to_pylist()[0]["dropped"] == f"{source}:8"
    assert result.duplicates.to_pylist()[0]["kept"] == f"{source}:5"
    assert (result.summary.read, result.summary.empty) == (3, 1)
    with pytest.raises(DataError, match=r'no column "body" \(it has "id", "text"\)'):
        nd.dedup(source, text="body")


def test_a_folder_of_spreadsheets_is_written_as_xlsx(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    book(tmp_path / "in" / "a.xlsx", [["text"], [SAME]])
    book(tmp_path / "in" / "b.xlsm", [["text"], [SAME], ["other words than those"]])
    nd.dedup(tmp_path / "in", f"{tmp_path}/out/")
    assert cells(tmp_path / "out" / "a.xlsx") == [["text"], [SAME]]
    assert cells(tmp_path / "out" / "b.xlsx") == [["text"], ["other words than those"]]
    nd.dedup(tmp_path / "in", tmp_path / "all.csv")
    assert (tmp_path / "all.csv").read_text() == f"text\n{SAME}\nother words than those\n"


def test_columns_without_a_name_get_their_letter_and_two_of_one_name_are_refused(
    tmp_path: Path,
) -> None:
    source = book(tmp_path / "in.xlsx", [["text", "", 7], ["a b c", "x", "y"]])
    assert cells(source)[0] == ["text", "B", "7"]
    source = book(tmp_path / "two.xlsx", [["text", "text"], ["a", "b"]], at=1)
    with pytest.raises(DataError, match=r'two.xlsx:2: there are two columns "text"'):
        nd.dedup(source)


def test_what_cannot_be_read_or_written_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = book(tmp_path / "in.xlsx", [HEADER, *ROWS])
    for ending in READ_EXTENSIONS:
        with pytest.raises(UsageError, match=f"{ending} can be read but not written"):
            nd.dedup(source, tmp_path / f"out{ending}")
    (tmp_path / "no.xlsx").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match=r"no.xlsx: not a readable spreadsheet: .*; save it again"):
        nd.dedup(tmp_path / "no.xlsx")
    with pytest.raises(DataError, match=r"row|cell holds 32,767"):
        workbook("w.xlsx", ["a"], [["x" * (MOST_CHARACTERS + 1)]])
    assert workbook("w.xlsx", ["a"], [["x" * MOST_CHARACTERS]])
    with pytest.raises(DataError, match="a sheet holds 1,048,576 rows"):
        workbook("w.xlsx", ["a"], ([None] for _ in range(1_048_576)))
    assert read_sheet("w.xlsx", workbook("w.xlsx", [], [])).header == []
    with monkeypatch.context() as patch:
        patch.setattr("neardup.documents.sheet_sizes.MOST_BYTES", 100)
        with pytest.raises(DataError, match=r"it would unpack to [\d,]+ bytes"):
            nd.dedup(source)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"neardup\[excel\]'`, or write .csv"):
        nd.dedup(source, tmp_path / "out.xlsx")
    assert not (tmp_path / "out.xlsx").exists()


@pytest.mark.parametrize("last", [(1_048_575, 16_383), (1_048_575, 200), (20_000, 16_383)])
def test_cells_far_apart_are_refused_before_room_is_made_for_those_between(
    last: tuple[int, int], tmp_path: Path
) -> None:
    path = tmp_path / "far.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write(0, 0, "text")
        sheet.write(*last, "x")
    message = (
        f"its cells reach to row {last[0] + 1:,} and column [A-Z]+, and at most 134,217,728 cells"
    )
    with pytest.raises(DataError, match=message):
        nd.dedup(path, f"{tmp_path}/out.xlsx")


def test_a_place_across_two_blocks_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "far.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        workbook.add_worksheet().write(1_048_575, 16_383, "x")
    for size in (17, 18, 19, 23, 1000):
        monkeypatch.setattr("neardup.documents.sheet_sizes._BLOCK_BYTES", size)
        with pytest.raises(DataError, match="its cells reach to row 1,048,576 and column XFD"):
            read_sheet("far.xlsx", path.read_bytes())


def ods(path: Path, *rows: str, sheets: int = 1) -> Path:
    """A spreadsheet of rows of XML, which ends in as many blank rows as LibreOffice writes."""
    blank = '<table:table-row table:number-rows-repeated="1048000">{}</table:table-row>'.format(
        '<table:table-cell table:number-columns-repeated="16384"/>'
    )
    body = "".join(
        f'<table:table table:name="S{i}">{"".join(rows)}{blank}</table:table>'
        for i in range(sheets)
    )
    spaces = " ".join(
        f'xmlns:{x}="urn:oasis:names:tc:opendocument:xmlns:{x}:1.0"'
        for x in ("office", "table", "text", "manifest")
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        packed.writestr("META-INF/manifest.xml", f"<manifest:manifest {spaces}/>")
        packed.writestr(
            "content.xml", f"<office:document-content {spaces}>{body}</office:document-content>"
        )
    return path


def ods_row(texts: list[str], repeated: int = 1, wide: str = "1") -> str:
    """A row; each cell stands for `wide`."""
    cells = "".join(
        f'<table:table-cell office:value-type="string" table:number-columns-repeated="{wide}">'
        f"<text:p>{text}</text:p></table:table-cell>"
        for text in texts
    )
    return f'<table:table-row table:number-rows-repeated="{repeated}">{cells}</table:table-row>'


def test_ods_is_read_and_what_it_repeats_is_counted_before(tmp_path: Path) -> None:
    rows = [ods_row(["text", "n"]), ods_row([SAME, "1"], 3), ods_row(["else", "2"])]
    path = ods(tmp_path / "in.ods", *rows, sheets=3)
    sheet = read_sheet("in.ods", path.read_bytes())
    assert (sheet.header, sheet.rows) == (["text", "n"], [[SAME, "1"]] * 3 + [["else", "2"]])
    assert sheet.others == ["S1", "S2"]
    for repeated, wide in ((50_000, "1000"), (1_000_000, "&#53;0"), (10**30, "1")):
        path = ods(tmp_path / "far.ods", ods_row(["text"]), ods_row(["a"], repeated, wide))
        with pytest.raises(DataError, match=f"its cells reach to row {repeated + 1:,} and column"):
            nd.dedup(path, f"{tmp_path}/out.xlsx")


def record(kind: int, data: bytes = b"") -> bytes:
    """A record of .xlsb."""
    head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    size = len(data)
    return head + (bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])) + data


def wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb(path: Path, cells: list[tuple[int, int, str]]) -> Path:
    """A workbook of one sheet with cells (row, column, text)."""
    sheet = [record(0x81), record(0x93, bytes(19)), record(0x94, bytes(16)), record(0x91)]
    for row, column, text in cells:
        sheet.append(record(0x00, struct.pack("<I", row) + bytes(13)))
        sheet.append(record(0x06, struct.pack("<II", column, 0) + wide(text)))
    sheet += [record(0x92), record(0x82)]
    book = [record(0x83), record(0x8F), record(0x9C, bytes(8) + wide("rId1") + wide("News"))]
    book += [record(0x90), record(0x84)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(
            "xl/_rels/workbook.bin.rels",
            '<Relationships><Relationship Id="rId1" Type="worksheet"'
            ' Target="worksheets/sheet1.bin"/></Relationships>',
        )
        packed.writestr("xl/workbook.bin", b"".join(book))
        packed.writestr("xl/worksheets/sheet1.bin", b"".join(sheet))
    return path


@pytest.mark.parametrize("block", [1, 16, 17, 1 << 20])
def test_xlsb_is_read_and_its_cells_are_counted_before(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.documents.sheet_sizes._BLOCK_BYTES", block)
    path = xlsb(tmp_path / "in.xlsb", [(0, 0, "text"), (1, 0, SAME * 3), (2, 0, "x" * 200)])
    sheet = read_sheet("in.xlsb", path.read_bytes())
    assert (sheet.header, sheet.rows) == (["text"], [[SAME * 3], ["x" * 200]])
    for last in ((1_048_575, 16_383), (0, 4_000_000_000)):
        path = xlsb(tmp_path / "far.xlsb", [(0, 0, "text"), (1, 0, SAME), (*last, "x")])
        with pytest.raises(DataError, match=r"its cells reach to row .* and column [A-Z]+"):
            nd.dedup(path, f"{tmp_path}/out.xlsx")


XLS = zlib.decompress(
    base64.b85decode(
        b"c-p&gUhu)fjZzO8(10BSGsD0CoD6J8VvIn{3F8Pb0OkMx2QgtZ2N3@s1w#sOasVTejg?_H?-"
        b"_Pb9D?HeAp;Y`29|?Bl7Zn75XUeSF!<%?r7F-7IDy@e$Ov+SEs$hnm;)5yV~_;9N(f9QgGpg9xgM-"
        b"?514cSi}Zp?TcFwpj8P2d?ftYYps6^5NeL{+#{e>SJ6O*xu!tdpD8mU*Dz2Zv2vN(*;8>KIm@_yf<XCtZmM{S0%{?_"
        b"QwJ0&?0fPuI0+%p+{jb2l@CBAr4=9X^(^s640Vw_hRh%7*_+%y)28ITP{|Vp(-"
        b"U=*S*E2&RIQS0(Ke)UFVW6Ut)QS==Q1J`St^z38l^2|hd4OaJP!otP2u{obzykTt%8!?PlLGAH!6FUdA{t_-"
        b"D#&hz{|t>F9YD=|NQFFz&;skw29r%-"
        b"Q>DRdDKIGlOoBjKEkG2?aBBvuX#vZs0qrpcgUj~nNNf!tyY+S84!PFH_L@NUI`@ZFBI~Z(FJw>x`aK1x9|W5jbQpCQ"
        b"XUznGo%S%A5t`}mf=Nk?0)T@_0P6n#P>=94{AJ(*GX=pUNCmi}VnnE@W8wl=S%M7F(!ffONr+(^$S`0Lf&g3$qhJ(_"
        b"f>AIEM!_f;1*2dT3=;rq?t@yq%#eNtur&|qRIo$Gb^ZeJztLfmVGDv7@`11f*fDiw$OF<v43#9MA29}2MwnTQMCyT!"
        b"7lJ@I(DovRY=$JTJF-bmzrao*BeH*p)+j)|EJUjP|44BsjqL{jD1N_w"
    )
)
"""A workbook of 5.6 kB with "text" in A1 and 17.5 in the last row, of column 65,536, which is none:
the reader would make room of 137 GB."""
FAR, NEAR = (struct.pack("<HHHH", 638, 10, 65_535, column) for column in (65_535, 0))


def test_xls_is_read_and_what_would_abort_its_reader_is_an_error() -> None:
    sheet = read_sheet("in.xls", XLS.replace(FAR, NEAR))
    assert (sheet.header, sheet.rows, sheet.numbers) == (["text"], [[17.5]], [65_536])
    with pytest.raises(DataError, match=r"far\.xls: its cells, blank ones included, take more"):
        read_sheet("far.xls", XLS)
    for cut in (600, 2000, 5000):
        with contextlib.suppress(DataError):
            read_sheet("cut.xls", XLS[:cut])


NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SHEET = "xl/worksheets/sheet1.xml"


def shared(path: Path, strings: list[str], cells: list[str]) -> Path:
    """A workbook of strings, and of a row for each cell of XML."""
    rows = "".join(f'<row r="{i}">{cell}</row>' for i, cell in enumerate(cells, 1))
    with xlsxwriter.Workbook(path) as workbook:
        workbook.add_worksheet().write_string(0, 0, "text")
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    items = "".join(f"<si><t>{text}</t></si>" for text in strings)
    parts["xl/sharedStrings.xml"] = f'<sst xmlns="{NAMESPACE}">{items}</sst>'.encode()
    parts[SHEET] = (
        f'<x:worksheet xmlns:x="{NAMESPACE}" xmlns="{NAMESPACE}"><sheetData>{rows}</sheetData>'
        "</x:worksheet>"
    ).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in parts.items():
            packed.writestr(name, data)
    return path


TITLE = '<c r="A1" t="inlineStr"><is><t>text</t></is></c>'
LONGER = "its cells have at least [0-9,]+ characters .a shared or repeated text counts in each cell"
NAMES = (
    '<c t="s"><v>0</v></c>', "<c t='s'><v>0</v></c>", '<c t="s"><v> 0\n</v></c>',
    '<c t="&#115;"><v>&#48;</v></c>', '<c t="s"><f>A1</f><v><![CDATA[0]]></v></c>',
    '<x:c t="s"><x:v>0</x:v></x:c>', '<c r="A7" s="1"  t = "s" ><!-- </v> --><v>0</v></c>',
)  # fmt: skip


@pytest.mark.parametrize("cell", NAMES)
def test_a_shared_string_is_counted_in_each_cell_that_names_it(cell: str, tmp_path: Path) -> None:
    path = shared(tmp_path / "in.xlsx", ["y" * 5000, "z"], [TITLE, *[cell] * 10])
    with contextlib.suppress(DataError):  # of a reader that takes it for no cell
        assert len(read_sheet("in.xlsx", path.read_bytes(), None, 50_400).rows) in {0, 1, 10}
    with pytest.raises(DataError, match=LONGER):
        read_sheet("in.xlsx", path.read_bytes(), None, 49_000)


def test_the_texts_of_cells_are_counted_whatever_they_are(tmp_path: Path) -> None:
    other = ["<c><v>17</v></c>", '<c t="s"><v>1</v></c>']
    long = "y" * 9000
    for name, cell in {
        "inline": f'<c t="inlineStr"><is><t>{long}</t></is></c>',
        "without a type": f"<c><is><t>{long}</t></is></c>",
        "of a formula": f'<c t="str"><f>A1</f><v>{long}</v></c>',
    }.items():
        path = shared(tmp_path / f"{name}.xlsx", ["a", "b"], [TITLE, cell, *other])
        assert read_sheet(name, path.read_bytes(), None, 20_000).rows[0] == [long], name
        with pytest.raises(DataError, match=LONGER):
            read_sheet(name, path.read_bytes(), None, 8000)
    path = shared(tmp_path / "unused.xlsx", ["a", long], [TITLE, '<c t="s"><v>0</v></c>'])
    with pytest.raises(DataError, match=LONGER):
        read_sheet("unused.xlsx", path.read_bytes(), None, 8000)


def test_numbers_and_pictures_count_little(tmp_path: Path) -> None:
    cells = [f'<c r="A{i}"><v>{i}</v></c>' for i in range(2, 500)]
    path = shared(tmp_path / "in.xlsx", ["x" * 900], [TITLE, *cells, '<c t="s"><v>0</v></c>'])
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("xl/media/image1.png", bytes(20_000))
    assert len(read_sheet("in.xlsx", path.read_bytes(), None, 10_000).rows) == 499


def test_a_part_that_is_no_xml_is_counted_as_if_each_cell_had_the_longest_text(
    tmp_path: Path,
) -> None:
    path = shared(tmp_path / "in.xlsx", ["y" * 5000], [TITLE, '<c t="s"><v>0</v></c>&none;'] * 9)
    with pytest.raises(DataError, match=LONGER):
        read_sheet("in.xlsx", path.read_bytes(), None, 40_000)


def test_ods_counts_what_it_repeats_and_blanks_that_it_names(tmp_path: Path) -> None:
    long = "y" * 500
    annotated = (
        f'<table:table-cell office:string-value="{long}"><text:p>a</text:p></table:table-cell>'
    )
    for name, row in {
        "rows": ods_row([long], 100),
        "columns": ods_row([long], 1, "100"),
        "both": ods_row([long], 10, "10"),
        "blanks": ods_row(['a<text:s text:c="60000"/>']),
        "attributes": f"<table:table-row>{annotated * 120}</table:table-row>",
    }.items():
        path = ods(tmp_path / "in.ods", ods_row(["text"]), row)
        assert read_sheet(name, path.read_bytes(), None, 99_000).rows, name
        with pytest.raises(DataError, match=LONGER):
            read_sheet(name, path.read_bytes(), None, 49_000)


def test_xlsb_counts_shared_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = xlsb(tmp_path / "in.xlsb", [(0, 0, "text"), *((i, 0, "b" * 9) for i in range(1, 40))])
    cells = [record(0x81), record(0x93, bytes(19)), record(0x94, bytes(16)), record(0x91)]
    for row in range(30):
        cells.append(record(0x00, struct.pack("<I", row) + bytes(13)))
        cells.append(record(0x07, struct.pack("<III", 0, 0, 1 if row else 0)))
    items = [record(0x13, b"\0" + wide(text)) for text in ("text", "y" * 900)]
    strings = b"".join([record(0x9F, struct.pack("<II", 30, 2)), *items, record(0xA0)])
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    parts["xl/worksheets/sheet1.bin"] = b"".join([*cells, record(0x92), record(0x82)])
    for order in (["xl/sharedStrings.bin", *parts], [*parts, "xl/sharedStrings.bin"]):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name in order:
                packed.writestr(name, parts.get(name, strings))
        for block in (7, 64, 1 << 20):
            monkeypatch.setattr("neardup.documents.sheet_sizes._BLOCK_BYTES", block)
            sheet = read_sheet("in.xlsb", path.read_bytes(), None, 29 * 900 + 1000)
            assert sheet.rows == [["y" * 900]] * 29
            with pytest.raises(DataError, match=LONGER):
                read_sheet("in.xlsb", path.read_bytes(), None, 29 * 900 - 1)
    cells = [(0, 0, "text"), *((i, 0, "b" * 90) for i in range(1, 40))]
    with pytest.raises(DataError, match=LONGER):
        read_sheet("own.xlsb", xlsb(path, cells).read_bytes(), None, 39 * 90)


def test_xls_counts_its_texts_in_the_process_that_reads_it_first() -> None:
    near = XLS.replace(FAR, NEAR)
    assert read_sheet("in.xls", near, None, 4).header == ["text"]
    with pytest.raises(DataError, match="its cells have at least 4 characters"):
        read_sheet("in.xls", near, None, 3)


def test_few_bytes_that_name_a_long_string_often_end_in_one_line(tmp_path: Path) -> None:
    names = ['<c t="s"><v>0</v></c>'] * 20_000
    paths = [
        shared(tmp_path / "in.xlsx", ["x" * (4 << 20)], [TITLE, *names]),
        ods(tmp_path / "in.ods", ods_row(["text"]), ods_row(["y" * (1 << 20)], 20_000)),
    ]
    for path in paths:
        assert path.stat().st_size < 1 << 18

        def run(path: Path = path) -> int:
            limit = (1 << 30) + address_space()
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            for memory in ("64M", "64G"):
                with pytest.raises(DataError, match=LONGER):
                    nd.dedup(path, f"{tmp_path}/out.csv", memory=memory, on_error="skip")
            return RIGHT

        assert in_victim(run, tmp_path / "log") == RIGHT, (tmp_path / "log").read_text()
    assert not (tmp_path / "out.csv").exists()


def test_the_budget_says_how_much_text_a_sheet_may_have(tmp_path: Path) -> None:
    path = shared(tmp_path / "in.xlsx", ["w " * (9 << 19)], [TITLE, *['<c t="s"><v>0</v></c>'] * 8])
    with pytest.raises(DataError, match="and 67,108,864 fit in memory; pass a larger --memory"):
        nd.dedup(path, memory="64M")
    assert nd.dedup(path, memory="1G").summary.kept == 1


def test_cells_for_which_there_is_no_memory_are_an_error_and_no_abort(tmp_path: Path) -> None:
    paths = [
        ods(tmp_path / "in.ods", ods_row(["text"]), ods_row(["a"], 30_000, "1000")),
        xlsb(tmp_path / "in.xlsb", [(0, 0, "text"), (1_000_000, 99, "x")]),
    ]
    for path in paths:

        def run(path: Path = path) -> int:
            limit = (1 << 30) + address_space()
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            with pytest.raises(DataError, match="bytes of memory, more than the system has free"):
                read_sheet(path.name, path.read_bytes())
            return RIGHT

        assert in_victim(run, tmp_path / "log") == RIGHT, (tmp_path / "log").read_text()


def test_a_part_that_cannot_be_looked_at_is_not_read(tmp_path: Path) -> None:
    path = book(tmp_path / "in.xlsx", [["text"], ["x"]])
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as packed:
        at = packed.getinfo("xl/worksheets/sheet2.xml").header_offset
    entry = data.rindex(b"xl/worksheets/sheet2.xml") - 46
    for place in (at + 8, entry + 10):  # a method of compression that is none
        data[place : place + 2] = struct.pack("<H", 77)
    for broken in (bytes(data), path.read_bytes() + bytes(1 << 17)):
        with pytest.raises(DataError, match=r"in\.xlsx: not a readable spreadsheet: .*save it"):
            read_sheet("in.xlsx", broken)


def test_a_sheet_of_many_columns_is_read(tmp_path: Path) -> None:
    path = tmp_path / "wide.xlsx"
    row = [SAME, *range(16_000)]
    path.write_bytes(workbook(str(path), [f"c{i}" for i in range(16_001)], [row]))
    sheet = read_sheet("wide.xlsx", path.read_bytes())
    assert sheet.rows == [row]


def test_a_damaged_workbook_is_an_error_or_read(tmp_path: Path) -> None:
    data = book(tmp_path / "in.xlsx", [HEADER, *ROWS]).read_bytes()
    random = np.random.default_rng(5)
    for _ in range(200):
        broken = bytearray(data)
        for at in random.integers(0, len(data), 8).tolist():
            broken[at] = int(random.integers(256))
        for end in (len(data), int(random.integers(len(data) // 2, len(data)))):
            with contextlib.suppress(DataError):
                read_sheet("in.xlsx", bytes(broken[:end]))


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
values = st.one_of(
    st.just(""), texts, st.booleans(), st.integers(-(2**52), 2**52), st.floats(-1e9, 1e9),
    st.dates(dt.date(1901, 1, 1)).map(lambda day: day.replace(year=max(day.year, 1901))),
)  # fmt: skip


@given(st.lists(st.lists(values, min_size=2, max_size=2), max_size=5))
def test_cells_come_back_as_they_were_written(rows: list[list[Any]]) -> None:
    full = [["id", *row] for row in rows]
    read = read_sheet("w.xlsx", workbook("w.xlsx", ["one", "two", "three"], full))
    assert read.header == ["one", "two", "three"]
    for actual, expected in zip(read.rows, full, strict=True):
        for value, given_value in zip(actual, expected, strict=True):
            is_float = isinstance(given_value, float)
            assert value == (pytest.approx(given_value, rel=1e-15) if is_float else given_value)
    table = as_table(read.header, read.rows)
    assert len(table) == len(rows)


def test_a_stream_and_a_missing_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Excel cannot be read from a stream"):
        open_sources(["-"], None, "excel")
    with pytest.raises(FileError, match="No such file"):
        list(open_sources([str(tmp_path / "no.xlsx")])[0].batches(ReadOptions()))


def test_a_spreadsheet_is_taken_by_its_name_or_by_format(tmp_path: Path) -> None:
    source = book(tmp_path / "in.data", [["text"], [SAME]])
    result = nd.dedup(source, format="excel", clusters=tmp_path / "c.jsonl")
    assert json.loads((tmp_path / "c.jsonl").read_text())["id"] == f"{source}:2"
    assert result.summary.read == 1
    assert io.BytesIO(source.read_bytes()).read(2) == b"PK"
