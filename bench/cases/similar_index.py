"""Asking an index by similarity: texts of 2 kB, one in ten of the queries planted at 0.8 to 0.9.

A text has 300 words: three fifths are its own, and two fifths are phrases of ten words out of 2,000
that all texts share, so that about a third of the features are common. "value" is microseconds a
query of a batch, tokenising included, and "cpu_us" of processor time; "single_us" of one call a
query; "new_us" of `add_if_new` on disk with a commit for every 1,000, and "new_cpu_us" of processor
time; "recall" the share of those planted partners that is found that are at 0.8 or more by sets of
three words, "precision" the share of what is found that is. Peers are asked one by one, by
processor time, and store fewer rows: "rows" says how many. `disk` is an index on disk of features
that are given: a query of a batch on one thread, one alone, and the seconds that opening takes.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "similar_index"
MOST_ROUNDS = 1
WORDS = 300
PHRASES = 2_000
QUERIES = 10_000
SINGLE = 2_000
NEW = 10_000
PEER_ROWS = 100_000
DISK_ROWS = (1_000_000, 10_000_000)
DISK_FEATURES = 20
DISK_PART = 250_000
PERMUTATIONS = 128
PEER_QUERIES = 1_000


def rows(quick: bool) -> list[Row]:
    """A row for every figure, against the peers."""
    found = []
    lower: dict[str, Any] = {"better": "lower"}
    for n in [20_000] if quick else [100_000, 1_000_000]:
        ours = Measurement.of(CASE, "ours", OURS, n=n)
        stored = min(n, PEER_ROWS)
        peers = tuple(
            Measurement.of(CASE, name, name, n=stored) for name in ("datasketch", "rensa", "gaoya")
        )
        at = f"index by similarity, n = {n:,}"
        found += [
            Row(f"{at}: batch", ours, peers, 20, unit="us", **lower),
            Row(f"{at}: single query", ours, (), 300, key="single_us", unit="us", **lower),
            Row(f"{at}: add_if_new, on disk", ours, (), 66, key="new_us", unit="us", **lower),
            Row(f"{at}: build", ours, peers, key="build_us", unit="us", **lower),
            Row(f"{at}: memory", ours, peers, key="bytes_per_row", unit="B/row", **lower),
            Row(f"{at}: recall", ours, peers, key="recall", unit=""),
            Row(f"{at}: precision", ours, peers, key="precision", unit=""),
        ]
    for n in DISK_ROWS[: 0 if quick else None]:
        run = Measurement.of(CASE, "disk", OURS, n=n)
        at = f"index by similarity on disk, {n:,} of {DISK_FEATURES} features"
        found += [
            Row(f"{at}: batch", run, unit="us", **lower),
            Row(f"{at}: single query", run, key="single_us", unit="us", **lower),
            Row(f"{at}: opening", run, (), 0.2, key="opening_s", unit="s", **lower),
            Row(f"{at}: size", run, key="disk_bytes_per_row", unit="B/row", **lower),
        ]
    return found


def make(n: int, seed: int) -> list[str]:
    """Texts."""
    import random

    rng = random.Random(4)
    phrases = [" ".join(f"w{rng.randrange(10**5)}" for _ in range(10)) for _ in range(PHRASES)]
    rng = random.Random(seed)
    texts = []
    for i in range(n):
        parts = [f"own{seed}x{i}y{j} then{rng.randrange(10**6)}" for j in range(WORDS * 3 // 10)]
        for _ in range(WORDS // 25):
            parts[rng.randrange(len(parts))] += " " + rng.choice(phrases)
        texts.append(" ".join(parts))
    return texts


def planted(texts: list[str], count: int) -> tuple[list[str], dict[int, int]]:
    """Queries, every tenth of them near a stored text; and which one that is."""
    import random

    rng = random.Random(9)
    queries, partners = make(count, seed=77), {}
    for q in range(0, count, 10):
        partners[q] = rng.randrange(len(texts))
        words = texts[partners[q]].split()
        for _ in range(rng.choice((4, 6, 8))):
            words[rng.randrange(len(words))] = f"new{rng.randrange(10**9)}"
        queries[q] = " ".join(words)
    return queries, partners


def ours(n: int) -> dict[str, Any]:
    """In memory: build, ask; on disk: add what is new."""
    import numpy as np

    import neardup
    from cases.pairs import memory

    texts = make(n, seed=1)
    queries, partners = planted(texts, QUERIES)
    warm = neardup.Index(similarity=0.8, recipe=neardup.Recipe())
    warm.add(range(3000), texts[:3000])
    warm.query_batch(queries[:10])
    warm.query(queries[0])
    before, start = memory("VmRSS"), time.perf_counter()
    index = neardup.Index(similarity=0.8, recipe=neardup.Recipe())
    for first in range(0, n, 100_000):
        index.add(range(first, min(n, first + 100_000)), texts[first : first + 100_000])
    built, size = time.perf_counter() - start, memory("VmRSS") - before
    start, processor = time.perf_counter(), time.process_time()
    table = index.query_batch(queries)
    batch, processor = time.perf_counter() - start, time.process_time() - processor
    hits = set(zip(table["row"].to_pylist(), table["id"].to_pylist(), strict=True))
    singles = []
    for text in queries[:SINGLE]:
        start = time.perf_counter()
        index.query(text)
        singles.append(time.perf_counter() - start)
    wall, cpu = _new(make(NEW, seed=5))
    return {
        "value": batch / QUERIES * 1e6,
        "cpu_us": processor / QUERIES * 1e6,
        "single_us": float(np.median(singles)) * 1e6,
        "new_us": wall,
        "new_cpu_us": cpu,
        "build_us": built / n * 1e6,
        "bytes_per_row": size / n,
        "rows": n,
    } | quality(texts, queries, partners, hits)


def quality(
    texts: list[str], queries: list[str], partners: dict[int, int], hits: set[tuple[int, int]]
) -> dict[str, float]:
    """Recall of the planted partners, and the precision of all (query, row) that were found."""
    due = {pair for pair in partners.items() if similar(queries[pair[0]], texts[pair[1]])}
    right = sum(similar(queries[q], texts[row]) for q, row in hits)
    return {"recall": len(due & hits) / len(due), "precision": right / max(1, len(hits))}


def similar(text: str, other: str) -> bool:
    """Whether two texts are similar by 0.8 or more."""
    mine, theirs = set(shingles(text)), set(shingles(other))
    shared = len(mine & theirs)
    return 10 * shared >= 8 * (len(mine) + len(theirs) - shared)


def shingles(text: str) -> list[str]:
    """Every three words."""
    import re

    words = re.findall(r"\w+", text.lower())
    return [" ".join(words[i : i + 3]) for i in range(len(words) - 2)]


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


def disk(n: int) -> dict[str, Any]:
    """On disk, compacted, features given: a fifth are common, one in ten queries planted."""
    import numpy as np

    import neardup
    from cases.pairs import memory

    draw = np.random.default_rng(5)
    common = draw.integers(0, 1 << 64, 100_000, np.uint64)
    folder = Path(tempfile.mkdtemp(dir="."))
    queries: list[Any] = []
    try:
        index = neardup.DurableIndex.open(folder / "i", similarity=0.8)
        built = 0.0
        for first in range(0, n, DISK_PART):
            part = draw.integers(0, 1 << 64, (DISK_PART, DISK_FEATURES), np.uint64)
            chosen = draw.integers(0, common.size, (DISK_PART, DISK_FEATURES // 5))
            part[:, : DISK_FEATURES // 5] = common[chosen]
            start = time.process_time()
            index.add(np.arange(first, first + DISK_PART), part)
            index.commit()
            built += time.process_time() - start
            stored = part[:: max(1, 10 * n // QUERIES)].copy()
            stored[:, -2:] = draw.integers(0, 1 << 64, (len(stored), 2), np.uint64)
            queries += list(stored)
        start = time.process_time()
        index.compact()
        built += time.process_time() - start
        index.close()
        size = sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))
        start = time.perf_counter()
        index = neardup.DurableIndex.open(folder / "i", similarity=0.8, readonly=True)
        opening = time.perf_counter() - start
        planted = len(queries)
        fresh = draw.integers(0, 1 << 64, (9 * planted, DISK_FEATURES), np.uint64)
        queries += list(fresh)
        index.query_batch(queries[:1000], workers=1)
        start = time.thread_time()
        found = index.query_batch(queries, workers=1)
        batch = time.thread_time() - start
        singles = []
        for query in queries[:: max(1, len(queries) // SINGLE)]:
            start = time.perf_counter()
            index.query(query)
            singles.append(time.perf_counter() - start)
        index.close()
    finally:
        shutil.rmtree(folder)
    return {
        "value": batch / len(queries) * 1e6,
        "single_us": float(np.median(singles)) * 1e6,
        "opening_s": opening,
        "build_cpu_us": built / n * 1e6,
        "disk_bytes_per_row": size / n,
        "peak_bytes_per_row": memory("VmHWM") / n,
        "recall": len(set(found["row"].to_pylist()) & set(range(planted))) / planted,
        "rows": n,
    }


def datasketch(n: int) -> dict[str, Any]:
    """MinHashLSH, 128 permutations, not verified."""
    from datasketch import MinHash, MinHashLSH

    def sketch(text: str) -> Any:
        found = MinHash(num_perm=PERMUTATIONS)
        found.update_batch([each.encode() for each in shingles(text)])
        return found

    index = MinHashLSH(threshold=0.8, num_perm=PERMUTATIONS)
    return peer(n, lambda i, text: index.insert(i, sketch(text)), lambda x: index.query(sketch(x)))


def rensa(n: int) -> dict[str, Any]:
    """Its index of 128 permutations in 16 bands of 8, not verified."""
    from rensa import RMinHash, RMinHashLSH

    def sketch(text: str) -> Any:
        found = RMinHash(num_perm=PERMUTATIONS, seed=42)
        found.update(shingles(text))
        return found

    index = RMinHashLSH(threshold=0.8, num_perm=PERMUTATIONS, num_bands=16)
    return peer(n, lambda i, text: index.insert(i, sketch(text)), lambda x: index.query(sketch(x)))


def gaoya(n: int) -> dict[str, Any]:
    """MinHashStringIndex of 20 bands of 5, which tokenises itself and compares signatures."""
    from gaoya.minhash import MinHashStringIndex

    index = MinHashStringIndex(
        hash_size=32, jaccard_threshold=0.8, num_bands=20, band_size=5, analyzer="word",
        lowercase=True, ngram_range=(3, 3),
    )  # fmt: skip
    return peer(n, index.insert_document, index.query)


def peer(n: int, insert: Any, query: Any) -> dict[str, Any]:
    """Fill an index with texts, one at a time, and ask it."""
    from cases.pairs import memory

    texts = make(n, seed=1)
    queries, partners = planted(texts, PEER_QUERIES)
    before, start = memory("VmRSS"), time.process_time()
    for i, text in enumerate(texts):
        insert(i, text)
    built, size = time.process_time() - start, memory("VmRSS") - before
    start = time.process_time()
    answers = [query(text) for text in queries]
    seconds = time.process_time() - start
    hits = {(q, int(i)) for q, found in enumerate(answers) for i in found}
    return {
        "value": seconds / len(queries) * 1e6,
        "build_us": built / n * 1e6,
        "bytes_per_row": size / n,
        "rows": n,
    } | quality(texts, queries, partners, hits)
