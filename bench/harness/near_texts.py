"""Texts of 2 kB whose most similar stored text is known, planted at exact similarities.

A text has 317 words, so 315 runs of three words: 64 of these, a fifth, lie within 8 phrases of 10
words out of 2,000 phrases that all texts share, the others are its own. A changed text is either a
stretch of a stored one, k of its runs, similar by k / 315; or has runs of words replaced so that d
runs of three are lost and d are new, similar by (315 - d) / (315 + d). 252 runs and 35 replaced
ones are similar by exactly 8/10.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RUN = 3
FEATURES = 315
WORDS = FEATURES + RUN - 1
VOCABULARY, LETTERS = 50_000, 5
PHRASES, PHRASE_WORDS, PHRASES_A_TEXT = 2_000, 10, 8
PART = 10_000
THRESHOLD = 0.8
ABOVE = {"kept": range(252, 284), "lost": range(17, 36)}
"""From exactly 0.8 to 0.901: runs that are kept, or replaced."""
AT = {"kept": range(252, 253), "lost": range(35, 36)}
"""Exactly 0.8."""
BELOW = {"kept": range(221, 252), "lost": range(36, 56)}
"""From 0.7 to the last ones below 0.8."""


@dataclass(frozen=True)
class Planted:
    """Queries, and the stored row that each is near to."""

    texts: list[str]
    rows: list[int]


def make(n: int, seed: int) -> list[str]:
    """Texts; the first of many are those of fewer."""
    import numpy as np

    draw = np.random.default_rng(4)
    words = draw.integers(ord("a"), ord("z") + 1, (VOCABULARY, LETTERS + 1), np.uint8)
    words[:, -1] = ord(" ")
    phrases = draw.integers(0, VOCABULARY, (PHRASES, PHRASE_WORDS), np.uint16)
    places = np.arange(PHRASE_WORDS)
    texts: list[str] = []
    for first in range(0, n, PART):
        draw = np.random.default_rng((seed, first))
        chosen = draw.integers(0, VOCABULARY, (PART, WORDS), np.uint16)
        slots = draw.random((PART, WORDS // PHRASE_WORDS)).argsort(1)[:, :PHRASES_A_TEXT]
        which = draw.integers(0, PHRASES // PHRASES_A_TEXT, slots.shape) * PHRASES_A_TEXT
        which += np.arange(PHRASES_A_TEXT)  # so that no text has one phrase twice
        rows = np.arange(PART)[:, None, None]
        chosen[rows, slots[:, :, None] * PHRASE_WORDS + places] = phrases[which]
        texts += [
            str(row[:-1], "ascii")
            for row in words[chosen[: n - first]].reshape(-1, words.shape[1] * WORDS)
        ]
    return texts


def plant(texts: list[str], count: int, seed: int, how: dict[str, range] | None = None) -> Planted:
    """Changed texts of rows by chance, every other one a stretch, every other one replaced."""
    import random

    chance, how = random.Random(seed), how or ABOVE
    total, rows = [], [chance.randrange(len(texts)) for _ in range(count)]
    for at, row in enumerate(rows):
        words = texts[row].split()
        if at % 2:
            replace(words, chance.choice(how["lost"]), chance)
        else:
            kept = chance.choice(how["kept"])
            begin = chance.randrange(FEATURES - kept + 1)
            words = words[begin : begin + kept + RUN - 1]
        total.append(" ".join(words))
    return Planted(total, rows)


def replace(words: list[str], lost: int, chance: Any) -> None:
    """Replace runs of words so that just so many runs of three are lost, and as many are new."""
    lengths = []
    while lost:
        # One word is in three runs; what is left must be none, or enough for another word.
        length = chance.choice([x for x in range(RUN, 11) if lost - x == 0 or lost - x >= RUN])
        lengths.append(length)
        lost -= length
    gaps = sorted(chance.randrange(FEATURES - sum(lengths) + 1) for _ in lengths)
    used = 0
    for gap, length in zip(gaps, lengths, strict=True):
        first = gap + used + RUN - 1
        for at in range(first, gap + used + length):
            words[at] = f"new{chance.randrange(10**9)}"
        used += length


def shingles(text: str) -> list[str]:
    """Every three words."""
    words = re.findall(r"\w+", text.lower())
    return [f"{a} {b} {c}" for a, b, c in zip(words, words[1:], words[2:], strict=False)]


def similarity(text: str, other: str) -> tuple[int, int]:
    """How many runs of three words two texts share, and how many there are in either."""
    own, theirs = set(shingles(text)), set(shingles(other))
    shared = len(own & theirs)
    return shared, len(own) + len(theirs) - shared


def similar(text: str, other: str) -> bool:
    """Whether two texts are similar by 0.8 or more."""
    shared, either = similarity(text, other)
    return 10 * shared >= 8 * either


def quality(
    texts: list[str], ask: Callable[[list[str]], Iterable[Iterable[int]]]
) -> dict[str, Any]:
    """What an index finds of planted texts, those exactly at 0.8, and those just below.

    Returns:
        recall (of 2,000 planted at 0.8 to 0.9), recall_at (of 1,000 at exactly 0.8) and precision
        (of what is found for the former and for 2,000 planted at 0.7 to 0.8).
    """
    above, at, below = (
        plant(texts, count, seed, how)
        for count, seed, how in ((2_000, 21, ABOVE), (1_000, 22, AT), (2_000, 23, BELOW))
    )
    right = result = 0
    recalls = []
    for planted in (above, at, below):
        answers = [set(each) for each in ask(planted.texts)]
        hits = [row in each for row, each in zip(planted.rows, answers, strict=True)]
        recalls.append(sum(hits) / len(hits))
        if planted is not at:
            result += sum(map(len, answers))
            pairs = zip(planted.texts, answers, strict=True)
            right += sum(similar(text, texts[row]) for text, each in pairs for row in each)
    return {
        "recall": recalls[0],
        "recall_at": recalls[1],
        "found_below": recalls[2],
        "precision": right / max(1, result),
    }
