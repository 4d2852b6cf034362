"""The manifest of a durable index: which segment files it has, and what the log goes on from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np

from neardup.index.clock import Clock
from neardup.runtime.storage.sealed import CHECKSUM_BYTES, sealed, unsealed

__all__ = ["FileEntry", "Manifest"]


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
    """What the segment files hold.

    Args:
        generation: Larger in every newer manifest.
        files: In order of insertion.
        next: The number that the next row gets.
        next_file: The number that the next file gets.
        covered: The last log record that is in the files.
        clock: When their rows were added.
        seal: The checksum that it was read behind; empty if it was not read.
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
