"""On the workers: decide a component that is too large for one task, a part or a step at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.spark.workers.decide_components import edges_to, greedy, range_of
from neardup.spark.workers.equal_documents import order_of
from neardup.spark.workers.partition_rows import arrays_of, batches_of, mixed, part_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "BEST",
    "DROPPED",
    "MEMBER",
    "NODES",
    "RANGED",
    "SAMPLE",
    "STEPS",
    "VIA",
    "best",
    "greedy_range",
    "in_order",
    "lowest",
    "lowest_of",
    "nearest",
    "oriented",
    "sample",
    "steps",
]

BEST: Final = "number long, score double"
SAMPLE: Final = "number long, score double, by long"
SAMPLED: Final = 1 << 13
RANGED: Final = (
    "early long, early_score double, late long, late_score double, early_range int, late_range int,"
    " distance int, similarity double"
)
DROPPED: Final = (
    "number long, kept_by long, score double, kept_score double, distance int, similarity double"
)
MEMBER: Final = "p int, number long, stands long, score double"
NODES: Final = "number long, stands long, score double, lowest long"
STEPS: Final = "p int, number long, cost int, via long"
VIA: Final = "number long, via long"


def sample(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Choose the SAMPLED rows of the smallest hashes; gives SAMPLE.

    Takes rows of `number` and `score`, RANGED, of which it takes the later ends, or SAMPLE.
    """
    chosen_so_far = [np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)]
    for batch in batches:
        if "late" in batch.schema.names:
            early, numbers, score = arrays_of(batch, "early", "late", "late_score")
            by = mixed(early) + mixed(mixed(numbers))
        else:
            numbers, score = arrays_of(batch, "number", "score")
            by = arrays_of(batch, "by")[0] if "by" in batch.schema.names else mixed(numbers)
        arrays = numbers, score, by.view(np.int64)
        both = [np.concatenate(pair) for pair in zip(chosen_so_far, arrays, strict=True)]
        # By hash, then number: the same rows however they are dealt to tasks.
        chosen = np.lexsort((both[0], both[2]))[:SAMPLED]
        chosen_so_far = [column[chosen] for column in both]
    yield from batches_of(
        pa.table(dict(zip(("number", "score", "by"), chosen_so_far, strict=True)))
    )


def in_order(rows: pa.Table, keep: str) -> list[tuple[float, int]]:
    """A sample as pairs of score and number, in the order of priority."""
    numbers, score = arrays_of(rows, "number", "score")
    order = order_of(keep, score, numbers)
    return list(zip(score[order].tolist(), numbers[order].tolist(), strict=True))


def oriented(
    batches: Iterable[pa.RecordBatch], cuts: list[tuple[float, int]], keep: str
) -> Iterator[pa.RecordBatch]:
    """Order the ends of links by priority and add the ranges of both; gives RANGED."""
    for batch in batches:
        left, right = arrays_of(batch, "left", "right")
        scores = arrays_of(batch, "left_score", "right_score")
        ends, score = np.concatenate([left, right]), np.concatenate(scores)
        rank = np.empty(len(ends), np.int64)
        rank[order_of(keep, score, ends)] = np.arange(len(ends))
        ranges = range_of(ends, score, cuts, keep).astype(np.int32)
        one, other = np.arange(len(left)), np.arange(len(left)) + len(left)
        early = np.where(rank[one] < rank[other], one, other)
        late = one + other - early
        columns = {
            "early": ends[early],
            "early_score": score[early],
            "late": ends[late],
            "late_score": score[late],
            "early_range": ranges[early],
            "late_range": ranges[late],
            "distance": batch.column("distance"),
            "similarity": batch.column("similarity"),
        }
        yield pa.record_batch(columns)


def greedy_range(batches: Iterable[pa.RecordBatch], keep: str) -> Iterator[pa.RecordBatch]:
    """Decide for all later ends in a range of RANGED; gives DROPPED.

    Earlier ends that are not among the later ones are kept.
    """
    table = whole(batches)
    if table is None:
        return
    early, late = arrays_of(table, "early", "late")
    scores = np.concatenate(arrays_of(table, "early_score", "late_score"))
    ends = np.concatenate([early, late])
    numbers, first, places = np.unique(ends, return_index=True, return_inverse=True)
    score = scores[first]
    order = order_of(keep, score, numbers)
    one, other = places[: len(early)], places[len(early) :]
    kept = greedy(one, other, order)
    gone = np.flatnonzero(kept != np.arange(len(kept)))
    edges = table.take(pa.array(edges_to(one, other, kept)[gone]))
    columns = {
        "number": numbers[gone],
        "kept_by": numbers[kept[gone]],
        "score": score[gone],
        "kept_score": score[kept[gone]],
        "distance": edges.column("distance"),
        "similarity": edges.column("similarity"),
    }
    yield from batches_of(pa.table(columns))


def best(batches: Iterable[pa.RecordBatch], keep: str) -> Iterator[pa.RecordBatch]:
    """Find the document of highest priority among links, or rows of BEST; gives one row of BEST."""
    best_so_far: tuple[Any, Any] | None = None
    for batch in batches:
        if "left" in batch.schema.names:
            numbers = np.concatenate(arrays_of(batch, "left", "right"))
            score = np.concatenate(arrays_of(batch, "left_score", "right_score"))
        else:
            numbers, score = arrays_of(batch, "number", "score")
        if best_so_far is not None:
            numbers, score = np.append(numbers, best_so_far[0]), np.append(score, best_so_far[1])
        if len(numbers):
            first = order_of(keep, score, numbers)[0]
            best_so_far = numbers[first], score[first]
    if best_so_far is not None:
        yield pa.record_batch({"number": [int(best_so_far[0])], "score": [float(best_so_far[1])]})


def lowest(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Send the documents of links by their representatives; gives MEMBER."""
    for batch in batches:
        left, right = arrays_of(batch, "left", "right")
        left_score, right_score = arrays_of(batch, "left_score", "right_score")
        equal = np.asarray(batch.column("equal").to_numpy(zero_copy_only=False), np.bool_)
        stands = np.concatenate([left, np.where(equal, left, right)])
        columns = {
            "p": part_of(stands, parts),
            "number": np.concatenate([left, right]),
            "stands": stands,
            "score": np.concatenate([left_score, right_score]),
        }
        yield pa.record_batch(columns)


def lowest_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """List each document once, with the lowest number of those that equal it: MEMBER to NODES."""
    table = whole(batches)
    if table is None:
        return
    numbers, stands, score = arrays_of(table, "number", "stands", "score")
    numbers, first = np.unique(numbers, return_index=True)
    stands, score = stands[first], score[first]
    groups = np.unique(stands, return_inverse=True)[1]
    least = np.full(int(groups.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, groups, numbers)
    columns = {"number": numbers, "stands": stands, "score": score, "lowest": least[groups]}
    yield from batches_of(pa.table(columns))


def steps(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Send possible steps (`number`, `cost`, `via`) by their document; gives STEPS."""
    for batch in batches:
        (numbers,) = arrays_of(batch, "number")
        columns = {name: batch.column(name) for name in ("number", "cost", "via")}
        yield pa.record_batch({"p": pa.array(part_of(numbers, parts))} | columns)


def nearest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Choose the cheapest step from each document, of ties to the lowest number: STEPS to VIA."""
    table = whole(batches)
    if table is None:
        return
    numbers, cost, via = arrays_of(table, "number", "cost", "via")
    # Equal costs go to the lowest number, so that the order in which rows arrive tells nothing.
    order = np.lexsort((via, cost, numbers))
    unique, first = np.unique(numbers[order], return_index=True)
    yield from batches_of(pa.table({"number": unique, "via": via[order[first]]}))
