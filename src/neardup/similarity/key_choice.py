"""The choice of keys: each rare feature of a document, and one key for all its common features.

Two documents that share many common features would be looked at under each of them. Under one key
they are looked at once, but so are those that share none. A sample tells from which rank on
features are common: none, where documents seldom share a key; all, where no feature is rare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.runtime.arrays import frozen
from neardup.similarity.feature_sets import arguments

if TYPE_CHECKING:
    from neardup.kernels.similarity.join_arguments import Condition, Keys, Rarity, Sets
    from neardup.similarity.feature_sets import FeatureSets, Match

__all__ = ["KeySample", "keys_of_part", "rare_keys", "sample_keys"]

SAMPLE: Final = 1024
LEAST_DOCUMENTS: Final = 64
GOLDEN: Final = (math.sqrt(5) - 1) / 2
"""Its multiples, less their whole parts, are spread evenly however many are taken."""
KEYS_A_PAIR: Final = 1.5
"""The looks by rare keys that cost as much as one look by the common key. More than one, since the
position of a rare key excludes some pairs and the common key excludes none."""
LOOKS_A_KEY: Final = 50
"""The cost of inserting and looking up a key, in looks at candidates: the key is in distant memory.
"""
WORTH_IT: Final = 0.8
"""Features are taken as common only where the work falls below this share of the work without it.
"""


def rare_keys(documents: Any, sets: Sets, rarity: Rarity, condition: Condition) -> Keys:
    """The rare keys of some documents: int64 (m,)."""
    from neardup.kernels.similarity.join_arguments import Keys
    from neardup.kernels.similarity.rare_keys import select_keys

    offsets = np.empty(documents.size + 1, np.int64)
    keys, before = select_keys(frozen(documents), sets, rarity, condition, offsets)
    return Keys(keys, before, offsets)


def keys_of_part(sets: FeatureSets, cells: Any, match: Match) -> Keys:
    """The keys in one part of a collection; any two documents that match share a key.

    Prefix filtering is exact for any order of the features that all documents agree on. Here it is
    by how many documents have a feature, counted in hashed cells. A feature that is alone in its
    cell is in one document only, and no key.

    Args:
        sets: The documents of the part.
        cells: uint8, the counts of the features of all parts, merged.
        match: When two documents match.
    """
    from neardup.kernels.similarity.join_arguments import Rarity
    from neardup.kernels.similarity.rare_keys import MOST

    arrays, condition = arguments(sets, match)
    rarity = Rarity(cells, np.uint64(64 - (cells.size.bit_length() - 1)), MOST)
    return rare_keys(np.arange(len(sets)), arrays, rarity, condition)


@dataclass(frozen=True, slots=True)
class KeySample:
    """The keys of a sample of documents, drawn from n, with no feature taken as common.

    Args:
        drawn: How many documents were.
        n: From how many.
        entries: float64 (ranks,): how many keys all of them have, if higher ranks are common.
        rare: float64 (ranks,): and how many pairs are looked at under rare keys.
        common: float64 (ranks,): and under the one for common features.
    """

    drawn: int
    n: int
    entries: Any
    rare: Any
    common: Any

    @property
    def most_rare(self) -> int:
        """The rank above which features count as common: the one with least work."""
        times = self.n / max(1, self.drawn)
        looks = (self.rare + KEYS_A_PAIR * self.common) * times + LOOKS_A_KEY * self.entries
        none, best = looks.size - 1, int(np.argmin(looks))
        plain = 0 if looks[0] < looks[none] else none
        return best if looks[best] < WORTH_IT * looks[plain] else plain

    @property
    def looks(self) -> float:
        """The estimated candidates looked at for each key in the index.

        Example:
            >>> KeySample(2, 30, np.array([3.0]), np.array([1.0]), np.array([3.0])).looks
            20.0
        """
        at = self.most_rare
        pairs = float(self.rare[at] + self.common[at])
        return pairs / max(1.0, float(self.entries[at])) * self.n / max(1, self.drawn)


def sample_keys(
    documents: Any, sets: Sets, rarity: Rarity, condition: Condition, match: Match
) -> KeySample:
    """The keys of a sample of documents, int64 (m,); empty for few documents.

    Args:
        documents: Which.
        sets: Sets.
        rarity: In which no feature is common.
        condition: When two match.
        match: Likewise.
    """
    from neardup.kernels.similarity.rare_keys import MOST

    is_enough = documents.size >= LEAST_DOCUMENTS
    sample = documents[_drawn(documents.size)] if is_enough else documents[:0]
    keys = rare_keys(sample, sets, rarity, condition)
    sizes = sets.offsets[sample + 1] - sets.offsets[sample]
    most_before = np.repeat(sizes - match.least_shared(sizes, sizes), np.diff(keys.offsets))
    is_early = keys.before <= most_before
    distinct, places, counts = np.unique(keys.keys, return_inverse=True, return_counts=True)
    early = counts
    if not match.kind.bounds_sizes:
        early = np.bincount(places[is_early], minlength=counts.size)
    of_distinct = rarity.cells[distinct >> rarity.shift]
    ranks = of_distinct[places]
    rare = np.cumsum(np.bincount(of_distinct, early * (counts - 1.0) / 2, MOST + 1))
    entries = np.cumsum(np.bincount(ranks, minlength=MOST + 1)).astype(float)
    # A document has the one key if a key of it is common, and early if an early key of it is.
    having = _above(_highest(ranks, keys.offsets))
    late = having - _above(_highest(np.where(is_early, ranks, 0), keys.offsets))
    having[0], late[0] = np.count_nonzero(sizes), 0
    common = (having * (having - 1) - late * (late - 1)) / 2
    return KeySample(sample.size, documents.size, entries + having, rare, common)


def _drawn(n: int) -> Any:
    """The places of up to SAMPLE of n documents, one in each stretch of equal length.

    The place in a stretch varies: at equal distances all would be of one kind where kinds of
    documents take turns.
    """
    count = min(n, SAMPLE)
    within = np.arange(count) * GOLDEN % 1.0
    return ((np.arange(count) + within) * n / count).astype(np.int64)


def _highest(ranks: Any, offsets: Any) -> Any:
    """The highest rank of each document that has any.

    Example:
        >>> _highest(np.array([4, 9, 3]), np.array([0, 2, 2, 3])).tolist()
        [9, 3]
    """
    begins = offsets[:-1][offsets[:-1] < offsets[1:]]
    return np.maximum.reduceat(ranks, begins) if begins.size else ranks[:0]


def _above(ranks: Any) -> Any:
    """The number of ranks above each possible rank; float64 (MOST + 1,)."""
    from neardup.kernels.similarity.rare_keys import MOST

    return ranks.size - np.cumsum(np.bincount(ranks, minlength=MOST + 1)).astype(float)
