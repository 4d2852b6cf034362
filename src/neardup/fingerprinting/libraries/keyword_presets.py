"""Keywords of the caller's own with their weights, as text: no library's, but folded alike."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import DataError
from neardup.features.choices import MAX_BITS
from neardup.features.hashes import expanded, find_hash, hash_features
from neardup.fingerprinting.libraries.library_parts import Feature, Preset
from neardup.fingerprinting.majority import hashes_and_units, majority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["PRESETS"]


def _keywords(text: str, recipe: Choices) -> list[Feature]:
    """The words of a text with their weights, the heaviest `top` of them."""
    pairs = _listed(text) if text.lstrip()[:1] in {"[", "{"} else _lines(text)
    if recipe.top is not None and len(pairs) > recipe.top:
        pairs = sorted(pairs, key=lambda pair: -pair[1])[: recipe.top]
    return [(word.encode("utf-8", "replace"), weight) for word, weight in pairs]


def _lines(text: str) -> list[tuple[str, float]]:
    """A word and its weight on each line, white space between them; a word alone weighs 1."""
    lines = []
    for line in text.splitlines():
        word, *weight = line.strip().rsplit(None, 1)[:2] or [""]
        if word:
            lines.append((word, _weight(line, weight[0] if weight else 1)))
    return lines


def _listed(text: str) -> list[tuple[str, float]]:
    """JSON: an object of words and weights, or a list of such pairs."""
    try:
        value: Any = json.loads(text)
        pairs = list(value.items() if isinstance(value, dict) else value)
        return [(str(word), _weight(f"{word} {weight}", weight)) for word, weight in pairs]
    except (TypeError, ValueError):
        raise DataError(
            f'keywords are {text!r:.60}: write {{"word": 2.5}} or [["word", 2.5]], or a word and'
            " its weight on each line"
        ) from None


def _weight(line: str, value: Any) -> float:
    try:
        weight = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise DataError(f"the keyword {line!r:.60} has no weight: end it by a number from 0 up")
    return weight


def _fold(features: Sequence[Feature], recipe: Choices) -> int:
    hash_ = find_hash(recipe.hash)
    hashes = hash_features(hash_, [word for word, _ in features], recipe.seed)
    wide = [expanded(value, hash_.bits, recipe.bits) for value in hashes]
    _, units = hashes_and_units([(0, weight) for _, weight in features])
    return majority(wide, units, recipe.bits)


def _direct(text: str, recipe: Choices) -> int | None:
    features = _keywords(text, recipe)
    return _fold(features, recipe) if features else None


PRESETS: Final = {
    "keywords": Preset(
        "keywords of your own: each text is a word and its weight on each line, or JSON",
        _keywords,
        _fold,
        range(1, MAX_BITS + 1),
        "docs/guide/presets.md",
        {"bits": 64, "hash": "xxh3", "seed": 0, "top": None},
        _direct,
    )
}
