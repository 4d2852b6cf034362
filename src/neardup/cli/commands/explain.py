"""`neardup explain`: how a fingerprint comes about, or why two differ."""

from __future__ import annotations

import json as json_format
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import two_texts
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_recipe
from neardup.cli.screen import echo
from neardup.errors import UsageError

if TYPE_CHECKING:
    from neardup.fingerprinting.explanation import Explanation, PairExplanation
    from neardup.fingerprinting.recipe import Recipe

__all__ = ["explain"]


@takes_recipe(without=("top",))
@takes_documents(without=two_texts.WITHOUT)
def explain(
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="A [B]",
            help="Text files, also .gz; records such as news.jsonl:17; -.",
            show_default=False,
        ),
    ] = None,
    text_a: two_texts.TextA = None,
    text_b: two_texts.TextB = None,
    *,
    reading: Reading,
    top: two_texts.Tops = None,
    show: Annotated[int, typer.Option("--show", min=1, metavar="N", help="Features to show.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    recipe: Recipe,
) -> None:
    """Show how a document's fingerprint comes about: features, weights, hash bits and sums.

    With two documents: the bits in which they differ, and the features that pull those apart.

    Examples:
    neardup explain LICENSE --show 5

    neardup explain --bits 8 --ngram 1 --weight count --text-a "to be or not to be"
    """
    from neardup.fingerprinting.explanation import explain as explained

    explanation: Explanation | PairExplanation
    texts = two_texts.texts(documents or [], text_a, text_b, reading)
    if not texts:
        raise UsageError("name a document: a file, or --text-a TEXT")
    if len(texts) == 1:
        explanation = explained(texts[0], recipe=recipe, show=show, top=two_texts.tops(top))
    else:
        explanation = explained(texts[0], texts[1], recipe, show=show, top=two_texts.tops(top))
    if json:
        echo(json_format.dumps(explanation.to_dict()))
    else:
        echo(str(explanation))
