"""All pairs within 3 bits of fingerprints on disk, in a memory budget that they do not fit in.

Every size has the budget that 12 GiB are to 10^9 fingerprints. The fingerprints are random 64-bit
numbers in a file, 1 in 64 planted near another one; every planted pair must be found ("exact").
The clock runs from the opened file to the last sorted pair. "model" is what the planner's costs
predict. 10^9 takes minutes and 8 GB of disk, so it runs only when it is asked for:

    NEARDUP_BENCH_BILLION=1 python bench/run.py scale --rounds 1
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "scale"
DISTANCE = 3
BILLION = 10**9
GIB = 2**30
BYTES_A_ROW = 12 * GIB / BILLION
MOST_ROUNDS = 2
PLANTED = 64
STEP = 1 << 22
MOST_SECONDS = {BILLION: 300}


def rows(quick: bool) -> list[Row]:
    """Time, peak memory and disk at each size, and how well the cost model foresees the time."""
    sizes = [1 << 20] if quick else [1 << 24, 1 << 26, 1 << 28]
    if os.environ.get("NEARDUP_BENCH_BILLION"):
        sizes.append(BILLION)
    table = []
    for n in sizes:
        measured = Measurement.of(CASE, "ours", OURS, n=n)
        name = f"pairs on disk, n = {n:,}"
        memory = n * BYTES_A_ROW / GIB
        table += [
            Row(name, measured, (), MOST_SECONDS.get(n), "lower", unit="s"),
            Row(f"{name}: the model's guess", measured, (), None, "lower", "model", "s"),
            Row(f"{name}: peak", measured, (), max(memory, 0.5), "lower", "peak_gib", "GiB"),
            Row(f"{name}: written to disk", measured, (), None, "lower", "spilled_gib", "GiB"),
        ]
    return table


def make(path: str, n: int) -> tuple[Any, Any]:
    """Write n fingerprints to a file; the rows of the planted pairs."""
    import numpy as np

    random = np.random.default_rng(11)
    fingerprints = np.empty(n, np.uint64)
    for begin in range(0, n, STEP):
        size = min(STEP, n - begin)
        fingerprints[begin : begin + size] = random.integers(0, 2**64, size, dtype=np.uint64)
    left = random.integers(0, n, n // PLANTED)
    right = random.integers(0, n, n // PLANTED)
    near = fingerprints[left]
    for _ in range(DISTANCE):
        near ^= np.uint64(1) << random.integers(0, 64, len(near)).astype(np.uint64)
    fingerprints[right] = near
    with Path(path).open("wb") as file:
        fingerprints.tofile(file)
        os.fsync(file.fileno())
    return left, right


def ours(n: int) -> dict[str, Any]:
    import numpy as np

    from cases.pairs import forget_peak, memory, recall
    from neardup.hamming.plans.join_plan import spilled_seconds
    from neardup.hamming.spilled.batches import Limits, joined_rows
    from neardup.hamming.spilled.slab_join import Budget
    from neardup.hamming.spilled.sources import open_rows
    from neardup.runtime.threads import worker_count

    budget = max(64 << 20, int(n * BYTES_A_ROW))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/small.bin"
        make(path, 1 << 18)
        run(np.memmap(path, np.uint64, "r"), Limits(64 << 20))  # compiles
        path = f"{folder}/fingerprints.bin"
        left, right = make(path, n)
        fingerprints = np.memmap(path, np.uint64, "r")
        before = memory("VmRSS")
        forget_peak()
        start, start_cpu = time.perf_counter(), time.process_time()
        limits = Limits(budget)
        with (
            open_rows(fingerprints) as (rows, bits),
            joined_rows(rows, bits, DISTANCE, "auto", limits) as pairs,
        ):
            joined = time.perf_counter() - start
            keys = np.empty(pairs.spool.count, np.int64)
            at = 0
            for one, two, _ in pairs.spool.sorted_parts():
                keys[at : at + len(one)] = one * n + two
                at += len(one)
            spilled = pairs.spilled
            parts = Budget.of(budget, rows)
        seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
        peak = memory("VmHWM") - keys.nbytes - before
        share = recall(fingerprints, left, right, keys)
    return {
        "value": seconds,
        "joined": joined,
        "cpu": cpu,
        "model": spilled_seconds(n, DISTANCE, 64, parts.slab_rows, worker_count(None)),
        "pairs": len(keys),
        "recall": share,
        "exact": share == 1.0,
        "peak_gib": peak / GIB,
        "budget_gib": budget / GIB,
        "spilled_gib": spilled / GIB,
    }


def run(fingerprints: Any, limits: Any) -> int:
    """How many pairs there are."""
    from neardup.hamming.spilled.batches import pair_batches

    return sum(batch.num_rows for batch in pair_batches(fingerprints, DISTANCE, limits=limits))
