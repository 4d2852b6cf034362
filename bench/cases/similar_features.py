"""Ten million documents made as feature sets, without text: `similar_greedy` at 0.8.

A document has 60 features on average (30 to 90). A share of them is drawn from a vocabulary of 4
words a document, with a frequency of rank to the power -0.5; the rest are its own. With a share of
0.2 nearly every document has rare features enough to be told apart at once; with 1 it has none.
One in ten documents is an earlier one with some features replaced, to a Jaccard similarity from 0.8
to 1; all of those must be found.
"""

from __future__ import annotations

import resource
import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "similar_features"
MILLION = 1_000_000
MEAN = 60
COMMON_A_DOCUMENT = 4
PLACES = 128
MOST_ROUNDS = 1
PART = 500_000


def rows(quick: bool) -> list[Row]:
    """Seconds and memory; two million documents in the quick form."""
    n = 2 * MILLION if quick else 10 * MILLION
    table = []
    for size, common in ((n, 0.2), (n // 5, 1.0)):
        whole = Measurement.of(CASE, "ours", OURS, n=size, common_share=common)
        name = f"{size:,} feature sets, {common:.0%} common, similarity 0.8, greedy"
        table += [
            Row(name, whole, (), 600, "lower", unit="s"),
            Row(f"{name}: peak beyond the input", whole, (), None, "lower", "peak_gib", "GiB"),
            Row(f"{name}: share of the planted ones found", whole, (), 1, key="recall", unit=""),
        ]
    return table


def make(n: int, common_share: float, seed: int = 11) -> tuple[Any, Any, Any, Any]:
    """Features, offsets, the rows of planted documents and of what each was made from."""
    import numpy as np

    generator = np.random.default_rng(seed)
    sizes = generator.integers(MEAN // 2, MEAN + MEAN // 2 + 1, n)
    planted = np.sort(generator.choice(np.arange(1, n), n // 10, replace=False))
    source = (generator.random(planted.size) * planted).astype(np.int64)
    is_planted = np.zeros(n, bool)
    is_planted[planted] = True
    source = np.maximum.accumulate(np.where(is_planted, 0, np.arange(n)))[source]
    sizes[planted] = sizes[source]
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    features = np.empty(offsets[-1], np.uint64)
    for begin in range(0, n, PART):
        end = min(n, begin + PART)
        part = features[offsets[begin] : offsets[end]]
        part[:] = generator.integers(1, 2**63, part.size, dtype=np.uint64) << np.uint64(1)
        common = np.flatnonzero(generator.random(part.size) < common_share)
        place = common - np.repeat(offsets[begin:end] - offsets[begin], sizes[begin:end])[common]
        rank = (generator.random(common.size) ** 2 * COMMON_A_DOCUMENT * n).astype(np.int64)
        rank += place - rank % PLACES  # no document has one twice
        part[common] = mixed(rank.astype(np.uint64)) | np.uint64(1)
    plant(features, offsets, planted, source, generator)
    return features, offsets, planted, source


def mixed(values: Any) -> Any:
    """splitmix64: spreads small numbers over 64 bits."""
    import numpy as np

    z = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def plant(features: Any, offsets: Any, planted: Any, source: Any, generator: Any) -> None:
    """Copy the source's features but for the last few, which stay the document's own.

    With m of s features replaced the similarity is (s - m) / (s + m); m is drawn from 0 to s / 9.
    """
    import numpy as np

    sizes = offsets[planted + 1] - offsets[planted]
    shared = sizes - (generator.random(planted.size) * (sizes // 9 + 1)).astype(np.int64)
    total = np.concatenate([[0], np.cumsum(shared)])
    for begin in range(0, planted.size, PART):
        part = slice(begin, begin + PART)
        steps = np.arange(total[min(begin + PART, planted.size)] - total[begin])
        inside = steps - np.repeat(total[part][: shared[part].size] - total[begin], shared[part])
        to = np.repeat(offsets[planted[part]], shared[part]) + inside
        features[to] = features[np.repeat(offsets[source[part]], shared[part]) + inside]


def ours(n: int, common_share: float) -> dict[str, Any]:
    import numpy as np

    from cases.pairs import GIB, forget_peak, memory
    from neardup.similarity.feature_sets import FeatureSets, Match, similarities
    from neardup.similarity.join import similar_greedy

    for size in (10_000, n):  # the first compiles
        features, offsets, planted, source = make(size, common_share)
        sets = FeatureSets(features, offsets, np.zeros((size, 1), np.uint64))
        before = memory("VmRSS")
        forget_peak()
        start = time.perf_counter()
        processor = resource.getrusage(resource.RUSAGE_SELF)
        kept_of, _ = similar_greedy(sets, np.arange(size), Match(0.8))
        seconds = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_SELF)
        peak = memory("VmHWM") - before
    similar = similarities(sets, planted, source) >= 0.8
    dropped = kept_of != np.arange(n)
    return {
        "value": seconds,
        "cpu_seconds": after.ru_utime + after.ru_stime - processor.ru_utime - processor.ru_stime,
        "peak_gib": peak / GIB,
        "input_gib": (features.nbytes + offsets.nbytes) / GIB,
        "features": int(features.size),
        "planted": int(similar.sum()),
        "dropped": int(dropped.sum()),
        "recall": float(dropped[planted[similar]].mean()),
    }
