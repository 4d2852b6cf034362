"""yanyiwu/simhash: jieba keywords, TF-IDF, Jenkins lookup3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.features.keyword_weights import cppjieba_keywords
from neardup.fingerprinting.libraries.library_parts import (
    Feature,
    Preset,
    fast_hashes,
    positive,
    real_sums,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["PRESETS"]


def _keywords(text: str, recipe: Choices) -> list[Feature]:
    top = recipe.top or max(5, min(200, len(text.encode()) // 120))
    return [
        (word.encode(), weight) for word, weight in cppjieba_keywords(text, top, recipe.dictionary)
    ]


def _fold(features: Sequence[Feature], _: Choices) -> int:
    weights = [weight for _, weight in features]
    return positive(real_sums(fast_hashes("jenkins", features), weights, 64))


PRESETS: Final = {
    "yanyiwu": Preset(
        "yanyiwu/simhash: jieba keywords (top, by default by length), Jenkins lookup3",
        _keywords,
        _fold,
        (64,),
        "github.com/yanyiwu/simhash",
        {"bits": 64, "top": None, "dictionary": None},
    )
}
