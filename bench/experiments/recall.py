"""Is a banded search (`--recall` below 1) ever three times as quick as the exact one?

    python bench/experiments/recall.py 1000000
    python bench/experiments/recall.py 1000000 titles chars 3 0.5

Seeded texts with one tenth of edited copies, and each corpus of ../shared/data that is there:
processor seconds of `nd.dedup` with everything in memory, exact and at recalls of 0.95 and 0.99,
and how many documents each drops. A line of JSON for each setting, which runs after a warm-up.
"""

from __future__ import annotations

import json
import sys
import time
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
    copies = np.flatnonzero(draw.random(count) < 0.1)
    copies = copies[copies > 0]
    sources = (draw.random(len(copies)) * copies).astype(np.int64)
    rows[copies], sizes[copies] = rows[sources], sizes[sources]
    rows[copies, (draw.random(len(copies)) * 6).astype(np.int64)] = draw.integers(
        0, WORDS, len(copies)
    )
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    inside = np.arange(12) < sizes[:, None]
    lists = pa.ListArray.from_arrays(offsets, vocabulary.take(pa.array(rows[inside])))
    return pa.compute.binary_join(lists, " ")


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
    collections = {f"titles, {count:,}": titles(count)}
    for folder in ("reuters21578_en", "sms_spam_en", "livedoor_ja", "scancode_licenses_en"):
        if (DATA / folder / "docs.jsonl.gz").is_file():
            collections[folder] = corpus(folder, count)
    for name, texts in collections.items():
        for tokens, ngram, similarity in SETTINGS:
            if wanted and wanted != [name.split(",")[0], tokens, str(ngram), str(similarity)]:
                continue
            recipe = nd.Recipe(tokens=tokens, ngram=ngram)
            row: dict[str, Any] = {
                "texts": name,
                "tokens": tokens,
                "ngram": ngram,
                "at": similarity,
            }
            for recall in (1.0, 0.99, 0.95):
                seconds_of(texts[:2_000], recipe, similarity, recall)
                row[str(recall)] = seconds_of(texts, recipe, similarity, recall)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
