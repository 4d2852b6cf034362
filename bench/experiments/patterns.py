"""Tokens of regular expressions beside words: MB of text a processor second, one thread.

    python bench/experiments/patterns.py docs.jsonl.gz

Each line of the file is an object with "text".
"""

from __future__ import annotations

import gzip
import json
import sys
import time

import neardup
from neardup.features.tokens import in_kernel

PATTERNS = (
    "words", r"regex:\w+", r"regex:\S+", "regex:[a-z0-9]+", r"regex:[^\s,;]+",
    "regex:[a-z]{2,}", r"regex:(?:\w+)",
)  # fmt: skip
SLOW = 3000
"""Documents that Python matches."""


def main(path: str) -> None:
    """Print a line for each."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    for tokens in PATTERNS:
        recipe = neardup.Recipe(tokens=tokens)
        some = texts if in_kernel(tokens) else texts[:SLOW]
        neardup.fingerprints(some[:50], recipe)  # compiles
        start = time.process_time()
        neardup.fingerprints(some, recipe, workers=1)
        spent = time.process_time() - start
        print(f"{tokens:20} {sum(map(len, some)) / 1e6 / spent:8.1f} MB/s")


if __name__ == "__main__":
    main(sys.argv[1])
