"""Transitive groups whose members are many steps from the kept one: what do their ways cost?

Documents of 12 words, `--policy components`, similarity 0.8 of single words:

- chain: each has 11 words of the one before, as revisions of a page or windows of a log have;
- among: a chain of 300 among `n` unrelated documents;
- crowd: one page, of which each document replaced 12 of 200 words: half of them are two steps from
  the kept one, and most match most others.

`by_distance`: fingerprints, each up to three bits from the one before; the groups are given.

"value" is processor seconds of the run, of `by_distance` of the ways alone; "greedy" of the same
run with the policy greedy, "peak_mb" the most memory of the process.
"""

from __future__ import annotations

import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "chains"
MOST_ROUNDS = 1
AMONG = 300
SHAPES = {"chain": (5_000, 200_000), "among": (200_000,), "crowd": (20_000,)}
BY_DISTANCE = (5_000, 40_000, 200_000)


def rows(quick: bool) -> list[Row]:
    """A row for each shape and size."""
    lower: dict[str, Any] = {"better": "lower", "unit": "s"}
    report_rows = []
    for shape, sizes in SHAPES.items():
        for n in [2_000] if quick else sizes:
            run = Measurement.of(CASE, "ours", OURS, n=n, shape=shape)
            report_rows.append(Row(f"components, {shape}, n = {n:,}", run, **lower))
    for n in [2_000] if quick else BY_DISTANCE:
        run = Measurement.of(CASE, "by_distance", OURS, n=n)
        report_rows.append(Row(f"components by distance, chain, n = {n:,}", run, **lower))
    return report_rows


def make(n: int, shape: str) -> list[str]:
    """The documents."""
    import random

    draw = random.Random(5)
    if shape == "crowd":
        page = [f"w{i}" for i in range(200)]
        documents = []
        for _ in range(n):
            removed = set(draw.sample(page, 12))
            kept = [word for word in page if word not in removed]
            documents.append(" ".join([*kept, f"new{draw.randrange(500)}"]))
        return documents
    links = AMONG if shape == "among" else n
    chain = [" ".join(f"w{j}" for j in range(i, i + 12)) for i in range(links)]
    if shape == "chain":
        return chain
    unrelated = (" ".join(f"u{draw.getrandbits(40)}" for _ in range(12)) for _ in range(n))
    return [*unrelated, *chain]


def ours(n: int, shape: str) -> dict[str, Any]:
    """Deduplicate the texts by similarity, once before to compile."""
    import neardup
    from cases.pairs import memory

    how = {"similarity": 0.88 if shape == "crowd" else 0.8, "recipe": neardup.Recipe(ngram=1)}
    texts = make(n, shape)
    neardup.dedup(make(50, "chain"), policy="components", **how)
    start = time.process_time()
    greedy = neardup.dedup(texts, **how)
    between = time.process_time()
    result = neardup.dedup(texts, policy="components", **how)
    return {
        "value": time.process_time() - between,
        "greedy": between - start,
        "dropped": result.duplicates.num_rows,
        "dropped_greedy": greedy.duplicates.num_rows,
        "peak_mb": memory("VmHWM") / 1e6,
    }


def by_distance(n: int) -> dict[str, Any]:
    """The ways of a chain of fingerprints, once before to compile."""
    import numpy as np

    from cases.pairs import memory
    from neardup.hamming.paths_by_distance import paths_by_distance

    random = np.random.default_rng(5)
    flips = np.uint64(1) << random.integers(0, 64, (n, 3), np.uint64)
    codes = np.bitwise_xor.accumulate(np.bitwise_xor.reduce(flips, axis=1))[:, None]
    kept_by = np.zeros(n, np.int64)
    paths_by_distance(codes[:10], kept_by[:10], 3)
    start = time.process_time()
    via = paths_by_distance(codes, kept_by, 3)
    return {
        "value": time.process_time() - start,
        "far": int((via != 0).sum()),
        "peak_mb": memory("VmHWM") / 1e6,
    }
