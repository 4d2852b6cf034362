"""The exact number of features that two documents share, and whether they match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import popcount
from neardup.kernels.jit import fill, inner, kernel
from neardup.kernels.similarity.measure_bounds import needed_overlap, score

if TYPE_CHECKING:
    from neardup.kernels.array_types import Codes, Hashes, Int64s, Offsets, Uint64s
    from neardup.kernels.similarity.join_arguments import Condition, Sets


MARKS_A_SLOT: Final = 8
AT_ONCE: Final = 32
"""The features that are looked up in the marks at a time."""


def members_room(features: int) -> int:
    """The words of working memory for the members of a document, by its features."""
    return 5 * features + 5


@inner
def fill_members(features: Hashes, begin: int, end: int, members: Uint64s) -> None:
    """Make `members` the set of features[begin:end]: slots, whether 0 is in it, table, marks.

    A free slot of the open table holds 0, therefore that feature has a place of its own. The marks
    are MARKS_A_SLOT bits a slot: those of the features are 1.
    """
    size = 2
    # Half of the slots stay free, so every search of the table meets a free one and ends.
    while size < 2 * (end - begin):
        size *= 2
    members[0] = np.uint64(size)
    marks = 2 + size
    fill(members, 1, marks + (size * MARKS_A_SLOT + 63) // 64, np.uint64(0))
    mask = np.uint64(size - 1)
    for i in range(begin, end):
        feature = features[i]
        mark = _mark(feature, size)
        members[marks + (mark >> 6)] |= np.uint64(1) << np.uint64(mark & 63)
        if not feature:
            members[1] = np.uint64(1)
            continue
        slot = np.int64(feature & mask)
        while members[2 + slot]:
            slot = np.int64(np.uint64(slot + 1) & mask)
        members[2 + slot] = feature


@inner
def _mark(feature: np.uint64, slots: int) -> int:
    return np.int64(feature >> np.uint64(32)) & (slots * MARKS_A_SLOT - 1)


@inner
def _may_overlap(features: Hashes, begin: int, end: int, members: Uint64s, needed: int) -> bool:
    """Whether this number of features may be members: by the marks, mostly 0; no branches."""
    slots = np.int64(members[0])
    marks, spare = 2 + slots, end - begin - needed
    for first in range(begin, end, AT_ONCE):
        for i in range(first, min(first + AT_ONCE, end)):
            mark = _mark(features[i], slots)
            marked = members[marks + (mark >> 6)] >> np.uint64(mark & 63)
            spare -= 1 - np.int64(marked & np.uint64(1))
        # A member always finds its mark, so only pairs that cannot reach `needed` are refused.
        if spare < 0:
            return False
    return True


@inner
def _overlap(features: Hashes, begin: int, end: int, members: Uint64s, needed: int) -> int:
    """Count the features that are members; stops, with too few, once `needed` is out of reach."""
    mask = members[0] - np.uint64(1)
    shared, spare = 0, end - begin - needed
    for i in range(begin, end):
        feature = features[i]
        slot = np.int64(feature & mask)
        while members[2 + slot] != feature and members[2 + slot]:
            slot = np.int64(np.uint64(slot + 1) & mask)
        if members[2 + slot] if feature else members[1]:
            shared += 1
        else:
            spare -= 1
            if spare < 0:
                return shared
    return shared


@inner
def _distance(codes: Codes, x: int, y: int) -> int:
    count = 0
    for word in range(codes.shape[1]):
        count += popcount(codes[x, word] ^ codes[y, word])
    return count


@inner
def is_match(x: int, y: int, members: Uint64s, sets: Sets, condition: Condition) -> float:
    """The similarity of two documents, or -1 if they do not match; `members` holds those of x."""
    begin, end = sets.offsets[y], sets.offsets[y + 1]
    size, other = sets.offsets[x + 1] - sets.offsets[x], end - begin
    needed = needed_overlap(size, other, condition)
    if not _may_overlap(sets.features, begin, end, members, needed):
        return -1.0
    shared = _overlap(sets.features, begin, end, members, needed)
    reached = score(shared, size, other, condition.measure)
    if reached >= condition.similarity and _distance(sets.codes, x, y) <= condition.distance:
        return reached
    return -1.0


@kernel
def scores(features: Hashes, offsets: Offsets, left: Int64s, right: Int64s, measure: int) -> Any:
    """Measure how similar documents left[i] and right[i] are; float64 (m,), 1 if both are empty."""
    longest = 0
    for x in left:
        longest = max(longest, offsets[x + 1] - offsets[x])
    members = np.empty(5 * longest + 4, np.uint64)
    reached = np.ones(left.size, np.float64)
    for i in range(left.size):
        x, y = left[i], right[i]
        size, other = offsets[x + 1] - offsets[x], offsets[y + 1] - offsets[y]
        if size and other:
            fill_members(features, offsets[x], offsets[x + 1], members)
            shared = _overlap(features, offsets[y], offsets[y + 1], members, np.int64(0))
            reached[i] = score(shared, size, other, measure)
        elif size or other:
            reached[i] = 0.0
    return reached
