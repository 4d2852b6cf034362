"""The visible text of HTML, and texts that are HTML where only text was looked for."""

from __future__ import annotations

import functools
import html
import logging
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.errors import UsageError, warn_of_doubt

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

__all__ = [
    "EXTRACTS",
    "MAIN_CONTENT",
    "FirstTexts",
    "check_extract",
    "declared_encoding",
    "extracted",
    "has_markup",
    "main_extractor",
    "main_text",
    "markup_in",
    "visible_text",
    "warn_of_markup",
]

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
_BEGINS: Final = re.compile(
    rb"\s*<(?:!doctype\s+html|!--|\?xml|/?(?:html|head|body|title|meta|link|script|style|div|p"
    rb"|span|a|b|i|em|strong|h[1-6]|table|tr|td|ul|ol|li|br|hr|img|section|article|main|header"
    rb"|footer|nav|form|font|center|blockquote|pre)(?:\s|/?>))",
    re.IGNORECASE,
)
_CHARSET: Final = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.IGNORECASE
)
_HEAD_BYTES: Final = 4096

EXTRACTS: Final = ("main", "trafilatura", "all", "none")
"""What of a text that is HTML is compared."""
MAIN_CONTENT: Final = ("main", "trafilatura")
"""Those that are the main content: by resiliparse, and by trafilatura."""

_MOST: Final = 0.5
_SAMPLE: Final = 100
FIRST_TEXTS: Final = 10
ADVICE: Final = (
    "give the text in them instead, as nd.main_text takes it out; dedup, similar_pairs and indexes"
    " do it themselves with extract='main', and so do the commands with --extract main"
)


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


def main_text(page: str) -> str:
    """Take the main content out of HTML, without menus and footers; all visible text if none.

    A text without any tag stays as it is.

    Raises:
        UsageError: Without the extra `neardup[html]`.

    Example:
        >>> menu = "<nav><a href='/'>Home</a></nav>"
        >>> main_text(f"<body>{menu}<main><p>Green tea grows in the shade.</p></main></body>")
        'Green tea grows in the shade.'
    """
    return extracted(page, "main")


def extracted(text: str, extract: str) -> str:
    """The text that is compared: of HTML "main" or "all" of it, else the text itself."""
    if extract == "none" or not has_markup(text):
        return text
    return visible_text(text) if extract == "all" else main_extractor(extract)(text)


def check_extract(extract: str | None) -> None:
    """Refuse a value other than EXTRACTS; None means no request.

    Raises:
        UsageError: For an unknown word, or one of MAIN_CONTENT without the extra for it.
    """
    if extract is not None and extract not in EXTRACTS:
        raise UsageError(f"extract is {extract!r}: use {', '.join(EXTRACTS)}")
    if extract in MAIN_CONTENT:
        main_extractor(extract)


@functools.cache
def main_extractor(by: str, *, chosen: bool = True) -> Callable[[str], str]:
    """The function from a page to its main content; all visible text where it finds none.

    Args:
        by: One of MAIN_CONTENT.
        chosen: Whether the user asked for it; otherwise the message tells why it is needed.

    Raises:
        UsageError: Without the extra.
    """
    extra = "html" if by == "main" else by
    try:
        find = _by_resiliparse() if by == "main" else _by_trafilatura()
    except ImportError:
        why = f"extract {by}" if chosen else "HTML is compared by its main content, which"
        raise UsageError(
            f"{why} needs an extra: install it with `pip install 'neardup[{extra}]'`, or pass"
            " --extract all (the visible text) or none (the markup too)"
        ) from None

    def extract(page: str) -> str:
        content = find(page)
        return content if content.strip() else visible_text(page)

    return extract


def _by_resiliparse() -> Callable[[str], str]:
    from resiliparse.extract.html2text import extract_plain_text

    def find(page: str) -> str:
        content: str = extract_plain_text(page, main_content=True, alt_texts=False)
        return content

    return find


def _by_trafilatura() -> Callable[[str], str]:
    from trafilatura import extract

    # Of each page that has no text it logs an error, which would go to the screen.
    logging.getLogger("trafilatura").addHandler(logging.NullHandler())

    def find(page: str) -> str:
        content: str | None = extract(page, include_comments=False)
        return content or ""

    return find


def _between(tag: re.Match[str]) -> str:
    name = tag[1]
    return "" if name is not None and name.lower() in _INLINE else "\n"


def markup_in(texts: pa.LargeStringArray, most: int) -> str | None:
    """A note on how many of the first texts begin like HTML; None if less than half do."""
    seen = min(len(texts), most)
    return _warning_for(_pages(texts, seen), seen)


def warn_of_markup(*chunks: pa.LargeStringArray) -> None:
    """Warn if most of the first texts of a call from Python begin like HTML."""
    line = next((markup_in(chunk, _SAMPLE) for chunk in chunks if len(chunk)), None)
    if line is not None:
        warn_of_doubt(f"{line}: {ADVICE}")


class FirstTexts:
    """The first texts that an index is given, at once or one by one: a warning if most are HTML.

    Attributes:
        are_coming: Whether it looks at another one.
    """

    __slots__ = ("_pages", "_seen", "are_coming")

    def __init__(self) -> None:
        """Look at the next FIRST_TEXTS, and at more where they come at once."""
        self._pages = self._seen = 0
        self.are_coming = True

    def see(self, text: str) -> None:
        """Look at one text."""
        begin = text[:_HEAD_BYTES].encode(errors="replace")
        self._count(1, int(_BEGINS.match(begin) is not None))

    def see_array(self, *chunks: pa.LargeStringArray) -> None:
        """Look at texts that are Arrow's."""
        for chunk in chunks:
            if self.are_coming:
                seen = min(len(chunk), _SAMPLE)
                self._count(seen, _pages(chunk, seen))

    def _count(self, seen: int, pages: int) -> None:
        self._seen, self._pages = self._seen + seen, self._pages + pages
        if not self.are_coming or self._seen < FIRST_TEXTS:
            return
        self.are_coming = False
        line = _warning_for(self._pages, self._seen)
        if line is not None:
            warn_of_doubt(f"{line}: {ADVICE}")


def _pages(texts: pa.LargeStringArray, seen: int) -> int:
    """The number of texts that begin like HTML; no text is copied."""
    _, offsets, data = texts.slice(0, seen).buffers()
    if not seen or offsets is None or data is None:
        return 0
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + seen + 1].tolist()
    text = memoryview(data)
    return sum(_BEGINS.match(text, *each) is not None for each in pairwise(ends))


def _warning_for(pages: int, seen: int) -> str | None:
    if pages <= _MOST * seen:
        return None
    return (
        f"{pages / seen:.0%} of the first texts begin like HTML, and their markup is compared too"
    )


def declared_encoding(page: bytes) -> str | None:
    """The encoding that a page's own head names, or None."""
    match = _CHARSET.search(page, 0, _HEAD_BYTES)
    return None if match is None else match[1].decode("ascii")
