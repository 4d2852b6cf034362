"""Parquet: the wanted columns are read first, all columns of the kept rows are written after."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.documents.batch import Batch
from neardup.documents.problems import BadRecordError, file_error, missing_field, refuse
from neardup.documents.source import Source, check_flags
from neardup.errors import DataError, FileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from neardup.documents.batch import ReadOptions
    from neardup.documents.output import AtomicFile
    from neardup.documents.rejects import Rejects
    from neardup.documents.spool import RegularInput, StreamInput

__all__ = ["ParquetSource"]

_WRITE_BYTES: Final = 64 << 20
_READ_BYTES: Final = 8 << 20
_FIX: Final = "fix the row or pass --on-error skip"


class ParquetSource(Source):
    """A Parquet file."""

    format = "parquet"

    def __init__(self, origin: RegularInput | StreamInput) -> None:
        """Take a file; UsageError for a stream, which Parquet cannot be read from."""
        super().__init__(origin)
        if origin.nbytes is None:
            raise UsageError(f"{origin.name}: Parquet cannot be read from a stream; use a file")
        self._accepted = np.zeros(0, np.bool_)

    def layout(self) -> pa.Schema:
        """The schema, without its metadata."""
        with self._open() as file:
            return file.schema_arrow.remove_metadata()

    def batches(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the documents; see Source.batches."""
        with self._open() as file:
            self._check_columns(file.schema_arrow, options)
            accepted = np.zeros(file.metadata.num_rows, np.bool_)
            share = (self.nbytes or 0) / max(len(accepted), 1)
            done = reported = 0
            columns = list(dict.fromkeys(options.fields))
            for part in self._parts(file, columns, options.batch_bytes):
                good = self._good_rows(part, options, rejects, done)
                accepted[done : done + len(good)] = good
                rows = np.flatnonzero(good) + done + 1
                done += len(good)
                if rows.size:
                    consumed = int(share * done)
                    yield _batch(_where(part, good), options, rows, consumed - reported)
                    reported = consumed
            self._accepted = accepted
        self._input.check_unchanged()

    @classmethod
    def write_joined(
        cls,
        sources: Sequence[ParquetSource],
        keeps: Sequence[npt.NDArray[np.bool_]],
        target: AtomicFile,
    ) -> None:
        """Write all columns of the kept rows, with the first input's schema and compression."""
        with sources[0]._open() as file:  # noqa: SLF001
            schema, codec = file.schema_arrow, _codec(file.metadata)
        writer = pq.ParquetWriter(target, schema, compression=codec)
        try:
            for source, keep in zip(sources, keeps, strict=True):
                for table in source.kept_tables(keep):
                    writer.write_table(table.replace_schema_metadata(schema.metadata))
            writer.close()
        finally:
            writer.is_open = False  # otherwise its destructor writes a footer after a failure

    def kept_tables(self, keep: npt.NDArray[np.bool_]) -> Iterator[pa.Table]:
        """Read the kept rows a second time, all columns, in tables of a row group's size."""
        check_flags(self, keep, int(np.count_nonzero(self._accepted)))
        self._input.check_unchanged()
        kept = self._accepted.copy()
        kept[kept] = keep
        with self._open() as file:
            done = 0
            waiting: list[pa.RecordBatch] = []
            size = 0
            for part in self._parts(file, None, _READ_BYTES):
                chosen = _where(part, kept[done : done + len(part)])
                done += len(part)
                waiting += chosen
                size += sum(piece.nbytes for piece in chosen)
                if size >= _WRITE_BYTES:
                    yield pa.Table.from_batches(waiting)
                    waiting, size = [], 0
            if waiting:
                yield pa.Table.from_batches(waiting)
        self._input.check_unchanged()

    @contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        try:
            with pq.ParquetFile(self.name, page_checksum_verification=True) as file:
                yield file
        except (FileError, DataError):
            raise
        except OSError as error:
            if error.errno is not None:
                raise file_error(self.name, "read", error) from None
            raise self._damaged(error) from None
        except pa.ArrowInvalid as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> DataError:
        reason = " ".join(str(error).split())
        return DataError(f"{self.name}: not a readable Parquet file: {reason}; write it again")

    def _parts(
        self, file: pq.ParquetFile, columns: list[str] | None, nbytes: int
    ) -> Iterator[pa.RecordBatch]:
        rows = max(_bytes_per_row(file.metadata, columns), 1)
        size = int(min(max(nbytes // rows, 1), 1 << 20))
        yield from file.iter_batches(size, columns=columns)

    def _check_columns(self, schema: pa.Schema, options: ReadOptions) -> None:
        for name in options.fields:
            option = "--id" if name == options.id else "--text"
            if name not in schema.names:
                bad = missing_field(name, schema.names, option, "column")
                raise DataError(f"{self.name}: {bad.problem}; {bad.advice}")
            if schema.names.count(name) > 1:
                raise DataError(f'{self.name}: there are two columns "{name}"; rename one')
            kind = schema.field(name).type
            is_whole = name == options.id and pa.types.is_integer(kind)
            if not (_is_text(kind) or is_whole or pa.types.is_null(kind)):
                raise DataError(
                    f'{self.name}: column "{name}" is {kind}, not a string; pass {option} FIELD'
                )

    def _good_rows(
        self, part: pa.RecordBatch, options: ReadOptions, rejects: Rejects | None, done: int
    ) -> npt.NDArray[np.bool_]:
        good = np.ones(len(part), np.bool_)
        for name in options.fields:
            good &= _usable(part.column(name))
        for i in np.flatnonzero(~good).tolist():
            bad, record = _explain(part.slice(i, 1), options)
            refuse(self.name, done + i + 1, bad, record, options, rejects)
        return good


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
        )
    )


def _as_strings(column: pa.Array) -> pa.LargeStringArray:
    """Cast to large_string; ArrowInvalid if a value is not UTF-8."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    strings = column.cast(pa.large_string())
    strings.validate(full=True)
    return strings


def _usable(column: pa.Array) -> npt.NDArray[np.bool_]:
    try:
        strings = _as_strings(column)
    except pa.ArrowInvalid:
        return np.array([_is_usable(column.slice(i, 1)) for i in range(len(column))], np.bool_)
    if strings.null_count == 0:
        return np.ones(len(strings), np.bool_)
    valid: npt.NDArray[np.bool_] = strings.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _is_usable(value: pa.Array) -> bool:
    try:
        return bool(_as_strings(value).null_count == 0)
    except pa.ArrowInvalid:
        return False


def _explain(row: pa.RecordBatch, options: ReadOptions) -> tuple[BadRecordError, bytes]:
    values: dict[str, Any] = {}
    for name in dict.fromkeys(options.fields):
        column = row.column(name)
        if not _is_usable(column) and column.is_valid()[0].as_py():
            raw = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            return BadRecordError(f"{name} is not UTF-8", _FIX), raw.cast(pa.binary())[0].as_py()
        values[name] = _as_strings(column)[0].as_py()
    name = next(name for name, value in values.items() if value is None)
    return BadRecordError(f"{name} is null", _FIX), orjson.dumps(values)


def _batch(
    parts: list[pa.RecordBatch], options: ReadOptions, rows: npt.NDArray[np.int64], nbytes: int
) -> Batch:
    columns = [_joined_strings(parts, name) for name in options.text]
    texts = columns[0]
    if len(columns) > 1:
        texts = pc.binary_join_element_wise(*columns, pa.scalar("\n", pa.large_string()))
    ids = None if options.id is None else _joined_strings(parts, options.id)
    return Batch(texts, ids, rows, nbytes)


def _joined_strings(parts: list[pa.RecordBatch], name: str) -> pa.LargeStringArray:
    return pa.concat_arrays([_as_strings(part.column(name)) for part in parts])


def _where(part: pa.RecordBatch, mask: npt.NDArray[np.bool_]) -> list[pa.RecordBatch]:
    """Give the rows where the mask is set; as slices for types that Arrow cannot filter."""
    if mask.all():
        return [part] if len(part) else []
    if not mask.any():
        return []
    try:
        return [part.filter(pa.array(mask))]
    except pa.ArrowNotImplementedError:
        bounds = np.flatnonzero(np.diff(mask, prepend=False, append=False)).tolist()
        runs = zip(bounds[::2], bounds[1::2], strict=True)
        return [part.slice(start, stop - start) for start, stop in runs]


def _codec(metadata: pq.FileMetaData) -> str:
    if metadata.num_row_groups == 0 or metadata.num_columns == 0:
        return "snappy"
    codec = str(metadata.row_group(0).column(0).compression)
    return "none" if codec == "UNCOMPRESSED" else codec.lower()


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
