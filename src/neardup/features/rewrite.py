"""Rewrite texts before they are normalised: Turkish letters, Chinese, what is ignored."""

from __future__ import annotations

import functools
import importlib.metadata
import unicodedata
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import RecipeError, UsageError
from neardup.features.choices import IGNORABLE
from neardup.features.text import TextBlock, text_blocks

if TYPE_CHECKING:
    from neardup.features.choices import Choices

__all__ = ["ignored_names", "named_conversion", "rewritten"]

TURKISH: Final = (("I\u0307", "i"), ("\u0130", "i"), ("I", "\u0131"))
"""Lower-casing of the two capitals, in this order; all other letters fold as everywhere."""

_REMOVED: Final = {
    "accents": ((0x0300, 0x036F),),
    "joiners": ((0x200C, 0x200D),),
    "tatweel": ((0x0640, 0x0640),),
    "vowel-signs": (
        (0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7),
        (0x0610, 0x061A), (0x064B, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06DC), (0x06DF, 0x06E4),
        (0x06E7, 0x06E8), (0x06EA, 0x06ED),
    ),
    "zero-width": (
        (0x00AD, 0x00AD), (0x180E, 0x180E), (0x200B, 0x200B), (0x2060, 0x2060), (0xFEFF, 0xFEFF),
    ),
}  # fmt: skip
"""Code points that are left out; vowel signs of Arabic and Hebrew."""
_ZEROS: Final = (0x30, 0x0660, 0x06F0, 0x0966, 0x09E6, 0x0E50, 0x0ED0, 0x1040, 0xFF10)
"""The zeros of ASCII, Arabic, Persian, Devanagari, Bengali, Thai, Lao, Burmese and full width."""
_LETTERS: Final = (0x00C0, 0x2000)
"""Composed letters of Latin, Greek and Cyrillic; Unicode never changes how they decompose."""

_CONFIGURATIONS: Final = {"simplified": "t2s", "traditional": "s2t"}


def named_conversion(value: Any) -> str:
    """Give the form in which a recipe holds `fold_chinese`: the name, and the release of OpenCC.

    Its tables change with its releases, so the release is in the recipe's digest.

    Raises:
        RecipeError: If it is neither of the two.
        UsageError: If a release is not named and the package opencc is not installed.

    Example:
        >>> named_conversion("simplified:1.4.2")
        'simplified:1.4.2'
    """
    name, _, release = value.partition(":") if isinstance(value, str) else ("", "", "")
    if name not in _CONFIGURATIONS:
        choices = " or ".join(_CONFIGURATIONS)
        raise RecipeError(f"fold_chinese is {value!r:.60}: use {choices}")
    return f"{name}:{release or _release()}"


def ignored_names(value: Any) -> tuple[str, ...]:
    """Give the form in which a recipe holds `ignore`: names in alphabetical order, each once.

    Raises:
        RecipeError: If something is not a name of the list, or none is given.

    Example:
        >>> ignored_names(["tatweel", "joiners"])
        ('joiners', 'tatweel')
    """
    names = value if isinstance(value, list | tuple | set | frozenset) else [value]
    for name in names:
        if name not in IGNORABLE:
            raise RecipeError(f"ignore is {name!r:.60}: use some of {', '.join(IGNORABLE)}")
    if not names:
        raise RecipeError(f"ignore is {value!r}: use some of {', '.join(IGNORABLE)}, or None")
    return tuple(sorted(set(names)))


@functools.cache
def _translation(names: tuple[str, ...]) -> dict[int, int | str | None]:
    """The replacement of each code point, for `str.translate`."""
    table: dict[int, int | str | None] = {}
    if "accents" in names:
        marks = {point for low, high in _REMOVED["accents"] for point in range(low, high + 1)}
        for point in range(*_LETTERS):
            parts = unicodedata.normalize("NFD", chr(point))
            plain = "".join(part for part in parts if ord(part) not in marks)
            if plain != parts:
                table[point] = unicodedata.normalize("NFC", plain)
    if "digits" in names:
        table |= {zero + digit: "0" for zero in _ZEROS for digit in range(10)}
    for name in set(names) & set(_REMOVED):
        for low, high in _REMOVED[name]:
            table |= dict.fromkeys(range(low, high + 1))
    return table


def rewritten(block: TextBlock, recipe: Choices) -> TextBlock:
    """Rewrite the documents as the recipe's `fold_chinese`, `language`, then `ignore` say.

    Raises:
        UsageError: If the package opencc is needed and not installed.
        RecipeError: If it is another release than the recipe's.
    """
    if recipe.language is None and recipe.fold_chinese is None and recipe.ignore is None:
        return block
    texts = _array(block)
    if recipe.fold_chinese is not None:
        convert = _converter(recipe.fold_chinese)
        converted = [convert(text) for text in texts.to_pylist()]
        texts = pa.array(converted, pa.large_string())
    if recipe.language is not None:
        for old, new in TURKISH:
            texts = pc.replace_substring(texts, old, new)
    if recipe.ignore is not None:
        table = _translation(recipe.ignore)
        plain = [text.translate(table) for text in texts.to_pylist()]
        texts = pa.array(plain, pa.large_string())
    one = next(text_blocks(texts, block_bytes=1 << 62))
    return TextBlock(block.first, one.data, one.offsets)


def _array(block: TextBlock) -> pa.Array:
    buffers = [None, pa.py_buffer(block.offsets), pa.py_buffer(block.data)]
    return pa.Array.from_buffers(pa.large_string(), len(block), buffers)


@functools.cache
def _converter(target: str) -> Any:
    name, _, release = target.partition(":")
    if release != _release():
        raise RecipeError(
            f"the recipe's fold_chinese is {target}, the OpenCC that is installed is {_release()}:"
            f" install the recipe's with `pip install opencc=={release}`"
        )
    import opencc

    return opencc.OpenCC(_CONFIGURATIONS[name]).convert


def _release() -> str:
    try:
        return importlib.metadata.version("opencc")
    except importlib.metadata.PackageNotFoundError:
        raise UsageError(
            "fold_chinese needs an extra: install it with `pip install neardup[chinese]`"
        ) from None
