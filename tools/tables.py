"""A Markdown table, and where its figures are from: what every table of benchmarks is made of."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.records import Record


def table(head: str, rows: list[list[str]], sides: str) -> str:
    """A Markdown table; `sides` has l or r for each column."""
    rule = "|" + "|".join("---:" if side == "r" else "---" for side in sides) + "|"
    return "\n".join([f"| {head} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def told(page: Path, *sources: Record) -> str:
    """Where the figures above are from, below a table: a line for each machine and day."""
    groups: dict[str, list[str]] = {}
    for record in sources:
        facts = record.machine
        link = Path(os.path.relpath(record.path, page.parent)).as_posix()
        cpu = re.sub(r"\(R\)| Processor", "", facts["cpu"])
        machine = f"{facts['date'][:10]}, {cpu}, {facts['cores']} cores"
        about = (
            f"[{record.path.parent.name}]({link}) (commit {facts['commit']}, load {busy(record)})"
        )
        groups.setdefault(machine, []).append(about)
    return "".join(f"\n{machine}:\n" + ",\n".join(each) + ".\n" for machine, each in groups.items())


def busy(record: Record) -> str:
    """The load of the machine: at the start, or the least and most of parts that were measured."""
    parts = [
        x["at"]["load"]
        for m in record.value.get("measurements", [])
        for x in m["results"]
        if "at" in x
    ]
    load = record.machine["load_at_start"]
    if parts:
        return f"{min(parts):.1f} to {max(parts):.1f}"
    return "not noted" if load is None else f"{load:.1f}"
