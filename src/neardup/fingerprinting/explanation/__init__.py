"""Why a fingerprint is what it is, and how alike two documents are, shown as tables.

`compute` makes an explanation from the functions that make fingerprints; `model` holds it, and
`plain` and `html` write it. `comparison` is the verdict on two texts, `differences` their words
side by side.
"""

from __future__ import annotations

from neardup.fingerprinting.explanation.comparison import Comparison, compare
from neardup.fingerprinting.explanation.compute import explain
from neardup.fingerprinting.explanation.differences import Run, WordDiff, word_diff
from neardup.fingerprinting.explanation.shown import Explanation, PairExplanation

__all__ = [
    "Comparison",
    "Explanation",
    "PairExplanation",
    "Run",
    "WordDiff",
    "compare",
    "explain",
    "word_diff",
]
