"""Large distances at scale: exact pairs up to k = 10, and banded candidates of low similarity.

Exact: random 64-bit fingerprints, one in 20 planted exactly k bits from another; all must be found.

Similarity: documents of 64 to 128 random features, made as features since texts would only cost
time; of the first fiftieth every two neighbours share so many that they are just at the threshold,
the worst case of the plan. Features are folded part by part into the fingerprints that `plan_bands`
asks for, and `band_pairs` gives the candidates. "recall" is the
share of planted pairs among them, "model" what the plan's costs predict for two threads. Memory is
about `bytes` of the plan for each document. 2^26 documents take some minutes and 5 GB, so they run
only when they are asked for:

    NEARDUP_BENCH_LARGE=1 python bench/run.py large-k --rounds 1
"""

from __future__ import annotations

import os
import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "large_k"
MOST_ROUNDS = 1
DISTANCES = (4, 6, 8, 10)
PART = 1 << 16
PLANTED_SHARE = 50
LEAST, MOST = 64, 128
LARGE = "NEARDUP_BENCH_LARGE"


def rows(quick: bool) -> list[Row]:
    """Seconds, what the model foresees, and recall."""
    n = 200_000 if quick else 10_000_000
    table = []
    for k in DISTANCES:
        found = Measurement.of(CASE, "exact", OURS, n=n, k=k)
        table += lines(f"exact pairs, n = {n:,}, k = {k}", found, 1.0)
    points = [(n, 0.7, 0.95)]
    if os.environ.get(LARGE):
        points.append((2**26, 0.8, 0.9))
    for size, similarity, recall in points:
        found = Measurement.of(CASE, "similar", OURS, n=size, similarity=similarity, recall=recall)
        name = f"candidates, n = {size:,}, similarity {similarity}, planned recall {recall}"
        table += lines(name, found, recall)
    return table


def lines(name: str, found: Measurement, recall: float) -> list[Row]:
    return [
        Row(name, found, (), None, "lower", unit="s"),
        Row(f"{name}: the model's guess", found, (), None, "lower", "model", "s"),
        Row(f"{name}: recall", found, (), recall, key="recall", unit=""),
        Row(f"{name}: peak", found, (), 12, "lower", "peak_gib", "GiB"),
    ]


def exact(n: int, k: int) -> dict[str, Any]:
    """All pairs within k bits, by the plan that is chosen."""
    import numpy as np

    import neardup
    from cases.pairs import forget_peak, memory
    from neardup.hamming.plans.join import plan_pairs
    from neardup.runtime.threads import worker_count

    plan = plan_pairs(n, k, 64)
    fingerprints, left, right = planted_fingerprints(n, k)
    neardup.pairs(fingerprints[:20_000], k, plan=plan.name)  # compiles
    neardup.pairs(fingerprints[:200_000], k)  # counting what a plan compares, too
    forget_peak()
    start, used = time.perf_counter(), time.process_time()
    table = neardup.pairs(fingerprints, distance=k)
    seconds, cpu = time.perf_counter() - start, time.process_time() - used
    found = table["left"].to_numpy() * n + table["right"].to_numpy()
    recall = float(np.isin(left * n + right, found).mean())
    return {
        "value": seconds,
        "cpu": cpu,
        "model": plan.seconds / worker_count(None),
        "plan": plan.name,
        "pairs": table.num_rows,
        "recall": recall,
        "exact": recall == 1.0,
        "peak_gib": memory("VmHWM") / 2**30,
    }


def planted_fingerprints(n: int, k: int) -> tuple[Any, Any, Any]:
    """Fingerprints, and the rows of pairs exactly k bits apart."""
    import numpy as np

    random = np.random.default_rng(7)
    fingerprints = random.integers(0, 2**64, n, dtype=np.uint64)
    left = np.arange(0, n // 10, 2)
    for begin in range(0, len(left), PART):
        part = left[begin : begin + PART]
        bits = np.argsort(random.random((len(part), 64)), axis=1)[:, :k].astype(np.uint64)
        flips = np.bitwise_or.reduce(np.uint64(1) << bits, axis=1)
        fingerprints[part + 1] = fingerprints[part] ^ flips
    return fingerprints, left, left + 1


def similar(n: int, similarity: float, recall: float) -> dict[str, Any]:
    """Candidates of the bands that are planned for this similarity and recall."""
    import numpy as np

    from cases.pairs import forget_peak, memory
    from neardup.runtime.threads import worker_count
    from neardup.similarity.band_plans import plan_bands, seconds_of
    from neardup.similarity.bands import band_pairs

    plan = plan_bands(similarity, recall, n)
    few, _ = folded(2_000, similarity, plan.bits // 64)
    list(band_pairs(few, plan))  # compiles
    forget_peak()
    planted = n // PLANTED_SHARE & ~1
    words, folding = folded(n, similarity, plan.bits // 64)
    start, used = time.perf_counter(), time.process_time()
    found, candidates = np.zeros(planted, bool), 0
    for chunk in band_pairs(words, plan):
        left, right = chunk[:, 0], chunk[:, 1]
        candidates += len(chunk)
        hit = left[(left < planted) & (left % 2 == 0) & (right == left + 1)]
        found[hit] = True
    seconds, cpu = time.perf_counter() - start, time.process_time() - used
    return {
        "value": seconds + folding,
        "folding": folding,
        "cpu": cpu,
        "model": seconds_of(plan, n, (LEAST + MOST) // 2) / worker_count(None),
        "plan": plan.to_dict(),
        "candidates": candidates,
        "recall": float(found[::2].mean()),
        "peak_gib": memory("VmHWM") / 2**30,
    }


def folded(n: int, similarity: float, width: int) -> tuple[Any, float]:
    """Fingerprints of documents, uint64 (n, width), and the seconds that folding took."""
    import numpy as np

    from neardup.similarity.bands import fold_sets
    from neardup.similarity.feature_sets import FeatureSets

    random = np.random.default_rng(3)
    words = np.empty((n, width), np.uint64)
    planted, seconds = n // PLANTED_SHARE & ~1, 0.0
    for begin in range(0, n, PART):
        rows = min(PART, n - begin)
        sizes = random.integers(LEAST, MOST + 1, rows)
        near = max(0, min(planted - begin, rows))
        sizes[1:near:2] = sizes[0:near:2]
        offsets = np.append(0, np.cumsum(sizes))
        features = random.integers(1, 2**64, offsets[-1], dtype=np.uint64)
        share(features, offsets, near, similarity)
        sets = FeatureSets(features, offsets, np.zeros((rows, 1), np.uint64))
        start = time.perf_counter()
        words[begin : begin + rows] = fold_sets(sets, np.arange(rows), width)
        seconds += time.perf_counter() - start
    return words, seconds


def share(features: Any, offsets: Any, near: int, similarity: float) -> None:
    """Give document 2 i + 1 the least share of document 2 i's features at the similarity."""
    import numpy as np

    left = np.arange(0, near, 2)
    sizes = offsets[left + 1] - offsets[left]
    shared = np.ceil(2 * sizes * similarity / (1 + similarity) - 1e-9).astype(np.int64)
    inside = np.arange(shared.sum()) - np.repeat(np.cumsum(shared) - shared, shared)
    features[np.repeat(offsets[left + 1], shared) + inside] = features[
        np.repeat(offsets[left], shared) + inside
    ]
