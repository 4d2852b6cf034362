"""Group documents that match, and decide which one of each group is kept.

Two documents match by the distance of their fingerprints (exact mode), or by the similarity of
their feature sets, with or without a distance as well (similarity mode).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.hamming.clusters import components, greedy
from neardup.hamming.paths_by_distance import paths_by_distance
from neardup.pipeline.run.decision import Decision
from neardup.similarity.feature_sets import FeatureSets, Work, similarities
from neardup.similarity.join import similar_components, similar_greedy
from neardup.similarity.paths_by_features import paths_by_features

if TYPE_CHECKING:
    from neardup.pipeline.run.read_documents import Documents
    from neardup.pipeline.run.rule import Choice, Limits, Rule
    from neardup.runtime.types import Rows

__all__ = ["match"]


def match(
    documents: Documents,
    rule: Rule,
    choice: Choice,
    limits: Limits,
    *,
    work: Work | None = None,
    decided: Rows | None = None,
) -> Decision:
    """Decide for every document.

    Documents of an index come first in the order of priority and are always kept; only a greedy
    search on features may have any.

    Args:
        documents: The documents.
        rule: When documents match.
        choice: Which documents are kept.
        limits: Threads, and the plan of a search on fingerprints.
        work: Gets the counts of a greedy search on features.
        decided: int64: documents that are decided already and match nothing more.
    """
    # An index's documents lead the order, so that batches decide like one run over all.
    order, workers = documents.order(choice.keep), limits.workers
    if decided is not None:
        order = order[~np.isin(order, decided)]
    if rule.by_features:
        if choice.policy == "greedy":
            first = int(np.count_nonzero(order >= documents.own))
            return _greedy(documents.sets, order, first, rule, workers, work)
        label = similar_components(documents.sets, rule.match, workers)
        kept_by = _best(label, order)
        score = similarities(documents.sets, np.arange(len(documents)), kept_by, rule.measure)
        via = paths_by_features(documents.sets, kept_by, score, rule.match, workers)
        return Decision(kept_by, label, score, via=via)
    distance, bits, values = rule.distance or 0, rule.recipe.bits, documents.values
    groups = documents.sets.groups
    if choice.policy == "greedy":
        kept_by = greedy(values, order, distance, bits, limits.plan, workers, groups=groups)
        return Decision(kept_by, kept_by, None)
    label = components(values, distance, bits, limits.plan, workers, groups=groups)
    kept_by = _best(label, order)
    return Decision(kept_by, label, None, via=paths_by_distance(values, kept_by, distance))


def _greedy(
    sets: FeatureSets,
    order: Rows,
    first: int,
    rule: Rule,
    workers: int | None,
    work: Work | None,
) -> Decision:
    """Decide in the order of priority; the first documents are always kept."""
    kept_by, score = similar_greedy(sets, order, rule.match, workers, work, first)
    return Decision(kept_by, kept_by, score)


def _best(label: Rows, order: Rows) -> Rows:
    """The document of highest priority with the same label, for each document."""
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    best = np.full(order.size, order.size, np.int64)
    np.minimum.at(best, label, rank)
    return order[best[label]] if order.size else label
