"""Short texts in scripts and languages other than English: what a distance finds of what is alike.

    python bench/experiments/short_texts.py

Distinct sentences of 8 to 200 characters of Chinese, Turkish and Japanese documents in
../shared/data. Two are alike if the Jaccard similarity of their 3-character features is 0.8 or
more, counted exactly. Recall is the share of these pairs within k bits, precision the share of the
pairs within k bits that are alike. Prints the table of docs/design/search-plans.md.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

import neardup as nd

DATA: Final = Path(__file__).resolve().parents[2].parent / "shared" / "data"
CORPORA: Final = {
    "Chinese": ("zh_laws", "lohelp_revisions_zh-cn"),
    "Turkish": ("lohelp_revisions_tr",),
    "Japanese": ("livedoor_ja",),
}
SETTINGS: Final = ((64, 3), (64, 8), (64, 10), (128, 16), (128, 20))
SENTENCE_END: Final = re.compile(r"(?<=[。！？!?])|(?<=\.)\s|\n")  # noqa: RUF001
SHORTEST, LONGEST, MOST = 8, 200, 30_000
ALIKE: Final = 0.8


def sentences(folders: tuple[str, ...], most: int = MOST) -> list[str]:
    """Distinct sentences, spread over the documents; the same ones each time."""
    results: dict[str, None] = {}
    for folder in folders:
        with gzip.open(DATA / folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                for part in SENTENCE_END.split(json.loads(line)["text"]):
                    sentence = " ".join(part.split())
                    if SHORTEST <= len(sentence) <= LONGEST:
                        results[sentence] = None
    whole = list(results)
    chosen = np.random.default_rng(1).permutation(len(whole))[:most]
    return [whole[at] for at in sorted(chosen.tolist())]


def measured(texts: list[str], bits: int, k: int) -> tuple[int, float, float]:
    """How many pairs are alike, and recall and precision of the distance."""
    recipe = nd.Recipe(tokens="chars", ngram=3, bits=bits)
    alike = keys(nd.similar_pairs(texts, ALIKE, recipe=recipe), len(texts))
    near = keys(nd.pairs(nd.fingerprints(texts, recipe), k, bits=bits), len(texts))
    both = np.intersect1d(alike, near, assume_unique=True).size
    return alike.size, both / alike.size, both / max(1, near.size)


def keys(pairs: Any, count: int) -> Any:
    """A number for each pair."""
    return pairs["left"].to_numpy() * count + pairs["right"].to_numpy()


def main() -> None:
    """Print the table."""
    corpora = {name: sentences(folders) for name, folders in CORPORA.items()}
    heads = [f"{name}: recall, precision" for name in corpora]
    print(f"| bits, k | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}")
    for bits, k in SETTINGS:
        cells = []
        for name, texts in corpora.items():
            count, recall, precision = measured(texts, bits, k)
            print(f"{name}: {len(texts):,} sentences, {count:,} pairs", file=sys.stderr)
            cells.append(f"{recall:.2f}, {precision:.2f}")
        print(f"| {bits}, {k} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
