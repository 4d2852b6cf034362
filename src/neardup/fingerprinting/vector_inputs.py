"""Vectors in any form in, batches of rows out: 2-D arrays of numbers or sparse rows."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import UsageError
from neardup.runtime.arrays import check_given

__all__ = ["batches", "is_sparse"]

_GATHERED_NUMBERS: Final = 1 << 20
_KINDS: Final = "biuf"


def is_sparse(value: Any) -> bool:
    """Whether it is a scipy.sparse matrix or array; scipy need not be installed to ask."""
    return hasattr(value, "tocsr")


def batches(vectors: Any) -> Iterator[Any]:
    """Give the rows in batches, one after the other; nothing is copied that need not be.

    Args:
        vectors: As `neardup.project` takes them.

    Yields:
        2-D arrays of numbers, or sparse matrices in canonical CSR form. Rows that are null in
        Arrow are all zeros.

    Raises:
        UsageError: If something in it is no number, or rows differ in length.
    """
    whole = _whole(vectors, 0)
    if whole is not None:
        yield from whole
    elif isinstance(vectors, Iterable) and not isinstance(vectors, str | bytes | dict):
        yield from _stream(vectors, 0)
    else:
        raise UsageError(
            f"vectors are {type(vectors).__name__}: pass an array, a sparse matrix, an Arrow list"
            " column, or rows of numbers"
        )


def _whole(value: Any, first: int) -> Iterator[Any] | None:
    """The batches of one array, matrix, column or vector; None for an iterable of them."""
    if is_sparse(value):
        return iter([_canonical(value)])
    lists = _arrow_lists(value)
    if lists is not None:
        return _of_arrow(lists, first)
    if isinstance(value, list | tuple):
        return iter([_row(value, first)]) if value and _is_number(value[0]) else None
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.ndim == 1 and array.dtype.kind != "O":
            return iter([_row(array, first)])
        if array.ndim != 1:
            return iter([_matrix(array, first)])
    return None


def _stream(vectors: Iterable[Any], first: int) -> Iterator[Any]:
    """Batches as they come; single rows are gathered into larger ones."""
    rows = _Rows()
    for value in vectors:
        if _is_number(value):
            raise UsageError(f"row {first + len(rows)} is the number {value!r}: pass rows of them")
        if _is_row(value):
            rows.add(_row(value, first + len(rows)), first)
            if rows.numbers >= _GATHERED_NUMBERS:
                first += len(rows)
                yield rows.take()
            continue
        if len(rows):
            first += len(rows)
            yield rows.take()
        found = _whole(value, first)
        if found is None and not isinstance(value, list | tuple):
            raise UsageError(f"row {first} is {type(value).__name__}: pass rows of numbers")
        for batch in _stream(value, first) if found is None else found:
            yield batch
            first += batch.shape[0]
    if len(rows):
        yield rows.take()


class _Rows:
    """Single rows of one length, waiting to become a batch."""

    def __init__(self) -> None:
        self._rows: list[Any] = []
        self.numbers = 0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Any, first: int) -> None:
        if self._rows and row.shape != self._rows[0].shape:
            raise UsageError(
                f"row {first + len(self)} has {row.size:,} numbers:"
                f" the rows before it have {self._rows[0].size:,}"
            )
        self._rows.append(row)
        self.numbers += row.size

    def take(self) -> Any:
        batch = np.concatenate(self._rows)
        self._rows, self.numbers = [], 0
        return batch


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real | np.integer | np.floating | np.bool_)


def _is_row(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return not value or not isinstance(value[0], list | tuple)
    return getattr(value, "ndim", None) == 1 and not is_sparse(value)


def _row(value: Any, row: int) -> Any:
    """One vector as a matrix of one row."""
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        array = np.empty(0, object)
    if array.dtype.kind not in _KINDS and isinstance(value, list | tuple):
        array = np.array([*value, None], object)[:-1]  # each element as it is
    if array.ndim != 1:
        raise UsageError(f"row {row} has {array.ndim} dimensions: pass rows of numbers")
    return _matrix(array[None, :], row) if array.size else np.zeros((1, 0))


def _matrix(array: Any, first: int) -> Any:
    if array.ndim != 2:
        raise UsageError(f"vectors have {array.ndim} dimensions: pass 2 (rows) or 1 (one vector)")
    if array.dtype.kind in _KINDS:
        return array
    for row, column in np.ndindex(array.shape):
        value = array[row, column]
        if not _is_number(value):
            raise UsageError(f"row {first + row}, column {column} is {value!r:.60}: pass numbers")
    try:
        return array.astype(np.float64)
    except OverflowError as error:
        raise UsageError(f"vectors from row {first} on: {error}") from None


def _canonical(matrix: Any) -> Any:
    """CSR with sorted distinct columns; the caller's matrix stays as it is."""
    found = matrix.tocsr()
    if found.ndim == 1:
        found = found.reshape(1, -1).tocsr()
    if found.dtype.kind not in _KINDS:
        raise UsageError(f"vectors have dtype {found.dtype}: pass real numbers")
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    return found


def _arrow_lists(value: Any) -> pa.ChunkedArray | None:
    """An Arrow column of lists, from whatever speaks Arrow; None if it is something else."""
    if isinstance(value, pa.Array):
        value = pa.chunked_array([value])
    elif not isinstance(value, pa.ChunkedArray):
        if not hasattr(value, "__arrow_c_stream__"):
            return None
        try:
            value = pa.chunked_array(value)
        except (pa.ArrowException, TypeError, ValueError):
            return None
    if not _is_list(value.type):
        return None
    check_given("vectors", value)
    return value


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _of_arrow(lists: pa.ChunkedArray, first: int) -> Iterator[Any]:
    kind = lists.type.value_type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise UsageError(f"vectors have the Arrow type {lists.type}: pass lists of numbers")
    lengths = pc.list_value_length(lists)
    known = pc.drop_null(lengths)
    columns = known[0].as_py() if len(known) else 0
    uneven = pc.index(pc.fill_null(pc.not_equal(lengths, columns), False), True).as_py()
    if uneven >= 0:
        raise UsageError(
            f"row {first + uneven} has {lengths[uneven].as_py():,} numbers:"
            f" the rows before it have {columns:,}"
        )
    for chunk in lists.chunks:
        yield _of_chunk(chunk, columns, first)
        first += len(chunk)


def _of_chunk(chunk: pa.Array, columns: int, first: int) -> Any:
    present = np.asarray(pc.is_valid(chunk))
    values = chunk.drop_null().flatten()
    if values.null_count:
        at = int(np.flatnonzero(np.asarray(pc.is_null(values)))[0])
        row = int(np.flatnonzero(present)[at // columns])
        raise UsageError(
            f"row {first + row}, column {at % columns} is null: vectors need finite numbers"
        )
    matrix = values.to_numpy(zero_copy_only=False).reshape(int(present.sum()), columns)
    if present.all():
        return matrix
    whole = np.zeros((len(chunk), columns), matrix.dtype)
    whole[present] = matrix
    return whole
