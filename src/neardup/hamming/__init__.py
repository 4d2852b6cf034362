"""Matches by distance: the pairs and groups of fingerprints within k bits, exactly.

The shelves: `plans` chooses blocks of bits and says what they cost, `join` finds all pairs of rows
in memory, `search` finds the neighbours of a query, `spilled` joins what does not fit in memory.
`all_pairs` and `clusters` are the calls; `block_join` joins one block, for many machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.hamming.all_pairs import pairs
    from neardup.hamming.block_join import labels_of_block, pairs_of_block
    from neardup.hamming.clusters import components, greedy
    from neardup.hamming.new_and_old import cross_pairs
    from neardup.hamming.plans.join_plan import plan_pairs
    from neardup.hamming.search.plan_comparison import plan
    from neardup.hamming.spilled.batches import Limits, pair_batches
    from neardup.hamming.spilled.spilled_groups import spilled_components, spilled_greedy

__all__ = [
    "Limits",
    "components",
    "cross_pairs",
    "greedy",
    "labels_of_block",
    "pair_batches",
    "pairs",
    "pairs_of_block",
    "plan",
    "plan_pairs",
    "spilled_components",
    "spilled_greedy",
]

_HOMES: Final = {
    "all_pairs": ("pairs",),
    "clusters": (
        "components",
        "greedy",
    ),
    "new_and_old": ("cross_pairs",),
    "plans.join_plan": ("plan_pairs",),
    "search.plan_comparison": ("plan",),
    "block_join": ("labels_of_block", "pairs_of_block"),
    "spilled.batches": (
        "Limits",
        "pair_batches",
    ),
    "spilled.spilled_groups": (
        "spilled_components",
        "spilled_greedy",
    ),
}
__getattr__ = lazily(__name__, _HOMES)
