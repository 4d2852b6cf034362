"""Edits of known kinds and sizes, planted in documents to measure what a question finds.

A word is a run without white space; in a text without spaces, two characters. Edits of words have
the size of an aim; edits of a sentence, of spelling and of boilerplate around a text have a size of
their own. All random choices depend on one seed and a document's number, so the same documents give
the same edits.
"""

from __future__ import annotations

import random
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from neardup.errors import UsageError
from neardup.features.scripts import is_unspaced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["LOOKALIKE", "SMALL_KINDS", "WORD_KINDS", "Aim", "Planter", "words_of"]

WORD_KINDS: Final = ("replaced", "inserted", "removed", "moved")
"""Edits of the size of an aim, word by word."""

SMALL_KINDS: Final = (
    "sentence added",
    "sentence cut",
    "case",
    "accents",
    "punctuation",
    "digits",
    "boilerplate",
    "truncated",
)
"""Edits with a size of their own."""

LOOKALIKE: Final = "spliced"
"""The kind that is not a copy: three fifths of the document, then the end of another one."""

MOST_CHARACTERS: Final = 20_000
"""The characters at the beginning of a document that are edited and compared."""

_SENTENCE: Final = re.compile(r"(?<=[.!?;:])\s+|(?<=[\u3002\uff01\uff1f\uff1b])|\n+")
_HEADER: Final = ("Home", "News", "About", "Contact", "Search", "Login")
_FOOTER: Final = ("Copyright", "All", "rights", "reserved", "Privacy", "Terms", "of", "use")


@dataclass(frozen=True, slots=True)
class Aim:
    """The edit that a copy may have: a share of the words, or a number of words.

    Args:
        share: Of the words of a document, above 0, up to 0.5; one word at least.
        words: A number of words, for documents of any length, in place of a share.

    Raises:
        UsageError: For values out of range.
    """

    share: float | None = 0.05
    words: int | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        if (self.share is None) == (self.words is None):
            raise UsageError("an aim is a share of the words or a number of words: give one")
        if self.share is not None and not 0 < self.share <= 0.5:
            raise UsageError(f"edits is {self.share:.0%}: use more than 0%, up to 50%")
        if self.words is not None and self.words < 1:
            raise UsageError(f"edits is {self.words}: use 1 word or more")

    @classmethod
    def parse(cls, text: str) -> Aim:
        """The aim of an option: "5%" or "1".

        Raises:
            UsageError: If the text has neither form.

        Example:
            >>> Aim.parse("5%"), Aim.parse("2")
            (Aim(share=0.05, words=None), Aim(share=None, words=2))
        """
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text, re.ASCII)
        if match is None or not (match[2] or match[1].isdigit()):
            raise UsageError(
                f"edits is {text!r}: use a share of the words, such as 5%, or a number"
            )
        if match[2]:
            return cls(float(match[1]) / 100)
        return cls(None, int(match[1]))

    def size(self, words: int) -> int:
        """The number of a document's words that an edit of this size changes."""
        size = self.words if self.share is None else max(1, round(words * self.share))
        return min(words, size or 1)

    def __str__(self) -> str:
        """The aim in words."""
        if self.share is None:
            return "1 word changed" if self.words == 1 else f"{self.words} words changed"
        every = 1 / self.share
        if abs(every - round(every)) < 1e-9:
            return f"1 word in {round(every)} changed"
        return f"{self.share:.3g} of the words changed"


def words_of(text: str) -> list[str]:
    """The words of a text, with the white space after each; unspaced, two characters at a time.

    Example:
        >>> words_of(" to be, or"), words_of("これは本")
        (['to ', 'be, ', 'or'], ['これ', 'は本'])
    """
    if is_unspaced(text):
        return [text[at : at + 2] for at in range(0, len(text), 2)]
    return re.findall(r"\S+\s*", text)


class Planter:
    """Plants edits in documents.

    Args:
        texts: Documents, which also supply the words and sentences that an edit inserts.
        seed: The same edits with the same seed.
    """

    def __init__(self, texts: Sequence[str], seed: int) -> None:
        """Collect words and sentences."""
        self._texts, self._seed = [text[:MOST_CHARACTERS] for text in texts], seed
        self._words: dict[bool, list[str]] = {False: [], True: []}
        self._sentences: list[str] = []
        for text in self._texts:
            own = self._words[is_unspaced(text)]
            own += (word.strip() for word in words_of(text)[:400])
            self._sentences += _sentences(text)[:40]

    def copy(self, row: int, kind: str, aim: Aim) -> str | None:
        """A copy of document `row` with one edit; None if that edit is impossible."""
        text = self._texts[row]
        generator = random.Random(f"{self._seed} {row} {kind} {aim}")
        if kind in _SPELLING:
            edited = _SPELLING[kind](text)
        elif kind in WORD_KINDS:
            words, unspaced = words_of(text), is_unspaced(text)
            if words and not unspaced:
                words[-1] = f"{words[-1].rstrip()} "
            fresh = self._words[unspaced]
            edited = "".join(_WORDS[kind](words, aim.size(len(words)), generator, fresh))
        else:
            edited = self._surrounded(text, kind, generator)
        return None if edited.split() == text.split() or not edited.strip() else edited

    def lookalike(self, row: int) -> str | None:
        """Three fifths of a document and the end of the next; None for one of two words."""
        words, other = words_of(self._texts[row]), words_of(self._texts[row - 1])
        if len(words) < 3 or len(self._texts) < 2:
            return None
        begin = round(0.6 * len(words))
        end = (len(words) - begin) or 1
        between = "" if is_unspaced(words[0]) else " "
        return "".join([*words[:begin], between, *other[-end:]])

    def _surrounded(self, text: str, kind: str, generator: random.Random) -> str:
        words, sentences = words_of(text), _sentences(text)
        if kind == "boilerplate":
            some = max(1, len(words) // 20)
            lines = [" ".join(_HEADER[:some]), text, " ".join(_FOOTER[:some])]
            return "\n".join(lines)
        if kind == "truncated":
            return "".join(words[: len(words) - max(1, round(0.1 * len(words)))])
        if len(sentences) < 8:  # then a sentence is too large an edit
            return text
        at = generator.randrange(len(sentences))
        if kind == "sentence cut":
            return "".join(sentences[:at] + sentences[at + 1 :])
        return "".join([*sentences[:at], generator.choice(self._sentences), " ", *sentences[at:]])


def _sentences(text: str) -> list[str]:
    """The sentences and lines of a text; joined they are the text."""
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    parts = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [part for part in parts if part.strip()]


def _replaced(
    words: list[str], count: int, generator: random.Random, fresh: Sequence[str]
) -> list[str]:
    edited = list(words)
    for at in generator.sample(range(len(words)), count):
        old = words[at].rstrip()
        edited[at] = _another(old, generator, fresh) + words[at][len(old) :]
    return edited


def _inserted(
    words: list[str], count: int, generator: random.Random, fresh: Sequence[str]
) -> list[str]:
    edited, space = list(words), " " if any(word != word.rstrip() for word in words) else ""
    for _ in range(count):
        edited.insert(generator.randrange(len(edited) + 1), generator.choice(fresh) + space)
    return edited


def _removed(words: list[str], count: int, generator: random.Random, _: Sequence[str]) -> list[str]:
    removed = set(generator.sample(range(len(words)), min(count, len(words) - 1)))
    return [word for at, word in enumerate(words) if at not in removed]


def _moved(
    words: list[str], count: int, generator: random.Random, fresh: Sequence[str]
) -> list[str]:
    del fresh  # the words stay the same
    edited = list(words)
    for _ in range(count):
        word = edited.pop(generator.randrange(len(edited)))
        edited.insert(generator.randrange(len(edited) + 1), word)
    return edited


def _another(old: str, generator: random.Random, fresh: Sequence[str]) -> str:
    """A word that is not `old`, if there is one."""
    for _ in range(20):
        if (new := generator.choice(fresh)).casefold() != old.casefold():
            return new
    return f"{old}x"


def _without_accents(text: str) -> str:
    plain = "".join(
        each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each)
    )
    return unicodedata.normalize("NFC", plain)


def _other_digits(text: str) -> str:
    return "".join(str((int(each) + 1) % 10) if each in "0123456789" else each for each in text)


_WORDS: Final[dict[str, Callable[[list[str], int, random.Random, Sequence[str]], list[str]]]] = {
    "replaced": _replaced,
    "inserted": _inserted,
    "removed": _removed,
    "moved": _moved,
}
_SPELLING: Final[dict[str, Callable[[str], str]]] = {
    "case": str.upper,
    "accents": _without_accents,
    "punctuation": lambda text: re.sub(r"[^\w\s]", "", text),
    "digits": _other_digits,
}
