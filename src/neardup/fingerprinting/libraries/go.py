"""mfonda/simhash and go-dedup/simhash, and the Go article with jieba keywords."""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import TYPE_CHECKING, Final

from neardup.features.jieba_words import keywords
from neardup.fingerprinting.libraries.library_parts import (
    Aliases,
    Feature,
    Preset,
    counted,
    fast_hashes,
    positive,
    real_sums,
    simple_lower,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["ALIASES", "PRESETS"]

_WORD: Final = re.compile(r"[\w']+(?:\://[\w\./]+){0,1}", re.ASCII)


def _shingles(words: list[str], width: int) -> list[Feature]:
    if width > 1:
        width = min(width, len(words))  # of no words that is one shingle, the empty one
    count = len(words) - width + 1
    return [(" ".join(words[i : i + width]).encode(), 1) for i in range(count)]


def _words(text: str, recipe: Choices) -> list[Feature]:
    return _shingles(_WORD.findall(simple_lower(text)), recipe.ngram)


def _unicode_words(text: str, recipe: Choices) -> list[Feature]:
    if recipe.normalize != "none":
        text = unicodedata.normalize(recipe.normalize, text)  # type: ignore[arg-type]
    kept = (
        c if c in "-_'" or unicodedata.category(c)[0] == "L" else " " for c in simple_lower(text)
    )
    return _shingles("".join(kept).split(), 1)


def _runes(text: str, _: Choices) -> list[Feature]:
    return [(rune.encode(), 1) for rune in simple_lower(text)]


def _fold_fnv1(features: Sequence[Feature], recipe: Choices) -> int:
    return counted(fast_hashes("fnv1", features), features, recipe.bits, tie_one=True)


def _keywords(text: str, recipe: Choices) -> list[Feature]:
    return [(word.encode(), weight) for word, weight in keywords(text, recipe.top)]


def _fold_keywords(features: Sequence[Feature], _: Choices, *, printed: bool) -> int:
    hashes = fast_hashes("fnv1a", features)
    if printed:
        hashes = [_as_printed(value) for value in hashes]
    return positive(real_sums(hashes, [weight for _, weight in features], 64))


def _as_printed(value: int) -> int:
    """The hash as the article's program reads it: Sprintf("%064b", int64(h)), all but "0" a one."""
    digits = format(value if value < 1 << 63 else value - (1 << 64), "064b")
    return int("".join("0" if digit == "0" else "1" for digit in digits[:64]), 2)


_DEDUP: Final = "github.com/go-dedup/simhash"

PRESETS: Final = {
    "go-mfonda": Preset(
        "mfonda/simhash and go-dedup/simhash: ASCII words, FNV-1, ties are 1",
        _words,
        _fold_fnv1,
        (64,),
        f"github.com/mfonda/simhash, {_DEDUP}",
        {"bits": 64, "ngram": 1},
    ),
    "go-dedup-utf": Preset(
        "go-dedup/simhash, simhashUTF: Unicode words, by default normal form NFC, FNV-1",
        _unicode_words,
        _fold_fnv1,
        (64,),
        _DEDUP,
        {"bits": 64, "normalize": "NFC"},
    ),
    "go-dedup-cjk": Preset(
        "go-dedup/simhash, simhashCJK: each character a feature, FNV-1, ties are 1",
        _runes,
        _fold_fnv1,
        (64,),
        _DEDUP,
    ),
    "go-jieba": Preset(
        "Go with jieba keywords (top, by default 20), TF-IDF weights, FNV-1a, as meant",
        _keywords,
        functools.partial(_fold_keywords, printed=False),
        (64,),
        "a teaching article; docs/guide/presets.md",
        {"bits": 64, "top": 20},
    ),
    "go-jieba-article": Preset(
        "the same as its program prints it: hashes of 2**63 and more lose their sign",
        _keywords,
        functools.partial(_fold_keywords, printed=True),
        (64,),
        "a teaching article; docs/guide/presets.md",
        {"bits": 64, "top": 20},
    ),
}

ALIASES: Final[Aliases] = {"go-dedup": ("go-mfonda", {})}
