"""All pairs within 3 bits of random 64-bit fingerprints, 5% of them planted near another one.

Every measurement makes the same fingerprints, checks the planted pairs against what it found
("recall"), and times only the search, with the index build for peers that need one.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "pairs"
DISTANCE = 3
MILLION = 1_000_000
GIB = 2**30


def rows(quick: bool) -> list[Row]:
    """Time and memory at the large size, and peers at a million."""
    small, large = (20_000, 50_000) if quick else (MILLION, 2**26)
    default = Measurement.of(CASE, "ours", OURS, n=small, workers=None)
    one = Measurement.of(CASE, "ours", OURS, n=small, workers=1)
    big = Measurement.of(CASE, "ours", OURS, n=large, workers=None)
    big_one = Measurement.of(CASE, "ours", OURS, n=large, workers=1)
    pybind = Measurement.of(CASE, "simhash_pybind", "simhash-pybind", n=small)
    flat = Measurement.of(CASE, "faiss_flat", "faiss", n=small, queries=2_000)
    faiss = tuple(
        Measurement.of(CASE, "faiss_hash", "faiss", n=small, tables=tables, bits=bits, flips=flips)
        for tables, bits, flips in ((1, 20, 3), (2, 32, 1), (4, 16, 0))
    )
    seconds: dict[str, Any] = {"better": "lower", "unit": "s"}
    return [
        Row(f"pairs, n = {large:,}", big, target=12, **seconds),
        Row(f"pairs, n = {large:,}: peak beyond the input", big, (), 4, "lower", "peak_gib", "GiB"),
        Row(f"pairs, n = {large:,}: default against one worker", big, (big_one,), **seconds),
        Row(f"pairs, n = {small:,}, against simhash-pybind", default, (pybind,), 10, **seconds),
        Row(f"pairs, n = {small:,}, one worker, same", one, (pybind,), **seconds),
        Row(
            f"pairs, n = {small:,}, against faiss flat (extrapolated)", default, (flat,), **seconds
        ),
        *(
            Row(f"pairs, n = {small:,}, against {label(peer)}", default, (peer,), **seconds)
            for peer in faiss
        ),
        Row(f"pairs, n = {small:,}, best exact faiss", default, (flat, *faiss), 50, **seconds),
    ]


def label(peer: Measurement) -> str:
    options = json.loads(peer.options)
    return "faiss hash, {tables} of {bits} bits, {flips} flips".format(**options)


def make(n: int) -> tuple[Any, Any, Any]:
    """Fingerprints, and the rows of the planted pairs."""
    import numpy as np

    random = np.random.default_rng(7)
    fingerprints = random.integers(0, 2**64, n, dtype=np.uint64)
    planted = n // 20
    left = random.integers(0, n, planted)
    right = random.integers(0, n, planted)
    near = fingerprints[left]
    for _ in range(DISTANCE):
        near ^= np.uint64(1) << random.integers(0, 64, planted).astype(np.uint64)
    fingerprints[right] = near
    return fingerprints, left, right


def recall(fingerprints: Any, left: Any, right: Any, found: Any) -> float:
    """The share of the planted pairs that are among the found ones (left row * n + right row)."""
    import numpy as np

    n = len(fingerprints)
    low, high = np.minimum(left, right), np.maximum(left, right)
    still = np.bitwise_count(fingerprints[low] ^ fingerprints[high]) <= DISTANCE
    expected = np.unique((low * n + high)[still & (low < high)])
    return float(np.isin(expected, found).mean())


def memory(field: str) -> int:
    """Bytes under a field such as VmRSS of this process; the peak where the system has no /proc."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf8").splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def forget_peak() -> None:
    """Start the peak, VmHWM, anew; a system that refuses leaves it as it was."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf8")
    except OSError:
        return


def ours(n: int, workers: int | None) -> dict[str, Any]:
    import neardup

    neardup.pairs(make(10_000)[0], distance=DISTANCE, workers=workers)
    before = memory("VmRSS")
    fingerprints, left, right = make(n)
    before += fingerprints.nbytes
    forget_peak()
    start = time.perf_counter()
    table = neardup.pairs(fingerprints, distance=DISTANCE, workers=workers)
    seconds = time.perf_counter() - start
    peak = memory("VmHWM") - before
    results = table["left"].to_numpy() * n + table["right"].to_numpy()
    share = recall(fingerprints, left, right, results)
    return result(seconds, table.num_rows, share) | {"peak_gib": peak / GIB}


def result(seconds: float, pairs: int, share: float) -> dict[str, Any]:
    return {"value": seconds, "pairs": pairs, "recall": share, "exact": share == 1.0}


def simhash_pybind(n: int) -> dict[str, Any]:
    import numpy as np
    import simhash

    fingerprints, left, right = make(n)
    values = set(fingerprints.tolist())
    start = time.perf_counter()
    results = simhash.find_all(values, 5, DISTANCE)
    seconds = time.perf_counter() - start
    row_of = {value: row for row, value in enumerate(fingerprints.tolist())}
    rows_found = np.array([sorted((row_of[a], row_of[b])) for a, b in results], dtype=np.int64)
    keys = rows_found[:, 0] * n + rows_found[:, 1]
    return result(seconds, len(results), recall_of_distinct(fingerprints, left, right, keys))


def recall_of_distinct(fingerprints: Any, left: Any, right: Any, keys: Any) -> float:
    """Recall over planted pairs of different values that occur once: the peer takes a set."""
    import numpy as np

    _, place, counts = np.unique(fingerprints, return_inverse=True, return_counts=True)
    once = (counts[place[left]] == 1) & (counts[place[right]] == 1)
    return recall(fingerprints, left[once], right[once], keys)


def faiss_flat(n: int, queries: int) -> dict[str, Any]:
    import faiss

    fingerprints, _, _ = make(n)
    codes = fingerprints.view("uint8").reshape(n, 8)
    index = faiss.IndexBinaryFlat(64)
    index.add(codes)
    queries = min(queries, n)
    start = time.perf_counter()
    limits, _, _ = index.range_search(codes[:queries], DISTANCE + 1)
    seconds = (time.perf_counter() - start) * n / queries
    outcome = result(seconds, int(limits[-1]), 1.0)
    return outcome | {"extrapolated_from_queries": queries}


def faiss_hash(n: int, tables: int, bits: int, flips: int) -> dict[str, Any]:
    """Exact by the pigeonhole principle when tables * (flips + 1) is more than the distance."""
    import faiss
    import numpy as np

    fingerprints, left, right = make(n)
    codes = fingerprints.view("uint8").reshape(n, 8)
    start = time.perf_counter()
    if tables == 1:
        index = faiss.IndexBinaryHash(64, bits)
    else:
        index = faiss.IndexBinaryMultiHash(64, tables, bits)
    index.nflip = flips
    index.add(codes)
    limits, _, others = index.range_search(codes, DISTANCE + 1)
    seconds = time.perf_counter() - start
    ones = np.repeat(np.arange(n), np.diff(limits.astype(np.int64)))
    forward = ones < others
    keys = ones[forward] * n + others[forward]
    return result(seconds, len(keys), recall(fingerprints, left, right, keys))
