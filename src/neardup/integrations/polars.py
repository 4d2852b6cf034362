"""The namespaces `neardup` of polars frames and expressions, once this module is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.fingerprinting.fingerprints import fingerprints
from neardup.fingerprinting.recipe import recipe_of
from neardup.integrations.columns import missing, named_columns
from neardup.pipeline import dedup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.fingerprinting.recipe import Recipe

try:
    import polars as pl
except ImportError:
    raise missing("polars", __name__) from None

__all__ = ["ExpressionNamespace", "FrameNamespace"]


@pl.api.register_dataframe_namespace("neardup")
class FrameNamespace:
    """The namespace `neardup` of a polars DataFrame.

    Args:
        frame: The frame.

    Example:
        >>> import polars as pl
        >>> df = pl.DataFrame({"id": [1, 2, 3], "text": ["one two", "One, two!", "three"]})
        >>> df.neardup.dedup("text")["id"].to_list()
        [1, 3]
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        """Store the frame."""
        self._frame = frame

    def dedup(self, text: str | Sequence[str] = "text", **options: Any) -> pl.DataFrame:
        """The kept rows, with all columns.

        Args:
            text: Column or columns with the text.
            options: Of `neardup.dedup`: similarity, distance, keep, within and others.

        Raises:
            UsageError, DataError: As `neardup.dedup`.
        """
        columns = named_columns(text, options, self._frame.columns)
        return self._frame.filter(dedup(self._frame.select(columns), text=text, **options).kept)


@pl.api.register_expr_namespace("neardup")
class ExpressionNamespace:
    """The namespace `pl.col("text").neardup`: expressions, which work in lazy frames too.

    Args:
        expression: Of texts.

    Example:
        >>> import polars as pl
        >>> lf = pl.LazyFrame({"id": [1, 2, 3], "text": ["one two", "One, two!", "three"]})
        >>> lf.filter(~pl.col("text").neardup.is_duplicate()).collect()["id"].to_list()
        [1, 3]
    """

    def __init__(self, expression: pl.Expr) -> None:
        """Store the expression."""
        self._expression = expression

    def is_duplicate(self, **options: Any) -> pl.Expr:
        """Whether a row matches a kept one, of all rows or of those of `.over`.

        A null is not a duplicate, like an empty text.

        Args:
            options: Of `neardup.dedup` that name no column: similarity, distance and others.
        """

        def decided(texts: pl.Series) -> pl.Series:
            if isinstance(texts.dtype, (pl.Categorical, pl.Enum)):  # an Enum has no place for ""
                texts = texts.cast(pl.String)
            return pl.Series(texts.name, ~dedup(texts.fill_null(""), **options).kept)

        return self._expression.map_batches(decided, return_dtype=pl.Boolean)

    def fingerprint(self, recipe: Recipe | None = None) -> pl.Expr:
        """The fingerprint of each text, row by row; null for a text without tokens.

        Args:
            recipe: The recipe; by default Recipe().

        Returns:
            UInt64, or of wider fingerprints an Array of them, the low word first.
        """
        words = recipe_of(recipe).words
        kind = pl.UInt64() if words == 1 else pl.Array(pl.UInt64, words)

        def fingerprints_of(texts: pl.Series) -> pl.Series:
            values = fingerprints(texts, recipe)
            codes, empty = np.ma.getdata(values), np.ma.getmaskarray(values)[:, 0]
            series = pl.Series(texts.name, codes[:, 0] if words == 1 else codes, kind)
            return series.set(pl.Series(empty), None) if words == 1 else _without(series, empty)

        return self._expression.map_batches(fingerprints_of, return_dtype=kind, is_elementwise=True)


def _without(values: pl.Series, empty: Any) -> pl.Series:
    """A series with null where a flag is set; `Series.set` takes no arrays."""
    frame = pl.DataFrame({"value": values, "empty": empty})
    chosen = frame.select(pl.when(~pl.col("empty")).then(pl.col("value")))
    return chosen.to_series().alias(values.name)
