"""Similarity mode: an exact join of feature sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.similarity.feature_sets import FeatureSets, Match, similarities
    from neardup.similarity.join import similar_components, similar_greedy, similar_sets

__all__ = [
    "FeatureSets",
    "Match",
    "similar_components",
    "similar_greedy",
    "similar_sets",
    "similarities",
]

_HOMES: Final = {
    "feature_sets": (
        "FeatureSets",
        "Match",
        "similarities",
    ),
    "join": (
        "similar_components",
        "similar_greedy",
        "similar_sets",
    ),
}
__getattr__ = lazily(__name__, _HOMES)
