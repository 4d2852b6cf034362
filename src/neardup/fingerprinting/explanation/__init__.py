"""How a fingerprint came about: its features, weights, hash bits, sums and bits, shown as a table.

`compute` makes an explanation from the functions that make fingerprints; `model` holds it, and
`plain` and `html` write it.
"""

from __future__ import annotations

from neardup.fingerprinting.explanation.compute import explain
from neardup.fingerprinting.explanation.shown import Explanation, PairExplanation

__all__ = ["Explanation", "PairExplanation", "explain"]
