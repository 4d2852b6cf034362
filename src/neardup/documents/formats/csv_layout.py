"""How a CSV file is laid out: the character between its fields, told from its first lines."""

from __future__ import annotations

import csv
import re
from typing import Final

__all__ = ["separator_line", "sniffed_delimiter"]

_CANDIDATES: Final = ",;\t|"
_LINES: Final = 6
_SEPARATOR: Final = re.compile(r"\ufeff?\"?sep=(.)\"?\r?\n", re.ASCII)


def separator_line(text: str) -> str | None:
    """The delimiter that a first line "sep=;" names, as spreadsheets write it; None without one."""
    found = _SEPARATOR.match(text)
    return found[1] if found is not None and found[1].isascii() else None


def sniffed_delimiter(text: str) -> str:
    r"""Tell the delimiter from the first lines of a file, which end with a whole line.

    A comma unless another character divides the header into more fields and the records after it
    into as many, or there is no comma in the header at all.

    Example:
        >>> sniffed_delimiter("id;title, long;text\n1;a, b;c\n")
        ';'
    """
    best, most = ",", 1
    for mark in _CANDIDATES:
        widths = _widths(text, mark)
        if not widths or widths[0] <= most:
            continue
        if mark == "," or most == 1 or all(width == widths[0] for width in widths[1:]):
            best, most = mark, widths[0]
    return best


def _widths(text: str, mark: str) -> list[int]:
    """Fields of the first records; a record that is cut or broken ends the list."""
    widths: list[int] = []
    rows = csv.reader(text.splitlines(keepends=True), delimiter=mark, strict=True)
    try:
        for row in rows:
            widths += [len(row)] if row else []
            if len(widths) == _LINES:
                break
    except csv.Error:
        pass
    return widths
