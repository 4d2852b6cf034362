"""Checksums of stored data: sealed values, and columns written in parts."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

__all__ = ["CHECKSUM_BYTES", "ColumnSum", "checksum", "sealed", "sealed_parts", "unsealed"]

CHECKSUM_BYTES: Final = 8


def checksum(data: Any) -> bytes:
    """8 bytes that change when the data does."""
    return hashlib.blake2b(data, digest_size=CHECKSUM_BYTES).digest()


def sealed(body: bytes, key: bytes = b"") -> bytes:
    """Bytes preceded by a checksum of them and of their key."""
    return checksum(key + body) + body


def sealed_parts(parts: Iterable[bytes | memoryview]) -> bytes:
    """Consecutive bytes sealed as by `sealed`, copied once."""
    parts, summed = list(parts), hashlib.blake2b(digest_size=CHECKSUM_BYTES)
    for each in parts:
        summed.update(each)
    return b"".join([summed.digest(), *parts])


def unsealed(value: bytes, name: str, key: bytes = b"") -> bytes:
    """The bytes behind a verified checksum.

    Raises:
        DataError: If the checksum does not agree.
    """
    body = value[CHECKSUM_BYTES:]
    if checksum(key + body) != value[:CHECKSUM_BYTES]:
        raise DataError(
            f"{name} is damaged (its checksum does not agree): restore the index from a copy, or"
            " make it again"
        )
    return body


class ColumnSum:
    """The CRC-32s of a column: of its null flags, its text lengths and its values.

    Attributes:
        rows: How many rows passed.

    Example:
        >>> one, other = ColumnSum(), ColumnSum()
        >>> one.add_codes(np.array([[1], [2]], np.uint64))
        >>> for row in [1], [2]:
        ...     other.add_codes(np.array([row], np.uint64))
        >>> str(one) == str(other), one.rows
        (True, 2)
    """

    def __init__(self) -> None:
        """Start without rows."""
        self.rows = self._nulls = self._lengths = self._values = 0

    def add_codes(self, values: Any) -> None:
        """Add rows of uint64 (n, width), masked where they are null."""
        missing = np.ma.getmaskarray(values)[:, 0]
        codes = np.ma.getdata(values)
        if missing.any():
            codes = codes[~missing]
        self._pass(missing)
        self._values = zlib.crc32(np.ascontiguousarray(codes).data, self._values)

    def add_texts(self, texts: pa.LargeStringArray) -> None:
        """Add texts."""
        self._pass(texts.is_null().to_numpy(zero_copy_only=False))
        if texts.null_count:
            texts = texts.drop_null()
        if not len(texts):
            return
        _, offsets, data = texts.buffers()
        ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        self._lengths = zlib.crc32(np.diff(ends).data, self._lengths)
        if data is not None:
            self._values = zlib.crc32(memoryview(data)[ends[0] : ends[-1]], self._values)

    def __str__(self) -> str:
        """The three sums as 24 hexadecimal digits."""
        return f"{self._nulls:08x}{self._lengths:08x}{self._values:08x}"

    def _pass(self, missing: Any) -> None:
        self.rows += len(missing)
        self._nulls = zlib.crc32(np.ascontiguousarray(missing).data, self._nulls)
