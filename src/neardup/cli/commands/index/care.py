"""`neardup index remove`, `expire`, `stats`, `check`, `backup`, `restore` and `compact`."""

from __future__ import annotations

import sys
import time
from json import dumps
from typing import Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.commands.index.arguments import (
    Folder,
    identity_of,
    note_what_stays,
    opened_to_write,
)
from neardup.cli.screen import echo
from neardup.errors import DataError, UsageError
from neardup.runtime.progress import shown

__all__ = ["backup", "check", "compact", "expire", "remove", "restore", "stats"]

_MaxAge = Annotated[
    str,
    typer.Option(
        "--max-age", metavar="AGE", help="Remove documents added longer ago: 90s, 15m, 12h, 30d."
    ),
]
_Yes = Annotated[bool, typer.Option("--yes", help="Remove all documents without asking.")]


def remove(
    folder: Folder,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Ids of documents.", show_default=False)
    ],
    wait: shared.Wait = None,
) -> None:
    """Remove documents by their ids; if one is not stored, none is removed.

    Example:
    neardup index remove seen.index news.jsonl:17
    """
    note_what_stays(folder)
    with opened_to_write(folder, wait) as index:
        try:
            count = index.remove([identity_of(each, index.id_kind) for each in ids])
        except KeyError as error:
            raise DataError(
                f"{folder}: no document has the id {error.args[0]!r}; none was removed"
            ) from None
    echo(f"removed {count:,}", err=True)


def expire(folder: Folder, max_age: _MaxAge, yes: _Yes = False, wait: shared.Wait = None) -> None:
    """Remove the documents older than an age.

    If that is all of them, it asks on a terminal, and elsewhere requires --yes.

    Example:
    neardup index expire seen.index --max-age 30d
    """
    before = time.time() - shared.seconds_of("--max-age", max_age, "30d")
    note_what_stays(folder)
    with opened_to_write(folder, wait) as index:
        count = index.expire(before)
        left = len(index)
        if count and not left and not yes:
            _confirm(f"every document of {shown(folder)} ({count:,}) is older than {max_age}")
    echo(f"removed {count:,}, {left:,} left", err=True)


def stats(folder: Folder, json: shared.Json = False) -> None:
    """Show the size and settings of an index, and the cost of each way to search it.

    Example:
    neardup index stats seen.index
    """
    from neardup.index import DurableIndex
    from neardup.pipeline.index_questions import index_stats

    with DurableIndex.open(folder, readonly=True) as index:
        facts = index_stats(index)
    echo(dumps(facts.to_dict()) if json else str(facts))


def check(folder: Folder) -> None:
    """Verify every checksum; exit code 1 and what to do if something is damaged.

    Example:
    neardup index check seen.index
    """
    from neardup.index import DurableIndex

    with DurableIndex.open(folder, readonly=True) as index:
        problems = index.check()
        count = len(index)
    for problem in problems:
        echo(f"{shown(folder)}: {shown(problem)}", err=True)
    if problems:
        raise typer.Exit(1)
    echo(f"{shown(folder)}: {count:,} documents, all checksums right", err=True)


def backup(
    folder: Folder,
    target: Annotated[
        str, typer.Argument(metavar="COPY", help="A new folder.", show_default=False)
    ],
) -> None:
    """Copy the last commit of an index to a new folder, also while a service writes to it.

    On the same disk, files that never change are linked, which takes little time and space.

    Example:
    neardup index backup seen.index seen.backup
    """
    from neardup.index import DurableIndex

    with DurableIndex.open(folder, readonly=True) as index:
        index.backup(target)
    with DurableIndex.open(target, readonly=True) as index:
        echo(f"{shown(target)}: {len(index):,} documents", err=True)


def restore(
    source: Annotated[
        str, typer.Argument(metavar="COPY", help="A folder from backup.", show_default=False)
    ],
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A new folder.", show_default=False)],
) -> None:
    """Make an index of a backup, which stays as it is, once every checksum is verified.

    Example:
    neardup index restore seen.backup restored.index
    """
    from neardup.index import DurableIndex

    with DurableIndex.open(source, readonly=True, verify=True) as index:
        index.backup(folder)
        count = len(index)
    echo(f"{shown(folder)}: {count:,} documents, all checksums right", err=True)


def compact(folder: Folder, wait: shared.Wait = None) -> None:
    """Merge an index into one segment and free the space of removed documents.

    Example:
    neardup index compact seen.index
    """
    note_what_stays(folder)
    with opened_to_write(folder, wait) as index:
        index.compact()
        count = len(index)
    echo(f"{shown(folder)}: {count:,} documents", err=True)


def _confirm(what: str) -> None:
    """Ask whether to remove all documents; without a yes the removal is rolled back.

    Raises:
        UsageError: If there is nobody to ask.
        typer.Exit: If the answer is no.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"{what}: pass --yes to remove them all, or a longer --max-age")
    if not typer.confirm(f"neardup: {what}: remove them all?", err=True):
        echo("removed nothing", err=True)
        raise typer.Exit(1)
