"""What the log's databases are keyed by, and which format has what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.errors import DataError

if TYPE_CHECKING:
    from neardup.index.durable.log.transaction import Transaction

__all__ = [
    "FORMAT",
    "LEDGER",
    "PAYLOADS",
    "RESTORE",
    "SEALED_CONTENTS",
    "SKETCHES",
    "chunk_key",
    "chunk_of",
    "last_sequence",
    "row_key",
]

FORMAT: Final = 5
"""From 2 on contents have checksums, from 3 on there is a ledger, from 4 on payloads, from 5 on
feature sets have sketches. Indexes by distance of older formats are read and written as they
are."""
SEALED_CONTENTS: Final = 2
LEDGER: Final = 3
PAYLOADS: Final = 4
SKETCHES: Final = 5
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


def last_sequence(txn: Transaction) -> int:
    """The last record of the log, of an index without a ledger."""
    return int.from_bytes(txn.get(b"meta", b"sequence") or b"", "big")
