"""The table of growth: by which power the seconds of a run grow with its documents."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from harness.records import Record, medians, newest
from harness.report import rounded
from tables import table, told

if TYPE_CHECKING:
    from pathlib import Path


def growth(page: Path) -> str:
    """One row a series; the power of the matching pairs where they were counted."""
    record = newest("growth")
    rows = []
    for each in record.value["measurements"]:
        options, found = json.loads(each["options"]), medians(each["results"])
        if options["way"] == "pairs" or len(found.get("n", ())) < 2:
            continue
        shape, similarity = options["shape"], options["similarity"]
        what = options["way"]
        if "measure" in options:
            what = f"{what}, {options['measure']}"
        rows.append(
            [
                shape,
                str(similarity),
                what,
                f"{found['n'][-1]:,}",
                rounded(found["seconds"][-1]),
                f"{found['value']:.2f}",
                f"{found['highest']:.2f}",
                pairs_power(record, shape, similarity),
            ]
        )
    head = "corpus | similarity | way | documents | cpu s | power | most | of the pairs"
    return table(head, rows, "lrlrrrrr") + told(page, record)


def pairs_power(record: Record, shape: str, similarity: float) -> str:
    """By which power the matching pairs grow over the last doublings, empty if not counted."""
    found: dict[str, Any] = record.find("series", shape=shape, similarity=similarity, way="pairs")
    counts = found.get("found", [])[-4:]
    if len(counts) < 2 or not counts[0]:
        return ""
    return f"{math.log2(counts[-1] / counts[0]) / (len(counts) - 1):.2f}"
