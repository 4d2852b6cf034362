"""What the commands of `neardup index` are told alike, and say alike."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.errors import UsageError
from neardup.runtime.signals import note_what_is_there

__all__ = ["Folder", "HitsFile", "Verify", "identity_of", "note_what_stays"]

Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="Folder of the index.", show_default=False)
]
HitsFile = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="HITS",
        help="For IN...: .parquet, .csv, .tsv or .jsonl; JSON lines are printed unless given.",
    ),
]
Verify = Annotated[
    bool, typer.Option("--verify", help="Verify every checksum of the index first, as check does.")
]


def identity_of(given: str, kind: str | None) -> str | int:
    """An id as an index has it: a number where its ids are numbers."""
    if kind != "int":
        return given
    try:
        return int(given)
    except ValueError:
        raise UsageError(f"id {given!r}: the ids of this index are whole numbers") from None


def note_what_stays(folder: str, how_to_go_on: str = "") -> None:
    """Should a signal come, say that what the index had committed is there."""
    note_what_is_there(f"what {folder} had committed stays{how_to_go_on}")
