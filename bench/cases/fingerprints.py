"""Fingerprints of the same documents: ours by recipe and thread count, and three peers.

All take 3-word shingles except PyPI simhash, which has only its own 4-character ones. The two slow
peers get the first part of the text; rates are million bytes of UTF-8 text a second.
"""

from __future__ import annotations

import re
import statistics
import time
from typing import TYPE_CHECKING, Any

from harness import corpora
from harness.model import OURS, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Callable

CASE = "fingerprints"
LEAST_REPEATS = 3
LEAST_SECONDS = 1.0


def rows(quick: bool) -> list[Row]:
    """Every language by recipe and threads, and English against each peer."""
    result = corpora.language_corpora(1 if quick else 30)
    table: list[Row] = []
    for language, facts in result.items():
        path = facts["path"]
        count = ours_at(path, weight="count")
        name = f"fingerprints, {language}"
        target = 4 if language == "English" else None
        gaoya = Measurement.of(CASE, "gaoya", "gaoya", path=path)
        table.append(Row(f"{name}: 64 bits, count, against gaoya", count, (gaoya,), target))
        if language == "English":
            table += slow_peers(count, path, 0.2 if quick else 2)
        table += own_rows(name, count, path)
    return table


def ours_at(path: str, weight: str = "set", bits: int = 64, workers: int = 1) -> Measurement:
    return Measurement.of(CASE, "ours", OURS, path=path, weight=weight, bits=bits, workers=workers)


def slow_peers(count: Measurement, path: str, most_mb: float) -> list[Row]:
    options = {"path": path, "most_mb": most_mb}
    simhash = Measurement.of(CASE, "pypi_simhash", "simhash", **options)
    pybind = Measurement.of(CASE, "simhash_pybind", "simhash-pybind", **options)
    name = "fingerprints, English: 64 bits, count, against"
    return [
        Row(f"{name} PyPI simhash", count, (simhash,), 150),
        Row(f"{name} simhash-pybind", count, (pybind,), 40),
    ]


def own_rows(name: str, count: Measurement, path: str) -> list[Row]:
    narrow = ours_at(path)
    return [
        Row(f"{name}: 64 bits, set, against count", narrow, (count,), 0.6),
        Row(f"{name}: 128 bits, set, against 64", ours_at(path, bits=128), (narrow,)),
        Row(f"{name}: 256 bits, set, against 64", ours_at(path, bits=256), (narrow,), 0.5),
        Row(f"{name}: two threads against one", ours_at(path, workers=2), (narrow,), 1.8),
    ]


def rate(texts: list[str], work: Callable[[], object]) -> dict[str, Any]:
    """Median million bytes a second of the repeats in this process."""
    size = corpora.megabytes(texts)
    times: list[float] = []
    while len(times) < LEAST_REPEATS or sum(times) < LEAST_SECONDS:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    value = size / statistics.median(times)
    return {"value": value, "repeats": len(times), "documents": len(texts), "text_mb": size}


def ours(path: str, weight: str, bits: int, workers: int) -> dict[str, Any]:
    import pyarrow as pa

    import neardup

    texts = corpora.read_texts(path)
    column = pa.array(texts, pa.large_string())
    recipe = neardup.Recipe(ngram=3, bits=bits, weight=weight)
    neardup.fingerprints(column[:10], recipe=recipe, workers=workers)
    return rate(texts, lambda: neardup.fingerprints(column, recipe=recipe, workers=workers))


def gaoya(path: str) -> dict[str, Any]:
    from gaoya.simhash import SimHashStringIndex

    texts = corpora.read_texts(path)

    def insert_all() -> None:
        index = SimHashStringIndex(analyzer="word", ngram_range=(3, 3), lowercase=True)
        for row, text in enumerate(texts):
            index.insert_document(row, text)

    return rate(texts, insert_all)


def pypi_simhash(path: str, most_mb: float) -> dict[str, Any]:
    from simhash import Simhash

    texts = corpora.read_texts(path, most_mb)
    return rate(texts, lambda: [Simhash(text).value for text in texts])


def simhash_pybind(path: str, most_mb: float) -> dict[str, Any]:
    import simhash

    texts = corpora.read_texts(path, most_mb)

    def fingerprint(text: str) -> object:
        words = re.findall(r"\w+", text.lower())
        features = (" ".join(run).encode() for run in simhash.shingle(words, 3))
        return simhash.compute([simhash.unsigned_hash(feature) for feature in features])

    return rate(texts, lambda: [fingerprint(text) for text in texts])
