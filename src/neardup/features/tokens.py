"""The tokens of one document, for every tokeniser of a recipe, stop words removed.

Words, characters and runs of a class of characters (`regex:[a-z]+`) come from the text kernel;
jieba, other regular expressions and the caller's own functions read the normalised text: that of
"chars", its white space collapsed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import RecipeError
from neardup.features.hashes import HASHES, custom_key, hash_features
from neardup.features.stopwords import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neardup.features.choices import Choices
    from neardup.kernels.features.token_arguments import Cutting

__all__ = [
    "JIEBA",
    "KERNEL_TOKENS",
    "NO_TABLE",
    "check_tokens",
    "checked_dictionary",
    "custom_tokens",
    "cutting",
    "document_tokens",
    "features_of",
    "in_kernel",
    "normalised",
    "script_cutting",
    "stop_table",
    "stop_tokens",
]

JIEBA: Final = ("jieba", "jieba-search", "jieba-keywords")
KERNEL_TOKENS: Final = ("words", "chars")
NO_TABLE: Final = np.zeros(0, np.uint64)

_RUN: Final = re.compile(r"(\\[wdsWDS]|\[\^?([^]\\[^]|\\.)+\])\+", re.DOTALL)
"""One class of characters, one time or more: `\\w+`, `[^,;\\s]+`."""

_CUSTOM: Final[dict[str, Callable[[str], Iterable[str]]]] = {}
_CACHED_WORDS: Final = 1 << 16


def custom_tokens(name: str, version: str, function: Callable[[str], Iterable[str]]) -> str:
    """Register a caller's own tokeniser; the result is what a recipe takes as `tokens`.

    Name and version enter the recipe's digest, so change the version when the function changes.

    Args:
        name: What it is called.
        version: Which version of it.
        function: Takes the normalised text, gives its tokens; empty ones are left out.

    Raises:
        RecipeError: If name or version are not plain words, or `function` cannot be called.

    Example:
        >>> from neardup import Recipe, custom_tokens, fingerprint
        >>> lines = custom_tokens("sentences", "1", lambda text: text.split(". "))
        >>> fingerprint("One. Two", Recipe(tokens=lines)) is not None
        True
    """
    key = custom_key(name, version, "tokeniser", function)
    _CUSTOM[key] = function
    return key


def check_tokens(tokens: Any) -> None:
    """Refuse a tokeniser that a recipe cannot have.

    Raises:
        RecipeError: For an unknown name, a pattern that is not a regular expression, or a tokeniser
            of the caller that is not registered.
    """
    if not isinstance(tokens, str):
        raise RecipeError(f"tokens is {tokens!r:.60}: use one of {_choices()}")
    if tokens.startswith("regex:"):
        try:
            re.compile(tokens[6:])
        except re.error as error:
            raise RecipeError(f"tokens is {tokens!r}: not a regular expression: {error}") from None
    elif tokens not in (*KERNEL_TOKENS, *JIEBA, *_CUSTOM):
        if "@" in tokens:
            raise RecipeError(f"tokens is {tokens!r}: register it first with neardup.custom_tokens")
        raise RecipeError(f"tokens is {tokens!r}: use one of {_choices()}")


def document_tokens(data: Any, begin: int, end: int, recipe: Choices) -> list[str]:
    """Give the tokens of the UTF-8 text data[begin:end] in order, stop words removed."""
    if in_kernel(recipe.tokens):
        tokens = kernel_slices(data, begin, end, recipe, recipe.tokens == "chars", 1)
    else:
        tokens = _tokenise(normalised(data, begin, end, recipe), recipe)
    stops = stop_tokens(recipe)
    return [token for token in tokens if token not in stops] if stops else tokens


def features_of(tokens: Sequence[str], recipe: Choices) -> list[str]:
    """Give every run of n tokens, joined; of fewer tokens, one feature of all of them.

    Example:
        >>> from neardup import Recipe
        >>> features_of(["a", "b", "c"], Recipe(ngram=2))
        ['a b', 'b c']
    """
    if not tokens:
        return []
    width = min(recipe.ngram, len(tokens))
    joiner = "" if recipe.tokens == "chars" else " "
    return [joiner.join(tokens[at : at + width]) for at in range(len(tokens) - width + 1)]


def normalised(data: Any, begin: int, end: int, recipe: Choices) -> str:
    """Give the normalised, folded text; ignorable characters gone, white space collapsed."""
    return "".join(kernel_slices(data, begin, end, recipe, chars=True, ngram=1))


def cutting(recipe: Choices, chars: bool, ngram: int) -> Cutting:
    """Give how to cut texts in runs of n words or characters, as kernels take it."""
    pattern = None if chars or recipe.tokens in KERNEL_TOKENS else _run_pattern(recipe.tokens)
    return _cutting(recipe.normalize, recipe.casefold, chars, ngram, pattern)


@functools.lru_cache(maxsize=4)
def script_cutting(ngram: int) -> Cutting:
    """Give how to cut texts in runs of n words as evaluation scripts do: see `script_tables`."""
    from neardup.features.unicode import script_tables
    from neardup.kernels.features.token_arguments import Cutting

    return Cutting(script_tables(), np.uint8(0), chars=False, ngram=ngram, plain=False)


@functools.lru_cache(maxsize=64)
def _cutting(
    normalize: str, casefold: bool, chars: bool, ngram: int, pattern: str | None
) -> Cutting:
    from neardup.features.unicode import members, pattern_tables, tables
    from neardup.kernels.features.token_arguments import Cutting

    case_bit = np.uint8(0x20 if casefold else 0)
    if pattern is None:
        return Cutting(tables(normalize, casefold), case_bit, chars, ngram, plain=True)
    # Upper case is folded in the same way as it is in words: folded, or a member itself.
    ascii_words = [chr(byte).isalnum() or byte == ord("_") for byte in range(128)]
    kinds = members(pattern)[:128].tolist()
    if casefold:
        kinds = [kinds[ord(chr(byte).lower())] for byte in range(128)]
    classes = pattern_tables(normalize, casefold, pattern)
    return Cutting(classes, case_bit, chars, ngram, plain=kinds == ascii_words)


@functools.lru_cache(maxsize=64)
def in_kernel(tokens: str) -> bool:
    """Whether the kernel cuts texts in these tokens; else Python does, many times slower."""
    return tokens in KERNEL_TOKENS or _run_pattern(tokens) is not None


@functools.lru_cache(maxsize=64)
def _run_pattern(tokens: str) -> str | None:
    """The pattern of tokens that are runs of a class of characters, without the blank; else None.

    Example:
        >>> _run_pattern("regex:[a-z]+"), _run_pattern("regex:[a-z]{2,}")
        ('[a-z]+', None)
    """
    from neardup.features.unicode import BLANK, members

    pattern = tokens.removeprefix("regex:")
    if pattern == tokens or not _RUN.fullmatch(pattern) or members(pattern)[BLANK]:
        return None
    return pattern


def kernel_slices(
    data: Any, begin: int, end: int, recipe: Choices, chars: bool, ngram: int
) -> list[str]:
    """Give the runs of n words or characters of data[begin:end], joined."""
    from neardup.kernels.features.slices import feature_slices

    buffer, first, last = feature_slices(data, begin, end, cutting(recipe, chars, ngram))
    if chars and ngram == 1:
        return list(buffer[: last[-1] if last.size else 0].tobytes().decode())
    whole = buffer.tobytes()
    return [whole[a:b].decode() for a, b in zip(first.tolist(), last.tolist(), strict=True)]


@functools.lru_cache(maxsize=64)
def stop_tokens(recipe: Choices) -> frozenset[str]:
    """Give the tokens that the recipe's stop words remove.

    Each word is normalised as a text is. For "words" it is also cut as a text is: each part counts
    (of "don't": don and t), but a word written without spaces only counts if it is one token.
    """
    tokens: set[str] = set()
    for word in words_of(recipe.stopwords):
        data = np.frombuffer(word.encode("utf-8", "replace"), np.uint8)
        if recipe.tokens == "words":
            parts = kernel_slices(data, 0, data.size, recipe, chars=False, ngram=1)
            if len(parts) == 1 or not any(_unspaced(part[0]) for part in parts):
                tokens.update(parts)
        else:
            tokens.add(normalised(data, 0, data.size, recipe))
    return frozenset(tokens - {""})


@functools.lru_cache(maxsize=64)
def stop_table(recipe: Choices) -> Any:
    """Give the stop words as kernels look them up: the `hash_table` of their hashes."""
    from neardup.kernels.features.lookup import hash_table

    words = [word.encode() for word in sorted(stop_tokens(recipe))]
    if not words:
        return NO_TABLE
    keys = np.array(hash_features(HASHES["xxh3"], words, recipe.seed), np.uint64)
    return hash_table(keys, np.ones(keys.size, np.int64))


def _unspaced(character: str) -> bool:
    from neardup.features.unicode import UNSPACED

    return _class_of(character) == UNSPACED


def _class_of(character: str) -> int:
    from neardup.features.unicode import CLASS_SHIFT, tables

    table, cp = tables("none", casefold=False), ord(character)
    entry = int(table.blocks[int(table.index[cp >> 8]) * 256 + (cp & 255)])
    return entry >> CLASS_SHIFT & 7


def _tokenise(text: str, recipe: Choices) -> list[str]:
    tokens = recipe.tokens
    if tokens.startswith("regex:"):
        return [match[0] for match in re.finditer(tokens[6:], text) if match[0]]
    if tokens in JIEBA:
        return _chinese_words(text, tokens, _own_words(recipe))
    if tokens not in _CUSTOM:
        raise RecipeError(f"tokens is {tokens!r}: register it first with neardup.custom_tokens")
    result: Any = _CUSTOM[tokens](text)
    if not isinstance(result, Iterable):
        raise RecipeError(f"tokens {tokens} gave {result!r:.60}: give a list of strings")
    result = list(result)
    for token in result:
        if not isinstance(token, str):
            raise RecipeError(f"tokens {tokens} gave {token!r:.60}: use strings")
    return [token for token in result if token]


def checked_dictionary(recipe: Choices) -> tuple[str, ...]:
    """The words that a recipe gives to jieba, in order and each once.

    Raises:
        RecipeError: If its tokens are not jieba's, or it is not a list of words.
    """
    lines: Any = recipe.dictionary
    if recipe.preset is not None and isinstance(lines, tuple | list) and len(lines) == 1:
        return (str(lines[0]),)  # the name of a folder that was read; the preset knows it
    if recipe.tokens not in JIEBA:
        raise RecipeError(f"dictionary is for tokens {', '.join(JIEBA)}, not {recipe.tokens}")
    if isinstance(lines, str) or not isinstance(lines, Iterable):
        raise RecipeError(f"dictionary is {lines!r:.60}: pass a list of words")
    words: list[str] = list(dict.fromkeys(lines))
    for line in words:
        if not isinstance(line, str) or not re.fullmatch(r"\S+( [1-9][0-9]{0,8})?", line):
            raise RecipeError(
                f"dictionary has {line!r:.60}: write a word without spaces, and its frequency after"
                " one space if it should have one"
            )
    return tuple(words)


@functools.lru_cache(maxsize=64)
def _own_words(recipe: Choices) -> tuple[str, ...]:
    """The recipe's dictionary, its words normalised as a text is."""
    words = []
    for line in recipe.dictionary or ():
        word, space, frequency = line.partition(" ")
        data = np.frombuffer(word.encode("utf-8", "replace"), np.uint8)
        if word := normalised(data, 0, data.size, recipe).strip():
            words.append(f"{word}{space}{frequency}")
    return tuple(words)


def _chinese_words(text: str, tokens: str, own: tuple[str, ...]) -> list[str]:
    from neardup.features.jieba_words import cut_for_search, cut_precise, is_keyword

    cut = cut_for_search(text, own) if tokens == "jieba-search" else cut_precise(text, own)
    right = is_keyword if tokens == "jieba-keywords" else _has_letter
    return [word for word in cut if right(word)]


@functools.lru_cache(maxsize=_CACHED_WORDS)
def _has_letter(word: str) -> bool:
    from neardup.features.unicode import UNSPACED, WORD

    return any(_class_of(character) in (WORD, UNSPACED) for character in word)


def _choices() -> str:
    return ", ".join((*KERNEL_TOKENS, *JIEBA, "regex:PATTERN"))
