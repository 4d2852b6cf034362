"""Group documents that match, and decide which one of each group is kept.

Two documents match by the distance of their fingerprints (exact mode), or by the similarity of
their feature sets, with or without a distance as well (similarity mode).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.fingerprinting.recipe import Recipe
from neardup.hamming.chance import chance_warning
from neardup.hamming.clusters import components, greedy
from neardup.hamming.plans.checks import check_join_plan
from neardup.hamming.ways import ways_by_distance
from neardup.similarity.band_plans import BandPlan, plan_bands
from neardup.similarity.bands import documents_with_partner
from neardup.similarity.feature_sets import FeatureSets, Match, Work, similarities
from neardup.similarity.join import similar_components, similar_greedy
from neardup.similarity.recall import check_recall
from neardup.similarity.ways import ways_by_features

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from neardup.pipeline.run.resources import Resources
    from neardup.runtime.types import Codes, Rows

__all__ = [
    "KEEPS",
    "POLICIES",
    "Grouping",
    "Matching",
    "References",
    "group",
    "partners",
    "priorities",
]

KEEPS: Final = ("first", "last", "longest")
POLICIES: Final = ("greedy", "components")
DEFAULT_SIMILARITY: Final = 0.8


@dataclass(frozen=True, slots=True)
class Matching:
    """When documents match and which one of a group to keep: all that a result depends on.

    Args:
        similarity: Least similarity of the feature sets; 0.8 unless a distance is given.
        distance: Most bits in which fingerprints may differ.
        verify: With a distance: least similarity as well.
        measure: What similarity is: "jaccard", "cosine", "containment" or "dice".
        recipe: How a document becomes features and a fingerprint.
        policy: "greedy" drops a document only if it matches a kept one; "components" keeps one of
            each transitive group.
        keep: Which document has priority: "first", "last", "longest" (in code points), or the one
            with the largest or smallest number in a field ("max:FIELD", "min:FIELD"; no number
            comes last). Ties go to the first.
        recall: Least share of the similar pairs that is found, for a pair exactly at the threshold;
            1 finds all.
        decisions: A file of answers about pairs, as `neardup review` keeps them, taken as given;
            for the policy "greedy".

    Raises:
        UsageError: For an unknown policy or keep, values out of range, similarity together with
            distance, or a measure with a distance alone.
    """

    similarity: float | None = None
    distance: int | None = None
    verify: float | None = None
    measure: str = "jaccard"
    recipe: Recipe = field(default_factory=Recipe)
    policy: str = "greedy"
    keep: str = "first"
    recall: float = 1.0
    decisions: str | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.keep not in KEEPS and not self.number:
            raise UsageError(
                f"keep is {self.keep!r}: use one of {', '.join(KEEPS)}, max:FIELD, min:FIELD"
            )
        if self.policy not in POLICIES:
            raise UsageError(f"policy is {self.policy!r}: use one of {', '.join(POLICIES)}")
        if self.decisions is not None and self.policy != "greedy":
            raise UsageError(
                f"decisions need the policy greedy: {self.policy} joins all that match"
            )
        self._check_kind()
        if check_recall(self.recall) < 1 and not self.by_features:
            raise UsageError("recall belongs to similarity: a distance finds every pair")
        if self.by_features:
            self.match  # noqa: B018  # refuses values out of range
            self.bands(0)
        elif self.distance is not None and self.distance < 0:
            raise UsageError(f"distance is {self.distance}: use 0 or more bits")
        if self.distance is not None and self.distance >= self.recipe.bits:
            raise UsageError(
                f"distance is {self.distance}, and fingerprints have {self.recipe.bits} bits, so"
                " that any two documents match: use a few bits, such as 3"
            )

    def _check_kind(self) -> None:
        if self.similarity is not None and self.distance is not None:
            raise UsageError(
                "similarity and distance exclude each other: to check the distance's matches on the"
                " text, use distance with verify"
            )
        if self.verify is not None and self.distance is None:
            raise UsageError("verify belongs to distance: similarity is always verified")
        if self.measure != "jaccard" and not self.by_features:
            raise UsageError(
                f"measure is {self.measure!r}, and belongs to similarity: a distance compares"
                " fingerprints; leave it out, or use similarity, or distance with verify"
            )

    @property
    def number(self) -> str | None:
        """The field whose number decides the priority."""
        order, _, name = self.keep.partition(":")
        return name if order in {"max", "min"} and name else None

    @property
    def by_features(self) -> bool:
        """Whether the feature sets are compared."""
        return self.distance is None or self.verify is not None

    @property
    def match(self) -> Match:
        """When two feature sets match."""
        threshold = self.verify if self.similarity is None else self.similarity
        return Match(
            DEFAULT_SIMILARITY if threshold is None else threshold, self.measure, self.distance
        )

    def doubt(self, documents: int | None = None) -> str | None:
        """What to say where unrelated documents are expected to match by chance; else None.

        Args:
            documents: How many there are; None before they are read.
        """
        if self.distance is None or self.by_features:
            return None
        return chance_warning(self.distance, self.recipe.bits, documents)

    def bands(self, documents: int) -> BandPlan | None:
        """The plan for so many documents; None for the exact join."""
        if self.recall == 1 or not self.by_features:
            return None
        return plan_bands(self.match.similarity, self.recall, documents, self.measure)

    def check_plan(self, plan: str) -> None:
        """Refuse a plan that cannot find these matches.

        Raises:
            UsageError: For any plan but "auto" where features are compared, or one that is unknown
                or cannot work for the distance.
        """
        if not self.by_features:
            check_join_plan(plan, self.distance or 0, self.recipe.bits)
        elif plan != "auto":
            raise UsageError("a plan belongs to distance without verify: similarity has one search")

    def to_dict(self) -> dict[str, Any]:
        """Everything, as values that JSON can hold; `from_dict` takes it."""
        return {
            each.name: getattr(self, each.name) for each in fields(self) if each.name != "recipe"
        } | {"recipe": json.loads(self.recipe.to_json())}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Matching:
        """Make one of what `to_dict` gave, on another machine or in another process.

        Raises:
            UsageError: For a name that is none of its own, or values that contradict themselves.
            RecipeError: If the recipe cannot be.

        Example:
            >>> asked = Matching(distance=3, keep="longest")
            >>> Matching.from_dict(asked.to_dict()) == asked
            True
        """
        known = {each.name for each in fields(cls)}
        for name in sorted(set(values) - known):
            raise UsageError(f"{name!r} is no part of a matching: use {', '.join(sorted(known))}")
        given = dict(values)
        if "recipe" in given:
            given["recipe"] = Recipe.from_json(json.dumps(given["recipe"]))
        return cls(**given)

    def settings(self, documents: int = 0) -> dict[str, Any]:
        """What was asked for, and what was planned for so many documents, for the summary."""
        bands = self.bands(documents)
        return {
            "similarity": self.match.similarity if self.by_features else None,
            "measure": self.measure if self.by_features else None,
            "distance": self.distance,
            "recall": self.recall if self.by_features else None,
            "bands": None if bands is None else bands.to_dict(),
            "policy": self.policy,
            "keep": self.keep,
            "recipe": self.recipe.to_json(),
            "digest": self.recipe.digest,
        } | ({} if self.decisions is None else {"decisions": self.decisions})


@dataclass(frozen=True, slots=True)
class References:
    """Documents of an index that a decision names; their numbers go on from the run's own.

    Args:
        ids: Arrow array (m,).
        codes: uint64 (m, w): their fingerprints.
        places: int64 (m,): their numbers among all documents of the index, if those took part.
        every: Arrow array: the ids of all documents of the index, if those took part.
    """

    ids: Any
    codes: Codes
    places: Any = None
    every: Any = None


@dataclass(frozen=True, slots=True)
class Grouping:
    """The decision for every document.

    Args:
        kept_by: int64 (n,): the document kept for this one; a kept document names itself.
        label: int64 (n,): the document that names the cluster: the kept one (greedy) or the first
            one (components).
        similarity: float64 (n,): of the document and the one kept for it, or None if not measured.
        references: Documents of an index that were kept before, if it names such.
        via: int64 (n,): for a dropped document one that it matches itself, the next on a shortest
            way of matches to the one kept for it; None where that is always the kept one.
        own: int8 (n,): how the index has each document's own id, as `versions` of an index says;
            of ids that neardup makes itself ABSENT unless the content is the same. None without
            an index.
    """

    kept_by: Rows
    label: Rows
    similarity: npt.NDArray[np.float64] | None
    references: References | None = None
    via: Rows | None = None
    own: npt.NDArray[np.int8] | None = None

    @property
    def kept(self) -> Any:
        """Bool (n,): the document is kept."""
        return self.kept_by == np.arange(self.kept_by.size)


def priorities(n: int, keep: str, measured: Any = None) -> Any:
    """Order n documents from the highest priority to the lowest; int64 (n,).

    Args:
        n: How many.
        keep: As for Matching.
        measured: (n,), for "longest" the code points of each document, for "max:" and "min:" its
            number, NaN for none.

    Example:
        >>> priorities(3, "max:stars", np.array([1.0, np.nan, 2.0])).tolist()
        [2, 0, 1]
    """
    if keep.startswith("min:"):
        return np.argsort(measured, kind="stable")
    if keep == "longest" or keep.startswith("max:"):
        return np.argsort(-measured, kind="stable")
    rows = np.arange(n, dtype=np.int64)
    return rows[::-1].copy() if keep == "last" else rows


def group(
    matching: Matching,
    resources: Resources,
    values: Any,
    order: Any,
    sets: FeatureSets | None,
    groups: Any = None,
    work: Work | None = None,
    first_new: int = 0,
) -> Grouping:
    """Decide for every document.

    Args:
        matching: When documents match.
        resources: Its threads and its plan.
        values: uint64 (n, width), fingerprints, masked where a document is empty.
        order: int64 (n,): `priorities`.
        sets: The feature sets, if `matching.by_features`.
        groups: int32 (n,): only documents with the same number may match; None: all may. The
            feature sets have their own.
        work: Told what a greedy search on features took.
        first_new: So many documents, the first in order, are kept whatever matches them; only
            a greedy search on features may have any.
    """
    workers = resources.workers
    if sets is not None and matching.policy == "greedy":
        among = partners(matching, sets, workers)
        chosen = order if among is None else order[np.isin(order, among)]
        first = first_new if among is None else int(np.isin(order[:first_new], among).sum())
        kept_by, score = similar_greedy(sets, chosen, matching.match, workers, work, first)
        return Grouping(kept_by, kept_by, score)
    if sets is not None:
        among = partners(matching, sets, workers)
        label = similar_components(sets, matching.match, workers, among)
        kept_by = _best(label, order)
        score = similarities(sets, np.arange(len(sets)), kept_by, matching.measure)
        via = ways_by_features(sets, kept_by, score, matching.match, workers)
        return Grouping(kept_by, label, score, via=via)
    distance, bits = matching.distance or 0, matching.recipe.bits
    if matching.policy == "greedy":
        kept_by = greedy(values, order, distance, bits, resources.plan, workers, groups=groups)
        return Grouping(kept_by, kept_by, None)
    label = components(values, distance, bits, resources.plan, workers, groups=groups)
    kept_by = _best(label, order)
    return Grouping(kept_by, label, None, via=ways_by_distance(values, kept_by, distance))


def partners(matching: Matching, sets: FeatureSets, workers: int | None = None) -> Any:
    """The documents that may match, int64, ascending, where not all are to be found; else None."""
    plan = matching.bands(len(sets))
    if plan is None:
        return None
    return documents_with_partner(sets, matching.match, plan, workers)


def _best(label: Any, order: Any) -> Any:
    """For each document the one of highest priority with the same label."""
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    best = np.full(order.size, order.size, np.int64)
    np.minimum.at(best, label, rank)
    return order[best[label]] if order.size else label
