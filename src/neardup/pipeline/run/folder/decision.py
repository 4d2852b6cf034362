"""A decision as Arrow data on disk: one stream of its rows, then one of the reference set's.

Rows: kept_by, label, and similarity, via and own where they are known. The reference set, the
documents of an index that came before, has rows of its own: id and codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.pipeline.run.matching import Grouping, References

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["decision_of", "write_decision"]

ROWS: Final = 1 << 20
"""Of a part: what is written takes little memory beside the decision."""
ARRAYS: Final = {
    "kept_by": np.int64, "label": np.int64, "similarity": np.float64, "via": np.int64,
    "own": np.int8,
}  # fmt: skip


def write_decision(grouping: Grouping, file: Any) -> None:
    """Write a decision, some rows at a time, to anything with `write` and `closed`."""
    arrays = {name: getattr(grouping, name) for name in ARRAYS}
    _write(pa.table({name: x for name, x in arrays.items() if x is not None}), file)
    references = grouping.references
    if references is not None:
        columns = {"id": references.ids.cast(pa.large_string())}
        width = references.codes.shape[1]
        if width:  # an index by similarity may know no fingerprints
            flat = pa.array(references.codes.reshape(-1))
            columns["codes"] = pa.FixedSizeListArray.from_arrays(flat, width)
        _write(pa.table(columns), file)


def decision_of(data: bytes | npt.NDArray[np.uint8]) -> Grouping:
    """Read what `write_decision` wrote: bytes, or uint8 (n,)."""
    source = pa.BufferReader(pa.py_buffer(data))
    rows = pa.ipc.open_stream(source).read_all()
    given = {name: np.array(rows[name], ARRAYS[name]) for name in rows.column_names}
    arrays: dict[str, Any] = dict.fromkeys(ARRAYS) | given
    references = None
    if source.tell() < source.size():
        table = pa.ipc.open_stream(source).read_all().combine_chunks()
        words = np.empty((len(table), 0), np.uint64)
        if "codes" in table.column_names:
            codes = table["codes"].combine_chunks()
            words = codes.flatten().to_numpy().reshape(-1, codes.type.list_size)
        references = References(table["id"].combine_chunks(), words)
    return Grouping(references=references, **arrays)


def _write(table: pa.Table, file: Any) -> None:
    with pa.ipc.new_stream(pa.PythonFile(file, "w"), table.schema) as stream:
        stream.write_table(table, ROWS)
