"""Rows become lines of a table; runs become results/DATE-COMMIT.json and .md."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from model import Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
LIBRARIES = ("neardup", "numpy", "numba", "llvmlite", "pyarrow", "orjson")

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
    mine = figures(row, outcomes[row.ours])
    others = [figures(row, outcomes[other]) for other in row.against if counts(outcomes[other])]
    others = [values for values in others if values]
    pick = max if row.better == "higher" else min
    theirs = pick(others, key=median) if others else []
    figure = median(mine) if mine else None
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
        least=min(mine, default=None),
        most=max(mine, default=None),
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
            if not result.get("exact", True):
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


def machine() -> dict[str, Any]:
    """Where and with what the run was made."""
    return {
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "load_at_start": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def cpu_model() -> str:
    cpu = Path("/proc/cpuinfo")
    if not cpu.exists():
        return platform.processor()
    names = [line for line in cpu.read_text(encoding="utf8").splitlines() if "model name" in line]
    return names[0].partition(":")[2].strip() if names else platform.processor()


def commit() -> str:
    """Short hash of this checkout, which is what is measured, with -dirty where it differs."""
    name = git("rev-parse", "--short", "HEAD") or "unknown"
    return f"{name}-dirty" if git("status", "--porcelain", "--", "src") else name


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip()


def write(
    lines: list[Line], outcomes: Outcomes, facts: dict[str, Any], texts: list[dict[str, Any]]
) -> Path:
    """Keep a run under bench/results; the JSON has each single measurement."""
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"{facts['date'][:10]}-{facts['commit']}.md"
    raw = [asdict(measurement) | {"results": found} for measurement, found in outcomes.items()]
    value = {
        "machine": facts,
        "texts": texts,
        "lines": [asdict(line) for line in lines],
        "measurements": raw,
    }
    target.with_suffix(".json").write_text(json.dumps(value, indent=1) + "\n", encoding="utf8")
    target.write_text(page(lines, facts, texts), encoding="utf8")
    return target


def page(lines: list[Line], facts: dict[str, Any], texts: list[dict[str, Any]]) -> str:
    head = [f"# Benchmarks of {facts['date'][:10]}, commit {facts['commit']}", ""]
    for name, value in facts.items():
        shown = (
            ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        )
        head.append(f"- {name.replace('_', ' ')}: {shown}")
    head += [f"- text: {described(text)}" for text in texts]
    return "\n".join(
        [*head, "", "Medians, with the least and the most in brackets.", "", table(lines)]
    )


def described(text: dict[str, Any]) -> str:
    return (
        f"{text['what']}: {text['documents']:,} documents, {text['text_mb']} MB of text,"
        f" {text['jsonl_mb']} MB of JSON lines, {text['exactly_repeated_share']:.1%} of the text"
        f" repeats an earlier document exactly; sha256 of the lines {text['sha256'][:16]}"
    )
