"""The choice of a search plan for given rows, and the searcher for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from neardup.hamming.plans.blocks import SAMPLE_ROWS
from neardup.hamming.plans.choose import plan_search
from neardup.hamming.search.searchers import ScanSearcher, Searcher
from neardup.hamming.search.table_search import TableSearcher
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from neardup.hamming.plans.search_plan import SearchPlan
    from neardup.runtime.types import Codes

__all__ = ["build_searcher", "plan_for"]


def build_searcher(
    codes: Codes,
    plan: SearchPlan,
    distance: int,
    bits: int,
    workers: int | None = None,
    tables: Any = None,
) -> Searcher:
    """The searcher of a plan for uint64 (n, width) rows, n < 2**32, and a distance.

    `tables` are the plan's tables of these rows, if they were made before.
    """
    flat = frozen(codes)
    threads = worker_count(workers)
    if len(plan.masks) and len(flat):
        within = partial(_searcher_within, distance=distance, bits=bits)
        return TableSearcher(flat, plan, distance, within, threads, tables)
    if plan.kind == "bits":
        from neardup.hamming.search.bit_search import SlicesSearcher

        return SlicesSearcher(flat, plan, bits, threads)
    if plan.kind == "permute" and plan.lookups:
        from neardup.hamming.search.permuted import PermutedSearcher

        return PermutedSearcher(flat, plan, distance, bits, threads)
    return ScanSearcher(flat, plan)


def plan_for(
    codes: Codes, distance: int, bits: int, plan: str, memory: float = float("inf")
) -> SearchPlan:
    """The plan for some rows, chosen on a sample of them."""
    step = max(1, len(codes) // SAMPLE_ROWS)
    return plan_search(len(codes), distance, bits, codes[::step], plan, memory)


def _searcher_within(codes: Codes, distance: int, bits: int) -> Searcher:
    """A searcher for the rows of a heavy bucket, planned for their own bits."""
    return build_searcher(codes, plan_for(codes, distance, bits, "auto"), distance, bits, 1)
