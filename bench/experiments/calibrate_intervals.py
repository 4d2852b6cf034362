"""How often the intervals of `calibrate` hold the truth, and how wide they are, over many samples.

    python bench/experiments/calibrate_intervals.py [--seeds 300]

All pairs of a corpus at 0.3 or more are searched once, exactly; each seed draws documents, and the
pairs among them are what `calibrate` would have met. Two intervals are compared with the truth at
each similarity: `groups` counts the groups that the pairs at 0.3 make, each as one observation, as
neardup did before; `paired` is what it does now. Corpora are generated: verses of which some repeat
a formula, the likelier ones often (large groups that a sample hardly meets), and rows of products
that chain at 0.3. Those of ../shared/data are measured where they are. Prints, for each similarity,
the share of seeds whose interval holds the truth, how often the truth lies above and below it, and
the median of high / low.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
from pathlib import Path
from typing import Any, Final

import numpy as np

import neardup as nd
from neardup.hamming.match_graph import labels_of_pairs
from neardup.runtime.intervals import counted, kish, paired

DATA: Final = Path(__file__).resolve().parents[2].parent / "shared" / "data"
LOWEST: Final = 0.3
LEVELS: Final = (0.3, 0.5, 0.7, 0.8, 0.9)
SHARED: Final = {
    "reuters21578_en": 3000,
    "sms_spam_en": 800,
    "bib_dedupe_en": 2000,
    "lohelp_revisions_en-us": 1000,
    "livedoor_ja": 1500,
}
"""Corpora and the documents of a sample."""


def verses(count: int) -> list[str]:
    """Sentences of their own, and one in 25 by a formula: whole, with words changed, or longer."""
    generator = random.Random(1)
    words = [f"w{i}" for i in range(4000)]
    likely = [1 / (i + 5) for i in range(4000)]
    formulas = [generator.choices(words, likely, k=generator.randrange(6, 16)) for _ in range(400)]
    chances = [1 / (i + 1) ** 1.1 for i in range(400)]
    texts = []
    for _ in range(count):
        if generator.random() >= 0.04:
            texts.append(" ".join(generator.choices(words, likely, k=generator.randrange(8, 40))))
            continue
        text = list(generator.choices(formulas, chances)[0])
        for _ in range(generator.choice([0, 0, 1, 1, 2])):
            text[generator.randrange(len(text))] = generator.choice(words)
        if generator.random() < 0.4:
            text += generator.choices(words, likely, k=generator.randrange(1, 8))
        texts.append(" ".join(text))
    return texts


def products(count: int) -> list[str]:
    """Rows that share most of their words with many others; one in ten is a copy with a change."""
    generator, rows = random.Random(1), []
    for _ in range(count - count // 10):
        choose = generator.choice
        maker, seller = choose(["Apple", "Sony", "Acer", "Dell"]), generator.randrange(30)
        rows.append(
            f"{maker} {choose(['phone', 'tablet', 'case'])} model {generator.randrange(300)}"
            f" {choose(['black', 'white', 'red'])} number {generator.randrange(10**6)} by seller"
            f" {seller} in Leeds with {choose(['charger', 'cover'])} in box"
        )
    for _ in range(count // 10):
        words = generator.choice(rows).split()
        words[generator.randrange(len(words))] = "x"
        rows.append(" ".join(words))
    return rows


def by_groups(left: Any, group: Any) -> tuple[float, float]:
    """The interval that neardup gave before: groups at the lowest similarity, by Byar."""
    alone = kish(np.unique(group[left], return_counts=True)[1].tolist())
    each = left.size / alone if alone else 1.0
    low, high = counted(alone)
    return low * each, high * each


def by_documents(left: Any, right: Any) -> tuple[float, float]:
    """The interval that it gives now."""
    met = np.bincount(np.concatenate([left, right])).astype(np.float64)
    return paired(float(left.size), float(met @ met))


def measure(name: str, texts: list[str], taken: int, seeds: int) -> None:
    """Print the table of one corpus."""
    table, n = nd.similar_pairs(texts, LOWEST), len(texts)
    left, right, score = (table[x].to_numpy() for x in ("left", "right", "similarity"))
    generator, scale = np.random.default_rng(7), n * (n - 1) / (taken * (taken - 1))
    print(f"{name}: {n:,} documents, samples of {taken:,}, {seeds} seeds")
    results: dict[tuple[float, str], list[tuple[float, float]]] = {}
    for _ in range(seeds):
        chosen = np.zeros(n, np.bool_)
        chosen[generator.choice(n, taken, replace=False)] = True
        both = chosen[left] & chosen[right]
        one, other, alike = left[both], right[both], score[both]
        group = labels_of_pairs(n, one, other)
        for level in LEVELS:
            at = alike >= level - 1e-9
            for kind, (low, high) in (
                ("groups", by_groups(one[at], group)),
                ("paired", by_documents(one[at], other[at])),
            ):
                results.setdefault((level, kind), []).append((low * scale, high * scale))
    for level in LEVELS:
        truth = int((score >= level - 1e-9).sum())
        for kind in ("groups", "paired"):
            ends = results[level, kind]
            above = sum(high < truth for _, high in ends)
            below = sum(low > truth for low, _ in ends)
            width = np.median([high / low if low else math.inf for low, high in ends])
            print(
                f"  {level:g}  {truth:8,} pairs  {kind}: {1 - (above + below) / seeds:.3f} hold,"
                f" truth above {above}, below {below}; high / low {width:.3g}"
            )


def main() -> None:
    """Measure all corpora."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    seeds = parser.parse_args().seeds
    measure("verses", verses(30_000), 4000, seeds)
    measure("verses", verses(30_000), 1500, seeds)
    measure("products", products(20_000), 3000, seeds)
    for name, taken in SHARED.items():
        path = DATA / name / "docs.jsonl.gz"
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                measure(name, [json.loads(line)["text"] for line in lines], taken, seeds)


if __name__ == "__main__":
    main()
