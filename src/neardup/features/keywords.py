"""Keywords of Chinese text by jieba's dictionary and document frequencies (an optional extra)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from neardup.features.jieba_words import cut_precise, inverse_frequencies, jieba_package

__all__ = ["cppjieba_keywords"]

_LEAST: Final = 2
_SIGNS: Final = re.compile(r"[+#&._%\-]+")  # jieba keeps runs of these together, cppjieba does not
_MEAN_FREQUENCY: Final = 11.739204307083542
"""The mean inverse frequency of cppjieba's idf.utf8, as its published keyword weights have it."""


def cppjieba_keywords(text: str, top: int) -> list[tuple[str, float]]:
    """The keywords that cppjieba's KeywordExtractor gives: term count times inverse frequency.

    Dictionary, frequencies and stop words are those of jieba, not the files that a cppjieba program
    was given; words without a frequency have the mean of cppjieba's own file. As there, stop words
    are told by their case, and runs of signs such as ### are no words.

    Raises:
        UsageError, RecipeError: As `neardup.features.jieba_words.cut_precise`.
    """
    counts = Counter(word for word in cut_precise(text) if _is_keyword(word))
    frequencies = inverse_frequencies()
    weights = {
        word: count * frequencies.get(word, _MEAN_FREQUENCY) for word, count in counts.items()
    }
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0].encode()))
    return ordered[:top]


def _is_keyword(word: str) -> bool:
    return (
        len(word.strip()) >= _LEAST
        and not _SIGNS.fullmatch(word)
        and word not in jieba_package().analyse.TFIDF.STOP_WORDS
    )
