"""Segments of an index by similarity as files, which are mapped: nothing is computed at opening."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from neardup.index.segment_files import SegmentFile, write_arrays
from neardup.index.set_segments import Segment
from neardup.index.stored_rows import StoredRows

if TYPE_CHECKING:
    import contextlib
    from pathlib import Path

    from neardup.runtime.types import Flags


__all__ = ["StoredSimilarSegment", "write_similar"]

ARRAYS = (
    "features", "offsets", "set_of", "members", "member_starts", "sizes", "firsts", "order_keys",
    "order_ranks", "starts", "entries", "rest_starts", "rest_entries", "numbers", "sketches",
)  # fmt: skip


COPIED: Final = ("features", "offsets", "set_of", "numbers", "ids", "ends")
"""What a merge copies of a segment; the rest is made anew."""


class StoredSimilarSegment(StoredRows, Segment):
    """A segment whose arrays are in a file.

    Args:
        file: The file.
        dead: bool (n,): which rows are removed; None: none is.
        changed: Chunks of rows some of which were removed since they were last written.
        folder: Where a merge may put what is too large for memory; None: nowhere.
    """

    def __init__(
        self, file: SegmentFile, dead: Flags | None = None, changed: frozenset[int] = frozenset(),
        folder: Path | None = None,
    ) -> None:  # fmt: skip
        """Map the arrays; nothing is read yet."""
        Segment.__init__(self, {name: file.array(name) for name in ARRAYS}, file.ids(), dead)
        self.file, self.changed, self.folder = file, changed, folder

    def verify(self) -> None:
        """See MarkedRows.verify: of what a merge copies."""
        self.file.verify(COPIED)

    def read_in_order(self) -> contextlib.AbstractContextManager[None]:
        """See Segment.read_in_order."""
        reading: contextlib.AbstractContextManager[None] = self.file.read_in_order()
        return reading


def write_similar(
    path: Path,
    segment: Segment,
    extra: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
) -> None:
    """Write a segment aside, sync it and rename it; removed rows are written as well.

    Args:
        path: The final path; a file there is replaced.
        segment: What.
        extra: More for the header.
        more: More arrays.

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
    write_arrays(path, header | (extra or {}), arrays | (more or {}))
