"""Table files: duplicates, clusters and other results."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.extensions import check_extension, format_of_path
from neardup.documents.sheets import workbook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.output_set import OutputSet

__all__ = [
    "CLUSTERS",
    "DUPLICATES",
    "VIA",
    "clusters_batch",
    "clusters_schema",
    "write_rows",
    "write_table",
]

DUPLICATES: Final = pa.schema(
    [
        ("dropped", pa.large_string()),
        ("kept", pa.large_string()),
        ("distance", pa.int32()),
        ("similarity", pa.float64()),
        ("cluster", pa.large_string()),
    ]
)
VIA: Final = pa.field("via", pa.large_string())
"""The last column of duplicates where a run says on which way they were met."""
_ESCAPED: Final = r'["\\\x00-\x1f]'
"""What a text in JSON cannot have as it is."""
CLUSTERS: Final = pa.schema(
    [("id", pa.large_string()), ("cluster", pa.large_string()), ("kept", pa.bool_())]
)


def clusters_schema(names: pa.DataType) -> pa.Schema:
    """CLUSTERS with ids of a type."""
    fields = (x.with_type(names) if x.type == pa.large_string() else x for x in CLUSTERS)
    return pa.schema(list(fields))


def clusters_batch(
    ids: pa.Array, clusters: pa.Array, kept: npt.NDArray[np.bool_]
) -> pa.RecordBatch:
    """Rows of CLUSTERS, with ids of the type that is given: every engine makes them here."""
    columns = {"id": ids, "cluster": clusters, "kept": pa.array(kept, pa.bool_())}
    return pa.record_batch(columns, schema=clusters_schema(ids.type))


def write_table(
    outputs: OutputSet,
    path: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    csv_safe: bool = False,
    closing: Callable[[], dict[str, str]] | None = None,
) -> None:
    """Write a result table in the format of the path's extension; JSON lines without one.

    Args:
        outputs: The set that the file becomes part of.
        path: With one of EXTENSIONS, those of text also with .gz or .zst, or without any.
        schema: The columns, also those of a table without rows.
        csv_safe: Put a quote (') before cells of CSV and TSV that a spreadsheet would compute.
        batches: The rows, in order. Null is null in JSON, Parquet and Arrow, empty in CSV.
        closing: Asked after the last row for more metadata of the file, if it is Parquet.

    Raises:
        UsageError: For another extension, or as OutputSet.create.
        FileError: As OutputSet.create, or if a write fails.
    """
    check_extension(path)
    if csv_safe and format_of_path(path) in {"csv", "tsv"}:
        batches = map(_without_formulas, batches)
    file, kind = outputs.create(path), format_of_path(path) or "jsonl"
    if kind == "parquet":
        _write_parquet(file, schema, batches, closing)
    else:
        write_rows(file, kind, schema, batches)


def write_rows(
    file: AtomicFile,
    format: str,  # noqa: A002
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    cells: Iterable[Sequence[Any]] | None = None,
) -> None:
    """Write rows to an output that has begun.

    Args:
        file: The output.
        format: A value of EXTENSIONS.
        schema: The columns, also those of a table without rows.
        batches: The rows, in order.
        cells: The same rows as a sheet had them, to be written to one; else those of `batches`.

    Raises:
        DataError: For rows that a sheet does not hold.
        FileError: If a write fails.
    """
    if format == "excel":
        rows = (row for batch in batches for row in _rows(batch)) if cells is None else cells
        file.write(workbook(file.path, schema.names, rows))
        return
    _WRITERS[format](file, schema, batches)


def _without_formulas(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, with a quote before each text that begins as a formula does."""
    columns = [
        pc.replace_substring_regex(column, r"\A([=+\-@\t\r])", r"'\1")
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _write_jsonl(file: AtomicFile, _schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    for batch in batches:
        if len(batch):
            file.write(memoryview(_json_lines(batch)))


def _json_lines(batch: pa.RecordBatch) -> pa.Buffer:
    """A line of JSON for each row, as orjson writes it; most of it outside Python's lock."""
    parts, before = [], "{"
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        parts += [_text(before + orjson.dumps(name).decode() + ":"), _json_values(column)]
        before = ","
    lines = pc.binary_join_element_wise(*parts, _text("}\n"), _text(""))
    ends = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset :][: len(lines) + 1]
    return lines.buffers()[2][int(ends[0]) : int(ends[-1])]


def _json_values(column: pa.Array) -> pa.LargeStringArray:
    """Each value as JSON; alike ones are written once, but for plain texts and numbers."""
    if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
        if not pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py():
            texts, quote = column.cast(pa.large_string()), _text('"')
            return pc.fill_null(
                pc.binary_join_element_wise(quote, texts, quote, _text("")), _text("null")
            )
    elif pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return pc.fill_null(column.cast(pa.large_string()), _text("null"))
    elif pa.types.is_floating(column.type):
        column = column.dictionary_encode()
        written = pa.array(map(_json, column.dictionary.to_pylist()), pa.large_string())
        return pc.fill_null(written.take(column.indices), _text("null"))
    return pa.array(map(_json, column.to_pylist()), pa.large_string())


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _text(text: str) -> pa.LargeStringScalar:
    return pa.scalar(text, pa.large_string())


def _write_delimited(
    file: AtomicFile, schema: pa.Schema, batches: Iterable[pa.RecordBatch], delimiter: str
) -> None:
    file.write(_delimited_lines([schema.names], delimiter))
    for batch in batches:
        file.write(_delimited_lines(_rows(batch), delimiter))


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*[column.to_pylist() for column in batch.columns], strict=True)


def _delimited_lines(rows: Iterable[Iterable[Any]], delimiter: str) -> bytes:
    lines = _Lines()
    csv.writer(lines, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return "\n".join([*lines, ""]).encode()


class _Lines(list[str]):
    r"""Takes lines; both characters that may end one are quoted in cells, and "\\n" ends them."""

    def write(self, line: str) -> None:
        self.append(line[:-2])


def _write_csv(file: AtomicFile, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    _write_delimited(file, schema, batches, ",")


def _write_tsv(file: AtomicFile, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    _write_delimited(file, schema, batches, "\t")


def _write_parquet(
    file: AtomicFile,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    closing: Callable[[], dict[str, str]] | None = None,
) -> None:
    import pyarrow.parquet as pq

    writer = pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True)
    try:
        for batch in batches:
            writer.write_batch(batch)
        if closing is not None:
            writer.add_key_value_metadata(closing())
        writer.close()
    finally:
        writer.is_open = False  # otherwise its destructor writes a footer after a failure


def _write_arrow(file: AtomicFile, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(pa.PythonFile(file, mode="w"), schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


_WRITERS: Final[dict[str, Callable[[AtomicFile, pa.Schema, Iterable[pa.RecordBatch]], None]]] = {
    "jsonl": _write_jsonl,
    "csv": _write_csv,
    "tsv": _write_tsv,
    "parquet": _write_parquet,
    "arrow": _write_arrow,
}
