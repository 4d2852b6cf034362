"""Document frequencies of features, counted in hashed cells and turned into ranks.

The cells are too many to stay near the processor, and features meet them in no order. So a slice
of features is first put in the order of bins, ranges of cells that do stay near it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.runtime.arrays import frozen
from neardup.runtime.partition_by_key import by_key, even_ranges
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from neardup.similarity.feature_sets import FeatureSets

__all__ = ["count_features", "merge_cells", "rarity"]

SLICE_FEATURES: Final = 1 << 24
"""The number of features counted at a time, so that features on disk need little memory."""

CELLS_A_FEATURE: Final = 2
LEAST_CELL_BITS: Final = 10
BIN_CELLS_LOG2: Final = 20
MOST_BINS_LOG2: Final = 8
"""The largest logarithm of the number of bins, since a kernel writes to all of them in turns."""

MOST_TABLES_LOG2: Final = 3


def merge_cells(parts: Iterable[Any], bits: int) -> Any:
    """Add the counts of parts, each up to 255; associative, and in any order.

    Example:
        >>> merge_cells([np.array([1, 200], np.uint8), np.array([2, 100], np.uint8)], 1).tolist()
        [3, 255]
    """
    total = np.zeros(1 << bits, np.uint8)
    for part in parts:
        total += np.minimum(part, 255 - total)
    return total


def rarity(sets: FeatureSets, workers: int) -> tuple[Any, Any]:
    """The document frequency of each cell of features, as a rank, and the shift to a cell."""
    from neardup.kernels.similarity.rare_keys import rank_cells

    cell_count = CELLS_A_FEATURE * max(1, sets.features.size)
    bits = max(
        LEAST_CELL_BITS, min((cell_count - 1).bit_length(), sets.cell_limit.bit_length() - 1)
    )
    capacity = max(1 << LEAST_CELL_BITS, sets.cell_limit // 4)
    cells, beyond = _count(sets.features, bits, workers, capacity, sets.forget)
    width = cells.size // len(beyond)

    def rank(_: int, number: int) -> None:
        first = number * width
        rank_cells(cells[first : first + width], first, beyond[number])

    in_threads(workers, rank, range(len(beyond)))
    return cells, np.uint64(64 - bits)


def count_features(features: Any, bits: int, workers: int = 1) -> Any:
    """Count in how many documents features are, up to 255; uint8 (2**bits,).

    Args:
        features: uint64: those of some documents, each at most once a document.
        bits: There are 2**bits cells; from 1 to 40.
        workers: Threads.
    """
    return _count(features, bits, workers, SLICE_FEATURES, lambda: None)[0]


def _count(
    features: Any, bits: int, workers: int, capacity: int, forget: Callable[[], None]
) -> tuple[Any, list[Any]]:
    """The counts of cells, and those beyond by equal ranges; `capacity` features are in memory."""
    from neardup.kernels.similarity.rare_keys import (
        beyond_slots,
        cells_by_bin,
        count_bins,
        count_cells,
    )

    tables_log2 = min(bits, MOST_TABLES_LOG2, (workers - 1).bit_length())
    bins_log2 = max(1, tables_log2, min(bits - BIN_CELLS_LOG2, MOST_BINS_LOG2))
    shift, bin_shift = np.uint64(64 - bits), np.uint64(64 - bins_log2)
    cells, slots = np.zeros(1 << bits, np.uint8), beyond_slots(features.size)
    beyond = [np.zeros((slots, 2), np.int64) for _ in range(1 << tables_log2)]
    together = 1 << (bins_log2 - tables_log2)
    capacity = min(capacity, SLICE_FEATURES)
    numbers = np.empty(min(capacity, features.size), np.uint32)
    for begin in range(0, features.size, capacity):
        part = frozen(features[begin : begin + capacity])

        def by_bins(first: int, last: int, counts: Any, part: Any = part) -> None:
            count_bins(part, first, last, bin_shift, counts)

        def scatter(first: int, last: int, places: Any, part: Any = part) -> None:
            cells_by_bin(part, first, last, shift, bin_shift, places, numbers)

        ranges = even_ranges(part.size, workers)
        starts = by_key(ranges, 1 << bins_log2, workers, by_bins, scatter)

        def count(_: int, table: int, starts: Any = starts) -> None:
            first = table * together
            count_cells(numbers, starts, first, first + together, cells, beyond[table])

        in_threads(workers, count, range(len(beyond)))
        forget()
    return cells, beyond
