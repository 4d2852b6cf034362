"""Tables for people: as text, and as HTML for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["PrintedPlans", "cells_of", "html_table", "text_table"]


class PrintedPlans(ABC):
    """Plans in a table; each is a printed row."""

    plans: list[Any]

    def to_pylist(self) -> list[dict[str, Any]]:
        """One dict a plan."""
        return [self._row(each) for each in self.plans]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows of `to_pylist`."""
        return iter(self.to_pylist())

    def __len__(self) -> int:
        """Plans."""
        return len(self.plans)

    @abstractmethod
    def __str__(self) -> str:
        """A table for people."""

    def __repr__(self) -> str:
        """The printed table."""
        return str(self)

    @abstractmethod
    def _row(self, each: Any) -> dict[str, Any]:
        """The cells of a plan, by name."""


def cells_of(row: dict[str, Any], columns: Iterable[tuple[str, str, str]]) -> list[str]:
    """The cells of a row in columns of a title, a format and a name; "" for None."""
    values = [(form, row.get(name)) for _, form, name in columns]
    return ["" if value is None else form.format(value) for form, value in values]


def text_table(lines: Sequence[Sequence[str]], names: int = 1) -> str:
    """Lines of cells below each other: the first are names, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (
        [*map(str.ljust, cells[:names], widths), *map(str.rjust, cells[names:], widths[names:])]
        for cells in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def html_table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Rows of cells, each as text; the first of a row is its heading where the table has none."""
    titled = f"<tr>{_cells('th', head)}</tr>" if head else ""
    titles = 0 if head else 1
    lines = (f"<tr>{_cells('th', row[:titles])}{_cells('td', row[titles:])}</tr>" for row in rows)
    return f"<table>{titled}{''.join(lines)}</table>"


def _cells(tag: str, values: Sequence[object]) -> str:
    return "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in values)
