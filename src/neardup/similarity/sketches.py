"""Lengths of the exact search's sketches: long enough to tell unlike documents apart.

A sketch of N bits has the parities of the features that are hashed to each. Of two documents that
differ in D features about N / 2 (1 - exp(-2 D / N)) bits differ, and never more than D. So a short
sketch of a large document says nothing: half of its bits differ whatever the other is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from neardup.kernels.similarity.postings import LEAST_SKETCH_WORDS
from neardup.kernels.similarity.wide import WIDE_WORDS

if TYPE_CHECKING:
    from neardup.similarity.feature_sets import Match

__all__ = ["entry_words", "sketch_words"]

MOST_WORDS: Final = 256
FEATURES_A_WORD: Final = 4
"""The mean number of features for each word of a sketch, which takes a quarter of their space."""
DEVIATIONS: Final = 3
NARROW_DEVIATIONS: Final = 2
"""The deviations from which one word suffices. (Measured: four are worth it at 0.8, not at 2.4.)"""
WIDE_DEVIATIONS: Final = 1
"""The deviations from which four words suffice. (Measured: they are worth it at 1.5, not at 0.6.)
"""
LEAST_LOOKS: Final = 20
"""The looks for each key in the index from which wide entries are worth their memory."""


def sketch_words(sizes: Any, match: Match, most_bytes: int) -> int:
    """The number of 64-bit words in a sketch: LEAST_SKETCH_WORDS, or a larger power of two.

    As many as tell documents that share half of what is needed from similar ones, at the size of
    the documents that most features are in; fewer where they would take too much memory.

    Args:
        sizes: int64 (n,): features of each document.
        match: When two documents match.
        most_bytes: That the sketches of all documents may take.
    """
    if not sizes.any():
        return LEAST_SKETCH_WORDS
    size, needed = _typical(sizes, match)
    total = float(sizes.sum())
    most = min(MOST_WORDS, total / sizes.size / FEATURES_A_WORD, most_bytes / (8 * sizes.size))
    words, deviations = LEAST_SKETCH_WORDS, _deviations
    if not match.kind.bounds_sizes:
        deviations = _missing_deviations
    while deviations(64 * words, size, needed) <= DEVIATIONS:
        longer = 2 * words
        if longer > most:
            break
        words = longer
    return words


def entry_words(sizes: Any, match: Match, looks: float) -> int:
    """The number of sketch words in each entry of the index: 1 or WIDE_WORDS.

    Wide ones where one word does not tell strangers from similar documents, but WIDE_WORDS do, and
    they are looked at so often that this is worth their room. Not by containment: bits that differ
    tell nothing of documents of different sizes.

    Args:
        sizes: int64 (n,): features of each document.
        match: When two documents match.
        looks: At entries, for each that there is.
    """
    if looks < LEAST_LOOKS or not sizes.any() or not match.kind.bounds_sizes:
        return 1
    typical = _typical(sizes, match)
    is_told = _deviations(64, *typical) > NARROW_DEVIATIONS
    is_lost = _deviations(64 * WIDE_WORDS, *typical) < WIDE_DEVIATIONS
    return 1 if is_told or is_lost else WIDE_WORDS


def _typical(sizes: Any, match: Match) -> tuple[float, float]:
    """The size of set that holds most features, and the share that two such sets have in common."""
    size = float((sizes.astype(float) ** 2).sum()) / float(sizes.sum())
    return size, match.kind.equal_overlap(match.similarity)


def _deviations(bits: int, size: float, needed: float) -> float:
    """Standard deviations between sketches of unlike documents and of matches.

    Strangers share half of what is needed. Standard deviations are those of the number of bits.
    """
    apart = bits / 2 * -math.expm1(-2 * (2 - needed) * size / bits)
    return (apart - 2 * (1 - needed) * size) / (math.sqrt(bits) / 2)


def _missing_deviations(bits: int, size: float, needed: float) -> float:
    """Standard deviations between unlike documents and matches, of bits that a sketch lacks."""
    missing = (1 - needed / 2) * size * math.exp(-size / bits)
    return (missing - (1 - needed) * size) / (math.sqrt(size) / 2)
