"""Documents in memory: texts, or a table with columns; rows count from 0."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import Batch, Extraction
from neardup.documents.nested import column_of, is_list_of_text, join_lists, text_like, type_of
from neardup.documents.record_addresses import RowAddresses
from neardup.errors import DataError, UsageError
from neardup.features.text import arrow_texts, decoded, is_encoded, text_array
from neardup.runtime.arrays import check_given

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import ReadOptions
    from neardup.pipeline.run.decision import Decision

__all__ = ["InMemory", "as_arrow", "check_documents", "check_on_error"]

_LOOKED_AT = 100
_MANY_CHUNKS, _TINY = 16, 1 << 16
"""A Dataset of Hugging Face that was filtered has a chunk a row."""
_SKIP = "drop these rows, or pass on_error='skip'"
_UNREADABLE = "unreadable"
_LINE = pa.scalar("\n", pa.large_string())


class InMemory:
    """The documents of a table, an Arrow stream or a sequence of texts.

    Args:
        source: As for `dedup`.
        read: The columns, and the treatment of rows whose text or id is null.

    Attributes:
        batches: The accepted rows.
        rejected: The number of rejected rows.
        rows: int64, the row of each accepted one.
        addresses: Their ids or rows.
        notes: Notes, one line each.
        warnings: Warnings, one line each.

    Raises:
        UsageError: If a column is missing, or has values that are not texts or numbers.
        DataError: For a null, unless bad records are skipped.
    """

    def __init__(self, source: Any, read: ReadOptions) -> None:
        """Take all documents."""
        columns, ids = _columns(source, read)
        table = pa.table(columns)
        bad = np.zeros(len(table), np.bool_)
        for name in ("texts", "ids"):
            if name in columns:
                bad |= np.asarray(pc.is_null(columns[name]))
        unreadable = np.zeros(len(table), np.bool_)
        if _UNREADABLE in columns:
            unreadable = np.asarray(columns[_UNREADABLE])
            bad |= unreadable
        self.rejected = int(bad.sum())
        if self.rejected and (not read.skip_errors or bad.all()):
            row = int(bad.argmax())
            what, advice = f"{_named(columns, row, read)} is null", _SKIP
            if unreadable[row] and not _is_null(columns, row):
                what, advice = _unreadable(source, row, read)
            raise DataError(
                f"row {row}: {what} ({self.rejected:,} of {len(bad):,} rows are bad);"
                f" {'name another column' if bad.all() and not unreadable[row] else advice}"
            )
        self._size, self.rows = len(table), np.flatnonzero(~bad)
        if ids is not None and self.rejected:
            ids = ids.take(pa.array(self.rows))
        self.addresses = RowAddresses(pa.array(self.rows) if ids is None else ids)
        extraction = Extraction(read.extract)
        self.batches = [
            extraction.applied(batch)
            for batch in _batches(
                table.filter(pa.array(~bad)) if self.rejected else table, self.rows
            )
        ]
        self.notes = list(filter(None, [extraction.note()]))
        self.warnings = [
            line.replace("--extract main or all", "extract='main' or 'all'")
            for line in filter(None, [extraction.warning()])
        ]

    def of_all_rows(self, decision: Decision) -> tuple[Any, Any]:
        """Whether each row is kept, and its cluster; a rejected row is not kept, and alone.

        Returns:
            bool (n,) and int64 (n,).
        """
        if not self.rejected:
            return decision.kept, decision.label
        kept, label = np.zeros(self._size, np.bool_), np.arange(self._size)
        kept[self.rows], label[self.rows] = decision.kept, self.rows[decision.label]
        return kept, label


def check_on_error(on_error: str) -> bool:
    """Whether bad records are skipped; UsageError for an unknown choice."""
    if on_error not in {"stop", "skip"}:
        raise UsageError(f"on_error is {on_error!r}: use stop or skip")
    return on_error == "skip"


def check_documents(source: Any) -> None:
    """Refuse arguments that are plainly a mistake.

    Raises:
        UsageError: For mappings, names of files, and objects that only lead to a table.
    """
    if isinstance(source, Mapping):
        first = next(iter(source), None)
        raise UsageError(
            f"a mapping (its first key is {first!r:.40}) is neither texts nor a table: pass"
            " pyarrow.table(columns), one split of several, or list(texts.values())"
        )
    _check_kind(source)
    texts = list(source) if isinstance(source, list | tuple) else []
    if texts and all(isinstance(text, str) and _is_file(text) for text in texts[:_LOOKED_AT]):
        raise UsageError(
            f"{texts[0]!r:.80} and the others are names of files, and strings are taken as texts:"
            " pass [pathlib.Path(name) for name in names]"
        )


def _check_kind(source: Any) -> None:
    """Refuse an object that contains a table, and say how to get it."""
    if hasattr(source, "__arrow_c_stream__") or isinstance(source, list | tuple | pa.Array):
        return
    kind = type(source).__name__
    if kind == "IterableDataset":
        raise UsageError("an IterableDataset has no rows yet: pass a list of its texts, or a table")
    methods = {"collect": "LazyFrame", "to_table": "", "to_arrow_table": "Connection"}
    for method, kinds in methods.items():
        if callable(getattr(source, method, None)) and kinds in kind:
            raise UsageError(f"a {kind} is not a table yet: pass the result of its {method}()")


def as_arrow(source: Any, fields: Sequence[str] = ()) -> Any:
    """The Arrow table of a frame or a Dataset; other sources as they are, or as arrays.

    Args:
        source: As for `dedup`.
        fields: The columns to use; others may have values without an Arrow type, or gigabytes.

    Raises:
        UsageError: If two columns have the same name, or one cannot be read.
    """
    source = _with_columns(source, fields)
    if _is_dataset(source):
        return source.with_format("arrow")[:]
    if isinstance(source, pa.Table | pa.Array | pa.ChunkedArray):
        return source
    return _from_stream(source)


def _is_dataset(source: Any) -> bool:
    return type(source).__name__ == "Dataset" and callable(getattr(source, "with_format", None))


def _with_columns(source: Any, fields: Sequence[str]) -> Any:
    """A frame or a Dataset with only these columns, if it has them all."""
    is_frame = type(source).__name__ == "DataFrame" and hasattr(source, "columns")
    if not fields or not (is_frame or _is_dataset(source)):
        return source
    columns = list(source.columns if is_frame else source.column_names)
    names = list(dict.fromkeys(x if x in columns else x.partition(".")[0] for x in fields))
    for name in names:
        _check_once(name, columns)
    if not set(names) <= set(columns):
        return source
    if not is_frame:
        return source.select_columns(names)
    return source[names]


def _check_once(name: str, columns: Sequence[str]) -> None:
    if columns.count(name) > 1:
        raise UsageError(f"{columns.count(name)} columns are named {name!r}: rename one")


def _is_file(text: str) -> bool:
    try:
        return 0 < len(text) < 4096 and Path(text).is_file()
    except (OSError, ValueError):
        return False


def _check_no_fields(read: ReadOptions) -> None:
    """Refuse options about columns for texts without columns."""
    options = {
        "text": None if read.text == ("text",) else read.text[0],
        "id": read.id,
        "within": read.within,
        "keep": read.number,
    }
    for option, name in options.items():
        if name is not None:
            raise UsageError(
                f"plain texts have no fields, and {option} names {name!r}: pass a table with the"
                " columns you name"
            )


def _columns(source: Any, read: ReadOptions) -> tuple[dict[str, Any], Any]:
    """The fields to read of a source, as Arrow columns, and its ids, or None."""
    source = as_arrow(source, read.fields)
    if isinstance(source, pa.Table):
        columns = _columns_of(source, read)
        return columns, None if read.id is None else column_of(source, read.id)
    if isinstance(source, list | tuple) and source and isinstance(source[0], Mapping):
        raise UsageError(
            f"row 0 is {type(source[0]).__name__}, not str: pass pyarrow.Table.from_pylist(rows)"
        )
    _check_no_fields(read)
    return {"texts": _texts(source)}, None


def _columns_of(table: pa.Table, read: ReadOptions) -> dict[str, Any]:
    for name in read.fields:
        _check_once(name, table.column_names)
        if type_of(table.schema, name) is None:
            best = text_like(table.slice(0, _LOOKED_AT)) if name in read.text else None
            advice = "" if best is None else f"; pass text={best!r}"
            there = ", ".join(table.column_names)
            raise UsageError(f"no column {name!r}: there are {there}{advice}")
    used = {x if x in table.column_names else x.partition(".")[0] for x in read.fields}
    table = table.select(sorted(used))
    check_given("the table", table)
    table = _in_larger_chunks(table)
    texts = [_texts(column_of(table, name)) for name in read.text]
    columns = {"texts": pc.binary_join_element_wise(*texts, _LINE) if texts[1:] else texts[0]}
    named = {
        "ids": (read.id, pa.large_string()),
        "within": (read.within, pa.large_string()),
    }
    for column, (field, kind) in named.items():
        if field is None:
            continue
        values = column_of(table, field)
        try:
            columns[column] = values.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise UsageError(f"column {field!r} is {values.type}: it has no text") from None
    if read.order is not None:
        columns["numbers"], columns[_UNREADABLE] = _worths(column_of(table, read.order.field), read)
    return columns


def _worths(values: Any, read: ReadOptions) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """The values of a column of numbers or dates, and marks of texts that are not dates."""
    order = read.order
    assert order is not None  # noqa: S101  # a column was named
    if not order.takes(values.type):
        expected = "dates" if order.dates else "numbers or dates"
        advice = "" if order.dates else ", or newest or oldest for texts that are dates"
        raise UsageError(f"column {order.field!r} is {values.type}: use one of {expected}{advice}")
    parts = [order.of_column(chunk) for chunk in values.chunks]
    numbers = pa.chunked_array([worths for worths, _ in parts], pa.float64())
    return numbers, pa.chunked_array([pa.array(bad) for _, bad in parts], pa.bool_())


def _texts(source: Any) -> Any:
    """Large strings, with null for a missing text."""
    if isinstance(source, pa.ChunkedArray) and is_list_of_text(source.type):
        chunks = [join_lists(chunk) for chunk in source.chunks]
        source = pa.chunked_array(chunks, pa.large_string())
    if not isinstance(source, pa.Array | pa.ChunkedArray):
        source = arrow_texts(source)
    if is_encoded(source.type):
        check_given("texts", source)
        source = decoded(source)
    texts = text_array(source)
    if not source.null_count:
        return texts
    missing = pc.is_null(source)
    if isinstance(missing, pa.Array):
        missing = pa.chunked_array([missing])
    return pc.if_else(missing, pa.scalar(None, pa.large_string()), texts)


def _in_larger_chunks(table: pa.Table) -> pa.Table:
    """A valid table, its tiny chunks joined: each would be a batch, and a task of a thread."""
    chunks = max((column.num_chunks for column in table.columns), default=0)
    if chunks < _MANY_CHUNKS or table.nbytes > _TINY * chunks:
        return table
    return table.combine_chunks()


def _from_stream(source: Any) -> Any:
    if not hasattr(source, "__arrow_c_stream__"):
        return source
    try:
        stream = pa.chunked_array(source)
    except Exception as error:
        if type(error).__module__ == "_duckdb":  # such as: the connection has an open result
            raise UsageError(f"the {type(source).__name__} cannot be read: {error}") from None
        if not isinstance(error, pa.ArrowException):
            raise
        why = ", ".join(str(part) for part in error.args)
        raise UsageError(
            f"the {type(source).__name__} cannot be read as Arrow: {why}; give the column one type,"
            " such as with .astype(str)"
        ) from None
    if not pa.types.is_struct(stream.type):
        return stream
    batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in stream.chunks]
    return pa.Table.from_batches(batches, pa.schema(list(stream.type)))


def _batches(table: pa.Table, rows: Any) -> list[Batch]:
    begin, batches = 0, []
    for part in table.to_batches():
        columns = {name: part.column(name) for name in table.column_names}
        batches.append(
            Batch(
                columns["texts"],
                columns.get("ids"),
                rows[begin : begin + len(part)],
                columns["texts"].nbytes,
                columns.get("within"),
                columns.get("numbers"),
            )
        )
        begin += len(part)
    return batches


def _is_null(columns: dict[str, Any], row: int) -> bool:
    return any(not columns[name][row].is_valid for name in ("texts", "ids") if name in columns)


def _unreadable(source: Any, row: int, read: ReadOptions) -> tuple[str, str]:
    """The fault of a date that cannot be read, and advice."""
    assert read.order is not None  # noqa: S101
    values = column_of(as_arrow(source, read.fields), read.order.field)
    bad = read.order.unreadable(values[row].as_py())
    advice = _SKIP if read.date_format is not None else bad.advice
    return bad.problem, advice.replace("--date-format FORMAT", "date_format")


def _named(columns: dict[str, Any], row: Any, read: ReadOptions) -> str:
    is_text = not columns["texts"][int(row)].is_valid
    return ", ".join(read.text) if is_text else str(read.id)
