"""Spreadsheets: the cells of a sheet of a workbook, and cells written as a workbook.

The libraries are an extra, `neardup[excel]`: python-calamine reads, XlsxWriter writes.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import io
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from neardup.documents.sheet_sizes import MOST_TEXT, check_size, column_letters
from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Sheet", "as_table", "check_writer", "read_sheet", "workbook"]

MOST_ROWS: Final = 1_048_576
MOST_CHARACTERS: Final = 32_767
"""What a sheet and a cell of .xlsx hold."""
_EXACT: Final = 1 << 53
"""Numbers of a sheet are floats: whole ones from here on would lose digits."""
_EPOCH: Final = dt.datetime(1980, 1, 1)  # noqa: DTZ001 - the same bytes at any time and place
_INSTALL: Final = "install it with `pip install 'neardup[excel]'`"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet of a workbook: the first with anything in it, unless another was asked for.

    Args:
        name: Of the sheet.
        others: Names of the other sheets that are not empty.
        header: Names of the columns; the letter of one without a name.
        rows: Cells of each row that is not blank: "", str, bool, int, float, dates and times.
        numbers: Of each row, as the program shows it, from 1.
    """

    name: str
    others: list[str]
    header: list[str]
    rows: list[list[Any]]
    numbers: list[int]


def read_sheet(
    name: str, data: bytes, sheet_name: str | None = None, most_text: int = MOST_TEXT
) -> Sheet:
    """Read a sheet; its first row that is not blank names the columns.

    Args:
        name: What errors call the workbook.
        data: The workbook: .xlsx, .xlsm, .xlsb, .xls or .ods.
        sheet_name: The sheet; by default the first that is not empty.
        most_text: Characters that all cells may have together.

    Raises:
        UsageError: Without the extra, or without such a sheet.
        DataError: If it is damaged or too large, has a password or two columns of one name.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise UsageError(
            f"{name}: to read a spreadsheet needs an extra: {_INSTALL}, or save it as CSV UTF-8"
        ) from None
    check_size(name, data, most_text)
    try:
        with CalamineWorkbook.from_filelike(io.BytesIO(data)) as book:
            sheets = [book.get_sheet_by_name(each) for each in book.sheet_names]
            full = [sheet for sheet in sheets if sheet.start is not None]
            names = [sheet.name for sheet in full]
            first = _place(name, names, sheet_name)
            cells = full[first].to_python() if full else []
            begin = full[first].start if full else None
    except CalamineError as error:
        raise DataError(f"{name}: not a readable spreadsheet: {error}; save it again") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust, where a damaged file surprised it
            raise
        raise DataError(f"{name}: not a readable spreadsheet: {error}; save it again") from None
    first_row, first_column = begin or (0, 0)
    numbered = [
        (first_row + i + 1, row) for i, row in enumerate(cells) if any(x != "" for x in row)
    ]
    header = [_shown(cell) for cell in numbered[0][1]] if numbered else []
    header = [x or column_letters(first_column + i) for i, x in enumerate(header)]
    for each, count in Counter(header).items():
        if count > 1:
            raise DataError(f'{name}:{numbered[0][0]}: there are two columns "{each}"; rename one')
    rows = [[_plain(cell) for cell in row] for _, row in numbered[1:]]
    title = names.pop(first) if names else ""
    return Sheet(title, names, header, rows, [n for n, _ in numbered[1:]])


def _place(name: str, names: list[str], sheet: str | None) -> int:
    """The place of the sheet among those with cells."""
    if sheet is None:
        return 0
    if sheet not in names:
        there = ", ".join(f'"{each}"' for each in names) or "none"
        raise UsageError(f'{name}: no sheet "{sheet}" with cells; there are {there}')
    return names.index(sheet)


def as_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """The cells as columns of numbers, dates or booleans; of texts where kinds are mixed.

    Blank cells are null in the former, and empty texts in the latter.
    """
    columns = [_column([row[i] for row in rows]) for i in range(len(header))]
    return pa.table(columns, list(header))


def workbook(path: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Write one sheet as .xlsx: values only; texts stay texts, whatever they look like.

    Args:
        path: What errors call it.
        header: Names of the columns.
        rows: Cells, as those of a sheet; None is blank.

    Raises:
        UsageError: Without the extra.
        DataError: For more rows than a sheet holds, or longer texts than a cell does.
    """
    check_writer(path)
    import xlsxwriter

    kept, options = io.BytesIO(), {"in_memory": True, "default_date_format": "yyyy-mm-dd hh:mm:ss"}
    with xlsxwriter.Workbook(kept, options) as book:
        book.set_properties({"created": _EPOCH})
        days = book.add_format({"num_format": "yyyy-mm-dd"})
        times = book.add_format({"num_format": "hh:mm:ss"})
        sheet = book.add_worksheet()
        for at, row in enumerate([header, *rows]):
            if at == MOST_ROWS:
                raise DataError(f"{path}: a sheet holds {MOST_ROWS:,} rows; write .csv or .parquet")
            for column, cell in enumerate(row):
                if cell is None or cell == "":
                    continue
                value = _storable(cell)
                if isinstance(value, str):
                    if len(value.encode("utf-16-le")) > 2 * MOST_CHARACTERS:
                        raise DataError(
                            f"{path}:{at + 1}: a text of {len(value):,} characters, and a cell"
                            f" holds {MOST_CHARACTERS:,}; write .csv or .parquet"
                        )
                    sheet.write_string(at, column, value)
                elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
                    sheet.write_datetime(at, column, value, days)
                elif isinstance(value, dt.time):
                    sheet.write_datetime(at, column, value, times)
                else:
                    sheet.write(at, column, value)
    return kept.getvalue()


def check_writer(path: str) -> None:
    """Raise UsageError if .xlsx cannot be written here."""
    if importlib.util.find_spec("xlsxwriter") is None:
        raise UsageError(
            f"{path}: to write a spreadsheet needs an extra: {_INSTALL}, or write .csv"
        )


def _plain(cell: Any) -> Any:
    """Whole numbers as int: a sheet has floats only."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _EXACT:
        return int(cell)
    return cell


def _storable(cell: Any) -> Any:
    """A whole number as text where a float would lose digits; what has no cell type as text."""
    if isinstance(cell, bool | float | str | dt.date | dt.time | dt.timedelta):
        return cell
    return cell if isinstance(cell, int) and abs(cell) < _EXACT else str(cell)


def _shown(cell: Any) -> str:
    """A cell as text, as in the program's own CSV."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, dt.datetime):
        return cell.isoformat(" ")
    return str(_plain(cell))


def _at_midnight(day: dt.date) -> dt.datetime:
    return dt.datetime(day.year, day.month, day.day)  # noqa: DTZ001  # a sheet knows no time zones


def _column(cells: list[Any]) -> pa.Array:
    kinds = {type(cell) for cell in cells if cell != ""}
    for allowed, arrow_type in (
        ({int}, pa.int64()),
        ({int, float}, pa.float64()),
        ({bool}, pa.bool_()),
        ({dt.date}, pa.date32()),
        ({dt.date, dt.datetime}, pa.timestamp("us")),
        ({dt.time}, pa.time64("us")),
        ({dt.timedelta}, pa.duration("us")),
    ):
        if kinds and kinds <= allowed:
            values = [None if cell == "" else cell for cell in cells]
            if kinds == {dt.date, dt.datetime}:  # Arrow takes no date for a timestamp
                values = [_at_midnight(x) if type(x) is dt.date else x for x in values]
            return pa.array(values, arrow_type)
    return pa.array([_shown(cell) for cell in cells], pa.large_string())
