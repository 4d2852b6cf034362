"""The number of unrelated documents that a distance matches by chance."""

from __future__ import annotations

from math import comb
from typing import Final

__all__ = ["chance_warning", "chances", "expected_pairs"]

ASSUMED: Final = 10_000
"""The number of documents assumed before any is read."""
LEAST_SHARE: Final = 1e-3
"""The share of documents with an unrelated match below which no warning is due."""


def chances(bits: int, distance: int) -> float:
    """The share of pairs of random fingerprints within a distance.

    Example:
        >>> round(chances(64, 20), 5)
        0.00184
    """
    return sum(comb(bits, i) for i in range(min(distance, bits) + 1)) / (1 << bits)


def expected_pairs(documents: int, bits: int, distance: int) -> float:
    """The expected number of pairs within the distance among unrelated documents."""
    return documents * (documents - 1) / 2 * chances(bits, distance)


def chance_warning(
    distance: int, bits: int, documents: int | None = None, *, verified: bool = True
) -> str | None:
    """A warning if unrelated documents are expected to match, or None.

    Args:
        distance: Bits in which a match may differ.
        bits: Width of a fingerprint.
        documents: How many there are; None before they are read.
        verified: Whether matches can be checked on the text.
    """
    count = ASSUMED if documents is None else documents
    pairs = expected_pairs(count, bits, distance)
    if pairs < 1 or 2 * pairs < LEAST_SHARE * count:
        return None
    least = next(
        (
            smaller
            for smaller in range(distance - 1, -1, -1)
            if 2 * expected_pairs(count, bits, smaller) < LEAST_SHARE * count
        ),
        None,
    )
    better = "--distance 0" if least == 0 else f"--distance {least} or less"
    if least is None:
        better = "more bits"
    checked = ", or --verify 0.8 to check each match on the text" if verified else ""
    return (
        f"distance {distance} of {bits} bits matches unrelated documents: among {count:,}"
        f" of them, random fingerprints give about {pairs:,.0f} such pairs; use {better}{checked}"
    )
