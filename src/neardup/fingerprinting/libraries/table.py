"""The presets by name, and the further fields of a recipe that names one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import RecipeError
from neardup.fingerprinting.libraries import (
    ferd,
    gaoya,
    go,
    keyword_presets,
    pypi_simhash,
    scrapinghub,
    seomoz,
    text_dedup,
    trafilatura,
    yanyiwu,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neardup.features.choices import Choices
    from neardup.fingerprinting.libraries.library_parts import Aliases, Preset

__all__ = ["ALIASES", "PRESETS", "check", "find_preset", "fingerprint_text", "refuse_others"]


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
    keyword_presets,
)


PRESETS: Final[dict[str, Preset]] = {
    name: preset for module in _MODULES for name, preset in module.PRESETS.items()
}


ALIASES: Final[Aliases] = {
    alias: target
    for module in (pypi_simhash, go, seomoz, text_dedup, ferd)
    for alias, target in module.ALIASES.items()
}


def fingerprint_text(text: str, recipe: Choices) -> int | None:
    """The value that the recipe's preset gives a text; libraries give one to the empty text too."""
    preset = find_preset(recipe.preset)
    if preset.direct is not None:
        return preset.direct(text, recipe)
    return preset.fold(preset.features(text, recipe), recipe)


def check(recipe: Choices, changed: Mapping[str, Any]) -> None:
    """Refuse a recipe whose preset is unknown or cannot be as its other fields say.

    `changed` are the other fields that do not hold their default.

    Raises:
        RecipeError: As `preset` does.
    """
    preset = find_preset(recipe.preset)
    if recipe.bits not in preset.widths:
        raise RecipeError(
            f"bits is {recipe.bits}: the preset {recipe.preset} gives {_listed(preset.widths)}"
        )
    refuse_others(str(recipe.preset), changed, preset)


def find_preset(name: Any) -> Preset:
    """Find a preset; RecipeError for an unknown name, with near ones."""
    if not isinstance(name, str):
        raise RecipeError(f"preset is {name!r:.60}: pass a name; neardup.presets() lists them")
    if name in PRESETS:
        return PRESETS[name]
    near = _near(name)
    hint = f"did you mean {' or '.join(near)}?" if near else "neardup.presets() lists them"
    raise RecipeError(f"preset is {name!r:.60}: there is no such preset; {hint}")


def _near(name: str) -> list[str]:
    """Up to three names that hold this one, the shortest first, or are spelled much like it."""
    plain = name.lower().replace("_", "-").replace(" ", "-")
    holding = sorted((x for x in PRESETS if plain and plain in x), key=len)
    alike = difflib.get_close_matches(plain, [*PRESETS, *ALIASES], n=3, cutoff=0.5)
    return list(dict.fromkeys(holding + alike))[:3]


def refuse_others(name: str, options: Mapping[str, Any], preset: Preset) -> None:
    """Refuse options that a preset does not take; RecipeError names those that it does."""
    for field, value in options.items():
        if field not in preset.options:
            taken = ", ".join(preset.options)
            raise RecipeError(f"{field} is {value!r}: the preset {name} takes only {taken}")


def _listed(widths: Any) -> str:
    if isinstance(widths, range):
        steps = f" in steps of {widths.step}" if widths.step > 1 else ""
        return f"{widths.start} to {widths[-1]}{steps}"
    return " or ".join(str(width) for width in widths)
