"""The journal of a run: a line of JSON behind its checksum for each thing that was done."""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Any, Final

from neardup.runtime.storage.append_file import AppendFile, append_failure, damaged
from neardup.runtime.storage.files import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["JOURNAL", "JOURNAL_FILES", "Journal"]

JOURNAL: Final = "journal"
_ASIDE: Final = "journal.new"
JOURNAL_FILES: Final = (JOURNAL, _ASIDE)


class Journal:
    """The records of a run, in order; one that is appended is on disk when the call returns.

    Args:
        folder: Where the file is, or will be.
    """

    def __init__(self, folder: Path) -> None:
        """Open nothing yet."""
        self._folder = folder
        self._file: AppendFile | None = None
        self._whole = 0

    def read(self) -> list[dict[str, Any]]:
        """The records that are there; none if there is no journal.

        Raises:
            DataError: If one is damaged. A torn last line was never promised, and is passed over.
            FileError: If it cannot be read.
        """
        path = self._folder / JOURNAL
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise append_failure("read", path, error) from None
        self._whole = data.rfind(b"\n") + 1
        records = list(_records(path, data[: self._whole]))
        if not records:
            raise damaged(path, "it has no first line")
        return records

    def begin(self, record: dict[str, Any]) -> None:
        """Begin a journal, under another name, so that its first line is always whole."""
        self._file = AppendFile(self._folder / _ASIDE)
        self._file.cut(0)
        self._file.write(_line(record))
        self._file.mark()
        os.replace(self._folder / _ASIDE, self._folder / JOURNAL)  # noqa: PTH105  # one call to fail in
        sync_folder(self._folder)

    def go_on(self) -> None:
        """Go on with the journal that was read, after its last whole line."""
        self._file = AppendFile(self._folder / JOURNAL)
        self._file.cut(self._whole)

    def append(self, record: dict[str, Any]) -> None:
        """Add a record."""
        if self._file is None:
            raise RuntimeError("there is no journal yet: call begin or go_on first")
        self._file.write(_line(record))
        self._file.mark()

    def close(self) -> None:
        """Close the file; it stays."""
        if self._file is not None:
            self._file.close()


def _line(record: dict[str, Any]) -> bytes:
    body = json.dumps(record).encode()  # of any path, also one that is not UTF-8
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _records(path: Path, data: bytes) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(data.splitlines(), 1):
        checksum, _, body = line.partition(b" ")
        if checksum != b"%08x" % zlib.crc32(body):
            raise damaged(path, f"line {number} has another checksum")
        yield json.loads(body)
