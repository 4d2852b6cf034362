"""`neardup compare`: how alike two documents are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared

if TYPE_CHECKING:
    from neardup.fingerprinting.recipe import Recipe

__all__ = ["compare"]


@shared.takes_recipe(without=("preset",))
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A text file, or -.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.", show_default=False)],
    json: shared.Json = False,
    *,
    made: Recipe,
) -> None:
    """Show two text files' fingerprints, their distance, and the similarity of their features.

    Example:
    neardup compare LICENSE README.md --ngram 1
    """
    from neardup.cli.screen import print_comparison
    from neardup.pipeline.comparison import compare_files

    print_comparison(compare_files(a, b, made), json)
