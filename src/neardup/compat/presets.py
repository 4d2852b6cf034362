"""The presets by name: recipes that reproduce other libraries' fingerprints bit for bit.

One file a family; each maps a text to that library's features and folds them to its value.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from neardup.compat import (
    ferd,
    gaoya,
    go,
    pypi_simhash,
    scrapinghub,
    seomoz,
    text_dedup,
    trafilatura,
    yanyiwu,
)
from neardup.errors import RecipeError, UsageError
from neardup.recipe import Recipe, recipe_of

if TYPE_CHECKING:
    from neardup.compat.parts import Aliases, Feature, Preset

__all__ = ["PRESETS", "fingerprint_features", "fingerprint_text", "preset", "presets"]

_MODULES: Final = (
    pypi_simhash,
    go,
    yanyiwu,
    seomoz,
    gaoya,
    text_dedup,
    trafilatura,
    ferd,
    scrapinghub,
)

PRESETS: Final[dict[str, Preset]] = {
    name: found for module in _MODULES for name, found in module.PRESETS.items()
}

ALIASES: Final[Aliases] = {
    alias: target
    for module in (pypi_simhash, go, seomoz, text_dedup, ferd)
    for alias, target in module.ALIASES.items()
}


def preset(name: str, **options: Any) -> Recipe:
    """Give the recipe that reproduces another library's fingerprints.

    Args:
        name: One of `presets()`, or a version of a library, such as "pypi-simhash-1.7.1".
        options: What the library lets one choose: `bits`, and `top`, `ngram`, `casefold` or
            `normalize` where it has them.

    Raises:
        RecipeError: For an unknown name (near ones are suggested), an option that the preset does
            not take, or a width that it cannot give.

    Example:
        >>> from neardup import fingerprint, preset
        >>> fingerprint("How are you i am fine. blar blar blar blar blar than",
        ...             recipe=preset("pypi-simhash"))
        8440240356449459322
    """
    target, fixed = ALIASES.get(str(name), (name, {}))
    found = _find(target)
    _refuse_others(name, options, found)
    for field, value in fixed.items():
        if options.get(field, value) != value:
            raise RecipeError(f"{field} is {options[field]!r}: the preset {name} has {value!r}")
    return Recipe(preset=target, **(dict(found.options) | fixed | options))


def presets() -> dict[str, str]:
    """The names of the presets, with a line about each.

    Example:
        >>> presets()["go-dedup-cjk"]
        'go-dedup/simhash, simhashCJK: each character a feature, FNV-1, ties are 1'
    """
    return {name: found.about for name, found in PRESETS.items()}


def fingerprint_text(text: str, recipe: Recipe) -> int:
    """The value that the recipe's preset gives a text; also for the empty one."""
    found = _find(recipe.preset)
    if found.direct is not None:
        return found.direct(text, recipe)
    return found.fold(found.features(text, recipe), recipe)


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
            counts, or something is no feature.

    Example:
        >>> fingerprint_features(preset("yanyiwu"), [("你好", 2.0), ("世界", 1.0)])
        17676873585679812141
    """
    found = _find(recipe_of(recipe).preset)
    if isinstance(features, str | bytes) or not isinstance(features, Iterable):
        raise UsageError(f"features is {features!r:.60}: pass a list of strings, or of pairs")
    pairs = [_checked(feature) for feature in features]
    return found.fold(pairs, recipe)


def check(recipe: Recipe) -> None:
    """Refuse a recipe whose preset is unknown or cannot be as its other fields say.

    Raises:
        RecipeError: As `preset` does.
    """
    found = _find(recipe.preset)
    if recipe.bits not in found.widths:
        raise RecipeError(
            f"bits is {recipe.bits}: the preset {recipe.preset} gives {_listed(found.widths)}"
        )
    changed = {
        field.name: getattr(recipe, field.name)
        for field in dataclasses.fields(recipe)
        if field.name != "preset" and getattr(recipe, field.name) != field.default
    }
    _refuse_others(str(recipe.preset), changed, found)


def _find(name: Any) -> Preset:
    if not isinstance(name, str):
        raise RecipeError(f"preset is {name!r:.60}: pass a name; neardup.presets() lists them")
    if name in PRESETS:
        return PRESETS[name]
    near = _near(name)
    hint = f"did you mean {' or '.join(near)}?" if near else "neardup.presets() lists them"
    raise RecipeError(f"preset is {name!r:.60}: there is none of this name; {hint}")


def _near(name: str) -> list[str]:
    """Up to three names that hold this one, the shortest first, or are spelled much like it."""
    plain = name.lower().replace("_", "-").replace(" ", "-")
    holding = sorted((x for x in PRESETS if plain and plain in x), key=len)
    alike = difflib.get_close_matches(plain, [*PRESETS, *ALIASES], n=3, cutoff=0.5)
    return list(dict.fromkeys(holding + alike))[:3]


def _checked(feature: Any) -> Feature:
    token, weight = (
        feature if isinstance(feature, tuple | list) and len(feature) == 2 else (feature, 1)
    )
    if not isinstance(token, str | bytes):
        raise UsageError(f"a feature is {feature!r:.60}: pass a string, or one and its weight")
    if not isinstance(weight, numbers.Real) or not 0 <= float(weight) < math.inf:
        raise UsageError(f"the weight of {token!r:.60} is {weight!r:.60}: use a number from 0 up")
    return (token.encode("utf-8", "replace") if isinstance(token, str) else token, weight)  # type: ignore[return-value]


def _refuse_others(name: str, given: Mapping[str, Any], found: Preset) -> None:
    for field, value in given.items():
        if field not in found.options:
            taken = ", ".join(found.options)
            raise RecipeError(f"{field} is {value!r}: the preset {name} takes only {taken}")


def _listed(widths: Any) -> str:
    if isinstance(widths, range):
        steps = f" in steps of {widths.step}" if widths.step > 1 else ""
        return f"{widths.start} to {widths[-1]}{steps}"
    return " or ".join(str(width) for width in widths)
