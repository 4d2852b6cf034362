"""Spreadsheets: one sheet of a workbook is read; kept rows are written as their values."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.documents.batch import HELD_RECORDS, ReadOptions
from neardup.documents.extensions import format_of_path
from neardup.documents.formats.columnar import ColumnarSource
from neardup.documents.record_edits import without
from neardup.documents.result_tables import write_rows
from neardup.documents.sheets import Sheet, as_table, read_sheet
from neardup.documents.source import check_flags

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from neardup.documents.batch import Batch
    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.input_bytes import Input
    from neardup.documents.rejects import Rejects

__all__ = ["ExcelSource"]


class ExcelSource(ColumnarSource):
    """A workbook; its sheet is held in memory while it is read, and again to write."""

    format = "excel"
    title = "Excel"
    also_written = ("jsonl", "csv", "tsv", "parquet", "arrow")
    sheet_given: str | None = None

    def __init__(self, origin: Input) -> None:
        """Take a file; UsageError for a stream."""
        super().__init__(origin)
        self._sheet = Sheet("", [], [], [], [])
        self._longest = ReadOptions().record_bytes

    def records(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """See Source.records."""
        self._longest = options.record_bytes
        return super().records(options, rejects)

    def layout(self) -> list[str]:
        """The names of the columns."""
        return self._read().header

    def named(self, relative: str) -> str:
        """See Source.named: only .xlsx is written."""
        return str(PurePosixPath(relative).with_suffix(".xlsx"))

    def noted(self) -> list[str]:
        """See Source.noted."""
        others = ", ".join(f'"{each}"' for each in self._sheet.others)
        rest = f"; others are {others}: --format excel:SHEET reads one" if others else ""
        values = "kept rows are written as values, without formats and formulas"
        return [f'of {self.name} the sheet "{self._sheet.name}" was read{rest}; {values}']

    def row_numbers(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """See ColumnarSource.row_numbers: as the program shows them."""
        return np.array(self._sheet.numbers, np.int64)[places]

    @contextmanager
    def open_table(self) -> Iterator[_Reader]:
        """Read the sheet; see ColumnarSource.open_table."""
        self._sheet = self._read()
        yield _Reader(as_table(self._sheet.header, self._sheet.rows))

    def kept_rows(self, keep: npt.NDArray[np.bool_]) -> Iterator[list[Any]]:
        """Read the cells of kept rows a second time."""
        check_flags(self, keep, int(np.count_nonzero(self._accepted)))
        self._input.check_unchanged()
        kept = self._accepted.copy()
        kept[kept] = keep
        rows = self._read().rows
        for i in np.flatnonzero(kept).tolist():
            yield rows[i] if self.edits is None or self.edits.of_next() else self._cut(rows[i])
        self._input.check_unchanged()

    def _cut(self, row: list[Any]) -> list[Any]:
        """The cells of a row without what goes of its text."""
        assert self.edits is not None  # noqa: S101  # see `kept_rows`
        place, cells = self._sheet.header.index(self.edits.field), list(row)
        cells[place] = without(cells[place], self.edits.take(cells[place]))
        return cells

    @classmethod
    def write_joined(
        cls,
        sources: Sequence[ExcelSource],
        keeps: Sequence[npt.NDArray[np.bool_]],
        target: AtomicFile,
    ) -> None:
        """Write the kept rows in the format of the target's extension."""
        both = zip(sources, keeps, strict=True)
        rows = [row for source, keep in both for row in source.kept_rows(keep)]
        table = as_table(sources[0].layout(), rows)
        kind = format_of_path(target.path) or "jsonl"
        write_rows(target, kind, table.schema, table.to_batches(), rows)

    def _read(self) -> Sheet:
        with self._input.open_raw() as raw:
            most = HELD_RECORDS * self._longest
            return read_sheet(self.name, raw.read(), self.sheet_given, most)


class _Reader:
    codec = None

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.schema = table.schema

    def parts(
        self,
        columns: list[str] | None,
        nbytes: int,
        workers: int = 1,  # noqa: ARG002
    ) -> Iterator[tuple[pa.RecordBatch, float]]:
        table = self._table if columns is None else self._table.select(columns)
        rows = max(len(table) * nbytes // max(table.nbytes, 1), 1)
        done = 0
        for part in table.to_batches(max_chunksize=rows):
            done += len(part)
            yield part, done / len(table)
