"""What callers pass to an index, brought into uint64 words, or refused in one clear line."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.fingerprinting.values import as_codes
from neardup.runtime.arrays import check_given

if TYPE_CHECKING:
    from neardup.documents.markup import FirstTexts
    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.settings import Settings
    from neardup.runtime.types import Code, Codes

__all__ = [
    "as_count",
    "as_time",
    "codes_of",
    "fingerprint_of_text",
    "many_fingerprints",
    "one_fingerprint",
    "recipe_of_texts",
]

MASK64: Final = (1 << 64) - 1


class TakesTexts(Protocol):
    """Settings of an index, by distance or by similarity; `takes` is what it has without texts."""

    @property
    def recipe(self) -> Recipe | None: ...

    @property
    def first_texts(self) -> FirstTexts: ...

    @property
    def takes(self) -> str: ...


def one_fingerprint(value: Any, settings: Settings) -> Code | None:
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

        code: Code | None = fingerprint_one(value, recipe_of_texts(settings, value))
        return code
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        if value.shape != (settings.width,) or value.dtype != np.uint64:
            raise UsageError(
                f"the fingerprint is {value.dtype} of shape {value.shape}: use an int or"
                f" uint64 ({settings.width},)"
            )
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


def fingerprint_of_text(text: str, settings: Settings) -> int | None:
    """Fingerprint a text by the recipe.

    Raises:
        UsageError: If there is none.
    """
    from neardup.fingerprinting.fingerprints import fingerprint

    return fingerprint(text, recipe_of_texts(settings, text))


def many_fingerprints(values: Any, settings: Settings) -> tuple[Codes, Any]:
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
    elif isinstance(values, (list, tuple)):
        values, rows = _from_list(values)
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = codes_of(values, settings)
    codes, present, _ = as_codes(values, settings.bits)
    if codes.shape[1] != settings.width:
        raise UsageError(f"fingerprints have {64 * codes.shape[1]} bits, not {settings.bits}")
    if rows is None:
        rows = np.arange(len(codes)) if present is None else present.astype(np.int64)
    return codes, rows


def codes_of(texts: Any, settings: Settings) -> Codes:
    """Fingerprint texts by the recipe; masked where one has no tokens.

    Raises:
        UsageError: If there is none.
    """
    from neardup.fingerprinting.fingerprints import codes_of_texts

    see = settings.first_texts.see_array
    codes: Codes = codes_of_texts(texts, recipe_of_texts(settings), see=see)
    return codes


def recipe_of_texts(settings: TakesTexts, text: str | None = None) -> Recipe:
    """The recipe by which texts are read; warns if those that came first, one by one, are HTML.

    Args:
        settings: Of the index.
        text: The one that comes now.

    Raises:
        UsageError: If there is none.
    """
    if settings.recipe is None:
        raise UsageError(f"the index has no recipe, so it takes {settings.takes}, not texts")
    if text is not None and settings.first_texts.are_coming:
        settings.first_texts.see(text)
    return settings.recipe


def as_count(name: str, value: Any) -> int:
    """Check a number of results.

    Raises:
        UsageError: If it is no whole number from 0 up.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0:
        return int(value)
    raise UsageError(f"{name} is {value!r:.60}: use a whole number from 0 up")


def as_time(name: str, value: Any) -> float:
    """Check a moment.

    Raises:
        UsageError: If it is no number of seconds.
    """
    if isinstance(value, Real) and not isinstance(value, bool) and value == value:  # noqa: PLR0124  # not a NaN
        return float(value)
    raise UsageError(f"{name} is {value!r:.60}: use seconds since 1970, as of time.time()")


def _from_list(values: list[Any] | tuple[Any, ...]) -> tuple[Any, Any]:
    """Texts as Arrow strings; else what is not None, and its rows, None for all."""
    if any(isinstance(each, str) for each in values):
        try:
            return pa.array(values, pa.large_string()), None
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            raise UsageError("texts and fingerprints are mixed: use one kind at a time") from None
    if all(each is not None for each in values):
        return values, None
    rows = [row for row, each in enumerate(values) if each is not None]
    return [values[row] for row in rows], np.array(rows, np.int64)


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
