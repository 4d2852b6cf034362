"""Segments of an index by similarity as files, which are mapped: nothing is computed at opening."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.index.segment_files import SegmentFile, write_arrays
from neardup.index.similar.segment import NEVER, Segment

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.index.similar.segment import Rows

__all__ = ["StoredSimilarSegment", "write_similar"]

ARRAYS = (
    "features", "offsets", "set_of", "members", "member_starts", "sizes", "firsts", "order_keys",
    "order_ranks", "starts", "entries", "rest_starts", "rest_entries", "numbers",
)  # fmt: skip


COPIED: Final = ("features", "offsets", "set_of", "numbers", "ids", "ends")
"""What a merge copies of a segment; the rest is made anew."""


class StoredSimilarSegment(Segment):
    """A segment whose arrays are in a file.

    Args:
        file: The file.
        dead: bool (n,): which rows are removed; None: none is.
    """

    def __init__(self, file: SegmentFile, dead: Any = None) -> None:
        """Map the arrays; nothing is read yet."""
        died = None if dead is None else np.where(dead, 0, NEVER)
        super().__init__({name: file.array(name) for name in ARRAYS}, file.ids(), died)
        self.file = file
        self.written = None if dead is None else dead.copy()
        """What the folder knows of removed rows."""

    def verify(self) -> None:
        """See Segment.verify."""
        self.file.verify(COPIED)

    def living_rows(self, stamp: int = NEVER - 1) -> Rows:
        """See Segment.living_rows; DataError if the file is damaged."""
        self.verify()
        return super().living_rows(stamp)


def write_similar(path: Path, segment: Segment, extra: dict[str, Any] | None = None) -> None:
    """Write a segment aside, sync it and rename it; removed rows are written as well.

    Args:
        path: The final path; a file there is replaced.
        segment: What.
        extra: More for the header.

    Raises:
        FileError: If it cannot be written.
    """
    ids = segment.ids
    data, ends = ids.bytes_and_offsets()
    arrays = {**segment.arrays, "ids": data}
    if len(ends):
        arrays |= {"ids": data[ends[0] : ends[-1]], "ends": ends - ends[0]}
    if not ids.ascending:
        arrays["slots"] = ids.slots
    header = {"rows": len(segment), "ids": ids.kind, "ascending": ids.ascending}
    write_arrays(path, header | (extra or {}), arrays)
