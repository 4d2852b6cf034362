"""The true size of a workbook: a few bytes may ask its reader for more than there is.

The reader makes room for each cell from the first to the last, blank ones too, and where the system
gives it none the process is aborted. So cells are counted before it sees them: by their names in
.xlsx, by records in .xlsb, by what is repeated in .ods. An .xls, which is not an archive, is read
in a process of its own first, which may be aborted.

The reader also copies a shared string into each cell that names it, and a repeated cell as often as
it says, so their characters are counted as often.
"""

from __future__ import annotations

import io
import json
import math
import mmap
import re
import subprocess
import sys
import zipfile
import zlib
from array import array
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from xml.parsers import expat

from neardup.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["check_size", "column_letters"]

MOST_BYTES: Final = 4 << 30
"""To which a workbook may unpack: it is held in memory, and a small file may hold a huge one."""
MOST_CELLS: Final = 1 << 27
CELL_BYTES: Final = 48
"""Of a cell, when it is read and becomes Python's: 32 and a pointer, and some for what it holds."""
ODS_CELL_BYTES: Final = 144
"""The reader of .ods holds cells three times, and formulas; measured: 130."""
MOST_TEXT: Final = 1 << 30
"""Characters, where no memory is given."""
_TEXT_BYTES: Final = 4
"""Of a character, while the reader's text becomes Python's."""
_PLACE: Final = re.compile(rb"""\br=["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
"""In .xlsx, where a cell or a row is: such as r="AB12" or r="12"."""
_LONGEST_PLACE: Final = 16
_BLOCK_BYTES: Final = 1 << 22
_ROW, _LAST_CELL, _BEGIN, _END = 0x00, 0x0B, 0x91, 0x92
"""Types of the records of .xlsb: a row, the last type of a cell, where cells begin and end."""
_TEXT_CELLS, _SHARED_CELL, _SHARED_TEXT = (0x06, 0x08), 0x07, 0x13
"""Types of the records of .xlsb: cells with texts of their own, with the number of one, and one."""
_RECORD_BYTES: Final = 12
"""Of a record, in which a cell has its column, its style, and its text's length or number."""
_HEAD_BYTES: Final = 6
"""Before it, two of its type and four of its size."""
_SHARED: Final = re.compile(r"sharedstrings\.(xml|bin)$", re.IGNORECASE)
_ODS: Final = "content.xml"
_ODS_CELLS: Final = {"table:table-cell", "table:covered-table-cell"}
_XLS: Final = b"\xd0\xcf\x11\xe0"
_APART_BYTES: Final = 1 << 30
"""Bytes of cells of an .xls without its texts: of two sheets that span all rows and columns."""
_APART: Final = """
import io, json, sys
sys.path[:] = json.loads(sys.argv[1])
from python_calamine import CalamineWorkbook
try:
    import resource
    most, hard = int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_AS)[0]
    if hard < 0 or hard > most:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except ImportError:  # not every system has it
    pass
with CalamineWorkbook.from_filelike(io.BytesIO(sys.stdin.buffer.read())) as book:
    found = [book.get_sheet_by_name(each) for each in book.sheet_names]
    spans = [(each.total_height, each.total_width) for each in found]
    rows = (row for each in found for row in each.iter_rows())
    text = sum(len(cell) for row in rows for cell in row if isinstance(cell, str))
    print(json.dumps([spans, text]))
"""
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError)


def check_size(name: str, data: bytes, most_text: int) -> None:
    """Refuse a workbook that would not fit in memory, before anything is unpacked.

    Args:
        name: What errors call it.
        data: The workbook.
        most_text: Characters that its cells may have together.

    Raises:
        DataError: If it would not.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            size = sum(each.file_size for each in packed.infolist())
            is_ods = any(each.filename == _ODS for each in packed.infolist())
            spans, text = _sizes(packed, is_ods, most_text) if size <= MOST_BYTES else ([], 0)
    except (*_BROKEN, expat.ExpatError) as error:
        if not data.startswith(_XLS):
            raise DataError(f"{name}: not a readable spreadsheet: {error}; save it again") from None
        size, is_ods = len(data), False
        spans, text = _read_apart(name, data, most_text)
    if size > MOST_BYTES:
        raise DataError(
            f"{name}: it would unpack to {size:,} bytes, and the most is {MOST_BYTES:,}; save it as"
            " CSV UTF-8"
        )
    each_takes = ODS_CELL_BYTES if is_ods else CELL_BYTES
    most, cells = MOST_CELLS * CELL_BYTES // each_takes, sum(map(math.prod, spans))
    if cells > most:
        rows, columns = max(spans, key=math.prod)
        raise DataError(
            f"{name}: its cells reach to row {rows:,} and column {column_letters(columns - 1)}, and"
            f" at most {most:,} cells fit, blank ones included; delete the cells far from the"
            " others, or save it as CSV UTF-8"
        )
    if text > most_text:
        raise DataError(
            f"{name}: its cells have at least {text:,} characters (a shared or repeated text counts"
            f" in each cell), and {most_text:,} fit in memory; pass a larger --memory, or save it"
            " as CSV UTF-8"
        )
    needed = cells * each_takes + text * _TEXT_BYTES
    if not _is_room_for(needed):
        raise DataError(
            f"{name}: its {cells:,} cells, blank ones included, take about {needed:,} bytes of"
            " memory, more than the system has free; save it as CSV UTF-8"
        )


def _sizes(
    packed: zipfile.ZipFile, is_ods: bool, most_text: int
) -> tuple[list[tuple[int, int]], int]:
    """The last row and column of each sheet, (0, 0) of what is none, and the characters of all.

    Whether there are more than `most_text` is exact: fewer may be less than they seem.
    """
    parts = sorted(packed.infolist(), key=lambda each: not _is_shared(each))
    if is_ods:
        with packed.open(_ODS) as file:
            return _of_tables(file)
    if any(each.filename.lower().endswith("workbook.bin") for each in parts):
        counter = _Records()
        for each in parts:
            with packed.open(each) as file:
                counter.add(file, is_shared=_is_shared(each))
        return counter.spans, counter.text
    spans, ends = [], []
    for each in parts:
        with packed.open(each) as file:
            span, count = _of_places(file)
        spans.append(span)
        ends.append(count)
    return spans, _text_of_parts(packed, list(zip(parts, ends, strict=True)), most_text)


def _is_shared(part: zipfile.ZipInfo) -> bool:
    """Whether a part holds the shared strings."""
    return _SHARED.search(part.filename) is not None


def _read_apart(name: str, data: bytes, most_text: int) -> tuple[list[tuple[int, int]], int]:
    """Let another process read a workbook, with as much memory as it may take; as `_sizes`.

    Nothing is known of what is damaged: that the reader says.

    Raises:
        DataError: If that process was aborted or killed.
    """
    most = min(MOST_CELLS * CELL_BYTES, _APART_BYTES + most_text * _TEXT_BYTES)
    options = [json.dumps(sys.path), str(most)]
    process = subprocess.run(  # noqa: S603  # the interpreter, and nothing of the workbook's
        [sys.executable, "-I", "-c", _APART, *options],
        input=data,
        capture_output=True,
        check=False,
    )
    if process.returncode < 0:
        raise DataError(
            f"{name}: its cells, blank ones included, take more memory than there is; pass a"
            " larger --memory, or save it as CSV UTF-8"
        )
    if process.returncode:
        return [], 0
    spans, text = json.loads(process.stdout)
    return [tuple(each) for each in spans], text


def column_letters(column: int) -> str:
    """The name that a spreadsheet shows for a column, from 0: A, B, ..., Z, AA."""
    name, rest = "", column + 1
    while rest:
        rest, letter = divmod(rest - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def _is_room_for(nbytes: int) -> bool:
    """Whether the system would give so much memory now, under the process's own limits."""
    try:
        mmap.mmap(-1, max(nbytes, 1)).close()
    except (OSError, MemoryError, OverflowError):
        return False
    return True


def _of_places(file: Any) -> tuple[tuple[int, int], int]:
    """The last row and column that a part of .xlsx names, and how many elements end in it."""
    last, columns, kept, ends = 0, set[bytes](), b"", 0
    while block := file.read(_BLOCK_BYTES):
        places = _PLACE.findall(kept + block)
        columns.update(column for column, _ in places)
        last = max([last, *(int(row) for _, row in places)])
        ends += (kept[-1:] + block).count(b"</")
        kept = block[-_LONGEST_PLACE:]
    return (last, max(map(_number, columns), default=0)), ends


def _text_of_parts(
    packed: zipfile.ZipFile, parts: list[tuple[zipfile.ZipInfo, int]], most: int
) -> int:
    """The characters of all cells of .xlsx, or more where that is `most` or less.

    Args:
        packed: The workbook.
        parts: Its parts, each with the elements that end in it: of a cell with a text two.
        most: Where counting ends.
    """
    shared = [part for part, _ in parts if _is_shared(part)]
    others = [(part, ends) for part, ends in parts if not _is_shared(part)]
    own = sum(part.file_size for part, _ in others)
    count = 1 + sum(ends for _, ends in others) // 2
    longest = max((part.file_size for part in shared), default=0)
    if own + count * longest <= most:
        return own
    strings = _SharedTexts()
    for part in shared:
        _parse(packed, part, strings, longest)
    stored, longest = sum(strings.lengths), max(strings.lengths, default=0)
    if max(own + count * longest, stored) <= most:
        return own
    cells = _CellTexts(strings.lengths)
    for part, ends in others:
        before = cells.text
        try:
            _parse(packed, part, cells, most)
        except expat.ExpatError:  # the reader of workbooks may take it, and pictures are parts too
            cells.text = before + ends * longest
    return max(cells.text, stored)


def _parse(
    packed: zipfile.ZipFile, part: zipfile.ZipInfo, seen: _SharedTexts | _CellTexts, most: int
) -> None:
    """Show a part of .xlsx to what counts its characters, up to `most`.

    Raises:
        expat.ExpatError: If it is not XML.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = seen.start, seen.end
    parser.CharacterDataHandler = seen.characters
    with packed.open(part) as file:
        while seen.text <= most and (block := file.read(_BLOCK_BYTES)):
            parser.Parse(block)


class _SharedTexts:
    """The lengths of the shared strings."""

    def __init__(self) -> None:
        self.lengths = array("q")
        self.text = 0

    def start(self, name: str, _: dict[str, str]) -> None:
        if name.rpartition(":")[2] == "si":
            self.lengths.append(0)

    def characters(self, data: str) -> None:
        if self.lengths:
            self.lengths[-1] += len(data)

    def end(self, name: str) -> None:
        """Ignore the end of an element."""


class _CellTexts:
    """The characters of cells, of those that name a shared string its length."""

    def __init__(self, lengths: array[int]) -> None:
        self._lengths = lengths
        self._kind, self._value = "n", ""
        self._in_value = False
        self.text = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if local == "c":
            self._kind = attributes.get("t", "n")
        elif local == "v":
            self._in_value, self._value = True, ""

    def characters(self, data: str) -> None:
        if self._in_value and self._kind == "s":
            self._value = (self._value + data).lstrip()[:_LONGEST_PLACE]
        elif not self._in_value or self._kind != "n":
            self.text += len(data)

    def end(self, name: str) -> None:
        if name.rpartition(":")[2] != "v":
            return
        self._in_value, value = False, self._value.strip()
        if self._kind == "s" and value.isdecimal() and int(value) < len(self._lengths):
            self.text += self._lengths[int(value)]


def _number(name: bytes) -> int:
    """The number of a column, from 1, by its letters; 0 of none."""
    number = 0
    for letter in name.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


class _Records:
    """The last rows and columns of parts of .xlsb, and the characters of their cells."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []
        self.text = 0
        self._lengths = array("q")

    def add(self, file: Any, *, is_shared: bool) -> None:
        """Count a part; the one with the shared strings comes first."""
        row, last, columns, inside = 0, 0, 0, False
        ended = [bytes(_RECORD_BYTES + _HEAD_BYTES)]  # so that the last record is whole
        for kind, begin in _records(chain(iter(lambda: file.read(_BLOCK_BYTES), b""), ended)):
            if kind == _BEGIN:
                inside = True
            elif kind == _END:
                inside = False
            elif is_shared and kind == _SHARED_TEXT:
                self._lengths.append(int.from_bytes(begin[1:5], "little"))
                self.text += self._lengths[-1]
            elif inside and kind <= _LAST_CELL:
                number = int.from_bytes(begin[:4], "little") + 1
                if kind == _ROW:
                    row = number
                else:
                    last, columns = max(last, row), max(columns, number)
                    self.text += self._text_of(kind, int.from_bytes(begin[8:], "little"))
        self.spans.append((last, columns))

    def _text_of(self, kind: int, number: int) -> int:
        """The characters of a cell with its text's length or number."""
        if kind in _TEXT_CELLS:
            return number
        is_known = kind == _SHARED_CELL and number < len(self._lengths)
        return self._lengths[number] if is_known else 0


def _records(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The type of each whole record of .xlsb, and its first bytes, RECORD_BYTES at most."""
    kept, skipped = b"", 0
    for block in blocks:
        data = kept + block
        end, at = len(data), min(skipped, len(data))
        skipped -= at
        while not skipped and at + _HEAD_BYTES + _RECORD_BYTES <= end:
            kind, at = data[at], at + 1
            if kind >= 0x80:
                kind, at = kind & 0x7F | (data[at] & 0x7F) << 7, at + 1
            size, shift = 0, 0
            while shift < 28:
                size, more = size | (data[at] & 0x7F) << shift, data[at] >= 0x80
                at, shift = at + 1, shift + 7
                if not more:
                    break
            yield kind, data[at : at + min(size, _RECORD_BYTES)]
            skipped = max(0, at + size - end)
            at = min(at + size, end)
        kept = data[at:]


def _of_tables(file: Any) -> tuple[list[tuple[int, int]], int]:
    """The last row and column with anything in it of each sheet of .ods, and all characters."""
    counter, parser = _Repeated(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = counter.start, counter.end
    parser.CharacterDataHandler = counter.characters
    while block := file.read(_BLOCK_BYTES):
        parser.Parse(block)
    return counter.spans, counter.text


class _Repeated:
    """Rows and cells of .ods, each of which stands for as many as it says."""

    def __init__(self) -> None:
        self.spans = [(0, 0)]
        self.text = 0
        self._rows = self._repeats = self._column = self._full = self._cell = 0
        self._of_row = self._of_cell = 0
        self._has = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in _ODS_CELLS:
            self._cell = int(attributes.get("table:number-columns-repeated", 1))
            values = [value for key, value in attributes.items()
                      if key.startswith("office:") or key == "table:formula"]  # fmt: skip
            self._has, self._of_cell = bool(values), sum(map(len, values))
        elif name == "table:table-row":
            self._repeats = int(attributes.get("table:number-rows-repeated", 1))
            self._column = self._full = self._of_row = 0
        elif name == "table:table":
            self.spans.append((0, 0))
            self._rows = 0
        else:
            self._has = True
            self._of_cell += max(int(attributes.get("text:c", 1)), 0)  # as many blanks

    def characters(self, data: str) -> None:
        self._of_cell += len(data)

    def end(self, name: str) -> None:
        if name in _ODS_CELLS:
            self._column += self._cell
            if self._has:
                self._full = self._column
                self._of_row += self._cell * self._of_cell
        elif name == "table:table-row":
            self._rows += self._repeats
            self.text += self._repeats * self._of_row
            if self._full:
                self.spans[-1] = self._rows, max(self.spans[-1][1], self._full)
