"""Confidence intervals of shares and counts, in plain arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Z", "counted", "kish", "paired", "stratified", "wilson"]

Z: Final = 1.959964
"""The normal quantile of a 95% interval."""


def wilson(hits: float, trials: float, z: float = Z) -> tuple[float, float]:
    """The interval of a share (Wilson, JASA 1927); from 0 to 1 without trials.

    Args:
        hits: How many of them; need not be whole.
        trials: How many there were; of none nothing is known.
        z: Normal quantile.

    Example:
        >>> [round(x, 3) for x in wilson(9, 10)]
        [0.596, 0.982]
    """
    if trials <= 0:
        return 0.0, 1.0
    share, square = hits / trials, z * z / trials
    middle = share + square / 2
    half = z * math.sqrt(share * (1 - share) / trials + square / (4 * trials))
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return max(0.0, min(share, low)), min(1.0, max(share, high))


def counted(events: float, z: float = Z) -> tuple[float, float]:
    """The interval of the mean of a Poisson count (Byar; Rothman and Boice 1979).

    Example:
        >>> [round(x, 1) for x in counted(10)]
        [4.8, 18.4]
    """
    low = 0.0
    if events > 0:
        low = events * max(0.0, 1 - 1 / (9 * events) - z / (3 * math.sqrt(events))) ** 3
    above = events + 1
    return low, above * (1 - 1 / (9 * above) + z / (3 * math.sqrt(above))) ** 3


def kish(sizes: Sequence[float]) -> float:
    """The effective number of independent items in groups of equal members (Kish 1965).

    Example:
        >>> kish([1, 1, 1, 1]), round(kish([100, 1]), 3)
        (4.0, 1.02)
    """
    squares = math.fsum(size * size for size in sizes)
    return math.fsum(sizes) ** 2 / squares if squares else 0.0


def paired(pairs: float, squares: float) -> tuple[float, float]:
    """The interval of the number of matching pairs among randomly drawn documents.

    Documents are drawn, not pairs, so the pairs are counted as the square of a number of documents
    that say something of their own (Kish). The lower end has the variance of the lines of a graph
    between random points (Frank, Scandinavian Journal of Statistics 1977). The upper end has more:
    by that variance a sample that misses a large group knows nothing of it.

    Args:
        pairs: How many were met.
        squares: The sum of the squares of how many of them each document is in.

    Example:
        >>> [round(x, 1) for x in paired(10, 20)]  # of 20 documents
        [5.1, 23.9]
        >>> [round(x, 1) for x in paired(10, 80)]  # all between 5 documents
        [1.3, 54.5]
    """
    if not pairs:
        return counted(0)
    low, high = 4 * pairs**2 / (squares - pairs), 4 * pairs**2 / squares
    return pairs * (counted(low)[0] / low) ** 2, pairs * (counted(high)[1] / high) ** 2


def stratified(
    strata: Sequence[tuple[int, int, int]], z: float = Z
) -> tuple[float, float, float] | None:
    """The share in a whole from random samples of its strata: share, low, high.

    Each stratum has Wilson's interval, narrowed as far as the stratum is known; the intervals are
    combined by their squares (MOVER: Zou and Donner, Statistics in Medicine 2008). A stratum of
    which nothing is known counts as one half, from 0 to 1.

    Args:
        strata: (size, sampled, hits) of each.
        z: Normal quantile.

    Returns:
        None if nothing was sampled.

    Example:
        >>> share, low, high = stratified([(90, 10, 10), (10, 10, 5)])
        >>> round(share, 3), round(low, 3), round(high, 3)
        (0.95, 0.713, 0.95)
    """
    whole = sum(size for size, _, _ in strata)
    if not whole or not any(sampled for _, sampled, _ in strata):
        return None
    share = below = above = 0.0
    for size, sampled, hits in strata:
        weight, part = size / whole, hits / sampled if sampled else 0.5
        low, high = wilson(hits, sampled, z)
        unknown = math.sqrt((size - sampled) / max(1, size - 1)) if sampled else 1.0
        share += weight * part
        below += (weight * unknown * (part - low)) ** 2
        above += (weight * unknown * (high - part)) ** 2
    return share, max(0.0, share - math.sqrt(below)), min(1.0, share + math.sqrt(above))
