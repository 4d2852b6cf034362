"""Checks of a named plan for a distance and a width."""

from __future__ import annotations

from math import comb
from typing import Final

from neardup.errors import UsageError
from neardup.hamming.plans.blocks import mih_lookups, signatures
from neardup.hamming.plans.join_costs import (
    JOIN_MIH_MOST_FLIPS,
    JOIN_MIH_MOST_KEY_BITS,
    SEARCH_MOST_LOOKUPS,
    SEARCH_MOST_TABLES,
)
from neardup.hamming.plans.names import PlanName, join_plan_name, search_plan_name

__all__ = ["check_join_plan", "check_search_plan", "join_flips"]

TIMES_TABLES: Final = 10
"""The most tables of a named plan, as a multiple of those of a chosen one."""


def check_join_plan(plan: str, distance: int, bits: int) -> PlanName:
    """Refuse a plan of a join that is unknown or cannot work.

    Raises:
        UsageError: For an unknown plan, one that only `pairs` has, "multi:M" with M <= distance or
            M > bits, or "mih:M" with M so small that too many bits would be turned.
    """
    plan_name = join_plan_name(plan)
    if plan_name.kind == "mih":
        _check_mih(plan_name, bits)
        if distance < bits and join_flips(bits, distance, plan_name.blocks) > JOIN_MIH_MOST_FLIPS:
            raise UsageError(
                f"plan {plan!r} would flip too many bits at distance {distance}: use more blocks"
            )
    if plan_name.kind == "multi":
        _check_multi(plan_name, distance, bits)
    return plan_name


def check_search_plan(plan: str, distance: int, bits: int) -> PlanName:
    """Refuse a plan of a search that is unknown or cannot work.

    Raises:
        UsageError: If it is refused.
    """
    plan_name = search_plan_name(plan, distance)
    if plan_name.kind == "multi":
        _check_multi(plan_name, distance, bits)
        _check_tables(plan_name, distance)
    if plan_name.kind == "mih":
        _check_mih(plan_name, bits)
        if mih_lookups(bits, distance, plan_name.blocks) > SEARCH_MOST_LOOKUPS:
            raise UsageError(f"plan {plan!r} would look up too many signatures: use more blocks")
    if plan_name.kind == "probe" and signatures(bits, distance) > SEARCH_MOST_LOOKUPS:
        raise UsageError(
            f"plan 'probe' would look up {signatures(bits, distance):,} signatures a query at"
            f" distance {distance}, more than {SEARCH_MOST_LOOKUPS:,}: use auto"
        )
    return plan_name


def join_flips(bits: int, distance: int, m: int) -> int:
    """The number of near keys in a block of the most bits and the largest radius."""
    return signatures(min(-(-bits // m), JOIN_MIH_MOST_KEY_BITS), distance // m)


def _check_mih(named: PlanName, bits: int) -> None:
    if not 1 <= named.blocks <= bits:
        raise UsageError(f"plan {named.name!r}: use 1 to {bits} blocks, as in mih:4")


def _check_multi(named: PlanName, distance: int, bits: int) -> None:
    if named.blocks <= distance:
        raise UsageError(
            f"plan {named.name!r} has too few blocks for distance {distance}:"
            f" use multi:{distance + 1} or more"
        )
    if named.blocks > bits:
        raise UsageError(
            f"plan {named.name!r} has more blocks than the {bits} bits: use multi:{bits} or less"
        )


def _check_tables(named: PlanName, distance: int) -> None:
    tables = comb(named.blocks, distance)
    most = TIMES_TABLES * SEARCH_MOST_TABLES
    if tables > most:
        raise UsageError(
            f"plan {named.name!r} needs {tables:,} tables at distance {distance},"
            f" more than {most:,}: use fewer blocks"
        )
