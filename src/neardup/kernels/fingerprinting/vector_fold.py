"""Fold rows of numbers: each dimension adds its value to every sum, or its negative, or a multiple.

All sums are sums of integers, so that neither the order of the dimensions nor the cutting into
blocks and threads can change a sign. Source: Charikar, Similarity estimation techniques from
rounding algorithms, STOC 2002, section 3.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.jit import inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Float64s, Int16s, Int32s, Int64s, Offsets, Uint64s

HASHED, PER_BIT, GAUSSIAN, GIVEN = 0, 1, 2, 3

BLOCK: Final = 256
"""Dimensions whose coefficients are made at a time."""

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_QUARTER: Final = np.uint64(0xFFFF)


class Projection(NamedTuple):
    """The numbers that each dimension adds to each sum."""

    method: int  # HASHED, PER_BIT, GAUSSIAN or GIVEN
    seed: Any  # uint64
    given: Any  # uint64 (dimensions, words), the hashes for GIVEN; else empty
    quantiles: Any  # int16 (65536,), the normal distribution for GAUSSIAN; else empty
    bits: int


@inner
def _nth(state: np.uint64, n: int) -> Any:
    """Give splitmix64's n-th output, from 1 on, for a state; uint64."""
    z = state + np.uint64(n) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@inner
def _fill_signs(
    dimensions: Int64s, begin: int, count: int, seed: np.uint64, method: int, given: Uint64s,
    signs: Uint64s,
) -> None:  # fmt: skip
    for i in range(count):
        dimension = dimensions[begin + i]
        if method == GIVEN:
            for word in range(signs.shape[1]):
                signs[i, word] = given[dimension, word]
        elif method == PER_BIT:
            for word in range(signs.shape[1]):
                bits = _ZERO
                for bit in range(64):
                    function = _nth(seed, 64 * word + bit + 1)
                    top = _nth(function, dimension + 1) >> np.uint64(63)
                    bits |= top << np.uint64(bit)
                signs[i, word] = bits
        else:
            h = _nth(_nth(seed, 1), dimension + 1)
            signs[i, 0] = h
            for word in range(1, signs.shape[1]):
                signs[i, word] = _nth(h, word)


@inner
def _fill_planes(
    dimensions: Int64s, begin: int, count: int, seed: np.uint64, quantiles: Int16s, planes: Int32s
) -> None:
    for i in range(count):
        h = _nth(_nth(seed, 1), dimensions[begin + i] + 1)
        for at in range(0, planes.shape[1], 4):
            four = _nth(h, (at >> 2) + 1)
            planes[i, at] = quantiles[four & _QUARTER]
            planes[i, at + 1] = quantiles[(four >> np.uint64(16)) & _QUARTER]
            planes[i, at + 2] = quantiles[(four >> np.uint64(32)) & _QUARTER]
            planes[i, at + 3] = quantiles[four >> np.uint64(48)]


@inner
def _add_signs(units: Int64s, begin: int, count: int, signs: Uint64s, sums: Int64s) -> None:
    """Add the units to the sums whose bit is 1; the others follow from the total."""
    for i in range(count):
        unit = units[begin + i]
        if unit != 0:
            for word in range(signs.shape[1]):
                bits = signs[i, word]
                for bit in range(64):
                    sums[64 * word + bit] += unit & -np.int64((bits >> np.uint64(bit)) & _ONE)


@inner
def _add_planes(units: Int64s, begin: int, count: int, planes: Int32s, sums: Int64s) -> None:
    for i in range(count):
        unit = np.int64(np.int32(units[begin + i]))
        if unit != 0:
            for bit in range(planes.shape[1]):
                sums[bit] += unit * np.int64(planes[i, bit])


@inner
def _write_bits(sums: Int64s, total: int, bits: int, out: Uint64s) -> None:
    for word in range(out.size):
        code = _ZERO
        for bit in range(min(64, bits - 64 * word)):
            if 2 * sums[64 * word + bit] > total:
                code |= _ONE << np.uint64(bit)
        out[word] = code


@inner
def _total(units: Int64s, begin: int, end: int, method: int) -> int:
    """Sum the units; 0 for planes, where a sum stands for itself."""
    total = np.int64(0)
    if method != GAUSSIAN:
        for i in range(begin, end):
            total += units[i]
    return total


@kernel
def round_rows(
    values: Float64s, offsets: Offsets, most: int, cap: int, units: Int64s, largest: Float64s
) -> int:
    """Write each row as whole numbers; O(values).

    The largest value of a row with n values that are not 0 takes min(most - ceil(log2 n), cap)
    bits, and the others are multiplied by the same power of two and rounded, halves to even.

    Args:
        values: float64 (values,), may be read-only.
        offsets: int64 (rows + 1,): row i is values[offsets[i]:offsets[i + 1]].
        most: Bits that a sum may take.
        cap: Bits that a number may take.
        units: int64 (values,), written.
        largest: float64 (rows,), written: the largest absolute value of each.

    Returns:
        The index of the first value that is not finite, else -1.
    """
    for row in range(offsets.size - 1):
        begin, end = offsets[row], offsets[row + 1]
        top, count, odd = 0.0, 0, 0
        for i in range(begin, end):
            size = abs(values[i])
            top = max(top, size)
            count += size != 0.0
            odd += not size < np.inf
        if odd:
            for i in range(begin, end):
                if not abs(values[i]) < np.inf:
                    return i
        largest[row] = top
        log = 0
        while (1 << log) < count:
            log += 1
        shift = min(most - log, cap) - math.frexp(top)[1]
        half = shift // 2
        # In two steps: 2**shift alone may overflow.
        first, second = math.ldexp(1.0, half), math.ldexp(1.0, shift - half)
        for i in range(begin, end):
            units[i] = np.int64(np.rint(values[i] * first * second))
    return -1


@kernel
def project_dense(units: Int64s, projection: Projection, out: Uint64s) -> None:
    """Fold each row of a dense matrix; O(rows * dimensions * bits).

    Args:
        units: int64 (rows, dimensions), C contiguous, small enough that no sum passes 2**61; for
            GAUSSIAN each below 2**31.
        projection: Projection.
        out: uint64 (rows, words), written; unused bits 0.
    """
    method, seed, given, quantiles, bits = projection
    words = out.shape[1]
    rows, dimensions = units.shape
    block = np.empty(BLOCK, np.int64)
    signs = np.empty((0 if method == GAUSSIAN else BLOCK, words), np.uint64)
    planes = np.empty((BLOCK if method == GAUSSIAN else 0, 64 * words), np.int32)
    sums = np.zeros((rows, 64 * words), np.int64)
    for begin in range(0, dimensions, BLOCK):
        count = min(BLOCK, dimensions - begin)
        for i in range(count):
            block[i] = begin + i
        if method == GAUSSIAN:
            _fill_planes(block, 0, count, seed, quantiles, planes)
            for row in range(rows):
                _add_planes(units[row], begin, count, planes, sums[row])
        else:
            _fill_signs(block, 0, count, seed, method, given, signs)
            for row in range(rows):
                _add_signs(units[row], begin, count, signs, sums[row])
    for row in range(rows):
        _write_bits(sums[row], _total(units[row], 0, dimensions, method), bits, out[row])


@kernel
def project_sparse(
    units: Int64s, columns: Int64s, offsets: Offsets, projection: Projection, out: Uint64s
) -> None:
    """Fold each row of a sparse matrix; O(entries * bits), whatever the number of dimensions.

    Args:
        units: int64 (entries,), as in `project_dense`.
        columns: int64 (entries,), the dimension of each; distinct within a row.
        offsets: int64 (rows + 1,), where each row begins.
        projection: Projection.
        out: uint64 (rows, words), written; unused bits 0.
    """
    method, seed, given, quantiles, bits = projection
    words = out.shape[1]
    signs = np.empty((0 if method == GAUSSIAN else BLOCK, words), np.uint64)
    planes = np.empty((BLOCK if method == GAUSSIAN else 0, 64 * words), np.int32)
    sums = np.empty(64 * words, np.int64)
    for row in range(offsets.size - 1):
        for i in range(sums.size):
            sums[i] = 0
        for begin in range(offsets[row], offsets[row + 1], BLOCK):
            count = min(BLOCK, offsets[row + 1] - begin)
            if method == GAUSSIAN:
                _fill_planes(columns, begin, count, seed, quantiles, planes)
                _add_planes(units, begin, count, planes, sums)
            else:
                _fill_signs(columns, begin, count, seed, method, given, signs)
                _add_signs(units, begin, count, signs, sums)
        total = _total(units, offsets[row], offsets[row + 1], method)
        _write_bits(sums, total, bits, out[row])
