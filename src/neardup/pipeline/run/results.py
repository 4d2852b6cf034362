"""What a run found, as tables: one row for each dropped document, one row for each document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.documents.addresses import RowAddresses
from neardup.documents.tables import CLUSTERS, DUPLICATES, VIA
from neardup.fingerprinting.values import distance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.documents.addresses import Addresses, ReferenceAddresses
    from neardup.pipeline.run.decision import Decision, References
    from neardup.pipeline.run.reading import Documents

__all__ = [
    "ROWS_A_BATCH",
    "cluster_batches",
    "clusters_schema",
    "duplicates_table",
]

ROWS_A_BATCH: Final = 1 << 16


def duplicates_table(
    documents: Documents, decision: Decision, own: Addresses | RowAddresses
) -> pa.Table:
    """One row for each dropped document: what is kept for it, how alike the two are, the way.

    The columns are those of DUPLICATES, addresses of the type that `own` gives.
    """
    addresses = _addresses(decision, own)
    dropped = np.flatnonzero(~decision.kept)
    kept = decision.kept_by[dropped]
    codes = documents.codes[: documents.own]
    if decision.references is not None and len(decision.references.codes):
        codes = np.concatenate([codes, _codes_of(decision.references, codes.shape[1])])
    similarity = pa.nulls(dropped.size, pa.float64())
    if decision.similarity is not None:
        similarity = pa.array(decision.similarity[dropped])
    columns = [
        addresses.of(dropped),
        addresses.of(kept),
        pa.array(distance(codes[dropped], codes[kept]), pa.int32(), mask=_unknown(decision, kept)),
        similarity,
        addresses.of(decision.label[dropped]),
    ]
    if decision.via is None:
        return pa.table(columns, DUPLICATES.names)
    return pa.table([*columns, addresses.of(decision.via[dropped])], DUPLICATES.append(VIA).names)


def _codes_of(references: References, width: int) -> Any:
    """Their fingerprints, uint64 (m, width); zeros where they are not known."""
    codes = references.codes
    return codes if codes.shape[1] else np.zeros((len(codes), width), np.uint64)


def _unknown(decision: Decision, kept: Any) -> Any:
    """Which kept documents are an index's that knows no fingerprints: bool, None for none."""
    references = decision.references
    if references is None or references.codes.shape[1]:
        return None
    return kept >= len(decision.kept_by)


def clusters_schema(own: Addresses | RowAddresses) -> pa.Schema:
    """CLUSTERS with addresses of the type that `own` gives."""
    kind = own.of(np.zeros(0, np.int64)).type
    return pa.schema([("id", kind), ("cluster", kind), CLUSTERS.field("kept")])


def cluster_batches(decision: Decision, own: Addresses | RowAddresses) -> Iterator[pa.RecordBatch]:
    """One row for each document: the address that names its cluster, and whether it is kept."""
    addresses = _addresses(decision, own)
    kept = decision.kept
    for begin in range(0, kept.size, ROWS_A_BATCH):
        rows = np.arange(begin, min(begin + ROWS_A_BATCH, kept.size))
        columns = [
            addresses.of(rows),
            addresses.of(decision.label[rows]),
            pa.array(kept[rows], pa.bool_()),
        ]
        yield pa.record_batch(columns, CLUSTERS.names)


def _addresses(
    decision: Decision, own: Addresses | RowAddresses
) -> Addresses | RowAddresses | ReferenceAddresses:
    if decision.references is None or isinstance(own, RowAddresses):
        return own
    return own.beside(decision.references.ids)
