"""Skewed collections against a uniform one of the same size: how much slower does skew make it?

Every collection has the same number of documents of 60 features, made as feature sets:

- uniform: no two documents share a feature;
- pages: near-identical pages, each one page with at most three features of its own;
- equal: a fifth of the documents are equal to one of 1,000 others, the rest is uniform;
- footer: a third of the documents end in the same 20 features, the rest is uniform;
- chain: each document has 57 features of the one before, so neighbours are at Jaccard 0.90 and
  the two ends have nothing in common.

Distance mode gets the fingerprints of the same sets (k = 3 of 64 bits).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from model import OURS, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Callable

CASE = "skew"
SIZE = 60
WAYS = ("greedy", "components", "distance")
MOST_TIMES = 5


def rows(quick: bool) -> list[Row]:
    """Seconds of each shape by mode, against uniform data; a ratio of 0.2 is five times slower."""
    n = 20_000 if quick else 300_000
    table = []
    for way in WAYS:
        uniform = Measurement.of(CASE, "ours", OURS, n=n, shape="uniform", way=way)
        for shape in SHAPES:
            skewed = Measurement.of(CASE, "ours", OURS, n=n, shape=shape, way=way)
            against = () if shape == "uniform" else (uniform,)
            target = None if shape == "uniform" else 1 / MOST_TIMES
            name = f"skew, {n:,} documents, {way}: {shape}"
            table.append(Row(name, skewed, against, target, "lower", unit="s"))
    return table


def uniform(n: int, generator: Any) -> Any:
    import numpy as np

    return generator.integers(1, 2**64, (n, SIZE), dtype=np.uint64)


def pages(n: int, generator: Any) -> Any:
    import numpy as np

    sets = np.repeat(uniform(1, generator), n, axis=0)
    own = generator.integers(0, 4, n)
    sets[:, :3] = np.where(np.arange(3) < own[:, None], uniform(n, generator)[:, :3], sets[:, :3])
    return sets


def equal(n: int, generator: Any) -> Any:
    sets = uniform(n, generator)
    some = generator.choice(n, n // 5, replace=False)
    sets[some] = sets[generator.integers(0, 1_000, some.size)]
    return sets


def footer(n: int, generator: Any) -> Any:
    sets = uniform(n, generator)
    some = generator.choice(n, n // 3, replace=False)
    sets[some, :20] = sets[0, :20]
    return sets


def chain(n: int, generator: Any) -> Any:
    import numpy as np

    step = 3
    line = generator.integers(1, 2**64, step * n + SIZE, dtype=np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(line, SIZE)[: step * n : step]
    return np.ascontiguousarray(windows)


SHAPES: dict[str, Callable[[int, Any], Any]] = {
    "uniform": uniform,
    "pages": pages,
    "equal": equal,
    "footer": footer,
    "chain": chain,
}


def folded(sets: Any) -> Any:
    """64-bit fingerprints: bit j is set in more than half of a document's features."""
    import numpy as np

    bits = np.zeros((len(sets), 64), np.uint8)
    for begin in range(0, len(sets), 10_000):
        octets = sets[begin : begin + 10_000].view(np.uint8).reshape(-1, SIZE, 8)
        ones = np.unpackbits(octets, axis=2, bitorder="little").sum(axis=1, dtype=np.uint8)
        bits[begin : begin + 10_000] = ones > SIZE // 2
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def ours(n: int, shape: str, way: str) -> dict[str, Any]:
    import numpy as np

    from cases.pairs import GIB, forget_peak, memory

    sets = SHAPES[shape](n, np.random.default_rng(5))
    words = folded(sets)
    for _ in range(2):  # the first one compiles
        before = memory("VmRSS")
        forget_peak()
        start = time.perf_counter()
        groups = grouped(sets, words, way)
        seconds = time.perf_counter() - start
        peak = memory("VmHWM") - before
    return {"value": seconds, "groups": groups, "peak_gib": peak / GIB}


def grouped(sets: Any, words: Any, way: str) -> int:
    """How many documents are kept, or components there are."""
    import numpy as np

    import neardup
    from neardup.similarity import FeatureSets, Match, similar_components, similar_greedy

    n = len(sets)
    rows_of = np.arange(n)
    if way == "distance":
        return int((neardup.greedy(words, distance=3) == rows_of).sum())
    collection = FeatureSets(sets.reshape(-1), SIZE * np.arange(n + 1), words)
    if way == "greedy":
        return int((similar_greedy(collection, rows_of, Match(0.8))[0] == rows_of).sum())
    return int((similar_components(collection, Match(0.8)) == rows_of).sum())
