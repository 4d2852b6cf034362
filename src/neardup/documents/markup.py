"""The visible text of HTML: without markup, scripts and styles."""

from __future__ import annotations

import html
import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["declared_encoding", "has_markup", "share_of_markup", "visible_text"]

_INLINE: Final = frozenset(
    [
        "a",
        "abbr",
        "acronym",
        "b",
        "bdi",
        "bdo",
        "big",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "ins",
        "kbd",
        "label",
        "mark",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
        "var",
        "wbr",
    ]
)
_REST: Final = r"""(?:[^<>"']++|"[^"]*+"|'[^']*+'|<(?![A-Za-z/!?]))*+["']?"""  # of a tag
_HIDDEN: Final = re.compile(
    r"<!--.*?(?:-->|\Z)"
    rf"|<(script|style|template|noscript|iframe|title|svg)\b{_REST}(?<!/)>.*?(?:</\1\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_TAG: Final = re.compile(rf"<(?:/?([A-Za-z][A-Za-z0-9:_-]*+)|[!?]){_REST}>")
_MARK: Final = re.compile(
    r"<(?:/?[A-Za-z][A-Za-z0-9:-]*(?:\s[^<>]*)?/?>|!doctype\b|!--)", re.IGNORECASE
)
_SPACES: Final = re.compile(r"[^\S\n]+")
_LINES: Final = re.compile(r" *\n[ \n]*")
_BEGINS: Final = (
    r"(?i)^\s*<(?:!doctype\s+html|!--|\?xml|/?(?:html|head|body|title|meta|link|script|style|div|p"
    r"|span|a|b|i|em|strong|h[1-6]|table|tr|td|ul|ol|li|br|hr|img|section|article|main|header"
    r"|footer|nav|form|font|center|blockquote|pre)(?:\s|/?>))"
)
_CHARSET: Final = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.IGNORECASE
)
_HEAD_BYTES: Final = 4096


def has_markup(text: str) -> bool:
    """Whether there is any tag in a text."""
    return _MARK.search(text) is not None


def visible_text(page: str) -> str:
    r"""Take the text out of HTML: tags of blocks are line ends, those within a line are nothing.

    Scripts, styles, templates, drawings, the title and comments go; what style sheets hide stays.
    Linear in the length of the page, whatever is in it.

    Example:
        >>> visible_text("<h1>Tea</h1><p>gr<b>ee</b>n &amp; black</p><script>x</script>")
        'Tea\ngreen & black'
    """
    text = html.unescape(_TAG.sub(_between, _HIDDEN.sub("\n", page)))
    return _LINES.sub("\n", _SPACES.sub(" ", text)).strip()


def _between(tag: re.Match[str]) -> str:
    name = tag[1]
    return "" if name is not None and name.lower() in _INLINE else "\n"


def share_of_markup(texts: pa.Array) -> float:
    """The share of texts that begin like HTML; 0 of none."""
    if not len(texts):
        return 0.0
    return float(pc.mean(pc.match_substring_regex(texts, _BEGINS).cast(pa.int8())).as_py())


def declared_encoding(page: bytes) -> str | None:
    """The encoding that a page's own head names, or None."""
    found = _CHARSET.search(page, 0, _HEAD_BYTES)
    return None if found is None else found[1].decode("ascii")
