"""The two documents that `compare` and `explain` take, and the options of each."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from neardup.cli.recipe_options import recipe_option
from neardup.errors import UsageError

if TYPE_CHECKING:
    from neardup.cli.document_options import Reading

__all__ = ["WITHOUT", "TextA", "TextB", "Tops", "texts", "tops", "two_texts"]

TextA = Annotated[
    str | None, typer.Option("--text-a", metavar="TEXT", help="The first text itself.")
]
TextB = Annotated[
    str | None, typer.Option("--text-b", metavar="TEXT", help="The second text itself.")
]
Tops = Annotated[
    list[str] | None,
    recipe_option(
        "--top",
        metavar="N",
        help="Keep the N heaviest features only; given twice, of A and of B.",
        show_default=False,
    ),
]


WITHOUT: Final = ("id_field", "format_name", "on_error", "rejects")
"""Reading options that these commands lack."""


def tops(values: list[str] | None) -> int | tuple[int, int] | None:
    """The number or numbers of --top, which may be repeated for the second text.

    Raises:
        UsageError: If it is not a whole number from 1 up, or is given three times.
    """
    for each in values or []:
        if not each.isdecimal() or not int(each):
            raise UsageError(f"--top is {each!r}: use a whole number from 1 up")
    match [int(each) for each in values or []]:
        case []:
            return None
        case [one]:
            return one
        case [one, other]:
            return one, other
        case _:
            raise UsageError("--top is given three times or more: give one, or one for each text")


def texts(
    documents: list[str], first: str | None, second: str | None, reading: Reading
) -> list[str]:
    """The texts of the named documents, and the texts passed as options.

    Raises:
        UsageError: If there are more than two, standard input is named twice, or a sentence is
            given where a document is to be named.
        FileError, DataError: If one cannot be read.
    """
    if documents.count("-") > 1:
        raise UsageError("standard input (-) is named twice: name a file for one of them")
    if len(documents) + sum(x is not None for x in (first, second)) > 2:
        raise UsageError(f"{documents[-1]}: two documents are enough; leave one out")

    from neardup.pipeline.evidence.named_texts import read_document

    for name in documents:
        _check_no_text(name)
    how = reading.options(), reading.input_format
    texts_of_names = [read_document(name, *how) for name in documents]
    if first is not None:
        texts_of_names.insert(0, first)
    if second is not None:
        texts_of_names.append(second)
    return texts_of_names


def _check_no_text(name: str) -> None:
    """Refuse a text where a document's name is required; UsageError says how to pass it."""
    # Chinese and Japanese sentences have no spaces.
    is_text = len(name.split()) > 1 or not (name.isascii() or re.search(r"[./\\]", name))
    paths = (name, re.sub(r":\d+$", "", name))
    if is_text and not any(map(os.path.lexists, paths)):
        raise UsageError(
            f"there is no file {name!r:.60}: name one, or pass a text itself by --text-a TEXT or"
            " --text-b TEXT"
        )


def two_texts(
    documents: list[str], first: str | None, second: str | None, reading: Reading
) -> tuple[str, str]:
    """The result of `texts`, which must be exactly two.

    Raises:
        UsageError, FileError, DataError: As `texts`.
    """
    if len(documents) + sum(x is not None for x in (first, second)) < 2:
        raise UsageError("name two documents: files A and B, or --text-a TEXT and --text-b TEXT")
    one, other = texts(documents, first, second, reading)
    return one, other
