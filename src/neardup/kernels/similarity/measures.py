"""How similar two sets are, by their sizes and what they share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.kernels.jit import inner

if TYPE_CHECKING:
    from neardup.kernels.similarity.arguments import Condition

JACCARD, COSINE, CONTAINMENT = 0, 1, 2

_ROUNDING: Final = 1e-9
"""By this share bounds are looser than the condition, for what their own rounding may lose."""
_LARGEST: Final = 1 << 62
"""No set has more features; the quotient of a size and a tiny threshold may exceed an int64."""


@inner
def least_overlap(size: int, condition: Condition) -> int:
    """Features of a set of `size` that any set that is similar enough shares."""
    if condition.measure == CONTAINMENT:
        return 1
    share = condition.similarity
    if condition.measure == COSINE:
        share *= share
    return max(1, np.int64(math.ceil(share * size - _ROUNDING * size)))


@inner
def needed_overlap(size: int, other: int, condition: Condition) -> int:
    """Features that two sets of these sizes share if they are similar enough."""
    similarity = condition.similarity
    if condition.measure == JACCARD:
        least = similarity / (1.0 + similarity) * (size + other)
    elif condition.measure == COSINE:
        least = similarity * math.sqrt(np.float64(size) * other)
    else:
        least = similarity * min(size, other)
    return np.int64(math.ceil(least - _ROUNDING * least))


@inner
def most_before(size: int, condition: Condition) -> int:
    """Features of a set that precede its early keys at most, in the order of rarity.

    A smaller set is found under its early keys alone, whatever the key is to the larger one. By
    containment a larger set may share any of its features, so all of them are keys, and few are
    early; by other measures all keys are.
    """
    if condition.measure == CONTAINMENT:
        return size - needed_overlap(size, size, condition)
    return size


@inner
def sizes_near(size: int, condition: Condition) -> tuple[int, int]:
    """Bounds of the features that a set has which is similar enough to one of `size`."""
    if condition.measure == CONTAINMENT:
        return np.int64(1), np.int64(_LARGEST)
    share = condition.similarity
    if condition.measure == COSINE:
        share *= share  # 0 where the square is less than any float64
    share *= 1.0 - _ROUNDING
    largest = np.int64(_LARGEST)
    if size < share * _LARGEST:
        largest = np.int64(math.ceil(size / share))
    return np.int64(share * size), largest


@inner
def score(shared: int, size: int, other: int, measure: int) -> float:
    """The measure of two sets of these sizes that share so many features."""
    if measure == JACCARD:
        return shared / (size + other - shared)
    if measure == COSINE:
        return shared / math.sqrt(np.float64(size) * other)
    return shared / min(size, other)
