"""The words of two texts side by side: which are in both, which in the first or the second only.

Common ends are taken off, words that both texts have exactly once anchor the rest (patience diff,
Bram Cohen), or runs of three if there is no such word, and what lies between is compared by Myers,
An O(ND) difference algorithm and its variations, Algorithmica 1986. Where two stretches differ too
much for that, they are given whole: the first as removed, the second as added.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

__all__ = ["Run", "WordDiff", "word_diff"]

MOST_WORDS: Final = 20_000
MOST_EDITS: Final = 400
"""Words of a stretch between anchors that may differ before it is given whole."""

# Ideographs, kana and other scripts written without spaces: each character is a word.
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff"
_PIECE: Final = re.compile(
    rf"\s*(?:[{_UNSPACED}\U00020000-\U0003ffff]|(?:(?![{_UNSPACED}])\w)+|[^\w\s])"
)

Kind = Literal["equal", "removed", "added"]


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring words of one kind.

    Attributes:
        kind: "equal": in both; "removed": in the first text only; "added": in the second only.
        text: They, with the white space before each.
    """

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class WordDiff:
    """Two texts, word by word.

    Attributes:
        runs: In order; no two neighbours are of one kind. All but the added ones make up the first
            text; all but the removed ones the second, but for white space.
        cut: Words of each text that were left out beyond the limit.
    """

    runs: tuple[Run, ...]
    cut: tuple[int, int]

    def brief(self, context: int = 12, most: int = 60) -> tuple[Run, ...]:
        """The runs, with long equal ones shortened to the words next to a difference.

        Of equal texts it is the first words.

        Args:
            context: Words of an equal run to keep next to each difference.
            most: Words of another run to keep, half of them at its end.
        """
        last = len(self.runs) - 1
        shown = []
        for at, run in enumerate(self.runs):
            if run.kind == "equal":
                head, tail = context * (at > 0 or not last), context * (at < last)
            else:
                head = tail = most // 2
            shown.append(Run(run.kind, _shortened(run.text, head, tail)))
        return tuple(shown)


def word_diff(first: str, second: str, most: int = MOST_WORDS) -> WordDiff:
    """Compare two texts word by word; white space does not count, case does.

    Args:
        first: The one that words are removed from.
        second: The one that they are added to.
        most: Words of each that are compared; what follows is counted in `cut`.

    Raises:
        UsageError: If something is not a text.

    Example:
        >>> for run in word_diff("opened on Monday again", "opened on Sunday again").runs:
        ...     print(run.kind, run.text)
        equal opened on
        removed  Monday
        added  Sunday
        equal  again
    """
    for text in (first, second):
        if not isinstance(text, str):
            raise UsageError(f"text is {type(text).__name__}, not str: {text!r:.60}")
    one, other = _pieces(first), _pieces(second)
    cut = max(0, len(one) - most), max(0, len(other) - most)
    one, other = one[:most], other[:most]
    same = _matches([x.strip() for x in one], [x.strip() for x in other])
    return WordDiff(tuple(_runs(one, other, same)), cut)


def _pieces(text: str) -> list[str]:
    """Words with the white space before each; that at the end belongs to the last."""
    pieces = _PIECE.findall(text)
    rest = text[sum(map(len, pieces)) :]
    if rest and pieces:
        pieces[-1] += rest
    return pieces or ([text] if text else [])


def _runs(one: Sequence[str], other: Sequence[str], same: Iterable[tuple[int, int]]) -> list[Run]:
    runs: list[Run] = []

    def add(kind: Kind, words: Sequence[str]) -> None:
        if not words:
            return
        text = "".join(words)
        if runs and runs[-1].kind == kind:
            text = runs.pop().text + text
        runs.append(Run(kind, text))

    i = j = 0
    for at, there in [*same, (len(one), len(other))]:
        add("removed", one[i:at])
        add("added", other[j:there])
        add("equal", one[at : at + 1])
        i, j = at + 1, there + 1
    return runs


def _matches(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Places of equal words, ascending on both sides."""
    matches: list[tuple[int, int]] = []
    waiting = [(0, len(one), 0, len(other))]
    while waiting:
        a, b, c, d = waiting.pop()
        while a < b and c < d and one[a] == other[c]:
            matches.append((a, c))
            a, c = a + 1, c + 1
        while a < b and c < d and one[b - 1] == other[d - 1]:
            b, d = b - 1, d - 1
            matches.append((b, d))
        if a == b or c == d:
            continue
        anchors = _anchors(one[a:b], other[c:d]) or _anchors(
            _triples(one[a:b]), _triples(other[c:d])
        )
        if not anchors:
            matches += [(a + i, c + j) for i, j in _myers(one[a:b], other[c:d])]
            continue
        before = a, c
        for i, j in anchors:
            matches.append((a + i, c + j))
            waiting.append((before[0], a + i, before[1], c + j))
            before = a + i + 1, c + j + 1
        waiting.append((before[0], b, before[1], d))
    return sorted(matches)


def _triples(words: Sequence[str]) -> list[tuple[str, ...]]:
    return list(zip(words, words[1:], words[2:], strict=False))


def _anchors(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest ascending chain of words, or runs of them, that occur once in each."""
    counts = Counter(one), Counter(other)
    places = {word: at for at, word in enumerate(other) if counts[1][word] == 1}
    pairs = [
        (at, places[word]) for at, word in enumerate(one) if counts[0][word] == 1 and word in places
    ]
    ends: list[int] = []
    chain: list[tuple[int, int]] = []
    before: list[int] = []
    holders: list[int] = []
    for number, (_, there) in enumerate(pairs):
        length = bisect.bisect_left(ends, there)
        before.append(holders[length - 1] if length else -1)
        if length == len(ends):
            ends.append(there)
            holders.append(number)
        else:
            ends[length], holders[length] = there, number
    at = holders[-1] if holders else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _myers(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Places of equal words of a shortest edit script; none where it is too long."""
    size, width = len(one), len(other)
    reach = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(size + width, MOST_EDITS) + 1):
        trail.append(dict(reach))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
            x = reach[k + 1] if down else reach[k - 1] + 1
            y = x - k
            while x < size and y < width and one[x] == other[y]:
                x, y = x + 1, y + 1
            reach[k] = x
            if x >= size and y >= width:
                yield from _walked(trail, size, width)
                return


def _walked(trail: Sequence[dict[int, int]], x: int, y: int) -> Iterator[tuple[int, int]]:
    """The way back through the furthest reaches of each number of edits."""
    for edits in range(len(trail) - 1, -1, -1):
        reach, k = trail[edits], x - y
        down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
        before = k + 1 if down else k - 1
        start = reach[before]
        end = (start, start - before) if edits else (0, 0)
        while x > end[0] and y > end[1]:
            x, y = x - 1, y - 1
            yield x, y
        x, y = end


def _shortened(text: str, head: int, tail: int) -> str:
    """The first and the last words of a text."""
    pieces = _pieces(text)
    if len(pieces) <= head + tail + 1:
        return text
    gap = " … " if head else "… "
    return "".join(pieces[:head]) + gap + "".join(pieces[len(pieces) - tail :]).lstrip()
