"""Draw docs/reference/distances.svg: the distances of the demo corpus, all pairs of it.

    python tools/distance_plot.py

Near-duplicates in one colour, all other pairs in another. Jaccard similarity is exact, over the
3-word shingles of the default recipe; the distance is that of the default 64-bit fingerprints. The
script prints the numbers that the docs quote.
"""

from __future__ import annotations

import gzip
import importlib.resources
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

import neardup as nd
from neardup.fingerprinting.fingerprints import feature_hashes

PICTURE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference" / "distances.svg"
NEAR: Final = 0.8
LIMIT: Final = 3
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 380, 92, 56, 70
NEAR_COLOUR, OTHER_COLOUR, INK, FAINT = "#0b6e99", "#b9b3a7", "#333333", "#e4e1da"


def main() -> None:
    """Measure, draw and print."""
    texts = read_texts()
    near, others = histograms(texts, jaccard(texts))
    PICTURE.write_text(picture(near, others, documents=len(texts)), "utf-8")
    for name, count in ((f"Jaccard >= {NEAR}", near), ("others", others)):
        shares = {k: int(count[: k + 1].sum()) for k in (LIMIT, 6, 8, 12)}
        print(f"{name}: {count.sum():,} pairs, within k bits: {shares}")  # noqa: T201


def read_texts() -> list[str]:
    """The documents of the demo."""
    corpus = importlib.resources.files("neardup") / "cli" / "commands" / "demo.jsonl.gz"
    with corpus.open("rb") as packed, gzip.open(packed) as lines:
        return [json.loads(line)["text"] for line in lines]


def jaccard(texts: list[str]) -> Any:
    """Exact Jaccard similarity of all pairs of texts: float64 (n, n)."""
    features = [feature_hashes(text, nd.Recipe()) for text in texts]
    sizes = np.array([result.size for result in features])
    owners = np.repeat(np.arange(len(texts)), sizes)
    flat = np.concatenate(features)
    order = np.argsort(flat, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(flat[order]) != 0))
    shared = np.zeros((len(texts), len(texts)))
    for begin, end in pairwise(np.append(starts, flat.size)):
        if end - begin > 1:
            rows = owners[order[begin:end]]
            shared[np.ix_(rows, rows)] += 1
    return shared / (sizes[:, None] + sizes[None, :] - shared)


def histograms(texts: list[str], similarities: Any) -> tuple[Any, Any]:
    """Pairs at each distance from 0 to 64: the near-duplicates', and all others'."""
    values = nd.fingerprints(texts)
    left, right = np.triu_indices(len(texts), 1)
    apart = nd.distance(values[left], values[right])
    near = similarities[left, right] >= NEAR
    return np.bincount(apart[near], minlength=65), np.bincount(apart[~near], minlength=65)


def picture(near: Any, others: Any, documents: int) -> str:
    """Both histograms side by side at each distance, on a logarithmic scale."""
    top = 10 ** math.ceil(math.log10(max(near.max(), others.max())))
    step = (WIDTH - LEFT - 20) / 65
    result, total = int(near[: LIMIT + 1].sum()), int(near.sum())
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
            f' width="{WIDTH}" height="{HEIGHT}"'
            ' font-family="system-ui, sans-serif" font-size="13">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *_axes(top, step),
    ]
    parts += _bars(others, top, step, 0.52, OTHER_COLOUR)
    parts += _bars(near, top, step, 0.06, NEAR_COLOUR)
    limit = LEFT + (LIMIT + 1) * step
    parts += [
        (
            f'<line x1="{limit}" x2="{limit}" y1="{TOP + 8}" y2="{HEIGHT - BOTTOM}"'
            f' stroke="{INK}" stroke-dasharray="4 3"/>'
        ),
        _text(limit + 6, TOP + 22, f"--distance {LIMIT}: {result:,} of {total:,} near-duplicates"),
        _legend(LEFT, 20, NEAR_COLOUR, f"pairs with Jaccard similarity of {NEAR} or more"),
        _legend(LEFT + 330, 20, OTHER_COLOUR, "all other pairs"),
        _text(LEFT, 46, f"{documents:,} licence texts of the demo, 64-bit fingerprints", "#666666"),
    ]
    return "\n".join([*parts, "</svg>", ""])


def _axes(top: int, step: float) -> list[str]:
    parts = []
    for power in range(round(math.log10(top)) + 1):
        y = _y(10**power, top)
        parts += [
            f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="{FAINT}"/>',
            _text(LEFT - 8, y + 4, f"{10**power:,}", anchor="end"),
        ]
    for bit in range(0, 65, 8):
        parts.append(
            _text(LEFT + (bit + 0.5) * step, HEIGHT - BOTTOM + 18, str(bit), anchor="middle")
        )
    middle = (LEFT + WIDTH - 20) / 2
    parts.append(_text(middle, HEIGHT - 14, "distance of a pair, in bits", anchor="middle"))
    parts.append(
        f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)"'
        f' text-anchor="middle" fill="{INK}">pairs</text>'
    )
    return parts


def _y(count: float, top: int) -> float:
    """Height of a count; a count of 1 stands a little above the axis."""
    floor = HEIGHT - BOTTOM
    return (
        floor
        if count <= 0
        else floor - (floor - TOP) * (math.log10(count) + 0.15) / (math.log10(top) + 0.15)
    )


def _bars(counts: Any, top: int, step: float, offset: float, colour: str) -> list[str]:
    heights = [(bit, HEIGHT - BOTTOM - _y(count, top)) for bit, count in enumerate(counts)]
    return [
        f'<rect x="{LEFT + (bit + offset) * step:.1f}" y="{HEIGHT - BOTTOM - height:.1f}"'
        f' width="{0.44 * step:.1f}" height="{height:.1f}" fill="{colour}"/>'
        for bit, height in heights
        if height
    ]


def _legend(x: float, y: float, colour: str, words: str) -> str:
    return f'<rect x="{x}" y="{y - 11}" width="12" height="12" fill="{colour}"/>\n' + _text(
        x + 18, y, words
    )


def _text(x: float, y: float, words: str, colour: str = INK, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{words}</text>'


if __name__ == "__main__":
    main()
