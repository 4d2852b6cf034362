"""Choose how an index answers "what is within k bits?": the quickest plan, or one by name."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from math import comb, prod
from typing import Any, Final

from neardup.errors import UsageError
from neardup.hamming.plans.blocks import agreement, signatures
from neardup.hamming.plans.join import EXTRA_BLOCKS
from neardup.hamming.plans.search import (
    MOST_TABLES,
    SearchPlan,
    bands_plan,
    bits_plan,
    block_plan,
    matches,
    mih_lookups,
    mih_plan,
    nested_plan,
    permute_plan,
    probe_plan,
    scan_plan,
)

__all__ = [
    "DEFAULT_PERMUTATIONS",
    "DEFAULT_RECALL",
    "SEARCH_PLANS",
    "SearchPlan",
    "check_search_plan",
    "exact_plans",
    "named_plan",
    "plan_search",
    "scan_plan",
]

SEARCH_PLANS: Final = (
    "auto",
    "scan",
    "bits",
    "blocks",
    "probe",
    "multi:M",
    "multi:MxM",
    "mih:M",
    "bands:RECALL",
    "permute:N",
)
MOST_PROBES: Final = 1_000_000
MOST_MIH_LOOKUPS: Final = 8192
DEFAULT_RECALL: Final = 0.99
DEFAULT_PERMUTATIONS: Final = 32


def plan_search(
    n: int,
    distance: int,
    bits: int = 64,
    sample: Any = None,
    plan: str = "auto",
    memory: float = float("inf"),
) -> SearchPlan:
    """Choose the plan by which n fingerprints are searched.

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
"""A plan must be quicker by this share for each byte a row that it takes more."""


def _extra_bytes(rival: SearchPlan, best: SearchPlan) -> float:
    return min(max(rival.bytes_per_row - best.bytes_per_row, 0.0), 448.0)


def exact_plans(n: int, distance: int, bits: int, sample: Any) -> list[SearchPlan]:
    """Every exact plan that is worth a thought, the smallest first: the scan."""
    information = agreement(sample, bits)
    near = matches(n, distance, information)
    plans = [scan_plan(n, bits, near), bits_plan(n, distance, bits, information)]
    if signatures(bits, distance) <= MOST_MIH_LOOKUPS:
        plans.append(probe_plan(n, distance, bits, information))
    for m in range(distance + 1, min(bits, distance + EXTRA_BLOCKS) + 1):
        if comb(m, distance) > MOST_TABLES:
            break
        plans.append(block_plan(n, distance, bits, m, information))
    plans += [
        mih_plan(n, distance, bits, m, information)
        for m in range(2, min(bits, distance) + 1)
        if mih_lookups(bits, distance, m) <= MOST_MIH_LOOKUPS
    ]
    return sorted(plans, key=lambda each: each.bytes_per_row)


def check_search_plan(plan: str, distance: int, bits: int) -> None:
    """Refuse a plan that is unknown or cannot work.

    Raises:
        UsageError: If it is refused.
    """
    kind, _, value = plan.partition(":") if isinstance(plan, str) else ("", "", "")
    known = {name.partition(":")[0] for name in SEARCH_PLANS}
    if kind not in known or (value and kind not in {"multi", "mih", "bands", "permute"}):
        raise UsageError(
            f"plan {plan!r} is unknown: use one of {', '.join(SEARCH_PLANS)}"
            f"{_near_names(kind, known)}"
        )
    if kind == "multi":
        _check_multi(plan, value, distance, bits)
    if kind == "mih" and not (re.fullmatch(r"[1-9][0-9]{0,3}", value) and int(value) <= bits):
        raise UsageError(f"plan {plan!r}: use 1 to {bits} blocks, as in mih:4")
    if kind == "mih" and mih_lookups(bits, distance, int(value)) > MOST_PROBES:
        raise UsageError(f"plan {plan!r} would look up too many signatures: use more blocks")
    if kind == "probe" and signatures(bits, distance) > MOST_PROBES:
        raise UsageError(
            f"plan 'probe' would look up {signatures(bits, distance):,} signatures a query at"
            f" distance {distance}, more than {MOST_PROBES:,}: use auto"
        )
    if kind == "bands" and value and not 0 < _number(value, plan) < 1:
        raise UsageError(f"plan {plan!r}: the recall lies between 0 and 1, as in bands:0.99")
    if kind == "permute" and value and not re.fullmatch(r"[1-9][0-9]{0,3}", value):
        raise UsageError(f"plan {plan!r}: use 1 to 9999 permutations, as in permute:32")


def _check_multi(plan: str, value: str, distance: int, bits: int) -> None:
    """Refuse numbers of blocks that cannot work."""
    if not re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9})?", value):
        raise UsageError(f"plan {plan!r} names no number of blocks: use multi:{distance + 1}, say")
    numbers = [int(part) for part in value.split("x")]
    if min(numbers) <= distance:
        raise UsageError(
            f"plan {plan!r} has too few blocks for distance {distance}:"
            f" use multi:{distance + 1} or more"
        )
    if max(numbers) > bits:
        raise UsageError(
            f"plan {plan!r} has more blocks than the {bits} bits: use multi:{bits} or less"
        )
    left = bits * distance // numbers[0]
    if len(numbers) > 1 and numbers[1] > left:
        raise UsageError(
            f"plan {plan!r}: the first blocks leave {left} bits, too few for {numbers[1]} blocks:"
            f" use multi:{numbers[0]}"
        )
    tables = prod(comb(number, distance) for number in numbers)
    if tables > 10 * MOST_TABLES:
        raise UsageError(
            f"plan {plan!r} needs {tables:,} tables at distance {distance},"
            f" more than {10 * MOST_TABLES:,}: use fewer blocks"
        )


def named_plan(n: int, distance: int, bits: int, sample: Any, plan: str) -> SearchPlan:
    """The plan of this name."""
    kind, _, value = plan.partition(":")
    information = agreement(sample, bits)
    if kind == "bits":
        return bits_plan(n, distance, bits, information)
    if kind == "scan" or distance >= bits:
        near = matches(n, distance, information)
        return replace(scan_plan(n, bits, near), name=plan)
    if kind == "probe":
        return probe_plan(n, distance, bits, information)
    if kind == "bands":
        return bands_plan(n, distance, bits, float(value or DEFAULT_RECALL), information)
    if kind == "permute":
        return permute_plan(n, distance, bits, int(value or DEFAULT_PERMUTATIONS))
    return replace(_of_blocks(n, distance, bits, information, plan), name=plan)


def _of_blocks(n: int, distance: int, bits: int, information: Any, plan: str) -> SearchPlan:
    """The plan of this name, one of those that cut the bits into blocks."""
    kind, _, value = plan.partition(":")
    if kind == "mih":
        return mih_plan(n, distance, bits, int(value), information)
    if "x" in value:
        return nested_plan(n, distance, bits, value, information)
    return block_plan(n, distance, bits, int(value or distance + 1), information)


def _near_names(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _number(text: str, plan: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"plan {plan!r}: {text!r} is not a number") from None
