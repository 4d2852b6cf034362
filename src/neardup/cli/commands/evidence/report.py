"""`neardup report`: writes the page about a run that has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_question
from neardup.errors import UsageError

if TYPE_CHECKING:
    from neardup.cli.recipe_options import Parts

__all__ = ["report"]


@takes_question()
@takes_documents(without=("rejects",))
def report(
    duplicates: Annotated[
        str,
        typer.Argument(
            metavar="DUPLICATES",
            help="What dedup --duplicates wrote.",
            show_default=False,
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[IN...]",
            help="The run's inputs; by default the stored ones.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")
    ] = "report.html",
    clusters: Annotated[
        str | None, typer.Option(metavar="FILE", help="The table of dedup --clusters.")
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
    fields: shared.ShownFields = None,
    workers: shared.Workers = None,
    memory: shared.Memory = None,
    tmp: shared.Tmp = None,
    parts: Parts,
) -> None:
    """Write the report of a run from its result files and its inputs.

    The run's inputs and options are stored next to DUPLICATES, in .NAME.options.json; name them if
    that file is missing. The decision of the run is used, not made again.

    Examples:
    neardup report dropped.csv --fields Email,Date

    neardup report dropped.jsonl news.jsonl -o report.html

    neardup report dropped.csv news.jsonl --clusters clusters.csv --id id --similarity 0.7
    """
    shared.check_folder(tmp)

    from neardup.cli.screen import echo, progress
    from neardup.pipeline import Choice, Inputs, Limits, report_files
    from neardup.pipeline.rule_of import rule_of
    from neardup.pipeline.run.kept_options import kept_inputs, kept_options, kept_rule
    from neardup.runtime.free_memory import memory_bytes
    from neardup.runtime.progress import shown as printable

    facts = kept_options(duplicates)
    options = facts.get("options", {})
    reading, inputs = reading.completed(facts), inputs or kept_inputs(duplicates, facts)
    if not inputs:
        raise UsageError(
            f"no inputs are stored next to {duplicates}: name the run's inputs after it"
        )
    if keep == "first" and date_format is None:
        keep, date_format = options.get("keep", keep), options.get("date_format")
    policy = options.get("policy", policy) if policy == "greedy" else policy
    choice = Choice(keep, policy, options.get("decisions"), date_format)
    named = (parts.question, similarity, distance, verify, measure, parts.recipe)
    rule = kept_rule(facts) if all(part is None for part in named) else None
    rule = rule or rule_of(*named)
    within = options.get("within") if within is None else within
    limits = Limits(memory_bytes(memory), tmp, workers)
    read = reading.options(memory, within=within, **choice.reading)
    names = shared.field_names(fields)
    about = shared.report_options(output, report_from, source, summary, names)
    assert about is not None  # noqa: S101  # there is a path
    files = (duplicates, clusters)
    sources = Inputs(inputs)
    with progress() as reporter:
        report_files(files, sources, about, rule, choice, read, limits, reporter)
    echo(f"wrote {printable(output)}", err=True)
