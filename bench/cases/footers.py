"""Pages that share much of their text: a footer, one footer a site, or blocks that many have.

Words of a page are its own ones, drawn with a frequency of 1 / (rank + 10) from 200,000, and 60
that others have as well. One page in ten is an earlier one with a word changed. Shapes:

- footer: 30 words of its own, then the same 60 on every page: strangers have a similarity of 0.49;
- lengths: 15 to 60 words of its own, then the footer: so it alone makes some pages similar;
- sites: one of 20 footers;
- blocks: 6 of 12 blocks of 10 words, in the same order on each page;
- dated: the footer has a word of its own in the middle.

"value" is processor seconds of the search alone, on all threads, by feature sets of 3-word
shingles.
"""

from __future__ import annotations

import math
import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "footers"
ROUNDS = 2
OWN, SHARED, SITES, BLOCKS = 30, 60, 20, 12
WORDS = 200_000
SIZES = (10_000, 20_000, 40_000)
SHAPES = ("footer", "lengths", "sites", "blocks", "dated")
WAYS = ("greedy", "components", "pairs")


def rows(quick: bool) -> list[Row]:
    """Processor seconds by shape, way and similarity, and the power with which they grow."""
    sizes = (2_000,) if quick else SIZES
    table = []
    for shape in SHAPES[:1] if quick else SHAPES:
        for way in WAYS:
            for similarity in (0.5, 0.6):
                options: dict[str, Any] = {"shape": shape, "way": way, "similarity": similarity}
                name = f"{shape}, similarity {similarity}, {way}"
                for n in sizes:
                    run = Measurement.of(CASE, "ours", OURS, n=n, **options)
                    table.append(Row(f"{n:,} pages, {name}", run, better="lower", unit="cpu s"))
    return table


def make(n: int, shape: str) -> list[str]:
    """The same pages each time; the first of many are those of fewer."""
    import numpy as np

    draw = np.random.default_rng(17)
    common = [[f"c{site}x{i}" for i in range(SHARED)] for site in range(SITES)]
    each = SHARED * 2 // BLOCKS
    blocks = [[f"b{block}x{i}" for i in range(each)] for block in range(BLOCKS)]
    pages: list[list[str]] = []
    for row in range(n):
        own_count = int(draw.integers(OWN // 2, 2 * OWN + 1)) if shape == "lengths" else OWN
        ranks = 10 * ((WORDS / 10 + 1) ** draw.random(own_count + 1) - 1)
        own, spare = [f"w{int(rank)}" for rank in ranks[1:]], f"w{int(ranks[0])}"
        site, chosen = int(draw.integers(SITES)), np.sort(draw.permutation(BLOCKS)[: BLOCKS // 2])
        source, place = int(draw.random() * row), draw.random()
        if row and draw.random() < 0.1:
            page = list(pages[source])
            page[int(place * len(page))] = spare
        elif shape == "blocks":
            page = own + [word for block in chosen.tolist() for word in blocks[block]]
        elif shape == "dated":
            page = own + common[0][: SHARED // 2] + [spare] + common[0][SHARED // 2 :]
        else:
            page = own + common[site if shape == "sites" else 0]
        pages.append(page)
    return [" ".join(page) for page in pages]


def ours(n: int, shape: str, way: str, similarity: float) -> dict[str, Any]:
    """The best of some rounds; a small run compiles."""
    import numpy as np

    import neardup as nd
    from neardup.fingerprinting.sets_of_texts import feature_sets
    from neardup.similarity.feature_sets import FeatureSets, Match
    from neardup.similarity.join import similar_components, similar_greedy, similar_sets

    texts, match = make(n, shape), Match(similarity)
    least, result = math.inf, 0
    for part in (texts[:500], *[texts] * ROUNDS):
        features, offsets = feature_sets(part, nd.Recipe())
        sets = FeatureSets(features, offsets, np.zeros((len(part), 1), np.uint64))
        rows_of = np.arange(len(part))
        start = time.process_time()
        if way == "pairs":
            result = sum(len(pairs) for pairs in similar_sets(sets, match))
        elif way == "components":
            result = int((similar_components(sets, match) != rows_of).sum())
        else:
            result = int((similar_greedy(sets, rows_of, match)[0] != rows_of).sum())
        seconds = time.process_time() - start
        if len(part) == n:
            least = min(least, seconds)
    return {"value": least, "found": result}
