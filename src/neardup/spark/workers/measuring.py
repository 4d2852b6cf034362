"""On the workers: measure pairs where the features of both documents are at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.fingerprinting.values import distance
from neardup.similarity.feature_sets import similarities
from neardup.spark.workers.partition_rows import arrays_of, batches_of, sets_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.similarity.feature_sets import Match

__all__ = ["EDGES", "measure"]

EDGES: Final = (
    "left long, right long, left_score double, right_score double, distance int, similarity double"
)


def measure(
    batches: Iterable[pa.RecordBatch], match: Match | None, measure_name: str
) -> Iterator[pa.RecordBatch]:
    """Measure pairs that are joined with their documents; gives EDGES.

    Args:
        batches: Rows of `right` null, which are documents, and of `right` a number: pairs, some
            repeated.
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
    ends = arrays_of(pairs, "number", "right")
    one, other = (order[np.searchsorted(numbers[order], side)] for side in ends)
    one, other = np.divmod(np.unique(one * len(order) + other), len(order))
    within = documents.column("within").cast(pa.string()).combine_chunks()
    groups = within.dictionary_encode(null_encoding="encode").indices.to_numpy()
    (score,) = arrays_of(documents, "score")
    columns: dict[str, Any] = {
        "left": numbers[one],
        "right": numbers[other],
        "left_score": score[one],
        "right_score": score[other],
        "distance": distance(codes[one], codes[other]).astype(np.int32),
        "similarity": pa.nulls(len(one), pa.float64()),
    }
    good = np.ones(len(one), np.bool_)
    if measure_name:
        columns["similarity"] = reached = similarities(sets, one, other, measure_name)
        if match is not None:
            good = (reached >= match.similarity) & (groups[one] == groups[other])
    if match is not None and match.distance is not None:
        good &= columns["distance"] <= match.distance
    yield from batches_of(pa.table(columns).filter(pa.array(good)))
