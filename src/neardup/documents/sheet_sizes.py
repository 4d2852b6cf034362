"""How many cells a workbook stands for: a few bytes may ask its reader for more than there is.

The reader makes room for each cell from the first to the last, blank ones too, and where the system
gives it none the process is aborted. So cells are counted before it sees them: by their names in
.xlsx, by records in .xlsb, by what is repeated in .ods. An .xls, which is no archive, is read in a
process of its own first, which may be aborted.
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
_PLACE: Final = re.compile(rb"""\br=["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
"""In .xlsx, where a cell or a row is: such as r="AB12" or r="12"."""
_LONGEST_PLACE: Final = 16
_BLOCK_BYTES: Final = 1 << 22
_ROW, _LAST_CELL, _BEGIN, _END = 0x00, 0x0B, 0x91, 0x92
"""Types of the records of .xlsb: a row, the last type of a cell, where cells begin and end."""
_ODS: Final = "content.xml"
_ODS_CELLS: Final = {"table:table-cell", "table:covered-table-cell"}
_XLS: Final = b"\xd0\xcf\x11\xe0"
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
    print(json.dumps([(each.total_height, each.total_width) for each in found]))
"""
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError)


def check_size(name: str, data: bytes) -> None:
    """Refuse a workbook that would not fit in memory, before anything is unpacked.

    Raises:
        DataError: If it would not.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            size = sum(each.file_size for each in packed.infolist())
            is_ods = any(each.filename == _ODS for each in packed.infolist())
            spans = _spans(packed, is_ods) if size <= MOST_BYTES else []
    except (*_BROKEN, expat.ExpatError) as error:
        if not data.startswith(_XLS):
            raise DataError(f"{name}: not a readable spreadsheet: {error}; save it again") from None
        size, is_ods, spans = len(data), False, _read_apart(name, data)
    if size > MOST_BYTES:
        raise DataError(
            f"{name}: it would unpack to {size:,} bytes, of at most {MOST_BYTES:,}; save it as CSV"
            " UTF-8"
        )
    each_takes = ODS_CELL_BYTES if is_ods else CELL_BYTES
    most, cells = MOST_CELLS * CELL_BYTES // each_takes, sum(map(math.prod, spans))
    if cells > most:
        rows, columns = max(spans, key=math.prod)
        raise DataError(
            f"{name}: its cells reach to row {rows:,} and column {column_letters(columns - 1)}, and"
            f" of {most:,} cells at most the blank ones count too; delete what stands far off,"
            " or save it as CSV UTF-8"
        )
    if not _is_room_for(cells * each_takes):
        raise DataError(
            f"{name}: its {cells:,} cells, blank ones among them, take some"
            f" {cells * each_takes:,} bytes of memory, and the system has no such room; save it as"
            " CSV UTF-8"
        )


def _spans(packed: zipfile.ZipFile, is_ods: bool) -> list[tuple[int, int]]:
    """The last row and column of each sheet; (0, 0) of what is none."""
    names = [each.filename for each in packed.infolist()]
    is_xlsb = any(name.lower().endswith("workbook.bin") for name in names)
    count = _of_tables if is_ods else _of_records if is_xlsb else _of_places
    spans = []
    for each in packed.infolist():
        if not is_ods or each.filename == _ODS:
            with packed.open(each) as file:
                spans += count(file)
    return spans


def _read_apart(name: str, data: bytes) -> list[tuple[int, int]]:
    """Let another process read a workbook, with as much memory as cells may take; as `_spans`.

    Nothing is known of what is damaged: that the reader says.

    Raises:
        DataError: If that process was aborted or killed.
    """
    given = [json.dumps(sys.path), str(MOST_CELLS * CELL_BYTES)]
    done = subprocess.run(  # noqa: S603  # the interpreter, and nothing of the workbook's
        [sys.executable, "-I", "-c", _APART, *given], input=data, capture_output=True, check=False
    )
    if done.returncode < 0:
        raise DataError(
            f"{name}: its cells, blank ones among them, take more memory than there is; save it as"
            " CSV UTF-8"
        )
    return [] if done.returncode else [tuple(each) for each in json.loads(done.stdout)]


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


def _of_places(file: Any) -> list[tuple[int, int]]:
    """The last row and column that a part of .xlsx names."""
    last, columns, kept = 0, set[bytes](), b""
    while block := file.read(_BLOCK_BYTES):
        found = _PLACE.findall(kept + block)
        columns.update(column for column, _ in found)
        last = max([last, *(int(row) for _, row in found)])
        kept = block[-_LONGEST_PLACE:]
    return [(last, max(map(_number, columns), default=0))]


def _number(name: bytes) -> int:
    """The number of a column, from 1, by its letters; 0 of none."""
    number = 0
    for letter in name.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def _of_records(file: Any) -> list[tuple[int, int]]:
    """The last row and column of a part of .xlsb; nothing of a part without cells."""
    row, last, columns, inside = 0, 0, 0, False
    for kind, begin in _records(iter(lambda: file.read(_BLOCK_BYTES), b"")):
        if kind == _BEGIN:
            inside = True
        elif kind == _END:
            inside = False
        elif inside and kind <= _LAST_CELL:
            number = int.from_bytes(begin, "little") + 1
            if kind == _ROW:
                row = number
            else:
                last, columns = max(last, row), max(columns, number)
    return [(last, columns)]


def _records(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The type of each whole record of .xlsb, and its first four bytes."""
    kept, skipped = b"", 0
    for block in blocks:
        data = kept + block
        end, at = len(data), min(skipped, len(data))
        skipped -= at
        while not skipped and at + 10 <= end:  # two bytes of type, four of size, and four
            kind, at = data[at], at + 1
            if kind >= 0x80:
                kind, at = kind & 0x7F | (data[at] & 0x7F) << 7, at + 1
            size, shift = 0, 0
            while shift < 28:
                size, more = size | (data[at] & 0x7F) << shift, data[at] >= 0x80
                at, shift = at + 1, shift + 7
                if not more:
                    break
            yield kind, data[at : at + min(size, 4)]
            skipped = max(0, at + size - end)
            at = min(at + size, end)
        kept = data[at:]


def _of_tables(file: Any) -> list[tuple[int, int]]:
    """The last row and column with anything in it of each sheet of .ods."""
    counter, parser = _Repeated(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = counter.start, counter.end
    while block := file.read(_BLOCK_BYTES):
        parser.Parse(block)
    return counter.spans


class _Repeated:
    """Rows and cells of .ods, each of which stands for as many as it says."""

    def __init__(self) -> None:
        self.spans = [(0, 0)]
        self._rows = self._repeats = self._column = self._full = self._cell = 0
        self._has = False

    def start(self, name: str, told: dict[str, str]) -> None:
        if name in _ODS_CELLS:
            self._cell = int(told.get("table:number-columns-repeated", 1))
            self._has = any(key.startswith("office:") or key == "table:formula" for key in told)
        elif name == "table:table-row":
            self._repeats = int(told.get("table:number-rows-repeated", 1))
            self._column = self._full = 0
        elif name == "table:table":
            self.spans.append((0, 0))
            self._rows = 0
        else:
            self._has = True

    def end(self, name: str) -> None:
        if name in _ODS_CELLS:
            self._column += self._cell
            if self._has:
                self._full = self._column
        elif name == "table:table-row":
            self._rows += self._repeats
            if self._full:
                self.spans[-1] = self._rows, max(self.spans[-1][1], self._full)
