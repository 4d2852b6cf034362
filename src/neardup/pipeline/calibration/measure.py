"""The exact pairs of a sample, with their similarities and distances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import RecipeError, UsageError
from neardup.fingerprinting.fingerprints import codes_of_texts
from neardup.fingerprinting.values import distance as hamming
from neardup.hamming.match_graph import labels_of_pairs
from neardup.pipeline.calibration.model import Choice, LengthBand, Level, Range
from neardup.pipeline.run.limited_pairs import ScoredPairs, all_near, all_similar
from neardup.runtime.intervals import kish, paired, wilson

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.calibration.sample import Sample
    from neardup.runtime.types import Rows
    from neardup.similarity.feature_sets import FeatureSets, Match

__all__ = ["WIDTHS", "Joined", "Widths", "join_sample"]

WIDTHS: Final = (64, 128, 256)
MOST_PAIRS: Final = 4_000_000
"""The most pairs of a sample; a sample with more is reduced."""
LENGTHS: Final = ((1, 19), (20, 99), (100, 499), (500, None))


@dataclass(frozen=True, slots=True)
class Joined(ScoredPairs):
    """The similar pairs of a sample.

    Args:
        features: int64 (n,): the number of features of each document.
        scale: Pairs among all documents for each one of the sample.
    """

    features: Rows
    scale: float

    def levels(self, steps: Iterable[float], chosen: Any = None) -> tuple[Level, ...]:
        """The matches at each similarity; `chosen`, bool (p,), are the pairs that count."""
        levels = []
        for similarity in steps:
            at = self.at_least(similarity)
            at = at if chosen is None else at & chosen
            number = int(at.sum())
            documents = np.unique(np.concatenate([self.left[at], self.right[at]])).size
            pairs, interval = number * self.scale, self.range_of(at)
            levels.append(Level(similarity, number, pairs, interval, int(documents)))
        return tuple(levels)

    def range_of(self, at: Any) -> Range:
        """The interval for the number of pairs at full size, from the pairs `at`, bool (p,)."""
        number = float(at.sum())
        if self.scale == 1:
            return number, number
        met = np.bincount(np.concatenate([self.left[at], self.right[at]])).astype(np.float64)
        low, high = paired(number, float(met @ met))
        return low * self.scale, high * self.scale

    def groups(self, at: Any) -> Any:
        """The group of each document that the pairs `at` make, int64 (n,).

        Groups are made only of these pairs: at a low similarity all documents of a kind may chain
        into one group, which says nothing about the pairs at a high one.
        """
        return labels_of_pairs(self.features.size, self.left[at], self.right[at])

    def independent(self, at: Any) -> float:
        """The effective number of independent pairs among the pairs `at`, bool (p,)."""
        return _independent(self.groups(at)[self.left[at]])

    def band_of_pairs(self) -> Any:
        """The length band of each pair's shorter document, int64 (p,)."""
        shorter = np.minimum(self.features[self.left], self.features[self.right])
        return np.searchsorted([least for least, _ in LENGTHS], shorter, side="right") - 1


def join_sample(
    sets: FeatureSets, sample: Sample, match: Match, workers: int | None
) -> Joined | None:
    """Find every pair of the sample at or above the least similarity; None for too many."""
    pairs = all_similar(sets, match, workers, MOST_PAIRS)
    if pairs is None:
        return None
    n, whole = len(sample), sample.documents
    scale = 1.0 if n < 2 else whole * (whole - 1) / (n * (n - 1))
    return Joined(pairs.left, pairs.right, pairs.score, np.diff(sets.offsets), scale)


class Widths:
    """The distances between the pairs' fingerprints, at several widths.

    Args:
        joined: The pairs.
        sample: The documents.
        recipe: Of the features; the width is replaced.
        workers: Threads.

    Attributes:
        codes: Width to fingerprints.
    """

    def __init__(self, joined: Joined, sample: Sample, recipe: Recipe, workers: int | None) -> None:
        """Fingerprint the sample at each width that the recipe's hash can give."""
        self._joined = joined
        self.codes: dict[int, Any] = {}
        self._apart: dict[int, Any] = {}
        self._near: dict[int, tuple[ScoredPairs, int]] = {}
        for bits in WIDTHS:
            try:
                values = codes_of_texts(sample.texts, replace(recipe, bits=bits), workers)
            except (RecipeError, UsageError):
                continue
            codes = np.ma.getdata(values)
            self.codes[bits] = codes
            self._apart[bits] = hamming(codes[joined.left], codes[joined.right])
            self._near[bits] = _near_pairs(values, bits, workers)

    def choices(
        self,
        similarity: float,
        bits: int,
        distances: Iterable[int] | None = None,
        chosen: Any = None,
    ) -> list[Choice]:
        """Recall and precision of each distance; `chosen`, bool (p,), are the pairs that count.

        With `chosen` there is no precision: unrelated pairs have no band.
        """
        joined, apart = self._joined, self._apart[bits]
        above = joined.at_least(similarity)
        above = above if chosen is None else above & chosen
        groups = joined.groups(above)
        whole, alone = int(above.sum()), _independent(groups[joined.left[above]])
        near, furthest = self._near[bits]
        choices = []
        for distance in range(furthest + 1) if distances is None else distances:
            hits = int((above & (apart <= distance)).sum())
            within = near.at_least(-distance)
            total = int(within.sum()) if chosen is None else 0
            recall = hits / whole if whole else None
            precision = hits / total if total else None
            choices.append(
                Choice(
                    bits,
                    distance,
                    similarity,
                    recall,
                    _range(recall, alone),
                    precision,
                    _range(precision, _independent(groups[near.left[within]])),
                    total,
                )
            )
        return choices

    def bands(self, steps: tuple[float, ...], similarity: float, bits: int) -> list[LengthBand]:
        """Matches and recall by length of the shorter document."""
        of_pair, bands = self._joined.band_of_pairs(), []
        for number, (least, most) in enumerate(LENGTHS):
            features = self._joined.features
            inside = (features >= least) & (features <= (most or features.max(initial=0)))
            chosen = of_pair == number
            levels = self._joined.levels(steps, chosen)
            choices = self.choices(similarity, bits, chosen=chosen)
            bands.append(LengthBand(least, most, int(inside.sum()), levels, tuple(choices)))
        return bands


def _independent(group: Any) -> float:
    """The effective number of independent pairs among pairs of these groups, int64 (p,)."""
    return kish(np.unique(group, return_counts=True)[1].tolist())


def _range(share: float | None, trials: float) -> Range:
    return (0.0, 1.0) if share is None else wilson(share * trials, trials)


def _near_pairs(values: Any, bits: int, workers: int | None) -> tuple[ScoredPairs, int]:
    """The pairs within a distance, and that distance; no pairs if too many are equal."""
    none = np.zeros(0, np.int64)
    near = all_near(values, bits, workers, MOST_PAIRS)
    return (ScoredPairs(none, none, np.zeros(0)), 0) if near is None else near
