"""CSV and TSV: a header row, then one record for each row; quoted fields may span lines."""

from __future__ import annotations

import csv
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from neardup.documents.batch import Gathered, Joiner, ReadOptions
from neardup.documents.files.encodings import encoding_advice
from neardup.documents.files.problems import (
    BadRecordError,
    check_names,
    longest_field,
    missing_field,
)
from neardup.documents.formats.csv_lines import (
    BLOCK_BYTES,
    CsvFields,
    CsvLines,
    separator_line,
    sniffed_delimiter,
)
from neardup.documents.formats.field_spans import PART_BYTES, Fields, Spans
from neardup.documents.formats.lines import TextSource
from neardup.documents.record_edits import without_csv
from neardup.documents.rejects import refuse
from neardup.documents.source import BOM
from neardup.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.documents.batch import Batch
    from neardup.documents.record_edits import TextEdits
    from neardup.documents.rejects import Rejects

__all__ = ["CsvSource", "TsvSource"]

_FIELD_LIMIT: Final = (1 << 31) - 1
_SNIFFED_BYTES: Final = 1 << 15
_SAMPLED_ROWS: Final = 20
_KERNEL_PAYS: Final = 4 << 20  # bytes parsed in the time that loading the kernel takes


class CsvSource(TextSource):
    """A CSV file. Blank lines are not records, but count as lines."""

    format = "csv"
    delimiter = ","
    delimiter_given: str | None = None
    """The delimiter that the user names; by default the first lines decide."""
    plainly_parsed: ClassVar[int] = 0
    """Bytes that this process has parsed without the kernel."""
    _header = b""
    _names: Sequence[str] = ()
    _before = b""

    def header(self) -> bytes:
        """The header row of the file, unchanged."""
        return self._header

    def edited(self, record: str, edits: TextEdits) -> str:
        """See TextSource.edited."""
        return without_csv(record, edits, self._names.index(edits.field), self.delimiter)

    def layout(self) -> bytes | None:
        """The header row without byte-order mark and line end; None if there is none yet."""
        if not self._header and self._input.nbytes is not None:
            with self._input.open() as reader:
                lines = CsvLines(reader, ReadOptions().record_bytes, passes=False)
                self._begin(lines)
                self._read_header(lines)
        return self._header.removeprefix(BOM).rstrip(b"\r\n") or None

    def records(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the documents; see Source.records."""
        joiner = Joiner()
        with self._input.open() as reader:
            lines = CsvLines(reader, options.record_bytes, passes=options.skip_errors)
            self._begin(lines)
            names = self._names = self._read_header(lines)
            self._spans = Spans(lines.offset)
            if names:
                start = lines.offset
                sample = self._sample(lines.block(_SNIFFED_BYTES))
                records = _Records(self.name, options, names, rejects, sample)
                for part in self._parts(lines, records, options):
                    for first, each in part:
                        self._spans.add(each.lengths, each.accepted)
                        joiner.add(each.columns, each.rows + first)
                    if lines.offset - start >= options.batch_bytes:
                        yield from joiner.take(reader.consumed)
                        start = lines.offset
                yield from joiner.take(reader.consumed)
            self.is_unchecked = reader.is_unchecked
        self._input.check_unchanged()

    def _parts(
        self, lines: CsvLines, records: _Records, options: ReadOptions
    ) -> Iterator[list[tuple[int, Fields]]]:
        """The records in parts: stretches of them, each with the number of its first line.

        A part ends with the record at the end of a block of lines, whether the kernel finds the
        records or not, which depends on what this process has parsed before.
        """
        fields, nbytes = records.fields(self.delimiter), min(options.batch_bytes, BLOCK_BYTES)
        while (block := lines.block(nbytes)) or lines.is_long:
            pays = CsvSource.plainly_parsed > _KERNEL_PAYS and len(block) <= options.record_bytes
            yield list(self._stretches(block, lines, records, fields if pays else None))

    @staticmethod
    def _stretches(
        block: bytes, lines: CsvLines, records: _Records, fields: CsvFields | None
    ) -> Iterator[tuple[int, Fields]]:
        """The records of the next lines, `block`, and the rest of the last one.

        All at once if the kernel, `fields`, finds them. Else it is asked for PART_BYTES at a time,
        and what it refuses is parsed one by one.
        """
        begin, size = lines.offset, max(len(block), PART_BYTES)
        while lines.offset < begin + max(1, len(block)):
            first, at = lines.number + 1, lines.offset - begin
            stop = block.find(b"\n", at + size - 1) + 1 or len(block)
            stretch = None if fields is None else fields.find(block[at:stop])
            if stretch is not None:
                lines.skip(int(stretch.lengths.sum()), stretch.lines)
                yield first, stretch
            elif size == PART_BYTES:
                CsvSource.plainly_parsed += stop - at
                yield first, records.read(lines, max(1, stop - at))
            size = PART_BYTES

    def rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """See Source.rows."""
        with self._input.open() as reader:
            lines = CsvLines(reader, ReadOptions().record_bytes, passes=False)
            self._begin(lines)
            names = self._read_header(lines)
            check_names(f"{self.name}:1", names)
            while names:
                number = lines.number + 1
                try:
                    fields = _record(lines, len(names))
                except StopIteration:
                    break
                except BadRecordError as bad:
                    raise self.broken(number, bad) from None
                if fields:
                    yield number, dict(zip(names, fields, strict=True))
        self._input.check_unchanged()

    def noted(self) -> list[str]:
        """See Source.noted."""
        usual, notes = type(self).delimiter, super().noted()
        if self.delimiter != usual and self.delimiter_given is None:
            notes.append(f"{self.name} is separated by {self.delimiter!r}, not {usual!r}")
        return notes

    def _begin(self, lines: CsvLines) -> None:
        """Detect the layout of the file, and begin to parse it."""
        csv.field_size_limit(_FIELD_LIMIT)
        head = lines.block(_SNIFFED_BYTES).decode(errors="replace")
        self._before = b""
        separator = separator_line(head)
        if separator is not None:
            self._before = lines.line()
        if self.format == "csv" and (separator or self.delimiter_given) is None:
            self.delimiter = sniffed_delimiter(head.removeprefix("\ufeff"))
        else:
            self.delimiter = self.delimiter_given or separator or self.delimiter
        lines.delimiter = self.delimiter

    def _sample(self, head: bytes) -> list[list[str]]:
        """The first records, if they can be parsed, for finding columns with text."""
        text = head.decode(errors="replace").splitlines(keepends=True)
        rows = csv.reader(text, delimiter=self.delimiter)
        with suppress(csv.Error):
            return list(islice(rows, _SAMPLED_ROWS))
        return []

    def _read_header(self, lines: CsvLines) -> list[str]:
        names: list[str] = []
        while not names:
            try:
                names = lines.row()
            except StopIteration:
                return []
            except BadRecordError as bad:
                raise DataError(
                    f"{self.name}:1: the header row: {bad.problem}; is it CSV? Name the columns in"
                    " its first line"
                ) from None
            except csv.Error as error:
                what, advice = encoding_advice(b"".join(lines.record)) or (None, "fix it")
                why = str(error).partition(" - ")[0] if what is None else f"not UTF-8{what}"
                raise DataError(
                    f"{self.name}:1: the header row is broken: {why}; {advice}"
                ) from None
        header = b"".join(lines.record)
        if lines.undecodable:
            what, advice = encoding_advice(header) or ("", "convert the file")
            raise DataError(f"{self.name}:1: the header row is not UTF-8{what}; {advice}")
        self._header = self._before + header
        return names


class TsvSource(CsvSource):
    """A file of tab-separated values, with the quoting of CSV."""

    format = "tsv"
    delimiter = "\t"


class _Records:
    """Parses records one by one, with csv.reader, and words the problems of bad ones."""

    def __init__(
        self,
        source: str,
        options: ReadOptions,
        names: list[str],
        rejects: Rejects | None,
        sample: Sequence[Sequence[str]] = (),
    ) -> None:
        self._source = source
        self._options = options
        self._rejects = rejects
        self._width = len(names)
        self._text = [
            _column(source, names, name, options.text_option, sample) for name in options.text
        ]
        self._id, self._within, self._number = (
            None if name is None else _column(source, names, name, option)
            for name, option in (
                (options.id, "--id"),
                (options.within, "--within"),
                (options.number, "another --keep"),
            )
        )
        self._pick = itemgetter(*self._text)
        self._order = options.order

    def fields(self, delimiter: str) -> CsvFields:
        """The kernel's finder of the same columns."""
        others = (self._id, self._within, self._number)
        columns = self._text + [column for column in others if column is not None]
        return CsvFields(self._options, delimiter, self._width, columns)

    def read(self, lines: CsvLines, nbytes: int) -> Fields:
        """Read records of at least `nbytes`, or up to the end of the file."""
        self._gathered = Gathered(self._options)
        lengths, accepted, begins = [], [], []
        stop, before = lines.offset + nbytes, lines.number
        while lines.offset < stop:
            start, number = lines.offset, lines.number
            try:
                is_record = self._take(_record(lines, self._width))
            except StopIteration:
                break
            except BadRecordError as bad:
                record = b"".join(lines.record).rstrip(b"\r\n")
                refuse(self._source, number + 1, bad, record, self._options, self._rejects)
                is_record = False
            lengths.append(lines.offset - start)
            accepted.append(is_record)
            if is_record:
                begins.append(number - before)
        return Fields(
            self._gathered.columns(),
            np.array(lengths, np.int64),
            np.array(accepted, np.bool_),
            np.array(begins, np.int64),
            lines.number - before,
        )

    def _take(self, fields: list[str]) -> bool:
        if not fields:
            return False
        number = None
        if self._order is not None and self._number is not None:
            number = self._order.of_text(fields[self._number])
        picked = self._pick(fields)
        self._gathered.add(
            picked if isinstance(picked, str) else "\n".join(picked),
            "" if self._id is None else fields[self._id],
            None if self._within is None else fields[self._within],
            number,
        )
        return True


def _column(
    source: str, names: list[str], name: str, option: str, sample: Sequence[Sequence[str]] = ()
) -> int:
    if name not in names:
        sizes = {
            other: sum(len(row[i]) for row in sample if len(row) == len(names))
            for i, other in enumerate(names)
        }
        bad = missing_field(name, names, option, "column", longest_field(sizes))
        raise DataError(f"{source}:1: {bad.problem}; {bad.advice}")
    check_names(f"{source}:1", names, name)
    return names.index(name)


def _record(lines: CsvLines, width: int) -> list[str]:
    """The fields of the next record, none of a blank line.

    Raises:
        StopIteration: At the end.
        BadRecordError: If it is broken.
    """
    try:
        fields = lines.row()
    except csv.Error as error:
        raise _broken(error) from None
    if fields and lines.undecodable:
        raise _undecodable(b"".join(lines.record))
    if fields and len(fields) != width:
        raise BadRecordError(f"{len(fields)} fields where the header has {width}")
    return fields


def _undecodable(record: bytes) -> BadRecordError:
    advice = encoding_advice(record)
    if advice is None:
        return BadRecordError("not UTF-8")
    return BadRecordError(f"not UTF-8{advice[0]}", advice[1])


def _broken(error: csv.Error) -> BadRecordError:
    if "unexpected end of data" in str(error):
        return BadRecordError("a quote is opened and never closed")
    return BadRecordError(f"not valid CSV: {str(error).partition(' - ')[0]}")
