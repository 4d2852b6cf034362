"""Texts of documents made inert, and the little markup that the sections share."""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["count", "inert", "json_data", "name_of", "rows", "size", "table"]

MOST_OF_A_NAME: Final = 90

# Controls, and what changes the direction or the place of other text (Unicode UAX 9, TR 36).
_ACTIVE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_UNITS: Final = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def inert(text: str) -> str:
    """A document's text as HTML: no tag, no attribute, no address; active characters are named.

    Example:
        >>> inert("<b>\u202e=")
        '&lt;b&gt;<i>U+202E</i>&#61;'
    """
    html = escape(text).replace("=", "&#61;").replace("@", "&#64;").replace("(", "&#40;")
    return _ACTIVE.sub(lambda found: f"<i>U+{ord(found[0]):04X}</i>", html)


def name_of(name: str) -> str:
    """The id or address of a document, cut, in a box of its own direction."""
    most = MOST_OF_A_NAME
    text = name if len(name) <= most else f"{name[: most - 20]}…{name[-18:]}"
    return f"<bdi>{inert(text)}</bdi>"


def count(number: int) -> str:
    """A number with its thousands apart."""
    return f"{number:,}"


def size(nbytes: int) -> str:
    """Bytes for people.

    Example:
        >>> size(1_250_000)
        '1.2 MB'
    """
    for unit, name in _UNITS:
        if nbytes >= unit:
            return f"{nbytes / unit:,.1f} {name}"
    return f"{nbytes:,} bytes"


def json_data(value: Any) -> str:
    """JSON that can stand in a script element, whatever texts it has."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    for sign in "<>&=@(":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def rows(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of names and values; both are texts."""
    items = "".join(f"<dt>{inert(name)}</dt><dd>{inert(value)}</dd>" for name, value in pairs)
    return f"<dl>{items}</dl>"


def table(heads: Iterable[str], body: Iterable[Iterable[str]], title: str) -> str:
    """A table that scrolls by itself; cells are HTML, those that begin with a digit are numbers."""
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    lines = "".join(
        "<tr>" + "".join(f"<td{_kind(cell)}>{cell}</td>" for cell in line) + "</tr>"
        for line in body
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{inert(title)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _kind(cell: str) -> str:
    return ' class="n"' if cell[:1].isdigit() else ""
