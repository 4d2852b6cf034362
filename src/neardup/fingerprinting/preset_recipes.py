"""The presets by name: recipes that reproduce other libraries' fingerprints bit for bit.

One file a family; each maps a text to that library's features and folds them to its value.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neardup.errors import RecipeError, UsageError
from neardup.fingerprinting.libraries.table import ALIASES, PRESETS, find_preset, refuse_others
from neardup.fingerprinting.recipe import Recipe, recipe_of

if TYPE_CHECKING:
    from neardup.fingerprinting.libraries.library_parts import Feature

__all__ = ["fingerprint_features", "preset", "presets"]


def preset(name: str, **options: Any) -> Recipe:
    """Give the recipe that reproduces another library's fingerprints.

    Args:
        name: One of `presets()`, or a version of a library, such as "pypi-simhash-1.7.1".
        options: What the library lets one choose: `bits`, and `top`, `ngram`, `casefold` or
            `normalize` where it has them; for "yanyiwu" `dictionary`, a folder with cppjieba's
            files.

    Raises:
        RecipeError: For an unknown name (near ones are suggested), an option that the preset does
            not take, or a width that it cannot give.

    Example:
        >>> from neardup import fingerprint, preset
        >>> fingerprint("How are you i am fine. blar blar blar blar blar than",
        ...             recipe=preset("pypi-simhash"))
        8440240356449459322
    """
    if isinstance(options.get("dictionary"), str | Path):
        from neardup.features.keyword_weights import load_folder

        options["dictionary"] = load_folder(options["dictionary"])
    target, fixed = ALIASES.get(str(name), (name, {}))
    library = find_preset(target)
    refuse_others(name, options, library)
    for field, value in fixed.items():
        if options.get(field, value) != value:
            raise RecipeError(f"{field} is {options[field]!r}: the preset {name} has {value!r}")
    return Recipe(preset=target, **(dict(library.options) | fixed | options))


def presets() -> dict[str, str]:
    """The names of the presets, with a line about each.

    Example:
        >>> presets()["go-dedup-cjk"]
        'go-dedup/simhash, simhashCJK: each character a feature, FNV-1, ties are 1'
    """
    return {name: library.about for name, library in PRESETS.items()}


def fingerprint_features(
    recipe: Recipe, features: Iterable[str | bytes | tuple[str | bytes, float]]
) -> int:
    """The value that the recipe's preset gives features, or keywords, of the caller.

    Args:
        recipe: As `preset` makes it.
        features: Strings or bytes, of weight 1 each, or pairs of one and its weight.

    Raises:
        RecipeError: If the recipe is not one of a preset.
        UsageError: If a weight is negative or not finite, or no whole number where the library
            counts, or something is not a feature.

    Example:
        >>> fingerprint_features(preset("yanyiwu"), [("你好", 2.0), ("世界", 1.0)])
        17676873585679812141
    """
    library = find_preset(recipe_of(recipe).preset)
    if isinstance(features, str | bytes) or not isinstance(features, Iterable):
        raise UsageError(f"features is {features!r:.60}: pass a list of strings, or of pairs")
    pairs = [_checked(feature) for feature in features]
    return library.fold(pairs, recipe)


def _checked(feature: Any) -> Feature:
    token, weight = (
        feature if isinstance(feature, tuple | list) and len(feature) == 2 else (feature, 1)
    )
    if not isinstance(token, str | bytes):
        raise UsageError(f"a feature is {feature!r:.60}: pass a string, or one and its weight")
    if not isinstance(weight, numbers.Real) or not 0 <= float(weight) < math.inf:
        raise UsageError(f"the weight of {token!r:.60} is {weight!r:.60}: use a number from 0 up")
    return (token.encode("utf-8", "replace") if isinstance(token, str) else token, weight)  # type: ignore[return-value]
