"""By which keys documents are found: their rare features, or one key for all where none is rare.

With one key for all every document is compared with every other of a possible size, by sketches
first. That is the least work where features are so common that two documents share several keys:
each of these would be a look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.runtime.arrays import frozen
from neardup.similarity.feature_sets import arguments

if TYPE_CHECKING:
    from neardup.kernels.similarity.arguments import Condition, Keys, Rarity, Sets
    from neardup.similarity.feature_sets import FeatureSets, Match

__all__ = ["KeySample", "keys_of_part", "one_key", "rare_keys", "sample_keys"]

SAMPLE: Final = 1024
LEAST_DOCUMENTS: Final = 64
KEYS_A_PAIR: Final = 1.5
"""Looks by keys for each look by the one key, from which on the one key is cheaper. More than one:
where a key is in a document excludes some pairs, which the one key cannot."""


def rare_keys(documents: Any, sets: Sets, rarity: Rarity, condition: Condition) -> Keys:
    """The rarest features of some documents: int64 (m,)."""
    from neardup.kernels.similarity.arguments import Keys
    from neardup.kernels.similarity.rare_keys import select_keys

    offsets = np.empty(documents.size + 1, np.int64)
    keys, before = select_keys(frozen(documents), sets, rarity, condition, offsets)
    return Keys(keys, before, offsets)


def keys_of_part(sets: FeatureSets, cells: Any, match: Match) -> Keys:
    """The keys of a part of a cut collection: any two documents that match share one.

    Prefix filtering is exact for any order of the features that all documents agree on. Here it is
    by how many documents have a feature, counted in hashed cells. A feature that is alone in its
    cell is in one document only, and no key.

    Args:
        sets: The documents of the part.
        cells: uint8, `merge_cells` of all parts.
        match: When two documents match.
    """
    from neardup.kernels.similarity.arguments import Rarity

    arrays, condition = arguments(sets, match)
    rarity = Rarity(cells, np.uint64(64 - (cells.size.bit_length() - 1)))
    return rare_keys(np.arange(len(sets)), arrays, rarity, condition)


def one_key(documents: Any, sets: Sets) -> Keys:
    """The same key for each of some documents, int64 (m,), that has features."""
    from neardup.kernels.similarity.arguments import Keys

    offsets = np.zeros(documents.size + 1, np.int64)
    np.cumsum(sets.offsets[documents + 1] > sets.offsets[documents], out=offsets[1:])
    return Keys(np.ones(offsets[-1], np.uint64), np.zeros(offsets[-1], np.int32), offsets)


@dataclass(frozen=True, slots=True)
class KeySample:
    """The rare keys of some documents, drawn from n.

    Args:
        drawn: How many documents were.
        n: From how many.
        counts: int64: how many of those drawn have each key.
        early: int64: how many of them have it early.
    """

    drawn: int
    n: int
    counts: Any
    early: Any

    @property
    def is_one_key_cheaper(self) -> bool:
        """Whether two documents share more rare keys than one, on average."""
        return bool((self.counts.astype(float) * self.early).sum() > KEYS_A_PAIR * self.drawn**2)

    @property
    def looks(self) -> float:
        """How many documents under the same key are looked at, about, for each key put in.

        Example:
            >>> KeySample(2, 20, np.array([2, 1, 1]), np.array([2, 1, 1])).looks
            2.5
        """
        if self.is_one_key_cheaper:
            return self.n / 2
        pairs = (self.early * (self.counts - 1)).sum() / 2
        return float(pairs / max(1, self.counts.sum()) * self.n / self.drawn) if self.drawn else 0.0


def sample_keys(documents: Any, sets: Sets, rarity: Rarity, condition: Condition) -> KeySample:
    """Count the rare keys of a sample of the documents, int64 (m,); of none if these are few."""
    from neardup.kernels.similarity.rare_keys import mark_early

    if documents.size < LEAST_DOCUMENTS:
        return KeySample(0, documents.size, np.zeros(0, np.int64), np.zeros(0, np.int64))
    sample = np.ascontiguousarray(documents[:: -(-documents.size // SAMPLE)])
    keys = rare_keys(sample, sets, rarity, condition)
    is_early = np.empty(keys.keys.size, np.bool_)
    mark_early(sample, sets, keys, condition, is_early)
    _, places, counts = np.unique(keys.keys, return_inverse=True, return_counts=True)
    early = np.bincount(places[is_early], minlength=counts.size)
    return KeySample(sample.size, documents.size, counts, early)
