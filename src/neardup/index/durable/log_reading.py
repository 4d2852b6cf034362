"""One commit of a durable index, while it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import DataError
from neardup.index.durable.log_entries import (
    RESTORE,
    Ledger,
    Manifest,
    Record,
    chunk_of,
    row_key,
)
from neardup.index.segment_files import damaged
from neardup.index.stored_rows import CHUNK_ROWS
from neardup.runtime.storage.checksums import unsealed

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.index.durable.environment import Environment, Pin, Transaction
    from neardup.runtime.types import Rows

__all__ = ["Changes", "Reading"]


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between a snapshot and what the reader knows.

    Args:
        transaction: Of the snapshot.
        manifest: The manifest, if the reader has another one; then `dead` is valid too.
        dead: For each file: bool (rows,), or None if none is removed.
        records: New ones of the log, in order.
        sequence: Of the last record.
    """

    transaction: tuple[str, int]
    manifest: Manifest | None
    dead: dict[str, Any]
    records: list[Record]
    sequence: int


class Reading:
    """One commit of a folder, while it is read.

    Args:
        path: The folder.
        pin: Of its LMDB file.
        commits: A lower bound of the number of commits when the pin was set.
    """

    def __init__(self, path: Path, pin: Pin, commits: int) -> None:
        """Take over the pin."""
        self._path, self._pin, self._commits = path, pin, commits
        self.transaction = pin.environment.path.name, pin.number

    def close(self) -> None:
        """Release the commit."""
        self._pin.close()

    @property
    def environment(self) -> Environment:
        """The LMDB file that is read."""
        return self._pin.environment

    def file(self, name: str) -> Path:
        """The path of a file in the folder."""
        return self._path / name

    def changes(self, generation: int, sequence: int, seal: bytes = b"") -> Changes:
        """The changes since this generation and this record of the log.

        A manifest with a known seal is not read again.
        """
        # One transaction: manifest, removed rows, log and ledger are of one commit, whatever a
        # writer does.
        return self._pin.read(lambda txn: self._changes(txn, generation, sequence, seal))

    def contents(self, numbers: list[int]) -> list[bytes | None]:
        """The attachment of each of many rows; DataError if it is damaged."""
        keys = [row_key(number) for number in numbers]
        return self._pin.read(
            lambda txn: [self._content(key, txn.get(b"content", key)) for key in keys]
        )

    def check_contents(self) -> tuple[Rows, list[str]]:
        """Read all contents.

        Returns:
            The numbers of the rows that have one, ascending; and problems, without remedies.
        """
        return self._pin.read(self._checked_contents)

    def _checked_contents(self, txn: Transaction) -> tuple[Rows, list[str]]:
        counted, keys, broken, lost = Ledger(), [], 0, 0
        for key, value in txn.items(b"content"):
            keys.append(key)
            counted.add(b"content", key, value)
            try:
                self._content(key, value)
            except DataError:
                broken += 1
            lost += txn.get(b"content", key) != value
        problems = [f"{broken:,} contents are damaged"] if broken else []
        if lost:
            problems.append(f"{lost:,} contents cannot be looked up by their numbers")
        ledger = Ledger.read(txn, str(self._pin.environment.path))
        problems += filter(None, [ledger.differs(counted, [b"content"])])
        wrong = {len(key) for key in keys} - {8}
        if wrong:
            return np.empty(0, np.int64), [f"a content has a key of {wrong.pop()} bytes"]
        return np.frombuffer(b"".join(keys), ">i8").astype(np.int64), problems

    def _content(self, key: bytes, value: bytes | None) -> bytes | None:
        if value is None:
            return None
        place = self._pin.environment.path
        return unsealed(value, f"content of row {int.from_bytes(key, 'big')} in {place}", key)

    def _changes(self, txn: Transaction, generation: int, sequence: int, seal: bytes) -> Changes:
        path = self._pin.environment.path
        value = txn.get(b"meta", b"manifest")
        if value is None:
            raise damaged(path, "it has no manifest")
        manifest, dead, counted = None, {}, Ledger()
        if not seal or not value.startswith(seal):
            manifest = Manifest.from_bytes(value, f"manifest in {path}")
        if manifest is not None and manifest.generation == generation:
            manifest = None
        if manifest is not None:
            sequence, dead = manifest.covered, _dead_rows(txn, manifest, str(path), counted)
        records = []
        # A new manifest covers the records before it, and the log begins behind it; without one
        # only what came after the last known record is new.
        for key, entry in txn.items(b"log", b"" if manifest else row_key(sequence + 1)):
            counted.add(b"log", key, entry)
            number = int.from_bytes(key, "big")
            records.append(Record.from_bytes(entry, f"record {number} in {path}"))
        ledger = Ledger.read(txn, str(path))
        self._check_ledger(ledger, value, counted if manifest else None)
        return Changes(self.transaction, manifest, dead, records, ledger.sequence)

    def _check_ledger(self, ledger: Ledger, manifest: bytes, counted: Ledger | None) -> None:
        """Compare a ledger with its manifest, and with the entries if all were read."""
        path = self._pin.environment.path
        if ledger.commits < self._commits:
            raise DataError(
                f"{path} is damaged (it has commit {ledger.commits:,}, and there was commit"
                f" {self._commits:,}): {RESTORE}; to go on without what was lost, remove"
                f" {self._path / 'head'}"
            )
        if not manifest.startswith(ledger.manifest):
            raise damaged(path, "its manifest is not that of its last commit")
        fault = ledger.differs(counted, [b"log", b"removed"]) if counted else ""
        if fault:
            raise damaged(path, fault)


def _dead_rows(txn: Transaction, manifest: Manifest, where: str, counted: Ledger) -> dict[str, Any]:
    """The removed rows of each file; they are counted in `counted`."""
    rows = {each.name: each.rows for each in manifest.files}
    dead: dict[str, Any] = {}
    for key, value in txn.items(b"removed"):
        counted.add(b"removed", key, value)
        name, chunk = chunk_of(key)
        if not 0 <= chunk * CHUNK_ROWS < rows.get(name, 0):
            raise DataError(f"{where} has removed rows of {name!r}, which has none: {RESTORE}")
        if name not in dead:
            dead[name] = np.zeros(rows[name], np.bool_)
        part = dead[name][chunk * CHUNK_ROWS : (chunk + 1) * CHUNK_ROWS]
        bitmap = unsealed(value, f"removed rows of {name} in {where}")
        part[:] = np.unpackbits(np.frombuffer(bitmap, np.uint8), count=len(part))
    return dead
