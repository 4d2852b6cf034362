"""The options of a run: when documents match, which are kept, and its resources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from neardup.documents.batch import longest_record
from neardup.documents.ordering import LARGEST_FIRST, SMALLEST_FIRST, Order, check_date_format
from neardup.errors import UsageError
from neardup.fingerprinting.recipe import Recipe
from neardup.hamming.chance import chance_warning
from neardup.hamming.plans.plan_checks import check_join_plan
from neardup.runtime.free_memory import memory_bytes
from neardup.similarity.feature_sets import Match

__all__ = [
    "KEEPS",
    "POLICIES",
    "Choice",
    "Limits",
    "Rule",
    "settings",
]

KEEPS: Final = ("first", "last", "longest")
POLICIES: Final = ("greedy", "components")
DEFAULT_SIMILARITY: Final = 0.8


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule by which two documents match.

    Args:
        similarity: Least similarity of the feature sets; 0.8 by default, without a distance.
        distance: Most bits in which fingerprints may differ.
        verify: With a distance: least similarity as well.
        measure: The measure of similarity: "jaccard", "cosine", "containment" or "dice".
        recipe: How a document becomes features and a fingerprint.

    Raises:
        UsageError: For values out of range, similarity together with distance, or a measure with a
            distance alone.
    """

    similarity: float | None = None
    distance: int | None = None
    verify: float | None = None
    measure: str = "jaccard"
    recipe: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        """Refuse contradictory values."""
        self._check_kind()
        if self.by_features:
            self.match  # noqa: B018  # refuses values out of range
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
            raise UsageError("verify requires distance: similarity is always verified")
        if self.measure != "jaccard" and not self.by_features:
            raise UsageError(
                f"measure is {self.measure!r}, and requires similarity: a distance compares"
                " fingerprints; leave it out, or use similarity, or distance with verify"
            )

    @property
    def by_features(self) -> bool:
        """Whether the feature sets are compared."""
        return self.distance is None or self.verify is not None

    @property
    def match(self) -> Match:
        """The rule by which two feature sets match."""
        threshold = self.verify if self.similarity is None else self.similarity
        return Match(
            DEFAULT_SIMILARITY if threshold is None else threshold, self.measure, self.distance
        )

    def doubt(self, documents: int | None = None) -> str | None:
        """A warning if unrelated documents are expected to match by chance; else None.

        Args:
            documents: Their number; None before they are read.
        """
        if self.distance is None or self.by_features:
            return None
        return chance_warning(self.distance, self.recipe.bits, documents)

    def check_plan(self, plan: str) -> None:
        """Refuse a plan that cannot find these matches.

        Raises:
            UsageError: For any plan except "auto" if features are compared, or one that is unknown
                or cannot work for the distance.
        """
        if not self.by_features:
            check_join_plan(plan, self.distance or 0, self.recipe.bits)
        elif plan != "auto":
            raise UsageError("a plan requires distance without verify: similarity has one search")


@dataclass(frozen=True, slots=True)
class Choice:
    """The rule that says which of several matching documents are kept.

    Args:
        keep: Which document has priority: "first", "last", "longest" (in code points), or the one
            with the largest or smallest number in a field ("max:FIELD", "min:FIELD"), or with the
            latest or earliest date ("newest:FIELD", "oldest:FIELD"). None comes last, and ties go
            to the first.
        policy: "greedy" drops a document only if it matches a kept one; "components" keeps one of
            each transitive group.
        decisions: A file of answers from `neardup review`, which override matches; for the policy
            "greedy".
        date_format: The form of dates that are texts, as in `datetime.strptime`, for ISO 8601;
            "max:FIELD" and "min:FIELD" then compare dates.

    Raises:
        UsageError: For an unknown policy, keep or form of dates, or answers with another policy.
    """

    keep: str = "first"
    policy: str = "greedy"
    decisions: str | None = None
    date_format: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is unknown."""
        if self.keep not in KEEPS and not self.number:
            raise UsageError(
                f"keep is {self.keep!r}: use one of {', '.join(KEEPS)}, max:FIELD, min:FIELD,"
                " newest:FIELD, oldest:FIELD"
            )
        if self.date_format is not None:
            if not self.number:
                raise UsageError(
                    f"a date format requires newest:FIELD or oldest:FIELD, not {self.keep}"
                )
            check_date_format(self.date_format)
        if self.policy not in POLICIES:
            raise UsageError(f"policy is {self.policy!r}: use one of {', '.join(POLICIES)}")
        if self.decisions is not None and self.policy != "greedy":
            raise UsageError(
                f"decisions require the policy greedy: {self.policy} joins all that match"
            )

    @property
    def number(self) -> str | None:
        """The field whose number or date decides the priority."""
        order, _, name = self.keep.partition(":")
        return name if order in {*LARGEST_FIRST, *SMALLEST_FIRST} and name else None

    @property
    def dates(self) -> bool:
        """Whether it is a date."""
        return self.date_format is not None or self.keep.startswith(("newest:", "oldest:"))

    @property
    def order(self) -> Order | None:
        """The form in which the field of the priority is read."""
        return None if self.number is None else Order(self.number, self.dates, self.date_format)

    @property
    def reading(self) -> dict[str, Any]:
        """The options for reading, by the names of ReadOptions."""
        return {"number": self.number, "dates": self.dates, "date_format": self.date_format}


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources of a run, and its way to search; no result depends on them.

    The exception is a record that does not fit in memory, which is a bad one.

    Args:
        memory: The memory budget in bytes, without the data that grow with the number of documents;
            the rest goes to disk.
        tmp: Folder for temporary files; the system's by default.
        workers: Threads; all processors by default.
        plan: How to search for fingerprints, as for `pairs`; features only have "auto".
    """

    memory: int = field(default_factory=lambda: memory_bytes(None))
    tmp: str | None = None
    workers: int | None = None
    plan: str = "auto"

    @property
    def record_bytes(self) -> int:
        """The longest record of the input that the run accepts."""
        return longest_record(self.memory)


def settings(rule: Rule, choice: Choice) -> dict[str, Any]:
    """The options of a run, for its summary."""
    extra = {"decisions": choice.decisions, "date_format": choice.date_format}
    return {
        "similarity": rule.match.similarity if rule.by_features else None,
        "measure": rule.measure if rule.by_features else None,
        "distance": rule.distance,
        "policy": choice.policy,
        "keep": choice.keep,
        "recipe": rule.recipe.to_json(),
        "digest": rule.recipe.digest,
    } | {name: value for name, value in extra.items() if value is not None}
