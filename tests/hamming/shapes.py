"""Collections of fingerprints that are hard to split."""

from __future__ import annotations

from typing import Any

import numpy as np

from neardup.hamming.spilled.slab_join import Budget
from planted import planted
from suite import JIT

ROWS = 160 if JIT else 24


SPLIT_AGAIN = Budget(slab_rows=50, whole_rows=16, pairs_at_once=9, pair_bytes=1 << 12)


def shapes(bits: int, distance: int) -> dict[str, Any]:
    """Collections that are hard to cut: equal rows, a constant block, a ball around one row."""
    plain = planted(bits, distance, bits, ROWS)
    rng = np.random.default_rng(bits)
    equal = plain.copy()
    equal[rng.permutation(len(plain))[: len(plain) // 5]] = plain[0]
    constant = plain.copy()
    constant[:, 0] &= np.uint64(0xFFF)
    ball = plain.copy()
    near = rng.permutation(len(plain))[: len(plain) // 4]
    ball[near] = plain[0]
    ball[near, 0] ^= np.uint64(1) << rng.integers(0, min(bits, 64), len(near)).astype(np.uint64)
    return {"plain": plain, "equal": equal, "constant": constant, "ball": ball}
