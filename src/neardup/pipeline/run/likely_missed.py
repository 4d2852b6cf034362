"""The line of a summary about the copies that a question is likely to miss, and a remedy.

The rules come from measurements (docs/decisions/0021): nothing is planted or searched here. A
replaced word changes every feature that spans it, so the number of features of a text gives the
similarity of such a copy. The letters of a few texts show Turkish capitals and signs that writers
may leave out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.features.scripts import is_unspaced

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.run.rule import Rule

__all__ = ["TextSample", "expected_share", "likely_missed"]

LEAST_DOCUMENTS: Final = 100
"""The least number of documents for a statement about them."""
MOST_LOOKED_AT: Final = 2_000
SHARE: Final = 0.05
"""The share of the words of a copy that are replaced, at least one."""
LONG: Final = 30
"""The number of words above which SHARE of them is more than one word."""
MISSED: Final = 1 / 3
FOUND: Final = 0.75
"""Shares of copies: a larger missed share is worth a note, and a remedy finds at least FOUND."""
_TEXTS: Final = 128
_TEXTS_OF_A_BATCH: Final = 16
_BYTES: Final = 600
_TURKISH: Final = frozenset("\u011f\u011e\u0131\u0130")
_TURKISH_SHARE: Final = 0.2
_IGNORABLE: Final = {
    "tatweel": frozenset("\u0640"),
    "vowel-signs": frozenset(map(chr, (*range(0x064B, 0x0653), *range(0x05B0, 0x05BD)))),
    "zero-width": frozenset("\u200b\u2060\ufeff\u00ad"),
}
_NAMES: Final = {"tatweel": "tatweel", "vowel-signs": "vowel signs",
                 "zero-width": "zero-width characters"}  # fmt: skip
_IGNORABLE_SHARE: Final = 0.05


@dataclass(slots=True)
class TextSample:
    """The beginnings of some texts of a run, taken from many of its batches.

    Attributes:
        texts: The sampled beginnings, of at most _BYTES.
    """

    texts: list[str] = field(default_factory=list)

    def see(self, texts: pa.LargeStringArray) -> None:
        """Sample a batch; other texts are not copied."""
        count = min(_TEXTS_OF_A_BATCH, _TEXTS - len(self.texts), len(texts))
        _, offsets, data = texts.buffers()
        if count <= 0 or data is None:
            return
        ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        content = memoryview(data)
        for row in np.linspace(0, len(texts) - 1, count, dtype=np.int64):
            begin = int(ends[row])
            part = content[begin : min(int(ends[row + 1]), begin + _BYTES)]
            self.texts.append(bytes(part).decode(errors="ignore"))

    @property
    def is_unspaced(self) -> bool:
        """Whether most of the texts are written without spaces."""
        return sum(map(is_unspaced, self.texts)) > len(self.texts) / 2

    @property
    def word_characters(self) -> float:
        """The mean number of characters of a word with its space."""
        words = sum(len(text.split()) for text in self.texts)
        return max(2.0, sum(map(len, self.texts)) / max(1, words))

    def share_with(self, letters: frozenset[str]) -> float:
        """The share of texts with one of some letters."""
        return sum(not letters.isdisjoint(text) for text in self.texts) / max(1, len(self.texts))


def likely_missed(rule: Rule, sizes: npt.NDArray[np.int64], sample: TextSample) -> str | None:
    """A note on copies that the rule is likely to miss among such documents, with a remedy.

    Args:
        rule: Of the run.
        sizes: int64 (n,): features of each document.
        sample: Texts of some of them.

    Returns:
        A line, or None if no copies are likely to be missed or there are too few documents.
    """
    sizes = sizes[sizes > 0]
    if not rule.by_features or rule.distance is not None or sizes.size < LEAST_DOCUMENTS:
        return None
    sizes = sizes[:: sizes.size // MOST_LOOKED_AT + 1]
    return _missed_edits(rule, sizes, sample) or _missed_letters(rule.recipe, sample)


def expected_share(rule: Rule, sizes: npt.NDArray[np.int64], sample: TextSample) -> float:
    """The share of documents whose copy with SHARE of its words replaced is expected to match."""
    features = _Features(rule.recipe.tokens, rule.recipe.ngram, sample)
    left = features.similarity_left(features.words_of(sizes[sizes > 0]), rule.match.measure)
    return float(np.mean(left >= rule.match.similarity))


def _missed_edits(rule: Rule, sizes: npt.NDArray[np.int64], sample: TextSample) -> str | None:
    recipe, match = rule.recipe, rule.match
    if recipe.tokens not in {"words", "chars"}:
        return None
    if expected_share(rule, sizes, sample) >= 1 - MISSED:
        return None
    own_features = _Features(recipe.tokens, recipe.ngram, sample)
    words = own_features.words_of(sizes)
    left = own_features.similarity_left(words, match.measure)
    mends = [("", own_features, 0.7), ("", _Features("words", 3, sample), 0.7)]
    if sample.is_unspaced:
        mends.append(("--tokens chars ", _Features("chars", 3, sample), 0.5))
    else:
        mends.append(("--ngram 1 ", _Features("words", 1, sample), 0.7))
    for option, features, similarity in mends:
        if np.mean(features.similarity_left(words, "jaccard") >= similarity) >= FOUND:
            advice = f"{option}--similarity {similarity:g} finds most of these"
            break
    else:
        advice = "no threshold is safe for texts so short"
    unit = "two characters" if sample.is_unspaced else "one word"
    changed = f"{unit} changed" if np.median(words) < LONG else "one word in 20 changed"
    aim = "1" if np.median(words) < LONG else "5%"
    return (
        f"many copies with {changed} are likely to be missed: their similarity is about"
        f" {np.median(left):.2f}, and {match.similarity:g} was required; {advice}"
        f" (`neardup calibrate --edits {aim}` shows what comes with it)"
    )


def _missed_letters(recipe: Recipe, sample: TextSample) -> str | None:
    if (
        recipe.language is None
        and recipe.casefold
        and sample.share_with(_TURKISH) >= _TURKISH_SHARE
    ):
        return (
            "the texts look Turkish or Azeri, whose I and \u0130 are capitals of two letters:"
            " copies in capitals are found with --language tr"
        )
    written = [
        name
        for name, letters in _IGNORABLE.items()
        if name not in (recipe.ignore or ()) and sample.share_with(letters) >= _IGNORABLE_SHARE
    ]
    if not written:
        return None
    signs = " and ".join(_NAMES[name] for name in written)
    return (
        f"some texts have {signs}, which not every copy has: such copies are found with --ignore"
        f" {','.join(written)}"
    )


@dataclass(frozen=True, slots=True)
class _Features:
    """Features of some tokens, as many tokens in each, of the texts of a sample."""

    tokens: str
    ngram: int
    sample: TextSample

    @property
    def _characters(self) -> float:
        """The number of tokens of a word, or of the unit that counts as one."""
        if self.sample.is_unspaced:
            return 2.0
        return 1.0 if self.tokens == "words" else self.sample.word_characters

    def words_of(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Words of documents, from their features; two characters are a word if unspaced."""
        return (sizes + self.ngram - 1) / self._characters

    def similarity_left(
        self, words: npt.NDArray[np.float64], measure: str
    ) -> npt.NDArray[np.float64]:
        """The expected similarity of a text and its copy with SHARE of its words replaced.

        As many features as it has tokens span a word, and a new feature replaces each of them.
        """
        spanning = 1 + (self.ngram - 1) / self._characters
        replaced = np.maximum(1.0, np.round(words * SHARE))
        stay = np.maximum(0.0, 1 - spanning / words) ** replaced
        return stay / (2 - stay) if measure == "jaccard" else stay
