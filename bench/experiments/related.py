"""How often the ten nearest are of the query's class, and how well wide fingerprints find them.

    python bench/experiments/related.py

Needs SciPy, and the labelled collections of ../shared/data: a class is the site of a Japanese news
article, or the folder of a help page (of one release). Decision 0013 and docs/guide/related.md
have the figures.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

import neardup as nd
from neardup.fingerprinting.sets_of_texts import feature_sets

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.corpora import SHARED

QUERIES: Final = 600
NEAREST: Final = 10
BITS: Final = 1024
COLLECTIONS: Final = (
    "livedoor_ja",
    "lohelp_revisions_tr",
    "lohelp_revisions_en-us",
    "reuters21578_en",
)


def documents(name: str) -> tuple[list[str], Any]:
    """Texts, and the number of each one's class: int64 (n,)."""
    path = SHARED / "data" / name / "docs.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    if name.startswith("lohelp"):
        rows = [row for row in rows if row["id"].endswith("@25.2")]
        classes = ["/".join(row["id"].split("@")[0].split("/")[:2]) for row in rows]
    else:
        classes = [row["id"].rpartition("-")[0] for row in rows]
    return [row["text"] for row in rows], np.unique(classes, return_inverse=True)[1]


def vectors(texts: list[str], ngram: int) -> Any:
    """A row a document, a column a feature: 1 where it has it."""
    features, offsets = feature_sets(texts, nd.Recipe(ngram=ngram))
    known, columns = np.unique(features, return_inverse=True)
    ones = np.ones(len(features))
    return sp.csr_matrix((ones, columns, offsets), shape=(len(texts), len(known)))


def nearest(scores: Any, queries: Any, count: int) -> Any:
    """The most similar of each row but the query itself."""
    scores[np.arange(len(queries)), queries] = -np.inf
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


def jaccard(ones: Any, queries: Any) -> Any:
    """Similarities of the queries and all."""
    shared = np.asarray((ones[queries] @ ones.T).todense())
    sizes = np.asarray(ones.sum(axis=1)).ravel()
    return shared / np.maximum(1, sizes[queries][:, None] + sizes[None, :] - shared)


def cosine(weighted: Any, queries: Any) -> Any:
    """Cosines of the queries and all."""
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    scaled = (sp.diags(1 / np.maximum(lengths, 1e-9)) @ weighted).tocsr()
    return np.asarray((scaled[queries] @ scaled.T).todense())


def recalls(weighted: Any, queries: Any, exact: Any, random: Any) -> dict[str, float]:
    """Which share of the exact nearest is among so many nearest by random signs."""
    codes = np.empty((weighted.shape[0], BITS), np.float32)
    for bit in range(0, BITS, 128):
        signs = random.integers(0, 2, (weighted.shape[1], 128)) * 2.0 - 1.0
        codes[:, bit : bit + 128] = np.sign(weighted @ signs)
    results = {}
    for bits in (256, BITS):
        order = nearest(codes[queries, :bits] @ codes[:, :bits].T, queries, 4000)
        for count in (500, 1000, 2000, 4000):
            hits = [len(np.intersect1d(a, b[:count])) for a, b in zip(exact, order, strict=True)]
            results[f"{bits} bits, {count}"] = float(np.mean(hits)) / NEAREST
    return results


def measure(name: str) -> dict[str, Any]:
    """All figures of a collection."""
    texts, classes = documents(name)
    random = np.random.default_rng(0)
    queries = random.permutation(len(texts))[:QUERIES]

    def agreement(scores: Any) -> float:
        hits = nearest(scores, queries, NEAREST)
        return float((classes[hits] == classes[queries][:, None]).mean())

    shares = [count / len(texts) for count in Counter(classes.tolist()).values()]
    figures: dict[str, Any] = {"documents": len(texts), "classes": len(shares)}
    figures["chance"] = sum(share**2 for share in shares)
    figures["three words, jaccard"] = agreement(jaccard(vectors(texts, 3), queries))
    ones = vectors(texts, 1)
    weights = np.log((1 + len(texts)) / (1 + np.asarray(ones.sum(axis=0)).ravel())) + 1
    weighted = (ones @ sp.diags(weights)).tocsr()
    figures["words, jaccard"] = agreement(jaccard(ones, queries))
    figures["words, cosine, equal"] = agreement(cosine(ones, queries))
    figures["words, cosine, idf"] = agreement(cosine(weighted, queries))
    exact = nearest(cosine(weighted, queries), queries, NEAREST)
    return figures | recalls(weighted, queries, exact, random)


def main() -> None:
    """Print every collection's figures."""
    for name in COLLECTIONS:
        for what, value in measure(name).items():
            print(f"{name:24} {what:24} {value:.3f}")


if __name__ == "__main__":
    main()
