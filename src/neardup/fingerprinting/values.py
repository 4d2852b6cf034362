"""Fingerprints as numbers and as arrays: the one way from the ones to the others."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.runtime.types import Codes, RowNumbers

__all__ = ["as_codes", "check_distance", "check_last_word", "distance"]


def distance(a: Any, b: Any, bits: int | None = None) -> Any:
    """Count the bits in which fingerprints differ (Hamming distance).

    Without `bits`, a 1-D array is n fingerprints of one word each, so that the distance of two of
    them is n numbers. A single fingerprint wider than 64 bits, such as one row of a (n, 2) array,
    is 1-D too: give its `bits`, and the last axis of every array is the words of one fingerprint.

    Args:
        a: An int, or a uint64 array of shape (..., width) or, for one word, (n,).
        b: The same; arrays broadcast, and where a row is masked (no tokens) so is the result.
        bits: Width of the fingerprints.

    Returns:
        An int for two ints or, with `bits`, two single fingerprints; else an int64 array.

    Raises:
        UsageError: If an int is negative, arrays are not uint64 or do not broadcast, or the last
            axis does not have ceil(bits / 64) words.

    Example:
        >>> distance(0b1011, 0b0001)
        2
        >>> values = np.array([[7, 1], [0, 0]], np.uint64)
        >>> distance(values[0], values[1]).tolist(), distance(values[0], values[1], bits=128)
        ([3, 1], 4)
    """
    if isinstance(a, int) and isinstance(b, int):
        if a < 0 or b < 0:
            raise UsageError(
                f"a fingerprint is {min(a, b)}: a signed 64-bit value is value % 2**64"
            )
        return operator.xor(a, b).bit_count()
    left, right = _codes(a, bits), _codes(b, bits)
    try:
        np.broadcast_shapes(left.shape, right.shape)
    except ValueError:
        raise UsageError(
            f"fingerprints have shapes {left.shape} and {right.shape}: use as many of both, or one"
        ) from None
    counts = np.bitwise_count(left ^ right).astype(np.int64)
    if bits is not None or max(left.ndim, right.ndim) > 1:
        counts = counts.sum(axis=-1)
    return counts if np.ma.isMaskedArray(counts) or counts.ndim else int(counts)


def _codes(value: Any, bits: int | None) -> Any:
    if isinstance(value, int):
        if not 0 <= value < 1 << (bits or 64):
            raise UsageError(
                f"a fingerprint is {value}: with an array, pass one of {bits or 64} bits"
            )
        width = [value >> 64 * word & (1 << 64) - 1 for word in range(-(-(bits or 64) // 64))]
        return np.array(width if bits else width[0], np.uint64)
    array = np.asanyarray(value)
    if array.dtype != np.uint64:
        hint = ", as array.view(numpy.uint64)" if array.dtype == np.int64 else ""
        raise UsageError(f"fingerprints have dtype {array.dtype}: use uint64{hint}")
    if bits is not None and (array.ndim == 0 or array.shape[-1] != -(-bits // 64)):
        raise UsageError(
            f"fingerprints have shape {array.shape}: {bits} bits are {-(-bits // 64)} words a row"
        )
    return array


MOST_ROWS: Final = 1 << 32
MOST_DISTANCE: Final = 2**15 - 1
"""What 16 bits hold with a sign; no recipe makes wider fingerprints."""


def as_codes(fingerprints: Any, bits: int | None = None) -> tuple[Codes, RowNumbers | None, int]:
    """Check fingerprints and bring them into one shape.

    Returns:
        uint64 (n, width) of the rows that are not masked, read-only; their row numbers, uint32, or
        None where none is masked; the width in bits.

    Raises:
        UsageError: For a wrong dtype, shape or width.
    """
    values = fingerprints
    if isinstance(values, (list, tuple)):
        values = _from_ints(values, bits)
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = np.ma.getdata(values) if mask is not None else np.asarray(values)
    if array.dtype not in (np.dtype(np.uint64), np.dtype(np.int64)):
        raise UsageError(
            f"fingerprints are {array.dtype}: use uint64 (or int64, taken bit for bit)"
        )
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.shape[1] == 0:
        raise UsageError(f"fingerprints have shape {array.shape}: use (n,) or (n, width)")
    width = 64 * array.shape[1]
    bits = width if bits is None else bits
    if not width - 64 < bits <= width:
        raise UsageError(f"bits is {bits}: {array.shape[1]} words hold {width - 63} to {width}")
    if bits > MOST_DISTANCE:
        raise UsageError(f"fingerprints have {bits:,} bits: use up to {MOST_DISTANCE:,}")
    if len(array) > MOST_ROWS:
        raise UsageError(f"{len(array):,} fingerprints: join at most {MOST_ROWS:,} at once")
    codes = np.ascontiguousarray(array).view(np.uint64)
    rows = None
    if mask is not None and mask.any():
        rows = np.flatnonzero(~mask.reshape(len(array), -1).any(axis=1)).astype(np.uint32)
        codes = codes[rows]
    if bits < width and len(codes):
        check_last_word(int(codes[:, -1].max()), bits)
    return frozen(codes), rows, bits


def check_last_word(word: int, bits: int) -> None:
    """Raise UsageError if the last word of a fingerprint has bits beyond its width."""
    if bits % 64 and word >> bits % 64:
        raise UsageError(
            f"a fingerprint has bits set beyond bits = {bits}: clear them or raise bits"
        )


def _from_ints(values: Any, bits: int | None) -> Codes:
    if any(not isinstance(value, (int, np.integer)) or value < 0 for value in values):
        raise UsageError("a list of fingerprints holds whole numbers from 0 only")
    widest = max((int(value).bit_length() for value in values), default=1)
    if bits is not None and widest > bits:
        raise UsageError(f"a fingerprint has {widest} bits, more than bits = {bits}")
    size = 8 * -(-max(bits or widest, 1) // 64)
    joined = b"".join(int(value).to_bytes(size, "little") for value in values)
    return np.frombuffer(joined, "<u8").astype(np.uint64).reshape(-1, size // 8)


def check_distance(distance: int) -> None:
    """Refuse a distance that is not a whole number from 0 to 32,767.

    Raises:
        UsageError: If it is refused.
    """
    whole = isinstance(distance, (int, np.integer)) and not isinstance(distance, bool)
    if not whole or not 0 <= distance <= MOST_DISTANCE:
        raise UsageError(
            f"distance is {distance!r}: use a whole number from 0 to {MOST_DISTANCE:,}"
        )
