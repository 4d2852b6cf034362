"""How long the sketches of the exact search are: enough to tell strangers apart, and no longer.

A sketch of N bits has the parities of the features that are hashed to each. Of two documents that
differ in D features about N / 2 (1 - exp(-2 D / N)) bits differ, and never more than D. So a short
sketch of a large document says nothing: half of its bits differ whatever the other is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from neardup.kernels.similarity.postings import LEAST_SKETCH_WORDS, WORDS_AT_ONCE

if TYPE_CHECKING:
    from neardup.similarity.feature_sets import Match

__all__ = ["sketch_words"]

MOST_WORDS: Final = 256
FEATURES_A_WORD: Final = 4
"""A document has so many on average for each word of its sketch, which is then a quarter as long as
its features."""
DEVIATIONS: Final = 3


def sketch_words(sizes: Any, match: Match, most_bytes: int) -> int:
    """How many words of 64 bits a sketch has: LEAST_SKETCH_WORDS, or a power of two from 16 up.

    As many as tell documents that share half of what is needed from similar ones, at the size of
    the documents that most features are in; fewer where they would take too much memory.

    Args:
        sizes: int64 (n,): features of each document.
        match: When two documents match.
        most_bytes: That the sketches of all documents may take.
    """
    total = float(sizes.sum())
    if not total:
        return LEAST_SKETCH_WORDS
    size = float((sizes.astype(float) ** 2).sum()) / total
    similarity = match.similarity
    needed = 2 * similarity / (1 + similarity) if match.measure == "jaccard" else similarity
    most = min(MOST_WORDS, total / sizes.size / FEATURES_A_WORD, most_bytes / (8 * sizes.size))
    words = LEAST_SKETCH_WORDS
    while not _is_enough(64 * words, size, needed):
        longer = max(2 * words, WORDS_AT_ONCE)
        if longer > most:
            break
        words = longer
    return words


def _is_enough(bits: int, size: float, needed: float) -> bool:
    """Whether strangers' sketches differ in more bits than similar documents do in features."""
    apart = bits / 2 * -math.expm1(-2 * (2 - needed) * size / bits)
    return apart - DEVIATIONS * math.sqrt(bits) / 2 > 2 * (1 - needed) * size
