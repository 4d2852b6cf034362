"""The decision about every document; on disk, Arrow data: a stream of rows, then of references.

Rows: kept_by, label, and similarity, via and own if they are known. The reference set, documents of
    a reference index, has rows of its own: id and codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.runtime.types import Codes, Flags, Rows

__all__ = ["Decision", "References", "decision_of", "write_decision"]

ROWS: Final = 1 << 20
"""Rows of a part; writing it takes little memory in comparison with the decision."""
ARRAYS: Final = {
    "kept_by": np.int64, "label": np.int64, "similarity": np.float64, "via": np.int64,
    "own": np.int8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class References:
    """Documents of an index that a decision names; their numbers follow the run's own.

    Args:
        ids: Arrow array (m,).
        codes: uint64 (m, w): their fingerprints.
        places: int64 (m,): their numbers among all documents of the index, if those took part.
        every: Arrow array: the ids of all documents of the index, if those took part.
    """

    ids: pa.Array
    codes: Codes
    places: Rows | None = None
    every: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision for every document.

    Args:
        kept_by: int64 (n,): the document kept for this one; a kept document names itself.
        label: int64 (n,): the document that names the cluster: the kept one (greedy) or the first
            one (components).
        similarity: float64 (n,): of the document and the one kept for it; None if not measured.
        references: Documents of an index that it names, if any.
        via: int64 (n,): for a dropped document the next one on a shortest path of matches to the
            document kept for it; None if that is always the kept one.
        own: int8 (n,): whether the index has each document's own id, with the same or other
            content; for ids that neardup makes, ABSENT unless the content is the same.
            None without an index.
    """

    kept_by: Rows
    label: Rows
    similarity: npt.NDArray[np.float64] | None
    references: References | None = None
    via: Rows | None = None
    own: npt.NDArray[np.int8] | None = None

    @property
    def kept(self) -> Flags:
        """Bool (n,): the document is kept."""
        kept: Flags = self.kept_by == np.arange(self.kept_by.size)
        return kept


def write_decision(decision: Decision, file: Any) -> None:
    """Write a decision to a file that is open for writing, in batches of rows."""
    arrays = {name: getattr(decision, name) for name in ARRAYS}
    _write(pa.table({name: x for name, x in arrays.items() if x is not None}), file)
    references = decision.references
    if references is not None:
        columns = {"id": references.ids.cast(pa.large_string())}
        width = references.codes.shape[1]
        if width:  # an index by similarity may know no fingerprints
            flat = pa.array(references.codes.reshape(-1))
            columns["codes"] = pa.FixedSizeListArray.from_arrays(flat, width)
        _write(pa.table(columns), file)


def decision_of(data: bytes | npt.NDArray[np.uint8]) -> Decision:
    """Read a decision from `write_decision`: bytes, or uint8 (n,)."""
    source = pa.BufferReader(pa.py_buffer(data))
    rows = pa.ipc.open_stream(source).read_all()
    columns = {name: np.array(rows[name], ARRAYS[name]) for name in rows.column_names}
    arrays: dict[str, Any] = dict.fromkeys(ARRAYS) | columns
    references = None
    if source.tell() < source.size():
        table = pa.ipc.open_stream(source).read_all().combine_chunks()
        words = np.empty((len(table), 0), np.uint64)
        if "codes" in table.column_names:
            codes = table["codes"].combine_chunks()
            words = codes.flatten().to_numpy().reshape(-1, codes.type.list_size)
        references = References(table["id"].combine_chunks(), words)
    return Decision(references=references, **arrays)


def _write(table: pa.Table, file: Any) -> None:
    with pa.ipc.new_stream(pa.PythonFile(file, "w"), table.schema) as stream:
        stream.write_table(table, ROWS)
