"""Tables for people, as text, and as HTML for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["PrintedPlans", "cells_of", "html_table", "text_table"]


class PrintedPlans(ABC):
    """A table of plans that prints itself."""

    plans: list[Any]

    def to_pylist(self) -> list[dict[str, Any]]:
        """One dict for each plan."""
        return [self._row(each) for each in self.plans]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows of `to_pylist`."""
        return iter(self.to_pylist())

    def __len__(self) -> int:
        """The number of plans."""
        return len(self.plans)

    @abstractmethod
    def __str__(self) -> str:
        """The table as text."""

    def __repr__(self) -> str:
        """The table as text."""
        return str(self)

    @abstractmethod
    def _row(self, each: Any) -> dict[str, Any]:
        """The cells of a plan, by column name."""


def cells_of(row: dict[str, Any], columns: Iterable[tuple[str, str, str]]) -> list[str]:
    """The cells of a row, in columns of (title, format, name); "" for None."""
    values = [(form, row.get(name)) for _, form, name in columns]
    return ["" if value is None else form.format(value) for form, value in values]


def text_table(lines: Sequence[Sequence[str]], names: int = 1) -> str:
    """Lines of aligned cells: names in the first column, numbers in the others."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (
        [*map(str.ljust, cells[:names], widths), *map(str.rjust, cells[names:], widths[names:])]
        for cells in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def html_table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """An HTML table of text cells; a row's first cell is its heading without a head row."""
    titled = f"<tr>{_cells('th', head)}</tr>" if head else ""
    titles = 0 if head else 1
    lines = (f"<tr>{_cells('th', row[:titles])}{_cells('td', row[titles:])}</tr>" for row in rows)
    return f"<table>{titled}{''.join(lines)}</table>"


def _cells(tag: str, values: Sequence[object]) -> str:
    return "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in values)
