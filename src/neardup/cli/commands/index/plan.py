"""`neardup index plan`: estimates what an index costs before it is built."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli import options as shared
from neardup.errors import UsageError

__all__ = ["plan"]


def plan(
    documents: Annotated[
        int, typer.Argument(min=0, metavar="N", help="Number of documents.", show_default=False)
    ],
    similarity: Annotated[
        float | None,
        typer.Option(
            "--similarity", "-s", metavar="S", help="Plan an index by similarity: the least, 0.8."
        ),
    ] = None,
    similarity_measure: Annotated[
        str | None,
        typer.Option(
            "--similarity-measure",
            help="Measure of similarity: jaccard (default), cosine, containment or dice.",
        ),
    ] = None,
    features: Annotated[
        float | None,
        typer.Option(
            metavar="F",
            help="Features of a document, by similarity: 300 (default) for 2 kB of text.",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="text", help="With --similarity: store texts as well, as in create."),
    ] = None,
    distance: shared.ExactDistance = None,
    bits: Annotated[
        int | None, typer.Option(min=1, help="Width of the fingerprints.", show_default="64")
    ] = None,
    json: shared.Json = False,
) -> None:
    """Show what searching a number of documents costs: memory, disk and time, plan by plan.

    Examples:
    neardup index plan 10000000 --similarity 0.8

    neardup index plan 50000000 --distance 3
    """
    from neardup.cli.screen import print_plans
    from neardup.hamming import plan as compare
    from neardup.index.index_plans import plan_similar

    if similarity is None:
        if any(each is not None for each in (similarity_measure, features, store)):
            raise UsageError(
                "--similarity-measure, --features and --store require --similarity: give it"
            )
        reach = 3 if distance is None else distance
        width = bits or 64
        shared.check_reach(reach, width)
        print_plans(compare(documents, reach, width), json)
        return
    for name, value in (("--distance", distance), ("--bits", bits)):
        if value is not None:
            raise UsageError(
                f"{name} is {value} and --similarity {similarity}: an index has one of them"
            )
    measure = similarity_measure or "jaccard"
    kept = store or "features"
    table = plan_similar(documents, similarity, measure, features=features, store=kept)
    print_plans(table, json)
