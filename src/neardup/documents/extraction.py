"""Extraction of text from HTML before it is compared: the main content, or all visible text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from neardup.documents.batch import string_array
from neardup.documents.markup import (
    MAIN_CONTENT,
    has_markup,
    main_extractor,
    markup_in,
    visible_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neardup.documents.batch import Batch

__all__ = ["Extraction"]

_SAMPLE: Final = 1000


class Extraction:
    """Replaces HTML texts of batches, and counts what it did.

    A text without any tag stays as it is.

    Args:
        mode: One of EXTRACTS, or None. Pages are then read as "main"; if most other texts begin
            like HTML, `warning` says so.
        pages: Whether there are documents named as HTML.

    Raises:
        UsageError: If main content requires an extra that is not installed.
    """

    def __init__(self, mode: str | None, *, pages: bool = False) -> None:
        """Find the extractor."""
        self._mode = mode
        self._used = mode or ("main" if pages else "none")
        self._extract: Callable[[str], str] | None = None
        if self._used in MAIN_CONTENT:
            self._extract = main_extractor(self._used, chosen=mode is not None)
        elif self._used == "all":
            self._extract = visible_text
        self._is_first = True
        self._warning: str | None = None
        self._count = 0

    def applied(self, batch: Batch, is_page: Sequence[bool] | None = None) -> Batch:
        """The batch with the texts that are compared.

        Args:
            batch: As it was read.
            is_page: Of each document whether its name says that it is HTML, if names say that.
        """
        if self._extract is None:
            if self._mode is None and is_page is None and self._is_first:
                self._is_first, self._warning = False, markup_in(batch.texts, _SAMPLE)
            return batch
        is_extracted = (
            is_page if self._mode is None and is_page is not None else [True] * len(batch.rows)
        )
        texts: list[Any] = batch.texts.to_pylist()
        for i, text in enumerate(texts):
            if is_extracted[i] and has_markup(text):
                texts[i] = self._extract(text)
                self._count += 1
        return replace(batch, texts=string_array(texts))

    def note(self) -> str | None:
        """A line about extraction, or None if there was none."""
        if self._extract is None:
            return None
        what = "the main content" if self._used in MAIN_CONTENT else "the visible text"
        return (
            f"compared {what} of {self._count:,} HTML texts (--extract {self._used});"
            " kept records are unchanged"
        )

    def warning(self) -> str | None:
        """A line about a likely problem, or None."""
        if self._warning is None:
            return None
        return f"{self._warning}: pass --extract main or all (none confirms that the markup counts)"
