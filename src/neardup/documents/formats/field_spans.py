"""Places of fields in lines: the parts that the finders of JSON and CSV share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.batch import Columns, joined_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.documents.batch import ReadOptions

__all__ = [
    "PART_BYTES", "SLACK", "Fields", "Spans", "is_utf8", "joined_fields", "named_columns",
    "room_for_marks", "text_array",
]  # fmt: skip


class Spans:
    """Adjacent stretches of a file from byte `start` on, each an accepted record or not."""

    def __init__(self, start: int = 0) -> None:
        """Begin at a byte offset."""
        self.end = start
        self.accepted = 0
        self._ends = [np.array([start], np.int64)]
        self._accepted = [np.zeros(0, np.bool_)]

    def add(self, lengths: npt.NDArray[np.int64], accepted: npt.NDArray[np.bool_]) -> None:
        """Append stretches: int64 lengths (n,) in bytes, and for each if it is a record."""
        ends = np.cumsum(lengths)
        ends += self.end
        self._ends.append(ends)
        self._accepted.append(accepted)
        self.accepted += int(np.count_nonzero(accepted))
        if ends.size:
            self.end = int(ends[-1])

    def runs(self, keep: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Merge kept neighbours: int64 (m, 2), first byte and byte after the last of each run."""
        kept = np.concatenate(self._accepted)
        kept[kept] = keep
        self._ends = [np.concatenate(self._ends)]
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False))
        return self._ends[0][edges].reshape(-1, 2)

    def kept_lengths(self, keep: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The bytes of each kept record."""
        kept = np.concatenate(self._accepted)
        kept[kept] = keep
        lengths: npt.NDArray[np.int64] = np.diff(np.concatenate(self._ends))[kept]
        return lengths


SLACK: Final = 64
"""Bytes that the kernels may write behind what they mean."""
PART_BYTES: Final = 1 << 19
"""What a kernel takes of a block that it refused, so that a complete parser need not parse all of
it: its objects stay in the cache. Each byte of a part may be a mark."""
_MARK_EVERY: Final = 8
"""In a longer block, one byte in this number may be."""
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


def joined_fields(parts: Sequence[Fields]) -> Fields:
    """The records of blocks that follow each other as those of one block."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(part.lines for part in parts)])
    rows = [part.rows + lines for part, lines in zip(parts, before[:-1], strict=True)]
    return Fields(
        joined_columns([part.columns for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.accepted for part in parts]),
        np.concatenate(rows),
        int(before[-1]),
    )


def room_for_marks(nbytes: int) -> int:
    """The marks that there is room for in a block; one that has more is looked at in parts.

    Records of text have few, so the marks of a long block need not have a word for each byte.
    """
    return min(nbytes, max(nbytes // _MARK_EVERY, PART_BYTES)) + 1


def is_utf8(block: bytes | memoryview) -> bool:
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
    """Columns by their roles, from columns in the order of the options' fields."""
    rest = iter(columns)
    parts = [next(rest) for _ in options.text]
    texts = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _JOINT)
    ids = None if options.id is None else next(rest)
    within = None if options.within is None else next(rest)
    numbers = None if options.number is None else next(rest)
    return Columns(texts, ids, within, numbers)
