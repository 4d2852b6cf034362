"""What an index by similarity is made for."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from neardup.documents.markup import FirstTexts
from neardup.errors import UsageError
from neardup.fingerprinting.recipe import recipe_of
from neardup.similarity.feature_sets import ANY_DISTANCE, Match
from neardup.similarity.measures import MEASURES

if TYPE_CHECKING:
    from neardup.fingerprinting.recipe import Recipe
    from neardup.kernels.similarity.arguments import Condition
    from neardup.similarity.measures import Measure

__all__ = ["SimilarSettings"]


@dataclass(frozen=True, slots=True)
class SimilarSettings:
    """Checked settings.

    Args:
        similarity: The least that a query may ask for, above 0, up to 1.
        measure: "jaccard", "cosine", "containment" or "dice".
        recipe: How texts become features; None: feature hashes are given.

    Raises:
        UsageError: If one is out of range, or the recipe has no features or is none.
    """

    similarity: float
    measure: str
    recipe: Recipe | None
    first_texts: FirstTexts = field(default_factory=FirstTexts, compare=False, repr=False)

    takes: ClassVar[str] = "feature hashes"

    def __post_init__(self) -> None:
        """Check."""
        Match(self.similarity, self.measure)
        if self.recipe is not None and recipe_of(self.recipe).preset is not None:
            raise UsageError(
                f"the preset {self.recipe.preset} has no features to compare: use a recipe, or an"
                " index by distance"
            )

    @property
    def kind(self) -> Measure:
        """The row of the measure."""
        return MEASURES[self.measure]

    def condition(self, similarity: float | None = None) -> Condition:
        """When a query and a document match, as kernels take it; the index's own unless said."""
        return _condition(self.kind.number, self.similarity if similarity is None else similarity)

    def described(self) -> dict[str, Any]:
        """What a file says of the index: JSON values."""
        return {
            "similarity": self.similarity,
            "measure": self.measure,
            "recipe": self.recipe.to_json() if self.recipe else None,
            "digest": self.recipe.digest if self.recipe else None,
        }

    def reach(self, similarity: float) -> float:
        """Check the similarity that a query asks for.

        Raises:
            UsageError: If it is less than the index was made for, or more than 1.
        """
        Match(similarity, self.measure)
        if similarity < self.similarity:
            raise UsageError(
                f"similarity is {similarity}, but the index was made for {self.similarity}: use"
                " `nearest`, or make an index for the smaller one"
            )
        return float(similarity)


@functools.lru_cache(64)
def _condition(code: int, similarity: float) -> Condition:
    from neardup.kernels.similarity.arguments import Condition

    return Condition(code, float(similarity), ANY_DISTANCE)
