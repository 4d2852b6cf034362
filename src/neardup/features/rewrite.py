"""Rewrite texts before they are normalised: Turkish letters, Chinese characters."""

from __future__ import annotations

import functools
import importlib.metadata
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import RecipeError, UsageError
from neardup.features.text import TextBlock, text_blocks

if TYPE_CHECKING:
    from neardup.features.choices import Choices

__all__ = ["named_conversion", "rewritten"]

TURKISH: Final = (("I\u0307", "i"), ("\u0130", "i"), ("I", "\u0131"))
"""Lower-casing of the two capitals, in this order; all other letters fold as everywhere."""

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


def rewritten(block: TextBlock, recipe: Choices) -> TextBlock:
    """Rewrite the documents as the recipe's `fold_chinese`, then its `language` says.

    Raises:
        UsageError: If the package opencc is needed and not installed.
        RecipeError: If it is another release than the recipe's.
    """
    if recipe.language is None and recipe.fold_chinese is None:
        return block
    texts = _array(block)
    if recipe.fold_chinese is not None:
        convert = _converter(recipe.fold_chinese)
        converted = [convert(text) for text in texts.to_pylist()]
        texts = pa.array(converted, pa.large_string())
    if recipe.language is not None:
        for old, new in TURKISH:
            texts = pc.replace_substring(texts, old, new)
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
