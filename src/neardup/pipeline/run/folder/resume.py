"""Going on with a run: what its documents' fingerprints are already, and when to keep more.

The inputs are read again from the start, decompressed and parsed, which is the quick part; only
fingerprinting and matching are not done again. So everything else (addresses, places of the
records, rejects) is as it would be in a new run, and what is read is compared with what was.
"""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from neardup.documents import Batch
    from neardup.pipeline.run.folder.state import RunFolder
    from neardup.runtime.storage.append_file import AppendFile

__all__ = ["SECONDS", "Resume"]

SECONDS: Final = 10.0
"""How long a run goes on before it keeps what it has."""


class Resume:
    """The documents that a run has fingerprinted, in a folder.

    Args:
        folder: Locked and begun.
        width: uint64 words of a fingerprint.

    Attributes:
        notes: What a run before has done, for the summary.
    """

    def __init__(self, folder: RunFolder, width: int) -> None:
        """Begin at the first document; nothing is read yet."""
        self.folder = folder
        self._width = width
        self._known = list(folder.checkpoints)
        self.documents = self._known[-1]["documents"] if self._known else 0
        self.notes = _notes(folder, self.documents)
        self._passed = 0
        self._content = 0
        self._kept_at = time.monotonic()

    @property
    def features(self) -> AppendFile:
        """Where feature hashes go."""
        return self.folder.files["features"]

    def fingerprints(self) -> tuple[Any, Any]:
        """Those that are there: uint64 (n, width), and int64 (n,), features of each."""
        files = self.folder.files
        values = files["fingerprints"].array(np.uint64).reshape(-1, self._width)
        return values, files["counts"].array(np.int64)

    def passes(self, batch: Batch) -> bool:
        """Whether a batch, the next in order, is fingerprinted already.

        Raises:
            UsageError: If it is not what was read then.
        """
        self._content = _checksum(batch, self._content)
        if not self._known:
            return False
        first = self._passed
        self._passed += len(batch.texts)
        expected = self._known[0]
        if self._passed > expected["documents"]:
            raise self._changed(first)
        if self._passed == expected["documents"]:
            if self._content != expected["content"]:
                raise self._changed(first)
            self._known.pop(0)
            self._content = 0
        return True

    @property
    def is_due(self) -> bool:
        """Whether it is time to keep what there is."""
        return time.monotonic() - self._kept_at >= SECONDS

    def keep(self, values: Any, counts: Any) -> None:
        """Keep the fingerprints and feature counts of all batches since the last time."""
        files = self.folder.files
        files["fingerprints"].write(np.ascontiguousarray(values))
        files["counts"].write(np.ascontiguousarray(counts))
        self.documents += len(counts)
        self.folder.commit(self.documents, self._content)
        self._content = 0
        self._kept_at = time.monotonic()

    def check_end(self) -> None:
        """After the last batch: UsageError if there were more documents before."""
        if self._known:
            raise self._changed(self._passed)

    def _changed(self, document: int) -> UsageError:
        return UsageError(
            f"an input changed since {self.folder.path} was left, at about document"
            f" {document + 1:,}: put it back, or remove {self.folder.path} to start anew"
        )


def _notes(folder: RunFolder, documents: int) -> list[str]:
    done = "fingerprinted, and matched" if folder.is_matched else "fingerprinted"
    line = f"resumed from {folder.path}: {documents:,} documents were {done} before"
    return [line] if documents else []


def _checksum(batch: Batch, checksum: int) -> int:
    """Go on with the checksum of everything that is read of documents."""
    checksum = zlib.crc32(np.ascontiguousarray(batch.rows).data, checksum)
    for column in (batch.texts, batch.ids, batch.within):
        if column is not None:
            checksum = _strings_checksum(column, checksum)
    if batch.numbers is not None:
        numbers = batch.numbers.to_numpy(zero_copy_only=False)
        checksum = zlib.crc32(np.ascontiguousarray(numbers).data, checksum)
    return checksum


def _strings_checksum(column: pa.LargeStringArray, checksum: int) -> int:
    _, offsets, data = column.buffers()
    if not len(column):
        return checksum
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    checksum = zlib.crc32((ends - ends[0]).data, checksum)
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        checksum = zlib.crc32(np.packbits(nulls).data, checksum)
    if data is not None:
        checksum = zlib.crc32(memoryview(data)[ends[0] : ends[-1]], checksum)
    return checksum
