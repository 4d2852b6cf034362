"""Fingerprints with planted pairs, and all pairs by comparing all."""

from __future__ import annotations

from typing import Any

import numpy as np

from suite import JIT

ROWS = 400 if JIT else 24


def brute(fps: Any, distance: int, skipped: Any = ()) -> list[tuple[int, int, int]]:
    """Every pair by its definition."""
    codes = fps if fps.ndim == 2 else fps[:, None]
    kept = np.setdiff1d(np.arange(len(codes)), np.asarray(skipped, np.int64))
    result = []
    for at, i in enumerate(kept):
        later = kept[at + 1 :]
        apart = np.bitwise_count(codes[i] ^ codes[later]).sum(axis=1, dtype=np.int64)
        result += [
            (int(i), int(later[j]), int(apart[j])) for j in np.flatnonzero(apart <= distance)
        ]
    return result


def planted(bits: int, distance: int, seed: int, rows: int = ROWS) -> Any:
    """Random fingerprints with equal ones, and pairs apart by exactly k and k + 1 bits."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, (rows, bits), dtype=np.uint8)
    for turn in range(rows // 3):
        source, target = rng.integers(0, rows, 2)
        table[target] = table[source]
        flips = min(bits, distance + turn % 2)
        if turn % 4 < 2:
            at = rng.choice(bits, flips, replace=False)
        else:
            at = rng.integers(0, bits - flips + 1) + np.arange(flips)
        table[target, at] ^= 1
    table[: rows // 20] = table[0]
    padded = np.zeros((rows, -(-bits // 64) * 64), np.uint8)
    padded[:, :bits] = table
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
