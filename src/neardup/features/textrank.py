"""TextRank: the weight of a feature by the features that stand near it.

Source: Mihalcea and Tarau, TextRank: bringing order into texts, EMNLP 2004; window, damping,
iterations and the order of the sums are those of jieba.analyse.textrank.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["text_rank"]

SPAN: Final = 5
DAMPING: Final = 0.85
ROUNDS: Final = 10


def text_rank(features: Sequence[str]) -> dict[str, float]:
    """Rank the distinct features of one document; above 0, the heaviest 1.

    Two features are joined as often as they stand fewer than 5 places apart. The ranks are found by
    10 rounds, each over the features in code point order, and scaled as jieba does. A document of
    one feature gives it 1.

    Args:
        features: In the order of the text, repeats included.

    Returns:
        The rank of each, in order of first occurrence.

    Example:
        >>> ranks = text_rank("a b c a d".split())
        >>> max(ranks, key=ranks.get)
        'a'
    """
    joined: dict[tuple[str, str], int] = {}
    for at, feature in enumerate(features):
        for other in features[at + 1 : at + SPAN]:
            joined[feature, other] = joined.get((feature, other), 0) + 1
    if not joined:
        return dict.fromkeys(features, 1.0)
    ranks = _ranks(joined)
    least = min(ranks.values()) / 10.0
    most = max(*ranks.values(), sys.float_info.min)
    return {x: (ranks[x] - least) / (most - least) for x in dict.fromkeys(features)}


def _ranks(joined: dict[tuple[str, str], int]) -> dict[str, float]:
    edges: dict[str, list[tuple[str, int]]] = {}
    for (start, end), weight in joined.items():
        edges.setdefault(start, []).append((end, weight))
        edges.setdefault(end, []).append((start, weight))
    degrees = {feature: sum(weight for _, weight in found) for feature, found in edges.items()}
    ranks = dict.fromkeys(edges, 1.0 / len(edges))
    for _ in range(ROUNDS):
        for feature in sorted(edges):
            total = 0.0
            for other, weight in edges[feature]:
                total += weight / degrees[other] * ranks[other]
            ranks[feature] = (1.0 - DAMPING) + DAMPING * total
    return ranks
