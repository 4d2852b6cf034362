"""Could the tables of a durable index be rows of LMDB? Adds and queries, beside DurableIndex.

The alternative keeps, for k = 3, four tables of 16 bits as (table, block, number) -> fingerprint in
one LMDB database, and looks candidates up with cursors.

    python bench/experiments/index_storage.py [ROWS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import lmdb
import numpy as np

import neardup

BATCH = 10_000
QUERIES = 2_000
DISTANCE = 3
TABLES = 4


def keys(values: np.ndarray, first: int) -> list[list[bytes]]:
    """Of each table: its number, 16 bits of the fingerprint, the row's number; big-endian."""
    results = []
    for table in range(TABLES):
        rows = np.empty(len(values), [("table", "u1"), ("block", ">u2"), ("number", ">u4")])
        rows["table"] = table
        rows["block"] = values >> np.uint64(16 * table) & np.uint64(0xFFFF)
        rows["number"] = np.arange(first, first + len(values))
        results.append([row.tobytes() for row in rows])
    return results


def rows_of_lmdb(folder: str, values: np.ndarray, queries: np.ndarray) -> tuple[float, float]:
    """Adds a second, and microseconds a query."""
    env = lmdb.open(folder, map_size=1 << 36)
    start = time.perf_counter()
    for first in range(0, len(values), BATCH):
        part = values[first : first + BATCH]
        stored = part.astype(">u8").view("V8").tolist()
        with env.begin(write=True) as txn:
            for table in keys(part, first):
                txn.cursor().putmulti(sorted(zip(table, stored, strict=True)))
    added = len(values) / (time.perf_counter() - start)
    hits = 0
    start = time.perf_counter()
    with env.begin() as txn:
        for query in queries.tolist():
            near = set()
            for table in keys(np.array([query], np.uint64), 0):
                prefix = table[0][:3]
                cursor = txn.cursor()
                cursor.set_range(prefix)
                for key, value in cursor.iternext():
                    if key[:3] != prefix:
                        break
                    if (int.from_bytes(value, "big") ^ query).bit_count() <= DISTANCE:
                        near.add(key[3:])
            hits += len(near)
    microseconds = (time.perf_counter() - start) / len(queries) * 1e6
    if hits < len(queries):
        raise AssertionError(hits)
    return added, microseconds


def ours(folder: str, values: np.ndarray, queries: np.ndarray) -> tuple[float, float]:
    """The same of a DurableIndex."""
    with neardup.DurableIndex.open(folder, distance=DISTANCE) as index:
        start = time.perf_counter()
        for first in range(0, len(values), BATCH):
            numbers = np.arange(first, min(first + BATCH, len(values)))
            index.add(numbers, values[numbers])
            index.commit()
        added = len(values) / (time.perf_counter() - start)
        numbers = queries.tolist()
        index.query(numbers[0])
        start = time.perf_counter()
        hits = sum(len(index.query(query)) for query in numbers)
        return added, (time.perf_counter() - start) / len(numbers) * 1e6 if hits else 0.0


def main() -> None:
    """Print both."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    random = np.random.default_rng(1)
    values = random.integers(0, 2**64, count, dtype=np.uint64)
    queries = values[random.integers(0, count, QUERIES)] ^ np.uint64(1 << 63 | 1)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        ours(str(Path(folder, "warm")), values[:300_000], queries[:5])
        for name, measure in (("rows of LMDB", rows_of_lmdb), ("DurableIndex", ours)):
            Path(folder, name).mkdir()
            added, microseconds = measure(str(Path(folder, name)), values, queries)
            size = sum(path.stat().st_size for path in Path(folder, name).rglob("*"))
            print(
                f"{name}: {added:,.0f} adds/s, {microseconds:.1f} us a query,"
                f" {size / count:.0f} B/row"
            )


if __name__ == "__main__":
    main()
