"""Arrow IPC, the file format (Feather version 2 too) and the stream format."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from neardup.documents.formats.columnar import ColumnarSource
from neardup.errors import UsageError
from neardup.runtime.arrays import check_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from neardup.documents.files.atomic import AtomicFile

__all__ = ["ArrowSource"]

_MAGIC: Final = b"ARROW1"


class ArrowSource(ColumnarSource):
    """An Arrow IPC file; its first bytes tell the two formats apart."""

    format = "arrow"
    title = "Arrow"

    def is_stream(self) -> bool:
        """Whether it is in the stream format."""
        with self._input.open_raw() as raw:
            return bool(raw.read(len(_MAGIC)) != _MAGIC)

    @contextmanager
    def open_table(self) -> Iterator[_Reader]:
        """Open the file; see ColumnarSource.open_table."""
        with self._input.open_raw() as raw:
            yield _Reader(raw, self.nbytes or 0, self.is_stream())

    @classmethod
    def write_joined(
        cls,
        sources: Sequence[ArrowSource],
        keeps: Sequence[npt.NDArray[np.bool_]],
        target: AtomicFile,
    ) -> None:
        """Write all columns of the kept rows, with the first input's schema and kind of format.

        Raises:
            UsageError: If one file cannot hold all rows.
        """
        with sources[0]._reading() as file:  # noqa: SLF001
            schema, codec = file.schema, file.codec
        make = pa.ipc.new_stream if sources[0].is_stream() else pa.ipc.new_file
        options = pa.ipc.IpcWriteOptions(compression=codec, emit_dictionary_deltas=True)
        with make(pa.PythonFile(target, mode="w"), schema, options=options) as writer:
            for source, keep in zip(sources, keeps, strict=True):
                for table in source.kept_tables(keep):
                    try:
                        writer.write_table(table.replace_schema_metadata(schema.metadata))
                    except pa.ArrowInvalid as error:
                        raise UsageError(
                            f"{target.path}: one Arrow file cannot hold this: {error};"
                            " write to a folder (-o OUT/)"
                        ) from None


class _Reader:
    codec = "zstd"  # always, since pyarrow does not tell the input's

    def __init__(self, file: pa.NativeFile, nbytes: int, is_stream: bool) -> None:
        self._file = file
        self._nbytes = max(nbytes, 1)
        self.is_stream = is_stream
        self.schema = self._open(None).schema

    def parts(
        self,
        columns: list[str] | None,
        nbytes: int,
        workers: int = 1,  # noqa: ARG002
    ) -> Iterator[tuple[pa.RecordBatch, float]]:
        self._file.seek(0)
        fields = None if columns is None else [self.schema.get_field_index(x) for x in columns]
        for batch, share in self._batches(self._open(fields)):
            rows = max(len(batch) * nbytes // max(batch.nbytes, 1), 1)
            for start in range(0, len(batch), rows):
                part = batch.slice(start, rows)
                yield (part if columns is None else part.select(columns)), share

    def _open(self, fields: list[int] | None) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        opened = pa.ipc.open_stream if self.is_stream else pa.ipc.open_file
        return opened(self._file, options=options)

    def _batches(self, reader: Any) -> Iterator[tuple[pa.RecordBatch, float]]:
        if self.is_stream:
            for batch in reader:
                check_arrow(batch)
                yield batch, self._file.tell() / self._nbytes
            return
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            check_arrow(batch)
            yield batch, (i + 1) / reader.num_record_batches
