"""The index of keys that a walk fills: arrays that grow."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.runtime.threads import in_threads

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

ROWS_AT_ONCE: Final = 1 << 14
"""The rows that a thread takes at once, and fills alone.

The last MOST_ROWS_A_KEY may stay empty: few of the rows, since ROWS_A_KEY counts a fifth too many
where nothing goes to rings."""

SLOTS_ALONE: Final = 1 << 16
"""The slots of a table that one thread fills as soon as several."""


class Arena:
    """Rows that one thread fills, with its count of what it put in.

    Attributes:
        used: As of the index; ROWS is the last row that is filled.
        end: The last row that may be.
    """

    def __init__(self) -> None:
        """Begin without rows."""
        from neardup.kernels.similarity.postings import USED

        self.used = np.zeros(USED, np.int64)
        self.clear()

    def clear(self) -> None:
        """Give all rows up."""
        self.used[:] = 0
        self.end = 0


class KeyIndex:
    """Documents under their keys, in the arrays that kernels take.

    Args:
        documents: How many there are in all.
        entry_words: Of a folded sketch: 1 or WIDE_WORDS.
        spill: How large the index may become; None: BYTES_AT_ONCE, and more where it must.
        threads: That look up, or insert, at once.
    """

    def __init__(
        self, documents: int, entry_words: int, spill: Spill | None, threads: int = 1
    ) -> None:
        """Start empty."""
        from neardup.kernels.similarity.postings import COLUMNS, PADDING, RANGES, USED

        self._documents, self._spill, self._threads = documents, spill, threads
        self._lock, self._arenas = Lock(), [Arena() for _ in range(min(threads, RANGES))]
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
        for arena in self._arenas:
            arena.clear()
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

    def arenas(self) -> list[Arena]:
        """An arena for each thread that inserts, each of which has keys of other ranges."""
        return self._arenas

    def more_rows(self, arena: Arena) -> None:
        """Give an arena further rows; threads may ask at once."""
        from neardup.kernels.similarity.postings import ROWS

        with self._lock:
            arena.used[ROWS] = self._used[ROWS]
            self._used[ROWS] += ROWS_AT_ONCE
            arena.end = int(self._used[ROWS])

    def add_inserted(self) -> None:
        """Count what threads have put in."""
        from neardup.kernels.similarity.postings import KEYS, VERIFIED

        for arena in self._arenas:
            self._used[KEYS:VERIFIED] += arena.used[KEYS:VERIFIED]
            arena.used[KEYS:VERIFIED] = 0

    def make_room(self, keys: Any, most_keys: Callable[[], int]) -> None:
        """Grow the arrays for a number of further keys.

        Args:
            keys: uint64: those that may be put in next.
            most_keys: Says how many there can ever be, about.

        Raises:
            UsageError: If there are more than rows have numbers.
        """
        from neardup.kernels.similarity.postings import ROWS, ROWS_A_KEY

        _, rows, folds, _ = self.postings
        empty = len(self._arenas) * ROWS_AT_ONCE if self._threads > 1 else 0
        used, needed = int(self._used[ROWS]) + 1, ROWS_A_KEY * (self.keys + keys.size) + 1 + empty
        if max(needed, self._documents + 1) > MOST_ROWS:
            raise UsageError(
                f"the index would have {needed:,} rows, and {MOST_ROWS:,} is the most: give"
                " less --memory, so that a part of it is held at a time"
            )
        if needed > len(rows):
            bytes_a_row = rows.strides[0] + folds.strides[0]
            most = ROWS_A_KEY * most_keys() + 1 + empty
            limit = BYTES_AT_ONCE if self._spill is None else self._spill.limit
            at_once = limit // bytes_a_row
            capacity = min(most, at_once if needed <= at_once else needed + needed // 2)
            self._rows = rows = _longer(rows, used, max(needed, capacity))
            self._folds = folds = _longer(folds, used, len(rows) + self._behind)
        # Arrays are replaced only between kernels, when no thread uses the old ones.
        self.postings = self.postings._replace(table=self._table(keys), rows=rows, folds=folds)

    def _table(self, keys: Any) -> Any:
        """The table, or a larger one, with at least half of its slots free, and one of each range.

        Keys decide how full a range may be: whoever chooses them could fill one alone.
        """
        from neardup.kernels.similarity.postings import (
            RANGES,
            SLOTS,
            VERIFIED,
            count_by_range,
            rehash,
        )

        table, slots = self.postings.table, self._used[SLOTS:VERIFIED].copy()
        count = 2 * (int(slots.sum()) + keys.size)
        if max(count, RANGES * (int(slots.max()) + keys.size + 1)) <= len(table):
            return table
        count_by_range(keys, slots)
        count = max(count, RANGES * (int(slots.max()) + 1))
        if count <= len(table):
            return table
        larger = np.empty((1 << count.bit_length(), 2), np.uint64)
        threads = min(self._threads, RANGES) if len(larger) > SLOTS_ALONE else 1
        in_threads(threads, lambda _, number: rehash(table, larger, number), range(RANGES))
        return larger


def _longer(array: Any, used: int, length: int) -> Any:
    """A copy of `length` rows that begins with the first `used` rows of an array."""
    longer = np.empty((length, array.shape[1]), array.dtype)
    longer[:used] = array[:used]
    return longer
