"""Is the search planner's choice within twice the best plan's time? A grid of n, k, width, skew.

Each measurement builds the plans over fingerprints of one shape and measures a query of a batch on
one thread: `chosen` the plan that "auto" takes, `best` every exact plan that is not expected to be
ten times slower or larger than a few hundred bytes a row. Shapes:

- uniform: independent bits;
- constant: the top 24 bits are the same in all rows;
- rare: every bit is 1 in one row of eight.
"""

from __future__ import annotations

from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "search_plans"
MOST_ROUNDS = 1
MOST_BYTES = 400
TIMES_SLOWER = 10
SAMPLE = 1024
SHAPES = ("uniform", "constant", "rare")
DISTANCES = (1, 3, 6, 10, 14)


def rows(quick: bool) -> list[Row]:
    """A row for every point; a ratio of 0.5 is a choice that takes twice the best plan's time."""
    sizes = (2**10, 2**14) if quick else (2**10, 2**14, 2**17, 2**20, 2**23)
    points = [
        (n, k, bits, shape)
        for n in sizes
        for k in DISTANCES
        for bits in (64, 128)
        for shape in SHAPES
        if n < 2**20 or bits == 64
    ]
    return [row_of(*point) for point in points]


def row_of(n: int, k: int, bits: int, shape: str) -> Row:
    options = {"n": n, "k": k, "bits": bits, "shape": shape}
    own = Measurement.of(CASE, "chosen", OURS, **options)
    other = Measurement.of(CASE, "best", OURS, **options)
    name = f"search plan, n = {n:,}, k = {k}, {bits} bits, {shape}"
    return Row(name, own, (other,), 0.5, "lower", unit="us")


def make(n: int, bits: int, shape: str) -> Any:
    """Fingerprints of a shape: uint64 (n, words)."""
    import numpy as np

    from harness.search_costs import random_fingerprints

    words = random_fingerprints(n, bits).copy()
    if shape == "constant":
        words[:, -1] &= np.uint64(2**40 - 1)
    if shape == "rare":
        random = np.random.default_rng(3)
        for _ in range(2):
            words &= random.integers(0, 2**64, words.shape, dtype=np.uint64)
    return words


def chosen(n: int, k: int, bits: int, shape: str) -> dict[str, Any]:
    """What "auto" takes."""
    from neardup.hamming.plans.choose import plan_search

    words = make(n, bits, shape)
    plan = plan_search(n, k, bits, words[:: max(1, n // SAMPLE)])
    return outcome(words, plan, k, bits)


def best(n: int, k: int, bits: int, shape: str) -> dict[str, Any]:
    """The quickest of all."""
    from neardup.hamming.plans.choose import exact_plans

    words = make(n, bits, shape)
    plans = exact_plans(n, k, bits, words[:: max(1, n // SAMPLE)])
    least = min(plan.seconds for plan in plans)
    tried = [
        outcome(words, plan, k, bits)
        for plan in plans
        if plan.bytes_per_row <= MOST_BYTES and plan.seconds < TIMES_SLOWER * least
    ]
    return min(tried, key=lambda found: float(found["value"])) | {"tried": len(tried)}


def outcome(words: Any, plan: Any, k: int, bits: int) -> dict[str, Any]:
    from harness.search_costs import measure_plan
    from neardup.hamming.plans.choose import named_plan

    few = words[:2_000]
    measure_plan(few, named_plan(len(few), k, bits, None, plan.name), k, bits)  # compiles
    result = measure_plan(words, plan, k, bits)
    return {
        "value": result.microseconds,
        "planned_us": plan.seconds * 1e6,
        "build_s": result.build_seconds,
        "bytes_per_row": result.bytes_per_document,
        "plan": plan.name,
    }
