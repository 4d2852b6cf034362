"""`neardup compare`: how alike two documents are."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli import options as shared

__all__ = ["compare"]


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A text file, or -.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.", show_default=False)],
    json: shared.Json = False,
    recipe: shared.RecipeFile = None,
    tokens: shared.Tokens = None,
    ngram: shared.Ngram = None,
    weight: shared.Weight = None,
    hash_name: shared.Hash = None,
    bits: shared.Bits = None,
    normalize: shared.Normalize = None,
    casefold: shared.Casefold = None,
    idf: shared.Idf = None,
    top: shared.Top = None,
    stopwords: shared.Stopwords = None,
    language: shared.Language = None,
    fold_chinese: shared.FoldChinese = None,
) -> None:
    """Show two text files' fingerprints, their distance, and the similarity of their features.

    Example:
    neardup compare LICENSE README.md --ngram 1
    """
    made = shared.make_recipe(
        recipe,
        tokens=tokens,
        ngram=ngram,
        weight=weight,
        hash=hash_name,
        bits=bits,
        normalize=normalize,
        casefold=casefold,
        idf=idf,
        top=top,
        stopwords=stopwords,
        language=language,
        fold_chinese=fold_chinese,
    )

    from neardup.cli.screen import print_comparison
    from neardup.comparison import compare_files

    print_comparison(compare_files(a, b, made), json)
