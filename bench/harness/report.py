"""Rows and their outcomes become lines of a table, for a terminal and for Markdown."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from harness.model import Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.records import Record

PLAIN = ("commit", "date", "cpu", "cores", "memory_gib", "load_at_start", "system", "python")
PREFACE = """\
# Records

The newest run of each case on each machine; git keeps the older ones. `tools/benchmark_tables.py`
writes this page from the JSON beside it, which has each single measurement. Medians, with the least
and the most in brackets.
"""

Outcomes = dict[Measurement, list[dict[str, Any]]]


@dataclass(frozen=True)
class Line:
    """A row with its figures: medians, the spread of ours, the ratio and whether it is reached."""

    name: str
    figure: float | None
    least: float | None
    most: float | None
    unit: str
    other: float | None
    other_least: float | None
    other_most: float | None
    ratio: float | None
    target: float | None
    reached: bool | None
    notes: tuple[str, ...]


def line_of(row: Row, outcomes: Outcomes, judge: bool) -> Line:
    """Compare a row's measurements; what failed leaves its cells empty and says why."""
    own = figures(row, outcomes[row.ours])
    others = [figures(row, outcomes[other]) for other in row.against if counts(outcomes[other])]
    others = [values for values in others if values]
    pick = max if row.better == "higher" else min
    theirs = pick(others, key=median) if others else []
    figure = median(own) if own else None
    other = median(theirs) if theirs else None
    ratio = None
    if figure and other:
        ratio = figure / other if row.better == "higher" else other / figure
    judged = ratio if row.against else figure
    reached = None
    if judge and row.target is not None and judged is not None:
        at_least = bool(row.against) or row.better == "higher"
        reached = judged >= row.target if at_least else judged <= row.target
    return Line(
        name=row.name,
        figure=figure,
        least=min(own, default=None),
        most=max(own, default=None),
        unit=row.unit,
        other=other,
        other_least=min(theirs, default=None),
        other_most=max(theirs, default=None),
        ratio=ratio,
        target=row.target,
        reached=reached,
        notes=tuple(notes(row, outcomes)),
    )


def figures(row: Row, results: list[dict[str, Any]]) -> list[float]:
    return [result[row.key] for result in results if row.key in result]


def counts(results: list[dict[str, Any]]) -> bool:
    """Whether a peer's results may be compared: a peer that misses pairs may not."""
    return all(result.get("exact", True) for result in results)


def notes(row: Row, outcomes: Outcomes) -> Iterable[str]:
    """Failures, missed pairs and extrapolations."""
    for measurement in (row.ours, *row.against):
        for result in outcomes[measurement][-1:]:
            name = f"{measurement.case}, {measurement.environment} {measurement.function}"
            if "error" in result:
                yield f"{name} failed: {result['error']}"
            if "over" in result:
                yield f"{name} {measurement.options}: stopped after {result['over']:g} s"
            elif not result.get("exact", True):
                yield f"{name} {measurement.options}: recall {result['recall']:.4f}, not compared"
            if queries := result.get("extrapolated_from_queries"):
                yield f"{name}: extrapolated from {queries:,} queries"


def table(lines: list[Line]) -> str:
    """A Markdown table, aligned for a terminal too."""
    head = ["measurement", "ours", "compared with", "ratio", "target", "reached"]
    cells = [head, *(cells_of(line) for line in lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    text = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    text.insert(1, " | ".join("-" * width for width in widths))
    body = "\n".join(f"| {row} |" for row in text)
    remarks = [f"- {note}" for note in dict.fromkeys(note for line in lines for note in line.notes)]
    return "\n".join([body, "", *remarks, ""]) if remarks else body + "\n"


def cells_of(line: Line) -> list[str]:
    reached = {None: "", True: "yes", False: "NO"}[line.reached]
    return [
        line.name,
        spread(line.figure, line.least, line.most, line.unit),
        spread(line.other, line.other_least, line.other_most, line.unit),
        "" if line.ratio is None else f"{line.ratio:.2f}x",
        "" if line.target is None else f"{line.target:g}",
        reached,
    ]


def spread(figure: float | None, least: float | None, most: float | None, unit: str) -> str:
    if figure is None or least is None or most is None:
        return ""
    if least == most:
        return f"{figure:.3g} {unit}"
    return f"{figure:.3g} {unit} ({least:.3g} to {most:.3g})"


def recorded(lines: list[Line], outcomes: Outcomes, texts: list[dict[str, Any]]) -> dict[str, Any]:
    """What a record holds beside the machine: lines, texts, and each single measurement."""
    raw = [asdict(each) | {"results": result} for each, result in outcomes.items() if result]
    return {"texts": texts, "lines": [asdict(line) for line in lines], "measurements": raw}


def rounded(value: float) -> str:
    """Two significant digits, three from 100 on."""
    if not value:
        return "0"
    digits = 3 if abs(value) >= 100 else 2
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def accuracy_table(lines: list[dict[str, Any]]) -> str:
    """What experiments/accuracy.py found against brute force, as Markdown."""
    head = (
        "| corpus | documents | similarity | pairs | method | recall | precision | s | peak GiB |\n"
        "|---|---:|---:|---:|---|---:|---:|---:|---:|\n"
    )
    return head + "".join(f"| {' | '.join(accuracy_cells(line))} |\n" for line in lines)


def accuracy_cells(line: dict[str, Any]) -> list[str]:
    first = [line["corpus"], f"{line['documents']:,}", str(line["threshold"])]
    if "error" in line:
        return [*first, "", line["method"], f"failed: {line['error']}", "", "", ""]
    shares = ["" if line[key] is None else f"{line[key]:.4f}" for key in ("recall", "precision")]
    costs = [f"{line['seconds']:.2f}", f"{line['peak_gib']:.2f}"]
    return [*first, f"{line['true_pairs']:,}", line["method"], *shares, *costs]


def labels_table(labels: list[dict[str, Any]]) -> str:
    """What it found against the pairs that people put together, as Markdown."""
    head = (
        "| features | similarity | pairs found | precision | recall |\n|---|---:|---:|---:|---:|\n"
    )
    return head + "".join(
        f"| {line['features']} | {line['threshold']} | {line['pairs']:,}"
        f" | {line['precision']:.3f} | {line['recall']:.3f} |\n"
        for line in labels
    )


def described(text: dict[str, Any]) -> str:
    """One corpus that a run read."""
    return (
        f"{text['what']}: {text['documents']:,} documents, {text['text_mb']} MB of text,"
        f" {text['jsonl_mb']} MB of JSON lines, {text['exactly_repeated_share']:.1%} of the text"
        f" repeats an earlier document exactly; sha256 of the lines {text['sha256'][:16]}"
    )


def page(every: list[Record]) -> str:
    """results/README.md: every record with its machine and all its lines."""
    parts = [PREFACE]
    for record in every:
        case, machine, lines = record.path.parent.name, record.path.stem, record.value["lines"]
        parts += [f"## {case}, {machine}\n", "\n".join(facts_of(record)) + "\n"]
        if case == "accuracy":
            parts += [accuracy_table(lines), "Against the pairs that people put together:\n"]
            parts += [labels_table(record.value["labels"])]
        else:
            parts.append(table([Line(**line) for line in lines]))
    return "\n".join(parts)


def facts_of(record: Record) -> Iterable[str]:
    """The machine, versions and texts of a record as a list."""
    facts, path = record.machine, record.path
    yield f"- record: [{path.parent.name}/{path.name}]({path.parent.name}/{path.name})"
    yield "- " + ", ".join(
        f"{name.replace('_', ' ')} {facts[name]}" for name in PLAIN if facts[name] is not None
    )
    if facts["libraries"]:
        yield "- " + ", ".join(f"{name} {version}" for name, version in facts["libraries"].items())
    for name, versions in facts.get("peers", {}).items():
        yield f"- environment {name}: {versions}"
    for text in record.value.get("texts", []):
        yield f"- text: {described(text)}"
    if "remark" in facts:
        yield f"- {facts['remark']}"
