"""Conversion of stored fingerprints: decimal, hexadecimal, binary, signed, and index keys.

All give uint64 arrays, as `neardup.distance` and `neardup.pairs` take them.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from neardup.errors import DataError, UsageError
from neardup.features.choices import MAX_BITS

__all__ = [
    "from_bytes",
    "from_decimal",
    "from_hex",
    "from_index_entries",
    "from_signed",
    "to_bytes",
    "to_decimal",
    "to_hex",
    "to_signed",
]

_ORDERS: Final = ("big", "little")
_DIGITS: Final = {
    10: re.compile("[+-]?[0-9]+"),
    16: re.compile("[+-]?(?:0[xX])?[0-9a-fA-F]+"),
}
_MOST_DIGITS: Final = 4000


def from_signed(values: Any) -> Any:
    """Signed 64-bit integers, as Java and SQL databases keep them; uint64, the same bits.

    Raises:
        DataError: If a value is not a whole number or does not fit 64 bits with a sign, with its
            row.

    Example:
        >>> from_signed([-1, 5]).tolist()
        [18446744073709551615, 5]
    """
    array = np.asarray(values)
    if array.dtype.kind == "u":
        raise DataError(f"values have dtype {array.dtype}, which has no sign: use them as they are")
    if array.dtype.kind != "i":
        for row, value in enumerate(array.ravel().tolist()):
            whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            if not whole or not -(1 << 63) <= int(value) < 1 << 63:
                raise DataError(f"row {row}: {value!r:.60} is not a signed 64-bit integer")
    return array.astype(np.int64).view(np.uint64)


def to_signed(fingerprints: Any) -> Any:
    """Signed int64 values with the bits of uint64 fingerprints.

    Raises:
        UsageError: For what are not fingerprints, or a masked row, which has none.

    Example:
        >>> to_signed(np.array([2**64 - 1, 5], np.uint64)).tolist()
        [-1, 5]
    """
    return _checked(fingerprints).view(np.int64)


def from_decimal(texts: Iterable[str], bits: int = 64) -> Any:
    """Decimal strings, with a minus sign where they were stored signed; uint64 (n,) or (n, words).

    White space around a number does not count, so lines of a file can be passed.

    Raises:
        DataError: For what is not a number or does not fit, with its row.
        UsageError: If `texts` is one string or `bits` is not a width.

    Example:
        >>> from_decimal(["15129817047262752921", "-1"]).tolist()
        [15129817047262752921, 18446744073709551615]
    """
    return _numbers(texts, 10, bits)


def to_decimal(fingerprints: Any) -> list[str]:
    """Decimal strings of uint64 (n,) or (n, words).

    Raises:
        UsageError: As `to_signed`.

    Example:
        >>> to_decimal(np.array([255], np.uint64))
        ['255']
    """
    return [str(value) for value in _joined(fingerprints)]


def from_hex(texts: Iterable[str], bits: int = 64) -> Any:
    """Hexadecimal strings, with or without 0x and leading zeros; uint64 (n,) or (n, words).

    Raises:
        DataError, UsageError: As `from_decimal`.

    Example:
        >>> from_hex(["0x8c3a5f7e9ecb3f35", "ff"]).tolist()
        [10104493711393767221, 255]
    """
    return _numbers(texts, 16, bits)


def to_hex(fingerprints: Any) -> list[str]:
    """Hexadecimal strings of uint64 (n,) or (n, words), padded to the full width.

    Raises:
        UsageError: As `to_signed`.

    Example:
        >>> to_hex(np.array([255], np.uint64))
        ['00000000000000ff']
    """
    values = _checked(fingerprints)
    return [format(value, f"0{16 * _words(values)}x") for value in _joined(values)]


def from_bytes(data: bytes | Any, bits: int = 64, order: str = "big") -> Any:
    """Fingerprints end to end, `bits` wide each (a multiple of 8); uint64 (n,) or (n, words).

    Args:
        data: Bytes, or anything with a buffer, such as a memory map.
        bits: Width of each.
        order: "big" or "little": which byte of one comes first, the highest or the lowest.

    Raises:
        UsageError: If `data` has no bytes, for another order or a width that is not a multiple of
            8.
        DataError: If the length is not a multiple of the width.

    Example:
        >>> from_bytes(bytes.fromhex("00000000000000ff")).tolist()
        [255]
    """
    width = _width(bits, order)
    try:
        raw = np.frombuffer(data, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise UsageError(f"data is {type(data).__name__}: pass bytes ({error})") from None
    if raw.size % width:
        raise DataError(f"{raw.size:,} bytes are not a multiple of the width, {width} bytes")
    rows = raw.reshape(-1, width)
    if order == "big":
        rows = rows[:, ::-1]
    words = -(-width // 8)
    padded = np.zeros((len(rows), 8 * words), np.uint8)
    padded[:, :width] = rows
    return _shaped(padded.view("<u8").astype(np.uint64), bits)


def to_bytes(fingerprints: Any, bits: int = 64, order: str = "big") -> bytes:
    """Fingerprints as bytes end to end, bits / 8 bytes each.

    Raises:
        UsageError: As `to_signed` and `from_bytes`, or if a fingerprint does not fit `bits`.

    Example:
        >>> to_bytes(np.array([255], np.uint64)).hex()
        '00000000000000ff'
    """
    width = _width(bits, order)
    values = _checked(fingerprints)
    for row, value in enumerate(_joined(values) if bits < 64 * _words(values) else ()):
        if value >> bits:
            raise UsageError(f"row {row}: {value:#x} does not fit {bits} bits")
    if bits > 64 * _words(values):
        raise UsageError(f"bits is {bits}: the fingerprints have {64 * _words(values)}")
    rows = values.reshape(len(values), _words(values)).astype("<u8").view(np.uint8)[:, :width]
    data: bytes = (rows[:, ::-1] if order == "big" else rows).tobytes()
    return data


def from_index_entries(entries: Iterable[str], bits: int = 64) -> tuple[Any, list[str]]:
    """Entries of PyPI simhash's SimhashIndex, "<hex>,<id>", each of them once.

    An index keeps an entry in each of its buckets; pass all buckets' entries together.

    Args:
        entries: The members of the sets in the index's attribute "bucket".
        bits: The width, the index's attribute "f".

    Returns:
        uint64 (n,) or (n, words) and the ids, in the order of first occurrence.

    Raises:
        DataError: For an entry without a comma or whose number does not fit.
        UsageError: If `entries` is one string.

    Example:
        >>> from_index_entries(["ff,a", "1,b,c", "ff,a"])
        (array([255,   1], dtype=uint64), ['a', 'b,c'])
    """
    once = list(dict.fromkeys(_listed(entries)))
    for entry in once:
        if not isinstance(entry, str) or "," not in entry:
            raise DataError(f"index entry {entry!r:.60}: should be the value in hexadecimal,id")
    parts = [entry.split(",", 1) for entry in once]
    return from_hex([value for value, _ in parts], bits), [name for _, name in parts]


def _numbers(texts: Iterable[str], base: int, bits: int) -> Any:
    _check_bits(bits)
    values = []
    for row, text in enumerate(_listed(texts)):
        string = text.decode("latin-1") if isinstance(text, bytes) else text
        if not isinstance(string, str) or not _DIGITS[base].fullmatch(string.strip()):
            use = ", as a string" if isinstance(string, int) else ""
            raise DataError(f"row {row}: {text!r:.60} is not a number of base {base}{use}")
        # Python refuses to read numbers of thousands of digits; no width here takes that many.
        value = int(string, base) if len(string) <= _MOST_DIGITS else 1 << bits
        if not -(1 << bits - 1) <= value < 1 << bits:
            raise DataError(f"row {row}: {text!r:.60} does not fit {bits} bits")
        values.append(value % (1 << bits))
    words = -(-bits // 64)
    data = b"".join(value.to_bytes(8 * words, "little") for value in values)
    return _shaped(np.frombuffer(data, "<u8").astype(np.uint64).reshape(len(values), words), bits)


def _listed(values: Any) -> list[Any]:
    """The elements of a list or array of values; an Arrow array's as Python strings."""
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise UsageError(f"{values!r:.60} is one value: pass a list of strings")
    return list(values)


def _checked(fingerprints: Any) -> Any:
    """A uint64 array (n,) or (n, words) of fingerprints, without masked rows."""
    if np.ma.is_masked(fingerprints):
        mask = np.ma.getmaskarray(fingerprints).reshape(len(fingerprints), -1)
        row = int(np.argmax(mask.any(axis=1)))
        raise UsageError(f"row {row} has no fingerprint, its text has no tokens: leave it out")
    values = np.asarray(fingerprints)
    if values.ndim not in (1, 2):
        raise UsageError(f"fingerprints have {values.ndim} dimensions: use (n,) or (n, words)")
    if values.size and (values.dtype.kind not in "iu" or values.min() < 0):
        raise UsageError(
            f"fingerprints have dtype {values.dtype}: use uint64; from_signed makes it of int64"
        )
    return values.astype(np.uint64, copy=False)


def _joined(fingerprints: Any) -> list[int]:
    values = _checked(fingerprints)
    rows = values.reshape(len(values), _words(values)).tolist()
    return [sum(word << 64 * i for i, word in enumerate(row)) for row in rows]


def _words(values: Any) -> int:
    return 1 if values.ndim == 1 else int(values.shape[1])


def _shaped(values: Any, bits: int) -> Any:
    return values[:, 0] if bits <= 64 else values


def _width(bits: int, order: str) -> int:
    if order not in _ORDERS:
        raise UsageError(f"order is {order!r}: use big or little")
    _check_bits(bits)
    if bits % 8:
        raise UsageError(f"bits is {bits!r}: use a multiple of 8")
    return bits // 8


def _check_bits(bits: Any) -> None:
    if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= MAX_BITS:
        raise UsageError(f"bits is {bits!r:.60}: use a whole number from 1 to {MAX_BITS:,}")
