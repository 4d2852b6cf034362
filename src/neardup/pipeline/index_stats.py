"""Say what a durable index holds, and what the ways to search it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from neardup.hamming.search.comparison import PlanTable
    from neardup.index.durable.durable_index import DurableIndex
    from neardup.index.index_plans import SimilarPlanTable

__all__ = ["IndexStats", "index_stats"]

SAMPLE_ROWS: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class IndexStats:
    """What an index holds, and what the ways to search it cost.

    Args:
        held: As DurableIndex.stats gives it.
        plans: Compared for as many documents as it has; None where it has none.
    """

    held: dict[str, Any]
    plans: PlanTable | SimilarPlanTable | None

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return {**self.held, "plans": self.plans.to_pylist() if self.plans else []}

    def __str__(self) -> str:
        """Lines for people."""
        held = self.held
        by_distance = "similarity" not in held
        lines = [
            f"documents    {held['documents']:,}, and {held['removed']:,} removed ones to compact",
            *(_by_distance(held) if by_distance else _by_similarity(held)),
            f"ids          {_IDS[held['ids']]}",
            *([f"stored       {_STORED[held['store']]}"] if by_distance else []),
            f"on disk      {held['bytes_on_disk']:,} bytes, {held['log_rows']:,} rows in the log",
        ]
        lines += [
            f"part {i:<7} {part['rows']:,} rows, {part['removed']:,} removed: {_made_of(part)}"
            for i, part in enumerate(held["segments"], 1)
        ]
        if held["tail_rows"]:
            scanned = ", which queries scan" if by_distance else ""
            lines.append(f"newest       {held['tail_rows']:,} rows{scanned}")
        return "\n".join([*lines, *(["", str(self.plans)] if self.plans else [])])


def _by_distance(held: dict[str, Any]) -> list[str]:
    return [
        f"fingerprints {held['bits']} bits, recipe {held['recipe'] or 'none'}",
        f"queries      within {held['distance']} bits, plan {held['plan']}",
    ]


def _by_similarity(held: dict[str, Any]) -> list[str]:
    return [
        f"features     recipe {held['recipe'] or 'none'}",
        f"queries      {held['measure']} from {held['similarity']}",
    ]


def _made_of(part: dict[str, Any]) -> str:
    """What a segment of either kind consists of."""
    if "sets" in part:
        return f"{part['sets']:,} different documents, {part['features']:,} features"
    return (
        f"plan {part['plan']}, {part['tables']} tables of {part['key_bits']} bits,"
        f" {part['table_bytes']:,} bytes"
    )


_IDS: Final = {None: "none yet", "int": "whole numbers", "str": "strings"}
_STORED: Final = {
    "none": "fingerprints",
    "features": "fingerprints and feature hashes",
    "text": "fingerprints and texts",
}


def index_stats(index: DurableIndex) -> IndexStats:
    """Say what an index holds, and compare the plans for its fingerprints.

    Args:
        index: Which.
    """
    from neardup.hamming.search.comparison import plan
    from neardup.index.index_plans import FEATURES, plan_parts

    held, count = index.stats(), len(index)
    if not count:
        return IndexStats(held, None)
    if index.by == "similarity":
        stored = held["segments"]
        sets = sum(part["sets"] for part in stored)
        features = sum(part["features"] for part in stored) / sets if sets else FEATURES
        parts = [part["rows"] for part in stored] + [held["tail_rows"]] * bool(held["tail_rows"])
        asked = features, float(index.similarity), index.measure
        return IndexStats(held, plan_parts(parts, *asked))
    step = max(1, count // SAMPLE_ROWS)
    codes = np.concatenate([codes[::step] for _, codes in index.batches()])
    reach = index.distance
    return IndexStats(held, plan(count, reach, index.bits, fingerprints=codes))
