"""Keywords of Chinese text by jieba's dictionary and document frequencies (an optional extra)."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from typing import Any, Final

from neardup.errors import UsageError

__all__ = ["cppjieba_keywords", "jieba_keywords"]

_MEAN_FREQUENCY: Final = 11.739204307083542
"""The mean inverse frequency of cppjieba's idf.utf8, as its published keyword weights have it."""


def jieba_keywords(text: str, top: int | None) -> list[tuple[str, float]]:
    """jieba.analyse.extract_tags: the heaviest keywords with their TF-IDF weights.

    Raises:
        UsageError: If jieba is not installed.
    """
    found: list[tuple[str, float]] = _analyse().extract_tags(text, topK=top, withWeight=True)
    return found


def cppjieba_keywords(text: str, top: int) -> list[tuple[str, float]]:
    """The keywords that cppjieba's KeywordExtractor gives: term count times inverse frequency.

    Dictionary, frequencies and stop words are those of the installed jieba, not the files that a
    cppjieba program was given; words without a frequency have the mean of cppjieba's own file.

    Raises:
        UsageError: If jieba is not installed.
    """
    extractor = _analyse().default_tfidf
    counts = Counter(
        word
        for word in extractor.tokenizer.lcut(text)
        if len(word) > 1 and word.strip() and word not in extractor.stop_words
    )
    weights = {
        word: count * extractor.idf_freq.get(word, _MEAN_FREQUENCY)
        for word, count in counts.items()
    }
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0].encode()))
    return ordered[:top]


def _analyse() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # jieba's own, at import
            import jieba.analyse
    except ImportError:
        raise UsageError(
            "this preset needs jieba's dictionary: install it with `pip install jieba`, or pass"
            " keywords to neardup.compat.presets.fingerprint_features"
        ) from None
    jieba.setLogLevel(logging.WARNING)
    return jieba.analyse
