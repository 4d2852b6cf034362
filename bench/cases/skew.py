"""Skewed collections against a uniform one of the same size: how much slower does skew make it?

Every collection has the same number of documents, of 60 features unless said, as feature sets:

- uniform: no two documents share a feature;
- pages: near-identical pages, each one page with at most three features of its own;
- equal: a fifth of the documents are equal to one of 1,000 others, the rest is uniform;
- footer: a third of the documents end in the same 20 features, the rest is uniform;
- lines: one in twenty is a line of 8 features, 7 of them the same in all lines: just below a
  Jaccard similarity of 0.8; the rest is uniform;
- chain: each document has 57 features of the one before, so neighbours are at Jaccard 0.90 and
  the two ends have nothing in common;
- buckets: made to fill few buckets without matching. Groups of 100 documents share their 13 rarest
  features, by which they are found, and no more; the rest are common words. The fingerprints are
  equal in 39 of 64 bits, and a code of distance 4 in the others.

The ways in distance mode get the fingerprints of the same sets (k = 3 of 64 bits). Both collections
are measured in turns in one process, as other programs may take the machine meanwhile.
"""

from __future__ import annotations

import ctypes
import time
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.model import OURS, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Callable

CASE = "skew"
SIZE = 60
WAYS = ("greedy", "components", "distance-greedy", "distance-components")
MOST_TIMES = 3
MOST_PEAK_TIMES = 2
ROUNDS = 3


def rows(quick: bool) -> list[Row]:
    """Processor seconds and memory of each shape by way, over those of uniform data."""
    n = 20_000 if quick else 300_000
    table = []
    for way in WAYS:
        for shape in SHAPES:
            run = Measurement.of(CASE, "ours", OURS, n=n, shape=shape, way=way)
            name = f"skew, {n:,} documents, {way}: {shape}"
            table.append(Row(name, run, better="lower", unit="s"))
            if shape != "uniform":
                table += [
                    Row(f"{name}, time", run, (), MOST_TIMES, "lower", "times", "x uniform"),
                    Row(f"{name}, memory", run, (), MOST_PEAK_TIMES, "lower", "peaks", "x uniform"),
                ]
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


def lines(n: int, generator: Any) -> Any:
    sets = uniform(n, generator)
    some = generator.choice(n, n // 20, replace=False)
    sets[some, 1:8] = sets[0, 1:8]
    sets[some, 8:] = 0
    return sets


def chain(n: int, generator: Any) -> Any:
    import numpy as np

    step = 3
    line = generator.integers(1, 2**64, step * n + SIZE, dtype=np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(line, SIZE)[: step * n : step]
    return np.ascontiguousarray(windows)


def buckets(n: int, generator: Any) -> Any:
    import numpy as np

    rare, together, words = 13, 100, n // 30
    vocabulary = uniform(-(-words // SIZE), generator).reshape(-1)
    sets = np.empty((n, SIZE), np.uint64)
    starts = generator.integers(0, len(vocabulary), n)
    steps = generator.integers(1, len(vocabulary) // SIZE, n)
    for place in range(SIZE):
        sets[:, place] = vocabulary[(starts + place * steps) % len(vocabulary)]
    shared = uniform(-(-n // together), generator)
    sets[:, :rare] = shared[generator.permutation(n) // together, :rare]
    return sets


SHAPES: dict[str, Callable[[int, Any], Any]] = {
    "uniform": uniform,
    "pages": pages,
    "equal": equal,
    "footer": footer,
    "lines": lines,
    "chain": chain,
    "buckets": buckets,
}
"""Each gives uint64 (n, SIZE): features, 0 for none."""


def folded(sets: Any) -> Any:
    """64-bit fingerprints: bit j is set in more than half of a document's features."""
    import numpy as np

    bits = np.zeros((len(sets), 64), np.uint8)
    for begin in range(0, len(sets), 10_000):
        part = sets[begin : begin + 10_000]
        octets = part.view(np.uint8).reshape(-1, SIZE, 8)
        ones = np.unpackbits(octets, axis=2, bitorder="little").sum(axis=1, dtype=np.uint8)
        bits[begin : begin + 10_000] = ones > np.count_nonzero(part, axis=1)[:, None] // 2
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def code_words(n: int, generator: Any) -> Any:
    """Fingerprints of 19 random bits and 6 of parity: no two are within 3 bits (Hamming, 1950)."""
    import numpy as np

    message = generator.choice(1 << 19, n, replace=False).astype(np.uint64)
    parity = np.zeros((n, 6), np.uint64)
    for bit, checks in zip(range(19), combinations(range(6), 3), strict=False):
        parity[:, checks] ^= ((message >> np.uint64(bit)) & np.uint64(1))[:, None]
    return message | (parity << np.arange(19, 25, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)


def made(n: int, shape: str) -> tuple[Any, Any]:
    """The feature sets, and their fingerprints."""
    import numpy as np

    from neardup.similarity.feature_sets import FeatureSets

    generator = np.random.default_rng(5)
    sets = SHAPES[shape](n, generator)
    words = code_words(n, generator)[:, None] if shape == "buckets" else folded(sets)
    offsets = np.append(0, np.cumsum(np.count_nonzero(sets, axis=1)))
    return FeatureSets(sets[sets != 0], offsets, words), words


def ours(n: int, shape: str, way: str) -> dict[str, Any]:
    """The best of some rounds, in turns with uniform data; peaks with the input."""
    from cases.pairs import GIB

    skewed, even = made(n, shape), made(n, "uniform")
    rounds = [(measured(skewed, way), measured(even, way)) for _ in range(1 + ROUNDS)]
    ours, base = ([turn[side] for turn in rounds[1:]] for side in (0, 1))  # the first compiles
    seconds, peak = min(run.seconds for run in ours), max(run.peak for run in ours)
    return {
        "value": seconds,
        "times": seconds / min(run.seconds for run in base),
        "groups": ours[0].groups,
        "peak_gib": peak / GIB,
        "peaks": peak / max(run.peak for run in base),
    }


class Run(NamedTuple):
    """One run's processor seconds, how many groups it found, and the peak in bytes."""

    seconds: float
    groups: int
    peak: int


def measured(data: tuple[Any, Any], way: str) -> Run:
    from cases.pairs import forget_peak, memory

    sets, words = data
    give_back()
    before = memory("VmRSS") - words.nbytes
    if not way.startswith("distance"):
        before -= sets.features.nbytes + sets.offsets.nbytes
    forget_peak()
    start = time.process_time()
    groups = grouped(*data, way)
    seconds = time.process_time() - start
    return Run(seconds, groups, memory("VmHWM") - before)


def give_back() -> None:
    """Have freed memory count as free: the C library keeps some, which would hide a peak."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def grouped(sets: Any, words: Any, way: str) -> int:
    """How many documents are kept, or components there are."""
    import numpy as np

    import neardup
    from neardup.similarity.feature_sets import Match
    from neardup.similarity.join import similar_components, similar_greedy

    rows_of = np.arange(len(sets))
    result = {
        "greedy": lambda: similar_greedy(sets, rows_of, Match(0.8))[0],
        "components": lambda: similar_components(sets, Match(0.8)),
        "distance-greedy": lambda: neardup.greedy(words, distance=3),
        "distance-components": lambda: neardup.components(words, distance=3),
    }[way]()
    return int((result == rows_of).sum())
