"""text-dedup: the released 0.4.0 and what came after it, which do not agree with each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from neardup.fingerprinting.libraries.library_parts import (
    Aliases,
    Feature,
    Preset,
    counted,
    fast_hashes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["ALIASES", "PRESETS"]

_LEAST: Final = 5
_SEED: Final = 42


def _windows(tokens: Sequence[str], width: int, joint: str) -> list[Feature]:
    if len(tokens) < _LEAST:
        return []
    count = max(1, len(tokens) - width + 1)
    windows = {joint.join(tokens[i : i + width]).lower().encode() for i in range(count)}
    return [(window, 1) for window in sorted(windows)]


def _words(text: str, recipe: Choices) -> list[Feature]:
    words = [word for word in re.split(r"\W", text.lower()) if word]
    return _windows(words, recipe.ngram, " ")


def _characters(text: str, recipe: Choices) -> list[Feature]:
    return _windows(text, recipe.ngram, "")


def _fold_seeded(features: Sequence[Feature], recipe: Choices) -> int:
    return counted(fast_hashes("xxh3", features, _SEED), features, recipe.bits)


def _fold(features: Sequence[Feature], recipe: Choices) -> int:
    return counted(fast_hashes("xxh3", features), features, recipe.bits)


_SOURCE: Final = "github.com/ChenghaoMou/text-dedup"
_OPTIONS: Final = {"bits": 64, "ngram": 3}

PRESETS: Final = {
    "text-dedup": Preset(
        "text-dedup after 0.4.0: word n-grams, XXH3 of seed 42, sets",
        _words,
        _fold_seeded,
        (32, 64),
        _SOURCE,
        _OPTIONS,
    ),
    "text-dedup-0.4.0": Preset(
        "text-dedup 0.4.0: character n-grams, XXH3 without a seed, sets",
        _characters,
        _fold,
        (64,),
        _SOURCE,
        _OPTIONS,
    ),
}

ALIASES: Final[Aliases] = {"text-dedup-0.4.1": ("text-dedup", {})}
