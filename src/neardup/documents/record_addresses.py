"""Addresses of documents: the id, else `file:row`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Addresses", "ReferenceAddresses", "RowAddresses"]


class Addresses:
    """The address of each document, made only when it is asked for.

    Args:
        names: The inputs' names; "" gives the bare row.

    Example:
        >>> addresses = Addresses(["news.jsonl"])
        >>> addresses.add(0, np.array([1, 3]), None)
        >>> addresses.of(np.array([1])).to_pylist()
        ['news.jsonl:3']
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Begin without documents."""
        self._names = list(names)
        self._sources: list[int] = []
        self._begins: list[int] = []
        self._rows: list[Any] = []
        self._ids: list[Any] = []
        self._count = 0

    def add(self, source: int, rows: Any, ids: Any) -> None:
        """Append documents of one input: their int64 row numbers and, where there are any, ids."""
        self._sources.append(source)
        self._begins.append(self._count)
        self._rows.append(rows)
        if ids is not None:
            self._ids.extend(ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids])
        self._count += len(rows)

    def of(self, documents: Any) -> pa.Array:
        """Name documents, given as an int64 array of their numbers, in that order."""
        if self._ids:
            taken = pa.chunked_array(self._ids, pa.large_string()).take(pa.array(documents))
            return pa.concat_arrays(taken.chunks) if taken.num_chunks != 1 else taken.chunk(0)
        batches = np.searchsorted(self._begins, documents, side="right") - 1
        if len(self._rows) != 1:
            self._rows = [np.concatenate([np.zeros(0, np.int64), *self._rows])]
        numbers = pa.array(self._rows[0][documents]).cast(pa.large_string())
        names = pa.array([f"{name}:" if name else "" for name in self._names], pa.large_string())
        of = pa.array(np.array(self._sources, np.int64)[batches])
        return pc.binary_join_element_wise(
            names.take(of), numbers, pa.scalar("", pa.large_string())
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs, without the empty one of documents in memory."""
        return tuple(filter(None, self._names))

    def sources(self) -> tuple[Any, list[str]]:
        """The number of each document's input, int64 (n,), and the names of the inputs."""
        ends = [*self._begins[1:], self._count][: len(self._begins)]
        sizes = [end - begin for begin, end in zip(self._begins, ends, strict=True)]
        return np.repeat(np.array(self._sources, np.int64), sizes), self._names

    def with_references(self, ids: Any) -> ReferenceAddresses:
        """Addresses with those of other documents, which are numbered after these."""
        return ReferenceAddresses(self, self._count, ids)


class RowAddresses:
    """The addresses of documents in memory: their ids as given, or the numbers of their rows.

    Args:
        ids: Arrow array or chunked array of any type, one for each document.

    Example:
        >>> RowAddresses(pa.array([7, 8, 9])).of(np.array([2, 0])).to_pylist()
        [9, 7]
    """

    def __init__(self, ids: Any) -> None:
        """Take them."""
        self._ids = ids if isinstance(ids, pa.ChunkedArray) else pa.chunked_array([ids])

    def of(self, documents: Any) -> pa.Array:
        """As Addresses.of; of the ids' own type."""
        taken = self._ids.take(pa.array(documents))
        return pa.concat_arrays(taken.chunks) if taken.num_chunks else pa.array([], taken.type)


class ReferenceAddresses:
    """The addresses of a run's documents and, from number `count` on, of an index's.

    Args:
        addresses: Of the run.
        count: How many documents it has.
        ids: Ids of the index's documents, an Arrow array.
    """

    def __init__(self, addresses: Addresses, count: int, ids: Any) -> None:
        """Take both."""
        self._own, self._count = addresses, count
        self._ids = ids.cast(pa.large_string())

    def of(self, documents: Any) -> pa.Array:
        """As Addresses.of."""
        theirs = documents >= self._count
        own = self._own.of(documents[~theirs])
        both = pa.concat_arrays([own, self._ids.take(pa.array(documents[theirs] - self._count))])
        order = np.empty(len(documents), np.int64)
        order[np.flatnonzero(~theirs)] = np.arange(len(own))
        order[np.flatnonzero(theirs)] = np.arange(len(own), len(documents))
        return both.take(pa.array(order))
