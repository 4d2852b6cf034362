"""Clusters measured: sizes, weakest links, diameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.pipeline.report.model import size_classes
from neardup.similarity.feature_sets import FeatureSets, similarities

if TYPE_CHECKING:
    from neardup.pipeline.evidence.levels import Levels
    from neardup.pipeline.run.decision import Decision

__all__ = ["Clusters", "Measured"]

MOST_COMPARED: Final = 32
"""Documents of a cluster whose pairs are all measured for its diameter."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One cluster; see `ClusterShown`."""

    name: int
    size: int
    weakest: float
    diameter: float
    compared: int
    features: tuple[int, int]
    pair: tuple[int, int]


class Clusters:
    """The clusters of two documents or more.

    Args:
        decision: What the run decided.
        levels: With the similarity of each dropped document and the kept one.

    Attributes:
        names: int64 (c,): the document that names each.
        sizes: int64 (c,): how many documents it has.
        weakest: float64 (c,): its least similarity of a dropped document and its kept one.
    """

    def __init__(self, decision: Decision, levels: Levels) -> None:
        """Count and measure."""
        self._decision, self._levels = decision, levels
        label, dropped = decision.label, np.flatnonzero(~decision.kept)
        counts = np.bincount(label, minlength=label.size)
        self.names = np.flatnonzero(counts > 1)
        self.sizes = counts[self.names]
        least = np.ones(label.size)
        np.minimum.at(least, label[dropped], levels.similarity[dropped])
        self.weakest = least[self.names]

    def histogram(self) -> tuple[tuple[int, int, int], ...]:
        """(least, most, clusters) of each class of sizes: 2, 3, 4 to 7, 8 to 15, and so on."""
        return size_classes(self.sizes)

    def measure(self, at: int, sets: FeatureSets, measure: str) -> Measured:
        """Measure cluster number `at`."""
        name = int(self.names[at])
        members = np.flatnonzero(self._decision.label == name)
        dropped = members[~self._decision.kept[members]]
        worst = int(dropped[np.argmin(self._levels.similarity[dropped])])
        step = -(-members.size // MOST_COMPARED)
        some = members[::step]
        left, right = np.triu_indices(some.size, 1)
        diameter: Any = similarities(sets, some[left], some[right], measure).min(initial=1.0)
        features = np.diff(sets.offsets)[members]
        return Measured(
            name,
            int(members.size),
            float(self.weakest[at]),
            float(min(diameter, self.weakest[at])),
            int(some.size),
            (int(features.min()), int(features.max())),
            (int(self._decision.kept_by[worst]), worst),
        )

    def chosen(self, most: int, seed: int) -> dict[str, Any]:
        """Numbers of clusters: the largest, the loosest, and random ones."""
        largest = np.argsort(-self.sizes, kind="stable")[:most]
        loosest = np.argsort(self.weakest, kind="stable")[:most]
        count = min(most, self.names.size)
        random = np.random.default_rng(seed).choice(self.names.size, count, replace=False)
        return {
            "Largest": largest,
            "Loosest": loosest,
            f"Random, seed {seed}": np.sort(random),
        }
