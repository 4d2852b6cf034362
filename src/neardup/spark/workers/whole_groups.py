"""On the workers: transitive groups decided by the features or fingerprints of their documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from neardup.fingerprinting.values import distance
from neardup.hamming.paths_by_distance import paths_by_distance
from neardup.similarity.feature_sets import similarities
from neardup.similarity.paths_by_features import paths_by_features
from neardup.spark.workers.equal_documents import first_in_order, order_of
from neardup.spark.workers.partition_rows import arrays_of, batches_of, part_of, sets_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.spark.engine import Settings

__all__ = ["MEMBERS", "SENT", "by_label", "decide_groups"]

MEMBERS: Final = "label long, lowest long, number long, score double, codes binary, features binary"
"""A representative of equal documents, and the `lowest` number of these."""
SENT: Final = f"p int, {MEMBERS}"


def by_label(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Send documents by the label of their group: SENT."""
    for batch in batches:
        (label,) = arrays_of(batch, "label")
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        yield pa.record_batch({"p": pa.array(part_of(label, parts))} | columns)


def decide_groups(
    batches: Iterable[pa.RecordBatch], settings: Settings
) -> Iterator[pa.RecordBatch]:
    """Decide for each document of whole groups, as one machine does: SENT to DECISIONS.

    The path to the kept document is searched without a list of pairs. It names equal documents by
    `lowest`.
    """
    table = whole(batches)
    if table is None:
        return
    table = table.take(pa.array(np.argsort(arrays_of(table, "lowest")[0])))
    numbers, sets, codes = sets_of(table)
    lowest, label, score = arrays_of(table, "lowest", "label", "score")
    first, groups = np.unique(label, return_index=True, return_inverse=True)[1:]
    kept = first_in_order(groups, order_of(settings.keep, score, numbers))
    is_kept = kept == np.arange(len(kept))
    if settings.by_features:
        reached = similarities(sets, np.arange(len(kept)), kept, settings.measure)
        via = paths_by_features(sets, kept, reached, settings.match, 1)
        similarity = pa.array(reached, mask=is_kept)
    else:
        via = paths_by_distance(codes, kept, settings.match.distance or 0)
        similarity = pa.nulls(len(kept), pa.float64())
    columns = {
        "number": numbers,
        "kept_by": numbers[kept],
        "label": lowest[first][groups],
        "via": np.where(via == kept, numbers[kept], lowest[via]),
        "score": score,
        "kept_score": score[kept],
        "distance": pa.array(distance(codes, codes[kept]).astype(np.int32), mask=is_kept),
        "similarity": similarity,
    }
    yield from batches_of(pa.table(columns))
