"""The nearest of random fingerprints, however far; and queries with a limit near many copies.

"value" is milliseconds of processor time a query, on all threads; "wall_ms" wall time. Compared
with NumPy: `bitwise_count`, then `argpartition`. The copies are of one fingerprint, beside 200,000
random ones; "peak_mib" is what 3,000 queries with limit 1 take beyond the index.
"""

from __future__ import annotations

import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "nearest"
NEAREST = 10
QUERIES = 20
ASKED = 3_000
OTHERS = 200_000


def rows(quick: bool) -> list[Row]:
    """One query and a batch, against NumPy; copies under a limit."""
    report_rows = []
    n, copies = (100_000, 2_000) if quick else (10_000_000, 20_000)
    lower: dict[str, Any] = {"better": "lower"}
    for bits in (64, 256):
        size = n * 64 // bits
        own = Measurement.of(CASE, "ours", OURS, n=size, bits=bits)
        plain = Measurement.of(CASE, "plain", OURS, n=size, bits=bits)
        name = f"{NEAREST} nearest of {size:,} rows of {bits} bits"
        report_rows += [
            Row(name, own, (plain,), 6, unit="cpu ms", **lower),
            Row(f"{name}: wall time", own, (), 30, key="wall_ms", unit="ms", **lower),
            Row(f"{name}: batch", own, (plain,), 6, key="batch_ms", unit="cpu ms", **lower),
        ]
    limited = Measurement.of(CASE, "limited", OURS, copies=copies)
    name = f"{ASKED:,} queries, limit 1, {copies:,} copies near each"
    report_rows += [
        Row(name, limited, (), None, unit="cpu ms", **lower),
        Row(f"{name}: peak", limited, (), 200, key="peak_mib", unit="MiB", **lower),
    ]
    return report_rows


def make(n: int, bits: int) -> tuple[Any, Any]:
    """Rows and queries, uint64 (., bits / 64)."""
    import numpy as np

    draw = np.random.default_rng(1)
    shape = bits // 64
    rows_of = draw.integers(0, 2**64, (n, shape), dtype=np.uint64)
    return rows_of, draw.integers(0, 2**64, (QUERIES, shape), dtype=np.uint64)


def ours(n: int, bits: int) -> dict[str, Any]:
    """A call a query, and one call for all."""
    import neardup as nd

    codes, queries = make(n, bits)
    index = nd.Index(distance=0, bits=bits, plan="scan")
    index.add(range(n), codes)
    index.nearest_batch(queries[:2], NEAREST)
    start, wall = time.process_time(), time.perf_counter()
    for query in queries:
        index.nearest_batch(query[None, :], NEAREST)
    spent, wall = time.process_time() - start, time.perf_counter() - wall
    start = time.process_time()
    index.nearest_batch(queries, NEAREST)
    batch = time.process_time() - start
    scale = 1e3 / QUERIES
    return {"value": spent * scale, "wall_ms": wall * scale, "batch_ms": batch * scale}


def plain(n: int, bits: int) -> dict[str, Any]:
    """NumPy, a query at a time."""
    import numpy as np

    codes, queries = make(n, bits)
    start = time.process_time()
    for query in queries:
        apart = np.bitwise_count(codes ^ query).sum(axis=1)
        np.argpartition(apart, NEAREST)[:NEAREST]
    spent = (time.process_time() - start) / QUERIES * 1e3
    return {"value": spent, "batch_ms": spent}


def limited(copies: int) -> dict[str, Any]:
    """A batch of queries near all copies."""
    import numpy as np

    import neardup as nd
    from cases.pairs import forget_peak, memory

    draw = np.random.default_rng(1)
    page = np.uint64(12345)
    others = draw.integers(0, 2**64, OTHERS, dtype=np.uint64)
    index = nd.Index(distance=3)
    index.add(range(copies + OTHERS), np.concatenate([np.full(copies, page), others]))
    queries = page ^ (np.uint64(1) << draw.integers(0, 64, ASKED).astype(np.uint64))
    index.query_batch(queries[:100], limit=1)
    before = memory("VmRSS")
    forget_peak()
    start = time.process_time()
    hits = index.query_batch(queries, limit=1)
    spent = time.process_time() - start
    peak = (memory("VmHWM") - before) / 2**20
    return {"value": spent / ASKED * 1e3, "peak_mib": peak, "rows": hits.num_rows}
