"""The names of plans: which exist, what they are for, and the numbers in them.

Importing this is free of NumPy, so that the command line's help can be made from it.
"""

from __future__ import annotations

import difflib
import re
from typing import Any, Final, NamedTuple

from neardup.errors import UsageError

__all__ = [
    "ASKED_PLANS",
    "DEFAULT_PERMUTATIONS",
    "JOIN_PLANS",
    "SEARCH_PLANS",
    "PlanName",
    "join_plan_name",
    "listed_plans",
    "search_plan_name",
]

DEFAULT_PERMUTATIONS: Final = 32


class _Kind(NamedTuple):
    """A row of the table of plans.

    Args:
        written: As it is asked for; a capital stands for a number.
        joins: Whether every join in memory and from files runs it.
        searches: Whether an index answers by it.
        asks: Whether `nd.pairs` runs it by asking an index for each row.
        exact: Whether it finds everything.
    """

    written: str
    joins: bool = False
    searches: bool = False
    asks: bool = False
    exact: bool = True


_KINDS: Final = (
    _Kind("auto", joins=True, searches=True),
    _Kind("scan", joins=True, searches=True),
    _Kind("bits", searches=True, asks=True),
    _Kind("blocks", joins=True, searches=True),
    _Kind("probe", searches=True, asks=True),
    _Kind("multi:M", joins=True, searches=True),
    _Kind("mih:M", joins=True, searches=True),
    _Kind("permute:N", searches=True, exact=False),
)
JOIN_PLANS: Final = tuple(kind.written for kind in _KINDS if kind.joins)
SEARCH_PLANS: Final = tuple(kind.written for kind in _KINDS if kind.searches)
ASKED_PLANS: Final = tuple(kind.written for kind in _KINDS if kind.asks)
"""Plans of `nd.pairs` that query an index for the neighbours of each row."""
_APPROXIMATE: Final = tuple(kind.written for kind in _KINDS if not kind.exact)


class PlanName(NamedTuple):
    """A parsed plan name; its numbers are not checked against a distance and a width.

    Args:
        name: As it was given.
        kind: What stands before the colon.
        blocks: How many blocks "multi" and "mih" have.
        permutations: Of "permute".
    """

    name: str
    kind: str
    blocks: int = 0
    permutations: int = DEFAULT_PERMUTATIONS


def join_plan_name(plan: Any) -> PlanName:
    """The parsed name of a join plan.

    Raises:
        UsageError: If no join runs such a plan.

    Example:
        >>> join_plan_name("mih:4").blocks
        4
    """
    match = re.fullmatch(r"(multi|mih):([0-9]{1,9})", plan) if isinstance(plan, str) else None
    if match:
        return PlanName(plan, match[1], int(match[2]))
    if plan in JOIN_PLANS and ":" not in plan:
        return PlanName(plan, plan)
    listed = ", ".join(JOIN_PLANS)
    if plan in ASKED_PLANS:
        raise UsageError(f"plan {plan!r} is for nd.pairs and indexes: use one of {listed}")
    choices = ", ".join(ASKED_PLANS)
    raise UsageError(f"plan {plan!r} is unknown: use one of {listed} (nd.pairs: {choices} too)")


def search_plan_name(plan: Any, distance: int) -> PlanName:
    """The parsed name of a search plan; the distance is for the error's advice.

    Raises:
        UsageError: If no index has such a plan.

    Example:
        >>> search_plan_name("multi:4", 3).blocks
        4
    """
    kind, colon, value = plan.partition(":") if isinstance(plan, str) else ("", "", "")
    plain = {name for name in SEARCH_PLANS if ":" not in name}
    names = {name.partition(":")[0] for name in SEARCH_PLANS}
    if kind not in names or (kind in plain and colon):
        near = difflib.get_close_matches(kind, sorted(names), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"plan {plan!r} is unknown: use one of {', '.join(SEARCH_PLANS)}{hint}")
    if kind in {"multi", "mih"}:
        if not re.fullmatch(r"[0-9]{1,9}", value):
            blocks = distance + 1 if kind == "multi" else 4
            raise UsageError(
                f"plan {plan!r} does not name a number of blocks: use {kind}:{blocks}, say"
            )
        return PlanName(plan, kind, int(value))
    if kind == "permute" and value:
        if not re.fullmatch(r"[1-9][0-9]{0,3}", value):
            raise UsageError(f"plan {plan!r}: use 1 to 9999 permutations, as in permute:32")
        return PlanName(plan, kind, permutations=int(value))
    return PlanName(plan, kind)


def listed_plans(plans: tuple[str, ...]) -> str:
    """The plans as listed in an option's help.

    Example:
        >>> listed_plans(JOIN_PLANS)
        'auto, scan, blocks, multi:M or mih:M'
    """
    exact = [plan for plan in plans if plan not in _APPROXIMATE]
    text = f"{', '.join(exact[:-1])} or {exact[-1]}"
    rest = [plan for plan in plans if plan in _APPROXIMATE]
    return f"{text}; {' and '.join(rest)} is approximate" if rest else text
