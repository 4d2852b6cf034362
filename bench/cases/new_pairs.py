"""New fingerprints against many old ones that pass by once: the batch mode of the 2007 paper.

A million new fingerprints are held with search tables; random old ones are streamed, 1 in 1,024
planted near a new one; every planted pair must be found ("exact"). What 8 x 10^9 take is in
proportion, for each old fingerprint costs the same.
"""

from __future__ import annotations

import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "new_pairs"
DISTANCE = 3
NEW = 1_000_000
STEP = 1 << 20
PLANTED = 1024
PAPER = 8_000_000_000


def rows(quick: bool) -> list[Row]:
    """Time, processor time and peak memory, and what the paper's collection would take."""
    n = 1 << 20 if quick else 1 << 25
    measured = Measurement.of(CASE, "ours", OURS, n=n)
    name = f"10^6 new against n = {n:,}"
    return [
        Row(name, measured, (), None, "lower", unit="s"),
        Row(f"{name}: processor time", measured, (), None, "lower", "cpu", "s"),
        Row(f"{name}: peak", measured, (), 1.0, "lower", "peak_gib", "GiB"),
        Row("8 x 10^9 in proportion: processor time", measured, (), None, "lower", "paper_h", "h"),
    ]


def ours(n: int) -> dict[str, Any]:
    import numpy as np

    from cases.pairs import forget_peak, memory
    from neardup.hamming import cross_pairs

    random = np.random.default_rng(11)
    new = random.integers(0, 2**64, NEW, dtype=np.uint64)

    def old() -> Any:
        for begin in range(0, n, STEP):
            batch = random.integers(0, 2**64, min(STEP, n - begin), dtype=np.uint64)
            planted = len(batch) // PLANTED
            turned = random.integers(0, 64, planted).astype(np.uint64)
            batch[:planted] = new[random.integers(0, NEW, planted)] ^ (np.uint64(1) << turned)
            yield batch

    list(cross_pairs(new[:1000], [new[:1000]], DISTANCE))  # compiles
    before = memory("VmRSS")
    forget_peak()
    start, start_cpu = time.perf_counter(), time.process_time()
    pairs = sum(len(batch) for batch in cross_pairs(new, old(), DISTANCE))
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    expected = sum(min(STEP, n - begin) // PLANTED for begin in range(0, n, STEP))
    return {
        "value": seconds,
        "cpu": cpu,
        "pairs": pairs,
        "exact": pairs >= expected,
        "peak_gib": (memory("VmHWM") - before) / 2**30,
        "paper_h": cpu / n * PAPER / 3600,
    }
