"""A tree of lines and tables, printed as text or as HTML."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from neardup.runtime.printed_tables import html_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Table", "cells_wide", "html_of", "text_of"]

_STYLE: Final = """<style>
.neardup{font:13px/1.35 system-ui,sans-serif;overflow-x:auto}
.neardup table{border-collapse:collapse;margin:.4em 0;font:12px monospace}
.neardup th,.neardup td{padding:1px 5px;text-align:left;white-space:nowrap;border:0}
</style>"""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, the first of which are the columns' names.

    Args:
        rows: The cells.
        right: Columns of numbers, which end below each other.
    """

    rows: Sequence[Sequence[str]]
    right: Sequence[int]


def text_of(parts: Iterable[str | Table]) -> str:
    """Lines for a terminal."""
    return "\n".join(
        line for part in parts for line in ([part] if isinstance(part, str) else _aligned(part))
    )


def html_of(parts: Iterable[str | Table]) -> str:
    """Paragraphs and tables for a notebook."""
    shown = (
        html_table(part.rows[1:], part.rows[0])
        if isinstance(part, Table)
        else f"<div>{escape(part)}</div>"
        for part in parts
    )
    return f'{_STYLE}<div class="neardup">{"".join(shown)}</div>'


def _aligned(table: Table) -> Iterator[str]:
    rows = table.rows
    count = max(map(len, rows))
    widths = [max(cells_wide(row[i]) for row in rows if i < len(row)) for i in range(count)]
    for row in rows:
        cells = []
        for i, cell in enumerate(row):
            pad = " " * (widths[i] - cells_wide(cell))
            cells.append(pad + cell if i in table.right else cell + pad)
        yield "  ".join(cells).rstrip()


def cells_wide(text: str) -> int:
    """Terminal cells that a text takes: ideographs take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
