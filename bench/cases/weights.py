"""Weights and tokenisers: TF-IDF against counts, keyword recipes against jieba.analyse alone."""

from __future__ import annotations

import gzip
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import corpora
from harness.model import OURS, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Callable

CASE = "weights"
CHINESE = Path(__file__).resolve().parents[3] / "shared" / "data" / "zh_laws" / "docs.jsonl.gz"
REPEATS = 5


def rows(quick: bool) -> list[Row]:
    """TF-IDF of words and of shingles; keywords and words by jieba, where there is Chinese text."""
    path = corpora.language_corpora(1 if quick else 30)["English"]["path"]
    table: list[Row] = []
    for ngram, target in ((1, 0.6), (3, 0.6)):
        count = ours_at(path, "count", ngram)
        name = f"weights, English, {ngram} words a feature"
        table.append(
            Row(f"{name}: tfidf against count", ours_at(path, "tfidf", ngram), (count,), target)
        )
    if CHINESE.exists():
        most = 30 if quick else 300
        keywords = Measurement.of(CASE, "keywords", OURS, documents=most)
        analyse = Measurement.of(CASE, "jieba_analyse", OURS, documents=most)
        words = Measurement.of(CASE, "words", OURS, documents=most)
        jieba = Measurement.of(CASE, "jieba_words", OURS, documents=most)
        name = "weights, Chinese laws"
        table += [
            Row(
                f"{name}: fingerprints of 20 keywords against jieba.analyse",
                keywords,
                (analyse,),
                1,
            ),
            Row(f"{name}: fingerprints of words against jieba.lcut", words, (jieba,), 1),
        ]
    return table


def ours_at(path: str, weight: str, ngram: int) -> Measurement:
    return Measurement.of(CASE, "ours", OURS, path=path, weight=weight, ngram=ngram)


def ours(path: str, weight: str, ngram: int) -> dict[str, Any]:
    import pyarrow as pa

    import neardup

    texts = corpora.read_texts(path)
    column = pa.array(texts, pa.large_string())
    idf = None
    if weight == "tfidf":
        idf = neardup.DocumentFrequencies.learn(column, neardup.Recipe(ngram=ngram)).digest
    recipe = neardup.Recipe(ngram=ngram, weight=weight, idf=idf)
    return rate(texts, lambda: neardup.fingerprints(column, recipe, workers=1))


def keywords(documents: int) -> dict[str, Any]:
    import neardup

    recipe = neardup.Recipe(tokens="jieba-keywords", ngram=1, weight="tfidf", top=20)
    texts = chinese(documents)
    return rate(texts, lambda: neardup.fingerprints(texts, recipe, workers=1))


def words(documents: int) -> dict[str, Any]:
    import neardup

    texts = chinese(documents)
    return rate(
        texts, lambda: neardup.fingerprints(texts, neardup.Recipe(tokens="jieba"), workers=1)
    )


def jieba_analyse(documents: int) -> dict[str, Any]:
    import jieba.analyse

    texts = chinese(documents)
    return rate(texts, lambda: [jieba.analyse.extract_tags(x, 20, withWeight=True) for x in texts])


def jieba_words(documents: int) -> dict[str, Any]:
    import jieba

    texts = chinese(documents)
    return rate(texts, lambda: [jieba.lcut(text) for text in texts])


def chinese(documents: int) -> list[str]:
    with gzip.open(CHINESE, "rt", encoding="utf8") as file:
        return [json.loads(line)["text"] for _, line in zip(range(documents), file, strict=False)]


def rate(texts: list[str], work: Callable[[], object]) -> dict[str, Any]:
    """Million bytes a second of processor time, the best repeat; the first one is not counted."""
    size = corpora.megabytes(texts)
    work()
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < REPEATS:
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    value = size / min(times)
    median = size / statistics.median(times)
    return {"value": value, "median": median, "repeats": len(times), "text_mb": size}
