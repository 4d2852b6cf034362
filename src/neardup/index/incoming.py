"""Input of an index: conversion to uint64 words, or an error of one line."""

from __future__ import annotations

import operator
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from neardup.documents.markup import extracted
from neardup.errors import UsageError
from neardup.fingerprinting.fingerprints import feature_hashes
from neardup.fingerprinting.sets_of_texts import feature_sets
from neardup.fingerprinting.values import as_codes, check_last_word
from neardup.index.set_arrays import Sets
from neardup.runtime.arrays import check_given, frozen

if TYPE_CHECKING:
    from neardup.documents.markup import FirstTexts
    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.kind_settings import DistanceSettings, SimilaritySettings
    from neardup.runtime.types import Code, Codes, Hashes, Offsets

__all__ = [
    "as_count",
    "as_time",
    "codes_of",
    "fingerprint_of_text",
    "many_fingerprints",
    "many_sets",
    "one_fingerprint",
    "one_set",
    "recipe_of_texts",
    "sorted_sets",
    "text_of",
    "texts_of",
]

MASK64: Final = (1 << 64) - 1


class TakesTexts(Protocol):
    """Settings of an index of either kind; `takes` names what it accepts without a recipe."""

    @property
    def recipe(self) -> Recipe | None: ...

    @property
    def extract(self) -> str | None: ...

    @property
    def first_texts(self) -> FirstTexts: ...

    @property
    def takes(self) -> str: ...


def one_fingerprint(value: Any, settings: DistanceSettings) -> Code | None:
    """Bring a fingerprint or a text into uint64 (width,).

    Args:
        value: An int, uint64 (width,), a text, or None for a document without tokens.
        settings: Of the index.

    Returns:
        The words; None for a document without tokens.

    Raises:
        UsageError: For another type or width, or a text where there is no recipe.
    """
    if isinstance(value, str):
        from neardup.fingerprinting.fingerprints import fingerprint_one

        recipe = recipe_of_texts(settings, value)
        code: Code | None = fingerprint_one(text_of(settings, value), recipe)
        return code
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        if value.shape != (settings.width,) or value.dtype != np.uint64:
            raise UsageError(
                f"the fingerprint is {value.dtype} of shape {value.shape}: use an int or"
                f" uint64 ({settings.width},)"
            )
        check_last_word(int(value[-1]), settings.bits)
        return value.copy()
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise UsageError(f"a fingerprint is {type(value).__name__}: {value!r:.60}: use an int")
    number = int(value)
    if number < 0 or number >> settings.bits:
        raise UsageError(
            f"a fingerprint is {number}: use 0 to 2**{settings.bits} - 1 (a signed 64-bit value"
            " is value % 2**64)"
        )
    return np.array([number >> 64 * w & MASK64 for w in range(settings.width)], np.uint64)


def fingerprint_of_text(text: str, settings: DistanceSettings) -> int | None:
    """Fingerprint a text by the recipe.

    Raises:
        UsageError: If there is none.
    """
    from neardup.fingerprinting.fingerprints import fingerprint

    recipe = recipe_of_texts(settings, text)
    return fingerprint(text_of(settings, text), recipe)


def many_fingerprints(values: Any, settings: DistanceSettings) -> tuple[Codes, Any]:
    """Bring fingerprints or texts into words.

    Args:
        values: A list of ints (or None), uint64 or int64 (n,) or (n, width), also masked, Arrow of
            either, or texts.
        settings: Of the index.

    Returns:
        uint64 (m, width) of those that have a fingerprint, and their rows, int64 (m,).

    Raises:
        UsageError: For another type or width, or texts where there is no recipe.
    """
    rows = None
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        check_given("fingerprints", values)
        values = _from_arrow(values)
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            values = codes_of(values, settings)
    elif isinstance(values, (list, tuple)):
        if _are_texts(values, "fingerprints"):
            values = codes_of(values, settings)
        elif any(each is None for each in values):
            rows = np.array([row for row, each in enumerate(values) if each is not None], np.int64)
            values = [values[row] for row in rows.tolist()]
    codes, present, _ = as_codes(values, settings.bits)
    if codes.shape[1] != settings.width:
        raise UsageError(f"fingerprints have {64 * codes.shape[1]} bits, not {settings.bits}")
    if rows is None:
        rows = np.arange(len(codes)) if present is None else present.astype(np.int64)
    return codes, rows


def codes_of(texts: Any, settings: DistanceSettings) -> Codes:
    """Fingerprint texts by the recipe; masked where one has no tokens.

    Raises:
        UsageError: If there is none.
    """
    from neardup.fingerprinting.fingerprints import codes_of_texts

    recipe = recipe_of_texts(settings)
    see = None if settings.extract else settings.first_texts.see_array
    codes: Codes = codes_of_texts(texts_of(settings, texts), recipe, see=see)
    return codes


def text_of(settings: TakesTexts, text: str) -> str:
    """The part of a text that is compared: all of it, or the part of HTML that `extract` names."""
    return text if settings.extract is None else extracted(text, settings.extract)


def texts_of(settings: TakesTexts, texts: Any) -> Any:
    """As `text_of`, for many; other values stay, and are refused later."""
    if settings.extract in {None, "none"}:
        return texts
    if hasattr(texts, "__arrow_c_stream__"):
        texts = pa.chunked_array(texts)
    values = texts.to_pylist() if isinstance(texts, pa.Array | pa.ChunkedArray) else texts
    return [text_of(settings, each) if isinstance(each, str) else each for each in values]


def recipe_of_texts(settings: TakesTexts, text: str | None = None) -> Recipe:
    """The recipe for texts; warns if the first texts that came one by one are HTML.

    Args:
        settings: Of the index.
        text: The current text.

    Raises:
        UsageError: If there is none.
    """
    if settings.recipe is None:
        raise UsageError(
            f"the index has no recipe, so it takes {settings.takes}, not texts: for texts make one"
            " with a recipe, such as recipe=nd.Recipe()"
        )
    if text is not None and settings.extract is None and settings.first_texts.are_coming:
        settings.first_texts.see(text)
    return settings.recipe


def as_count(name: str, value: Any) -> int:
    """Check a number of results.

    Raises:
        UsageError: If it is not a whole number from 0 up.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0:
        return int(value)
    raise UsageError(f"{name} is {value!r:.60}: use a whole number from 0 up")


def as_time(name: str, value: Any) -> float:
    """Check a time.

    Raises:
        UsageError: If it is not a number of seconds.
    """
    if isinstance(value, Real) and not isinstance(value, bool) and value == value:  # noqa: PLR0124  # not a NaN
        return float(value)
    raise UsageError(f"{name} is {value!r:.60}: use seconds since 1970, as from time.time()")


def _are_texts(values: list[Any] | tuple[Any, ...], others: str) -> bool:
    """Whether documents are texts; `others` is the name of the other kind in the error.

    Raises:
        UsageError: If there are both.
    """
    types = set(map(type, values))
    if not any(issubclass(each, str) for each in types):
        return False
    if not all(issubclass(each, str | None) for each in types):
        raise UsageError(f"texts and {others} are mixed: use one kind at a time")
    return True


def _from_arrow(values: Any) -> Any:
    """Fingerprints as NumPy words, masked where they are null; strings stay as they are."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    kind = values.type
    if pa.types.is_fixed_size_list(kind):
        width = kind.list_size
        flat = values.values.slice(values.offset * width, len(values) * width)
        codes = flat.fill_null(0).to_numpy(zero_copy_only=False).reshape(-1, width)
    elif pa.types.is_integer(kind):
        codes = values.fill_null(0).to_numpy(zero_copy_only=False)[:, None]
    else:
        return values
    if not values.null_count:
        return codes
    missing = np.asarray(values.is_null())[:, None]
    return np.ma.MaskedArray(codes, np.broadcast_to(missing, codes.shape))


def one_set(value: Any, settings: SimilaritySettings) -> Any:
    """Bring a text or feature hashes into ascending uint64; empty for a document without any.

    Raises:
        UsageError: For something else, or a text where there is no recipe.
    """
    from neardup.kernels.index.sets import sort_set

    if isinstance(value, str):
        recipe = recipe_of_texts(settings, value)
        return frozen(feature_hashes(text_of(settings, value), recipe))
    features = np.empty(0, np.uint64) if value is None else _hashes(value)
    return frozen(features[: sort_set(features)])


def many_sets(values: Any, settings: SimilaritySettings, workers: int | None = None) -> Sets:
    """Bring texts or feature hashes of many documents into sets; empty ones are among them.

    Args:
        values: Texts as for `neardup.fingerprints`, or as many collections of uint64 hashes: Arrow
            lists, or a sequence of arrays or lists, None for no features.
        settings: Of the index.
        workers: Threads; by default one per core.

    Raises:
        UsageError: For something else, or texts where there is no recipe.
    """
    if isinstance(values, Sets):
        return values
    lists = _as_lists(values)
    if lists is None:
        recipe = recipe_of_texts(settings)
        see = None if settings.extract else settings.first_texts.see_array
        return sorted_sets(*feature_sets(texts_of(settings, values), recipe, workers, see=see))
    return sorted_sets(*lists)


def sorted_sets(features: Hashes, offsets: Offsets) -> Sets:
    """Sort every set and remove repeated features; `features` may be changed."""
    from neardup.kernels.index.sets import sort_sets

    if not features.flags.writeable or not features.flags.c_contiguous:
        features = features.copy()
    count = int(sort_sets(features, offsets))
    return Sets(frozen(features[:count]), frozen(offsets))


def _as_lists(values: Any) -> tuple[Any, Any] | None:
    """Features and offsets of lists of hashes; None for texts."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            return _lists_from_arrow(values)
        return None
    if isinstance(values, np.ndarray) and values.ndim == 2:
        values = list(values)
    if not isinstance(values, (list, tuple)):
        return None
    if _are_texts(values, "feature hashes"):
        return None
    parts = [np.empty(0, np.uint64) if each is None else _hashes(each) for each in values]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(each) for each in parts], out=offsets[1:])
    return np.concatenate([np.empty(0, np.uint64), *parts]), offsets


def _lists_from_arrow(values: Any) -> tuple[Any, Any]:
    kind = values.type.value_type
    if not pa.types.is_integer(kind) or kind.bit_width != 64:
        raise UsageError(f"features are lists of {kind}: use lists of uint64")
    flat = values.flatten()
    if flat.null_count:
        raise UsageError(f"{flat.null_count:,} features are null: leave them out")
    sizes = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return flat.to_numpy(zero_copy_only=False).view(np.uint64).copy(), offsets


def _hashes(value: Any) -> Any:
    if isinstance(value, pa.ListScalar):
        value = value.values
    if isinstance(value, pa.Array):
        value = value.to_numpy(zero_copy_only=False)
    if isinstance(value, (list, tuple, set, frozenset)):
        try:
            value = np.array(sorted(map(operator.index, value)), np.uint64)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(
                f"features are {value!r:.60}: use whole numbers from 0 to 2**64 - 1"
            ) from None
    if not isinstance(value, np.ndarray):
        raise UsageError(
            f"a document is {type(value).__name__}: {value!r:.60}: use a text, or an array of"
            " uint64 feature hashes"
        )
    if value.ndim != 1 or value.dtype not in (np.dtype(np.uint64), np.dtype(np.int64)):
        raise UsageError(
            f"features are {value.dtype} of shape {value.shape}: use uint64 (n,) for a document"
        )
    return value.astype(np.uint64)
