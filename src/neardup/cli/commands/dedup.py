"""`neardup dedup`: remove near-duplicates from files."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_question
from neardup.errors import UsageError

if TYPE_CHECKING:
    from neardup.cli.recipe_options import Parts

__all__ = ["dedup"]


@takes_question()
@takes_documents()
def dedup(
    inputs: shared.Inputs,
    output: Annotated[
        str | None,
        shared.results_option(
            "--output", "-o", metavar="OUT", help="Kept documents: a file, - or a folder/."
        ),
    ] = None,
    similarity: shared.Similarity = None,
    distance: shared.ExactDistance = None,
    verify: shared.Verify = None,
    measure: shared.Measure = None,
    *,
    reading: Reading,
    within: shared.Within = None,
    keep: shared.Keep = "first",
    date_format: shared.DateFormat = None,
    policy: shared.Policy = "greedy",
    duplicates: Annotated[
        str | None,
        shared.results_option(
            metavar="FILE", help="Write dropped, kept, distance and similarity to this table."
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        shared.results_option(metavar="FILE", help="Write every document's cluster to this table."),
    ] = None,
    csv_safe: shared.CsvSafe = False,
    report: Annotated[
        str | None,
        shared.results_option(metavar="FILE.html", help="Write a page about the run to this file."),
    ] = None,
    report_from: shared.ReportFrom = None,
    source: shared.SourceField = None,
    summary: shared.SummaryFile = None,
    plan: shared.Plan = "auto",
    workers: shared.Workers = None,
    memory: shared.Memory = None,
    tmp: shared.Tmp = None,
    resume: Annotated[
        str | None,
        shared.run_option(
            metavar="DIR",
            help="Folder for the run's state: after a kill the same command continues.",
        ),
    ] = None,
    json: shared.Json = False,
    against: Annotated[
        list[str] | None,
        shared.match_option(
            "--against",
            metavar="INDEX|URL|FILE...",
            help="Drop documents that match one of an index (a folder, or neardup serve) or"
            " of files.",
        ),
    ] = None,
    only_against: Annotated[
        bool,
        shared.match_option(
            "--only-against", help="With --against: do not compare the inputs with each other."
        ),
    ] = False,
    update: Annotated[
        bool,
        shared.keep_option("--update", help="With --against: add the kept documents to the index."),
    ] = False,
    wait: shared.Wait = None,
    own_ids: Annotated[
        str,
        shared.match_option(
            "--own-ids",
            metavar="WHAT",
            help="With --against: seen also compares a document with the version of its own"
            " id, keep does not.",
        ),
    ] = "seen",
    decisions: Annotated[
        str | None,
        shared.match_option(
            metavar="FILE.jsonl", help="Answers of neardup review, which override the matching."
        ),
    ] = None,
    dry_run: Annotated[
        bool, shared.run_option("--dry-run", help="Print the plan and its cost, from a sample.")
    ] = False,
    engine: shared.EngineName = "local",
    master: shared.Master = None,
    parts: Parts,
) -> None:
    """Remove near-duplicate documents; kept records stay byte for byte.

    Examples:
    neardup dedup news.jsonl -o unique.jsonl

    neardup dedup news.jsonl -o unique.jsonl --distance 3 --verify 0.7

    neardup dedup news.jsonl -o unique.jsonl --preset pypi-simhash --distance 3

    neardup dedup a.jsonl.gz b.jsonl.gz -o unique/ --duplicates dropped.csv

    zcat crawl.gz | neardup dedup - -o - --text title,body > unique.jsonl

    neardup dedup news.jsonl -o unique.jsonl --report report.html

    neardup dedup news.jsonl --dry-run

    neardup dedup docs/ -o unique-docs/ --keep longest

    neardup dedup list.csv -o unique.csv --keep newest:changed --date-format %d.%m.%Y

    neardup dedup 's3://bucket/news/*.jsonl.gz' -o s3://bucket/unique/ --within language

    neardup dedup a.jsonl.gz b.jsonl.gz -o unique/ --resume run.state

    neardup dedup monday.jsonl -o new.jsonl --id id --against seen.index --update

    neardup dedup monday.jsonl -o new.jsonl --against news.jsonl --only-against

    neardup dedup news.parquet --clusters clusters.parquet --policy components

    neardup dedup 'crawl/*.parquet' -o unique/ --engine spark --master spark://head:7077
    """
    if all(path is None for path in (output, clusters, duplicates, report)) and not dry_run:
        raise UsageError(
            "nothing to write: pass -o OUT, --clusters FILE, --duplicates FILE or --report FILE"
        )
    shared.check_json(json, output, clusters, duplicates, reading.rejects, report, summary)
    shared.check_folder(tmp)
    preset = None if parts.recipe is None else parts.recipe.preset
    if wait is not None and not update:
        raise UsageError("--wait requires --update: a run that only reads an index never waits")
    waiting = shared.wait_seconds(wait)
    index, files = _against(against)
    _check_against(
        {"--update": update, f"--own-ids {own_ids}": own_ids != "seen", "--resume": bool(resume)},
        index, files, only=only_against, dry_run=dry_run,
    )  # fmt: skip
    from neardup.pipeline.run.service_index import is_service

    has_distance = distance is not None or (index is not None and similarity is None)
    if preset is not None and (not has_distance or verify is not None):
        raise UsageError(
            "--preset gives fingerprints only: pass --distance, without --similarity or --verify"
        )
    local: dict[str, object] = {
        "--resume": resume, "--update": update, "--dry-run": dry_run, "--workers": workers,
        "--own-ids": own_ids != "seen",
        "--memory": memory, "--plan": plan != "auto", "--decisions": decisions,
        "--only-against": only_against, "--against FILE": files,
        "--against URL": index is not None and is_service(index),
    }  # fmt: skip
    shared.check_engine(engine, master, local)

    from functools import partial

    from neardup.cli.screen import print_estimate, print_summary, print_warning, progress, warm_up
    from neardup.pipeline import Against, Choice, Limits, Outputs, dedup_files, dedup_texts
    from neardup.pipeline.estimate import estimate_run
    from neardup.pipeline.judgement.decisions import check_decisions
    from neardup.pipeline.reference_files import index_of_files
    from neardup.pipeline.rule_of import rule_of, rule_of_index
    from neardup.runtime.free_memory import memory_bytes

    choice = Choice(keep, policy, decisions, date_format)
    check_decisions(choice, index)  # before the index is opened for its rule
    stored = None if index is None else partial(rule_of_index, index)
    rule = rule_of(parts.question, similarity, distance, verify, measure, parts.recipe, stored)
    limits = Limits(memory_bytes(memory), tmp, workers, plan)
    read = reading.options(memory, within=within, **choice.reading)
    outputs = Outputs(
        output, duplicates, clusters, reading.rejects, csv_safe,
        shared.report_options(report, report_from, source, summary), resume,
    )  # fmt: skip
    print_warning(rule.doubt(), json)
    warm_up(
        lambda: dedup_texts(
            ["one", "one"], rule, replace(choice, keep="first", date_format=None), limits
        ),
        by_features=rule.by_features,
    )
    if dry_run:
        print_estimate(estimate_run(inputs, rule, choice, read, limits), json)
        return
    if engine == "spark":
        from neardup import spark

        with progress() as reporter:
            place = spark.Place(master or "sail", tmp)
            done = spark.dedup_files(
                inputs, outputs, rule, choice, read, place, progress=reporter, against=index,
            )  # fmt: skip
        print_summary(done, json)
        return
    with progress() as reporter, ExitStack() as stack:
        if files:
            index = stack.enter_context(index_of_files(files, rule, read, limits, reporter))
        seen = None
        if index is not None:
            seen = Against(index, update, own_ids, only_against, tuple(files), waiting)
        result = dedup_files(inputs, outputs, rule, choice, read, limits, reporter, seen)
    print_summary(result.summary, json)


def _check_against(
    named: dict[str, bool], index: str | None, files: list[str], *, only: bool, dry_run: bool
) -> None:
    """Refuse options that require an index, or another kind of --against."""
    if (index or files) and dry_run:
        raise UsageError("--dry-run plans a run without an index: leave out --against")
    if only and not (index or files):
        raise UsageError("--only-against requires --against INDEX or files")
    if named.pop("--resume") and files:
        raise UsageError("--resume requires --against INDEX: make one with neardup index create")
    if named["--update"] and index is None:
        raise UsageError("--update requires --against INDEX")
    for option, is_named in named.items():
        if is_named and not (index or files):
            raise UsageError(f"{option} requires --against INDEX")


def _against(paths: list[str] | None) -> tuple[str | None, list[str]]:
    """The --against of a run: an index or files.

    An address without an extension of records, which may be a service's, and a path that does not
    exist, are taken for an index.
    """
    from neardup.documents.extensions import format_of_path
    from neardup.pipeline.reference_files import is_index

    if not paths:
        return None, []
    first = paths[0]
    if "://" in first:
        names_index = format_of_path(first) is None
    else:
        names_index = is_index(first) or not (set("*?[") & set(first) or Path(first).exists())
    if len(paths) == 1 and names_index:
        return first, []
    return None, paths
