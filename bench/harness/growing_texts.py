"""Corpora that grow: the first texts of many are those of fewer.

Words are drawn with a frequency of 1 / (rank + 10) from a million of six letters, and one text in
`EVERY` is an earlier one with a word in thirty replaced. Shapes:

- footers: 30 words of its own, then the same 60 on every page: strangers have a similarity of 0.49;
- templates: 64 words of one of 10^5 sites, few of them large, with 8 gaps of 1 to 3 own words:
  pages of a site have a similarity of 0.37 to 0.5;
- logs: lines of 6 to 14 words by one of 500 forms; of 6 words 4 are the form's, 2 from 10^6;
- code: a header of 20, then 3 to 12 functions of 30 identifiers, every other one a library's;
- revisions: 20 of a page of 100 words, each with three more words replaced, in random order;
- titles: 6 to 12 words;
- records: names and values of brand, category, colour, size, description (8 words of the
  category's) and number;
- one_long: titles of 20 words after a text of 200,000;
- articles: 5,000 words;
- scripts: 40 words of one of ten scripts, without spaces where the script has none.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

VOCABULARY: Final = 1_000_000
LETTERS: Final = 6
EVERY: Final = 10
WORDS_A_CHANGE: Final = 30
PART: Final = 10_000
LONG: Final = 200_000
SCRIPTS: Final = {
    "latin": (0x61, 26, 6),
    "greek": (0x3B1, 24, 6),
    "cyrillic": (0x430, 32, 6),
    "hebrew": (0x5D0, 22, 5),
    "arabic": (0x628, 19, 5),
    "devanagari": (0x905, 50, 4),
    "hangul": (0xAC00, 11_172, 3),
    "thai": (0xE01, 40, 5),
    "han": (0x4E00, 3_500, 2),
    "kana": (0x3041, 83, 4),
}
"""The code point of the first letter, how many there are, and how many a word has."""
UNSPACED: Final = ("thai", "han", "kana")
SCRIPT_WORDS: Final = 100_000

Words = tuple[Any, Any]
"""int64 (w,): ranks of words, one text after the other; int64 (t,): how many each text has."""


def make(shape: str, n: int) -> list[str]:
    """The same texts each time.

    Args:
        shape: One of `SHAPES`.
        n: The number of texts.
    """
    texts: list[str] = []
    extend(texts, shape, n)
    return texts[:n]


def extend(texts: list[str], shape: str, n: int) -> None:
    """Lengthen what this wrote to an empty list, to `n` texts or somewhat more."""
    import numpy as np

    while len(texts) < n:
        first = len(texts)
        draw = np.random.default_rng((17, first))
        texts += SHAPES[shape](draw)
        for row in range(first + EVERY - 1, len(texts), EVERY):
            texts[row] = _changed(texts[int(draw.integers(1, row))], draw)
        if shape == "one_long" and not first:
            texts[0] = _texts(_even(_ranks(draw, (1, LONG))))[0]


def _ranks(draw: Any, shape: Any, count: int = VOCABULARY, flat: int = 10) -> Any:
    """Ranks below `count`, drawn about as 1 / (rank + flat)."""
    import numpy as np

    return (flat * np.expm1(draw.random(shape) * np.log1p(count / flat))).astype(np.int64)


def _mixed(*numbers: Any) -> Any:
    """A rank for some numbers, always the same and as if drawn evenly."""
    import numpy as np

    mixed = np.ones((1, 1), np.uint64)
    for number in numbers:
        mixed = (mixed ^ np.asarray(number).astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = mixed ^ (mixed >> np.uint64(32))
    return (mixed % np.uint64(VOCABULARY)).astype(np.int64)


@functools.cache
def _letters() -> Any:
    """The words with a space behind each, as code points; uint32 (VOCABULARY, LETTERS + 1)."""
    import numpy as np

    draw = np.random.default_rng(4)
    letters = draw.integers(ord("a"), ord("z") + 1, (VOCABULARY, LETTERS + 1), np.uint32)
    letters[:, -1] = ord(" ")
    return letters


@functools.cache
def _script(name: str) -> Any:
    import numpy as np

    first, count, length = SCRIPTS[name]
    draw = np.random.default_rng(5)
    letters = draw.integers(0, count, (SCRIPT_WORDS, length + 1), np.uint32) + np.uint32(first)
    letters[:, -1] = ord(" ")
    return letters


def _texts(words: Words, script: str | None = None) -> list[str]:
    """The words of each text, with spaces between."""
    import numpy as np

    ranks, sizes = words
    letters = _script(script) if script else _letters()
    text = letters[ranks].tobytes().decode("utf-32-le")
    ends = (np.cumsum(sizes) * letters.shape[1]).tolist()
    return [text[begin : end - 1] for begin, end in itertools.pairwise([0, *ends])]


def _changed(text: str, draw: Any) -> str:
    """The text with one word in WORDS_A_CHANGE replaced, at least one; a letter without spaces."""
    words, space = text.split(" "), " "
    if len(words) == 1:
        words, space = list(text), ""
    for place in draw.integers(0, len(words), -(-len(words) // WORDS_A_CHANGE)).tolist():
        words[place] = f"{words[place][::-1]}{words[place - 1]}"
    return space.join(words)


def _even(rows: Any) -> Words:
    """Texts of the same number of words: int64 (t, words)."""
    import numpy as np

    return rows.reshape(-1), np.full(len(rows), rows.shape[1])


def _cut(rows: Any, is_there: Any) -> Words:
    """Those words of each text that are there."""
    return rows[is_there], is_there.sum(1)


def _footers(draw: Any) -> list[str]:
    import numpy as np

    own = _ranks(draw, (PART, 30))
    return _texts(_even(np.hstack([own, np.broadcast_to(_mixed(1, np.arange(60)), (PART, 60))])))


def _templates(draw: Any) -> list[str]:
    import numpy as np

    site, own = _ranks(draw, (PART, 1), 100_000), _ranks(draw, (PART, 8, 3))
    fixed = _mixed(2, site, np.arange(64)).reshape(PART, 8, 8)
    is_own = np.arange(3) < draw.integers(1, 4, (PART, 8, 1))
    is_there = np.concatenate([is_own, np.ones((PART, 8, 8), bool)], axis=2)
    rows = np.concatenate([own, fixed], axis=2)
    return _texts(_cut(rows.reshape(PART, -1), is_there.reshape(PART, -1)))


def _logs(draw: Any) -> list[str]:
    import numpy as np

    form, place = _ranks(draw, (PART, 1), 500), np.arange(14)
    own = draw.integers(0, VOCABULARY, (PART, 14))
    is_own = _mixed(3, form, place) % 3 == 0
    rows = np.where(is_own, own, _mixed(4, form, place))
    return _texts(_cut(rows, place < 6 + _mixed(5, form) % 9))


def _code(draw: Any) -> list[str]:
    import numpy as np

    places = np.arange(12 * 30)
    header = _mixed(6, _ranks(draw, (PART, 1), 1_000), np.arange(20))
    library = np.repeat(_ranks(draw, (PART, 12), 100_000), 30, axis=1)
    is_library = np.repeat(draw.random((PART, 12)) < 0.5, 30, axis=1)
    # Identifiers: few are everywhere.
    theirs = _mixed(7, library, places % 30) / VOCABULARY
    theirs = np.expm1(theirs * np.log(20_000)).astype(np.int64)
    body = np.where(is_library, theirs, _ranks(draw, (PART, 12 * 30), 20_000, 1))
    count = 20 + 30 * draw.integers(3, 13, (PART, 1))
    return _texts(_cut(np.hstack([header, body]), np.arange(20 + 12 * 30) < count))


def _revisions(draw: Any) -> list[str]:
    import numpy as np

    page = _ranks(draw, (PART // 20, 100))
    versions = np.empty((PART // 20, 20, 100), np.int64)
    for version in range(20):
        for _ in range(3):
            page[np.arange(len(page)), draw.integers(0, 100, len(page))] = _ranks(draw, len(page))
        versions[:, version] = page
    return _texts(_even(draw.permutation(versions.reshape(PART, 100))))


def _titles(draw: Any) -> list[str]:
    import numpy as np

    return _texts(_cut(_ranks(draw, (PART, 12)), np.arange(12) < draw.integers(6, 13, (PART, 1))))


def _records(draw: Any) -> list[str]:
    import numpy as np

    category = _ranks(draw, (PART, 1), 300)
    columns = [_ranks(draw, (PART, 1), 5_000), category, _ranks(draw, (PART, 1), 20)]
    columns += [_ranks(draw, (PART, 1), 30), _mixed(8, category, _ranks(draw, (PART, 8), 2_000))]
    columns += [draw.integers(0, VOCABULARY, (PART, 1))]
    named = []
    for number, column in enumerate(columns):
        named += [np.full((PART, 1), 100 + number), column]
    return _texts(_even(np.hstack(named)))


def _one_long(draw: Any) -> list[str]:
    return _texts(_even(_ranks(draw, (PART, 20))))


def _articles(draw: Any) -> list[str]:
    return _texts(_even(_ranks(draw, (PART // 10, 5_000))))


def _scripts(draw: Any) -> list[str]:
    """Texts of one script after the other."""
    parts = []
    for name in SCRIPTS:
        words = _even(_ranks(draw, (PART // len(SCRIPTS), 40), SCRIPT_WORDS))
        texts = _texts(words, name)
        parts.append([text.replace(" ", "") for text in texts] if name in UNSPACED else texts)
    return [text for mixed in zip(*parts, strict=True) for text in mixed]


SHAPES: Final[dict[str, Callable[[Any], list[str]]]] = {
    "footers": _footers,
    "templates": _templates,
    "logs": _logs,
    "code": _code,
    "revisions": _revisions,
    "titles": _titles,
    "records": _records,
    "one_long": _one_long,
    "articles": _articles,
    "scripts": _scripts,
}
