"""What the field finders of text formats share: valid UTF-8 in, columns of a batch out.

A finder hands a block of bytes to kernels, which run outside Python's lock. It finds the fields
only if a complete parser would accept all of the block and give the same, so whoever is refused a
block (None) has lost nothing but the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.batch import Columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.documents.batch import ReadOptions

__all__ = ["SLACK", "Fields", "is_utf8", "named_columns", "text_array"]

SLACK: Final = 64
"""Bytes that the kernels may write behind what they mean."""
_JOINT: Final = pa.scalar("\n", pa.large_string())


@dataclass(frozen=True, slots=True)
class Fields:
    """The records of a block.

    Args:
        columns: Of the n accepted records.
        lengths: int64 (m,), bytes of each record or line, one after the other.
        accepted: bool (m,), whether it is an accepted record.
        rows: int64 (n,), the 0-based line of the block where each accepted record begins.
        lines: How many lines they take up.
    """

    columns: Columns
    lengths: npt.NDArray[np.int64]
    accepted: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.int64]
    lines: int


def is_utf8(block: bytes) -> bool:
    """Whether the bytes are valid UTF-8; Arrow looks outside Python's lock."""
    offsets = pa.py_buffer(np.array([0, len(block)], np.int64))
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(block)])
    try:
        whole.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def text_array(values: Any, offsets: Any, present: Any = None) -> pa.LargeStringArray:
    """Make an Arrow array of uint8 values and int64 offsets, null where not `present`; no copy."""
    bitmap = None
    if present is not None and not present.all():
        bitmap = pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


def named_columns(options: ReadOptions, columns: Sequence[Any]) -> Columns:
    """Tell the columns apart, which are in the order of the options' fields."""
    rest = iter(columns)
    parts = [next(rest) for _ in options.text]
    texts = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _JOINT)
    ids = None if options.id is None else next(rest)
    within = None if options.within is None else next(rest)
    numbers = None if options.number is None else next(rest)
    return Columns(texts, ids, within, numbers)
