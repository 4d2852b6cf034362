"""Feature sets, and the rule by which two of them match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.runtime.arrays import frozen
from neardup.similarity.measures import MEASURES, ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.kernels.similarity.join_arguments import Condition, Sets
    from neardup.runtime.types import Codes, Hashes, Offsets
    from neardup.similarity.measures import Measure
    from neardup.similarity.spilled import Spill

__all__ = ["ANY_DISTANCE", "FeatureSets", "Match", "Work", "arguments", "similarities"]


ANY_DISTANCE: Final = (1 << 63) - 1
"""A distance above the width of any fingerprint, for rules without one."""


@dataclass(frozen=True, slots=True)
class FeatureSets:
    """The distinct feature hashes of every document.

    Args:
        features: uint64: those of document 0, then of document 1, and so on.
        offsets: int64 (n + 1,): document i has features[offsets[i]:offsets[i + 1]].
        codes: uint64 (n, width): their fingerprints, low word first.
        groups: int32 (n,): only documents with the same number may match; None: all may.
        cell_limit: Most bytes that the counts of features may take.
        forget: Called after each chunk: gives back the memory of features read from disk.
        spill: When the index of keys goes to disk, for greedy and components; None: never.
    """

    features: Hashes
    offsets: Offsets
    codes: Codes
    groups: Any = None
    cell_limit: int = 1 << 30
    forget: Callable[[], None] = lambda: None
    spill: Spill | None = None

    def __len__(self) -> int:
        """The number of documents."""
        return int(self.offsets.size - 1)


@dataclass(frozen=True, slots=True)
class Match:
    """The rule by which two documents match.

    Args:
        similarity: Least similarity of the feature sets, above 0, up to 1.
        measure: "jaccard" (shared / distinct features of both), "cosine" (shared / root of the
            product of their sizes), "containment" (shared / features of the smaller) or "dice"
            (shared / mean of their sizes).
        distance: Most bits in which their fingerprints may differ as well; None: any number.

    Raises:
        UsageError: If one is out of range.
    """

    similarity: float = 0.8
    measure: str = "jaccard"
    distance: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        is_number = isinstance(self.similarity, (int, float, np.number))
        if isinstance(self.similarity, bool) or not (is_number and 0 < float(self.similarity) <= 1):
            raise UsageError(f"similarity is {self.similarity!r}: use a number above 0, up to 1")
        if self.measure not in list(MEASURES):
            raise UsageError(f"measure is {self.measure!r}: use one of {', '.join(MEASURES)}")
        if self.distance is not None and self.distance < 0:
            raise UsageError(f"distance is {self.distance}: use 0 or more bits")

    @property
    def kind(self) -> Measure:
        """The measure of the rule."""
        return MEASURES[self.measure]

    @property
    def least_ratio(self) -> float:
        """The least ratio of the sizes of two sets that match, the smaller by the larger.

        Example:
            >>> Match(0.5).least_ratio, Match(0.5, "containment").least_ratio
            (0.4999999995, 0.0)
        """
        return self.kind.size_ratio(float(self.similarity)) * (1 - ROUNDING)

    def least_shared(self, one: Any, other: Any) -> Any:
        """The least number of features that two matching sets of these sizes share; int64.

        Example:
            >>> Match(0.8).least_shared(np.array([9, 9]), np.array([9, 8])).tolist()
            [8, 8]
        """
        a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
        reach = float(self.similarity) * (1 - ROUNDING)
        return np.ceil(self.kind.overlap(reach, a, b)).astype(np.int64)

    def prefixes(self, sizes: Any) -> Any:
        """The most keys that sets of these sizes have; int64.

        The rarest, all but those that are shared with any match, and one.

        Example:
            >>> Match(0.8).prefixes(np.array([0, 1, 9])).tolist()
            [0, 1, 2]
        """
        least = np.ceil(sizes * self.least_ratio).astype(np.int64)
        return np.minimum(sizes, sizes - least + 1)


@dataclass(slots=True)
class Work:
    """Counters of a search, filled in when it ends.

    Args:
        postings: Entries of the index.
        candidates: Pairs that were verified.
    """

    postings: int = 0
    candidates: int = 0


def arguments(sets: FeatureSets, match: Match) -> tuple[Sets, Condition]:
    """The arguments of kernels for feature sets and a rule, with the same types for any input."""
    from neardup.kernels.similarity.join_arguments import Condition, Sets

    groups = np.zeros(0, np.int32) if sets.groups is None else sets.groups
    arrays = Sets(*map(frozen, (sets.features, sets.offsets, groups, sets.codes)))
    distance = ANY_DISTANCE if match.distance is None else match.distance
    return arrays, Condition(match.kind.number, float(match.similarity), distance)


def similarities(sets: FeatureSets, left: Any, right: Any, measure: str = "jaccard") -> Any:
    """The similarity of documents left[i] and right[i] (int64 arrays); float64."""
    from neardup.kernels.similarity.members import scores

    return scores(sets.features, sets.offsets, left, right, MEASURES[measure].number)
