"""Keys of the log's databases, and the format of an index in a folder."""

from __future__ import annotations

from typing import Final

from neardup.errors import DataError

__all__ = [
    "FORMAT",
    "RESTORE",
    "chunk_key",
    "chunk_of",
    "row_key",
]

FORMAT: Final = 5
"""The only format that is opened: no release wrote another."""
RESTORE: Final = "restore the index from a copy, or make it anew from the documents"


def row_key(number: int) -> bytes:
    """The key of a row, or of a record of the log: ascending as the numbers are.

    Raises:
        DataError: If it is negative.
    """
    if number < 0:
        raise DataError(f"row {number} of the index has no place: {RESTORE}")
    return number.to_bytes(8, "big")


def chunk_key(name: str, chunk: int) -> bytes:
    """The key of the removed rows of one chunk of a segment's file."""
    return name.encode() + b"\0" + chunk.to_bytes(4, "big")


def chunk_of(key: bytes) -> tuple[str, int]:
    """The file and the chunk of such a key."""
    return key[:-5].decode(errors="replace"), int.from_bytes(key[-4:], "big")
