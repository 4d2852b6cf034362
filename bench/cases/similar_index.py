"""Asking an index by similarity: texts of 2 kB, one in ten of the queries planted at 0.8 to 0.9.

The texts are those of `harness/near_texts.py`. "value" is microseconds of the processor that a
query of a batch takes until the answer is right, tokenising included: peers find candidates, and
compare these with the texts ("asked_us" without that; "sketch_us" and "look_us" are its halves; we
make features and look up). "recall" is of pairs planted at 0.8 to 0.9, "recall_at" of pairs at
exactly 0.8, "precision" the share of candidates that are at 0.8 or more where as many pairs are
planted at 0.7 to 0.8. Each peer has the cheapest setting that finds 0.999 of other planted pairs
(`harness/similar_peers.py`), and beside it the one of its documentation. "batch_us" and "single_us"
are time that passes, of a batch and of one call a query; "new_us" that of `add_if_new` on disk with
a commit for every 1,000, "new_cpu_us" of the processor; "disk_bytes_per_row" that of a saved index.
`disk` is an index on disk of features that are given: a query of a batch on one thread, one alone,
the seconds that opening takes, and the memory of its own that the process takes while it compacts.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import near_texts
from harness.model import OURS, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

CASE = "similar_index"
MOST_ROUNDS = 1
QUERIES = 10_000
EVERY = 10
SINGLE = 2_000
NEW = 10_000
PEER_QUERIES = 2_000
PEERS = ("gaoya", "rensa", "datasketch", "faiss")
SLOW_PEERS = ("datasketch",)
SLOW_ROWS = 100_000
"""What adds a text in 0.5 ms is not asked to store more."""
PART = 50_000
DISK = ((1_000_000, 20), (10_000_000, 20), (1_000_000, 100), (10_000_000, 100))
"""Documents and features of each: the last takes some 35 GB of disk."""
DISK_FEATURES = 20
DISK_PART = 250_000


def rows(quick: bool) -> list[Row]:
    """A row for every figure, against the peers."""
    report_rows = []
    lower: dict[str, Any] = {"better": "lower"}
    for n in [5_000] if quick else [100_000, 1_000_000]:
        own = Measurement.of(CASE, "ours", OURS, n=n)
        here = [name for name in PEERS if n <= SLOW_ROWS or name not in SLOW_PEERS]
        peers, documented = (
            tuple(
                Measurement.of(CASE, "peer", name, name=name, n=n, documented=shown)
                for name in here
                if not shown or name != "faiss"
            )
            for shown in (False, True)
        )
        at = f"index by similarity, n = {n:,}"
        report_rows += [
            Row(f"{at}: a right answer, cpu", own, peers, 20, unit="us", **lower),
            Row(f"{at}: candidates, cpu", own, peers, key="asked_us", unit="us", **lower),
            Row(f"{at}: looking up alone, cpu", own, peers, key="look_us", unit="us", **lower),
            Row(f"{at}: batch", own, (), 40, key="batch_us", unit="us", **lower),
            Row(f"{at}: single query", own, (), 300, key="single_us", unit="us", **lower),
            Row(f"{at}: add_if_new, on disk", own, (), 66, key="new_us", unit="us", **lower),
            Row(f"{at}: build, cpu", own, peers, key="build_us", unit="us", **lower),
            Row(f"{at}: memory", own, peers, key="bytes_per_row", unit="B/row", **lower),
            Row(f"{at}: saved", own, (), key="disk_bytes_per_row", unit="B/row", **lower),
            Row(f"{at}: recall, 0.8 to 0.9", own, peers, key="recall", unit=""),
            Row(f"{at}: recall, exactly 0.8", own, peers, key="recall_at", unit=""),
            Row(f"{at}: precision of candidates", own, peers, key="precision", unit=""),
            Row(f"{at}: documented settings", own, documented, unit="us", **lower),
        ]
    for n, size in DISK[: 0 if quick else None]:
        run = Measurement.of(CASE, "disk", OURS, n=n, size=size)
        at = f"index by similarity on disk, {n:,} of {size} features"
        report_rows += [
            Row(f"{at}: batch", run, unit="us", **lower),
            Row(f"{at}: single query", run, key="single_us", unit="us", **lower),
            Row(f"{at}: opening", run, (), 0.2, key="opening_s", unit="s", **lower),
            Row(f"{at}: size", run, key="disk_bytes_per_row", unit="B/row", **lower),
            Row(f"{at}: memory of compact()", run, key="compact_mb", unit="MB", **lower),
        ]
    return report_rows


def mixed(texts: list[str], count: int) -> list[str]:
    """Queries, every tenth of them planted near a stored text."""
    queries = near_texts.make(count, seed=77)
    queries[::EVERY] = near_texts.plant(texts, len(queries[::EVERY]), seed=9).texts
    return queries


def ours(n: int) -> dict[str, Any]:
    """In memory: build, ask; on disk: add what is new."""
    import numpy as np

    import neardup
    from cases.pairs import memory
    from neardup.fingerprinting.sets_of_texts import feature_sets

    texts = near_texts.make(n, seed=1)
    queries, recipe = mixed(texts, QUERIES), neardup.Recipe()
    warm = neardup.Index(similarity=0.8, recipe=recipe)
    warm.add(range(3000), texts[:3000])
    warm.query_batch(queries[:10])
    warm.query(queries[0])
    feature_sets(queries[:10], recipe)
    before, start = memory("VmRSS"), time.process_time()
    index = neardup.Index(similarity=0.8, recipe=recipe)
    for first in range(0, n, PART):
        index.add(range(first, min(n, first + PART)), texts[first : first + PART])
    built, size = time.process_time() - start, memory("VmRSS") - before
    rounds = []
    for _ in range(3):
        clock = [time.process_time()]
        feature_sets(queries, recipe)
        clock.append(time.process_time())
        passed = time.perf_counter()
        index.query_batch(queries)
        passed = time.perf_counter() - passed
        clock.append(time.process_time())
        rounds.append((clock[2] - clock[1], clock[1] - clock[0], passed))
    batch, features, passed = map(min, zip(*rounds, strict=True))
    singles = []
    for text in queries[:SINGLE]:
        start = time.perf_counter()
        index.query(text)
        singles.append(time.perf_counter() - start)

    def ask(asked: list[str]) -> list[list[int]]:
        table = index.query_batch(asked)
        result: list[list[int]] = [[] for _ in asked]
        for row, number in zip(table["row"].to_pylist(), table["id"].to_pylist(), strict=True):
            result[row].append(number)
        return result

    new, new_cpu = _new(near_texts.make(NEW, seed=5))
    return near_texts.quality(texts, ask) | {
        "value": batch / QUERIES * 1e6,
        "asked_us": batch / QUERIES * 1e6,
        "sketch_us": features / QUERIES * 1e6,
        "look_us": (batch - features) / QUERIES * 1e6,
        "batch_us": passed / QUERIES * 1e6,
        "single_us": float(np.median(singles)) * 1e6,
        "new_us": new,
        "new_cpu_us": new_cpu,
        "build_us": built / n * 1e6,
        "bytes_per_row": size / n,
        "disk_bytes_per_row": _saved(index) / n,
        "rows": n,
    }


def _saved(index: Any) -> int:
    """Bytes of an index as a file."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder, "index")
        index.save(path)
        return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def _new(texts: list[str]) -> tuple[float, float]:
    """Microseconds of an add_if_new with a commit for every 1,000: passed, and of the processor."""
    import neardup

    folder = Path(tempfile.mkdtemp(dir="."))
    try:
        index = neardup.DurableIndex.open(folder / "i", similarity=0.8, recipe=neardup.Recipe())
        start, processor = time.perf_counter(), time.process_time()
        for i, text in enumerate(texts):
            index.add_if_new(i, text)
            if i % 1000 == 999:
                index.commit()
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
        index.close()
    finally:
        shutil.rmtree(folder)
    return seconds / len(texts) * 1e6, processor / len(texts) * 1e6


def disk(n: int, size: int) -> dict[str, Any]:
    """On disk, compacted, features given: a fifth are common, one in ten queries planted."""
    import numpy as np

    import neardup
    from cases.pairs import memory
    from harness.resident import peak_of_own_memory

    draw = np.random.default_rng(5)
    folder = Path(tempfile.mkdtemp(dir="."))
    queries: list[Any] = []
    try:
        index = neardup.DurableIndex.open(folder / "i", similarity=0.8)
        built, at = 0.0, 0
        for part in _parts(n, size, draw):
            start = time.process_time()
            index.add(np.arange(at, at + len(part)), part)
            index.commit()
            built += time.process_time() - start
            at += len(part)
            stored = part[:: max(1, 10 * n // QUERIES)].copy()
            stored[:, size - size // 10 :] = draw.integers(
                0, 1 << 64, (len(stored), size // 10), np.uint64
            )
            queries += list(stored)
        part = None
        start, passed = time.process_time(), time.perf_counter()
        with peak_of_own_memory() as peak:
            index.compact()
        built, passed = built + time.process_time() - start, time.perf_counter() - passed
        index.close()
        nbytes = sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))
        opening, opening_cpu = _opening(folder / "i")
        index = neardup.DurableIndex.open(folder / "i", similarity=0.8, readonly=True)
        planted = len(queries)
        queries += list(draw.integers(0, 1 << 64, (9 * planted, size), np.uint64))
        index.query_batch(queries, workers=1)
        rounds = []
        for _ in range(3):
            start = time.thread_time()
            hits = index.query_batch(queries, workers=1)
            rounds.append(time.thread_time() - start)
        singles = []
        for query in queries[:: max(1, len(queries) // SINGLE)]:
            start = time.perf_counter()
            index.query(query)
            singles.append(time.perf_counter() - start)
        index.close()
    finally:
        shutil.rmtree(folder)
    return {
        "value": min(rounds) / len(queries) * 1e6,
        "single_us": float(np.median(singles)) * 1e6,
        "opening_s": opening,
        "opening_cpu_s": opening_cpu,
        "build_cpu_us": built / n * 1e6,
        "compact_s": passed,
        "compact_mb": peak.bytes / 1e6,
        "disk_bytes_per_row": nbytes / n,
        "peak_bytes_per_row": memory("VmHWM") / n,
        "recall": len(set(hits["row"].to_pylist()) & set(range(planted))) / planted,
        "rows": n,
    }


def _parts(n: int, size: int, draw: Any) -> Iterator[Any]:
    """Documents, some at a time: uint64 (n, size)."""
    import numpy as np

    common = draw.integers(0, 1 << 64, 100_000, np.uint64)
    most = DISK_PART * DISK_FEATURES // size
    for first in range(0, n, most):
        part = draw.integers(0, 1 << 64, (min(most, n - first), size), np.uint64)
        part[:, : size // 5] = common[draw.integers(0, common.size, (len(part), size // 5))]
        yield part


def _opening(path: Path) -> tuple[float, float]:
    """Seconds that passed, and of the processor: the medians of five."""
    import neardup

    rounds = []
    for _ in range(5):
        start, processor = time.perf_counter(), time.process_time()
        neardup.DurableIndex.open(path, similarity=0.8, readonly=True).close()
        rounds.append((time.perf_counter() - start, time.process_time() - processor))
    passed, processor = (sorted(each)[2] for each in zip(*rounds, strict=True))
    return passed, processor


def peer(name: str, n: int, documented: bool) -> dict[str, Any]:
    """An index of a peer."""
    from cases.pairs import memory
    from harness import similar_peers

    texts = near_texts.make(n, seed=1)
    queries = mixed(texts, PEER_QUERIES)
    return similar_peers.measured(name, texts, queries, documented, lambda: memory("VmRSS"))
