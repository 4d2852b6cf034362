"""The accessor `neardup` of pandas DataFrames, available once this module is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.integrations.columns import missing, named_columns
from neardup.pipeline import dedup

if TYPE_CHECKING:
    from collections.abc import Sequence

try:
    import pandas as pd
except ImportError:
    raise missing("pandas", __name__) from None

__all__ = ["FrameAccessor"]


@pd.api.extensions.register_dataframe_accessor("neardup")
class FrameAccessor:
    """The accessor `neardup` of a pandas DataFrame.

    Args:
        frame: The frame.

    Example:
        >>> import pandas as pd
        >>> df = pd.DataFrame({"text": ["one two three", "One, two, three!", "four"]}, index=list("abc"))
        >>> df.neardup.dedup("text").index.tolist()
        ['a', 'c']
    """  # noqa: E501 - as it would be typed

    def __init__(self, frame: pd.DataFrame) -> None:
        """Store the frame."""
        self._frame = frame

    def dedup(self, text: str | Sequence[str] = "text", **options: Any) -> pd.DataFrame:
        """The kept rows, with their index and all columns.

        Args:
            text: Column or columns with the text.
            options: Of `neardup.dedup`: similarity, distance, keep, within and others.

        Raises:
            UsageError, DataError: As `neardup.dedup`.
        """
        return self._frame[self._kept(text, options)]

    def is_duplicate(self, text: str | Sequence[str] = "text", **options: Any) -> pd.Series:
        """Whether each row is dropped: bool, with the frame's index.

        Args:
            text: As in `dedup`.
            options: As in `dedup`.

        Raises:
            UsageError, DataError: As `neardup.dedup`.
        """
        return pd.Series(~self._kept(text, options), index=self._frame.index, name="is_duplicate")

    def _kept(self, text: str | Sequence[str], options: dict[str, Any]) -> Any:
        columns = named_columns(text, options, self._frame.columns)
        return dedup(self._frame[columns], text=text, **options).kept
