"""Options and output that several commands of `neardup index` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import READING_OPTIONS
from neardup.errors import UsageError
from neardup.runtime.signals import note_what_is_there

if TYPE_CHECKING:
    from neardup.index import DurableIndex

__all__ = [
    "ExtractOfIndex", "Folder", "HitsFile", "Verify", "check_one_query", "given_options",
    "identity_of", "note_what_stays", "opened_to_write",
]  # fmt: skip

Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="Folder of the index.", show_default=False)
]
ExtractOfIndex = Annotated[
    str | None,
    typer.Option(
        "--extract",
        metavar="main|trafilatura|all|none",
        help="Of HTML an index that is made compares the main content, all visible text or the"
        " markup too.",
    ),
]
HitsFile = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="HITS",
        help="For IN...: .parquet, .csv, .tsv or .jsonl; by default JSON lines are printed.",
    ),
]
Verify = Annotated[
    bool, typer.Option("--verify", help="Verify every checksum of the index first, as check does.")
]


_OF_FILES = ("output", *READING_OPTIONS, "memory", "csv_safe")


def given_options(context: typer.Context, *names: str) -> list[str]:
    """The names of a command's options, among these parameters, that its command line has."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [
        each.opts[0]
        for each in context.command.params
        if (source := sources.get(each.name or "")) is not None and source.name != "DEFAULT"
    ]


def check_one_query(context: typer.Context) -> None:
    """Refuse options that only queries of files have.

    Raises:
        UsageError: For the first that is given.
    """
    for option in given_options(context, *_OF_FILES):
        raise UsageError(f"{option} is for IN...: the answer to one query is printed")


def identity_of(text: str, kind: str | None) -> str | int:
    """An id as the index stores it: a number if its ids are numbers."""
    if kind != "int":
        return text
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"id {text!r}: the ids of this index are whole numbers") from None


def opened_to_write(folder: str, wait: str | None, *, verify: bool = False) -> DurableIndex:
    """The index in a folder, open for writing once no other process writes to it."""
    from neardup.index import DurableIndex

    seconds = shared.wait_seconds(wait)
    return DurableIndex.open(folder, create=False, verify=verify, wait=seconds)


def note_what_stays(folder: str, how_to_go_on: str = "") -> None:
    """Note for an interrupt that the committed documents of an index stay."""
    note_what_is_there(f"what {folder} had committed stays{how_to_go_on}")
