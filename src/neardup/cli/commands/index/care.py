"""`neardup index` over time: removal and expiry, statistics, checks, backups, compaction."""

from __future__ import annotations

import re
import sys
import time
from json import dumps
from typing import Annotated, Final

import typer

from neardup.cli import options as shared
from neardup.cli.commands.index.given import Folder, identity_of, note_what_stays
from neardup.cli.screen import echo
from neardup.errors import DataError, UsageError
from neardup.runtime.progress import shown

__all__ = ["backup", "check", "compact", "expire", "remove", "restore", "stats"]

_MaxAge = Annotated[
    str,
    typer.Option(
        "--max-age", metavar="AGE", help="Remove what was added longer ago: 90s, 15m, 12h, 30d."
    ),
]
_Yes = Annotated[bool, typer.Option("--yes", help="Remove all documents without a question.")]
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def remove(
    folder: Folder,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Ids of documents.", show_default=False)
    ],
) -> None:
    """Remove documents by their ids; if one is not stored, none is removed.

    Example:
    neardup index remove seen.index news.jsonl:17
    """
    from neardup.index import DurableIndex

    note_what_stays(folder)
    with DurableIndex.open(folder, create=False) as index:
        try:
            count = index.remove([identity_of(each, index.id_kind) for each in ids])
        except KeyError as error:
            raise DataError(
                f"{folder}: no document has the id {error.args[0]!r}; none was removed"
            ) from None
    echo(f"removed {count:,}", err=True)


def expire(folder: Folder, max_age: _MaxAge, yes: _Yes = False) -> None:
    """Remove the documents that were added longer ago than an age.

    Where that is all of them, it asks on a terminal, and elsewhere needs --yes.

    Example:
    neardup index expire seen.index --max-age 30d
    """
    before = time.time() - _seconds(max_age)
    from neardup.index import DurableIndex

    note_what_stays(folder)
    with DurableIndex.open(folder, create=False) as index:
        count = index.expire(before)
        left = len(index)
        if count and not left and not yes:
            _confirm(f"every document of {shown(folder)} ({count:,}) is older than {max_age}")
    echo(f"removed {count:,}, {left:,} left", err=True)


def stats(folder: Folder, json: shared.Json = False) -> None:
    """Say what an index holds, how it is searched, and what each way to search it costs.

    Example:
    neardup index stats seen.index
    """
    from neardup.index import DurableIndex
    from neardup.pipeline.index_questions import index_stats

    with DurableIndex.open(folder, readonly=True) as index:
        found = index_stats(index)
    echo(dumps(found.to_dict()) if json else str(found))


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

    Files that never change are linked on the same disk, so that it takes little time and room.

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
        str, typer.Argument(metavar="COPY", help="What backup made.", show_default=False)
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


def compact(folder: Folder) -> None:
    """Bring an index into one piece and give back the room of removed documents.

    Example:
    neardup index compact seen.index
    """
    from neardup.index import DurableIndex

    note_what_stays(folder)
    with DurableIndex.open(folder, create=False) as index:
        index.compact()
        count = len(index)
    echo(f"{shown(folder)}: {count:,} documents", err=True)


def _confirm(what: str) -> None:
    """Ask whether to remove all; what is not committed is forgotten unless the answer is yes.

    Raises:
        UsageError: If there is nobody to ask.
        typer.Exit: If the answer is no.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"{what}: pass --yes to remove them all, or a longer --max-age")
    if not typer.confirm(f"neardup: {what}: remove them all?", err=True):
        echo("removed nothing", err=True)
        raise typer.Exit(1)


def _seconds(age: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", age.strip())
    if not found:
        raise UsageError(f"--max-age is {age!r}: use a number and s, m, h, d or w, such as 30d")
    return float(found[1]) * _SECONDS[found[2]]
