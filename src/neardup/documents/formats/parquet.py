"""Parquet: read by columns, written with the schema and the compression of the input."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.formats.columnar import ColumnarSource
from neardup.runtime.arrays import check_arrow
from neardup.runtime.storage.open_parquet import open_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow.parquet as pq

    from neardup.documents.files.atomic import AtomicFile

__all__ = ["ParquetSource"]

_UNPACKED_BYTES: Final = 64 << 20
"""What the rows of a part may become if each is the longest value of its column's dictionary: a
page of a few bytes can name one long value a million times."""


class ParquetSource(ColumnarSource):
    """A Parquet file."""

    format = "parquet"
    title = "Parquet"

    @contextmanager
    def open_table(self) -> Iterator[_Reader]:
        """Open the file; see ColumnarSource.open_table."""
        with self._input.open_raw() as raw, open_parquet(raw) as file:
            yield _Reader(file, raw)

    @classmethod
    def write_joined(
        cls,
        sources: Sequence[ParquetSource],
        keeps: Sequence[npt.NDArray[np.bool_]],
        target: AtomicFile,
    ) -> None:
        """Write all columns of the kept rows, with the first input's schema and compression."""
        import pyarrow.parquet as pq

        with sources[0]._reading() as file:  # noqa: SLF001
            schema, codec = file.schema, file.codec
        writer = pq.ParquetWriter(target, schema, compression=codec)
        try:
            for source, keep in zip(sources, keeps, strict=True):
                for table in source.kept_tables(keep):
                    writer.write_table(table.replace_schema_metadata(schema.metadata))
            writer.close()
        finally:
            writer.is_open = False  # otherwise its destructor writes a footer after a failure


class _Reader:
    def __init__(self, file: pq.ParquetFile, raw: pa.NativeFile) -> None:
        self._file = file
        self._raw = raw
        self.schema = file.schema_arrow

    @property
    def codec(self) -> str:
        """The compression of the first column.

        Arrow ends the process when it is asked for the name of a codec that it does not know, as a
        damaged file may have; reading a row first raises instead.
        """
        metadata = self._file.metadata
        if metadata.num_row_groups == 0 or metadata.num_columns == 0:
            return "snappy"
        next(self._file.iter_batches(1, row_groups=[0], columns=self.schema.names[:1]), None)
        codec = str(metadata.row_group(0).column(0).compression)
        return "none" if codec == "UNCOMPRESSED" else codec.lower()

    def parts(
        self, columns: list[str] | None, nbytes: int
    ) -> Iterator[tuple[pa.RecordBatch, float]]:
        rows = max(_bytes_per_row(self._file.metadata, columns), 1)
        size = int(min(max(nbytes // rows, 1), 1 << 20))
        size = max(1, min(size, _UNPACKED_BYTES // self._widest(columns, size)))
        done, total = 0, max(self._file.metadata.num_rows, 1)
        for part in self._file.iter_batches(size, columns=columns):
            check_arrow(part)
            done += len(part)
            yield part, done / total

    def _widest(self, columns: list[str] | None, rows: int) -> int:
        """Bytes of a row of the longest values that dictionaries have; 1 if it does not matter."""
        import pyarrow.parquet as pq

        metadata, widest = self._file.metadata, 1
        chosen = set(self.schema.names if columns is None else columns)
        for i in range(metadata.num_row_groups):
            group = metadata.row_group(i)
            chunks = [group.column(j) for j in range(group.num_columns)]
            packed = [
                chunk.path_in_schema
                for chunk in chunks
                if chunk.has_dictionary_page
                and chunk.physical_type == "BYTE_ARRAY"
                and chunk.path_in_schema.partition(".")[0] in chosen
                and rows * chunk.total_uncompressed_size > _UNPACKED_BYTES
            ]
            if packed:
                file = pq.ParquetFile(self._raw, metadata=metadata, read_dictionary=packed)
                names = list({path.partition(".")[0] for path in packed})
                first = next(file.iter_batches(1, row_groups=[i], columns=names), None)
                longest = map(_longest_value, [] if first is None else first.columns)
                widest = max(widest, sum(longest))
        return widest


def _longest_value(column: pa.Array) -> int:
    """Bytes of the longest value of the dictionaries in a column."""
    if pa.types.is_dictionary(column.type):
        return pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    if pa.types.is_struct(column.type):
        return sum(map(_longest_value, column.flatten()))
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _longest_value(column.values)
    return 0


def _bytes_per_row(metadata: Any, columns: list[str] | None) -> int:
    """Average bytes a row, uncompressed, of the wanted columns, rounded up."""
    if columns is None:
        groups = range(metadata.num_row_groups)
        total = sum(metadata.row_group(i).total_byte_size for i in groups)
        return int(-(-total // max(metadata.num_rows, 1)))
    total = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            chunk = group.column(j)
            if chunk.path_in_schema in columns:
                total += chunk.total_uncompressed_size
    return int(-(-total // max(metadata.num_rows, 1)))
