"""`neardup compare`: how alike two documents are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli import two_texts
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_recipe

if TYPE_CHECKING:
    from neardup.fingerprinting.recipe import Recipe

__all__ = ["compare"]


@takes_recipe(without=("top",))
@takes_documents(without=two_texts.WITHOUT)
def compare(
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="A B",
            help="Text files, also .gz; records such as news.jsonl:17; -.",
            show_default=False,
        ),
    ] = None,
    text_a: two_texts.TextA = None,
    text_b: two_texts.TextB = None,
    *,
    reading: Reading,
    top: two_texts.Tops = None,
    words: Annotated[
        bool, typer.Option("--words", help="Show the words that differ as well.")
    ] = False,
    json: shared.Json = False,
    recipe: Recipe,
) -> None:
    """Show two documents' fingerprints, their distance, and the similarity of their features.

    Examples:
    neardup compare LICENSE README.md --ngram 1

    neardup compare news.jsonl:1 news.jsonl:4 --words

    neardup compare --text-a "on Monday" --text-b "on Sunday" --tokens chars
    """
    from neardup.cli.screen import print_comparison
    from neardup.fingerprinting.explanation import compare as compared
    from neardup.fingerprinting.explanation import word_diff

    a, b = two_texts.two_texts(documents or [], text_a, text_b, reading)
    comparison = compared(a, b, recipe, top=two_texts.tops(top))
    print_comparison(comparison, word_diff(a, b) if words else None, json)
