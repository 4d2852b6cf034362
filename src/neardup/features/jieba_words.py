"""Chinese words as jieba 0.42.1 cuts them with its own dictionary, and its keywords.

Words decide fingerprints, so the version and the dictionary are part of the definition, as the
Unicode version is: another jieba is refused, and what a program adds to jieba changes nothing.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import logging
import re
import types
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import DataError, FileError, RecipeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "cut_for_search",
    "cut_precise",
    "inverse_frequencies",
    "is_keyword",
    "jieba_package",
    "keywords",
    "read_dictionary",
]

JIEBA_VERSION: Final = "0.42.1"
DICTIONARY: Final = "931a1622cc9962c9"
IDF: Final = "cf55ef857b99098f"
"""BLAKE2b of the package's dict.txt and analyse/idf.txt."""
RUST_VERSIONS: Final = ("0.2.2",)
"""Those of rjieba, which has a dictionary of its own, that were compared with jieba."""

_HAN: Final = "\u4e00-\u9fd5"
_DICTIONARY_ASCII: Final = r"a-zA-Z0-9+#&._%\-"
# What jieba and jieba-rs cut alike: ideographs of the dictionary, kana, spaces and punctuation that
# is in no dictionary word. Everything else goes to jieba itself.
_ALIKE: Final = rf"{_HAN}\u3001-\u301f\u3041-\u30fe\uff01-\uff1f !\"'()*,/:;<=>?@\[\]^`{{|}}~"
_OTHER_BLOCKS: Final = re.compile(rf"([{_HAN}]*(?:[^{_ALIKE}][{_HAN}]*)+)")
_ASCII_BLOCK: Final = re.compile(f"[{_DICTIONARY_ASCII}]+")
_ASCII_WORDS: Final = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")
_ASCII_ENTRIES: Final = ("AT&T", "c#", "C#", "c++", "C++")
_CACHED_BLOCKS: Final = 1 << 16
_DICTIONARIES: Final = 8
_LEAST_KEYWORD: Final = 2


def cut_precise(text: str, own: tuple[str, ...] = ()) -> list[str]:
    """Cut a text as jieba.lcut does with its own dictionary, and words that are added to it.

    jieba-rs, where rjieba is installed, cuts what both cut alike: on 6.2 MB of Chinese and
    Japanese text, 308,184 pieces, none differed. Blocks with other characters go to jieba.

    Args:
        text: What to cut.
        own: Further words, as lines of jieba.load_userdict: a word, a space and its frequency, or
            a word only. With any, all goes to jieba.

    Raises:
        UsageError: If jieba is not installed.
        RecipeError: If it is another version, or its dictionary was changed.

    Example:
        >>> cut_precise("我来到北京清华大学, v2.0")
        ['我', '来到', '北京', '清华大学', ',', ' ', 'v2.0']
    """
    if own:
        return list(_tokenizer(own).cut(text))
    _tokenizer()
    return _cut(text, _rust().cut if _rust() else None, _precise_block)


def cut_for_search(text: str, own: tuple[str, ...] = ()) -> list[str]:
    """Cut a text as jieba.lcut_for_search does: long words also give the words inside them.

    Raises:
        UsageError, RecipeError: As `cut_precise`.
    """
    if own:
        return list(_tokenizer(own).cut_for_search(text))
    _tokenizer()
    return _cut(text, _rust().cut_for_search if _rust() else None, _search_block)


@functools.lru_cache(maxsize=_CACHED_BLOCKS)
def is_keyword(word: str) -> bool:
    """Whether jieba.analyse counts a word: two characters or more, and not a stop word."""
    stops = jieba_package().analyse.TFIDF.STOP_WORDS
    return len(word.strip()) >= _LEAST_KEYWORD and word.lower() not in stops


def keywords(text: str, top: int | None) -> list[tuple[str, float]]:
    """Give jieba.analyse.extract_tags: the heaviest keywords with their TF-IDF weights.

    Raises:
        UsageError, RecipeError: As `cut_precise`; also for another idf.txt than jieba's.

    Example:
        >>> [word for word, _ in keywords("我来到北京清华大学", 1)]
        ['清华大学']
    """
    tags: list[tuple[str, float]] = _extractor().extract_tags(text, topK=top, withWeight=True)
    return tags


def inverse_frequencies() -> dict[str, float]:
    """The values of jieba's idf.txt, as it reads them."""
    frequencies: dict[str, float] = _extractor().idf_freq
    return frequencies


@functools.cache
def jieba_package() -> Any:
    """Import jieba, its keywords included.

    Raises:
        UsageError: If it is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # jieba's own, at import
            import jieba.analyse
    except ImportError:
        raise UsageError(
            "Chinese words need jieba: install it with `pip install neardup[jieba]`; keywords of"
            " your own go to neardup.compat.presets.fingerprint_features"
        ) from None
    # It shows a traceback where it cannot write its cache, which changes nothing.
    jieba.setLogLevel(logging.CRITICAL)
    return jieba


def read_dictionary(path: str) -> tuple[str, ...]:
    """Read a file as jieba.load_userdict does: a word, its frequency and its tag on each line.

    Returns:
        The words with their frequencies, as a recipe takes them; tags do not matter here.

    Raises:
        FileError: If it cannot be read.
        DataError: If it is not UTF-8.
    """
    try:
        lines = Path(path).read_bytes().decode("utf-8-sig").splitlines()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start + 1}; convert it first") from None
    return tuple(re.sub(r" [a-z]+$", "", " ".join(line.split())) for line in lines if line.strip())


def _cut(
    text: str,
    fast: Callable[[str], list[str]] | None,
    exact: Callable[[str], tuple[str, ...]],
) -> list[str]:
    if fast is None:
        return list(exact.__wrapped__(text))  # type: ignore[attr-defined]
    words: list[str] = []
    for at, block in enumerate(_OTHER_BLOCKS.split(text)):
        if at % 2:
            words += exact(block)
        elif block:
            words += fast(block)
    return words


@functools.lru_cache(maxsize=_CACHED_BLOCKS)
def _precise_block(block: str) -> tuple[str, ...]:
    if _ASCII_BLOCK.fullmatch(block) and not any(word in block for word in _ASCII_ENTRIES):
        return tuple(filter(None, _ASCII_WORDS.split(block)))
    return tuple(_tokenizer().cut(block))


@functools.lru_cache(maxsize=_CACHED_BLOCKS)
def _search_block(block: str) -> tuple[str, ...]:
    return tuple(_tokenizer().cut_for_search(block))


@functools.cache
def _rust() -> Any:
    try:
        import rjieba

        if importlib.metadata.version("rjieba") not in RUST_VERSIONS:
            return None
    except ImportError:
        return None
    return rjieba.Jieba()


@functools.lru_cache(maxsize=_DICTIONARIES)
def _tokenizer(own: tuple[str, ...] = ()) -> Any:
    """A tokeniser of its own: words that a program adds to jieba's must not change fingerprints.

    jieba keeps what it read of its dictionary in a file of one name for all versions, so this one
    has a file named by the dictionary.
    """
    package = jieba_package()
    _check("dict.txt", DICTIONARY)
    tokenizer = package.Tokenizer()
    tokenizer.cache_file = f"neardup-jieba-{DICTIONARY}.cache"
    if own:
        tokenizer.load_userdict(own)
    return tokenizer


@functools.cache
def _extractor() -> Any:
    _tokenizer()
    _check("analyse/idf.txt", IDF)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves the file to be closed
        extractor = jieba_package().analyse.TFIDF()
    extractor.tokenizer = types.SimpleNamespace(cut=cut_precise)
    return extractor


def _check(file: str, digest: str) -> None:
    package = jieba_package()
    data = (Path(package.__file__).parent / file).read_bytes()
    actual = hashlib.blake2b(data, digest_size=8).hexdigest()
    if (package.__version__, actual) != (JIEBA_VERSION, digest):
        raise RecipeError(
            f"the jieba that is installed is {package.__version__} with {file} {actual}, recipes"
            f" mean {JIEBA_VERSION} with {digest}: reinstall it with `pip install"
            f" --force-reinstall jieba=={JIEBA_VERSION}`"
        )
