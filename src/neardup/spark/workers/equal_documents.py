"""On the workers: equal documents and their representatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from neardup.spark.workers.partition_rows import arrays_of, batches_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from neardup.runtime.types import Rows

__all__ = ["COPIES", "PAST", "collapse", "first_in_order", "order_of"]

COPIES: Final = "number long, stands long, score double, stands_score double, lowest long"
"""A document, its representative, which is the equal one of highest priority, and the lowest number
of all that are equal."""

PAST: Final = 1 << 62
"""The first number of documents of the past, which are always kept."""


def order_of(keep: str, score: npt.NDArray[np.float64], numbers: Rows) -> Rows:
    """Places from the highest priority to the lowest; NaN scores come last, ties by number.

    Documents of the past, whose numbers begin at PAST, come before all.

    Example:
        >>> order_of("first", np.array([np.nan, 1.0, 1.0]), np.array([0, 2, 1])).tolist()
        [2, 1, 0]
    """
    is_own = numbers < PAST
    if keep == "last":
        return np.lexsort((np.where(is_own, -numbers, numbers), is_own))
    return np.lexsort((numbers, np.where(is_own, score, 0), is_own))


def first_in_order(groups: Rows, order: Rows) -> Rows:
    """The place, for each row, of the first row in an order that has the same group number."""
    best = np.full(int(groups.max(initial=-1)) + 1, len(order), np.int64)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    np.minimum.at(best, groups, rank)
    return order[best[groups]]


def collapse(batches: Iterable[pa.RecordBatch], keep: str) -> Iterator[pa.RecordBatch]:
    """Choose representatives of equal documents: COPIES.

    Takes rows of `digest`, `number` and `score`, those of a digest in one partition. Two documents
    with equal digests are taken to be equal.
    """
    table = whole(batches)
    if table is None:
        return
    encoded = table.column("digest").combine_chunks().cast(pa.binary()).dictionary_encode()
    groups = np.asarray(encoded.indices.to_numpy(), np.int64)
    repeated = np.flatnonzero(np.bincount(groups)[groups] > 1)
    numbers, score = (column[repeated] for column in arrays_of(table, "number", "score"))
    groups = groups[repeated]
    first = first_in_order(groups, order_of(keep, score, numbers))
    lowest = np.full(len(encoded.dictionary), np.iinfo(np.int64).max)
    np.minimum.at(lowest, groups, numbers)
    copies = np.flatnonzero(numbers != numbers[first])
    stands = first[copies]
    columns = {
        "number": numbers[copies],
        "stands": numbers[stands],
        "score": score[copies],
        "stands_score": score[stands],
        "lowest": lowest[groups[copies]],
    }
    yield from batches_of(pa.table(columns))
