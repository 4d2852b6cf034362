"""`neardup decontaminate`: leaves out the documents that contain questions of a benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents

if TYPE_CHECKING:
    from neardup.pipeline.run.summary import ContaminationSummary

__all__ = ["decontaminate"]

_FAILED_GATE = 1
_HUNDRED = 100


def _percentage(value: str) -> float:
    """The share that an option such as 0.1% or 0.001 means."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    number = number / _HUNDRED if text.endswith("%") else number
    if not 0 <= number <= 1:
        raise typer.BadParameter(f"{value!r}: use a share of the questions, such as 0.1%")
    return number


@takes_documents()
def decontaminate(
    inputs: shared.Inputs,
    against: Annotated[
        list[str],
        shared.match_option(
            "--against",
            metavar="Q...",
            help="Questions: files like the inputs; several after one --against.",
        ),
    ],
    output: Annotated[
        str | None,
        shared.results_option(
            "--output", "-o", metavar="CLEAN", help="The other documents: a file, - or a folder/."
        ),
    ] = None,
    found: Annotated[
        str | None,
        shared.results_option(
            "--found", metavar="FILE", help="Write the findings, with their places, to this table."
        ),
    ] = None,
    report: Annotated[
        str | None,
        shared.results_option(
            "--report", metavar="PAGE", help="A page: each question above its passage."
        ),
    ] = None,
    share: Annotated[
        float | None,
        shared.match_option(
            "--share",
            parser=shared.number_to_one,
            metavar="S",
            help="Least share of a question's features in a document. (default: 0.5)",
        ),
    ] = None,
    run: Annotated[
        int | None,
        shared.match_option(
            "--run",
            parser=shared.whole(2),
            metavar="WORDS",
            help="Or this number of words in a row; alone, it is the only rule.",
        ),
    ] = None,
    rule: Annotated[
        str | None,
        shared.match_option(
            "--rule",
            metavar="NAME",
            help="A published rule instead: gpt-3, llama, olmo or lm-eval.",
        ),
    ] = None,
    parts: Annotated[
        str | None,
        shared.match_option(
            "--parts",
            metavar="FIELD[,FIELD]",
            help="Fields of the questions, searched separately; by default the documents' --text.",
        ),
    ] = None,
    common: Annotated[
        float | None,
        shared.match_option(
            "--common",
            parser=shared.number_to_one,
            metavar="SHARE",
            help="Text that more than this share of the documents have is not a leak.",
        ),
    ] = None,
    cut: Annotated[
        int | None,
        shared.results_option(
            "--cut",
            parser=shared.whole(0),
            metavar="N",
            help="Cut out the passages, with N characters around, and keep the documents.",
        ),
    ] = None,
    max_cuts: Annotated[
        int | None,
        shared.results_option(
            "--max-cuts",
            parser=shared.whole(0),
            metavar="N",
            help="With --cut: drop a document with more cuts. (default: 10)",
        ),
    ] = None,
    question_id: Annotated[
        str | None,
        shared.input_option(
            "--question-id",
            metavar="FIELD",
            help="Field with the id of a question; by default --id.",
        ),
    ] = None,
    *,
    reading: Reading,
    fail_above: Annotated[
        float | None,
        shared.results_option(
            "--fail-above",
            parser=_percentage,
            metavar="SHARE",
            help="Exit with 1 if more of a benchmark's questions are found, such as 0.1%.",
        ),
    ] = None,
    csv_safe: shared.CsvSafe = False,
    engine: shared.EngineName = "local",
    master: shared.Master = None,
    workers: shared.Workers = None,
    memory: shared.RecordMemory = None,
    tmp: shared.Tmp = None,
    resume: Annotated[
        str | None,
        shared.run_option(
            metavar="DIR",
            help="Folder for the run's state: after a kill the same command continues.",
        ),
    ] = None,
    json: shared.Json = False,
) -> None:
    """Is the test in the training data? Leave out documents that contain questions of a benchmark.

    Examples:
    neardup decontaminate train.jsonl --against mmlu.jsonl gsm8k.parquet -o clean.jsonl

    neardup decontaminate train.jsonl --against mmlu.jsonl --report leaks.html --run 13

    neardup decontaminate 'train/*.parquet' --against mmlu.jsonl -o clean/ --parts question,answer

    neardup decontaminate train.jsonl --against mmlu.jsonl -o clean.jsonl --cut 200

    neardup decontaminate train.jsonl --against mmlu.jsonl --found found.csv --fail-above 0.1%
    """
    shared.check_json(json, output, found, reading.rejects, report)
    shared.check_folder(tmp)

    from neardup.cli.screen import progress, warm_up
    from neardup.contamination.cutting import MAX_CUTS, Cut
    from neardup.contamination.rules import leak_rule
    from neardup.errors import UsageError
    from neardup.pipeline import Benchmarks, CleanOutputs, Limits, decontaminate_files
    from neardup.pipeline import decontaminate as compute
    from neardup.runtime.free_memory import memory_bytes

    if cut is None and max_cuts is not None:
        raise UsageError("--max-cuts requires --cut N: pass both")
    cutting = None if cut is None else Cut(cut, MAX_CUTS if max_cuts is None else max_cuts)
    local = {
        "--cut": cut is not None, "--resume": resume, "--report": report, "--workers": workers,
        "--memory": memory,
    }  # fmt: skip
    shared.check_engine(engine, master, local)
    is_gate = fail_above is not None and engine == "local"  # an engine's files need a folder
    outputs = CleanOutputs(
        output, found, reading.rejects, csv_safe, cutting, resume, report, is_gate
    )
    leak = leak_rule(share, run, rule)
    read = reading.options(memory)
    fields = (read.text,) if parts is None else tuple((x.strip(),) for x in parts.split(","))
    identity = reading.id_field if question_id is None else question_id
    benchmarks = Benchmarks(tuple(against), fields, identity, common)
    using = Limits(memory_bytes(memory), tmp, workers=workers)
    if engine == "spark":
        from neardup import spark

        place = spark.Place(master or "sail", tmp)
        with progress() as reporter:
            summary = spark.decontaminate_files(
                inputs, benchmarks, outputs, leak, read, place, progress=reporter
            )
        _finish(summary, fail_above, json=json)
        return
    warm_up(lambda: compute(["one two three four"], ["one two three four"], run=3))
    with progress() as reporter:
        summary = decontaminate_files(inputs, benchmarks, outputs, leak, read, using, reporter)
    _finish(summary, fail_above, json=json)


def _finish(summary: ContaminationSummary, fail_above: float | None, *, json: bool) -> None:
    """Print the summary; exit with 1 if the gate of --fail-above failed."""
    from neardup.cli.screen import print_summary

    print_summary(summary, json)
    if fail_above is not None and summary.worst > fail_above:
        typer.echo(
            f"neardup: {_HUNDRED * summary.worst:.3g}% of a benchmark's questions were found, more"
            f" than {_HUNDRED * fail_above:.3g}%: the gate of --fail-above",
            err=True,
        )
        raise typer.Exit(_FAILED_GATE)
