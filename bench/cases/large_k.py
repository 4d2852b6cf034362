"""Large distances at scale: exact pairs up to k = 10.

Random 64-bit fingerprints, one in 20 planted exactly k bits from another; all must be found.
"model" is what the plan's costs predict for two threads.
"""

from __future__ import annotations

import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "large_k"
MOST_ROUNDS = 1
DISTANCES = (4, 6, 8, 10)
PART = 1 << 16


def rows(quick: bool) -> list[Row]:
    """Seconds, what the model foresees, and recall."""
    n = 200_000 if quick else 10_000_000
    table = []
    for k in DISTANCES:
        result = Measurement.of(CASE, "exact", OURS, n=n, k=k)
        table += lines(f"exact pairs, n = {n:,}, k = {k}", result)
    return table


def lines(name: str, found: Measurement) -> list[Row]:
    return [
        Row(name, found, (), None, "lower", unit="s"),
        Row(f"{name}: the model's guess", found, (), None, "lower", "model", "s"),
        Row(f"{name}: recall", found, (), 1.0, key="recall", unit=""),
        Row(f"{name}: peak", found, (), 12, "lower", "peak_gib", "GiB"),
    ]


def exact(n: int, k: int) -> dict[str, Any]:
    """All pairs within k bits, by the plan that is chosen."""
    import numpy as np

    import neardup
    from cases.pairs import forget_peak, memory
    from neardup.hamming.plans.join_plan import plan_pairs
    from neardup.runtime.threads import worker_count

    plan = plan_pairs(n, k, 64)
    fingerprints, left, right = planted_fingerprints(n, k)
    neardup.pairs(fingerprints[:20_000], k, plan=plan.name)  # compiles
    neardup.pairs(fingerprints[:200_000], k)  # counting what a plan compares, too
    forget_peak()
    start, used = time.perf_counter(), time.process_time()
    table = neardup.pairs(fingerprints, distance=k)
    seconds, cpu = time.perf_counter() - start, time.process_time() - used
    result = table["left"].to_numpy() * n + table["right"].to_numpy()
    recall = float(np.isin(left * n + right, result).mean())
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
