"""Feature sets one after the other, as an index by similarity holds and takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.runtime.types import Hashes, Offsets, Rows

__all__ = ["Sets", "joined_sets"]


class Sets(NamedTuple):
    """Sets of feature hashes.

    Args:
        features: uint64, each set ascending.
        offsets: int64 (n + 1,): set i is features[offsets[i]:offsets[i + 1]].
    """

    features: Hashes
    offsets: Offsets

    @property
    def size(self) -> int:
        """How many sets."""
        return len(self.offsets) - 1

    def of(self, at: int) -> Hashes:
        """The features of one: a view."""
        return self.features[self.offsets[at] : self.offsets[at + 1]]

    def take(self, chosen: Rows) -> Sets:
        """Some of them (int64), in this order: a copy."""
        from neardup.kernels.index.sets import gather_sets

        sizes = self.offsets[chosen + 1] - self.offsets[chosen]
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        features = np.empty(int(offsets[-1]), np.uint64)
        gather_sets(frozen(self.features), frozen(self.offsets), frozen(chosen), features, offsets)
        return Sets(features, offsets)


def joined_sets(parts: list[Sets]) -> Sets:
    """All sets of several, one after the other."""
    if len(parts) == 1 and not parts[0].offsets[0]:
        return parts[0]
    offsets = [np.zeros(1, np.int64)]
    before = 0
    for each in parts:
        offsets.append(each.offsets[1:] - each.offsets[0] + before)
        before += int(each.offsets[-1] - each.offsets[0])
    features = [each.features[each.offsets[0] : each.offsets[-1]] for each in parts]
    return Sets(np.concatenate([np.empty(0, np.uint64), *features]), np.concatenate(offsets))
