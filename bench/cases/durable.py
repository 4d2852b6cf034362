"""The durable index on disk: adding in commits, reopening, asking, one durable add at a time.

Random 64-bit fingerprints, distance 3, ids that are strings or whole numbers. Adding counts every
commit, checkpoint and merge. Reopening is measured in a new process, whose disk cache is warm; its
first query includes Numba and the compiled kernels, which it loads; then the index is closed and
opened again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "durable"
DISTANCE = 3
MILLION = 1_000_000
BATCH = 10_000
MOST_ROUNDS = 1
GIB = 2**30


def rows(quick: bool) -> list[Row]:
    """One measurement a kind of ids, several figures of each."""
    n = MILLION // 10 if quick else 10 * MILLION
    report_rows = []
    for ids in ("int", "str"):
        run = Measurement.of(CASE, "lifetime", OURS, n=n, ids=ids)
        label = f"{n:,} documents, {ids} ids"
        lower: dict[str, Any] = {"better": "lower"}
        report_rows += [
            Row(f"{label}: batch adds of {BATCH:,}, committed", run, (), 100_000, unit="/s"),
            Row(f"{label}: the last tenth of them", run, (), 100_000, key="last_tenth", unit="/s"),
            Row(f"{label}: longest commit", run, key="longest_commit", unit="s", **lower),
            Row(f"{label}: reopen", run, (), 0.2, key="reopen", unit="s", **lower),
            Row(f"{label}: first query of a process", run, key="first_query", unit="s", **lower),
            Row(f"{label}: reopen and query", run, (), 0.2, key="again", unit="s", **lower),
            Row(f"{label}: query, one at a time", run, (), 50, key="query", unit="us", **lower),
            Row(f"{label}: query, in a batch", run, (), 50, key="batched", unit="us", **lower),
            Row(f"{label}: add and commit, one at a time", run, key="add", unit="us", **lower),
            Row(f"{label}: on disk", run, key="disk", unit="GiB", **lower),
        ]
    return report_rows


def make(n: int) -> Any:
    """Fingerprints."""
    import numpy as np

    return np.random.default_rng(7).integers(0, 2**64, n, dtype=np.uint64)


def lifetime(n: int, ids: str) -> dict[str, Any]:
    """Fill an index, close it, and ask in another process."""
    import numpy as np

    import neardup

    fingerprints = make(n)
    folder = Path(tempfile.mkdtemp(dir="."))
    try:
        with neardup.DurableIndex.open(folder / "warm", distance=DISTANCE) as warm:
            few = fingerprints[:200_000]
            warm.add(range(len(few)), few)
        index = neardup.DurableIndex.open(folder / "index", distance=DISTANCE)
        commits, start = [], time.perf_counter()
        for first in range(0, n, BATCH):
            numbers = np.arange(first, first + BATCH)
            names = numbers if ids == "int" else [f"document-{i}" for i in numbers.tolist()]
            begin = time.perf_counter()
            index.add(names, fingerprints[first : first + BATCH])
            index.commit()
            commits.append(time.perf_counter() - begin)
        seconds = time.perf_counter() - start
        disk = index.stats()["bytes_on_disk"]
        index.close()
        last = commits[-len(commits) // 10 :]
        answer = subprocess.run(  # noqa: S603  # this file
            [sys.executable, __file__, str(folder / "index"), str(n), ids],
            check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
        )  # fmt: skip
        figures = [float(x) for x in answer.stdout.split()]
    finally:
        shutil.rmtree(folder)
    names = ["reopen", "first_query", "again", "query", "batched", "add"]
    return {
        "value": n / seconds,
        "last_tenth": BATCH * len(last) / sum(last),
        "longest_commit": max(commits),
        "disk": disk / GIB,
        **dict(zip(names, figures, strict=True)),
    }


def ask(path: str, n: int, ids: str) -> list[float]:
    """Reopen, ask and add; seconds, seconds, and microseconds a call."""
    import numpy as np

    import neardup

    fingerprints = make(n)
    neardup.DurableIndex  # noqa: B018  # loads the module, which is not what is measured
    start = time.perf_counter()
    index = neardup.DurableIndex.open(path)
    reopen = time.perf_counter() - start
    start = time.perf_counter()
    index.query(int(fingerprints[5]))
    first = time.perf_counter() - start
    index.close()
    start = time.perf_counter()
    index = neardup.DurableIndex.open(path)
    index.query(int(fingerprints[5]))
    again = time.perf_counter() - start
    chosen = np.random.default_rng(8).integers(0, n, 100_000)
    queries = fingerprints[chosen] ^ np.uint64(2**63 + 2)
    singles = queries[:20_000].tolist()
    for query in singles[:5_000]:
        index.query(query)
    start = time.perf_counter()
    hits = sum(len(index.query(query)) for query in singles[5_000:])
    single = (time.perf_counter() - start) / 15_000
    start = time.perf_counter()
    table = index.query_batch(queries)
    batched = (time.perf_counter() - start) / len(queries)
    if hits < 15_000 or table.num_rows < len(queries):
        raise AssertionError(f"{hits} and {table.num_rows} hits: planted neighbours are missing")
    start = time.perf_counter()
    for i in range(300):
        index.add(-i if ids == "int" else f"new {i}", i)
        index.commit()
    add = (time.perf_counter() - start) / 300
    index.close()
    return [reopen, first, again, 1e6 * single, 1e6 * batched, 1e6 * add]


if __name__ == "__main__":
    print(*ask(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
