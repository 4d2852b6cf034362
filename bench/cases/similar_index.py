"""Asking an index by similarity: texts of 2 kB, one in ten of the queries planted at 0.8 to 0.9.

A text has 300 words: three fifths are its own, and two fifths are phrases of ten words out of 2,000
that all texts share, so that about a third of the features are common. "value" is microseconds a
query of a batch, tokenising included; "single_us" of one call a query; "new_us" of `add_if_new` on
disk with a commit for every 1,000; "recall" the share of planted partners that was found. Peers
hold Python objects and store fewer rows: "rows" says how many.
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
PEER_ROWS = 20_000
PEER_QUERIES = 1_000


def rows(quick: bool) -> list[Row]:
    """A row for every figure, against datasketch."""
    found = []
    for n in [20_000] if quick else [100_000, 1_000_000]:
        ours = Measurement.of(CASE, "ours", OURS, n=n)
        peer = Measurement.of(CASE, "minhash_lsh", "datasketch", n=min(n, PEER_ROWS))
        lower: dict[str, Any] = {"better": "lower"}
        at = f"index by similarity, n = {n:,}"
        found += [
            Row(f"{at}: batch", ours, (peer,), 20, unit="us", **lower),
            Row(f"{at}: single query", ours, (), 300, key="single_us", unit="us", **lower),
            Row(f"{at}: add_if_new, on disk", ours, (), 66, key="new_us", unit="us", **lower),
            Row(f"{at}: build", ours, (peer,), key="build_us", unit="us", **lower),
            Row(f"{at}: memory", ours, (), key="bytes_per_row", unit="B/row", **lower),
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
    start = time.perf_counter()
    table = index.query_batch(queries)
    batch = time.perf_counter() - start
    hits = set(zip(table["row"].to_pylist(), table["id"].to_pylist(), strict=True))
    stored = [
        (q, neardup.Index(similarity=0.8, recipe=neardup.Recipe())) for q in list(partners)[:200]
    ]
    due = found = 0
    for q, one in stored:  # is the planted pair at 0.8 or more?
        one.add(0, texts[partners[q]])
        if one.query(queries[q]):
            due, found = due + 1, found + ((q, partners[q]) in hits)
    singles = []
    for text in queries[:SINGLE]:
        start = time.perf_counter()
        index.query(text)
        singles.append(time.perf_counter() - start)
    return {
        "value": batch / QUERIES * 1e6,
        "single_us": float(np.median(singles)) * 1e6,
        "new_us": _new(make(NEW, seed=5)),
        "build_us": built / n * 1e6,
        "bytes_per_row": size / n,
        "recall": found / due,
        "rows": n,
    }


def _new(texts: list[str]) -> float:
    """Microseconds of an add_if_new with a commit for every 1,000."""
    import neardup

    folder = Path(tempfile.mkdtemp(dir="."))
    try:
        index = neardup.DurableIndex.open(folder / "i", similarity=0.8, recipe=neardup.Recipe())
        start = time.perf_counter()
        for i, text in enumerate(texts):
            index.add_if_new(i, text)
            if i % 1000 == 999:
                index.commit()
        seconds = time.perf_counter() - start
        index.close()
    finally:
        shutil.rmtree(folder)
    return seconds / len(texts) * 1e6


def minhash_lsh(n: int) -> dict[str, Any]:
    """MinHashLSH of datasketch, 128 permutations, not verified."""
    import re

    from datasketch import MinHash, MinHashLSH

    def sketch(text: str) -> Any:
        words = re.findall(r"\w+", text.lower())
        found = MinHash(num_perm=128)
        found.update_batch([" ".join(words[i : i + 3]).encode() for i in range(len(words) - 2)])
        return found

    texts = make(n, seed=1)
    queries, partners = planted(texts, PEER_QUERIES)
    start = time.perf_counter()
    index = MinHashLSH(threshold=0.8, num_perm=128)
    for i, text in enumerate(texts):
        index.insert(i, sketch(text))
    built = time.perf_counter() - start
    start = time.perf_counter()
    answers = [index.query(sketch(query)) for query in queries]
    seconds = time.perf_counter() - start
    return {
        "value": seconds / len(queries) * 1e6,
        "build_us": built / n * 1e6,
        "recall": sum(i in answers[q] for q, i in partners.items()) / len(partners),
        "rows": n,
    }
