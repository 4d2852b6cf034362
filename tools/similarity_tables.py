"""The table of the index by similarity, beside its peers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness.records import medians, newest
from harness.report import rounded
from tables import table, told

if TYPE_CHECKING:
    from pathlib import Path

    from harness.records import Record


def similar_index(page: Path) -> str:
    """Asking an index by similarity, ours and peers at equal recall, then as documented."""
    record = newest("similar_index")
    rows = [similar_row(*each) for each in similar_measurements(record)]
    head = (
        "stored | | a right answer, us | tokens, sketch | look-up | verifying | adding"
        " | recall, 0.8 to 0.9 | at 0.8 | precision | bytes a text"
    )
    return table(head, rows, "rlrrrrrrrrr") + told(page, record)


def similar_measurements(record: Record) -> list[tuple[dict[str, Any], str, dict[str, Any]]]:
    """Options, name and medians of what was measured in memory."""
    found = []
    for each in record.value["measurements"]:
        options, name = json.loads(each["options"]), each["environment"]
        if each["function"] == "disk" or not each["results"]:
            continue
        name = "**neardup**" if each["function"] == "ours" else f"{name}, {setting(each)}"
        found.append((options, name, medians(each["results"])))
    order = {name: at for at, (_, name, _) in enumerate(found)}
    return sorted(found, key=lambda x: (x[0]["n"], x[0].get("documented", False), order[x[1]]))


def setting(measured: dict[str, Any]) -> str:
    """A peer's setting, in few words."""
    had = measured["results"][-1].get("setting", {})
    shown = "as documented, " if json.loads(measured["options"])["documented"] else ""
    if "bands" in had:
        return f"{shown}{had['bands']} bands of {had['hashes']}"
    if had.get("tables"):
        return f"{had['tables']} tables of {had['bits']} bits, {had['flips']} flips"
    return "flat" if had else ""


def similar_row(options: dict[str, Any], name: str, found: dict[str, Any]) -> list[str]:
    """One line; nothing of what was not measured."""
    first = [f"{options['n']:,}", name]
    if "over" in found or "error" in found:
        why = f"more than {found['over']:g} s" if "over" in found else "failed"
        return [*first, why, *[""] * 8]
    times = ("value", "sketch_us", "look_us", "verify_us", "build_us")
    shares = [f"{found[key]:.3f}" for key in ("recall", "recall_at", "precision")]
    return [
        *first,
        *(rounded(found[key]) if key in found else "" for key in times),
        *shares,
        f"{round(found['bytes_per_row'], -1):,.0f}",
    ]
