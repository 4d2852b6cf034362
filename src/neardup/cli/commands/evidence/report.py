"""`neardup report`: the page about a run that has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_question

if TYPE_CHECKING:
    from neardup.cli.recipe_options import Parts

__all__ = ["report"]


@takes_question()
@takes_documents(without=("rejects",))
def report(
    duplicates: Annotated[
        str,
        typer.Argument(
            metavar="DUPLICATES", help="What dedup --duplicates wrote.", show_default=False
        ),
    ],
    inputs: shared.Inputs,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")
    ] = "report.html",
    clusters: Annotated[
        str | None, typer.Option(metavar="FILE", help="What dedup --clusters wrote.")
    ] = None,
    similarity: shared.Similarity = None,
    distance: shared.ExactDistance = None,
    verify: shared.Verify = None,
    measure: shared.Measure = None,
    policy: shared.Policy = "greedy",
    keep: shared.Keep = "first",
    date_format: shared.DateFormat = None,
    *,
    reading: Reading,
    within: shared.Within = None,
    report_from: shared.ReportFrom = None,
    source: shared.SourceField = None,
    summary: shared.SummaryFile = None,
    workers: shared.Workers = None,
    memory: shared.Memory = None,
    tmp: shared.Tmp = None,
    made: Parts,
) -> None:
    """Write the report of a run from its result files and its inputs.

    Give the options that the run had; its decision is taken as it is, not made again.

    Examples:
    neardup report dropped.jsonl news.jsonl -o report.html

    neardup report dropped.csv news.jsonl --clusters clusters.csv --id id --similarity 0.7
    """
    shared.check_folder(tmp)

    from neardup.cli.screen import echo, progress
    from neardup.pipeline import Choice, Inputs, Limits, report_files
    from neardup.pipeline.rule_of import rule_of
    from neardup.runtime.free_memory import memory_bytes
    from neardup.runtime.progress import shown as printable

    choice = Choice(keep, policy, date_format=date_format)
    rule = rule_of(made.question, similarity, distance, verify, measure, made.recipe)
    limits = Limits(memory_bytes(memory), tmp, workers)
    read = reading.options(memory, within=within, **choice.reading)
    about = shared.report_options(output, report_from, source, summary)
    assert about is not None  # noqa: S101  # there is a path
    files = (duplicates, clusters)
    sources = Inputs(inputs)
    with progress() as shown:
        report_files(files, sources, about, rule, choice, read, limits, shown)
    echo(f"wrote {printable(output)}", err=True)
