"""The oracle: the method in plain Python, one short function a step, importing nothing of neardup.

normalise -> tokens -> features -> weights -> feature_hash, widened -> fold = fingerprint;
then distance -> pairs -> greedy or components.
"""

from __future__ import annotations

import functools
import json
import math
import re
import string
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import xxhash

if sys.version_info >= (3, 14):
    import unicodedata
else:
    import unicodedata2 as unicodedata  # type: ignore[import-not-found]

UNICODE_VERSION = "16.0.0"
if unicodedata.unidata_version != UNICODE_VERSION:
    raise ImportError(f"Unicode {unicodedata.unidata_version}: the oracle needs {UNICODE_VERSION}")

_DATA = json.loads((Path(__file__).parent / "features" / "unicode-16.0.0.json").read_text("ascii"))


def _members(name: str) -> frozenset[int]:
    return frozenset(c for low, high in _DATA[name] for c in range(low, high + 1))


FOLDING: dict[str, str] = _DATA["folding"]
WHITE_SPACE = _members("white_space")
DEFAULT_IGNORABLE = _members("default_ignorable")
SCRIPTS_WITHOUT_SPACES = _members("unspaced")
SUPPLEMENTARY_IDEOGRAPHS = range(0x20000, 0x3FFFE)
ZERO_WIDTH_SPACE = 0x200B

UNIT = 1 << 16
MASK64 = (1 << 64) - 1


@dataclass(frozen=True)
class Recipe:
    """What the functions below read of a recipe; any object with these attributes will do."""

    normalize: str = "NFKC"
    casefold: bool = True
    tokens: str = "words"
    ngram: int = 3
    weight: str = "set"
    hash: str = "xxh3"
    bits: int = 64
    seed: int = 0
    tie: str = "zero"
    top: int | None = None
    stopwords: tuple[str, ...] | None = None
    language: str | None = None


def without_surrogates(text: str) -> str:
    """Every surrogate becomes U+FFFD: a surrogate in a Python string is never half of a pair."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def turkish(text: str) -> str:
    """The two capitals of Turkish and Azeri as small letters; all others are as everywhere."""
    return text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı")  # noqa: RUF001


def normalise(text: str, recipe: Recipe) -> str:
    """Replace surrogates, take the normal form, then fold the case of each code point."""
    text = without_surrogates(text)
    if recipe.language in {"tr", "az"}:
        text = turkish(text)
    if recipe.normalize != "none":
        text = unicodedata.normalize(recipe.normalize, text)
    if recipe.casefold:
        text = "".join(FOLDING.get(character, character) for character in text)
    return text


@functools.cache
def character_class(character: str) -> str:
    """One letter: Word, Extend, Unspaced, Ignored, Space or Other; the first that applies."""
    c, category = ord(character), unicodedata.category(character)
    letter = category.startswith("L")
    unspaced = c in SCRIPTS_WITHOUT_SPACES and (letter or category == "Nl")
    if c in DEFAULT_IGNORABLE and c != ZERO_WIDTH_SPACE:
        return "I"
    if c in WHITE_SPACE:
        return "S"
    if unspaced or c in SUPPLEMENTARY_IDEOGRAPHS:
        return "U"
    if category.startswith("M"):
        return "E"
    return "W" if letter or category.startswith("N") or category == "Pc" else "O"


def tokens(text: str, recipe: Recipe) -> list[str]:
    """The tokens of a text as it was read (it is normalised here), stop words removed."""
    stops = stop_tokens(recipe)
    return [token for token in all_tokens(text, recipe) if token not in stops]


def stop_tokens(recipe: Recipe) -> set[str]:
    """Every part of a stop word; but one of unspaced characters must be a token whole."""
    stops: set[str] = set()
    for word in recipe.stopwords or ():
        parts = all_tokens(word, recipe)
        if len(parts) == 1 or all(character_class(part[0]) != "U" for part in parts):
            stops.update(parts)
    return stops


def all_tokens(text: str, recipe: Recipe) -> list[str]:
    """The tokens of a text, stop words among them."""
    kept = "".join(x for x in normalise(text, recipe) if character_class(x) != "I")
    classes = "".join(map(character_class, kept))
    if recipe.tokens == "words":
        return [kept[m.start() : m.end()] for m in re.finditer("W[WE]*|UE*", classes)]
    pieces = [kept[m.start() : m.end()] for m in re.finditer("[^S]+", classes)]
    return list(" ".join(pieces))


def features(tokens: list[str], recipe: Recipe) -> list[str]:
    """Every run of n tokens, joined; of a text with fewer tokens, one feature of all of them."""
    joiner = " " if recipe.tokens == "words" else ""
    if not tokens:
        return []
    runs = max(1, len(tokens) - recipe.ngram + 1)
    return [joiner.join(tokens[start : start + recipe.ngram]) for start in range(runs)]


def weights(
    features: list[str], recipe: Recipe, frequencies: Frequencies | None = None
) -> list[tuple[str, int]]:
    """Each distinct feature once, with its weight in units of 2**-16; the `top` heaviest."""
    counts = Counter(features)
    if recipe.weight == "textrank":
        weighted = {x: max(1, units(rank)) for x, rank in text_rank(features).items()}
    elif frequencies is not None:
        weighted = {x: count * units(idf(x, frequencies)) for x, count in counts.items()}
    else:
        weighted = {x: weight_of(count, recipe.weight) for x, count in counts.items()}
    importance = counts if recipe.weight in {"set", "log"} else weighted
    first_to_last = sorted(weighted, key=lambda x: -importance[x])
    kept = set(first_to_last[: recipe.top])
    return [(x, weight) for x, weight in weighted.items() if x in kept]


Frequencies = tuple[int, Counter[str]]
"""How many documents have features, and in how many of them each feature is."""


def document_frequencies(documents: list[list[str]]) -> Frequencies:
    """Count in how many documents, given as their features, each feature is."""
    counts = Counter(feature for features in documents for feature in set(features))
    return sum(1 for features in documents if features), counts


def idf(feature: str, frequencies: Frequencies) -> float:
    """The smoothed inverse document frequency; a feature is at least in the text asked about."""
    documents, counts = frequencies
    return math.log((1 + documents) / (1 + max(1, counts[feature]))) + 1


def units(weight: float) -> int:
    """A weight in units of 2**-16."""
    return math.floor(weight * UNIT + 0.5)


def text_rank(features: list[str]) -> dict[str, float]:
    """TextRank: 10 rounds over the graph of features fewer than 5 places apart."""
    edges = Counter(
        (features[i], features[j])
        for i in range(len(features))
        for j in range(i + 1, min(i + 5, len(features)))
    )
    if not edges:
        return dict.fromkeys(features, 1.0)
    links: dict[str, list[tuple[str, int]]] = {x: [] for x in features}
    for (a, b), weight in edges.items():
        links[a].append((b, weight))
        links[b].append((a, weight))
    degree = {x: sum(weight for _, weight in neighbours) for x, neighbours in links.items()}
    rank = dict.fromkeys(links, 1 / len(links))
    for _ in range(10):
        for x in sorted(links):
            rank[x] = 0.15 + 0.85 * sum(weight / degree[y] * rank[y] for y, weight in links[x])
    least = min(rank.values()) / 10
    return {x: (value - least) / (max(rank.values()) - least) for x, value in rank.items()}


def weight_of(count: int, weight: str) -> int:
    """The weight of a feature that occurs `count` times."""
    if weight == "set":
        return UNIT
    return count * UNIT if weight == "count" else round((1 + math.log(count)) * UNIT)


def feature_hash(feature: str, recipe: Recipe) -> int:
    """64 bits of a feature."""
    return xxhash.xxh3_64_intdigest(feature.encode(), seed=recipe.seed)


def widened(hash64: int, bits: int) -> int:
    """Extend 64 bits to any width: word 0 is the hash, later words are a SplitMix64 stream."""
    wide = hash64
    for word in range(1, -(-bits // 64)):
        wide |= splitmix64_mix((hash64 + word * 0x9E3779B97F4A7C15) & MASK64) << (64 * word)
    return wide & ((1 << bits) - 1)


def splitmix64_mix(z: int) -> int:
    """The output function of SplitMix64."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK64
    return z ^ (z >> 31)


def fold(weighted: list[tuple[int, int]], bits: int, tie: str) -> int:
    """Bit j is 1 where the weights of hashes with bit j outweigh those of hashes without it."""
    fingerprint = 0
    for bit in range(bits):
        total = sum(weight if value >> bit & 1 else -weight for value, weight in weighted)
        if total > 0 or (total == 0 and tie == "one"):
            fingerprint |= 1 << bit
    return fingerprint


def fingerprint(text: str, recipe: Recipe, frequencies: Frequencies | None = None) -> int | None:
    """The fingerprint of a text; None where it has no tokens."""
    pairs = features(tokens(text, recipe), recipe)
    weighted = [
        (widened(feature_hash(feature, recipe), recipe.bits), weight)
        for feature, weight in weights(pairs, recipe, frequencies)
    ]
    return fold(weighted, recipe.bits, recipe.tie) if weighted else None


def distance(a: int, b: int) -> int:
    """How many bits differ."""
    return (a ^ b).bit_count()


def matches(a: int | None, b: int | None, k: int) -> bool:
    """Whether two fingerprints are within k bits; an empty document matches nothing."""
    return a is not None and b is not None and distance(a, b) <= k


def pairs(fingerprints: list[int | None], k: int) -> list[tuple[int, int, int]]:
    """(left, right, distance) of every pair within k bits, left < right, sorted."""
    numbered = [(i, value) for i, value in enumerate(fingerprints) if value is not None]
    return [
        (left, right, distance(a, b))
        for (left, a), (right, b) in combinations(numbered, 2)
        if distance(a, b) <= k
    ]


def greedy(fingerprints: list[int | None], k: int, order: list[int]) -> list[int]:
    """For each document the kept one that it matches, itself where it is kept.

    Documents are visited in `order`; each is compared with those kept so far, earliest first.
    """
    kept: list[int] = []
    kept_of = [-1] * len(fingerprints)
    for document in order:
        matching = (x for x in kept if matches(fingerprints[x], fingerprints[document], k))
        kept_of[document] = next(matching, document)
        if kept_of[document] == document:
            kept.append(document)
    return kept_of


def components(fingerprints: list[int | None], k: int) -> list[int]:
    """For each document the smallest index of its group; groups are chains of matches."""
    labels = list(range(len(fingerprints)))
    for left, right, _ in pairs(fingerprints, k):
        low, high = sorted((labels[left], labels[right]))
        labels = [low if label == high else label for label in labels]
    return labels


class Index:
    """Stored fingerprints by id, in order of insertion: a dictionary, and a loop over it."""

    def __init__(self) -> None:
        self.stored: dict[int | str, tuple[int, float]] = {}

    def add(self, identity: int | str, fingerprint: int | None, now: float = 0.0) -> None:
        """Store a document as the newest; one of the same id is replaced, an empty one left out."""
        if fingerprint is not None:
            self.stored.pop(identity, None)
            self.stored[identity] = (fingerprint, now)

    def expire(self, before: float) -> int:
        """Remove what was added earlier; how many that were."""
        old = [identity for identity, (_, at) in self.stored.items() if at < before]
        for identity in old:
            del self.stored[identity]
        return len(old)

    def query(self, fingerprint: int, k: int) -> list[tuple[int | str, int]]:
        """(id, distance) of every document within k bits, the nearest and then oldest first."""
        hits = [(identity, distance(fingerprint, f)) for identity, (f, _) in self.stored.items()]
        return sorted((hit for hit in hits if hit[1] <= k), key=lambda hit: hit[1])


def similarity(a: set[int], b: set[int], measure: str) -> float:
    """How similar two sets are; 0 where nothing is shared."""
    common = len(a & b)
    if not common:
        return 0.0
    if measure == "jaccard":
        return common / len(a | b)
    if measure == "cosine":
        return common / math.sqrt(len(a) * len(b))
    if measure == "dice":
        return 2 * common / (len(a) + len(b))
    return common / min(len(a), len(b))


class SimilarIndex:
    """Stored sets by id, in order of insertion: a dictionary, and a loop over it."""

    def __init__(self, measure: str) -> None:
        self.measure = measure
        self.stored: dict[int | str, tuple[set[int], float]] = {}

    def add(self, identity: int | str, features: set[int], now: float = 0.0) -> None:
        """Store a document as the newest; one of the same id is replaced, an empty one left out."""
        if features:
            self.stored.pop(identity, None)
            self.stored[identity] = (features, now)

    def expire(self, before: float) -> int:
        """Remove what was added earlier; how many that were."""
        old = [identity for identity, (_, at) in self.stored.items() if at < before]
        for identity in old:
            del self.stored[identity]
        return len(old)

    def query(self, features: set[int], least: float) -> list[tuple[int | str, float]]:
        """(id, similarity) of every document at least so similar, most similar and oldest first."""
        hits = [
            (identity, similarity(features, theirs, self.measure))
            for identity, (theirs, _) in self.stored.items()
        ]
        return sorted((x for x in hits if x[1] >= least and x[1] > 0), key=lambda x: -x[1])


def offer(
    index: Any, identity: int | str, content: Any, limit: Any, *,
    stored: str = "replace", now: float = 0.0,
) -> tuple[str, Any]:  # fmt: skip
    """What becomes of a document offered to an Index or SimilarIndex, and the match if it was seen.

    `content` is a fingerprint or a set of features, None or the empty set for no tokens; `limit`
    the distance or the similarity.
    """
    if content is None or content == set():
        return "empty", None
    version = index.stored.get(identity)
    if version is not None and version[0] == content:
        return "stored", None
    if version is not None and stored == "error":
        return "error", None
    others = [hit for hit in index.query(content, limit) if hit[0] != identity]
    if others:
        return "seen", others[0]
    if version is not None and stored == "keep":
        return "stored", None
    index.add(identity, content, now)
    return "new" if version is None else "replaced", None


def shared_share(question: str, document: str) -> float:
    """The share of a question's features that a document has; of two words, whether it has both."""
    one, other = tokens(question, Recipe()), tokens(document, Recipe())
    width = min(3, len(one))
    own = {tuple(one[at : at + width]) for at in range(len(one) - width + 1)}
    there = {tuple(other[at : at + width]) for at in range(len(other) - width + 1)}
    return len(own & there) / len(own) if len(one) > 1 else 0.0


def longest_run(question: str, document: str) -> int:
    """How many words in a row both have, at most."""
    one, other = tokens(question, Recipe()), tokens(document, Recipe())
    return max(
        (
            size
            for size in range(1, len(one) + 1)
            for at in range(len(one) - size + 1)
            if any(one[at : at + size] == other[x : x + size] for x in range(len(other)))
        ),
        default=0,
    )


def holds(question: str, document: str, share: float | None, run: int | None) -> bool:
    """Whether a document holds a question, by the share of its features or by a run of words."""
    words = len(tokens(question, Recipe()))
    longest = longest_run(question, document)
    if words < 2:
        return False
    if run is not None and longest >= min(run, words):
        return True
    if share is None:
        return False
    return shared_share(question, document) >= share if words >= 3 else longest == words


def rule_of(question: str, document: str, share: float | None, run: int | None) -> str:
    """Which of the two rules finds a question that a document holds."""
    if not holds(question, document, share, None):
        return "run"
    return "both" if holds(question, document, None, run) else "share"


def script_words(text: str) -> list[str]:
    """Words as the script of lm-eval cuts them."""
    table = str.maketrans(string.ascii_uppercase, string.ascii_lowercase, string.punctuation)
    return text.translate(table).split()


def covered_words(question: list[str], documents: list[list[str]], run: int) -> int:
    """How many words of a question lie in a run of `run` words that one of the documents has."""
    there = {tuple(each[at : at + run]) for each in documents for at in range(len(each) - run + 1)}
    covered = set()
    for at in range(len(question) - run + 1):
        if tuple(question[at : at + run]) in there:
            covered |= set(range(at, at + run))
    return len(covered)


def published(rule: str, documents: list[str], questions: list[str]) -> list[tuple[int, int]]:
    """Documents and questions that a published rule finds."""
    recipe = Recipe()
    cut = script_words if rule in {"gpt-3", "lm-eval"} else lambda text: tokens(text, recipe)
    docs, quiz = [cut(text) for text in documents], [cut(text) for text in questions]
    leaks = []
    for i, document in enumerate(docs):
        for j, question in enumerate(quiz):
            if rule in {"gpt-3", "lm-eval"}:
                width = 13 if rule == "lm-eval" else min(13, len(question))
                is_found = covered_words(question, [document], width) > 0 if width > 1 else False
            else:
                own = covered_words(question, [document], 8)
                everywhere = covered_words(question, docs, 8)
                is_found = (
                    own > 0 and 2 * everywhere >= len(question)
                    if rule == "llama"
                    else 2 * own > len(question)
                )
            if is_found:
                leaks.append((i, j))
    return leaks


def cut(text: str, passages: list[tuple[int, int]], around: int) -> tuple[str, int]:
    """A text without the passages, and how many cuts that takes."""
    gone = {at for begin, end in passages for at in range(max(0, begin - around), end + around)}
    left = "".join(char for at, char in enumerate(text) if at not in gone)
    return left, sum(at - 1 not in gone for at in gone)


def segments(covered: list[bool]) -> list[tuple[int, int]]:
    """All maximal scoring segments, by their definition: the best one, then left and right of it.

    The shortest of the best, the first of these.
    """
    best = max(
        (
            (sum(1 if x else -1 for x in covered[a:b]), a - b, -a)
            for a in range(len(covered))
            for b in range(a + 1, len(covered) + 1)
        ),
        default=(0, 0, 0),
    )
    if best[0] <= 0:
        return []
    begin = -best[2]
    end = begin - best[1]
    right = [(a + end, b + end) for a, b in segments(covered[end:])]
    return [*segments(covered[:begin]), (begin, end), *right]


def text_units(text: str, unit: str) -> list[tuple[int, int]]:
    """Where the lines or paragraphs of a text begin and end, without the breaks behind them.

    Lines of white space are none, and separate paragraphs, as form feeds and U+2029 do.
    """
    units: list[tuple[int, int]] = []
    goes_on, at = False, 0
    for line in re.findall(r"(?s)(.*?)(\r\n|[\n\v\f\r\x85\u2028\u2029]|\Z)", text):
        begin, end = at, at + len(line[0])
        at = end + len(line[1])
        if all(ord(x) in WHITE_SPACE for x in line[0]):
            goes_on = False
            continue
        if goes_on and unit == "paragraph":
            units[-1] = (units[-1][0], end)
        else:
            units.append((begin, end))
        goes_on = line[1] not in {"\f", "\u2029"}
    return units


def without_repeated(
    texts: list[str], unit: str, seen_in: int, keep: str, least: int
) -> tuple[list[str], list[tuple[str, int, int, int, int]]]:
    """Texts without the units that `seen_in` documents or more have, and what was taken out.

    Each unit of the table: its text where it stands first, that document, in how many documents it
    is, how often it was cut, and bytes of these.
    """
    chars, words = Recipe(tokens="chars"), Recipe()
    places: dict[str, list[tuple[int, int]]] = {}
    for document, text in enumerate(texts):
        for number, (begin, end) in enumerate(text_units(text, unit)):
            if len(tokens(text[begin:end], words)) >= least:
                key = "".join(tokens(text[begin:end], chars))
                places.setdefault(key, []).append((document, number))
    cut: set[tuple[int, int]] = set()
    table = []
    for rows in places.values():
        documents = len({document for document, _ in rows})
        if documents < seen_in:
            continue
        gone = rows[1:] if keep == "first" else rows
        cut |= set(gone)
        parts = [texts[d][slice(*text_units(texts[d], unit)[n])] for d, n in rows]
        nbytes = sum(len(x.encode()) for x in parts[len(rows) - len(gone) :])
        table.append((parts[0], rows[0][0], documents, len(gone), nbytes))
    left = []
    for document, text in enumerate(texts):
        units = text_units(text, unit)
        kept = [n for n in range(len(units)) if (document, n) not in cut]
        if len(kept) == len(units):
            left.append(text)
            continue
        rest = [text[: units[0][0]]]
        for n in kept:
            behind = units[n + 1][0] if n + 1 < len(units) else units[n][1]
            rest.append(text[units[n][0] : units[n][1] if n == kept[-1] else behind])
        left.append("".join([*rest, text[units[-1][1] :]]))
    return left, table
