"""The rule of a call, from the parts of a question that it names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from neardup.errors import UsageError
from neardup.fingerprinting.question import question_for
from neardup.fingerprinting.recipe import recipe_of
from neardup.pipeline.run.rule import Rule
from neardup.pipeline.run.service_index import ServiceIndex, is_service

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.fingerprinting.question import Question
    from neardup.fingerprinting.recipe import Recipe
    from neardup.index import DurableIndex

__all__ = ["rule_of", "rule_of_index"]


def rule_of(
    question: Question | None = None,
    similarity: float | None = None,
    distance: int | None = None,
    verify: float | None = None,
    measure: str | None = None,
    recipe: Recipe | None = None,
    stored: Callable[[], Rule | None] | None = None,
) -> Rule:
    """The rule of a call; `question_for` decides the parts that it does not name.

    A call against an index takes from the index the recipe, and the distance or the similarity with
    its measure, that it does not name.

    Args:
        question: A whole question.
        similarity: A part of one, like `measure` and `recipe`.
        distance: As in Rule, like `verify`.
        verify: With a distance.
        measure: The measure of similarity.
        recipe: How a document becomes features and a fingerprint.
        stored: Reads the rule of the reference index, if there is one.

    Raises:
        UsageError: For parts that exclude each other, or values out of range.
        RecipeError: If the recipe cannot be compared.
    """
    own = None if stored is None or question is not None else stored()
    if own is not None:
        recipe = own.recipe if recipe is None else recipe
        if own.distance is None and distance is None:
            similarity = own.similarity if similarity is None else similarity
            measure = own.measure if measure is None else measure
        elif distance is None and similarity is None and (verify is not None or measure is None):
            distance = own.distance
    if distance is not None:
        if question is not None:
            raise UsageError(
                "question and distance exclude each other: a question is by similarity"
            )
        kind = "jaccard" if measure is None else measure
        return Rule(similarity, distance, verify, kind, recipe_of(recipe))
    resolved = question_for(question, similarity, measure, recipe)
    return Rule(resolved.similarity, None, verify, resolved.measure, resolved.recipe)


def rule_of_index(folder: str | os.PathLike[str]) -> Rule | None:
    """The rule of an index in a folder, or of a service; None for an index without a recipe."""
    if is_service(address := os.fspath(folder)):
        with ServiceIndex(address) as service:
            return _rule(service)
    from neardup.index.durable import DurableIndex

    with DurableIndex.open(folder, create=False, readonly=True) as index:
        return _rule(index)


def _rule(index: DurableIndex | ServiceIndex) -> Rule | None:
    if index.recipe is None:
        return None
    if index.by == "distance":
        return Rule(distance=index.distance, recipe=index.recipe)
    return Rule(index.similarity, measure=index.measure, recipe=index.recipe)
