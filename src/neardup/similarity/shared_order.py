"""The prefix filter cut in parts: counts that merge, and keys under one order for all parts.

Prefix filtering is exact for any order of the features that all documents agree on. Here it is the
order of `similar_sets`: by how many documents have a feature, counted in hashed cells. Counts of
parts merge by saturating addition, in any order and grouping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.runtime.arrays import frozen
from neardup.similarity.feature_sets import FeatureSets, Match, arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["least_ratio", "least_shared", "merge_cells", "rare_keys"]


def merge_cells(parts: Iterable[Any], bits: int) -> Any:
    """Add the counts of parts, each up to 255; associative, and in any order.

    Example:
        >>> merge_cells([np.array([1, 200], np.uint8), np.array([2, 100], np.uint8)], 1).tolist()
        [3, 255]
    """
    total = np.zeros(1 << bits, np.uint8)
    for part in parts:
        total += np.minimum(part, 255 - total)
    return total


def rare_keys(sets: FeatureSets, cells: Any, match: Match) -> tuple[Any, Any, Any]:
    """Choose the keys by which documents are found: any two that match share one.

    A feature that is alone in its cell is in one document only, and no key.

    Args:
        sets: The documents of a part.
        cells: uint8, `merge_cells` of all parts.
        match: When two documents match.

    Returns:
        keys: uint64, one document's after the other's; before: int32, how many of the document's
        features come before each in the order, at least; and offsets: int64 (n + 1,).
    """
    from neardup.kernels.similarity.arguments import Rarity
    from neardup.kernels.similarity.rare_keys import select_keys

    arrays, condition = arguments(sets, match)
    offsets = np.empty(len(sets) + 1, np.int64)
    rarity = Rarity(cells, np.uint64(64 - (cells.size.bit_length() - 1)))
    documents = frozen(np.arange(len(sets)))
    keys, before = select_keys(documents, arrays, rarity, condition, offsets)
    return keys, before, offsets


def least_ratio(match: Match) -> float:
    """The least ratio of the sizes of two sets that match, the smaller by the larger.

    Example:
        >>> least_ratio(Match(0.5)), least_ratio(Match(0.5, "containment"))
        (0.4999999995, 0.0)
    """
    powers = {"jaccard": match.similarity, "cosine": match.similarity**2, "containment": 0.0}
    return powers[match.measure] * (1 - 1e-9)


def least_shared(one: Any, other: Any, match: Match) -> Any:
    """How many features two sets of these sizes share at least if they match; int64.

    Example:
        >>> least_shared(np.array([9, 9]), np.array([9, 8]), Match(0.8)).tolist()
        [8, 8]
    """
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    reach = match.similarity * (1 - 1e-9)
    if match.measure == "jaccard":
        return np.ceil((a + b) * (reach / (1 + reach))).astype(np.int64)
    base = np.sqrt(a * b) if match.measure == "cosine" else np.minimum(a, b)
    return np.ceil(base * reach).astype(np.int64)
