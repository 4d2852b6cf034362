"""What a durable index was made with, compared with what it is opened with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.errors import UsageError
from neardup.fingerprinting.values import check_distance
from neardup.index.attachments import STORES
from neardup.index.durable.log_entries import FORMAT
from neardup.index.kind_settings import DEFAULT_DISTANCE, Settings, bits_of, check_recipe
from neardup.runtime.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.fingerprinting.recipe import Recipe

__all__ = ["check_settings", "new_settings"]


def new_settings(
    distance: int | None,
    bits: int | None,
    recipe: Recipe | None,
    plan: str | None,
    kept: str | None,
) -> dict[str, Any]:
    """What a new folder says of itself; UsageError for what cannot be."""
    width = bits_of(bits, recipe)
    reach = DEFAULT_DISTANCE if distance is None else distance
    settings = Settings(reach, width, recipe, plan or "auto", None)
    if kept not in {None, *STORES}:
        raise UsageError(f"store is {kept!r}: use one of {', '.join(STORES)}")
    return {
        "format": FORMAT,
        "neardup": __version__,
        "store": kept or "none",
        **settings.described(),
    }


def check_settings(
    folder: Path, made: dict[str, Any], distance: int | None, recipe: Recipe | None, **asked: Any
) -> None:
    """Compare what is asked for with what a folder was made with; None asks for nothing.

    Raises:
        UsageError: If they differ, or the distance is larger.
        RecipeError: If the recipes differ.
    """
    for name, value in asked.items():
        if value is not None and value != made[name]:
            raise UsageError(
                f"{name} is {value!r}, but the index in {folder} was made with {made[name]!r}:"
                " leave it out, or make another index"
            )
    if distance is not None:
        check_distance(distance)
    if distance is not None and distance > made["distance"]:
        raise UsageError(
            f"distance is {distance}, but the index in {folder} was made for {made['distance']}:"
            " use that or less, or make another index and merge this one into it"
        )
    check_recipe(str(folder), made, recipe)
