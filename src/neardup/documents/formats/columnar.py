"""Parts of the table formats: needed columns are read first, kept rows with all columns later."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.batch import Columns, too_long
from neardup.documents.files.problems import (
    BadRecordError,
    check_names,
    file_error,
    missing_field,
)
from neardup.documents.nested import (
    column_of,
    is_list_of_text,
    join_lists,
    leaf_names,
    text_like,
    top_column,
    type_of,
)
from neardup.documents.ordering import is_date
from neardup.documents.rejects import refuse
from neardup.documents.source import Source, check_flags
from neardup.errors import DataError, FileError, UsageError
from neardup.runtime.threads import ahead

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from contextlib import AbstractContextManager

    import numpy.typing as npt

    from neardup.documents.batch import Batch, ReadOptions
    from neardup.documents.files.input_bytes import Input
    from neardup.documents.ordering import Order
    from neardup.documents.rejects import Rejects

__all__ = ["ColumnarSource", "TableReader"]

_WRITE_BYTES: Final = 64 << 20
_READ_BYTES: Final = 8 << 20
_AHEAD_BYTES: Final = 128 << 20
"""Rows in memory, at most, while threads make texts of them."""
_FIX: Final = "fix the row or pass --on-error skip"


class TableReader(Protocol):
    """An open table file."""

    schema: pa.Schema

    @property
    def codec(self) -> str | None:
        """The compression of an output of these rows."""

    def parts(
        self, columns: list[str] | None, nbytes: int, workers: int = 1
    ) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Read all rows in order, of some columns or of all, in parts of about `nbytes`.

        Each comes with the share of the file, up to 1, that has been read with it. With several
        workers, threads may decode rows ahead.
        """


class ColumnarSource(Source):
    """A file of typed columns; `title` is the format's name in messages."""

    title: ClassVar[str]

    def __init__(self, origin: Input) -> None:
        """Take a file; UsageError for a stream, which cannot be read twice by columns."""
        super().__init__(origin)
        if origin.nbytes is None:
            raise UsageError(
                f"{origin.name}: {self.title} cannot be read from a stream; use a file"
            )
        self._accepted = np.zeros(0, np.bool_)
        self._has_typed_dates = False

    @abstractmethod
    def open_table(self) -> AbstractContextManager[TableReader]:
        """Open the file; Arrow's errors may come."""

    def row_numbers(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The row numbers, as people count, of the rows at these places of the table."""
        return places + 1

    def layout(self) -> Any:
        """The schema, without its metadata."""
        with self._reading() as file:
            return file.schema.remove_metadata()

    def records(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the documents; see Source.records."""
        accepted = [self._accepted[:0]]
        done = reported = 0
        with self._reading() as file:
            self._check_columns(file.schema, options)
            columns = list(dict.fromkeys(top_column(file.schema, x) for x in options.fields))
            parts = file.parts(columns, options.batch_bytes, options.workers)
            with closing(_in_columns(parts, options)) as results:
                for part, good, texts, share in results:
                    self._refuse_others(part, good, options, rejects, done)
                    accepted.append(good)
                    rows = self.row_numbers(np.flatnonzero(good) + done)
                    done += len(good)
                    if rows.size:
                        consumed = int(share * (self.nbytes or 0))
                        yield texts.batch(rows, consumed - reported)
                        reported = consumed
        self._accepted = np.concatenate(accepted)
        self._input.check_unchanged()

    def has_dates(self, options: ReadOptions) -> bool:
        """See Source.has_dates."""
        return options.dates or self._has_typed_dates

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """See Source.rows."""
        done = 0
        with self._reading() as file:
            names = file.schema.names
            check_names(self.name, names)
            for part, _ in file.parts(None, _READ_BYTES):
                numbers = self.row_numbers(np.arange(done, done + len(part))).tolist()
                columns = [_readable(column).to_pylist() for column in part.columns]
                for number, i in zip(numbers, range(len(part)), strict=True):
                    yield number, {x: column[i] for x, column in zip(names, columns, strict=True)}
                done += len(part)
        self._input.check_unchanged()

    def kept_tables(self, keep: npt.NDArray[np.bool_]) -> Iterator[pa.Table]:
        """Read the kept rows a second time, all columns, in tables of a row group's size."""
        check_flags(self, keep, int(np.count_nonzero(self._accepted)))
        self._input.check_unchanged()
        kept = self._accepted.copy()
        kept[kept] = keep
        with self._reading() as file:
            done = 0
            waiting: list[pa.RecordBatch] = []
            size = 0
            for part, share in file.parts(None, _READ_BYTES, self.workers):
                self.went_to(int(share * (self.nbytes or 0)))
                chosen = _where(part, kept[done : done + len(part)])
                done += len(part)
                waiting += chosen
                size += sum(piece.nbytes for piece in chosen)
                if size >= _WRITE_BYTES:
                    yield self._edited(pa.Table.from_batches(waiting))
                    waiting, size = [], 0
            if waiting:
                yield self._edited(pa.Table.from_batches(waiting))
        self._input.check_unchanged()

    def _edited(self, table: pa.Table) -> pa.Table:
        return table if self.edits is None else self.edits.column(table)

    @contextmanager
    def _reading(self) -> Iterator[TableReader]:
        try:
            with self.open_table() as file:
                yield file
        except (FileError, DataError):
            raise
        except OSError as error:
            if error.errno is not None:
                raise file_error(self.name, "read", error) from None
            raise self._damaged(error) from None
        except (pa.ArrowException, IndexError, OverflowError, UnicodeDecodeError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> DataError:
        reason = " ".join(str(error).split())
        return DataError(f"{self.name}: not a readable {self.title} file: {reason}; write it again")

    def _check_columns(self, schema: pa.Schema, options: ReadOptions) -> None:
        for name, option, expected, tests in _expectations(options):
            check_names(self.name, schema.names, name)
            kind = type_of(schema, name)
            if kind is None:
                there = leaf_names(schema) if "." in name else schema.names
                bad = missing_field(name, there, option, "column", self._text_like())
                raise DataError(f"{self.name}: {bad.problem}; {bad.advice}")
            if pa.types.is_struct(kind):
                inner = f"{name}.{kind.field(0).name}" if kind.num_fields else "FIELD"
                raise DataError(
                    f'{self.name}: column "{name}" is a struct, not {expected}; name a field in it:'
                    f" {option} {inner}"
                )
            if not (pa.types.is_null(kind) or any(test(kind) for test in tests)):
                raise DataError(
                    f'{self.name}: column "{name}" is {kind}, not {expected}; pass {option} FIELD'
                )
        if options.number is not None:
            self._has_typed_dates = is_date(type_of(schema, options.number))

    def _text_like(self) -> str | None:
        """The column with the longest texts at the beginning of the file."""
        with self._reading() as file:
            names = [x.name for x in file.schema if file.schema.names.count(x.name) == 1]
            for part, _ in file.parts(names, 1):
                return text_like(pa.Table.from_batches([part]))
        return None

    def _refuse_others(
        self, part: pa.RecordBatch, good: npt.NDArray[np.bool_], options: ReadOptions,
        rejects: Rejects | None, done: int,
    ) -> None:  # fmt: skip
        """Refuse the rows of a part that are not good, in their order; `done` rows are before."""
        if good.all():
            return
        lengths = _lengths(part, options)
        for i in np.flatnonzero(~good).tolist():
            bad, record = too_long(int(lengths[i]), options.record_bytes), b""
            if lengths[i] <= options.record_bytes:
                bad, record = _explain(part.slice(i, 1), options)
            row = int(self.row_numbers(np.array([done + i]))[0])
            refuse(self.name, row, bad, record, options, rejects)


def _in_columns(
    parts: Iterator[tuple[pa.RecordBatch, float]], options: ReadOptions
) -> Generator[tuple[pa.RecordBatch, npt.NDArray[np.bool_], Columns, float]]:
    """Parts with which of their rows are good, and the columns of these; made in threads."""

    def convert(
        task: tuple[pa.RecordBatch, float],
    ) -> tuple[pa.RecordBatch, npt.NDArray[np.bool_], Columns, float]:
        part, share = _leaves(task[0], options), task[1]
        good = _good_rows(part, options)
        return part, good, _columns(_where(part, good) or [part.slice(0, 0)], options), share

    if options.workers == 1:
        return (convert(task) for task in parts)
    most = min(options.workers * _READ_BYTES, _AHEAD_BYTES)
    return ahead(options.workers, convert, parts, lambda task: int(task[0].nbytes), most)


def _good_rows(part: pa.RecordBatch, options: ReadOptions) -> npt.NDArray[np.bool_]:
    """Which rows have a text that can be read, and all else that the options need."""
    good = _lengths(part, options) <= options.record_bytes
    for name in _required(options):
        good &= _usable(part.column(name))
    if options.within is not None:
        column = part.column(options.within)
        good &= _usable(column) | ~_valid(column)
    if options.order is not None and options.dates:
        good &= ~options.order.of_column(part.column(options.order.field))[1]
    return good


def _leaves(part: pa.RecordBatch, options: ReadOptions) -> pa.RecordBatch:
    """The fields by their names in the options, lists of strings as texts."""
    names = list(dict.fromkeys(options.fields))
    columns = [column_of(part, name) for name in names]
    columns = [join_lists(x) if is_list_of_text(x.type) else x for x in columns]
    return pa.RecordBatch.from_arrays(columns, names)


def _lengths(part: pa.RecordBatch, options: ReadOptions) -> npt.NDArray[np.int64]:
    """Bytes of each row's text; empty if all together are short enough for one record."""
    lengths = np.zeros(len(part), np.int64)
    if part.nbytes > options.record_bytes:
        for name in options.text:
            column = part.column(name)
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            if not (pa.types.is_null(column.type) or pa.types.is_integer(column.type)):
                lengths += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    return lengths


def _required(options: ReadOptions) -> list[str]:
    """The columns that every usable record has."""
    names = options.text if options.id is None else (*options.text, options.id)
    return list(dict.fromkeys(names))


def _expectations(options: ReadOptions) -> Iterator[tuple[str, str, str, tuple[Any, ...]]]:
    """Each column with its option, its expected type in words, and tests of the type."""
    text = "a string or a list of strings", (_is_text, is_list_of_text)
    scalar = "a string or whole numbers", (_is_text, pa.types.is_integer)
    for name in options.text:
        yield name, options.text_option, *(scalar if options.numbers else text)
    if options.id is not None:
        yield options.id, "--id", *scalar
    if options.within is not None:
        tests = (_is_text, pa.types.is_integer, pa.types.is_boolean)
        yield options.within, "--within", "a string, whole numbers or a boolean", tests
    order = options.order
    if order is not None:
        yield order.field, order.advice, order.expected_type, (order.takes,)


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
    strings = _large_strings(column)
    strings.validate(full=True)
    return strings


def _large_strings(column: pa.Array) -> pa.LargeStringArray:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.large_string())


def _readable(column: pa.Array) -> pa.Array:
    """Texts (also those stored as bytes) and dates as texts; other columns as they are."""
    if not (_is_text(column.type) or pa.types.is_temporal(column.type)):
        return column
    try:
        return _as_strings(column)
    except pa.ArrowInvalid:
        return column


def _usable(column: pa.Array) -> npt.NDArray[np.bool_]:
    try:
        strings = _as_strings(column)
    except pa.ArrowInvalid:
        return np.array([_is_usable(column.slice(i, 1)) for i in range(len(column))], np.bool_)
    if strings.null_count == 0:
        return np.ones(len(strings), np.bool_)
    return _valid(strings)


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _is_usable(value: pa.Array) -> bool:
    try:
        return bool(_as_strings(value).null_count == 0)
    except pa.ArrowInvalid:
        return False


def _explain(row: pa.RecordBatch, options: ReadOptions) -> tuple[BadRecordError, bytes]:
    values: dict[str, Any] = {}
    for name in dict.fromkeys([*_required(options), *([options.within] if options.within else [])]):
        column = row.column(name)
        if not _is_usable(column) and column.is_valid()[0].as_py():
            raw = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            return BadRecordError(f"{name} is not UTF-8", _FIX), raw.cast(pa.binary())[0].as_py()
        values[name] = _as_strings(column)[0].as_py()
    missing = next((name for name in _required(options) if values[name] is None), None)
    if missing is None:  # what is left is a date that cannot be read
        assert options.order is not None  # noqa: S101
        text = _as_strings(row.column(options.order.field))[0].as_py()
        return options.order.unreadable(text), orjson.dumps({options.order.field: text})
    return BadRecordError(f"{missing} is null", _FIX), orjson.dumps(values)


def _columns(parts: list[pa.RecordBatch], options: ReadOptions) -> Columns:
    columns = [_joined_strings(parts, name) for name in options.text]
    texts = columns[0]
    if len(columns) > 1:
        texts = pc.binary_join_element_wise(*columns, pa.scalar("\n", pa.large_string()))
    return Columns(
        texts,
        None if options.id is None else _joined_strings(parts, options.id),
        None if options.within is None else _joined_strings(parts, options.within),
        None if options.order is None else _joined_numbers(parts, options.order),
    )


def _joined_strings(parts: list[pa.RecordBatch], name: str) -> pa.LargeStringArray:
    """The strings of good rows, which are known to be UTF-8."""
    strings = [_large_strings(part.column(name)) for part in parts]
    return strings[0] if len(strings) == 1 else pa.concat_arrays(strings)


def _joined_numbers(parts: list[pa.RecordBatch], order: Order) -> pa.DoubleArray:
    return pa.concat_arrays([order.of_column(part.column(order.field))[0] for part in parts])


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
