"""The thresholds at which each document would be dropped: the most similar earlier document."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.errors import UsageError
from neardup.pipeline.report import CurvePoint
from neardup.similarity.feature_sets import FeatureSets, Work, similarities
from neardup.similarity.join import nearest_before

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.rule import Rule
    from neardup.runtime.types import Rows

__all__ = ["Levels", "curve", "find_levels", "lowest_threshold"]

BELOW: Final = 0.1
"""The default distance below the threshold down to which the report searches."""

LEAST: Final = 0.01
STEP: Final = 0.01
MOST_PAIRS: Final = 500_000_000
"""Pairs verified before the search below the threshold stops, and says so."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The result of the search for earlier documents.

    Attributes:
        threshold: The run's own similarity; 0 if it has none.
        lowest: Least similarity that was searched.
        nearest: int64 (n,): the most similar document that has priority; itself if there is none.
        score: float64 (n,): their similarity, 0 if there is none.
        similarity: float64 (n,): of a dropped document and the one kept for it; 1 of a kept one.
        level: float64 (n,): the document counts as dropped at thresholds up to this one.
        missed: Documents that the search did not reach.
        work: The work of the search.
        joined: Whether there was a search.
    """

    threshold: float
    lowest: float
    nearest: Rows
    score: npt.NDArray[np.float64]
    similarity: npt.NDArray[np.float64]
    level: npt.NDArray[np.float64]
    missed: int
    work: Work
    joined: bool

    def first(self, count: int) -> Levels:
        """The levels of the first documents."""
        cut = {name: getattr(self, name)[:count] for name in ("nearest", "score", "similarity")}
        return replace(self, level=self.level[:count], **cut)


def lowest_threshold(rule: Rule, requested: float | None) -> float:
    """The lowest threshold of the report.

    Raises:
        UsageError: If the request is above the run's own, or not above 0.
    """
    if not rule.by_features:
        if requested is not None:
            raise UsageError("report_from requires similarity: this run compares fingerprints")
        return 0.0
    own = rule.match.similarity
    if requested is not None and not 0 < requested <= own:
        raise UsageError(f"report_from is {requested:g}: use a number above 0, up to {own:g}")
    return max(LEAST, round(own - BELOW, 6)) if requested is None else requested


def find_levels(
    sets: FeatureSets,
    order: Rows,
    decision: Decision,
    rule: Rule,
    workers: int | None,
    lowest: float,
    most_pairs: int = MOST_PAIRS,
) -> Levels:
    """Find the most similar earlier document of each, down to a least similarity.

    Args:
        sets: The documents' features.
        order: int64 (n,): from the highest priority to the lowest.
        decision: What the run decided.
        rule: Of the run.
        workers: Threads.
        lowest: From `lowest_threshold`.
        most_pairs: Stop after about this number of verified pairs.
    """
    rows, kept = np.arange(order.size), decision.kept
    similarity = decision.similarity
    if similarity is None:
        similarity = similarities(sets, rows, decision.kept_by, rule.measure)
    similarity = np.where(kept, 1.0, similarity)
    work = Work()
    if not rule.by_features:
        score = np.where(kept, 0.0, similarity)
        level = np.where(kept, -1.0, similarity)
        return Levels(0.0, lowest, decision.kept_by, score, similarity, level, 0, work, False)
    own = rule.match.similarity
    match = replace(rule.match, similarity=lowest)
    nearest, score, missed = nearest_before(sets, order, match, workers, work, most_pairs)
    better = ~kept & (similarity > score)
    nearest = np.where(better, decision.kept_by, nearest)
    score = np.where(better, similarity, score)
    level = np.where(kept, np.minimum(score, np.nextafter(own, 0)), np.maximum(score, own))
    return Levels(own, lowest, nearest, score, similarity, level, missed, work, True)


def curve(levels: Levels) -> tuple[CurvePoint, ...]:
    """The number of documents kept at every threshold, the run's own among them."""
    steps = np.arange(round(levels.lowest, 6), 1 + STEP / 2, STEP if levels.joined else 2 * STEP)
    grid = {round(float(step), 6) for step in steps if step < 1} | {1.0, levels.lowest}
    near = {step for step in grid if abs(step - levels.threshold) < STEP / 10}
    at = np.array(sorted(grid - near | {levels.threshold}))
    total = levels.level.size
    dropped = total - np.searchsorted(np.sort(levels.level), at, side="left")
    matched = total - np.searchsorted(np.sort(levels.score), at, side="left")
    complete = levels.joined and not levels.missed
    return tuple(
        CurvePoint(float(similarity), int(total - drops), int(matches) if complete else None)
        for similarity, drops, matches in zip(at, dropped, matched, strict=True)
    )
