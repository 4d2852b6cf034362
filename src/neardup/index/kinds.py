"""The kind of an index, from a caller's options or a file: by distance or by similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.index.distance_kind import ByDistance
from neardup.index.kind_settings import DEFAULT_DISTANCE, bits_of, check_kind, stored_recipe
from neardup.index.similarity_kind import BySimilarity

if TYPE_CHECKING:
    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.versions import AnyKind

__all__ = ["kind_of", "new_kind"]


def new_kind(  # noqa: PLR0913  # what both kinds take
    distance: int | None, bits: int | None, recipe: Recipe | None, plan: str | None,
    memory: int | None, similarity: float | None, measure: str | None, store: str | None = None,
    extract: str | None = None,
) -> AnyKind:  # fmt: skip
    """The kind for a caller's options; None means no request.

    Raises:
        UsageError: For settings that cannot be, or options of both kinds.
    """
    if similarity is None and measure is None:
        reach = DEFAULT_DISTANCE if distance is None else distance
        return ByDistance(reach, bits_of(bits, recipe), recipe, plan or "auto", memory, extract)
    least = check_kind(
        similarity, distance=distance, bits=bits, plan=plan, memory=memory, store=store
    )
    return BySimilarity(least, measure or "jaccard", recipe, extract)


def kind_of(settings: dict[str, Any], recipe: Recipe | None) -> AnyKind:
    """The kind that a file or folder describes, with a recipe that was checked against it."""
    own, extract = stored_recipe(settings, recipe), settings.get("extract")
    if "similarity" in settings:
        return BySimilarity(settings["similarity"], settings["measure"], own, extract)
    return ByDistance(settings["distance"], settings["bits"], own, settings["plan"], None, extract)
