"""`neardup calibrate`: which threshold, distance and width suit a corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_recipe

if TYPE_CHECKING:
    from neardup.fingerprinting.recipe import Recipe

__all__ = ["calibrate"]


@takes_recipe(without=("preset",))
@takes_documents(without=("rejects",))
def calibrate(
    inputs: shared.Inputs,
    sample: Annotated[
        int,
        typer.Option(parser=shared.whole(2), metavar="N", help="Documents to look at, at random."),
    ] = 20_000,
    lowest: shared.Lowest = 0.3,
    similarity: Annotated[
        float | None,
        typer.Option(
            "--similarity",
            "-s",
            metavar="S",
            help="The threshold to advise on. (default: one in a valley, if there is one)",
        ),
    ] = None,
    recall: Annotated[
        float,
        typer.Option(
            parser=shared.number_to_one, metavar="R", help="What the advised distance should find."
        ),
    ] = 0.95,
    measure: shared.Measure = "jaccard",
    *,
    reading: Reading,
    seed: Annotated[int, shared.seed_option(help="Of the sample.")] = 0,
    report: Annotated[
        str | None,
        shared.results_option(
            metavar="FILE.html", help="Write a page with curves and example pairs."
        ),
    ] = None,
    workers: shared.Workers = None,
    memory: shared.Memory = None,
    tmp: shared.Tmp = None,
    json: shared.Json = False,
    made: Recipe,
) -> None:
    """Tell, without labels, what each threshold and distance would find, and what it would take.

    All inputs are read once; a random sample is compared with itself, exactly.

    Examples:
    neardup calibrate news.jsonl --report calibration.html

    neardup calibrate 'crawl/*.jsonl.gz' --sample 50000 --similarity 0.8
    """
    shared.check_folder(tmp)

    from json import dumps

    from neardup.cli.screen import echo, progress, warm_up
    from neardup.pipeline import Choice, Limits, Rule, dedup_texts
    from neardup.pipeline.calibration.calibrate import Asked, calibrate_files
    from neardup.runtime.free_memory import memory_bytes

    asked = Asked(sample, lowest, similarity, recall, measure, seed, report)
    limits = Limits(memory_bytes(memory), tmp, workers)
    read, input_format = reading.options(memory), reading.input_format
    warm_up(
        lambda: dedup_texts(["one", "one"], Rule(recipe=made), Choice(), limits), by_features=True
    )
    with progress() as shown:
        found = calibrate_files(inputs, asked, made, read, limits, shown, input_format)
    echo(dumps(found.to_dict()) if json else str(found))
