"""The rule of a call, from the parts of a question that it names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from neardup.errors import UsageError
from neardup.fingerprinting.question import Question, question_for
from neardup.fingerprinting.recipe import recipe_of
from neardup.pipeline.run.rule import Rule
from neardup.pipeline.run.service_index import ServiceIndex, is_service

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.fingerprinting.recipe import Recipe

__all__ = ["question_of_index", "rule_of"]


def rule_of(
    question: Question | None = None,
    similarity: float | None = None,
    distance: int | None = None,
    verify: float | None = None,
    measure: str | None = None,
    recipe: Recipe | None = None,
    stored: Callable[[], Question | None] | None = None,
) -> Rule:
    """The rule of a call; `question_for` decides the parts that it does not name.

    A call against an index by similarity that names nothing uses the index's own question.

    Args:
        question: A whole question.
        similarity: A part of one, like `measure` and `recipe`.
        distance: As in Rule, like `verify`.
        verify: With a distance.
        measure: The measure of similarity.
        recipe: How a document becomes features and a fingerprint.
        stored: Reads the question of the reference index, if there is one.

    Raises:
        UsageError: For parts that exclude each other, or values out of range.
        RecipeError: If the recipe cannot be compared.
    """
    if stored is not None and all(
        part is None for part in (question, similarity, distance, verify, measure, recipe)
    ):
        question = stored()
    if distance is not None:
        if question is not None:
            raise UsageError(
                "question and distance exclude each other: a question is by similarity"
            )
        kind = "jaccard" if measure is None else measure
        return Rule(similarity, distance, verify, kind, recipe_of(recipe))
    resolved = question_for(question, similarity, measure, recipe)
    return Rule(resolved.similarity, None, verify, resolved.measure, resolved.recipe)


def question_of_index(folder: str | os.PathLike[str]) -> Question | None:
    """The question of an index in a folder, or of a service; None for an index by distance."""
    if is_service(address := os.fspath(folder)):
        with ServiceIndex(address) as service:
            return service.question
    from neardup.index.durable import DurableIndex

    with DurableIndex.open(folder, create=False, readonly=True) as index:
        question: Question | None = getattr(index, "question", None)
        return question
