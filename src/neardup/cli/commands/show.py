"""`neardup show`: shows each removed document of a run next to the kept one."""

from __future__ import annotations

import json as json_format
import os
import shutil
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.screen import echo, marked
from neardup.runtime.progress import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.pipeline.evidence.removed import Removed, RemovedDocument

__all__ = ["show"]

_STYLES: Final = {"equal": "", "removed": "red strike", "added": "green"}
_LEGEND: Final = {"removed": "only in the kept one", "added": "only in the dropped one"}


@takes_documents(without=("on_error", "rejects"))
def show(
    duplicates: Annotated[
        str,
        typer.Argument(
            metavar="DUPLICATES",
            help="What dedup --duplicates wrote.",
            show_default=False,
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[IN...]",
            help="The run's inputs; by default the stored ones, or the files that DUPLICATES"
            " names.",
            show_default=False,
        ),
    ] = None,
    number: Annotated[
        int,
        typer.Option(
            "--show", min=1, metavar="N", help="Number of documents, least similar first."
        ),
    ] = 20,
    context: Annotated[
        int,
        typer.Option(min=0, metavar="WORDS", help="Words to show on each side of a difference."),
    ] = 12,
    of: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only the pairs that this document is part of."),
    ] = None,
    fields: shared.ShownFields = None,
    *,
    reading: Reading,
    memory: shared.RecordMemory = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Show each removed document next to the kept one, word by word, least similar first.

    --text, --id, --encoding and others are those of the run, stored next to DUPLICATES, in
    .NAME.options.json; name them if that file is missing.

    Examples:
    neardup show dropped.csv

    neardup show dropped.csv --of a17

    neardup show dropped.csv --fields Email,Date

    neardup show dropped.csv news.jsonl --id id --show 100
    """
    from neardup.pipeline.evidence.removed import removed_documents
    from neardup.pipeline.run.kept_options import kept_inputs, kept_options

    facts, names = kept_options(duplicates), shared.field_names(fields)
    reading = reading.completed(facts)
    read, paths = reading.options(memory), inputs or kept_inputs(duplicates, facts, against=True)
    removed = removed_documents(duplicates, paths, read, number, reading.input_format, names, of)
    if json:
        for each in removed.documents:
            echo(json_format.dumps(each.to_dict()))
    elif sys.stdout.isatty():
        _print_in_colour(removed, context, of)
    else:
        for styled in _lines(removed, context, of):
            echo("".join(marked(kind, part) for kind, part in styled))


def _lines(removed: Removed, context: int, of: str | None) -> Iterator[list[tuple[str, str]]]:
    """The printed lines as runs of (kind, text); a kind is that of a difference, or "head"."""
    legend = [(kind, meaning) for kind, meaning in _LEGEND.items()]
    if removed.documents:
        yield [legend[0], ("equal", "  "), legend[1]]
    for at, each in enumerate(removed.documents, 1):
        yield [("equal", "")]
        yield [("head", f"{at} of {removed.total:,}{_measured(each)}")]
        yield [("equal", f"kept {shown(each.kept)}, dropped {shown(each.dropped)}")]
        for name, kept, dropped in each.fields:
            yield [("equal", f"{shown(name)}: "), *_both(kept, dropped)]
        diff = each.diff
        if diff is None:
            missing = [
                name
                for name, text in zip((each.kept, each.dropped), each.texts, strict=True)
                if text is None
            ]
            names = " and ".join(map(shown, missing))
            yield [("equal", f"the inputs do not contain {names}: name the files that do")]
            continue
        yield [(run.kind, shown(run.text, lines=True)) for run in diff.brief(context)]
        if any(diff.cut):
            yield [("head", f"{diff.cut[0]:,} and {diff.cut[1]:,} further words are not compared")]
    more = removed.total - len(removed.documents)
    if more:
        yield [("equal", "")]
        yield [("head", f"{more:,} more are at least as similar; --show {removed.total} shows all")]
    elif not removed.total:
        yield [("head", "nothing was removed" if of is None else f"{shown(of)} is not in any pair")]


def _both(kept: str | None, dropped: str | None) -> list[tuple[str, str]]:
    """The value that both documents have, or the two values."""
    if kept == dropped:
        return [("equal", shown(kept or ""))]
    return [("removed", shown(kept or "none")), ("equal", " "), ("added", shown(dropped or "none"))]


def _measured(each: RemovedDocument) -> str:
    similarity = "" if each.similarity is None else f"  similarity {each.similarity:.3f}"
    return f"{similarity}  distance {each.distance}" if each.distance is not None else similarity


def _print_in_colour(removed: Removed, context: int, of: str | None) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    lines: list[Any] = [
        Text.assemble(*((part, _STYLES.get(kind, "bold")) for kind, part in styled))
        for styled in _lines(removed, context, of)
    ]
    height = sum(-(-max(1, line.cell_len) // console.width) for line in lines)
    if height < shutil.get_terminal_size().lines or not sys.stdin.isatty():
        for line in lines:
            console.print(line, soft_wrap=True)
        return
    os.environ.setdefault("LESS", "-R")
    with console.pager(styles=True):
        for line in lines:
            console.print(line)
