"""Pairs by containment of single words, where sizes are far apart: parts of texts among texts.

Texts of 100 to 300 words with subjects (`harness/topic_texts.py`), of every second one only a part
of 5 to 60 words, at similarity 0.9. "value" is processor seconds of `similar_pairs`, features
included; "greedy_s" of `dedup`; "pairs" how many there are.
"""

from __future__ import annotations

import random
import time
from typing import Any

from harness import topic_texts
from harness.model import OURS, Measurement, Row

CASE = "containment"
MOST_ROUNDS = 2
SHORTEST, LONGEST = 5, 60


def rows(quick: bool) -> list[Row]:
    """A row for every size."""
    report_rows = []
    lower: dict[str, Any] = {"better": "lower"}
    for n in [2_000] if quick else [5_000, 10_000, 20_000]:
        run = Measurement.of(CASE, "ours", OURS, n=n)
        at = f"containment 0.9 of single words, {n:,} texts of 5 to 300 words"
        report_rows += [
            Row(f"{at}: pairs", run, unit="cpu s", **lower),
            Row(f"{at}: greedy", run, key="greedy_s", unit="cpu s", **lower),
        ]
    return report_rows


def ours(n: int) -> dict[str, Any]:
    """Find the pairs, and keep one of each."""
    import neardup

    draw = random.Random(9)
    texts = topic_texts.make(n, seed=12)
    for at in range(0, n, 2):
        words = texts[draw.randrange(n)].split()
        length = draw.randrange(SHORTEST, LONGEST)
        first = draw.randrange(max(1, len(words) - length))
        texts[at] = " ".join(words[first : first + length])
    options: dict[str, Any] = {"measure": "containment", "recipe": neardup.Recipe(ngram=1)}
    neardup.similar_pairs(texts[:200], 0.9, **options)  # compiles
    neardup.dedup(texts[:200], similarity=0.9, **options)
    start = time.process_time()
    pairs = neardup.similar_pairs(texts, 0.9, **options)
    middle = time.process_time()
    neardup.dedup(texts, similarity=0.9, **options)
    return {
        "value": middle - start, "greedy_s": time.process_time() - middle, "pairs": len(pairs),
    }  # fmt: skip
