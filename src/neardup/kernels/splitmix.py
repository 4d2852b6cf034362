"""splitmix64: the further words of a feature hash for fingerprints wider than it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from neardup.kernels.jit import inner

SPLITMIX: Final = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""The step and the two factors of splitmix64."""

_GOLDEN, _MIX_1, _MIX_2 = (np.uint64(value) for value in SPLITMIX)


@inner
def widened(h: np.uint64, word: int) -> Any:
    """Give word `word` of a feature hash: itself, then its splitmix64 successors; uint64."""
    if word == 0:
        return h
    z = h + np.uint64(word) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))
