"""The log of findings: appended during the search and read afterwards; on disk if large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.contamination.passages import Finding
from neardup.runtime.storage.spool import FeatureSpool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.runtime.storage.append_file import AppendFile

__all__ = ["FindingLog", "encoded"]

_ROWS_AT_ONCE: Final = 1 << 12
_HASHES: Final = pa.list_(pa.uint64())
_SCHEMA: Final = pa.schema(
    {
        "address": pa.large_string(),
        "document": pa.int64(),
        "question": pa.int64(),
        "why": pa.int64(),
        "share": pa.float64(),
        "run": pa.int64(),
        "passages": pa.list_(pa.list_(pa.int64(), 2)),
        "text": pa.large_string(),
        "shared": _HASHES,
        "run_features": _HASHES,
        "covered": pa.list_(pa.bool_()),
        "before": pa.large_string(),
        "after": pa.large_string(),
    }
)
"""The document's name, and the fields of a Finding."""


class FindingLog:
    """Findings in the order of their addition.

    Each batch is an Arrow stream, of which the bytes are a multiple of eight.

    Args:
        limit: Bytes to hold in memory; more go to a temporary file.
        tmp: Folder for that file; the system's own if None.
        kept: A file to append to instead, after what it holds; it is closed, but stays.
    """

    def __init__(
        self, limit: int = 1 << 62, tmp: str | None = None, kept: AppendFile | None = None
    ) -> None:
        """Start after the findings in a kept file."""
        self._spool = FeatureSpool(limit, tmp, kept)

    def add(self, findings: Sequence[Finding], addresses: Sequence[str]) -> None:
        """Append findings with their documents' names; FileError if the disk is full."""
        for at in range(0, len(findings), _ROWS_AT_ONCE):
            part = slice(at, at + _ROWS_AT_ONCE)
            self.add_encoded(encoded(findings[part], addresses[part]))

    def add_encoded(self, data: bytes) -> None:
        """Append findings encoded by `encoded`."""
        self._spool.append(np.frombuffer(data, np.uint64))

    def batches(self) -> Iterator[tuple[list[Finding], list[str]]]:
        """The findings so far in batches, with the names of their documents."""
        reader = pa.BufferReader(pa.py_buffer(self._spool.finish()))
        while reader.tell() < reader.size():
            with pa.ipc.open_stream(reader) as stream:
                for batch in stream:
                    yield list(_findings(batch)), batch["address"].to_pylist()
            self._spool.forget_pages()

    def close(self) -> None:
        """Remove the temporary file."""
        self._spool.close()


def encoded(findings: Sequence[Finding], addresses: Sequence[str]) -> bytes:
    """Findings with their documents' names, as bytes for `FindingLog.batches`."""
    columns = {name: [getattr(each, name) for each in findings] for name in _SCHEMA.names[1:]}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA) as stream:
        stream.write_table(pa.table({"address": addresses, **columns}, _SCHEMA))
    return bytes(sink.getvalue())


def _findings(batch: pa.RecordBatch) -> Iterator[Finding]:
    columns: list[Any] = [batch[name].to_pylist() for name in _SCHEMA.names[1:8]]
    columns[5] = [tuple(map(tuple, passages)) for passages in columns[5]]
    columns += [_arrays(batch[name]) for name in _SCHEMA.names[8:11]]
    columns += [batch[name].to_pylist() for name in _SCHEMA.names[11:]]
    return (Finding(*row) for row in zip(*columns, strict=True))


def _arrays(column: pa.ListArray) -> Iterator[Any]:
    for each in column:
        yield None if each.values is None else each.values.to_numpy(zero_copy_only=False)
