"""Parquet: read by columns, written with the schema and the compression of the input."""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.formats.columnar import ColumnarSource
from neardup.documents.formats.joined_parquet import JoinedParquet
from neardup.runtime.arrays import check_arrow
from neardup.runtime.storage.open_parquet import open_parquet
from neardup.runtime.threads import ahead, chain_ahead

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow.parquet as pq

    from neardup.documents.files.atomic import AtomicFile

__all__ = ["ParquetSource"]

_UNPACKED_BYTES: Final = 64 << 20
"""What the rows of a part may become if each is the longest value of its column's dictionary: a
page of a few bytes can name one long value a million times."""

_ENCODING_BYTES: Final = 256 << 20
"""Rows in memory, while threads encode them."""

_RUN_BYTES: Final = 32 << 20
"""What the row groups have that one thread decodes one after the other, at least."""
_RUNS_AT_ONCE: Final = 4
_DECODED_BYTES: Final = 64 << 20
"""Rows of such a run in memory, at most, while threads decode the next ones."""


class ParquetSource(ColumnarSource):
    """A Parquet file."""

    format = "parquet"
    title = "Parquet"
    outputs_at_once = 1  # which has row groups for all threads

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
        with sources[0]._reading() as file:  # noqa: SLF001
            encode = partial(_encoded, file.schema, file.codec)
        joined = JoinedParquet(target.write, encode())
        tables = chain.from_iterable(
            source.kept_tables(keep) for source, keep in zip(sources, keeps, strict=True)
        )
        pieces = ahead(sources[0].workers, encode, tables, attrgetter("nbytes"), _ENCODING_BYTES)
        with closing(pieces):  # no thread stays after a failure
            for piece in pieces:
                joined.append(piece)
        joined.close()


def _encoded(schema: pa.Schema, codec: str | None, *tables: pa.Table) -> memoryview:
    """A Parquet file with these rows."""
    import pyarrow.parquet as pq

    stream = pa.BufferOutputStream()
    # JoinedParquet copies no page index, which Arrow writes only on demand.
    with pq.ParquetWriter(stream, schema, compression=codec, write_page_index=False) as writer:
        for table in tables:
            writer.write_table(table.replace_schema_metadata(schema.metadata))
    return memoryview(stream.getvalue())


class _Reader:
    def __init__(self, file: pq.ParquetFile, raw: pa.NativeFile) -> None:
        self._file = file
        self._raw = raw
        self.schema = file.schema_arrow

    @property
    def codec(self) -> str:
        """The compression of the first column."""
        chunks = self._chunks(self.schema.names[:1])
        codec = str(chunks[0][0][1].compression) if chunks and chunks[0] else "SNAPPY"
        return "none" if codec == "UNCOMPRESSED" else codec.lower()

    def parts(
        self, columns: list[str] | None, nbytes: int, workers: int = 1
    ) -> Iterator[tuple[pa.RecordBatch, float]]:
        chunks = self._chunks(self.schema.names if columns is None else columns)
        done, total = 0, max(self._file.metadata.num_rows, 1)
        unpacked = [sum(chunk.total_uncompressed_size for _, chunk in group) for group in chunks]
        size = int(min(max(nbytes * total // max(sum(unpacked), 1), 1), 1 << 20))
        size = max(1, min(size, _UNPACKED_BYTES // self._widest(chunks, size)))
        runs = _runs_of(unpacked)  # the same parts for any number of threads
        pieces = (self._batches(size, columns, run) for run in runs)
        threads = min(workers // 2, _RUNS_AT_ONCE, len(runs))
        if threads < 2 or isinstance(self._raw, pa.PythonFile):  # which one thread reads at a time
            batches: Generator[pa.RecordBatch] = (part for piece in pieces for part in piece)
        else:
            # Arrow decodes a column in one thread, and most of a file is in one column.
            batches = chain_ahead(threads, pieces, attrgetter("nbytes"), _DECODED_BYTES)
        with closing(batches):
            for part in batches:
                done += len(part)
                yield part, done / total

    def _batches(
        self, size: int, columns: list[str] | None, groups: list[int]
    ) -> Iterator[pa.RecordBatch]:
        """Batches of row groups, which another thread may read as well."""
        file = open_parquet(self._raw, self._file.metadata)
        for part in file.iter_batches(size, groups, columns=columns):
            check_arrow(part)
            yield part

    def _chunks(self, columns: list[str]) -> list[list[tuple[str, Any]]]:
        """The chunks of some columns, by row group: paths of the schema, entries of the footer.

        Arrow ends the process when it is asked for a damaged entry of the footer. Buffering chunks
        before reading reads all of their entries, and raises instead.
        """
        import pyarrow.parquet as pq

        metadata = self._file.metadata
        buffered = pq.ParquetFile(self._raw, metadata=metadata, pre_buffer=True)
        next(buffered.iter_batches(1, columns=columns), None)
        paths = [self._file.schema.column(j).path for j in range(metadata.num_columns)]
        heads = tuple(f"{column}." for column in columns)
        leaves = [(j, path) for j, path in enumerate(paths) if f"{path}.".startswith(heads)]
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        return [[(path, group.column(j)) for j, path in leaves] for group in groups]

    def _widest(self, chunks: list[list[tuple[str, Any]]], rows: int) -> int:
        """Bytes of a row of the longest values that dictionaries have; 1 if it does not matter."""
        import pyarrow.parquet as pq

        metadata, widest = self._file.metadata, 1
        for i, group in enumerate(chunks):
            packed = [
                path
                for path, chunk in group
                if chunk.has_dictionary_page
                and chunk.physical_type == "BYTE_ARRAY"
                and rows * chunk.total_uncompressed_size > _UNPACKED_BYTES
            ]
            if packed:
                file = pq.ParquetFile(self._raw, metadata=metadata, read_dictionary=packed)
                names = list({path.partition(".")[0] for path in packed})
                first = next(file.iter_batches(1, row_groups=[i], columns=names), None)
                longest = map(_longest_value, [] if first is None else first.columns)
                widest = max(widest, sum(longest))
        return widest


def _runs_of(sizes: Sequence[int]) -> list[list[int]]:
    """Row groups that are decoded together, from the bytes of each.

    Example:
        >>> _runs_of([1 << 24, 1 << 24, 1 << 30, 1])
        [[0, 1], [2], [3]]
    """
    runs, nbytes = list[list[int]]([[]]), 0
    for group, size in enumerate(sizes):
        if nbytes >= _RUN_BYTES:
            runs.append([])
            nbytes = 0
        runs[-1].append(group)
        nbytes += size
    return runs


def _longest_value(column: pa.Array) -> int:
    """Bytes of the longest value of the dictionaries in a column."""
    if pa.types.is_dictionary(column.type):
        return pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    if pa.types.is_struct(column.type):
        return sum(map(_longest_value, column.flatten()))
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _longest_value(column.values)
    return 0
