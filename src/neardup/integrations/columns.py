"""Selection of the frame columns that a call names, so that only these are converted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["missing", "named_columns"]


def named_columns(
    text: str | Sequence[str], options: dict[str, Any], there: Iterable[str]
) -> list[str]:
    """The columns that a call of `neardup.dedup` names, each once.

    Args:
        text: Column or columns with the text.
        options: Of the call.
        there: The columns of the frame.

    Raises:
        UsageError: If a column is missing, or two have its name.

    Example:
        >>> named_columns("body", {"keep": "max:stars", "policy": "greedy"}, ["body", "stars"])
        ['body', 'stars']
    """
    texts = [text] if isinstance(text, str) else list(text)
    _, _, number = str(options.get("keep", "")).partition(":")
    others = [options.get("id"), options.get("within"), number or None]
    named = list(dict.fromkeys([*texts, *(name for name in others if name is not None)]))
    columns = list(there)
    for name in named:
        if name not in columns:
            listed = ", ".join(map(str, columns))
            raise UsageError(f"no column {name!r}: there are {listed}")
        if columns.count(name) > 1:
            raise UsageError(f"{columns.count(name)} columns are named {name!r}: rename one")
    return named


def missing(library: str, module: str) -> UsageError:
    """The error for an integration whose library is not installed."""
    return UsageError(
        f"{module} needs {library}: install it with `pip install 'neardup[{library}]'`"
    )
