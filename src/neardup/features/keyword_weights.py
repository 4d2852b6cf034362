"""Keywords as jieba and cppjieba choose them, by TF-IDF and by TextRank."""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import DataError, FileError, RecipeError
from neardup.features.jieba_words import cut_precise, inverse_frequencies, jieba_package

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CppJieba", "cppjieba_keywords", "load_folder", "text_rank"]

SPAN: Final = 5
DAMPING: Final = 0.85
ROUNDS: Final = 10


def text_rank(features: Sequence[str]) -> dict[str, float]:
    """Rank the distinct features of one document; above 0, the heaviest 1.

    Two features are joined as often as they stand fewer than 5 places apart. The ranks are found by
    10 rounds, each over the features in code point order, and scaled as jieba does. A document of
    one feature gives it 1.

    Args:
        features: In the order of the text, repeats included.

    Returns:
        The rank of each, in order of first occurrence.

    Example:
        >>> ranks = text_rank("a b c a d".split())
        >>> max(ranks, key=ranks.get)
        'a'
    """
    joined: dict[tuple[str, str], int] = {}
    for at, feature in enumerate(features):
        for other in features[at + 1 : at + SPAN]:
            joined[feature, other] = joined.get((feature, other), 0) + 1
    if not joined:
        return dict.fromkeys(features, 1.0)
    ranks = _ranks(joined)
    least = min(ranks.values()) / 10.0
    most = max(*ranks.values(), sys.float_info.min)
    return {x: (ranks[x] - least) / (most - least) for x in dict.fromkeys(features)}


def _ranks(joined: dict[tuple[str, str], int]) -> dict[str, float]:
    edges: dict[str, list[tuple[str, int]]] = {}
    for (start, end), weight in joined.items():
        edges.setdefault(start, []).append((end, weight))
        edges.setdefault(end, []).append((start, weight))
    degrees = {
        feature: sum(weight for _, weight in neighbours) for feature, neighbours in edges.items()
    }
    ranks = dict.fromkeys(edges, 1.0 / len(edges))
    for _ in range(ROUNDS):
        for feature in sorted(edges):
            total = 0.0
            for other, weight in edges[feature]:
                total += weight / degrees[other] * ranks[other]
            ranks[feature] = (1.0 - DAMPING) + DAMPING * total
    return ranks


FILES: Final = ("jieba.dict.utf8", "hmm_model.utf8", "idf.utf8", "stop_words.utf8")
NAME: Final = "cppjieba:"
"""What the name of a folder in a recipe begins with; its digest follows."""

_LEAST: Final = 2
_SIGNS: Final = re.compile(r"[+#&._%\-]+")  # jieba keeps runs of these together, cppjieba does not
_MEAN_FREQUENCY: Final = 11.739204307083542
"""The mean inverse frequency of cppjieba's idf.utf8, as its published keyword weights have it."""


def load_folder(path: str | Path) -> tuple[str]:
    """Read a folder of a cppjieba program, such as its own `dict`: FILES.

    Returns:
        The name by which a recipe knows it, in this process and any other that has read it.

    Raises:
        FileError: If one cannot be read.
        DataError: If one is not what cppjieba reads.
    """
    parts = []
    for name in FILES:
        file = Path(path) / name
        try:
            parts.append(file.read_bytes())
        except OSError as error:
            raise FileError(f"cannot read {file}: {error.strerror}") from None
    hashed = hashlib.blake2b(digest_size=8)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    digest = hashed.hexdigest()
    if digest not in FOLDERS:
        try:
            FOLDERS[digest] = CppJieba(*(part.decode() for part in parts))
        except (ValueError, IndexError, ArithmeticError) as error:
            raise DataError(
                f"{path}: not as cppjieba reads {', '.join(FILES)}: {error}; take its dict folder"
            ) from None
    return (NAME + digest,)


def cppjieba_keywords(
    text: str, top: int, dictionary: tuple[str, ...] | None = None
) -> list[tuple[str, float]]:
    """The keywords that cppjieba's KeywordExtractor gives: term count times inverse frequency.

    With the name of a folder that `load_folder` gave they are the same. Without one dictionary,
    frequencies and stop words are those of jieba, not the files that a cppjieba program
    was given; words without a frequency have the mean of cppjieba's own file. As there, stop words
    are told by their case, and runs of signs such as ### are not words.

    Raises:
        UsageError, RecipeError: As `neardup.features.jieba_words.cut_precise`, or for a folder that
            was not read in this process.
    """
    if dictionary is not None:
        digest = dictionary[0].removeprefix(NAME)
        if digest not in FOLDERS:
            raise RecipeError(
                f"the recipe's dictionary is the folder of cppjieba with the digest {digest}: read"
                " it first, by neardup.preset('yanyiwu', dictionary=FOLDER) or --dictionary FOLDER"
            )
        return FOLDERS[digest].keywords(text, top)
    counts = Counter(word for word in cut_precise(text) if _is_keyword(word))
    frequencies = inverse_frequencies()
    weights = {
        word: count * frequencies.get(word, _MEAN_FREQUENCY) for word, count in counts.items()
    }
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0].encode()))
    return ordered[:top]


def _is_keyword(word: str) -> bool:
    return (
        len(word.strip()) >= _LEAST
        and not _SIGNS.fullmatch(word)
        and word not in jieba_package().analyse.TFIDF.STOP_WORDS
    )


class CppJieba:
    """cppjieba with the contents of the files of one folder.

    Args:
        words: Of jieba.dict.utf8: a word, its count and its tag on each line.
        model: Of hmm_model.utf8: starts, four lines of transitions, four of emissions.
        idf: Of idf.utf8: a word and its inverse frequency on each line.
        stops: Of stop_words.utf8: a word on each line.

    Raises:
        ValueError, IndexError, ArithmeticError: If they are something else.
    """

    def __init__(self, words: str, model: str, idf: str, stops: str) -> None:
        """Read them all."""
        counts = [(line.split(" ")[0], float(line.split(" ")[1])) for line in _lines(words)]
        total = math.fsum(count for _, count in counts)
        self._weights = {word: math.log(count / total) for word, count in counts}
        self._least = min(math.log(count / total) for _, count in counts)
        self._prefixes = {word[:end] for word in self._weights for end in range(1, len(word))}
        parts = [x.strip() for x in _lines(model) if x.strip() and not x.startswith("#")]
        self._start = _floats(parts[0])
        self._steps = [_floats(line) for line in parts[1:5]]
        self._emitted = [
            {pair.split(":")[0]: float(pair.split(":")[1]) for pair in line.split(",")}
            for line in parts[5:9]
        ]
        pairs = [line.split(" ") for line in _lines(idf)]
        self._idf = {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2}
        self._mean = sum(float(pair[1]) for pair in pairs if len(pair) == 2) / len(pairs)
        if not self._idf:
            raise ValueError("no word has an inverse frequency")
        self._stops = set(_lines(stops))

    def keywords(self, text: str, top: int) -> list[tuple[str, float]]:
        """The heaviest words of two characters or more with their weights, the heaviest first."""
        counts = Counter(self.cut(text))
        weights = [
            (word, counts[word] * self._idf.get(word, self._mean))
            for word in sorted(counts, key=str.encode)
            if len(word) > 1 and word not in self._stops
        ]
        return _partial_sort(weights, min(top, len(weights)))

    def cut(self, text: str) -> list[str]:
        """The words of a text."""
        text = text.encode("utf-8", "replace").decode()
        words: list[str] = []
        for piece in _PIECES.findall(text):
            single = ""
            for word in self._likeliest(piece):
                if len(word) == 1:
                    single += word
                    continue
                words += [*self._cut_rest(single), word]
                single = ""
            words += self._cut_rest(single)
        return words

    def _likeliest(self, text: str) -> list[str]:
        """The words of the dictionary whose product of frequencies is highest, else characters."""
        size = len(text)
        best, ends = [0.0] * (size + 1), [0] * size
        for begin in range(size - 1, -1, -1):
            first = text[begin]
            weight = self._weights.get(first)
            best[begin] = (self._least if weight is None else weight) + best[begin + 1]
            ends[begin] = begin + 1
            end = begin + 1
            while text[begin:end] in self._prefixes and end < size and end - begin < _MOST_LENGTH:
                end += 1
                weight = self._weights.get(text[begin:end])
                if weight is not None and weight + best[end] > best[begin]:
                    best[begin], ends[begin] = weight + best[end], end
        words, at = [], 0
        while at < size:
            words.append(text[at : ends[at]])
            at = ends[at]
        return words

    def _cut_rest(self, text: str) -> list[str]:
        """Characters that made no word: runs of letters, numbers, and what the model joins."""
        words: list[str] = []
        for other, ascii_word in _RUNS.findall(text):
            words += self._by_model(other) if other else [ascii_word]
        return words

    def _by_model(self, text: str) -> list[str]:
        scores = [self._start[y] + self._emitted[y].get(text[0], _NEVER) for y in range(_STATES)]
        splits: list[list[int]] = []
        for character in text[1:]:
            now, way = [], []
            for y in range(_STATES):
                emitted = self._emitted[y].get(character, _NEVER)
                best, before = _NEVER, _END
                for x in range(_STATES):
                    score = scores[x] + self._steps[x][y] + emitted
                    if score > best:
                        best, before = score, x
                now.append(best)
                way.append(before)
            scores = now
            splits.append(way)
        state = _END if scores[_END] >= scores[_ALONE] else _ALONE
        states = [state]
        for way in reversed(splits):
            states.append(way[states[-1]])
        words, begin = [], 0
        for at, state in enumerate(reversed(states)):
            if state in {_END, _ALONE}:
                words.append(text[begin : at + 1])
                begin = at + 1
        return words


FOLDERS: Final[dict[str, CppJieba]] = {}
_STATES: Final = 4
_END, _ALONE = 1, 3
"""The states are B, E, M, S: begin, end and middle of a word, and a word of one character."""
_NEVER: Final = -3.14e100
_MOST_LENGTH: Final = 512
_PIECES: Final = re.compile("[ \t\n\uff0c\u3002]|[^ \t\n\uff0c\u3002]+")
_RUNS: Final = re.compile(r"([^\x00-\x7f]+)|([a-zA-Z][a-zA-Z0-9]*|[0-9][0-9.]*|[\x00-\x7f])")


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _floats(line: str) -> list[float]:
    return [float(value) for value in line.split(" ")]


def _partial_sort(pairs: list[tuple[str, float]], top: int) -> list[tuple[str, float]]:
    """The heaviest `top`, as std::partial_sort of GNU's library leaves them.

    Which ones of equal weight remain, and in what order, is decided by its heap; other standard
    libraries may decide otherwise.
    """
    heap = pairs[:top]
    for parent in range(top // 2 - 1, -1, -1):
        _sink(heap, parent, top, heap[parent])
    for pair in pairs[top:] if top else ():
        if pair[1] > heap[0][1]:
            _sink(heap, 0, top, pair)
    for last in range(top - 1, 0, -1):
        pair, heap[last] = heap[last], heap[0]
        _sink(heap, 0, last, pair)
    return heap


def _sink(heap: list[Any], hole: int, size: int, pair: Any) -> None:
    """GNU's std::__adjust_heap: the lightest is on top of heap[:size]."""
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * child + 2
        child -= heap[child][1] > heap[child - 1][1]
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    while hole > top and heap[(hole - 1) // 2][1] > pair[1]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = pair
