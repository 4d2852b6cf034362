"""Skewed documents in an index by similarity against uniform ones: what does a hit cost?

Every document has 300 features (`crowded`: 40), the queries are a few of them, edited but
for `variants` and `crowded`:

- uniform: most features are a document's own, a fifth are of 2,000 common ones; one hit a query;
- equal: all documents are equal;
- variants: all documents are one page, of which each replaced 12 features;
- everywhere: as uniform, and 30 features are in every document;
- crowded: 40 of the same 60 features, so that most documents nearly match.

"value" is microseconds of processor time a hit that is returned, of single queries; "limited_us" a
query with a limit of 10; "batch_mb" what a batch with that limit adds to the peak of memory.
"""

from __future__ import annotations

import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "similar_skew"
MOST_ROUNDS = 1
FEATURES = 300
CROWDED = 30_000
QUERIES = 5
LIMIT = 10
EQUAL = 1_000_000
SHAPES = ("uniform", "equal", "variants", "everywhere", "crowded")


def rows(quick: bool) -> list[Row]:
    """A row for what a hit costs, and for what a limit saves, by shape."""
    report_rows = []
    lower: dict[str, Any] = {"better": "lower"}
    for shape in SHAPES:
        n = 20_000 if quick else EQUAL if shape == "equal" else 300_000
        run = Measurement.of(CASE, "ours", OURS, n=n, shape=shape)
        at = f"skewed index by similarity, n = {n:,}: {shape}"
        report_rows += [
            Row(f"{at}, a hit", run, unit="us", **lower),
            Row(f"{at}, limited query", run, key="limited_us", unit="us", **lower),
            Row(f"{at}, limited batch", run, key="batch_mb", unit="MB", **lower),
        ]
    return report_rows


def make(n: int, shape: str, random: Any) -> Any:
    """Features: uint64 (n, features)."""
    import numpy as np

    def own(*size: int) -> Any:
        return random.integers(0, 1 << 64, size, np.uint64)

    common = own(2_000)
    if shape == "crowded":
        chosen = np.argsort(random.random((min(n, CROWDED), 60)), axis=1)[:, :40]
        return common[chosen]
    if shape in {"equal", "variants"}:
        result = np.repeat(own(1, FEATURES), n, axis=0)
        for _ in range(12 if shape == "variants" else 0):
            result[np.arange(n), random.integers(0, FEATURES, n)] = own(n)
        return result
    result = own(n, FEATURES)
    result[:, : FEATURES // 5] = common[random.integers(0, 2_000, (n, FEATURES // 5))]
    if shape == "everywhere":
        result[:, :30] = common[:30]
    return result


def ours(n: int, shape: str) -> dict[str, Any]:
    """Build, ask."""
    import numpy as np

    import neardup
    from cases.pairs import memory

    random = np.random.default_rng(3)
    documents = make(n, shape, random)
    index = neardup.Index(similarity=0.8)
    for first in range(0, len(documents), 50_000):
        part = documents[first : first + 50_000]
        index.add(np.arange(first, first + len(part)), part)
    index.compact()
    queries = [row.copy() for row in documents[:QUERIES]]
    if shape not in {"crowded", "variants"}:
        for query in queries:
            query[random.integers(0, FEATURES, 15)] = random.integers(0, 1 << 62, 15, np.uint64)
    index.query(queries[0][:2])
    seconds, hits = _asked(index, queries, None)
    limited, _ = _asked(index, queries, LIMIT)
    before = memory("VmHWM")
    index.query_batch(queries * 20, limit=LIMIT)
    return {
        "value": seconds / max(1, hits) * 1e6,
        "limited_us": limited / QUERIES * 1e6,
        "batch_mb": (memory("VmHWM") - before) / 1e6,
        "hits": hits / QUERIES,
    }


def _asked(index: Any, queries: list[Any], limit: int | None) -> tuple[float, int]:
    """Processor seconds of single queries, the least of three rounds, and hits returned."""
    least = float("inf")
    for _ in range(3):
        start = time.process_time()
        hits = sum(len(index.query(query, limit=limit)) for query in queries)
        least = min(least, time.process_time() - start)
    return least, hits
