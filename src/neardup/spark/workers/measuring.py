"""On the workers: measure pairs where the features of both documents are at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.fingerprinting.values import distance
from neardup.similarity.feature_sets import similarities
from neardup.spark.workers.partition_rows import arrays_of, batches_of, part_of, sets_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.similarity.feature_sets import Match

__all__ = ["EDGES", "REQUESTS", "ROUTED", "measure", "requests", "routed_pairs"]

REQUESTS: Final = "p int, number long"
ROUTED: Final = "p int, number long, right long"
EDGES: Final = (
    "left long, right long, left_score double, right_score double, distance int, similarity double"
)


def requests(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """The documents that each partition of PAIRS needs: REQUESTS, some repeated."""
    for batch in batches:
        left, right = arrays_of(batch, "left", "right")
        p, numbers = np.tile(part_of(right, parts), 2), np.concatenate([left, right])
        order = np.lexsort((p, numbers))
        p, numbers = p[order], numbers[order]
        new = np.append(True, (np.diff(p) != 0) | (np.diff(numbers) != 0))[: len(p)]
        yield pa.record_batch({"p": p[new], "number": numbers[new]})


def routed_pairs(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Send PAIRS to the partition that `requests` named; gives ROUTED."""
    for batch in batches:
        left, right = arrays_of(batch, "left", "right")
        yield pa.record_batch({"p": part_of(right, parts), "number": left, "right": right})


def measure(
    batches: Iterable[pa.RecordBatch], match: Match | None, measure_name: str
) -> Iterator[pa.RecordBatch]:
    """Measure pairs that are joined with their documents; gives EDGES.

    Args:
        batches: Rows of `right` null, which are documents, and of `right` a number: pairs.
        match: Give only pairs that match; None: all.
        measure_name: Of the similarity; "" for none.
    """
    table = whole(batches)
    if table is None:
        return
    is_pair = table.column("right").is_valid()
    pairs, documents = table.filter(is_pair), table.filter(is_pair.to_numpy() ^ True)
    numbers, sets, codes = sets_of(documents)
    order = np.argsort(numbers, kind="stable")
    left, right = arrays_of(pairs, "number", "right")
    one, other = (order[np.searchsorted(numbers[order], side)] for side in (left, right))
    within = documents.column("within").cast(pa.string()).combine_chunks()
    groups = within.dictionary_encode(null_encoding="encode").indices.to_numpy()
    (score,) = arrays_of(documents, "score")
    columns: dict[str, Any] = {
        "left": left,
        "right": right,
        "left_score": score[one],
        "right_score": score[other],
        "distance": distance(codes[one], codes[other]).astype(np.int32),
        "similarity": pa.nulls(len(left), pa.float64()),
    }
    good = np.ones(len(left), np.bool_)
    if measure_name:
        columns["similarity"] = reached = similarities(sets, one, other, measure_name)
        if match is not None:
            good = (reached >= match.similarity) & (groups[one] == groups[other])
    if match is not None and match.distance is not None:
        good &= columns["distance"] <= match.distance
    yield from batches_of(pa.table(columns).filter(pa.array(good)))
