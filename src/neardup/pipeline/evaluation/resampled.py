"""Intervals by resampling clusters: sums over clusters, and measures of the sums.

Pairs of one cluster are found or missed together, so clusters are drawn, not pairs (Poisson
bootstrap).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from neardup.runtime.types import Rows

__all__ = ["Resampled", "ari", "b_cubed", "f1", "ratio"]

Sums: TypeAlias = "npt.NDArray[np.float64]"
"""Sums over all documents, or one for each draw."""

ROUNDS: Final = 400
MOST_BLOCKS: Final = 4096
ENDS: Final = (2.5, 97.5)


class Resampled:
    """Draws of clusters, the same for all measures.

    Args:
        cluster: int64 (n,): the cluster of each document.
        seed: Of the draws.
    """

    def __init__(self, cluster: Rows, seed: int = 0) -> None:
        """Draw."""
        blocks = np.unique(cluster, return_inverse=True)[1] % MOST_BLOCKS
        self._block, self._count = blocks, int(blocks.max(initial=0)) + 1
        generator = np.random.default_rng(seed)
        self._weights = generator.poisson(1.0, (ROUNDS, self._count)).astype(np.float64)

    def interval(
        self, parts: list[Sums], measure: Callable[..., Sums]
    ) -> tuple[float, tuple[float, float]]:
        """A measure of sums and its interval.

        Args:
            parts: Of each sum, float64 (n,): what each document adds.
            measure: Takes arrays of the sums.
        """
        of_blocks = np.stack(
            [np.bincount(self._block, part, minlength=self._count) for part in parts], axis=1
        )
        whole = measure(*of_blocks.sum(axis=0))
        drawn = measure(*(self._weights @ of_blocks).T)
        low, high = np.percentile(drawn, ENDS)
        return float(whole), (float(min(low, whole)), float(max(high, whole)))


def ratio(hits: Sums, of: Sums) -> Sums:
    """A share; 1 if there is nothing, since nothing is wrong."""
    return np.where(np.asarray(of) > 0, hits / np.maximum(of, 1e-12), 1.0)


def f1(hits: Sums, matched: Sums, true: Sums) -> Sums:
    """The harmonic mean of precision and recall."""
    return ratio(2 * hits, matched + true)


def ari(hits: Sums, matched: Sums, true: Sums, documents: Sums) -> Sums:
    """The adjusted Rand index (Hubert and Arabie 1985), from counts of pairs."""
    every = np.maximum(documents * (documents - 1) / 2, 1.0)
    expected = matched * true / every
    most = (matched + true) / 2
    return np.where(
        most - expected > 0, (hits - expected) / np.maximum(most - expected, 1e-12), 1.0
    )


def b_cubed(precision: Sums, recall: Sums, documents: Sums) -> Sums:
    """B-cubed F1 (Bagga and Baldwin 1998), from sums over documents."""
    documents = np.maximum(documents, 1e-12)
    one, other = precision / documents, recall / documents
    return np.where(one + other > 0, 2 * one * other / np.maximum(one + other, 1e-12), 0.0)
