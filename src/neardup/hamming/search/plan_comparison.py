"""A comparison of the plans for searching n fingerprints, with the cost of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError, suggests_names
from neardup.fingerprinting.values import as_codes, check_distance
from neardup.hamming.plans.blocks import SAMPLE_ROWS
from neardup.hamming.plans.choose import (
    exact_plans,
    named_plan,
    plan_search,
)
from neardup.hamming.plans.names import DEFAULT_PERMUTATIONS
from neardup.runtime.printed_tables import PrintedPlans, cells_of, text_table

if TYPE_CHECKING:
    from neardup.hamming.plans.search_plan import SearchPlan

__all__ = ["PlanTable", "plan"]

COLUMNS: Final = (
    ("plan", "{}", "name"),
    ("tables", "{:,}", "tables"),
    ("key bits", "{}", "key_bits"),
    ("look-ups", "{:,}", "lookups"),
    ("candidates", "{:,.0f}", "candidates"),
    ("bytes/doc", "{:,.1f}", "bytes_per_document"),
    ("us/query", "{:,.2f}", "microseconds"),
    ("recall", "{:.3f}", "recall"),
)


class PlanTable(PrintedPlans):
    """The plans for one query shape, the chosen one marked; prints as a table.

    Args:
        n: Fingerprints.
        distance: Largest distance of a query.
        bits: Width.
        chosen: What "auto" takes.
        plans: All that were compared, the quickest first.
    """

    def __init__(
        self, n: int, distance: int, bits: int, chosen: SearchPlan, plans: list[SearchPlan]
    ) -> None:
        """Store the compared plans."""
        self.n, self.distance, self.bits = n, distance, bits
        self.chosen, self.plans = chosen, plans

    def __str__(self) -> str:
        """The table as text."""
        lines = [["", *(title for title, _, _ in COLUMNS)]]
        lines += [["*" if row["chosen"] else "", *cells_of(row, COLUMNS)] for row in self]
        head = f"{self.n:,} fingerprints of {self.bits} bits, distance {self.distance}"
        return f"{head}\n{text_table(lines, names=2)}"

    def _row(self, each: SearchPlan) -> dict[str, Any]:
        return {
            "name": each.name,
            "chosen": each.name == self.chosen.name,
            "tables": len(each.masks),
            "key_bits": each.key_bits,
            "lookups": each.lookups,
            "candidates": each.candidates,
            "bytes_per_document": each.bytes_per_row,
            "microseconds": each.seconds * 1e6,
            "recall": each.recall,
        }


@suggests_names
def plan(
    n: int,
    distance: int = 3,
    bits: int = 64,
    *,
    fingerprints: Any = None,
    memory: float | None = None,
) -> PlanTable:
    """Compare the plans to search n fingerprints, and show which one an index would use.

    Args:
        n: Fingerprints.
        distance: Largest Hamming distance of a query.
        bits: Width.
        fingerprints: Some of them, as `pairs` takes them: the estimates then know which bits vary.
        memory: Bytes that the tables may take; by default no limit.

    Returns:
        A table: for each plan its tables, the bits of their keys, the buckets that a query opens,
        the rows that it is expected to be compared with, bytes a document in addition to the
        fingerprint,
        expected microseconds a query of a batch on one thread, and the recall of what is exactly
        at the distance (1 for exact plans). `chosen` is what plan "auto" takes.

    Raises:
        UsageError: For a number, distance, width or fingerprints that cannot be.

    Example:
        >>> table = plan(10_000_000, distance=3)
        >>> table.chosen.name
        'multi:4'
        >>> [row["tables"] for row in table if row["name"] == "multi:5"]
        [10]
    """
    check_distance(distance)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise UsageError(f"n is {n!r}: use a whole number from 0")
    if isinstance(bits, bool) or not isinstance(bits, int) or bits < 1:
        raise UsageError(f"bits is {bits!r}: use a whole number from 1")
    codes = None if fingerprints is None else as_codes(fingerprints, bits)[0]
    sample = None if codes is None else codes[:: max(1, len(codes) // SAMPLE_ROWS)]
    limit = float("inf") if memory is None else memory
    chosen = plan_search(n, distance, bits, sample, memory=limit)
    return PlanTable(n, distance, bits, chosen, _rivals(n, distance, bits, sample, chosen))


def _rivals(n: int, distance: int, bits: int, sample: Any, chosen: SearchPlan) -> list[SearchPlan]:
    """The plans worth comparing, the quickest first; none that another of its kind beats in all."""
    if distance < bits:
        exact = exact_plans(n, distance, bits, sample)
        plans = [each for each in exact if not any(_beats(other, each) for other in exact)]
        plans.append(named_plan(n, distance, bits, sample, f"permute:{DEFAULT_PERMUTATIONS}"))
    else:
        plans = [named_plan(n, distance, bits, sample, name) for name in ("scan", "bits")]
    if chosen.name not in {each.name for each in plans}:
        plans.append(chosen)
    return sorted(plans, key=lambda each: each.seconds)


def _beats(one: SearchPlan, other: SearchPlan) -> bool:
    same = one.kind == other.kind == "mih"
    return same and one.seconds < other.seconds and one.bytes_per_row <= other.bytes_per_row
