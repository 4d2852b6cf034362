"""On the workers: which documents of a component are kept, exactly as one machine decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.hamming.match_graph import greedy_of_pairs, paths_of_pairs
from neardup.spark.workers.classes import first_in_order, order_of
from neardup.spark.workers.measuring import EDGES
from neardup.spark.workers.tables import arrays_of, batches_of, part_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "DECISIONS",
    "LEVELS",
    "MEMBERS",
    "SENT",
    "by_right",
    "decide",
    "first_leaders",
    "levels",
    "members",
    "range_of",
]

MEMBERS: Final = (
    "p int, label long, left long, right long, left_score double, right_score double,"
    " distance int, equal boolean"
)
DECISIONS: Final = (
    "number long, kept_by long, label long, via long, score double, kept_score double"
)
SENT: Final = f"p int, {EDGES}"
LEVELS: Final = "number long, level int"


def members(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Send edges, and documents with the one that stands for them, by their label."""
    for batch in batches:
        (label,) = arrays_of(batch, "label")
        names = ("label", "left", "right", "left_score", "right_score", "distance", "equal")
        columns = {name: batch.column(name) for name in names}
        yield pa.record_batch({"p": pa.array(part_of(label, parts))} | columns)


def decide(
    batches: Iterable[pa.RecordBatch], keep: str, policy: str, by_features: bool
) -> Iterator[pa.RecordBatch]:
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
        kept = greedy_of_pairs(order, one[~equal], other[~equal])
        kept[other[equal]] = kept[one[equal]]
        labels, via = numbers[kept], kept
    else:
        groups = np.unique(labels, return_inverse=True)[1]
        kept = first_in_order(groups, order)
        stands = np.arange(len(numbers))
        stands[other[equal]] = one[equal]
        cost = np.where(by_features, 0, arrays_of(table, "distance")[0])
        via = paths_of_pairs(one[~equal], other[~equal], cost[~equal], stands, kept)
    columns = {
        "number": numbers,
        "kept_by": numbers[kept],
        "label": labels,
        "via": numbers[via],
        "score": score,
        "kept_score": score[kept],
    }
    yield from batches_of(pa.table(columns))


def by_right(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Send EDGES by the document on the right."""
    for batch in batches:
        (right,) = arrays_of(batch, "right")
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        yield pa.record_batch({"p": pa.array(part_of(right, parts))} | columns)


def first_leaders(batches: Iterable[pa.RecordBatch], keep: str) -> Iterator[pa.RecordBatch]:
    """Of the EDGES of each right document, all in one partition, that of the first left one."""
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
    """Count how many of the cuts (score and number, the last in order first) a document precedes.

    From rows of `number` and `score`; gives LEVELS.
    """
    for batch in batches:
        numbers, score = arrays_of(batch, "number", "score")
        place = range_of(numbers, score, cuts[::-1], keep)
        yield pa.record_batch({"number": numbers, "level": (len(cuts) - place).astype(np.int32)})


def range_of(numbers: Any, score: Any, cuts: list[tuple[float, int]], keep: str) -> Any:
    """How many of the cuts (score and number, in order) each document comes after, or is; int64."""
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


def _runs(values: Any) -> Any:
    return np.cumsum(np.diff(values, prepend=values[:1]) != 0)
