"""The index of keys that a walk fills: arrays that grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.kernels.similarity.join_arguments import Postings
    from neardup.similarity.spilled import Spill

__all__ = ["KeyIndex"]

MOST_ROWS: Final = 1 << 32
BYTES_AT_ONCE: Final = 1 << 29
"""The size up to which the index is allocated at once: the system provides memory when it is
written to, and a copy to a larger array would take it twice."""

FIRST_ROOM: Final = 1 << 10

PLACE_ENTRIES: Final = 8
"""The entries of a thread's place: a cache line that no other thread writes."""


class KeyIndex:
    """Documents under their keys, in the arrays that kernels take.

    Args:
        documents: How many there are in all.
        entry_words: Of a folded sketch: 1 or WIDE_WORDS.
        spill: How large the index may become; None: BYTES_AT_ONCE, and more where it must.
        threads: That look up at once.
    """

    def __init__(
        self, documents: int, entry_words: int, spill: Spill | None, threads: int = 1
    ) -> None:
        """Start empty."""
        from neardup.kernels.similarity.postings import COLUMNS, PADDING, USED

        self._documents, self._spill = documents, spill
        self._behind = PADDING + PLACE_ENTRIES * (threads - 1)
        self._used = np.zeros(USED, np.int64)
        self._rows = np.empty((FIRST_ROOM, COLUMNS), np.uint32)
        self._folds = np.empty((FIRST_ROOM + self._behind, entry_words), np.uint64)
        self.clear()

    def clear(self) -> None:
        """Remove all documents; the arrays and the count of verified pairs stay."""
        from neardup.kernels.similarity.join_arguments import Postings
        from neardup.kernels.similarity.postings import VERIFIED

        self._used[:VERIFIED] = 0
        table = np.zeros((FIRST_ROOM, 2), np.uint64)
        self.postings: Postings = Postings(table, self._rows, self._folds, self._used)

    @property
    def keys(self) -> int:
        """The number of keys added to the index since it was empty."""
        from neardup.kernels.similarity.postings import KEYS

        return int(self._used[KEYS])

    @property
    def verified(self) -> int:
        """The number of verified candidates."""
        from neardup.kernels.similarity.postings import VERIFIED

        return int(self._used[VERIFIED])

    def place(self, thread: int) -> int:
        """The entry of a thread's current document; it moves when the arrays grow."""
        return len(self._folds) - PLACE_ENTRIES * thread if thread else 0

    def add_verified(self, pairs: int) -> None:
        """Count pairs verified without the index."""
        from neardup.kernels.similarity.postings import VERIFIED

        self._used[VERIFIED] += pairs

    def make_room(self, keys: int, most_keys: Callable[[], int]) -> None:
        """Grow the arrays for a number of further keys.

        Args:
            keys: That may be put in next.
            most_keys: Says how many there can ever be, about.

        Raises:
            UsageError: If there are more than rows have numbers.
        """
        from neardup.kernels.similarity.postings import ROWS, ROWS_A_KEY, SLOTS, rehash

        table, rows, folds, _ = self.postings
        used, needed = int(self._used[ROWS]) + 1, ROWS_A_KEY * (self.keys + keys) + 1
        if max(needed, self._documents + 1) > MOST_ROWS:
            raise UsageError(
                f"the index would have {needed:,} rows, and {MOST_ROWS:,} is the most: give"
                " less --memory, so that a part of it is held at a time"
            )
        if needed > len(rows):
            most, bytes_a_row = ROWS_A_KEY * most_keys() + 1, rows.strides[0] + folds.strides[0]
            limit = BYTES_AT_ONCE if self._spill is None else self._spill.limit
            at_once = limit // bytes_a_row
            capacity = min(most, at_once if needed <= at_once else needed + needed // 2)
            self._rows = rows = _longer(rows, used, max(needed, capacity))
            self._folds = folds = _longer(folds, used, len(rows) + self._behind)
        slots = int(self._used[SLOTS]) + keys
        if 2 * slots > len(table):
            larger = np.zeros((1 << (2 * slots).bit_length(), 2), np.uint64)
            rehash(table, larger)
            table = larger
        # Arrays are replaced only between kernels, when no thread uses the old ones.
        self.postings = self.postings._replace(table=table, rows=rows, folds=folds)


def _longer(array: Any, used: int, length: int) -> Any:
    """A copy of `length` rows that begins with the first `used` rows of an array."""
    longer = np.empty((length, array.shape[1]), array.dtype)
    longer[:used] = array[:used]
    return longer
