"""On the workers: which documents of a component are kept, exactly as one machine decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.spark.classes import first_in_order, order_of
from neardup.spark.tables import arrays_of, batches_of, part_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["DECISIONS", "MEMBERS", "decide", "members"]

MEMBERS: Final = (
    "p int, label long, left long, right long, left_score double, right_score double, equal boolean"
)
DECISIONS: Final = "number long, kept_by long, label long"


def members(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Send edges, and documents with the one that stands for them, by their label."""
    for batch in batches:
        (label,) = arrays_of(batch, "label")
        names = ("label", "left", "right", "left_score", "right_score", "equal")
        columns = {name: batch.column(name) for name in names}
        yield pa.record_batch({"p": pa.array(part_of(label, parts))} | columns)


def decide(batches: Iterable[pa.RecordBatch], keep: str, policy: str) -> Iterator[pa.RecordBatch]:
    """Decide for every document of whole components: MEMBERS to DECISIONS.

    Greedy keep inside a component is greedy keep over all, since matches never leave it. Takes
    about 100 bytes of memory for each edge of the partition's components.
    """
    table = whole(batches)
    if table is None:
        return
    left, right, label = arrays_of(table, "left", "right", "label")
    left_score, right_score = arrays_of(table, "left_score", "right_score")
    equal = table.column("equal").to_numpy()
    ends = np.concatenate([left, right])
    numbers, first, places = np.unique(ends, return_index=True, return_inverse=True)
    score = np.concatenate([left_score, right_score])[first]
    labels = np.concatenate([label, label])[first]
    order = order_of(keep, score, numbers)
    one, other = places[: len(left)], places[len(left) :]
    if policy == "greedy":
        kept = _greedy(one[~equal], other[~equal], order)
        kept[other[equal]] = kept[one[equal]]
        labels = numbers[kept]
    else:
        groups = np.unique(labels, return_inverse=True)[1]
        kept = first_in_order(groups, order)
    columns = {"number": numbers, "kept_by": numbers[kept], "label": labels}
    yield from batches_of(pa.table(columns))


def _greedy(one: Any, other: Any, order: Any) -> Any:
    """For each place the kept one of highest priority that it has an edge to, or itself."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    earlier = np.minimum(rank[one], rank[other])
    later = np.maximum(rank[one], rank[other])
    by_later = np.lexsort((earlier, later))
    kept = list(range(len(order)))
    for low, high in zip(earlier[by_later].tolist(), later[by_later].tolist(), strict=True):
        if kept[high] == high and kept[low] == low:
            kept[high] = low
    decided = np.empty(len(order), np.int64)
    decided[order] = order[np.array(kept, np.int64)]
    return decided
