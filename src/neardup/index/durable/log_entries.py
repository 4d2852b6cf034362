"""Entries of the log of an index in a folder: keys, manifest, records, ledger of their sums.

Each entry has a checksum of its own. It does not reveal an entry whose key changed, or one that is
missing. So a commit also writes the ledger: the number of entries of each kind, the sum of their
marks, the seal of the manifest, and its own number.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.errors import DataError
from neardup.index.clock import Clock
from neardup.index.id_columns import ID_KINDS, IdColumn
from neardup.index.set_arrays import Sets, joined_sets
from neardup.runtime.arrays import frozen
from neardup.runtime.storage.checksums import CHECKSUM_BYTES, sealed, sealed_parts, unsealed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from neardup.index.durable.environment import Transaction
    from neardup.runtime.types import Codes, Rows

__all__ = [
    "COUNTED", "FORMAT", "RESTORE", "EncodedRecord", "FileEntry", "Head", "Ledger", "Manifest",
    "Record", "chunk_key", "chunk_of", "joined_records", "row_key",
]  # fmt: skip

FORMAT: Final = 5
"""The only format that can be opened: no release wrote another."""
RESTORE: Final = "restore the index from a copy, or make it again from the documents"


def row_key(number: int) -> bytes:
    """The key of a row, or of a record of the log; keys ascend like the numbers.

    Raises:
        DataError: If it is negative.
    """
    if number < 0:
        raise DataError(f"row number {number} of the index is negative: {RESTORE}")
    return number.to_bytes(8, "big")


def chunk_key(name: str, chunk: int) -> bytes:
    """The key of the removed rows of one chunk of a segment's file."""
    return name.encode() + b"\0" + chunk.to_bytes(4, "big")


def chunk_of(key: bytes) -> tuple[str, int]:
    """The file and the chunk of such a key."""
    return key[:-5].decode(errors="replace"), int.from_bytes(key[-4:], "big")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A segment file as the manifest names it."""

    name: str
    checksum: str  # of its header
    rows: int
    first: int  # number of the first row
    last: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of the segment files.

    Args:
        generation: Larger in every newer manifest.
        files: In order of insertion.
        next: The number that the next row gets.
        next_file: The number that the next file gets.
        covered: The last log record whose rows are in the files.
        clock: When their rows were added.
        seal: The checksum with which it was read; empty if it was not read.
    """

    generation: int = 0
    files: tuple[FileEntry, ...] = ()
    next: int = 0
    next_file: int = 0
    covered: int = 0
    clock: Clock = field(default_factory=Clock)
    seal: bytes = b""

    def to_bytes(self) -> bytes:
        """Encode: JSON, and the clock's arrays."""
        numbers, times = self.clock.since(0)
        plain = {
            "generation": self.generation, "next": self.next, "next_file": self.next_file,
            "covered": self.covered, "runs": len(numbers),
            "files": [[x.name, x.checksum, x.rows, x.first, x.last] for x in self.files],
        }  # fmt: skip
        head = json.dumps(plain).encode()
        body = len(head).to_bytes(8, "little") + head + numbers.tobytes() + times.tobytes()
        return sealed(body)

    @classmethod
    def from_bytes(cls, value: bytes, name: str) -> Manifest:
        """Decode; DataError if it is damaged."""
        body = unsealed(value, name)
        end = 8 + int.from_bytes(body[:8], "little")
        plain = json.loads(body[8:end])
        runs, files = plain.pop("runs"), plain.pop("files")
        numbers = np.frombuffer(body, np.int64, runs, end)
        times = np.frombuffer(body, np.float64, runs, end + 8 * runs)
        clock = Clock(numbers.tolist(), times.tolist())
        entries = tuple(FileEntry(*each) for each in files)
        return cls(files=entries, clock=clock, seal=value[:CHECKSUM_BYTES], **plain)


HEADER: Final = struct.Struct("<4sBBHQQQQQ")
MAGIC: Final = b"NDR1"
KINDS: Final = ("int", "str")


class EncodedRecord(NamedTuple):
    """A record as the log has it.

    Args:
        value: Its bytes.
        changes: Rows that it adds and removes.
    """

    value: bytes
    changes: int


@dataclass(frozen=True, slots=True)
class Record:
    """Rows with ascending numbers, and the numbers of removed rows.

    Args:
        first: The number of the first row; the others follow without gaps.
        ids: Arrow array of int64 or large_string.
        codes: uint64 (n, width).
        removed: Numbers of removed rows of this record or older ones.
        clock: When the rows were added.
        sets: Of an index by similarity, whose codes have no words: the rows' features.
    """

    first: int
    ids: Any
    codes: Codes
    removed: Rows
    clock: Clock
    sets: Sets | None = None

    @classmethod
    def of(
        cls, first: int, ids: pa.Array, contents: Codes | Sets, removed: Rows, clock: Clock
    ) -> Record:
        """A record of rows that hold fingerprints, uint64 (n, width), or Sets."""
        if isinstance(contents, Sets):
            return cls(first, ids, np.empty((len(ids), 0), np.uint64), removed, clock, contents)
        return cls(first, ids, contents, removed, clock)

    @property
    def contents(self) -> Any:
        """The contents of the rows: Sets, or uint64 (n, width)."""
        return self.codes if self.sets is None else joined_sets([self.sets])

    def __len__(self) -> int:
        """Rows."""
        return len(self.codes)

    @property
    def end(self) -> int:
        """The number after the last row's."""
        return self.first + len(self)

    def rows_from(self, first: int) -> Record:
        """The record without the rows of smaller numbers."""
        skip = min(max(first - self.first, 0), len(self))
        if skip == 0:
            return self
        sets = self.sets and Sets(self.sets.features, self.sets.offsets[skip:])
        ids, codes = self.ids.slice(skip), self.codes[skip:]
        return Record(self.first + skip, ids, codes, self.removed, self.clock, sets)

    def encoded(self) -> EncodedRecord:
        """Encode; every array begins at a multiple of 8 bytes."""
        column = IdColumn(self.ids)
        data, offsets = column.bytes_and_offsets()
        if len(offsets):
            data, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
        numbers, times = self.clock.since(self.first, self.end)
        header = HEADER.pack(
            MAGIC, KINDS.index(column.kind), self.sets is not None, self.codes.shape[1], self.first,
            len(self), len(self.removed), len(numbers), data.nbytes,
        )  # fmt: skip
        arrays = [numbers, times, self.removed, self.codes]
        if self.sets is not None:
            sets = joined_sets([self.sets])
            arrays += [sets.offsets, sets.features]
        arrays += [offsets, data]
        value = sealed_parts([header, *(_bytes(array) for array in arrays)])
        return EncodedRecord(value, len(self) + len(self.removed))

    @classmethod
    def from_bytes(cls, value: bytes, name: str) -> Record:
        """Decode; arrays are views of the bytes.

        Raises:
            DataError: If the bytes are damaged; `name` says which.
        """
        body = unsealed(value, name)
        magic, kind, has_sets, width, first, count, gone, runs, size = HEADER.unpack_from(body)
        if magic != MAGIC:
            raise DataError(f"{name} is not a record of this version of neardup: {magic!r}")
        view = _View(body, HEADER.size)
        numbers, times = view.take(np.int64, runs), view.take(np.float64, runs)
        removed = view.take(np.int64, gone)
        codes = view.take(np.uint64, count * width).reshape(count, width)
        sets = None
        if has_sets:
            places = view.take(np.int64, count + 1)
            sets = Sets(view.take(np.uint64, int(places[-1])), places)
        if KINDS[kind] == "int":
            buffers = [None, pa.py_buffer(view.take(np.uint8, size))]
        else:
            offsets = view.take(np.int64, count + 1)
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(view.take(np.uint8, size))]
        ids = pa.Array.from_buffers(ID_KINDS[KINDS[kind]], count, buffers)
        return cls(first, ids, codes, removed, Clock(numbers.tolist(), times.tolist()), sets)


class _View:
    """Takes one array after the other from bytes."""

    def __init__(self, body: bytes, at: int) -> None:
        self._body, self._at = body, at

    def take(self, kind: Any, count: int) -> Any:
        array = np.frombuffer(self._body, kind, count, self._at)
        self._at += array.nbytes
        return array


def joined_records(records: list[Record]) -> Record:
    """One record with the rows and removals of consecutive records."""
    if len(records) == 1:
        return records[0]
    clocks = [record.clock.since(record.first, record.end) for record in records]
    kinds = {record.ids.type for record in records if len(record)} or {pa.int64()}
    ids = [record.ids for record in records if len(record)] or [pa.array([], kinds.pop())]
    return Record(
        records[0].first,
        pa.concat_arrays(ids),
        np.concatenate([record.codes for record in records]),
        np.concatenate([record.removed for record in records]),
        Clock.joined(clocks),
        joined_sets([record.sets for record in records if record.sets is not None])
        if records[0].sets is not None
        else None,
    )


def _bytes(array: Any) -> memoryview:
    """The bytes of an array: a view."""
    return memoryview(frozen(array).reshape(-1).view(np.uint8))


COUNTED: Final = (b"log", b"removed", b"content")
LAYOUT: Final = struct.Struct(f"<QQ{CHECKSUM_BYTES}s{2 * len(COUNTED)}Q")
TOP: Final = (1 << 64) - 1
KEY: Final = b"ledger"


class Ledger:
    """The sums of one commit, and the calls that update them.

    Args:
        commits: How many commits there were.
        sequence: Of the last record of the log.
        manifest: The seal of the manifest.
        sums: For each of COUNTED, how many entries there are and the sum of their marks.
    """

    def __init__(
        self, commits: int = 0, sequence: int = 0, manifest: bytes = b"", sums: Iterable[int] = ()
    ) -> None:
        """Begin with the counts of a commit; by default those of an empty log."""
        self.commits, self.sequence, self.manifest = commits, sequence, manifest
        numbers = list(sums) or [0] * (2 * len(COUNTED))
        self._counts = dict(zip(COUNTED, numbers[::2], strict=True))
        self._sums = dict(zip(COUNTED, numbers[1::2], strict=True))

    @classmethod
    def read(cls, txn: Transaction, where: str) -> Ledger:
        """The ledger of a transaction.

        Raises:
            DataError: If it is missing or damaged.
        """
        name = f"ledger in {where}"
        value = txn.get(b"meta", KEY)
        if value is None:
            raise DataError(f"{name} is missing: restore the index from a copy, or make it again")
        commits, sequence, manifest, *sums = LAYOUT.unpack(unsealed(value, name, KEY))
        return cls(commits, sequence, manifest, sums)

    def write(self, txn: Transaction) -> None:
        """Store the ledger: the last step of a commit."""
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
        """Remove a key, if it exists."""
        value = txn.pop(name, key)
        if value is not None:
            self._counts[name] -= 1
            self._sums[name] = (self._sums[name] - _mark(key, value)) & TOP

    def add(self, name: bytes, key: bytes, value: bytes) -> None:
        """Count an entry."""
        self._counts[name] += 1
        self._sums[name] = (self._sums[name] + _mark(key, value)) & TOP

    def differs(self, counted: Ledger, names: Iterable[bytes] = COUNTED) -> str:
        """The first difference between these counts and those of the databases; empty if none."""
        for name in names:
            if self._counts[name] != counted._counts[name]:
                return (
                    f"it has {counted._counts[name]:,} entries of {name.decode()}, not"
                    f" {self._counts[name]:,}"
                )
            if self._sums[name] != counted._sums[name]:
                return f"entries of {name.decode()} are not those that were written"
        return ""


def _mark(key: bytes, value: bytes) -> int:
    """64 bits of a key and the seal of its value."""
    seal = int.from_bytes(value[:CHECKSUM_BYTES], "little")
    return seal * (2 * zlib.crc32(key) + 1) & TOP


class Head:
    """The number of the last commit, in a file next to the log.

    The log has two pages that say where its newest commit is, and uses the older one if the newer
    is damaged. The file is written after the commit and not synced: it may be behind the log, but
    never ahead of it.

    Args:
        folder: Of the index.
    """

    def __init__(self, folder: Path) -> None:
        """Name the file; it is opened at the first read."""
        self.path = folder / "head"
        self._descriptor = -1

    def number(self) -> int:
        """A lower bound of the number of commits; 0 if it is unknown."""
        try:
            value = self.path.read_bytes()
            return int.from_bytes(unsealed(value, str(self.path)), "little")
        except (OSError, DataError):
            return 0

    def write(self, number: int) -> None:
        """Note the number of a commit in the file; errors are ignored: the commit is done."""
        with contextlib.suppress(OSError):
            if self._descriptor < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(self.path, flags, 0o666)
            os.pwrite(self._descriptor, sealed(number.to_bytes(8, "little")), 0)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
