"""Bytes behind their checksum."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from neardup.errors import DataError

__all__ = ["CHECKSUM_BYTES", "checksum", "sealed", "unsealed"]


CHECKSUM_BYTES: Final = 8


def checksum(data: Any) -> bytes:
    """8 bytes that change when the data does."""
    return hashlib.blake2b(data, digest_size=CHECKSUM_BYTES).digest()


def sealed(body: bytes, key: bytes = b"") -> bytes:
    """Bytes behind their checksum, and that of the key that they are found by."""
    return checksum(key + body) + body


def unsealed(value: bytes, name: str, key: bytes = b"") -> bytes:
    """The bytes behind a checksum.

    Raises:
        DataError: If the checksum does not agree.
    """
    body = value[CHECKSUM_BYTES:]
    if checksum(key + body) != value[:CHECKSUM_BYTES]:
        raise DataError(
            f"{name} is damaged (its checksum does not agree): restore the index from a copy, or"
            " make it anew"
        )
    return body
