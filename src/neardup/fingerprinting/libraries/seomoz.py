"""seomoz/simhash-cpp and simhash-py, their legacy version, and data-juicer, which rests on them."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from neardup.fingerprinting.libraries.library_parts import (
    Aliases,
    Feature,
    Preset,
    counted,
    fast_hashes,
    md5_numbers,
    reversed_bits,
)
from neardup.fingerprinting.majority import majority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["ALIASES", "PRESETS"]

_M64: Final = (1 << 64) - 1
_WINDOW: Final = 3


def _windows(tokens: Sequence[str], width: int, joint: str) -> list[Feature]:
    count = len(tokens) - width + 1
    return [(joint.join(tokens[i : i + width]).encode(), 1) for i in range(count)]


def _shingles(text: str, recipe: Choices) -> list[Feature]:
    return _windows(re.split(r"\W+", text.lower()), recipe.ngram, " ")


def _fold_md5(features: Sequence[Feature], recipe: Choices) -> int:
    return counted(md5_numbers(features, slice(8)), features, recipe.bits)


def _letter_runs(text: str, _: Choices) -> list[Feature]:
    return [(word.encode(), 1) for word in re.findall("[a-zA-Z]+", text)]


def _fold_legacy(features: Sequence[Feature], _: Choices) -> int:
    rolled = _cyclic(fast_hashes("jenkins", features))
    return reversed_bits(majority(rolled, None, 64), 64)


def _cyclic(hashes: Sequence[int]) -> list[int]:
    """The legacy rolling hash over a window of three, which counts from the first token on."""
    current, rolled = 0, []
    for i, value in enumerate(hashes):
        leaving = hashes[i - _WINDOW] if i >= _WINDOW else 0
        current = _rotated(current, 1) ^ _rotated(leaving, _WINDOW) ^ value
        rolled.append(current)
    return rolled


def _rotated(value: int, count: int) -> int:
    return (value << count | value >> 64 - count) & _M64


def _juice(text: str, recipe: Choices) -> str:
    return text.lower() if recipe.casefold else text


def _juicer_words(text: str, recipe: Choices) -> list[Feature]:
    words = [word for word in _juice(text, recipe).split(" ") if word]
    return _windows(words, recipe.ngram, " ")


def _juicer_characters(text: str, recipe: Choices) -> list[Feature]:
    return _windows(_juice(text, recipe), recipe.ngram, "")


def _juicer_punctuation(text: str, recipe: Choices) -> list[Feature]:
    marked = (
        "\ud800" if unicodedata.category(character)[0] == "P" else character
        for character in _juice(text, recipe)
    )
    return _windows("".join(marked).split("\ud800"), recipe.ngram, " ")


_CPP: Final = "github.com/seomoz/simhash-cpp, simhash-py; PyPI simhash-pybind"
_JUICER: Final = "github.com/modelscope/data-juicer 1.6.1"
_JUICER_OPTIONS: Final = {"bits": 64, "ngram": 6, "casefold": True}

PRESETS: Final = {
    "simhash-cpp": Preset(
        "simhash-cpp, simhash-py: first 8 bytes of MD5, counts; windows of words as in its tests",
        _shingles,
        _fold_md5,
        (64,),
        _CPP,
        {"bits": 64, "ngram": 4},
    ),
    "simhash-cpp-0.1.0": Preset(
        "simhash-cpp 0.1.0: runs of ASCII letters, Jenkins, cyclic hash of 3, bits reversed",
        _letter_runs,
        _fold_legacy,
        (64,),
        _CPP,
    ),
    "data-juicer": Preset(
        "data-juicer: windows of 6 words split at spaces, first 8 bytes of MD5",
        _juicer_words,
        _fold_md5,
        (64,),
        _JUICER,
        _JUICER_OPTIONS,
    ),
    "data-juicer-characters": Preset(
        "data-juicer, tokenization character: windows of 6 characters",
        _juicer_characters,
        _fold_md5,
        (64,),
        _JUICER,
        _JUICER_OPTIONS,
    ),
    "data-juicer-punctuation": Preset(
        "data-juicer, tokenization punctuation: windows of 6 parts between punctuation",
        _juicer_punctuation,
        _fold_md5,
        (64,),
        _JUICER,
        _JUICER_OPTIONS,
    ),
}

ALIASES: Final[Aliases] = {
    "simhash-py": ("simhash-cpp", {}),
    "simhash-pybind": ("simhash-cpp", {}),
    "simhash-cpp-legacy": ("simhash-cpp-0.1.0", {}),
    "data-juicer-character": ("data-juicer-characters", {}),
}
