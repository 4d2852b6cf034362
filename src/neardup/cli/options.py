"""Options that several commands share; importing them loads nothing but Typer."""

from __future__ import annotations

import re
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from neardup.errors import FileError, UsageError
from neardup.hamming.plans.names import JOIN_PLANS, listed_plans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neardup.pipeline import ReportOptions

# An option of each part of the help.
input_option: Final = partial(typer.Option, rich_help_panel="Input")
match_option: Final = partial(typer.Option, rich_help_panel="What matches")
keep_option: Final = partial(typer.Option, rich_help_panel="What is kept")
results_option: Final = partial(typer.Option, rich_help_panel="Results")
run_option: Final = partial(typer.Option, rich_help_panel="Running")

Wait = Annotated[
    str | None,
    typer.Option(
        "--wait",
        metavar="TIME",
        help="Wait up to this time while another process writes to the index: 60s, 5m.",
        show_default="0s",
    ),
]
_HUNDRED: Final = 100


def whole(least: int) -> Any:
    """A parser of options that take a whole number from `least` up."""

    def parse(value: str) -> int:
        if not str(value).isdecimal() or int(value) < least:
            raise typer.BadParameter(f"{value!r}: use a whole number from {least} up")
        return int(value)

    return parse


def number_to_one(value: str) -> float:
    """Parse a number above 0, up to 1; the error of a percentage names the number meant."""
    text = str(value)
    try:
        number = float(text)
        if 0 < number <= 1:
            return number
    except ValueError:
        number = _meant(text)
    hint = f"; {number / 100:g}?" if 1 < number <= _HUNDRED else f"; {number:g}?" * (0 < number < 1)
    raise typer.BadParameter(f"{text!r}: use a number above 0, up to 1{hint}")


def _meant(text: str) -> float:
    """The number that a percentage or a number with a comma may mean; 0 for anything else."""
    try:
        return float(text.rstrip("% ").replace(",", "."))
    except ValueError:
        return 0.0


seed_option: Final = partial(typer.Option, "--seed", parser=whole(0), metavar="N")
"""Its help says of what."""

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="IN...",
        help="Files (.jsonl, .json, .csv, .tsv, .txt, .html, also .gz, .zst; .parquet, .arrow,"
        " .xlsx),"
        " folders,"
        " 'patterns*', URIs such as s3://; - is JSON lines from a pipe.",
        show_default=False,
    ),
]
Distance = Annotated[
    int,
    match_option(
        "--distance",
        "-k",
        parser=whole(0),
        metavar="BITS",
        help="Fingerprint bits that may differ.",
    ),
]
ExactDistance = Annotated[
    int | None,
    match_option(
        "--distance",
        "-k",
        parser=whole(0),
        metavar="BITS",
        help="Match by fingerprints instead: the most bits that may differ.",
    ),
]
Similarity = Annotated[
    float | None,
    match_option(
        "--similarity",
        "-s",
        parser=number_to_one,
        metavar="S",
        help="Least similarity of a match. (default: 0.7, and 0.8 with a recipe or --measure)",
    ),
]
Lowest = Annotated[
    float,
    typer.Option(
        "--lowest", parser=number_to_one, metavar="S", help="Least similarity that is searched."
    ),
]
Verify = Annotated[
    float | None,
    match_option(
        "--verify",
        parser=number_to_one,
        metavar="S",
        help="With --distance: least similarity as well.",
    ),
]
Measure = Annotated[
    str | None,
    match_option(
        "--measure", help="Similarity: jaccard, cosine, containment or dice. (default: jaccard)"
    ),
]
Memory = Annotated[str | None, run_option("--memory", metavar="SIZE", help="Budget, such as 2G.")]
RecordMemory = Annotated[
    str | None,
    run_option(
        "--memory", metavar="SIZE", help="Budget, such as 2G: one document may take a 16th of it."
    ),
]
EngineName = Annotated[str, run_option("--engine", help="local, or spark with the same result.")]
Master = Annotated[
    str | None,
    run_option(
        metavar="URL", help="Master of spark: sail, local[2], spark://..., sc://... (default: sail)"
    ),
]
Within = Annotated[
    str | None,
    match_option("--within", metavar="FIELD", help="Compare only equal values of a field."),
]
Workers = Annotated[
    int | None,
    run_option(
        "--workers",
        parser=whole(1),
        metavar="N",
        help="Number of threads; by default all available processors.",
    ),
]
Tmp = Annotated[str | None, run_option("--tmp", metavar="DIR", help="Folder for spill files.")]
CsvSafe = Annotated[
    bool, typer.Option("--csv-safe", help="Quote cells of CSV tables that begin as formulas.")
]
Json = Annotated[bool, results_option("--json", help="Print the summary as JSON.")]
Plan = Annotated[str, match_option("--plan", help=f"Search: {listed_plans(JOIN_PLANS)}.")]
Keep = Annotated[
    str,
    keep_option(
        help="The document to keep: first, last, longest, max:FIELD or min:FIELD (numbers),"
        " newest:FIELD"
        " or oldest:FIELD (dates)."
    ),
]
DateFormat = Annotated[
    str | None,
    keep_option(
        "--date-format",
        metavar="FORMAT",
        help="Format of dates that are texts, such as %d.%m.%Y; by default ISO 8601.",
    ),
]
Policy = Annotated[
    str,
    keep_option(
        help="greedy: drop documents that match a kept one. components: follow chains of matches."
    ),
]
ReportFrom = Annotated[
    float | None,
    results_option(
        "--report-from",
        parser=number_to_one,
        metavar="S",
        help="Least similarity in the report. (default: the threshold less 0.1)",
    ),
]
SourceField = Annotated[
    str | None,
    results_option("--source", metavar="FIELD", help="Field by which the report counts documents."),
]
SummaryFile = Annotated[
    str | None,
    results_option(
        "--summary", metavar="FILE.json", help="Write the report's numbers to this file."
    ),
]


ShownFields = Annotated[
    str | None,
    typer.Option(
        "--fields",
        metavar="FIELD[,FIELD]",
        help="Show these fields of the records next to the compared text.",
    ),
]


def field_names(fields: str | None) -> tuple[str, ...]:
    """The field names in --fields.

    Raises:
        UsageError: If one has no name.
    """
    names = () if fields is None else tuple(fields.split(","))
    if "" in names:
        raise UsageError(f"--fields is {fields!r}: name a field, or several with commas between")
    return names


def report_options(
    path: str | None,
    lowest: float | None,
    source: str | None,
    summary: str | None,
    fields: tuple[str, ...] = (),
) -> ReportOptions | None:
    """The options of the report about a run; None without --report.

    Raises:
        UsageError: If something is said about a report that is not asked for.
    """
    others = {"--report-from": lowest, "--source": source, "--summary": summary}
    if path is None:
        for name, value in others.items():
            if value is not None:
                raise UsageError(f"{name} requires --report FILE.html")
        return None
    from neardup.pipeline import ReportOptions

    command = shlex.join(["neardup", *sys.argv[1:]])
    return ReportOptions(path, lowest, source, summary, command, fields=fields)


def check_json(json: bool, *outputs: str | None) -> None:
    """Refuse --json together with results on standard output.

    Raises:
        UsageError: If --json is given and an output goes there too.
    """
    if json and "-" in outputs:
        raise UsageError("--json prints on the standard output: write the result to a file")


_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds_of(option: str, text: str, example: str) -> float:
    """The seconds that a time such as 90s or 30d means.

    Raises:
        UsageError: If it is not one.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if not match:
        raise UsageError(
            f"{option} is {text!r}: use a number and s, m, h, d or w, such as {example}"
        )
    return float(match[1]) * _SECONDS[match[2]]


def wait_seconds(wait: str | None) -> float:
    """The seconds that --wait means."""
    return 0.0 if wait is None else seconds_of("--wait", wait, "60s")


def check_folder(tmp: str | None) -> None:
    """Refuse a --tmp that is not a folder, before anything is read.

    Raises:
        FileError: If it is not a folder.
    """
    if tmp is not None and not Path(tmp).is_dir():
        raise FileError(f"--tmp is {tmp!r}: there is no such folder; create it first")


def check_reach(distance: int, bits: int) -> None:
    """Refuse a distance that any two fingerprints have at most.

    Raises:
        UsageError: If it is.
    """
    if distance >= bits:
        raise UsageError(
            f"--distance is {distance}, and fingerprints have {bits} bits, so that any two match:"
            " use a few bits, such as 3"
        )


def check_engine(engine: str, master: str | None, local: Mapping[str, object]) -> None:
    """Refuse an unknown engine, and options of another engine."""
    if engine not in {"local", "spark"}:
        raise UsageError(f"--engine is {engine!r}: use local or spark")
    if engine == "local" and master is not None:
        raise UsageError("--master requires --engine spark")
    for option, value in local.items():
        if engine == "spark" and value:
            raise UsageError(f"{option} requires --engine local: leave it out")
