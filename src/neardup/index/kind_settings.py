"""Settings of an index: width, distance, plan, recipe."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from neardup.documents.markup import FirstTexts, check_extract
from neardup.errors import RecipeError, UsageError
from neardup.fingerprinting.recipe import Recipe, recipe_of
from neardup.fingerprinting.values import check_distance
from neardup.hamming.plans.plan_checks import check_search_plan
from neardup.runtime.free_memory import free_memory
from neardup.similarity.feature_sets import ANY_DISTANCE, Match
from neardup.similarity.measures import MEASURES

if TYPE_CHECKING:
    from neardup.kernels.similarity.join_arguments import Condition
    from neardup.similarity.measures import Measure

__all__ = [
    "DEFAULT_DISTANCE",
    "DistanceSettings",
    "SimilaritySettings",
    "bits_of",
    "check_kind",
    "check_recipe",
    "check_same_recipe",
    "stored_recipe",
]

DEFAULT_DISTANCE: Final = 3
OF_SIMILARITY: Final = {"plan": ("auto",), "store": ("features", "text")}
"""The options of an index by distance that one by similarity shares."""
SHARE_FOR_TABLES: Final = 0.5
"""The share of the free memory that tables may take."""


@dataclass(frozen=True, slots=True)
class DistanceSettings:
    """Checked settings of an index.

    Raises:
        UsageError: For a distance, width or plan that cannot be, or a recipe of another width.
    """

    distance: int
    bits: int
    recipe: Recipe | None
    plan: str
    memory: int | None
    extract: str | None = None
    first_texts: FirstTexts = field(default_factory=FirstTexts, compare=False, repr=False)

    takes: ClassVar[str] = "fingerprints"

    def __post_init__(self) -> None:
        """Check."""
        check_distance(self.distance)
        if not isinstance(self.bits, int) or self.bits < 1:
            raise UsageError(f"bits is {self.bits!r}: use a whole number from 1")
        if self.recipe is not None and self.recipe.bits != self.bits:
            raise UsageError(
                f"bits is {self.bits}, but the recipe makes fingerprints of"
                f" {self.recipe.bits}: leave bits out"
            )
        check_search_plan(self.plan, self.distance, self.bits)
        check_extract(self.extract)

    @property
    def width(self) -> int:
        """uint64 words of a fingerprint."""
        return -(-self.bits // 64)

    def described(self) -> dict[str, Any]:
        """The description of the index in a file: JSON values."""
        return {
            "distance": self.distance,
            "bits": self.bits,
            "plan": self.plan,
            "recipe": self.recipe.to_json() if self.recipe else None,
            "digest": self.recipe.digest if self.recipe else None,
            **_extraction(self.extract),
        }

    def table_memory(self) -> float:
        """Bytes that the tables of one segment may take."""
        return self.memory if self.memory is not None else SHARE_FOR_TABLES * free_memory()


def bits_of(bits: int | None, recipe: Recipe | None) -> int:
    """The width of fingerprints; by default the recipe's, or 64.

    Raises:
        RecipeError: If the recipe is not a Recipe.
    """
    width = recipe_of(recipe).bits
    return width if bits is None else bits


def check_kind(similarity: float | None, **requested: Any) -> float:
    """Refuse options of an index by distance for one by similarity.

    Returns:
        The similarity.

    Raises:
        UsageError: If such an option is given, or the similarity is missing.
    """
    if similarity is None:
        raise UsageError("only an index by similarity takes measure: give similarity=0.8, say")
    for name, value in requested.items():
        allowed = OF_SIMILARITY.get(name, ())
        if value is not None and value not in allowed:
            use = f"use {' or '.join(allowed)}, or " if allowed else ""
            raise UsageError(
                f"{name} is {value!r}, which only an index by distance takes, and this one is by"
                f" similarity, from {similarity!r}: {use}leave it out"
            )
    return similarity


def check_recipe(path: str, settings: dict[str, Any], recipe: Recipe | None) -> None:
    """Compare a requested recipe with that of a stored index.

    Raises:
        RecipeError: If they differ.
    """
    if recipe is not None and recipe_of(recipe).digest != settings["digest"]:
        there = f"with recipe {settings['digest']}" if settings["digest"] else "without a recipe"
        raise RecipeError(
            f"the recipe is {recipe.digest}, but the index in {path} was made {there}:"
            " documents of two recipes cannot be compared; leave it out, or make another index"
        )


def check_same_recipe(mine: Recipe | None, theirs: Recipe | None, *, foreign: bool) -> None:
    """Compare the recipes of two indexes before one is merged into the other.

    Args:
        mine: Recipe of the index that receives documents.
        theirs: Recipe of the other index.
        foreign: Whether documents of an unknown recipe count as those of `mine`.

    Raises:
        RecipeError: If both are known and differ, or only `mine` is, and they are not `foreign`.
    """
    if mine and not theirs and not foreign:
        raise RecipeError(
            f"this index has recipe {mine.digest}, the other none, so nothing says that its"
            " documents are of that recipe: if they are, pass foreign=True"
        )
    if mine and theirs and mine.digest != theirs.digest:
        raise RecipeError(
            f"the other index's recipe is {theirs.digest}, this one's {mine.digest}: documents of"
            " two recipes cannot be compared"
        )


def stored_recipe(settings: dict[str, Any], recipe: Recipe | None) -> Recipe | None:
    """The requested recipe, which `check_recipe` has checked, or that of the stored index."""
    return recipe or (Recipe.from_json(settings["recipe"]) if settings["recipe"] else None)


@dataclass(frozen=True, slots=True)
class SimilaritySettings:
    """Checked settings.

    Args:
        similarity: The least that a query may ask for, above 0, up to 1.
        measure: "jaccard", "cosine", "containment" or "dice".
        recipe: How texts become features; None if documents are feature hashes.

    Raises:
        UsageError: If one is out of range, or the recipe has no features or is not a Recipe.
    """

    similarity: float
    measure: str
    recipe: Recipe | None
    extract: str | None = None
    first_texts: FirstTexts = field(default_factory=FirstTexts, compare=False, repr=False)

    takes: ClassVar[str] = "feature hashes"

    def __post_init__(self) -> None:
        """Check."""
        Match(self.similarity, self.measure)
        check_extract(self.extract)
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
        """The condition of a match, in the form of the kernels; by default the index's own."""
        return _condition(self.kind.number, self.similarity if similarity is None else similarity)

    def described(self) -> dict[str, Any]:
        """The description of the index in a file: JSON values."""
        return {
            "similarity": self.similarity,
            "measure": self.measure,
            "recipe": self.recipe.to_json() if self.recipe else None,
            "digest": self.recipe.digest if self.recipe else None,
            **_extraction(self.extract),
        }

    def checked(self, similarity: float) -> float:
        """Check the similarity of a query.

        Raises:
            UsageError: If it is below that of the index, or above 1.
        """
        Match(similarity, self.measure)
        if similarity < self.similarity:
            raise UsageError(
                f"similarity is {similarity}, but the index was made for {self.similarity}: use"
                " `nearest`, or make an index for the smaller one"
            )
        return float(similarity)


def _extraction(extract: str | None) -> dict[str, str]:
    """The entry for a file; empty if `extract` was not named, as in files of earlier versions."""
    return {} if extract is None else {"extract": extract}


@functools.lru_cache(64)
def _condition(code: int, similarity: float) -> Condition:
    from neardup.kernels.similarity.join_arguments import Condition

    return Condition(code, float(similarity), ANY_DISTANCE)
