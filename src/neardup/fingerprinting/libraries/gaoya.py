"""gaoya: SipHash-2-4 of Rust's hashing of strings and slices, with inverted bits."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.features.hashes import joined
from neardup.fingerprinting.libraries.parts import Feature, Preset, whole_weights
from neardup.fingerprinting.libraries.siphash128 import siphash128
from neardup.fingerprinting.majority import majority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["PRESETS"]

_KEYS: Final = (5, 6)
_END: Final = b"\xff"
_SEPARATORS: Final = re.compile("[" + re.escape(string.punctuation) + " \t\n\f\r]+")


def _text(text: str, recipe: Choices) -> str:
    return text.lower() if recipe.casefold else text


def _split(text: str, recipe: Choices) -> list[bytes]:
    return [word.encode() for word in _SEPARATORS.split(_text(text, recipe)) if word]


def _words(text: str, recipe: Choices) -> list[Feature]:
    return [(word + _END, 1) for word in _split(text, recipe)]


def _slices(text: str, recipe: Choices) -> list[Feature]:
    words, width = _split(text, recipe), recipe.ngram
    size = width.to_bytes(8, "little")
    return [
        (size + b"".join(word + _END for word in words[i : i + width]), 1)
        for i in range(len(words) - width + 1)
    ]


def _characters(text: str, recipe: Choices) -> list[Feature]:
    text, width = _text(text, recipe), recipe.ngram
    return [(text[i : i + width].encode() + _END, 1) for i in range(len(text) - width + 1)]


def _fold(features: Sequence[Feature], recipe: Choices) -> int:
    names = [feature for feature, _ in features]
    hashes = _hashes64(names) if recipe.bits == 64 else siphash128(names, _KEYS)
    inverted = [~value & (1 << recipe.bits) - 1 for value in hashes]
    return majority(inverted, whole_weights(features), recipe.bits)


def _hashes64(names: list[bytes]) -> list[int]:
    from neardup.kernels.features.hashes import siphash_slices

    data, offsets = joined(names)
    hashes: list[int] = siphash_slices(data, offsets, *map(np.uint64, _KEYS)).tolist()
    return hashes


def _preset(about: str, features: object, **options: object) -> Preset:
    return Preset(
        f"gaoya 0.2.2: {about}, SipHash-2-4, inverted",
        features,  # type: ignore[arg-type]
        _fold,
        (64, 128),
        "github.com/serega/gaoya",
        {"bits": 64, "casefold": False} | options,
    )


PRESETS: Final = {
    "gaoya": _preset("words, ngram_range None", _words),
    "gaoya-words": _preset("word n-grams, ngram_range (n, n)", _slices, ngram=1),
    "gaoya-chars": _preset("character n-grams, ngram_range (n, n)", _characters, ngram=3),
}
