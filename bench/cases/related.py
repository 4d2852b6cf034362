"""Related documents: the ten nearest by weighted cosine and by similarity, however unlike.

Texts of 100 to 300 words with subjects (`harness/topic_texts.py`), single words, weights by idf.
"value" is milliseconds of processor time a query by cosine at the median, once there are lists;
"most_ms" of nine in ten; "similar_ms" by similarity (Jaccard). "first_ms" is one of the first
eight, which compare with every document; "fewer_ms" is one by similarity once nine in ten
documents of the older half are removed; "recall" says how many of their ten are found again by
lists. "lists_s" is what the ninth takes, which makes them. `disk` asks a folder, opened again.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import topic_texts
from harness.model import OURS, Measurement, Row

CASE = "related"
MOST_ROUNDS = 1
NEAREST = 10
FIRST = 8
QUERIES = 200
LEARNED = 50_000
PART = 50_000


def rows(quick: bool) -> list[Row]:
    """A row for every figure, in memory and on disk."""
    report_rows = []
    lower: dict[str, Any] = {"better": "lower"}
    for n in [5_000] if quick else [100_000, 1_000_000]:
        for kind in ("memory", "disk"):
            run = Measurement.of(CASE, kind, OURS, n=n)
            at = f"{NEAREST} related of {n:,} in {'memory' if kind == 'memory' else 'a folder'}"
            report_rows += [
                Row(f"{at}: by cosine", run, (), 5, unit="cpu ms", **lower),
                Row(f"{at}: nine in ten take", run, key="most_ms", unit="cpu ms", **lower),
                Row(f"{at}: by similarity", run, key="similar_ms", unit="cpu ms", **lower),
                Row(f"{at}: the first eight", run, key="first_ms", unit="cpu ms", **lower),
                Row(f"{at}: many removed", run, key="fewer_ms", unit="cpu ms", **lower),
                Row(f"{at}: making lists", run, key="lists_s", unit="cpu s", **lower),
                Row(f"{at}: recall of the ten", run, key="recall", unit=""),
            ]
    return report_rows


def memory(n: int) -> dict[str, Any]:
    """An index in memory."""
    import neardup

    index = neardup.Index(similarity=0.8, recipe=learned())
    fill(index, n)
    index.compact()
    return asked(index)


def disk(n: int) -> dict[str, Any]:
    """A folder, opened again."""
    import neardup

    folder, recipe = Path(tempfile.mkdtemp(prefix="neardup-bench-")), learned()
    try:
        with neardup.DurableIndex.open(folder / "i", similarity=0.8, recipe=recipe) as index:
            fill(index, n)
            index.compact()
        with neardup.DurableIndex.open(folder / "i") as index:
            return asked(index)
    finally:
        shutil.rmtree(folder)


def learned() -> Any:
    """A recipe of single words, weighted by how many of some other texts have each."""
    import neardup

    texts = topic_texts.make(LEARNED, seed=3)
    table = neardup.DocumentFrequencies.learn(texts, neardup.Recipe(ngram=1))
    return neardup.Recipe(ngram=1, weight="tfidf", idf=table.digest)


def fill(index: Any, n: int) -> None:
    """Add the texts."""
    for first in range(0, n, PART):
        count = min(PART, n - first)
        index.add(range(first, first + count), topic_texts.make(count, seed=10 + first))


def asked(index: Any) -> dict[str, Any]:
    """What queries of other texts take."""
    import numpy as np

    texts = topic_texts.make(QUERIES, seed=2)

    def ask(text: str, by: str) -> tuple[float, list[tuple[Any, float]]]:
        start = time.process_time()
        hits = index.nearest(text, NEAREST, by)
        return (time.process_time() - start) * 1e3, hits

    first = [ask(text, "cosine") for text in texts[:FIRST]]
    lists = ask(texts[0], "cosine")[0]
    times = {by: [ask(text, by) for text in texts] for by in ("cosine", "similarity")}
    count = [
        len({hit[0] for hit in known} & {hit[0] for hit in again}) / len(known)
        for (_, known), (_, again) in zip(first, times["cosine"], strict=False)
    ]
    spent = {by: np.array([each for each, _ in those]) for by, those in times.items()}
    index.remove([row for row in range(len(index) // 2) if row % 10])
    fewer = [ask(text, "similarity")[0] for text in texts]
    return {
        "fewer_ms": float(np.median(fewer)),
        "value": float(np.median(spent["cosine"])),
        "most_ms": float(np.percentile(spent["cosine"], 90)),
        "similar_ms": float(np.median(spent["similarity"])),
        "first_ms": float(np.median([each for each, _ in first])),
        "lists_s": lists / 1e3,
        "recall": float(np.mean(count)),
    }
