"""SimHash of vectors: which side of random hyperplanes each row of numbers lies on.

Source: Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002, section 3;
docs/reference/vectors.md has the exact definition of the three methods.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.features.choices import MAX_BITS
from neardup.fingerprinting.vector_inputs import batches, is_sparse
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["project"]

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
        bits: Width, from 1 to 65,536.
        method: "hashed", "gaussian" or "per-bit".
        hashes: For "hashed": an int (the low `bits` bits count) for each dimension.
        seed: From 0 to 2**64 - 1.
        workers: Threads; the processors at hand unless given.

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
    found, masked = np.concatenate(values), np.concatenate(empty)
    if masked.any():
        return np.ma.MaskedArray(found, np.repeat(masked[:, None], plan.words, axis=1))
    return found


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
    found = np.zeros((len(hashes), words), np.uint64)
    for dimension, value in enumerate(hashes):
        if not isinstance(value, int | np.integer) or value < 0:
            raise UsageError(f"hashes[{dimension}] is {value!r}: use whole numbers from 0 up")
        for word in range(words):
            found[dimension, word] = int(value) >> 64 * word & (1 << 64) - 1
    return found


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
    from neardup.kernels.fingerprinting import vectors as kernels

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
