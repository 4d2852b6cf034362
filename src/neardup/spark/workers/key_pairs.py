"""On the workers: the pairs that share a key, less those that cannot be similar enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.spark.workers.partition_rows import arrays_of, batches_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.runtime.types import Flags, Rows
    from neardup.similarity.feature_sets import Match

__all__ = ["MORE", "PAIRS", "candidates"]

PAIRS: Final = "left long, right long"
MORE: Final = -1
"""Stands for both numbers of a pair: there are pairs that were not listed."""
PAIRS_AT_ONCE: Final = 1 << 20
_LARGEST: Final = (1 << 32) - 1
_LEAST_RATIO: Final = 0.5**32
"""The least ratio of sizes from 1 to _LARGEST; a lower one may be 0, or too low to divide by."""
_HALF: Final = np.uint64(32)
_SIDE: Final = 1 << 32
_GROUP: Final = 1 << 34


def candidates(
    batches: Iterable[pa.RecordBatch], match: Match, leads: bool, most: int | None = None,
    seen: int = 0,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """List the pairs of POSTINGS that may match; gives PAIRS, some repeated.

    A pair is left out where sizes, the places of the key in both documents or the parities of
    their features rule it out (as on one machine). With `leads` the left document is of side 1,
    else it has the lower number. Memory: the partition's postings, 60 bytes each, and about
    PAIRS_AT_ONCE pairs.

    Args:
        batches: Postings. With a column `label`, documents of the same label do not meet.
        match: When two documents match.
        leads: Whether side 1 leads.
        most: The most other postings that each one meets; a row MORE says that there are more.
            None: all.
        seen: `most` of the round before, which listed all pairs of keys with no more documents.
    """
    table = whole(batches)
    if table is None:
        return
    table = _in_order(table)
    if not len(table):
        return
    if "label" in table.column_names:
        begins, ends = _ranges_of_labels(table)
    else:
        begins, ends = _ranges(table, match.least_ratio)
    counts = np.maximum(ends - begins, 0)
    if most is not None:
        counts[_runs(table) <= seen + 1] = 0
        if (counts > most).any():
            yield pa.record_batch({"left": [MORE], "right": [MORE]})
        counts = np.minimum(counts, most)
    columns = arrays_of(table, "number", "size", "before", "sketch")
    names, places = np.unique(columns[0], return_inverse=True)
    places, begin = places.astype(np.uint64), 0
    while begin < len(counts):
        total = np.cumsum(counts[begin : begin + PAIRS_AT_ONCE])
        end = begin + max(1, int(np.searchsorted(total, PAIRS_AT_ONCE)))
        some = counts[begin:end]
        left = np.repeat(np.arange(begin, begin + len(some)), some)
        within = np.arange(len(left)) - np.repeat(np.cumsum(some) - some, some)
        right = begins[left] + within
        good = _possible(columns, left, right, match)
        if good.any():
            one, other = places[left[good]], places[right[good]]
            if not leads:
                one, other = np.minimum(one, other), np.maximum(one, other)
            packed = np.sort(one << _HALF | other)
            packed = packed[np.append(True, packed[1:] != packed[:-1])]
            pairs = names[packed >> _HALF], names[packed & np.uint64(_LARGEST)]
            yield from batches_of(pa.table(dict(zip(("left", "right"), pairs, strict=True))))
        begin += len(some)


def _in_order(table: pa.Table) -> pa.Table:
    """The postings of keys that two or more have, those of a key by side, size and number.

    By side, label and number where they have labels.
    """
    by = "label" if "label" in table.column_names else "size"
    keys, side, size, number = arrays_of(table, "key", "side", by, "number")
    order = np.argsort(keys)
    same = np.diff(keys[order]) == 0
    shared = order[np.append(same, False) | np.append(False, same)]
    ordered = np.lexsort((number[shared], size[shared], side[shared], keys[shared]))
    return table.take(pa.array(shared[ordered]))


def _ranges(table: pa.Table, ratio: float) -> tuple[Rows, Rows]:
    """The range of rows that each row meets: those of its key and of a similar size."""
    keys, side, size = arrays_of(table, "key", "side", "size")
    group = np.cumsum(np.diff(keys, prepend=keys[:1]) != 0) * _GROUP
    place = group + side.astype(np.int64) * _SIDE + size
    most = np.minimum(np.floor(size / max(ratio, _LEAST_RATIO)), _LARGEST).astype(np.int64)
    least = np.ceil(size * ratio).astype(np.int64)
    begins, ends = np.arange(len(size)) + 1, np.zeros(len(size), np.int64)
    alone, leads = side == 0, side == 1
    ends[alone] = np.searchsorted(place, (group + most)[alone], "right")
    begins[leads] = np.searchsorted(place, (group + 2 * _SIDE + least)[leads], "left")
    ends[leads] = np.searchsorted(place, (group + 2 * _SIDE + most)[leads], "right")
    return begins, ends


def _ranges_of_labels(table: pa.Table) -> tuple[Rows, Rows]:
    """The range of rows that each row meets: those of its key, and of a later label."""
    keys, side, label = arrays_of(table, "key", "side", "label")
    group = np.cumsum(np.diff(keys, prepend=keys[:1]) != 0) * _GROUP
    rank = np.unique(label, return_inverse=True)[1]
    place = group + side.astype(np.int64) * _SIDE + rank
    other = group + np.array([0, 2, 1])[side] * _SIDE
    return np.searchsorted(place, other + rank, "right"), np.searchsorted(place, other + _SIDE)


def _runs(table: pa.Table) -> Rows:
    """The number of rows of each row's key."""
    (keys,) = arrays_of(table, "key")
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    lengths = np.diff(begins, append=len(keys))
    return np.repeat(lengths, lengths)


def _possible(columns: list[Any], left: Rows, right: Rows, match: Match) -> Flags:
    """Whether each pair may match and has no earlier key in common if it does."""
    numbers, size, before, sketch = columns
    shared = match.least_shared(size[left], size[right])
    room = np.minimum(size[left] - before[left], size[right] - before[right])
    apart = np.bitwise_count(sketch[left].view(np.uint64) ^ sketch[right].view(np.uint64))
    differ = size[left].astype(np.int64) + size[right] - 2 * shared
    possible: Flags = (room >= shared) & (apart <= differ) & (numbers[left] != numbers[right])
    return possible
