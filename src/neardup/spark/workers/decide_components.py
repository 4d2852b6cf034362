"""On the workers: the kept documents of a component, exactly as one machine decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.spark.workers.equal_documents import first_in_order, order_of
from neardup.spark.workers.measuring import EDGES
from neardup.spark.workers.partition_rows import arrays_of, batches_of, part_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from neardup.runtime.types import Rows

__all__ = [
    "DECISIONS",
    "LEVELS",
    "MEMBERS",
    "SENT",
    "by_right",
    "decide",
    "edges_to",
    "first_leaders",
    "greedy",
    "levels",
    "members",
    "range_of",
]

MEMBERS: Final = (
    "p int, left long, right long, left_score double, right_score double, distance int,"
    " similarity double, equal boolean"
)
DECISIONS: Final = (
    "number long, kept_by long, label long, via long, score double, kept_score double,"
    " distance int, similarity double"
)
"""A decision for each document. Distance and similarity are those of a dropped document to the
kept one; only greedy keep has them."""
SENT: Final = f"p int, {EDGES}"
LEVELS: Final = "number long, level int"


def members(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Send edges, and documents with their representatives, by their label."""
    for batch in batches:
        (label,) = arrays_of(batch, "label")
        columns = {name: batch.column(name) for name in batch.schema.names if name != "label"}
        yield pa.record_batch({"p": pa.array(part_of(label, parts))} | columns)


def decide(batches: Iterable[pa.RecordBatch], keep: str) -> Iterator[pa.RecordBatch]:
    """Decide for each document of whole components: MEMBERS to DECISIONS.

    Greedy keep inside a component is greedy keep over all, since matches never leave it. Takes
    about 100 bytes of memory for each edge of the partition's components.
    """
    table = whole(batches)
    if table is None:
        return
    left, right = arrays_of(table, "left", "right")
    left_score, right_score = arrays_of(table, "left_score", "right_score")
    equal = table.column("equal").to_numpy()
    ends = np.concatenate([left, right])
    numbers, first, places = np.unique(ends, return_index=True, return_inverse=True)
    score = np.concatenate([left_score, right_score])[first]
    order = order_of(keep, score, numbers)
    one, other = places[: len(left)], places[len(left) :]
    kept = greedy(one[~equal], other[~equal], order)
    edge = edges_to(one[~equal], other[~equal], kept)
    edge[edge >= 0] = np.flatnonzero(~equal)[edge[edge >= 0]]
    copies, stands = other[equal], one[equal]
    kept[copies] = kept[stands]
    edge[copies] = np.where(edge[stands] < 0, np.flatnonzero(equal), edge[stands])
    # An edge of -1 is a null: of kept documents.
    measures = table.select(["distance", "similarity"]).take(pa.array(edge, mask=edge < 0))
    columns = {
        "number": numbers,
        "kept_by": numbers[kept],
        "label": numbers[kept],
        "via": numbers[kept],
        "score": score,
        "kept_score": score[kept],
        "distance": measures.column("distance"),
        "similarity": measures.column("similarity"),
    }
    yield from batches_of(pa.table(columns))


def greedy(one: Any, other: Any, order: Any) -> Any:
    """The kept document of highest priority with an edge to each place, or the place itself."""
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


def edges_to(one: Any, other: Any, kept: Any) -> Any:
    """The first edge between each place and the place kept for it; -1 for kept places."""
    size, edges = len(kept), np.full(len(kept), -1)
    dropped = np.flatnonzero(kept != np.arange(size))
    pairs = np.minimum(one, other) * size + np.maximum(one, other)
    order = np.argsort(pairs, kind="stable")
    ends = dropped, kept[dropped]
    edges[dropped] = order[
        np.searchsorted(pairs[order], np.minimum(*ends) * size + np.maximum(*ends))
    ]
    return edges


def by_right(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Send EDGES by the document on the right."""
    for batch in batches:
        (right,) = arrays_of(batch, "right")
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        yield pa.record_batch({"p": pa.array(part_of(right, parts))} | columns)


def first_leaders(batches: Iterable[pa.RecordBatch], keep: str) -> Iterator[pa.RecordBatch]:
    """The edge of each right document to its left one of highest priority, from all its EDGES."""
    table = whole(batches)
    if table is None:
        return
    left, right, score = arrays_of(table, "left", "right", "left_score")
    groups = np.unique(right, return_inverse=True)[1]
    first = np.unique(first_in_order(groups, order_of(keep, score, left)))
    yield from batches_of(table.drop_columns("p").take(pa.array(first)))


def levels(
    batches: Iterable[pa.RecordBatch], cuts: list[tuple[float, int]], keep: str
) -> Iterator[pa.RecordBatch]:
    """Count the cuts (score and number, the last in order first) that each document precedes.

    Takes rows of `number` and `score`; gives LEVELS.
    """
    for batch in batches:
        numbers, score = arrays_of(batch, "number", "score")
        place = range_of(numbers, score, cuts[::-1], keep)
        yield pa.record_batch({"number": numbers, "level": (len(cuts) - place).astype(np.int32)})


def range_of(
    numbers: Rows, score: npt.NDArray[np.float64], cuts: list[tuple[float, int]], keep: str
) -> Rows:
    """The number of cuts (score and number, in order) at or before each document; int64."""
    both = np.concatenate([numbers, np.array([number for _, number in cuts], np.int64)])
    scores = np.concatenate([score, np.array([x for x, _ in cuts], np.float64)])
    is_cut = np.arange(len(both)) >= len(numbers)
    order = order_of(keep, scores, both)
    if cuts:
        # A document that is a cut comes after it: its copy among the cuts is put first.
        order = order[np.lexsort((~is_cut[order], _runs(both[order])))]
    passed = np.empty(len(both), np.int64)
    passed[order] = np.cumsum(is_cut[order])
    return passed[: len(numbers)]


def _runs(values: Rows) -> Rows:
    return np.cumsum(np.diff(values, prepend=values[:1]) != 0)
