"""The similarity of two sets by their sizes and shared features, and bounds that follow from it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.kernels.jit import inner

if TYPE_CHECKING:
    from neardup.kernels.similarity.join_arguments import Condition

JACCARD, COSINE, CONTAINMENT, DICE = range(4)
"""Numbers of the rows of `similarity/measures.py`."""

_ROUNDING: Final = 1e-9
"""The share by which bounds are looser than the condition, to make up for their own rounding."""
_LARGEST: Final = 1 << 62
"""The most features of a set; the quotient of a size and a tiny threshold may exceed an int64."""


@inner
def size_ratio(similarity: float, measure: int) -> float:
    """The least ratio of two sizes at a threshold; 0 where sizes exclude nothing.

    A square may be less than any float64, and so 0 as well.
    """
    if measure == JACCARD:
        return similarity
    if measure == COSINE:
        return similarity * similarity
    if measure == DICE:
        return similarity / (2.0 - similarity)
    return 0.0


@inner
def overlap(similarity: float, size: float, other: float, measure: int) -> float:
    """The least that two sets of these sizes, or weights, share at a threshold, not rounded."""
    if measure == JACCARD:
        return similarity / (1.0 + similarity) * (size + other)
    if measure == COSINE:
        return similarity * math.sqrt(np.float64(size) * other)
    if measure == DICE:  # half of the least float64 is 0, so the sizes are halved
        return similarity * (0.5 * (size + other))
    return similarity * min(size, other)


@inner
def reaches(shared: float, size: float, other: float, similarity: float, measure: int) -> bool:
    """Whether `score` is the similarity or more, but for rounding: without a division or a root."""
    if measure == JACCARD:
        return shared * (1.0 + similarity) >= similarity * (size + other)
    if measure == COSINE:
        return shared * shared >= similarity * similarity * size * other
    if measure == DICE:
        return 2.0 * shared >= similarity * (size + other)
    return shared >= similarity * min(size, other)


@inner
def score(shared: float, size: float, other: float, measure: int) -> float:
    """The measure of two sets of these sizes, or weights, that share as much."""
    if measure == JACCARD:
        return shared / (size + other - shared)
    if measure == COSINE:
        return shared / math.sqrt(np.float64(size) * other)
    if measure == DICE:
        return 2.0 * shared / (size + other)
    return shared / min(size, other)


@inner
def _least_ratio(condition: Condition) -> float:
    """The least ratio of the sizes of two sets that are similar enough."""
    return size_ratio(condition.similarity, condition.measure) * (1.0 - _ROUNDING)


@inner
def least_overlap(size: int, condition: Condition) -> int:
    """The least number of features that a set of `size` shares with one that is similar enough."""
    return max(1, np.int64(math.ceil(_least_ratio(condition) * size)))


@inner
def needed_overlap(size: int, other: int, condition: Condition) -> int:
    """The least number of features that two sets of these sizes share if similar enough."""
    least = overlap(condition.similarity, size, other, condition.measure)
    return np.int64(math.ceil(least - _ROUNDING * least))


@inner
def most_before(size: int, condition: Condition) -> int:
    """The most features of a set before the first that it shares with a larger similar set.

    Keys of the set with more features before them are late: under these only smaller sets find it.
    """
    return size - needed_overlap(size, size, condition)


@inner
def sizes_near(size: int, condition: Condition) -> tuple[int, int]:
    """The least and the most features of a set that is similar enough to one of `size`."""
    share = _least_ratio(condition)
    largest = np.int64(_LARGEST)
    # A share of 0 bounds no size: the comparison fails, and nothing is divided by it.
    if size < share * _LARGEST:
        largest = np.int64(math.ceil(size / share))
    return np.int64(share * size), largest
