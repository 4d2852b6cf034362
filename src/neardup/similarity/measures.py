"""The measures of two sets, one row each: their bounds on sizes and overlap at a threshold.

Kernels have them in `kernels/similarity/measure_bounds.py`, by the same numbers. A new measure is a
row here and a branch of each function there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MEASURES", "ROUNDING", "Measure"]

ROUNDING: Final = 1e-9
"""The share by which bounds are looser than the threshold, to cover their own rounding."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A similarity of two sets by their sizes and overlap, and its bounds at a threshold.

    Args:
        number: As kernels take it.
        size_ratio: The least ratio of the sizes of two sets at a threshold, the smaller by the
            larger; 0 where sizes exclude nothing. A set shares as much of itself with any other,
            so all its features but these are its prefix.
        overlap: How much two sets of some sizes share at least at a threshold, not rounded. Of all
            sizes near one, the largest must let two sets differ most: a + b - 2 * overlap.
        score: The measure of what is shared and two sizes.
    """

    number: int
    size_ratio: Callable[[float], float]
    overlap: Callable[[float, Any, Any], Any]
    score: Callable[[Any, Any, Any], Any]

    @property
    def bounds_sizes(self) -> bool:
        """Whether similar sets have similar sizes."""
        return self.size_ratio(1.0) > 0

    def stored_ratio(self, similarity: float) -> float:
        """The approximate share of a set's features not looked up for larger sets."""
        ratio = self.size_ratio if self.bounds_sizes else self.equal_overlap
        return ratio(similarity)

    def equal_overlap(self, similarity: float) -> float:
        """The share of their features that two sets of equal size have in common at a threshold."""
        return float(self.overlap(similarity, 1.0, 1.0))


MEASURES: Final = {
    "jaccard": Measure(
        number=0,
        size_ratio=lambda similarity: similarity,
        overlap=lambda similarity, a, b: similarity / (1 + similarity) * (a + b),
        score=lambda shared, a, b: shared / (a + b - shared),
    ),
    "cosine": Measure(
        number=1,
        size_ratio=lambda similarity: similarity * similarity,
        overlap=lambda similarity, a, b: similarity * np.sqrt(a * b),
        score=lambda shared, a, b: shared / np.sqrt(a * b),
    ),
    "containment": Measure(
        number=2,
        size_ratio=lambda _: 0.0,
        overlap=lambda similarity, a, b: similarity * np.minimum(a, b),
        score=lambda shared, a, b: shared / np.minimum(a, b),
    ),
    "dice": Measure(
        number=3,
        size_ratio=lambda similarity: similarity / (2 - similarity),
        # The sizes are halved, since half of the least float64 is 0.
        overlap=lambda similarity, a, b: similarity * ((a + b) / 2),
        score=lambda shared, a, b: 2 * shared / (a + b),
    ),
}
"""The measures by their public names."""
