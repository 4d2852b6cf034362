"""Fingerprints of vectors, by signs of projections, from arrays and from files."""

from __future__ import annotations

import functools
import math
import numbers
import statistics
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import UsageError
from neardup.features.choices import MAX_BITS
from neardup.runtime.arrays import check_given
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["batches", "is_sparse", "project"]

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
        UsageError: If something in it is not a number, or rows differ in length.
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
        whole = _whole(value, first)
        if whole is None and not isinstance(value, list | tuple):
            raise UsageError(f"row {first} is {type(value).__name__}: pass rows of numbers")
        for batch in _stream(value, first) if whole is None else whole:
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
    rows = matrix.tocsr()
    if rows.ndim == 1:
        rows = rows.reshape(1, -1).tocsr()
    if rows.dtype.kind not in _KINDS:
        raise UsageError(f"vectors have dtype {rows.dtype}: pass real numbers")
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


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
    sizes = pc.drop_null(lengths)
    columns = sizes[0].as_py() if len(sizes) else 0
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


METHODS: Final = {"hashed": 0, "per-bit": 1, "gaussian": 2}
_GIVEN: Final = 3

_SIGN_BITS: Final = 61
_PLANE_BITS: Final = 47
_LARGEST_PLANE_UNIT: Final = 30
"""Integer sums stay below 2**62: a row's values take that many bits less the log of their count."""

_BLOCK_NUMBERS: Final = 1 << 20
_BLOCK_SUMS: Final = 1 << 15
"""Numbers of the input and sums of the output that one thread takes at a time."""


def project(
    vectors: Any,
    bits: int = 64,
    method: str = "hashed",
    hashes: Any = None,
    seed: int = 0,
    workers: int | None = None,
) -> Any:
    """Give each vector a fingerprint; the share of bits in which two agree is 1 - angle / pi.

    Bit j is 1 where the sum over the dimensions d of value[d] * r(d, j) is above 0. r(d, j) is

    - "hashed": +1 or -1, bit j of one hash of d and the seed (or of `hashes[d]`);
    - "gaussian": a standard normal number, made from d, j and the seed when it is needed;
    - "per-bit": +1 or -1 from a hash function of its own for each j.

    Nothing of size dimensions * bits is ever held. Sums are exact: a row's values are first
    rounded to multiples of its largest one times 2**-36 or less (gaussian: 2**-22), up to 2**24
    values that are not 0, so no order, cutting or number of threads can change a bit.

    Args:
        vectors: Numbers as a 2-D array (rows are vectors), a 1-D array (one vector), any
            scipy.sparse matrix, an Arrow list column, or an iterable of rows or of such batches,
            which is read as a stream.
        bits: Width, from 1 to 32,767.
        method: "hashed", "gaussian" or "per-bit".
        hashes: For "hashed": an int (the low `bits` bits count) for each dimension.
        seed: From 0 to 2**64 - 1.
        workers: Number of threads; by default all available processors.

    Returns:
        uint64, shape (n, ceil(bits / 64)), low word first, unused bits 0. Where a vector is all
        zeros, and so has no direction, it is a masked array with that row masked.

    Raises:
        UsageError: For a number that is NaN or infinite, rows of unequal length (each named by row
            and column), or an argument that is out of range.

    Example:
        >>> project([[3.0, 2.0, 4.0]], bits=2, hashes=[0b10, 0b01, 0b11])
        array([[3]], dtype=uint64)
    """
    plan = _plan(bits, method, hashes, seed)
    threads = worker_count(workers)
    values = [np.zeros((0, plan.words), np.uint64)]
    empty = [np.zeros(0, np.bool_)]
    running: deque[Future[tuple[Any, Any]]] = deque()

    def wait_for_oldest() -> None:
        rows, without_direction = running.popleft().result()
        values.append(rows)
        empty.append(without_direction)

    pool = ThreadPoolExecutor(threads)
    try:
        for first, block in _blocks(vectors, plan):
            running.append(pool.submit(_project_block, block, first, plan))
            while len(running) > 2 * threads:
                wait_for_oldest()
        while running:
            wait_for_oldest()
    finally:
        pool.shutdown(cancel_futures=True)
    codes, masked = np.concatenate(values), np.concatenate(empty)
    if masked.any():
        return np.ma.MaskedArray(codes, np.repeat(masked[:, None], plan.words, axis=1))
    return codes


@dataclass(frozen=True, slots=True)
class _Plan:
    bits: int
    method: int
    seed: Any
    given: Any
    quantiles: Any

    @property
    def words(self) -> int:
        return -(-self.bits // 64)

    @property
    def sum_bits(self) -> int:
        return _PLANE_BITS if self.method == METHODS["gaussian"] else _SIGN_BITS

    @property
    def largest_unit(self) -> int:
        return _LARGEST_PLANE_UNIT if self.method == METHODS["gaussian"] else _SIGN_BITS


def _plan(bits: int, method: str, hashes: Any, seed: int) -> _Plan:
    if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= MAX_BITS:
        raise UsageError(f"bits is {bits!r}: use a whole number from 1 to {MAX_BITS:,}")
    if not isinstance(method, str) or method not in METHODS:
        raise UsageError(f"method is {method!r}: use one of {', '.join(METHODS)}")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 1 << 64:
        raise UsageError(f"seed is {seed!r}: use a whole number from 0 to 2**64 - 1")
    words = -(-bits // 64)
    code, given = METHODS[method], np.zeros((0, words), np.uint64)
    if hashes is not None:
        if method != "hashed":
            raise UsageError(f'hashes go with method "hashed", not {method!r}: leave one out')
        code, given = _GIVEN, _hash_words(hashes, words)
    quantiles = _quantiles() if method == "gaussian" else np.zeros(0, np.int16)
    return _Plan(bits, code, np.uint64(seed), given, quantiles)


def _hash_words(hashes: Sequence[Any], words: int) -> Any:
    """Lay one int a dimension out as uint64 (dimensions, words), low word first."""
    if not isinstance(hashes, Sequence | np.ndarray) or isinstance(hashes, str | bytes):
        raise UsageError(f"hashes is {hashes!r:.60}: pass a list of ints, one for each dimension")
    codes = np.zeros((len(hashes), words), np.uint64)
    for dimension, value in enumerate(hashes):
        if not isinstance(value, int | np.integer) or value < 0:
            raise UsageError(f"hashes[{dimension}] is {value!r}: use whole numbers from 0 up")
        for word in range(words):
            codes[dimension, word] = int(value) >> 64 * word & (1 << 64) - 1
    return codes


@functools.cache
def _quantiles() -> Any:
    """The middles of 65,536 equal shares of the normal distribution, as odd multiples of 2**-12.

    Odd, so that none is 0 and the two halves mirror each other; rounded, so that no two machines
    can differ; int16.
    """
    normal = statistics.NormalDist()
    half = 1 << 15
    above = [
        2 * math.floor(normal.inv_cdf((half + i + 0.5) / 65536) * 2048) + 1 for i in range(half)
    ]
    upper = np.array(above, np.int16)
    return np.concatenate([-upper[::-1], upper])


def _blocks(vectors: Any, plan: _Plan) -> Iterator[tuple[int, Any]]:
    """Cut the input into blocks of rows; gives (first row, block)."""
    first, dimensions = 0, len(plan.given) if plan.method == _GIVEN else None
    for batch in batches(vectors):
        rows, columns = batch.shape
        if dimensions is None:
            dimensions = columns
        if columns != dimensions and rows:
            expected = "there are hashes for" if plan.method == _GIVEN else "the first one has"
            raise UsageError(f"row {first} has {columns:,} numbers: {expected} {dimensions:,}")
        size = batch.nnz if is_sparse(batch) else rows * columns
        step = min(_BLOCK_NUMBERS * rows // max(size, 1), _BLOCK_SUMS // plan.bits)
        for begin in range(0, rows, max(step, 1)):
            block = batch[begin : begin + max(step, 1)]
            yield first + begin, block
        first += rows


def _project_block(block: Any, first: int, plan: _Plan) -> tuple[Any, Any]:
    """Fingerprints of some rows, and which of them have no direction."""
    from neardup.kernels.fingerprinting import vector_fold as kernels

    rows, columns = block.shape
    out = np.zeros((rows, plan.words), np.uint64)
    projection = kernels.Projection(plan.method, plan.seed, plan.given, plan.quantiles, plan.bits)
    if is_sparse(block):
        values = np.ascontiguousarray(block.data, np.float64)
        places, offsets = block.indices.astype(np.int64), block.indptr.astype(np.int64)
    else:
        values = np.ascontiguousarray(block, np.float64).ravel()
        offsets = np.arange(rows + 1, dtype=np.int64) * columns
    units, largest = np.empty(values.size, np.int64), np.empty(rows)
    odd = kernels.round_rows(values, offsets, plan.sum_bits, plan.largest_unit, units, largest)
    if odd >= 0:
        row = int(np.searchsorted(offsets, odd, side="right")) - 1
        column = int(places[odd]) if is_sparse(block) else odd - row * columns
        raise UsageError(
            f"row {first + row}, column {column} is {values[odd]}: vectors need finite numbers"
        )
    if is_sparse(block):
        kernels.project_sparse(units, places, offsets, projection, out)
    else:
        kernels.project_dense(units.reshape(rows, columns), projection, out)
    return out, largest == 0.0
