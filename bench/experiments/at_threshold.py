"""Recall of a pair exactly at the threshold: what MinHash promises, and what planted pairs show.

    python bench/experiments/at_threshold.py [--pairs 4000]

Planted pairs have 80 features in common and 10 each of their own: a Jaccard similarity of exactly
0.8. No other two sets share a feature. Writes the table of docs/design/accuracy.md.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import environments

PAGE = Path(__file__).resolve().parents[2] / "docs" / "design" / "accuracy.md"
BEGIN, END = "<!-- table at-threshold -->", "<!-- end of at-threshold -->"
SIMILARITY, SHARED, OWN = 0.8, 80, 10
BANDS = (
    ("9 bands of 13 rows (TxT360)", 9, 13),
    ("20 bands of 13 rows (NeMo Curator's default)", 20, 13),
    ("14 bands of 8 rows (FineWeb)", 14, 8),
)


def main() -> int:
    """Measure, and write the table."""
    if sys.argv[1:2] == ["--worker"]:
        options = json.loads(sys.argv[3])
        sys.stdout.write(json.dumps(WORKERS[sys.argv[2]](**options)) + "\n")
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=4000)
    pairs = parser.parse_args().pairs
    rows = []
    for name, bands, rows_a_band in BANDS:
        promised = 1 - (1 - SIMILARITY**rows_a_band) ** bands
        for peer in ("datasketch", "rensa"):
            matches = call(peer, pairs=pairs, bands=bands, rows=rows_a_band)
            rows.append((f"{peer}, {name}", f"{promised:.3f}", f"{matches / pairs:.3f}"))
    matches = ours(pairs)
    rows.append(("neardup, exact (the default)", "1", f"{matches / pairs:.3f}"))
    lines = [f"| search | promised | found of {pairs:,} |", "|---|---:|---:|"]
    lines += [f"| {name} | {promised} | {matches} |" for name, promised, matches in rows]
    table = "\n".join(lines)
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}", "utf-8")
    sys.stdout.write(table + "\n")
    return 0


def call(peer: str, **options: Any) -> int:
    """How many pairs a peer finds, in its own environment."""
    python = environments.python_of(peer)
    command = [python, __file__, "--worker", peer, json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return int(done.stdout.splitlines()[-1])


def planted(pairs: int) -> list[tuple[list[str], list[str]]]:
    """The features of both sides of each pair."""
    generator = random.Random(1)
    made = []
    for number in range(pairs):
        words = [f"{number}-{generator.getrandbits(48):x}" for _ in range(SHARED + 2 * OWN)]
        made.append((words[:-OWN], words[:SHARED] + words[-OWN:]))
    return made


def datasketch(pairs: int, bands: int, rows: int) -> int:
    """Planted pairs that share a band."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(num_perm=bands * rows, params=(bands, rows))
    result = 0
    for number, (left, right) in enumerate(planted(pairs)):
        sketches = []
        for words in (left, right):
            sketch = MinHash(num_perm=bands * rows)
            sketch.update_batch([word.encode() for word in words])
            sketches.append(sketch)
        index.insert(number, sketches[0])
        result += number in index.query(sketches[1])
    return result


def rensa(pairs: int, bands: int, rows: int) -> int:
    """Planted pairs that share a band."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(SIMILARITY, bands * rows, bands)
    result = 0
    for number, (left, right) in enumerate(planted(pairs)):
        sketches = []
        for words in (left, right):
            sketch = RMinHash(bands * rows, 42)
            sketch.update(words)
            sketches.append(sketch)
        index.insert(number, sketches[0])
        result += number in index.query(sketches[1])
    return result


def ours(pairs: int) -> int:
    """Planted pairs that `similar_pairs` finds."""
    import neardup

    texts = [" ".join(words) for pair in planted(pairs) for words in pair]
    recipe = neardup.Recipe(tokens=r"regex:\S+", ngram=1)
    table = neardup.similar_pairs(texts, SIMILARITY, recipe=recipe)
    left, right = (table[side].to_numpy() for side in ("left", "right"))
    return int(((left % 2 == 0) & (right == left + 1)).sum())


WORKERS = {"datasketch": datasketch, "rensa": rensa}

if __name__ == "__main__":
    sys.exit(main())
