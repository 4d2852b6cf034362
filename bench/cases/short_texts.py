"""Short texts by runs of characters: few features, all of them common, so no key is rare.

A text has 3 to 12 words, drawn with a frequency of 1 / rank from 20,000 words that are made of
syllables; so runs of characters are as unevenly frequent as in a language. One in ten is an earlier
text with one letter changed. "value" is processor seconds of the whole deduplication, on all
threads, tokenising included, so that other programs on the machine matter little, for a million
texts; "seconds" is wall time, "matching" the processor seconds of the search alone, "kept" what is
left. Peers take the first `PEER_TEXTS`, time is per million texts on both sides; they estimate
similarities, and keep others: "recall" is the share of the texts that an exact search drops that
the peer drops too. A cell that takes longer than LIMIT_SECONDS is stopped, and its record says so.
In parts:

    python bench/run.py short_texts --where "n=20000|100000" --minutes 10    # peers have 20,000
    python bench/run.py short_texts --where "n=200000|1000000" --minutes 10
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "short_texts"
MOST_ROUNDS = 1
WORDS = 20_000
PEER_TEXTS = 20_000
SIZES = (100_000, 200_000, 1_000_000)
CHARS = (4, 3, 5)
SIMILARITIES = (0.8, 0.5, 0.9, 0.7, 0.3)
"""What matters most comes first, where the time is short."""
LIMIT_SECONDS = 120
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PERMUTATIONS = 128


def rows(quick: bool) -> list[Row]:
    """Seconds for a million texts, by number, characters and similarity."""
    points = [(0.8, 3, 20_000)] if quick else list(itertools.product(SIMILARITIES, CHARS, SIZES))
    table = []
    for similarity, chars, n in points:
        options: dict[str, Any] = {"chars": chars, "similarity": similarity}
        own = Measurement.of(CASE, "ours", OURS, n=n, **options)
        peers = tuple(
            Measurement.of(CASE, name, name, n=PEER_TEXTS, **options)
            for name in ("datasketch", "rensa")
            if n <= SIZES[0]
        )
        name = f"{n:,} short texts, chars {chars}, similarity {similarity}"
        table.append(Row(f"{name}, a million", own, peers, None, "lower", unit="cpu s"))
        table.append(Row(f"{name}, matching", own, (), None, "lower", "matching", "cpu s"))
    return table


def make(n: int) -> list[str]:
    """The same texts each time; the first of many are those of fewer."""
    import numpy as np

    draw = np.random.default_rng(9)
    syllables = ["".join(draw.choice(list(LETTERS), draw.integers(1, 4))) for _ in range(400)]
    common = (draw.random((WORDS, 4)) ** 2 * len(syllables)).astype(int)
    lengths = draw.integers(1, 5, WORDS)
    words = [
        "".join(syllables[i] for i in row[:length])
        for row, length in zip(common.tolist(), lengths.tolist(), strict=True)
    ]
    ranks = np.floor(np.exp(draw.random((n, 12)) * np.log(WORDS))).astype(int)
    counts, near, place = draw.integers(3, 13, n), draw.random(n) < 0.1, draw.random((n, 2))
    texts: list[str] = []
    for i in range(n):
        if i and near[i]:
            text = texts[int(place[i, 0] * i)]
            at = int(place[i, 1] * len(text))
            texts.append(text[:at] + LETTERS[i % 26] + text[at + 1 :])
        else:
            texts.append(" ".join(words[rank - 1] for rank in ranks[i, : counts[i]].tolist()))
    return texts


def ours(n: int, chars: int, similarity: float) -> dict[str, Any]:
    """`similar_greedy` on the features of the texts; a small run compiles."""
    import numpy as np

    import neardup as nd
    from neardup.fingerprinting.sets_of_texts import feature_sets
    from neardup.similarity.feature_sets import FeatureSets, Match
    from neardup.similarity.join import similar_greedy

    recipe, texts = nd.Recipe(tokens="chars", ngram=chars), make(n)
    for part in (texts[:100], texts):
        start, wall = time.process_time(), time.perf_counter()
        features, offsets = feature_sets(part, recipe)
        made = time.process_time()
        sets = FeatureSets(features, offsets, np.zeros((len(part), 1), np.uint64))
        kept = similar_greedy(sets, np.arange(len(part)), Match(similarity))[0]
        done, wall = time.process_time(), time.perf_counter() - wall
    return {
        "value": (done - start) / n * 1e6,
        "matching": done - made,
        "seconds": wall,
        "kept": int((kept == np.arange(n)).sum()),
    }


def shingles(text: str, chars: int) -> set[str]:
    return {text[i : i + chars] for i in range(max(1, len(text) - chars + 1))}


def dropped_exactly(texts: list[str], chars: int, similarity: float) -> list[bool]:
    """A plain greedy search: an inverted index, and the overlaps counted."""
    index: dict[str, list[int]] = {}
    sizes, dropped = [], []
    for row, text in enumerate(texts):
        features = shingles(text, chars)
        shared: dict[int, int] = {}
        for feature in features:
            for other in index.get(feature, ()):
                shared[other] = shared.get(other, 0) + 1
        sizes.append(len(features))
        dropped.append(
            any(
                count >= similarity * (len(features) + sizes[other] - count)
                for other, count in shared.items()
            )
        )
        if not dropped[-1]:
            for feature in features:
                index.setdefault(feature, []).append(row)
    return dropped


def outcome(
    dropped: list[bool], texts: list[str], chars: int, similarity: float, seconds: float
) -> dict[str, Any]:
    few = min(len(texts), 3_000)
    exact = dropped_exactly(texts[:few], chars, similarity)
    count = sum(a and b for a, b in zip(exact, dropped, strict=False))
    return {
        "value": seconds / len(texts) * 1e6,
        "recall": count / max(1, sum(exact)),
        "kept": len(dropped) - sum(dropped),
    }


def datasketch(n: int, chars: int, similarity: float) -> dict[str, Any]:
    from datasketch import MinHash, MinHashLSH

    texts = make(n)
    start = time.process_time()
    index = MinHashLSH(threshold=similarity, num_perm=PERMUTATIONS)
    features = ([each.encode() for each in shingles(text, chars)] for text in texts)
    sketches: list[MinHash] = []
    dropped = []
    for row, sketch in enumerate(MinHash.generator(features, num_perm=PERMUTATIONS)):
        near = index.query(sketch)
        dropped.append(any(sketch.jaccard(sketches[other]) >= similarity for other in near))
        sketches.append(sketch)
        if not dropped[-1]:
            index.insert(row, sketch, check_duplication=False)
    return outcome(dropped, texts, chars, similarity, time.process_time() - start)


def rensa(n: int, chars: int, similarity: float) -> dict[str, Any]:
    from rensa import RMinHashDeduplicator

    texts = make(n)
    start = time.process_time()
    deduplicator = RMinHashDeduplicator(threshold=similarity, num_perm=PERMUTATIONS, use_lsh=True)
    kept = deduplicator.add_pairs(
        (str(row), shingles(text, chars)) for row, text in enumerate(texts)
    )
    dropped = [not each for each in kept]
    return outcome(dropped, texts, chars, similarity, time.process_time() - start)
