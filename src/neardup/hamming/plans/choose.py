"""The choice of a search plan: the quickest one, or one by name."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from typing import Any, Final

from neardup.hamming.plans.blocks import agreement, mih_lookups, signatures
from neardup.hamming.plans.join_costs import (
    EXTRA_BLOCKS,
    SEARCH_MOST_LOOKUPS_AUTO,
    SEARCH_MOST_TABLES,
)
from neardup.hamming.plans.names import search_plan_name
from neardup.hamming.plans.plan_checks import check_search_plan
from neardup.hamming.plans.search_plan import (
    SearchPlan,
    bits_plan,
    block_plan,
    matches,
    mih_plan,
    permute_plan,
    probe_plan,
    scan_plan,
)

__all__ = ["exact_plans", "named_plan", "plan_search"]


def plan_search(
    n: int,
    distance: int,
    bits: int = 64,
    sample: Any = None,
    plan: str = "auto",
    memory: float = float("inf"),
) -> SearchPlan:
    """The plan by which n fingerprints are searched.

    Args:
        n: Fingerprints.
        distance: Largest Hamming distance that must be found.
        bits: Width.
        sample: Some of them, uint64 (s, width): bits that vary little are spread over the blocks.
        plan: "auto" for the quickest exact one whose tables fit `memory`, or one by name.
        memory: Bytes that the tables may take.

    Returns:
        The plan.

    Raises:
        UsageError: For a plan that does not exist or cannot work for this distance and width.

    Example:
        >>> plan_search(10_000_000, 3).name
        'multi:4'
    """
    check_search_plan(plan, distance, bits)
    if plan != "auto":
        return named_plan(n, distance, bits, sample, plan)
    if distance >= bits:
        return scan_plan(n, bits, n)
    best, *rivals = exact_plans(n, distance, bits, sample)
    for rival in rivals:
        fits = rival.bytes_per_row * n <= memory
        if fits and rival.seconds < (1 - _PENALTY * _extra_bytes(rival, best)) * best.seconds:
            best = rival
    return best


_PENALTY: Final = 1 / 512
"""The share by which a plan must be quicker for each further byte a row."""


def _extra_bytes(rival: SearchPlan, best: SearchPlan) -> float:
    return min(max(rival.bytes_per_row - best.bytes_per_row, 0.0), 448.0)


def exact_plans(n: int, distance: int, bits: int, sample: Any) -> list[SearchPlan]:
    """All exact plans worth comparing, the smallest first: the scan."""
    information = agreement(sample, bits)
    near = matches(n, distance, information)
    plans = [scan_plan(n, bits, near), bits_plan(n, distance, bits, information)]
    if signatures(bits, distance) <= SEARCH_MOST_LOOKUPS_AUTO:
        plans.append(probe_plan(n, distance, bits, information, near))
    for m in range(distance + 1, min(bits, distance + EXTRA_BLOCKS) + 1):
        if comb(m, distance) > SEARCH_MOST_TABLES:
            break
        plans.append(block_plan(n, distance, bits, m, information, near))
    plans += [
        mih_plan(n, distance, bits, m, information, near)
        for m in range(2, min(bits, distance) + 1)
        if mih_lookups(bits, distance, m) <= SEARCH_MOST_LOOKUPS_AUTO
    ]
    return sorted(plans, key=lambda each: each.bytes_per_row)


def named_plan(n: int, distance: int, bits: int, sample: Any, plan: str) -> SearchPlan:
    """The plan of a name, unchecked."""
    plan_name = search_plan_name(plan, distance)
    information = agreement(sample, bits)
    near = matches(n, distance, information)
    if plan_name.kind == "bits":
        return bits_plan(n, distance, bits, information)
    if plan_name.kind == "scan" or distance >= bits:
        return replace(scan_plan(n, bits, near), name=plan)
    if plan_name.kind == "probe":
        return probe_plan(n, distance, bits, information, near)
    if plan_name.kind == "permute":
        return permute_plan(n, distance, bits, plan_name.permutations)
    if plan_name.kind == "mih":
        return mih_plan(n, distance, bits, plan_name.blocks, information, near)
    blocks = plan_name.blocks or distance + 1
    return replace(block_plan(n, distance, bits, blocks, information, near), name=plan)
