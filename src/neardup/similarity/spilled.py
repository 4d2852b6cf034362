"""Similarity mode in little memory: the index is cut in parts, which wait on disk for their turn.

The flow: choose each document's keys and write them down by parts of the hash range; unite similar
documents part by part, with the index of one part in memory; then decide within the groups, as many
groups at once as fit. A pair of similar documents shares a key that is early enough in both, and
that key is in one part: so every match is found, as with one index. Matches never leave a group: so
greedy keep within the groups decides as it would over all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.runtime.arrays import frozen
from neardup.runtime.storage.temporary import spill_error, temporary_file

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BYTES_A_KEY", "KeyFile", "Spill", "batches_of_groups"]

BYTES_A_KEY: Final = 180
"""Of memory, for each key of the part in hand: the key twice, its order, posting and slots."""

MOST_PARTS_LOG2: Final = 12
_KEY: Final = np.dtype([("key", np.uint64), ("document", np.int64), ("before", np.int32)])
_SPREAD: Final = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True)
class Spill:
    """When an index is cut in parts, and where they wait.

    Args:
        limit: Bytes that the index may take.
        tmp: Folder for a temporary file; the system's own if None.
    """

    limit: int
    tmp: str | None = None

    def parts(self, keys: int) -> int:
        """How many parts an index of so many keys is cut in; a power of two.

        Example:
            >>> Spill(1 << 30).parts(1000), Spill(1 << 20).parts(100_000)
            (1, 32)
        """
        needed = -(-keys * BYTES_A_KEY // self.limit)
        return 1 << min(MOST_PARTS_LOG2, max(0, needed - 1).bit_length())


class KeyFile:
    """Keys of documents, written in the order of the documents, read again part by part.

    Args:
        parts: How many, a power of two.
        tmp: Folder for the file, which has no name; the system's own if None.

    Example:
        >>> with KeyFile(1) as file:
        ...     keys = np.array([7, 9, 7], np.uint64), np.array([3, 1, 0], np.int32)
        ...     file.add(np.array([0, 1]), *keys, np.array([0, 2, 3]))
        ...     [part.tolist() for part in file.part(0, np.arange(2))]
        [[0, 1], [7, 7], [3, 0], [0, 1, 2]]
    """

    def __init__(self, parts: int, tmp: str | None = None) -> None:
        """Begin empty; FileError if there is no room for the file."""
        self._shift = np.uint64(65 - parts.bit_length())
        self._parts = parts
        self._tmp = tmp
        self._extents: list[Any] = []
        self._records = 0
        self._file = temporary_file(tmp, "postings")

    def add(self, documents: Any, keys: Any, before: Any, key_offsets: Any) -> None:
        """Write the keys of documents, as `select_keys` gives them; FileError if the disk is full.

        Args:
            documents: int64 (m,), none of which was added before.
            keys: uint64.
            before: int32, one for each key.
            key_offsets: int64 (m + 1,): document i has keys[key_offsets[i]:key_offsets[i + 1]].
        """
        records = np.empty(keys.size, _KEY)
        records["key"], records["before"] = keys, before
        records["document"] = np.repeat(documents, np.diff(key_offsets))
        number = np.zeros(keys.size, np.int64)
        if self._parts > 1:
            number = ((keys * _SPREAD) >> self._shift).astype(np.int64)
        ordered = records[np.argsort(number, kind="stable")]
        ends = np.cumsum(np.bincount(number, minlength=self._parts))
        self._extents.append(self._records + np.append(0, ends))
        self._records += keys.size
        try:
            self._file.write(ordered.data)
        except OSError as error:
            raise spill_error(self._tmp, "postings", error) from None

    def part(self, number: int, forest: Any) -> tuple[Any, Any, Any, Any]:
        """The keys of a part that can still unite documents, in the order of `add`.

        Args:
            number: Which part, from 0.
            forest: int64 (n,), the groups so far: the parent of each document, a root's being
                itself. A key whose documents are in one group is left out.

        Returns:
            documents, keys, before, key_offsets, as for `add`.
        """
        self._file.flush()
        pieces = [np.empty(0, _KEY)]
        for extent in self._extents:
            begin, end = int(extent[number]), int(extent[number + 1])
            if end > begin:
                self._file.seek(begin * _KEY.itemsize)
                pieces.append(np.frombuffer(self._file.read((end - begin) * _KEY.itemsize), _KEY))
        records = _useful(np.concatenate(pieces), forest)
        firsts = np.flatnonzero(np.diff(records["document"], prepend=-1))
        return (
            np.ascontiguousarray(records["document"][firsts]),
            np.ascontiguousarray(records["key"]),
            np.ascontiguousarray(records["before"]),
            np.append(firsts, len(records)),
        )

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the file."""
        self._file.close()


def _useful(records: Any, forest: Any) -> Any:
    """Those whose key is also one of a document of another group, in the same order."""
    if not records.size:
        return records
    order = np.argsort(records["key"], kind="stable")
    ordered = records["key"][order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    groups = records["document"][order]
    while not np.array_equal(forest[groups], groups):
        groups = forest[groups]
    differ = np.minimum.reduceat(groups, starts) != np.maximum.reduceat(groups, starts)
    useful = order[np.repeat(differ, np.diff(starts, append=order.size))]
    useful.sort()
    return records[useful]


def batches_of_groups(labels: Any, order: Any, sizes: Any, limit: int) -> Iterator[Any]:
    """Put whole groups of several documents together, as long as they are small enough.

    Args:
        labels: int64 (n,): the group of each document, named by one of its documents.
        order: int64 (m,): documents from the highest priority to the lowest.
        sizes: int64 (n,): what each document takes.
        limit: What a batch may take; a larger group is a batch of its own.

    Returns:
        For each batch int64: its documents, in the order of priority.

    Example:
        >>> labels, order = np.array([0, 1, 0, 1, 4, 5, 5]), np.arange(7)
        >>> sizes = np.ones(7, np.int64)
        >>> [batch.tolist() for batch in batches_of_groups(labels, order, sizes, limit=4)]
        [[0, 1, 2, 3], [5, 6]]
    """
    several = np.bincount(labels[order], minlength=labels.size) > 1
    members = order[several[labels[order]]]
    total = np.bincount(labels[members], weights=sizes[members], minlength=labels.size)
    groups = np.flatnonzero(total)
    batch_of = np.zeros(labels.size, np.int64)
    batch_of[groups] = np.maximum(np.cumsum(total[groups]) - 1, 0) // limit
    number = batch_of[labels[members]]
    by_batch = members[np.argsort(number, kind="stable")]
    cuts = np.flatnonzero(np.diff(np.sort(number))) + 1
    yield from (frozen(batch) for batch in np.split(by_batch, cuts) if batch.size)
