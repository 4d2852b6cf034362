"""Parquet: read by columns, written with the schema and the compression of the input."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neardup.documents.formats.columns.columnar import ColumnarSource
from neardup.runtime.arrays import check_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    import pyarrow.parquet as pq

    from neardup.documents.files.atomic import AtomicFile

__all__ = ["ParquetSource"]


class ParquetSource(ColumnarSource):
    """A Parquet file."""

    format = "parquet"
    title = "Parquet"

    @contextmanager
    def open_table(self) -> Iterator[_Reader]:
        """Open the file; see ColumnarSource.open_table."""
        import pyarrow.parquet as pq

        with (
            self._input.open_raw() as raw,
            pq.ParquetFile(raw, page_checksum_verification=True) as file,
        ):
            yield _Reader(file)

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
    def __init__(self, file: pq.ParquetFile) -> None:
        self._file = file
        self.schema = file.schema_arrow

    @property
    def codec(self) -> str:
        """How the first column is compressed.

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
        done, total = 0, max(self._file.metadata.num_rows, 1)
        for part in self._file.iter_batches(size, columns=columns):
            check_arrow(part)
            done += len(part)
            yield part, done / total


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
