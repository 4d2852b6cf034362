"""Is the choice for all pairs within twice the best plan's time? A grid of n, k, width, skew.

Each measurement joins fingerprints of one shape on one thread: `chosen` by "auto", `best` by every
plan that is not expected to take ten times the least. Seconds are the processor's, the least of two
or three. Shapes:

- uniform: independent bits;
- constant: the top 24 bits are the same in all rows;
- rare: every bit is 1 in one row of eight;
- clusters: a quarter of the rows are within a few bits of one of n / 1,000 others;
- buckets: a quarter of the rows agree on 44 bits, and on no others.

Points with more than 2**24 pairs to be found are left out: whatever the plan, the time is theirs.
"""

from __future__ import annotations

import time
from math import comb
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "pair_plans"
MOST_ROUNDS = 1
TIMES_SLOWER = 10
MOST_SECONDS = 30
SHAPES = ("uniform", "constant", "rare", "clusters", "buckets")
DISTANCES = (1, 3, 6, 8, 10)
LARGE = 2**20
CLUSTER = 1_000
FREE_BITS = 20  # of a row of "buckets" in the last word
MOST_PAIRS = 2**24


def rows(quick: bool) -> list[Row]:
    """A row for every point; a ratio of 0.5 is a choice that takes twice the best plan's time."""
    sizes = (2**10, 2**14) if quick else (2**10, 2**14, 2**17, 2**20, 2**23)
    points = [
        (n, k, bits, shape)
        for n in sizes
        for k in DISTANCES
        for bits in (64, 128)
        for shape in SHAPES
        if n < LARGE or (bits == 64 and (shape == "uniform" or n == LARGE))
    ]
    return [row_of(*point) for point in points if expected_pairs(*point) <= MOST_PAIRS]


def expected_pairs(n: int, k: int, bits: int, shape: str) -> float:
    """About how many pairs there are within k bits."""
    if shape == "clusters":
        return n * CLUSTER / 32
    differs = 2 / 8 * 7 / 8 if shape == "rare" else 0.5
    free = (
        bits - 24 if shape == "constant" else bits - 64 + FREE_BITS if shape == "buckets" else bits
    )
    rows = n / 4 if shape == "buckets" else n
    ways = (comb(free, d) * differs**d * (1 - differs) ** (free - d) for d in range(k + 1))
    return rows * rows / 2 * sum(ways)


def row_of(n: int, k: int, bits: int, shape: str) -> Row:
    options = {"n": n, "k": k, "bits": bits, "shape": shape}
    own = Measurement.of(CASE, "chosen", OURS, **options)
    other = Measurement.of(CASE, "best", OURS, **options)
    return Row(f"pair plan, n = {n:,}, k = {k}, {bits} bits, {shape}", own, (other,), 0.5,
               "lower", unit="s")  # fmt: skip


def make(n: int, bits: int, shape: str) -> Any:
    """Fingerprints of a shape: uint64 (n, words)."""
    import numpy as np

    random = np.random.default_rng(9)
    words = random.integers(0, 2**64, (n, bits // 64), dtype=np.uint64)
    if shape == "constant":
        words[:, -1] &= np.uint64(2**40 - 1)
    if shape == "rare":
        for _ in range(2):
            words &= random.integers(0, 2**64, words.shape, dtype=np.uint64)
    if shape == "clusters":
        some = random.choice(n, n // 4, replace=False)
        words[some] = words[random.integers(0, max(1, n // CLUSTER), some.size)]
        for _ in range(4):
            words[some, -1] ^= np.uint64(1) << random.integers(0, 64, some.size).astype(np.uint64)
    if shape == "buckets":
        some = random.choice(n, n // 4, replace=False)
        words[some, -1] &= np.uint64(2**FREE_BITS - 1)
    return words


def chosen(n: int, k: int, bits: int, shape: str) -> dict[str, Any]:
    """What "auto" takes."""
    from neardup.hamming.plans.join_plan import plan_pairs

    words = make(n, bits, shape)
    near = expected_pairs(n, k, bits, shape)
    plan = plan_pairs(n, k, bits, words[:: max(1, n // 1024)], near=near)
    return measured(words, k, "auto") | {"plan": plan.name, "planned": plan.seconds}


def best(n: int, k: int, bits: int, shape: str) -> dict[str, Any]:
    """The quickest of all."""
    from neardup.errors import UsageError
    from neardup.hamming.plans.join_costs import EXTRA_BLOCKS
    from neardup.hamming.plans.join_plan import plan_pairs

    words = make(n, bits, shape)
    sample = words[:: max(1, n // 1024)]
    names = ["scan", *(f"multi:{k + extra}" for extra in range(1, EXTRA_BLOCKS))]
    near = expected_pairs(n, k, bits, shape)
    plans = [plan_pairs(n, k, bits, sample, name, near=near) for name in names]
    for m in range(1, k + 2):
        try:
            plans.append(plan_pairs(n, k, bits, sample, f"mih:{m}", near=near))
        except UsageError:
            continue
    least = min(plan.seconds for plan in plans)
    tried = {}
    for plan in sorted(plans, key=lambda each: each.seconds):
        if plan.seconds < max(TIMES_SLOWER * least, 1e-3) and plan.seconds < MOST_SECONDS:
            tried[plan.name] = measured(words, k, plan.name)["value"]
    quickest = min(tried, key=tried.__getitem__)
    return {"value": tried[quickest], "plan": quickest, "all": tried}


def measured(words: Any, k: int, plan: str) -> dict[str, Any]:
    import neardup

    neardup.pairs(words[:: max(1, len(words) // 1000)], k, plan=plan, workers=1)  # compiles
    seconds = []
    for _ in range(3):
        start = time.thread_time()
        neardup.pairs(words, k, plan=plan, workers=1)
        seconds.append(time.thread_time() - start)
        if sum(seconds) > 10:
            break
    return {"value": min(seconds)}
