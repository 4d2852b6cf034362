"""A table as HTML, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["html_table"]


def html_table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Rows of cells, each as text; the first of a row is its heading where the table has none."""
    titled = f"<tr>{_cells('th', head)}</tr>" if head else ""
    titles = 0 if head else 1
    lines = (f"<tr>{_cells('th', row[:titles])}{_cells('td', row[titles:])}</tr>" for row in rows)
    return f"<table>{titled}{''.join(lines)}</table>"


def _cells(tag: str, values: Sequence[object]) -> str:
    return "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in values)
