"""All pairs with their scores, up to a limit, for calibration and evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import TooManyPairsError
from neardup.hamming.all_pairs import pairs as pairs_within
from neardup.similarity.feature_sets import similarities
from neardup.similarity.join import similar_sets

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.runtime.types import Flags, Rows
    from neardup.similarity.feature_sets import FeatureSets, Match

__all__ = ["NEARLY", "ScoredPairs", "all_near", "all_similar"]

NEARLY: Final = 1e-9
"""A score this little below a level counts as at it: levels are hundredths, scores are ratios."""
FURTHEST: Final = 0.25
"""The largest distance, as a share of the width; unrelated texts differ in half."""


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """Pairs of documents, each with the highest level at which it still matches.

    Attributes:
        left: int64 (p,): the earlier document.
        right: int64 (p,): the later one.
        score: float64 (p,): their similarity, or the distance of their fingerprints, negated.
    """

    left: Rows
    right: Rows
    score: npt.NDArray[np.float64]

    @classmethod
    def similar(cls, sets: FeatureSets, pairs: Rows, measure: str) -> ScoredPairs:
        """Pairs, int64 (p, 2), with their similarity."""
        left, right = np.ascontiguousarray(pairs.T)
        return cls(left, right, similarities(sets, left, right, measure))

    def at_least(self, level: float) -> Flags:
        """Bool (p,): which pairs match at a level."""
        matching: Flags = self.score >= level - NEARLY
        return matching

    def where(self, chosen: Flags) -> ScoredPairs:
        """The chosen pairs, by bool (p,)."""
        return ScoredPairs(self.left[chosen], self.right[chosen], self.score[chosen])


def all_similar(
    sets: FeatureSets, match: Match, workers: int | None, most: int
) -> ScoredPairs | None:
    """Every similar pair; None if there are more than `most`."""
    chunks, count = [np.zeros((0, 2), np.int64)], 0
    for chunk in similar_sets(sets, match, workers):
        chunks.append(chunk)
        count += len(chunk)
        if count > most:
            return None
    return ScoredPairs.similar(sets, np.concatenate(chunks), match.measure)


def all_near(
    values: Any, bits: int, workers: int | None, most: int
) -> tuple[ScoredPairs, int] | None:
    """Every pair within a distance, and that distance.

    The distance is a quarter of the width, or less if that gives more than `most` pairs. None if
    more than `most` pairs are equal.
    """
    furthest = int(FURTHEST * bits)
    while True:
        try:
            pairs = pairs_within(values, furthest, bits, limit=most, workers=workers)
        except TooManyPairsError:
            if not furthest:
                return None
            furthest = furthest * 3 // 4
            continue
        left, right, apart = (pairs[name].to_numpy() for name in ("left", "right", "distance"))
        return ScoredPairs(left, right, -apart.astype(np.float64)), furthest
