"""What the log's databases hold, counted and summed with each commit: nothing is lost unseen.

Each entry has a checksum of its own; but of an entry whose key changed, or that is not there any
more, no checksum tells. So a commit also writes how many entries there are of each kind, the sum of
their marks, the seal of the manifest, and its own number.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from typing import TYPE_CHECKING, Final

from neardup.errors import DataError
from neardup.runtime.storage.checksums import CHECKSUM_BYTES, sealed, unsealed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from neardup.index.durable.environment import Transaction

__all__ = ["COUNTED", "Head", "Ledger"]

COUNTED: Final = (b"log", b"removed", b"content")
LAYOUT: Final = struct.Struct(f"<QQ{CHECKSUM_BYTES}s{2 * len(COUNTED)}Q")
TOP: Final = (1 << 64) - 1
KEY: Final = b"ledger"


class Ledger:
    """The sums of one commit, and the calls that keep them right.

    Args:
        commits: How many commits there were.
        sequence: Of the last record of the log.
        manifest: The seal of the manifest.
        sums: For each of COUNTED, how many entries there are and the sum of their marks.
    """

    def __init__(
        self, commits: int = 0, sequence: int = 0, manifest: bytes = b"", sums: Iterable[int] = ()
    ) -> None:
        """Nothing, unless said."""
        self.commits, self.sequence, self.manifest = commits, sequence, manifest
        numbers = list(sums) or [0] * (2 * len(COUNTED))
        self._counts = dict(zip(COUNTED, numbers[::2], strict=True))
        self._sums = dict(zip(COUNTED, numbers[1::2], strict=True))

    @classmethod
    def read(cls, txn: Transaction, where: str) -> Ledger:
        """The ledger of a transaction.

        Raises:
            DataError: If it is not there, or damaged.
        """
        name = f"ledger in {where}"
        value = txn.get(b"meta", KEY)
        if value is None:
            raise DataError(f"{name} is not there: restore the index from a copy, or make it anew")
        commits, sequence, manifest, *sums = LAYOUT.unpack(unsealed(value, name, KEY))
        return cls(commits, sequence, manifest, sums)

    def write(self, txn: Transaction) -> None:
        """Store it: the last that a commit does."""
        txn.put(b"meta", KEY, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Encode."""
        sums = (each for name in COUNTED for each in (self._counts[name], self._sums[name]))
        return sealed(LAYOUT.pack(self.commits, self.sequence, self.manifest, *sums), KEY)

    def put(self, txn: Transaction, name: bytes, key: bytes, value: bytes) -> None:
        """Set the value of a key; `value` is sealed."""
        self.delete(txn, name, key)
        txn.put(name, key, value)
        self.add(name, key, value)

    def put_new(self, txn: Transaction, name: bytes, items: list[tuple[bytes, bytes]]) -> bool:
        """Set the values of keys that have none; whether they had none."""
        self._counts[name] += len(items)
        self._sums[name] = (self._sums[name] + sum(_mark(*item) for item in items)) & TOP
        return txn.put_new(name, items)

    def delete(self, txn: Transaction, name: bytes, key: bytes) -> None:
        """Remove a key, if it is there."""
        value = txn.pop(name, key)
        if value is not None:
            self._counts[name] -= 1
            self._sums[name] = (self._sums[name] - _mark(key, value)) & TOP

    def add(self, name: bytes, key: bytes, value: bytes) -> None:
        """Count an entry."""
        self._counts[name] += 1
        self._sums[name] = (self._sums[name] + _mark(key, value)) & TOP

    def differs(self, found: Ledger, names: Iterable[bytes] = COUNTED) -> str:
        """What is not as it was written, of these databases as they were found; empty if all is."""
        for name in names:
            if self._counts[name] != found._counts[name]:
                return (
                    f"it has {found._counts[name]:,} entries of {name.decode()}, not"
                    f" {self._counts[name]:,}"
                )
            if self._sums[name] != found._sums[name]:
                return f"entries of {name.decode()} are not those that were written"
        return ""


def _mark(key: bytes, value: bytes) -> int:
    """64 bits of a key and the seal of its value."""
    seal = int.from_bytes(value[:CHECKSUM_BYTES], "little")
    return seal * (2 * zlib.crc32(key) + 1) & TOP


class Head:
    """The number of the last commit, in a file beside the log.

    The log has two pages that say where its newest commit is, and falls back to the older one if
    the newer is damaged. The file is written after the commit and not synced: it may be behind the
    log, and never ahead of it.

    Args:
        folder: Of the index.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is read yet."""
        self.path = folder / "head"
        self._descriptor = -1

    def number(self) -> int:
        """At least so many commits there were; 0 if nobody knows."""
        try:
            value = self.path.read_bytes()
            return int.from_bytes(unsealed(value, str(self.path)), "little")
        except (OSError, DataError):
            return 0

    def write(self, number: int) -> None:
        """Tell of a commit, as well as can be: it is done, whatever happens here."""
        with contextlib.suppress(OSError):
            if self._descriptor < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(self.path, flags, 0o666)
            os.pwrite(self._descriptor, sealed(number.to_bytes(8, "little")), 0)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
