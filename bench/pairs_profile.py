"""Measure how far the planner's choice is from the best plan: random fingerprints, one thread.

    python bench/pairs_profile.py [most_rows] [most_seconds]

The constants of `neardup.hamming.plans.join` were set so that the last column stays near 1.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from neardup.hamming.all_pairs import pairs
from neardup.hamming.plans.join import plan_pairs
from neardup.runtime.arrays import frozen


def main(most_rows: int, most_seconds: float) -> None:
    """Print a line for every width, distance and number of rows that should be quick enough."""
    rng = np.random.default_rng(1)
    print("bits k rows: auto estimated measured | best measured | auto / best")
    for bits in (64, 128, 256):
        pairs(rng.integers(0, 2**64, (5000, bits // 64), np.uint64), plan="scan")
        pairs(rng.integers(0, 2**64, (5000, bits // 64), np.uint64), plan="multi:5")
        for n in (1000, 10_000, 100_000, 1_000_000, 10_000_000):
            if n > most_rows:
                continue
            fps = rng.integers(0, 2**64, (n, bits // 64), np.uint64)
            for distance in (0, 3, 6, 9, 12):
                compare(fps, distance, bits, most_seconds)


def compare(fps: np.ndarray, distance: int, bits: int, most_seconds: float) -> None:
    """Print the planner's choice and the best of all plans."""
    names = ["scan", *(f"multi:{distance + extra}" for extra in range(1, 9))]
    sample = frozen(fps)[:1024]
    auto = plan_pairs(len(fps), distance, bits, sample)
    if auto.seconds > most_seconds:
        return
    measured = {}
    for name in {auto.name, *names}:
        if plan_pairs(len(fps), distance, bits, sample, name).seconds > 3 * most_seconds:
            continue
        best = float("inf")
        for _ in range(3 if len(fps) <= 100_000 else 1):
            started = time.perf_counter()
            pairs(fps, distance, bits, name, workers=1)
            best = min(best, time.perf_counter() - started)
            if best > 3 * most_seconds:
                break
        measured[name] = best
    best_name = min(measured, key=measured.__getitem__)
    ours, least = measured[auto.name], measured[best_name]
    print(
        f"{bits} {distance} {len(fps):,}: {auto.name} {auto.seconds:.4f} {ours:.4f}"
        f" | {best_name} {least:.4f} | {ours / least:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main(*(float(value) for value in sys.argv[1:]))  # type: ignore[arg-type]
