"""The matches that lead from a dropped document of a transitive group to the one kept for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.similarity.join import similar_greedy

if TYPE_CHECKING:
    from neardup.similarity.feature_sets import FeatureSets, Match

__all__ = ["ways_by_features"]


def ways_by_features(
    sets: FeatureSets, kept_by: Any, match: Match, workers: int | None = None
) -> Any:
    """Find for each dropped document one that it matches, on a shortest way to the kept one.

    From the kept documents outwards, one exact join for each step of the longest way.

    Args:
        sets: The documents.
        kept_by: int64 (n,): the document kept for each; the two are joined by matches.
        match: When two documents match.
        workers: Threads; the processors at hand unless given.

    Returns:
        int64 (n,): the next document on the way; a kept one names itself.
    """
    via = kept_by.copy()
    rest = np.flatnonzero(kept_by != np.arange(len(kept_by)))
    reached = np.unique(kept_by[rest])
    while rest.size and reached.size:
        order = np.concatenate([reached, rest])
        found = similar_greedy(sets, order, match, workers, first_new=reached.size)[0][rest]
        is_next = np.isin(found, reached)
        via[rest[is_next]] = found[is_next]
        reached, rest = rest[is_next], rest[~is_next]
    return via
