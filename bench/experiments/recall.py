"""Is a banded search (`--recall` below 1) ever three times as quick as the exact one?

    python bench/experiments/recall.py 1000000
    python bench/experiments/recall.py 1000000 chained chars 3 0.5

Seeded texts with one tenth of edited copies, chains of words of real titles with as many copies,
and each corpus of ../shared/data that is there:
processor seconds of `nd.dedup` with everything in memory, exact and at recalls of 0.95 and 0.99,
and how many documents each drops. A line of JSON for each setting, which runs after a warm-up.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.json

import neardup as nd

WORDS = 200_000
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
SETTINGS: tuple[tuple[str, int, float], ...] = (
    ("words", 3, 0.8),
    ("words", 1, 0.8),
    ("words", 1, 0.5),
    ("chars", 3, 0.8),
    ("chars", 3, 0.5),
)


def titles(count: int) -> pa.Array:
    """Titles of 6 to 12 words by Zipf's law; one in ten is an earlier one with a word changed."""
    draw = np.random.default_rng(7)
    letters = draw.integers(97, 123, (WORDS, 9)).astype(np.uint8)
    lengths = draw.integers(2, 10, WORDS)
    vocabulary = pa.array(
        [bytes(row[:n]).decode() for row, n in zip(letters, lengths, strict=True)]
    )
    weights = 1 / np.arange(10, WORDS + 10)
    ends = np.cumsum(weights / weights.sum())
    rows = np.minimum(np.searchsorted(ends, draw.random((count, 12))), WORDS - 1)
    sizes = draw.integers(6, 13, count)
    return joined(rows, sizes, vocabulary, draw)


def chained(count: int) -> pa.Array:
    """Titles in which each word follows the one before it in a real title; one in ten is a copy.

    Lengths are those of real titles, of 5 to 12 words; a copy has another word at one place.
    """
    lines = [line.split()[:12] for line in real_titles()]
    lines = [line for line in lines if len(line) >= 5]
    draw = np.random.default_rng(7)
    words, codes = np.unique([word for line in lines for word in line], return_inverse=True)
    lengths = np.array([len(line) for line in lines])
    begins = np.cumsum(lengths) - lengths
    places = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    starts = np.cumsum(counts) - counts
    rows = np.empty((count, 12), np.int32)
    at = begins[draw.integers(0, len(begins), count)]
    for column in range(12):
        rows[:, column] = word = codes[at]
        other = places[starts[word] + (draw.random(count) * counts[word]).astype(np.int64)]
        at = (other + 1) % len(codes)
    sizes = lengths[draw.integers(0, len(lengths), count)]
    return joined(rows, sizes, pa.array(words.tolist()), draw)


def real_titles() -> list[str]:
    """Records of bib_dedupe_en, which begin with their titles, and headlines of reuters21578_en."""
    records = corpus("bib_dedupe_en", 1 << 30).to_pylist()
    news = corpus("reuters21578_en", 1 << 30).to_pylist()
    return [text.partition("\n")[0].lower() for text in records + news]


def joined(rows: Any, sizes: Any, vocabulary: pa.Array, draw: Any) -> pa.Array:
    """Texts of the first words of each row; one in ten is an earlier one with a word changed."""
    count = len(rows)
    copies = np.flatnonzero(draw.random(count) < 0.1)
    copies = copies[copies > 0]
    sources = (draw.random(len(copies)) * copies).astype(np.int64)
    rows[copies], sizes[copies] = rows[sources], sizes[sources]
    changed = (draw.random(len(copies)) * sizes[copies]).astype(np.int64)
    rows[copies, changed] = draw.integers(0, len(vocabulary), len(copies))
    parts = []
    for first in range(0, count, 1 << 20):
        part = slice(first, first + (1 << 20))
        inside = np.arange(12) < sizes[part, None]
        offsets = np.append(0, np.cumsum(sizes[part])).astype(np.int32)
        lists = pa.ListArray.from_arrays(offsets, vocabulary.take(pa.array(rows[part][inside])))
        parts.append(pa.compute.binary_join(lists, " "))
    return pa.chunked_array(parts)


def corpus(folder: str, most: int) -> pa.Array:
    """Texts of a corpus."""
    table = pa.json.read_json(DATA / folder / "docs.jsonl.gz")
    return table["text"].combine_chunks()[:most]


def seconds_of(texts: pa.Array, recipe: nd.Recipe, similarity: float, recall: float) -> Any:
    """Processor seconds of one run, and the documents that it dropped."""
    begin = time.process_time()
    result = nd.dedup(texts, similarity=similarity, recipe=recipe, recall=recall)
    return round(time.process_time() - begin, 3), int(len(texts) - np.count_nonzero(result.kept))


def main() -> None:
    """Print a line for each collection and setting."""
    count, wanted = int(sys.argv[1]), sys.argv[2:]
    collections = {"titles": partial(titles, count)}
    if (DATA / "bib_dedupe_en" / "docs.jsonl.gz").is_file():
        collections["chained"] = partial(chained, count)
    for folder in ("reuters21578_en", "sms_spam_en", "livedoor_ja", "scancode_licenses_en"):
        if (DATA / folder / "docs.jsonl.gz").is_file():
            collections[folder] = partial(corpus, folder, count)
    for name, make in collections.items():
        if wanted and wanted[0] != name:
            continue
        texts = make()
        for tokens, ngram, similarity in SETTINGS:
            if wanted[1:] and wanted[1:4] != [tokens, str(ngram), str(similarity)]:
                continue
            recipe = nd.Recipe(tokens=tokens, ngram=ngram)
            row: dict[str, Any] = {
                "texts": f"{name}, {len(texts):,}",
                "tokens": tokens,
                "ngram": ngram,
                "at": similarity,
            }
            for recall in (1.0, 0.95) if len(texts) > 500_000 else (1.0, 0.99, 0.95):
                seconds_of(texts[:2_000], recipe, similarity, recall)
                row[str(recall)] = seconds_of(texts, recipe, similarity, recall)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
