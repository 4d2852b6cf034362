"""Explanations of fingerprints, and of how alike two documents are, shown as tables.

`compute` makes `explanations` from the functions that make fingerprints. What one says is a `tree`
of lines and tables, printed as text or as HTML. `comparison` is the verdict on two texts, and
`differences` has their words side by side.
"""

from __future__ import annotations

from neardup.fingerprinting.explanation.comparison import Comparison, compare
from neardup.fingerprinting.explanation.compute import explain
from neardup.fingerprinting.explanation.differences import Run, WordDiff, word_diff
from neardup.fingerprinting.explanation.explanations import Explanation, PairExplanation

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
