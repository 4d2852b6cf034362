"""`neardup explain`: how a fingerprint comes about, or why two differ."""

from __future__ import annotations

import itertools
import json as json_format
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from neardup.cli import sides
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_recipe
from neardup.cli.screen import echo
from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.fingerprinting.explanation import Explanation, PairExplanation
    from neardup.fingerprinting.recipe import Recipe

__all__ = ["explain"]

_ONE, _ZERO, _UP, _DOWN = "bold green", "dim", "green", "red"
_SUM: Final = re.compile(r"(?<= )-?\d[\d.e+]*(?= |$)")


@takes_recipe(without=("top",))
@takes_documents(without=sides.WITHOUT)
def explain(
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="A [B]",
            help="Text files, also .gz; records such as news.jsonl:17; -.",
            show_default=False,
        ),
    ] = None,
    text_a: sides.TextA = None,
    text_b: sides.TextB = None,
    *,
    reading: Reading,
    top: sides.Tops = None,
    show: Annotated[int, typer.Option("--show", min=1, metavar="N", help="Features to show.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    made: Recipe,
) -> None:
    """Show how a document's fingerprint comes about: features, weights, hash bits and sums.

    With two documents: the bits in which they differ, and the features that pull those apart.

    Examples:
    neardup explain LICENSE --show 5

    neardup explain --bits 8 --ngram 1 --weight count --text-a "to be or not to be"
    """
    from neardup.fingerprinting.explanation import explain as explained

    found: Explanation | PairExplanation
    given = sides.texts(documents or [], text_a, text_b, reading)
    if not given:
        raise UsageError("name a document: a file, or --text-a TEXT")
    if len(given) == 1:
        found = explained(given[0], recipe=made, show=show, top=sides.tops(top))
    else:
        found = explained(given[0], given[1], made, show=show, top=sides.tops(top))
    if json:
        echo(json_format.dumps(found.to_dict()))
    elif sys.stdout.isatty():
        _print_in_colour(found)
    else:
        echo(str(found))


def _print_in_colour(found: Explanation | PairExplanation) -> None:
    from rich.console import Console

    from neardup.fingerprinting.explanation import Explanation

    console = Console(highlight=False)
    parts = _document(found) if isinstance(found, Explanation) else _pair(found)
    for part in parts:
        console.print(part)


def _document(found: Explanation) -> list[Any]:
    from neardup.fingerprinting.explanation.plain import (
        NEIGHBOURS,
        feature_rows,
        heading,
        sum_lines,
    )

    parts: list[Any] = [_plain(heading(found), "bold")]
    if found.features:
        rows: list[list[Any]] = [list(row) for row in feature_rows(found)]
        for row in rows[1:]:
            row[3] = _bits(row[3])
        parts.append(_table(rows, right=(1, 2)))
    if found.sums is None:
        parts.append(_plain(NEIGHBOURS))
    elif found.features:
        parts += [_sums(line) for line in sum_lines(found.sums)]
    return [*parts, _plain(f"fingerprint {found.digits or 'none: there are no tokens'}", "bold")]


def _pair(found: PairExplanation) -> list[Any]:
    from neardup.fingerprinting.explanation.plain import differing_rows, pair_head, pull_rows

    parts: list[Any] = [_plain(line, "bold") for line in pair_head(found)]
    if found.pulls:
        parts += ["", _table(pull_rows(found), right=(1, 2, 3, 4))]
    if found.differing:
        rows: list[list[Any]] = [list(row) for row in differing_rows(found)]
        for row in rows[1:]:
            row[1], row[3] = _bits(row[1]), _bits(row[3])
        parts += ["", _table(rows, right=(0, 1, 2, 3, 4))]
    return parts


def _plain(text: str, style: str = "") -> Any:
    from rich.text import Text

    return Text(text, style)


def _bits(digits: str) -> Any:
    from rich.text import Text

    runs = ("".join(run) for _, run in itertools.groupby(digits))
    return Text.assemble(*((run, _ONE if run[0] == "1" else _ZERO) for run in runs))


def _sums(line: str) -> Any:
    text = _plain(line)
    label = re.match(r"sums, bits [^:]*:|bits \d+ to \d+:?", line)
    for match in _SUM.finditer(line, label.end() if label else 0):
        if not line.startswith("bits") or ":" not in line:
            style = _DOWN if match[0].startswith("-") else _ZERO if match[0] == "0" else _UP
            text.stylize(style, *match.span())
    return text


def _table(rows: Sequence[Sequence[Any]], right: Sequence[int]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if i in right else "left", overflow="fold")
    for row in rows[1:]:
        table.add_row(*(_plain(cell) if isinstance(cell, str) else cell for cell in row))
    return table
