"""The keys of a document in the exact similarity join: its rarest features.

They are chosen by how many documents have them, counted in hashed cells. A cell has one byte: it
counts up to 255, a second table counts higher, and in the end the byte is the rank of the count.

Features that very many documents have tell them apart badly, each as badly as the other. From a
rank on they are *common*, and a document has one key for all of them, COMMON_KEY, in the place of
its first common feature: two documents whose first shared feature is a common one have that key.
Where all features are common, it is ALL_KEY, which all documents have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.jit import fill, inner, kernel, move
from neardup.kernels.similarity.measure_bounds import least_overlap

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Hashes, Int64s, Offsets, Rows, Uint32s
    from neardup.kernels.similarity.join_arguments import Condition, Rarity, Sets

MOST: Final = 255
"""The most documents that a cell counts; `beyond` counts on."""

EXACT: Final = 128
"""Counts up to this are ranks themselves; above, a rank is an eighth of an octave."""

_OCTAVE_STEPS_LOG2: Final = 3
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_CELL, _COUNT = 0, 1

TOP_BITS: Final = 6

COMMON_KEY, ALL_KEY = np.uint64(1), np.uint64(2)
"""The keys of common features. A feature with one of these hashes only has more documents."""


class _Chosen(NamedTuple):
    """The keys so far, with room for the rest, and working memory."""

    keys: Any  # uint64
    before: Any  # int32
    ranks: Any  # int64, as long as the longest document
    ties: Any  # uint64, likewise
    histogram: Any  # int64 (MOST + 1,)


@inner
def _slot(beyond: Int64s, cell: int) -> int:
    """The slot of a cell, or a free one for it, in an open table."""
    mask = len(beyond) - 1
    slot = np.int64((np.uint64(cell) * _SPREAD) >> np.uint64(32)) & mask
    while beyond[slot, _COUNT] and beyond[slot, _CELL] != cell:
        slot = (slot + 1) & mask
    return slot


@kernel
def count_bins(features: Hashes, first: int, last: int, shift: np.uint64, counts: Int64s) -> None:
    """Count features[first:last] by their upper bits: counts[h >> shift] += 1; O(features).

    Args:
        features: uint64, hashes.
        first: See above.
        last: See above.
        shift: uint64.
        counts: int64 (bins,), added to.
    """
    for i in range(first, last):
        counts[np.int64(features[i] >> shift)] += 1


@kernel
def cells_by_bin(
    features: Hashes, first: int, last: int, shift: np.uint64, bin_shift: np.uint64, places: Int64s,
    cells: Uint32s,
) -> None:  # fmt: skip
    """Put the cells of features[first:last] in the order of their bins; O(features).

    Args:
        features: uint64, hashes.
        first: See above.
        last: See above.
        shift: uint64; the cell of hash h is h >> shift.
        bin_shift: uint64; its bin, a range of cells, is h >> bin_shift.
        places: int64 (bins,): where the next cell of each bin goes; advanced.
        cells: uint32, written: numbers of cells, counted from the first one of the bin.
    """
    mask = (np.uint64(1) << (bin_shift - shift)) - np.uint64(1)
    for i in range(first, last):
        own = np.int64(features[i] >> bin_shift)
        at = places[own]
        places[own] = at + 1
        cells[at] = np.uint32((features[i] >> shift) & mask)


@kernel
def count_cells(
    numbers: Uint32s, starts: Offsets, first: int, last: int, cells: Bytes, beyond: Int64s
) -> None:
    """Count the cells that `cells_by_bin` put in the bins first..last-1; O(features).

    A bin is so short that its cells stay near the processor.

    Args:
        numbers: uint32.
        starts: int64 (bins + 1,): where the numbers of each bin begin.
        first: See above.
        last: See above.
        cells: uint8, all of them, added to, up to MOST.
        beyond: int64 (slots, 2), zeros at first: an open table of the cells at MOST and how many
            features more they have; a power of two, at least `beyond_slots`. For these bins only.
    """
    width = cells.size // (starts.size - 1)
    for bin_ in range(first, last):
        for i in range(starts[bin_], starts[bin_ + 1]):
            cell = bin_ * width + np.int64(numbers[i])
            if cells[cell] < MOST:
                cells[cell] += np.uint8(1)
            else:
                slot = _slot(beyond, cell)
                beyond[slot, _CELL] = cell
                beyond[slot, _COUNT] += 1


def beyond_slots(features: int) -> int:
    """The slots of a table for all cells that this number of features can take beyond MOST."""
    return 1 << max(4, (2 * (features // (MOST + 1) + 1) - 1).bit_length())


@inner
def _rank(count: int) -> int:
    """The rank of a count: never above that of a larger one, and within a byte."""
    if count <= EXACT:
        return count
    octave, rest = 0, count
    while rest >= 2 * EXACT:
        rest >>= 1
        octave += 1
    steps = 1 << _OCTAVE_STEPS_LOG2
    return min(MOST, EXACT + octave * steps + (rest - EXACT) * steps // EXACT)


@kernel
def rank_cells(cells: Bytes, first: int, beyond: Int64s) -> None:
    """Replace counts by ranks: exact up to EXACT, above in eighths of an octave; O(cells).

    Args:
        cells: uint8, from `count_cells`: those of some bins.
        first: The number of cells[0] among the cells of all bins.
        beyond: Of the same bins.
    """
    for i in range(cells.size):
        count = np.int64(cells[i])
        if count > EXACT:
            if count == MOST:
                count += beyond[_slot(beyond, first + i), _COUNT]
            cells[i] = np.uint8(_rank(count))


@inner
def _select_smallest(values: Any, low: int, high: int, count: int) -> None:
    """Move the smallest of values[low:high + 1] to its front, into values[:count] (quickselect)."""
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if count - 1 <= j:
            high = j
        elif count - 1 >= i:
            low = i
        else:
            return


@inner
def _top(value: Any) -> int:
    return np.int64(value >> np.uint64(64 - TOP_BITS))


@inner
def _bring_forward(values: Any, count: int, top: int) -> int:
    """Move those of values[:count] with top bits up to `top` to the front; returns where they end.

    There is no branch on a value, since it could not be predicted.
    """
    end = 0
    for i in range(count):
        value, other = values[i], values[end]
        chosen = _top(value) <= top
        values[i] = other if chosen else value
        values[end] = value if chosen else other
        end += np.int64(chosen)
    return end


@inner
def _smallest_first(values: Any, count: int, selected: int, smaller: Any) -> None:
    """Move the `selected` smallest of values[:count] to its front.

    Their top bits are counted, so that hashes need next to no comparison; smaller[t] becomes the
    number of values of smaller top bits than t, up to the largest top bits of those selected.
    """
    tops = 1 << TOP_BITS
    fill(smaller, 0, tops + 1, 0)
    for i in range(count):
        smaller[_top(values[i]) + 1] += 1
    top = 0
    while smaller[top + 1] < selected:
        top += 1
        smaller[top + 1] += smaller[top]
    end = _bring_forward(values, count, top)
    begin = _bring_forward(values, end, top - 1)
    _select_smallest(values, begin, end - 1, selected)


@inner
def _select_keys(
    features: Any, begin: int, end: int, rarity: Rarity, prefix: int, chosen: _Chosen, used: int
) -> int:
    """Write the keys of features[begin:end] behind the first `used`; returns how many there are.

    The prefix are the `prefix` features of the lowest ranks; among equal ranks, hashes decide. All
    common ones among them have one key.
    """
    keys, before, ranks, ties = chosen.keys, chosen.before, chosen.ranks, chosen.ties
    histogram, size, alone = chosen.histogram, end - begin, 0
    if not rarity.common:
        keys[used], before[used] = ALL_KEY, 0
        return used + 1
    for i in range(begin, end):
        ranks[i - begin] = np.int64(rarity.cells[np.int64(features[i] >> rarity.shift)])
        if ranks[i - begin] == 1:
            alone += 1
            if alone == prefix:
                return used
    fill(histogram, 0, histogram.size, 0)
    for i in range(size):
        histogram[ranks[i]] += 1
    # `earlier` features have a rank up to `cut`, and they are fewer than the prefix.
    cut, earlier = 1, alone
    while cut < rarity.common and earlier + histogram[cut + 1] < prefix:
        cut += 1
        earlier += histogram[cut]
    cut += 1
    tied = 0
    for rank in range(2, cut):
        histogram[rank] += histogram[rank - 1]
    # Now histogram[r] features have a rank from 1 to r, for each r below the cut.
    for i in range(size):
        rank = ranks[i]
        if 1 < rank < cut:
            keys[used] = features[begin + i]
            before[used] = histogram[rank - 1]
            used += 1
        elif rank == cut:
            ties[tied] = features[begin + i]
            tied += 1
    if cut > rarity.common:
        keys[used], before[used] = COMMON_KEY, earlier
        return used + 1
    count = prefix - earlier
    _smallest_first(ties, tied, count, histogram)
    for i in range(count):
        keys[used] = ties[i]
        before[used] = earlier + histogram[_top(ties[i])]
        used += 1
    return used


@kernel
def select_keys(
    documents: Rows, sets: Sets, rarity: Rarity, condition: Condition, key_offsets: Int64s
) -> Any:
    """Choose the keys of each document: its prefix, less the features that it alone has.

    O(features).

    Args:
        documents: int64 (m,): which documents.
        sets: Sets.
        rarity: Rarity.
        condition: Condition.
        key_offsets: int64 (m + 1,), written: document j has the keys from key_offsets[j] to
            key_offsets[j + 1].

    Returns:
        keys: uint64, and before: int32, how many features of the document are before it.
    """
    features, offsets = sets.features, sets.offsets
    total, longest = 0, 0
    for document in documents:
        size = offsets[document + 1] - offsets[document]
        if size:
            total += size - least_overlap(size, condition) + 1
            longest = max(longest, size)
    keys, before = np.empty(total, np.uint64), np.empty(total, np.int32)
    ranks, ties = np.empty(longest, np.int64), np.empty(longest, np.uint64)
    chosen = _Chosen(keys, before, ranks, ties, np.empty(MOST + 1, np.int64))
    used = np.int64(0)
    key_offsets[0] = 0
    for j in range(documents.size):
        begin, end = offsets[documents[j]], offsets[documents[j] + 1]
        if end > begin:
            prefix = end - begin - least_overlap(end - begin, condition) + 1
            used = _select_keys(features, begin, end, rarity, prefix, chosen, used)
        key_offsets[j + 1] = used
    kept_keys, kept_before = np.empty(used, np.uint64), np.empty(used, np.int32)
    move(keys, used, kept_keys)
    move(before, used, kept_before)
    return kept_keys, kept_before
