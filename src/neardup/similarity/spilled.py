"""Similarity mode in little memory: the index is split into parts, which wait on disk.

The flow: choose each document's keys and write them down by parts of the hash range; unite similar
documents part by part, with the index of one part in memory; then decide within the groups. A pair
of similar documents shares a key that is early enough in both, and that key is in one part: so
every match is found, as with one index. Matches never leave a group: so greedy keep within the
groups decides as it would over all.

Of each part only the keys of documents that are not in one group yet are needed, and where there
are duplicates the first parts unite most of them. So parts are many: they are read and sifted in
threads, ahead of the one that unites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.runtime.arrays import frozen
from neardup.runtime.storage.temporary import read_exactly, temporary_file, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from neardup.kernels.similarity.join_arguments import Keys

__all__ = [
    "BYTES_A_KEY",
    "KEYS_A_PART",
    "KeyFile",
    "Spill",
    "batches_of_groups",
    "joined_parts",
    "small_groups",
]

BYTES_A_KEY: Final = 200
"""The memory of each key of an index: its posting, slots, and sieve."""

KEYS_A_PART: Final = 1 << 17
"""The most keys of a part, so that the slots of its sieve stay in the processor's cache."""

MOST_PARTS_LOG2: Final = 12
_RECORD_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Spill:
    """The limit at which an index is split, and the folder of its parts.

    Args:
        limit: Bytes that the index may take.
        tmp: Folder for a temporary file; the system's own if None.
    """

    limit: int
    tmp: str | None = None

    @property
    def most_keys(self) -> int:
        """The most keys of an index."""
        return max(1, self.limit // BYTES_A_KEY)

    def parts(self, keys: int) -> int:
        """The number of parts for an index with a number of keys; a power of two.

        Example:
            >>> Spill(1 << 30).parts(1000), Spill(1 << 20).parts(100_000)
            (1, 32)
        """
        needed = -(-keys * BYTES_A_KEY // self.limit)
        if needed > 1:
            needed = max(needed, -(-keys // KEYS_A_PART))
        return 1 << min(MOST_PARTS_LOG2, max(0, needed - 1).bit_length())


class KeyFile:
    """The keys of documents in a file, written in document order and read part by part.

    Args:
        parts: How many, a power of two.
        tmp: Folder for the file, which has no name; the system's own if None.

    Example:
        >>> from neardup.kernels.similarity.join_arguments import Keys
        >>> keys = np.array([7, 9, 7], np.uint64), np.array([3, 1, 0], np.int32)
        >>> with KeyFile(1) as file:
        ...     file.add(*file.by_part(np.array([0, 1]), Keys(*keys, np.array([0, 2, 3]))))
        ...     [part.tolist() for part in file.part(0, np.arange(2))]
        [[0, 1], [7, 7], [3, 0], [0, 1, 2]]
    """

    def __init__(self, parts: int, tmp: str | None = None) -> None:
        """Create an empty file; FileError if the disk is full."""
        self._bits = parts.bit_length() - 1
        self._tmp = tmp
        self._extents: list[tuple[int, Any]] = []
        self._records = 0
        self._file = temporary_file(tmp, "postings", buffering=0)

    def by_part(self, documents: Any, keys: Keys) -> tuple[Any, Any]:
        """The keys of documents (int64) in the order of their parts, as `add` takes them."""
        from neardup.kernels.similarity.join_parts import keys_by_part

        ends = np.zeros(1 << self._bits, np.int64)
        return keys_by_part(documents, keys, self._bits, ends), ends

    def add(self, records: Any, ends: Any) -> None:
        """Append keys from `by_part`, of documents not added before.

        Raises:
            FileError: If the disk is full.
        """
        # Extents are in the order of the documents, so a part that is read again is in it too.
        if not records.size:
            return
        at = self._records * _RECORD_BYTES
        write_all(self._file.fileno(), memoryview(records).cast("B"), at, self._tmp)
        self._extents.append((self._records, np.append(0, ends).astype(np.uint32)))
        self._records += len(records)

    def part(self, number: int, forest: Any) -> tuple[Any, Any, Any, Any]:
        """The keys of a part that can still unite documents, as `add` got them; for any thread.

        Args:
            number: Which part, from 0.
            forest: int64 (n,), the groups so far: the parent of each document, a root's being
                itself. A key whose documents are in one group is left out.

        Returns:
            documents, keys, before, key_offsets, as Keys has them.

        Raises:
            FileError: If the file cannot be read.
        """
        from neardup.kernels.similarity.join_parts import useful_keys

        places = [
            (first + int(x[number]), first + int(x[number + 1])) for first, x in self._extents
        ]
        records = np.empty((sum(end - begin for begin, end in places), 2), np.uint64)
        at = 0
        for begin, end in places:
            into = records[at : at + end - begin]
            read_exactly(self._file.fileno(), into, begin * _RECORD_BYTES)
            at += end - begin
        table = np.zeros((1 << (2 * len(records)).bit_length(), 2), np.uint64)
        useful: tuple[Any, Any, Any, Any] = useful_keys(
            records, forest, table, np.empty(len(records), np.int64)
        )
        return useful

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the file."""
        self._file.close()


def joined_parts(parts: Iterable[Any], first: int, most: int) -> Iterator[tuple[Any, Keys]]:
    """The keys of several parts together, twice as many parts each time.

    Small ones come first, so that what they unite is left out of those that are sifted later.

    Args:
        parts: What `KeyFile.part` gives.
        first: How many keys the first ones have, at least; the last may have fewer.
        most: How many are enough.

    Returns:
        Documents, int64, ascending, and their keys.

    Example:
        >>> one = np.array([2]), np.array([7], np.uint64), np.array([0]), np.array([0, 1])
        >>> two = np.array([1, 2]), np.array([9, 9], np.uint64), np.zeros(2), np.array([0, 1, 2])
        >>> for documents, keys in joined_parts([one, two], 2, 2):
        ...     print(documents.tolist(), keys.keys.tolist(), keys.offsets.tolist())
        [1, 2] [9, 7, 9] [0, 1, 3]
    """
    from neardup.kernels.similarity.join_arguments import Keys

    waiting: list[Any] = []
    for part in parts:
        waiting.append((np.repeat(part[0], np.diff(part[3])), part[1], part[2]))
        if sum(each[1].size for each in waiting) >= first:
            yield _joined(waiting, Keys)
            waiting, first = [], min(2 * first, most)
    if waiting:
        yield _joined(waiting, Keys)


def _joined(parts: list[Any], make: Callable[..., Keys]) -> tuple[Any, Keys]:
    documents, keys, before = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(documents, kind="stable")
    documents = documents[order]
    firsts = np.flatnonzero(np.diff(documents, prepend=-1))
    return documents[firsts], make(keys[order], before[order], np.append(firsts, documents.size))


def small_groups(labels: Any, order: Any, most: int) -> tuple[Any, Any, Any]:
    """The groups of two to `most` documents, and the documents of larger groups.

    Args:
        labels: int64 (n,): the group of each document, named by one of its documents.
        order: int64 (m,): documents from the highest priority to the lowest.
        most: Documents of a small group.

    Returns:
        int64: the documents of small groups, one group after the other, each in order of priority;
        int64: where each begins, and the end; int64: the documents of larger groups, in order.

    Example:
        >>> labels, order = np.array([0, 1, 0, 3, 3, 3]), np.arange(6)
        >>> [found.tolist() for found in small_groups(labels, order, most=2)]
        [[0, 2], [0, 2], [3, 4, 5]]
    """
    count = np.bincount(labels[order], minlength=labels.size)[labels[order]]
    small = order[(count > 1) & (count <= most)]
    small = small[np.argsort(labels[small], kind="stable")]
    begins = np.flatnonzero(np.diff(labels[small], prepend=-1))
    return small, np.append(begins, small.size), order[count > most]


def batches_of_groups(labels: Any, order: Any, sizes: Any, limit: int) -> Iterator[Any]:
    """Batches of whole groups of several documents, as large as memory allows.

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
