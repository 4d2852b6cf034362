"""Read fingerprints that were stored elsewhere: decimal, hexadecimal, binary, signed, index keys.

All give uint64 arrays, as `neardup.distance` and `neardup.pairs` take them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def from_signed(values: Any) -> Any:
    """Signed 64-bit integers, as Java and SQL databases keep them; uint64, the same bits.

    Raises:
        UsageError: If a value does not fit 64 bits with a sign.

    Example:
        >>> from_signed([-1, 5]).tolist()
        [18446744073709551615, 5]
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iO" and array.size:
            raise UsageError(f"values have dtype {array.dtype}: use signed integers")
        return array.astype(np.int64).view(np.uint64)
    except (OverflowError, ValueError, TypeError) as error:
        raise UsageError(f"a value is no signed 64-bit integer: {error}") from None


def to_signed(fingerprints: Any) -> Any:
    """The other way: uint64 to int64 of the same bits."""
    return np.asarray(fingerprints, np.uint64).view(np.int64)


def from_decimal(texts: Iterable[str], bits: int = 64) -> Any:
    """Decimal strings, with a minus sign where they were stored signed; uint64 (n,) or (n, words).

    Raises:
        DataError: For what is no number or does not fit, with its row.

    Example:
        >>> from_decimal(["15129817047262752921", "-1"]).tolist()
        [15129817047262752921, 18446744073709551615]
    """
    return _numbers(texts, 10, bits)


def to_decimal(fingerprints: Any) -> list[str]:
    """Decimal strings of uint64 (n,) or (n, words)."""
    return [str(value) for value in _joined(fingerprints)]


def from_hex(texts: Iterable[str], bits: int = 64) -> Any:
    """Hexadecimal strings, with or without 0x and leading zeros; uint64 (n,) or (n, words).

    Raises:
        DataError: For what is no number or does not fit, with its row.

    Example:
        >>> from_hex(["0x8c3a5f7e9ecb3f35", "ff"]).tolist()
        [10104493711393767221, 255]
    """
    return _numbers(texts, 16, bits)


def to_hex(fingerprints: Any) -> list[str]:
    """Hexadecimal strings of uint64 (n,) or (n, words), padded to the full width."""
    digits = 16 if np.ndim(fingerprints) == 1 else 16 * np.shape(fingerprints)[1]
    return [format(value, f"0{digits}x") for value in _joined(fingerprints)]


def from_bytes(data: bytes | Any, bits: int = 64, order: str = "big") -> Any:
    """Fingerprints end to end, `bits` wide each (a multiple of 8); uint64 (n,) or (n, words).

    Args:
        data: Bytes, or anything with a buffer, such as a memory map.
        bits: Width of each.
        order: "big" or "little": which byte of one comes first, the highest or the lowest.

    Raises:
        UsageError: For another order or a width that is no multiple of 8.
        DataError: If the length is no multiple of the width.

    Example:
        >>> from_bytes(bytes.fromhex("00000000000000ff")).tolist()
        [255]
    """
    width = _width(bits, order)
    raw = np.frombuffer(data, np.uint8)
    if raw.size % width:
        raise DataError(f"{raw.size:,} bytes are no whole number of fingerprints of {width} bytes")
    rows = raw.reshape(-1, width)
    if order == "big":
        rows = rows[:, ::-1]
    words = -(-width // 8)
    padded = np.zeros((len(rows), 8 * words), np.uint8)
    padded[:, :width] = rows
    return _shaped(padded.view("<u8").astype(np.uint64), bits)


def to_bytes(fingerprints: Any, bits: int = 64, order: str = "big") -> bytes:
    """The other way: each fingerprint as bits / 8 bytes."""
    width = _width(bits, order)
    values = np.asarray(fingerprints, np.uint64)
    rows = values.reshape(len(values), _words(values)).astype("<u8").view(np.uint8)[:, :width]
    return (rows[:, ::-1] if order == "big" else rows).tobytes()


def from_index_entries(entries: Iterable[str]) -> tuple[Any, list[str]]:
    """Entries of PyPI simhash's SimhashIndex, "<hex>,<id>", each of them once.

    An index keeps an entry in each of its buckets; pass all buckets' entries together.

    Args:
        entries: As they stand in the sets of `SimhashIndex.bucket`.

    Returns:
        uint64 (n,) and the ids, in the order of first occurrence.

    Raises:
        DataError: For an entry without a comma or whose number does not fit 64 bits.

    Example:
        >>> from_index_entries(["ff,a", "1,b,c", "ff,a"])
        (array([255,   1], dtype=uint64), ['a', 'b,c'])
    """
    once = list(dict.fromkeys(entries))
    for entry in once:
        if "," not in entry:
            raise DataError(f"index entry {entry!r}: should be the value in hexadecimal,id")
    parts = [entry.split(",", 1) for entry in once]
    return from_hex(value for value, _ in parts), [name for _, name in parts]


def _numbers(texts: Iterable[str], base: int, bits: int) -> Any:
    values = []
    for row, text in enumerate(texts):
        try:
            value = int(text, base)
        except (TypeError, ValueError):
            raise DataError(f"row {row}: {text!r:.60} is no number of base {base}") from None
        if not -(1 << bits - 1) <= value < 1 << bits:
            raise DataError(f"row {row}: {text!r:.60} does not fit {bits} bits")
        values.append(value % (1 << bits))
    words = -(-bits // 64)
    data = b"".join(value.to_bytes(8 * words, "little") for value in values)
    return _shaped(np.frombuffer(data, "<u8").astype(np.uint64).reshape(len(values), words), bits)


def _joined(fingerprints: Any) -> list[int]:
    values = np.asarray(fingerprints, np.uint64)
    rows = values.reshape(len(values), _words(values)).tolist()
    return [sum(word << 64 * i for i, word in enumerate(row)) for row in rows]


def _words(values: Any) -> int:
    return 1 if values.ndim == 1 else int(values.shape[1])


def _shaped(values: Any, bits: int) -> Any:
    return values[:, 0] if bits <= 64 else values


def _width(bits: int, order: str) -> int:
    if order not in _ORDERS:
        raise UsageError(f"order is {order!r}: use big or little")
    if bits < 8 or bits % 8:
        raise UsageError(f"bits is {bits!r}: use a multiple of 8")
    return bits // 8
