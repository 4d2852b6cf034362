"""All pairs, up to a number of them: what calibration and evaluation measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import TooManyPairsError
from neardup.hamming.all_pairs import pairs as pairs_within
from neardup.similarity.join import similar_sets

if TYPE_CHECKING:
    import pyarrow as pa

    from neardup.runtime.types import Rows
    from neardup.similarity.feature_sets import FeatureSets, Match

__all__ = ["all_near", "all_similar"]


def all_similar(sets: FeatureSets, match: Match, workers: int | None, most: int) -> Rows | None:
    """Every similar pair, int64 (p, 2); None where there are more than `most`."""
    chunks, count = [np.zeros((0, 2), np.int64)], 0
    for chunk in similar_sets(sets, match, workers):
        chunks.append(chunk)
        count += len(chunk)
        if count > most:
            return None
    return np.concatenate(chunks)


def all_near(
    values: Any, bits: int, furthest: int, workers: int | None, most: int
) -> tuple[pa.Table, int] | None:
    """Every pair within a distance, and the distance: as far as `furthest`, less for `most` pairs.

    None where more than `most` pairs are equal.
    """
    while True:
        try:
            return pairs_within(values, furthest, bits, limit=most, workers=workers), furthest
        except TooManyPairsError:
            if not furthest:
                return None
            furthest = furthest * 3 // 4
