"""Costs of each choice for all documents, from those of the sample and of half of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.hamming.plans.join_plan import plan_pairs
from neardup.pipeline.calibration.model import Cost
from neardup.pipeline.run.costs import WRITE_BYTES_A_SECOND, memory_and_disk
from neardup.runtime.threads import worker_count
from neardup.similarity.feature_sets import FeatureSets, Work
from neardup.similarity.join import similar_greedy

if TYPE_CHECKING:
    from neardup.pipeline.run.rule import Limits, Rule

__all__ = ["Taken", "cost_of_distance", "cost_of_similarity"]

STEEPEST: Final = 2.0
"""The largest exponent of growth: work grows at most with the number of pairs."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Measurements made while the sample was taken.

    Args:
        documents: In all inputs.
        nbytes: Of all inputs.
        reading: Seconds that reading them all took.
        fingerprinting: Seconds that the sample's fingerprints and features took.
        limits: The resources of a run.
    """

    documents: int
    nbytes: int
    reading: float
    fingerprinting: float
    limits: Limits

    def base(self, sampled: int) -> float:
        """Seconds of all steps except the search."""
        share = self.documents / max(1, sampled)
        return self.reading + self.fingerprinting * share + self.nbytes / WRITE_BYTES_A_SECOND


def cost_of_similarity(
    sets: FeatureSets, order: Any, rule: Rule, taken: Taken, first: bool = False
) -> Cost:
    """The cost of a search among all documents, from searches of the sample and of half of it.

    Args:
        sets: Of the sample.
        order: int64 (n,): the documents in random order.
        rule: By similarity.
        taken: The cost of the other steps.
        first: Search once before, since compiling and loading take time.
    """
    half, whole, workers = Work(), Work(), taken.limits.workers
    some = np.sort(order[: order.size // 2])
    for work in (half, Work()) if first else (half,):
        similar_greedy(sets, some, rule.match, workers, work)
    start = time.perf_counter()
    similar_greedy(sets, np.sort(order), rule.match, workers, whole)
    seconds = time.perf_counter() - start
    n, times = order.size, taken.documents / max(1, order.size)
    steep = math.log2(max(1, whole.candidates + n) / max(1, half.candidates + n // 2))
    grown = times ** min(STEEPEST, max(1.0, steep))
    features = round(int(sets.offsets[-1]) * times)
    postings = round(whole.postings * times)
    memory, disk = memory_and_disk(rule, taken.limits, taken.documents, features, postings)
    name = f"--similarity {rule.match.similarity:g}"
    return Cost(name, taken.base(n) + seconds * grown, memory, disk)


def cost_of_distance(codes: Any, rule: Rule, usual: int, taken: Taken) -> Cost:
    """The cost for all documents that the planner of the exact search expects.

    Args:
        codes: uint64 (n, w): fingerprints of the sample.
        rule: By distance, with the width of these.
        usual: The default width of a run.
        taken: The cost of the other steps.
    """
    distance, bits = rule.distance or 0, rule.recipe.bits
    plan = plan_pairs(max(2, taken.documents), distance, bits, codes)
    memory, disk = memory_and_disk(rule, taken.limits, taken.documents, 0, 0)
    name = f"--distance {distance}" + (f" --bits {bits}" if bits != usual else "")
    search = plan.seconds / worker_count(taken.limits.workers)
    return Cost(name, taken.base(len(codes)) + search, memory, disk)
