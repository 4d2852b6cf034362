"""Stop words: lists of named languages, of files and of the caller, as a recipe holds them.

The lists of languages are those of the package stopwordsiso, chosen in docs/reference/tokens.md.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from pathlib import Path
from typing import Any, Final

from neardup.errors import DataError, FileError, RecipeError, UsageError

__all__ = ["LANGUAGES", "named_list", "read_stop_words", "stop_words", "words_of"]

LANGUAGES: Final = {
    "afrikaans": "af",
    "arabic": "ar",
    "armenian": "hy",
    "basque": "eu",
    "bengali": "bn",
    "breton": "br",
    "bulgarian": "bg",
    "catalan": "ca",
    "chinese": "zh",
    "croatian": "hr",
    "czech": "cs",
    "danish": "da",
    "dutch": "nl",
    "english": "en",
    "esperanto": "eo",
    "estonian": "et",
    "finnish": "fi",
    "french": "fr",
    "galician": "gl",
    "german": "de",
    "greek": "el",
    "gujarati": "gu",
    "hausa": "ha",
    "hebrew": "he",
    "hindi": "hi",
    "hungarian": "hu",
    "indonesian": "id",
    "irish": "ga",
    "italian": "it",
    "japanese": "ja",
    "korean": "ko",
    "kurdish": "ku",
    "latin": "la",
    "latvian": "lv",
    "lithuanian": "lt",
    "malay": "ms",
    "marathi": "mr",
    "norwegian": "no",
    "persian": "fa",
    "polish": "pl",
    "portuguese": "pt",
    "romanian": "ro",
    "russian": "ru",
    "slovak": "sk",
    "slovenian": "sl",
    "somali": "so",
    "sotho": "st",
    "spanish": "es",
    "swahili": "sw",
    "swedish": "sv",
    "tagalog": "tl",
    "thai": "th",
    "turkish": "tr",
    "ukrainian": "uk",
    "urdu": "ur",
    "vietnamese": "vi",
    "yoruba": "yo",
    "zulu": "zu",
}
"""Code of each language by its English name."""

_CANONICAL: Final = re.compile("([a-z]+):([0-9a-f]{16})")


def named_list(value: Any) -> str | tuple[str, ...]:
    """Give the form in which a recipe holds its stop words.

    A language becomes `name:digest of its list`, so that the digest of the recipe changes when a
    later release of the package changes the list; words of the caller become a sorted tuple.

    Raises:
        RecipeError: For an unknown language (near names are suggested), a list that is not the one
            that the digest names, or a collection that holds something else than words.

    Example:
        >>> named_list(["the", "a", "the"])
        ('a', 'the')
    """
    if isinstance(value, list | tuple | set | frozenset):
        for word in value:
            if not isinstance(word, str) or not word.strip():
                raise RecipeError(f"stopwords holds {word!r}: use words that are not blank")
        return tuple(sorted(set(value)))
    if not isinstance(value, str):
        raise RecipeError(f"stopwords is {value!r:.60}: use a language or a list of words")
    match = _CANONICAL.fullmatch(value)
    name = match[1] if match else _language(value)
    digest = _digest(stop_words(name))
    if match and match[2] != digest:
        raise RecipeError(
            f"stopwords is {value!r}, and the installed stopwordsiso has {name}:{digest}: install"
            " the release that the recipe was made with"
        )
    return f"{name}:{digest}"


def stop_words(language: str) -> tuple[str, ...]:
    """Give the stop words of a language, by its English name or two-letter code; sorted.

    Raises:
        RecipeError: For a language without a list; near names are suggested.
        UsageError: If the package stopwordsiso is not installed.

    Example:
        >>> "the" in stop_words("english")
        True
    """
    name = _language(language)
    try:
        import stopwordsiso
    except ImportError:
        raise UsageError(
            "lists of stop words need an extra: install it with `pip install neardup[stopwords]`"
        ) from None
    return tuple(sorted(stopwordsiso.stopwords(LANGUAGES[name])))


def read_stop_words(path: str) -> tuple[str, ...]:
    """Read a file of stop words: UTF-8, one a line; blank lines are skipped.

    Raises:
        FileError: If it cannot be read.
        DataError: If it is not UTF-8, or has no words.
    """
    try:
        lines = Path(path).read_bytes().decode("utf-8-sig").splitlines()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start:,} is not UTF-8") from None
    words = tuple(sorted({line.strip() for line in lines} - {""}))
    if not words:
        raise DataError(f"{path}: no stop words; write one a line")
    return words


def words_of(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Give the words that a recipe's `stopwords` stands for."""
    if value is None:
        return ()
    return value if isinstance(value, tuple) else stop_words(value.partition(":")[0])


def _language(value: str) -> str:
    name = value.lower()
    for language, code in LANGUAGES.items():
        if name in (language, code):
            return language
    near = difflib.get_close_matches(name, LANGUAGES, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(LANGUAGES)}"
    raise RecipeError(f"stopwords is {value!r}: no list of this language; {hint}")


def _digest(words: tuple[str, ...]) -> str:
    return hashlib.blake2b("\n".join(words).encode(), digest_size=8).hexdigest()
