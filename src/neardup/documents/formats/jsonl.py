"""JSON lines: one object a line."""

from __future__ import annotations

import io
from contextlib import closing
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from neardup.documents.batch import (
    Columns,
    Gathered,
    Joiner,
    ReadOptions,
    string_array,
    too_long,
)
from neardup.documents.extensions import ending_of
from neardup.documents.files.compression import line_ends
from neardup.documents.files.encodings import encoding_advice
from neardup.documents.files.problems import (
    BadRecordError,
    file_error,
    longest_field,
    missing_field,
    quoted,
)
from neardup.documents.formats.field_spans import PART_BYTES, Fields, Spans
from neardup.documents.formats.json_fields import JsonFields
from neardup.documents.formats.lines import TextSource
from neardup.documents.record_edits import without_json
from neardup.documents.rejects import refuse
from neardup.documents.source import BOM
from neardup.errors import DataError
from neardup.runtime.storage.durable_files import HAS_PLACED_IO
from neardup.runtime.threads import ahead, read_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from neardup.documents.batch import Batch
    from neardup.documents.files.compression import ByteReader, LongLine
    from neardup.documents.ordering import Order
    from neardup.documents.record_edits import TextEdits
    from neardup.documents.rejects import Rejects

__all__ = ["JsonlSource", "RecordParser", "parsed_object"]

_BLANK = b" \t\r\n"
_KINDS = {
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    list: "an array",
    dict: "an object",
    type(None): "null",
}
_KERNEL_PAYS: Final = 4 << 20  # bytes parsed in the time that loading the kernel takes
_RANGE_BYTES: Final = 4 << 20
"""That a thread reads ahead; longer lines are parsed alone. Threads wait for Python's lock a fixed
number of times a range: with 16 of them, ranges of half as much take 1.2 to 1.5 times as long."""
_KERNEL_TAKES: Final = 16 << 20  # its scratch is six times the block
_FIX = "fix the line or pass --on-error skip"


class _Part(NamedTuple):
    """Whole lines of an input."""

    data: bytes
    consumed: int  # bytes of the input, compressed as it is, when they were read
    long_line: LongLine | None  # a skipped line after them
    by_kernel: bool  # whether the kernel parses them
    is_last: bool = True  # batches end with one: where they do depends on the input alone


class JsonlSource(TextSource):
    """A file of JSON lines. Blank lines are not records, but count as lines."""

    format = "jsonl"
    plainly_parsed: ClassVar[int] = 0
    """Bytes that this process has parsed without the kernel."""
    is_cut: Callable[[bytes], bool] | None = None
    """Whether `rows` skips an incomplete last line, from an interrupted append of neardup."""
    _mark = b""

    def layout(self) -> None:
        """Any JSON lines may follow any others."""

    def header(self) -> bytes:
        """The byte-order mark, if it decides the encoding."""
        return self._mark if self.encoding is not None else b""

    def edited(self, record: str, edits: TextEdits) -> str:
        """See TextSource.edited."""
        return without_json(record, edits)

    def records(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the documents; see Source.records."""
        parser = RecordParser(options)
        row, consumed = 1, 0
        joiner = Joiner()
        self._spans = Spans()
        start, batch_bytes = 0, min(options.batch_bytes, _RANGE_BYTES)
        with self._input.open() as reader, closing(self._parts(reader, options)) as parts:
            for part, fields in parts:
                parsed = self._parse(parser, part.data, row, rejects) if fields is None else fields
                self._spans.add(parsed.lengths, parsed.accepted)
                joiner.add(parsed.columns, parsed.rows + row)
                row += parsed.lines
                if part.long_line is not None:
                    self._pass_over(part.long_line, row, options, rejects)
                    row += 1
                consumed = part.consumed
                if part.is_last and self._spans.end - start >= batch_bytes:
                    yield from joiner.take(consumed)
                    start = self._spans.end
            yield from joiner.take(consumed)
            self.is_unchecked = reader.is_unchecked
        self._input.check_unchanged()

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """See Source.rows."""
        options, number = ReadOptions(), 0
        with self._input.open() as reader:
            for part in self._blocks(reader, options):
                for line in io.BytesIO(part.data):
                    number += 1
                    record = line.strip(_BLANK)
                    if not record or (self.is_cut is not None and self.is_cut(line)):
                        continue
                    try:
                        yield number, parsed_object(record)
                    except BadRecordError as bad:
                        raise self.broken(number, bad) from None
                if part.long_line is not None:
                    raise self.broken(number + 1, too_long(None, options.record_bytes))
        self._input.check_unchanged()

    def _pass_over(
        self, line: LongLine, row: int, options: ReadOptions, rejects: Rejects | None
    ) -> None:
        nbytes = line.nbytes
        if row == 1:
            nbytes -= len(line.begin) - len(self._begin(line.begin))
        self._spans.add(np.array([nbytes]), np.zeros(1, np.bool_))
        bad = too_long(line.nbytes if options.skip_errors else None, options.record_bytes)
        refuse(self.name, row, bad, line.begin, options, rejects)

    def _parts(
        self, reader: ByteReader, options: ReadOptions
    ) -> Generator[tuple[_Part, Fields | None]]:
        """The parts of the input in order, and their fields where the kernel finds them.

        In a long file, threads find the fields ahead of the current part.
        """
        fields = JsonFields(options)
        # The same parts whatever this process has parsed before, and for any number of threads.
        in_ranges = (
            self._input.is_plain
            and HAS_PLACED_IO
            and _kernel_takes(options)
            and options.batch_bytes >= _RANGE_BYTES
            and options.record_bytes >= 2 * _RANGE_BYTES  # no line that is found is too long
        )
        begin = min(_KERNEL_PAYS, self.nbytes or 0) if in_ranges else None
        yield from self._with_fields(self._blocks(reader, options, 0, begin), fields, options)
        if begin is not None and self._spans.end < (self.nbytes or 0):
            yield from self._ranges(reader, fields, options)

    def _with_fields(
        self, parts: Iterator[_Part], fields: JsonFields, options: ReadOptions
    ) -> Iterator[tuple[_Part, Fields | None]]:
        """Parts, and their fields where the kernel finds them."""

        def parse_part(part: _Part) -> tuple[_Part, list[Fields | bytes]]:
            return part, fields.find(part.data, PART_BYTES) if part.by_kernel else [part.data]

        threads = options.workers
        if threads == 1 or not self.is_here or (self.nbytes or 0) <= PART_BYTES:
            results: Generator[Any] = (parse_part(part) for part in parts)
        else:
            if not self._input.is_plain:  # unpacked by a thread that does nothing else
                parts = read_ahead(parts)
            results = ahead(
                threads, parse_part, parts, lambda part: len(part.data), _RANGE_BYTES * threads
            )
        with closing(results):  # no thread goes on after an error
            for result in results:
                yield from _stretches(*result)

    def _ranges(
        self, reader: ByteReader, fields: JsonFields, options: ReadOptions
    ) -> Iterator[tuple[_Part, Fields | None]]:
        """The rest of a plain file, read in threads by ranges of bytes.

        What begins in a range with a line that is longer than one is read by the reader alone.
        """
        at, size = self._spans.end, self.nbytes or 0
        ranges = [(x, min(x + _RANGE_BYTES, size)) for x in range(at, size, _RANGE_BYTES)]
        with self._input.open_file() as file:

            def parse_range(place: tuple[int, int]) -> tuple[int, list[Fields | bytes] | None]:
                try:
                    return place[1], fields.find_in_file(file.fileno(), *place, PART_BYTES)
                except OSError as error:
                    raise file_error(self.name, "read", error) from None

            if options.workers == 1:
                results: Iterator[Any] = map(parse_range, ranges)
            else:
                results = ahead(options.workers, parse_range, ranges)
            for end, stretches in results:
                if stretches is None:
                    reader.skip(self._spans.end - at)
                    yield from self._with_fields(
                        self._blocks(reader, options, self._spans.end, end), fields, options
                    )
                    at = self._spans.end
                    continue
                yield from _stretches(_Part(b"", end, None, by_kernel=True), stretches)

    def _blocks(
        self, reader: ByteReader, options: ReadOptions, begin: int = 0, end: int | None = None
    ) -> Iterator[_Part]:
        """The lines from byte `begin` on, where the reader is, that begin before byte `end`."""
        has_kernel, at, lines = _kernel_takes(options), begin, 0
        # A kernel takes more at once, as every call waits for Python's lock.
        most = min(options.batch_bytes, (4 if has_kernel else 1) * PART_BYTES)
        longest, passes = options.record_bytes, options.skip_errors
        while end is None or at < end:
            nbytes = most if end is None else min(most, end - at)
            block = reader.block(nbytes, lines, longest, passes=passes)
            if not block and not reader.long_line:
                return
            is_first, at = at == 0, at + len(block)
            if reader.long_line is not None:
                at += reader.long_line.nbytes
            if is_first:
                block = self._begin(block)
            if reader.codec is not None:  # a broken stream's error names the line it reached
                lines += line_ends(block) + (reader.long_line is not None)
            can_pay = JsonlSource.plainly_parsed + len(block) > _KERNEL_PAYS
            by_kernel = has_kernel and can_pay and len(block) <= _KERNEL_TAKES
            if not by_kernel:
                JsonlSource.plainly_parsed += len(block)
            yield _Part(block, reader.consumed, reader.long_line, by_kernel)
            if reader.long_line is not None and not passes:
                return

    def _begin(self, block: bytes) -> bytes:
        self._mark = b""
        if block.startswith(BOM):
            self._mark, block = BOM, block[len(BOM) :]
            self._spans = Spans(len(BOM))
        if ending_of(self.name) == ".json" and block.lstrip(_BLANK).startswith(b"["):
            raise DataError(f"{self.name}:1: it is one JSON array; pass --format json")
        return block

    def _parse(
        self, parser: RecordParser, block: bytes, row: int, rejects: Rejects | None
    ) -> Fields:
        lines = io.BytesIO(block).readlines()
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        if (parsed := parser.all_of(lines)) is not None:
            every = np.arange(len(lines))
            return Fields(parsed, lengths, np.ones(len(lines), np.bool_), every, len(lines))
        accepted = np.zeros(len(lines), np.bool_)
        gathered = Gathered(parser.options)
        for i, line in enumerate(lines):
            record = line.strip(_BLANK)
            if not record:
                continue
            try:
                gathered.add(*parser.one(record))
            except BadRecordError as bad:
                if row + i == 1 and record == b"{" and ending_of(self.name) == ".json":
                    bad.advice = "of one JSON document pass the list of records: --records PATH"
                refuse(self.name, row + i, bad, line.rstrip(b"\r\n"), parser.options, rejects)
                continue
            accepted[i] = True
        records = np.flatnonzero(accepted)
        return Fields(gathered.columns(), lengths, accepted, records, len(lines))


class RecordParser:
    """Extracts the fields that the options name from JSON objects."""

    def __init__(self, options: ReadOptions) -> None:
        """Take the options."""
        self.options = options
        pick = [_picker(name) for name in options.fields]
        self._pick = (
            itemgetter(*options.fields)
            if not _is_nested(options)
            else pick[0]
            if len(pick) == 1
            else lambda record: tuple(one(record) for one in pick)
        )

    def all_of(self, lines: list[bytes]) -> Columns | None:
        """Parse lines that are all good, quickly; None if one is not, or is blank."""
        try:
            picked = list(map(self._pick, map(orjson.loads, lines)))
            columns = self._columns(picked)
        except (ValueError, TypeError, LookupError, OverflowError, BadRecordError):
            return None
        if columns.texts.null_count or (columns.ids is not None and columns.ids.null_count):
            return None
        return columns

    def _columns(self, picked: list[Any]) -> Columns:
        options = self.options
        if len(options.fields) == 1:
            return Columns(self._texts(picked))
        values = list(zip(*picked, strict=True))
        numbers = None if options.order is None else _number_array(values.pop(), options.order)
        within = (
            None if options.within is None else _scalar_array(values.pop(), pa.types.is_boolean)
        )
        ids = None if options.id is None else _scalar_array(values.pop())
        if len(values) == 1:
            texts = self._texts(values[0])
        else:
            texts = string_array(["\n".join(parts) for parts in zip(*values, strict=True)])
        return Columns(texts, ids, within, numbers)

    def _texts(self, values: Sequence[Any]) -> pa.LargeStringArray:
        return _scalar_array(values) if self.options.numbers else _text_array(values)

    def one(self, record: bytes) -> tuple[str, str, str | None, float | None]:
        """Parse one record: text, id, group and number ("" or None without the field).

        Raises:
            BadRecordError: Says what is wrong.
        """
        return self.of(parsed_object(record))

    def of(self, value: dict[str, Any]) -> tuple[str, str, str | None, float | None]:
        """As `one`, for a parsed record."""
        options = self.options
        text = _scalar if options.numbers else _text
        parts = [text(value, name, options.text_option) for name in options.text]
        identity = "" if options.id is None else _scalar(value, options.id, "--id")
        within = None if options.within is None else _within(value, options.within)
        order = options.order
        number = None if order is None else order.of_json(_value_at(value, order.field), _KINDS)
        return "\n".join(parts), identity, within, number


def _stretches(
    part: _Part, stretches: Sequence[Fields | bytes]
) -> Iterator[tuple[_Part, Fields | None]]:
    """A part, cut where its fields are found or not; a long line follows the last."""
    last = len(stretches) - 1
    for i, each in enumerate(stretches):
        data, fields = (b"", each) if isinstance(each, Fields) else (each, None)
        long_line = part.long_line if i == last else None
        yield part._replace(data=data, long_line=long_line, is_last=i == last), fields


def _is_nested(options: ReadOptions) -> bool:
    """Whether a field in a field may be named, which the kernel does not find."""
    return any("." in name for name in options.fields)


def _kernel_takes(options: ReadOptions) -> bool:
    return not (options.numbers or _is_nested(options))


def parsed_object(record: bytes) -> dict[str, Any]:
    """Parse a record; BadRecordError if it is not an object."""
    value = _load(record)
    if not isinstance(value, dict):
        raise BadRecordError(f"{_KINDS[type(value)]}, not a JSON object", _FIX)
    return value


def _text_array(values: Sequence[Any]) -> pa.LargeStringArray:
    """Texts, of which the first may be an array of strings; TypeError for anything else."""
    if values and isinstance(values[0], list):
        values = ["\n".join(each) if isinstance(each, list) else each for each in values]
    return string_array(values)


def _text(record: dict[str, Any], name: str, option: str) -> str:
    """A text field: a string, or strings to be joined by line ends."""
    value = _field(record, name, option)
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        raise _object_error(name, value)
    if not isinstance(value, list):
        raise _wrong_type(name, value, "a string", option)
    other = next((each for each in value if not isinstance(each, str)), None)
    if other is not None or None in value:
        raise BadRecordError(
            f"{name} is an array with {_KINDS[type(other)]}, not of strings",
            _fix_or_name(option),
        )
    return "\n".join(value)


def _scalar_array(
    values: Sequence[Any], also: Callable[[pa.DataType], bool] = pa.types.is_string
) -> pa.LargeStringArray:
    """Strings or whole numbers as text; TypeError or ValueError for a mixture and for others."""
    array = pa.array(values)
    kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_null, also)
    if not any(test(array.type) for test in kinds):
        raise TypeError("neither strings nor whole numbers")
    return array.cast(pa.large_string())


def _number_array(values: Sequence[Any], order: Order) -> pa.DoubleArray:
    if order.dates:
        return pa.array([order.of_json(value, _KINDS) for value in values], pa.float64())
    array = pa.array(values)
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
    if not any(test(array.type) for test in kinds):
        raise TypeError("no numbers")
    return array.cast(pa.float64())


def _scalar(record: dict[str, Any], name: str, option: str) -> str:
    value = _field(record, name, option)
    if type(value) not in {str, int}:
        raise _wrong_type(name, value, "a string or a whole number", option)
    return str(value)


def _within(record: dict[str, Any], name: str) -> str | None:
    value = _field(record, name, "--within")
    if isinstance(value, float | list | dict):
        kind = "a fraction" if isinstance(value, float) else _KINDS[type(value)]
        raise BadRecordError(
            f"{name} is {kind}, not a string, a whole number, a boolean or null",
            _fix_or_name("--within"),
        )
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _wrong_type(name: str, value: Any, expected: str, option: str) -> BadRecordError:
    """The error of a field of another type; it advises skipping only for a missing value."""
    advice = _FIX if value is None else _fix_or_name(option)
    return BadRecordError(f"{name} is {_KINDS[type(value)]}, not {expected}", advice)


def _fix_or_name(option: str) -> str:
    return f"fix the line or pass {option} FIELD"


def _field(record: dict[str, Any], name: str, option: str) -> Any:
    try:
        return _picked(record, name)
    except LookupError:
        bad = missing_field(name, record, option, "field", _text_like(record))
        if (path := _list_of_objects(record)) is not None:
            bad.advice = f"if the list in it has the records, pass --records {path}"
        raise bad from None


def _list_of_objects(record: dict[str, Any], depth: int = 2) -> str | None:
    """The path of a list of objects, as a proposal for --records."""
    for name, value in record.items():
        if isinstance(value, list) and value and all(isinstance(x, dict) for x in value):
            return name
        if depth > 1 and isinstance(value, dict) and (inner := _list_of_objects(value, depth - 1)):
            return f"{name}.{inner}"
    return None


def _value_at(record: dict[str, Any], name: str) -> Any:
    try:
        return _picked(record, name)
    except LookupError:
        return None


def _picked(record: dict[str, Any], name: str) -> Any:
    """The value of a field, or of a field in a field: "doc.body" unless a field is named so."""
    if name in record:
        return record[name]
    value: Any = record
    for part in name.split("."):
        if not isinstance(value, dict):
            raise KeyError(name)
        value = value[part]
    return value


def _picker(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda record: _picked(record, name)


def _text_like(record: dict[str, Any]) -> str | None:
    """The field with the longest text, also one level down; None if there is none."""
    sizes = {name: len(value) for name, value in record.items() if isinstance(value, str)}
    for outer, inner in record.items():
        if isinstance(inner, dict):
            lengths = {f"{outer}.{x}": len(v) for x, v in inner.items() if isinstance(v, str)}
            sizes.update(lengths)
    return longest_field(sizes)


def _object_error(name: str, value: dict[str, Any]) -> BadRecordError:
    inner = _text_like(value)
    advice = f"pass --text {name}.{inner}" if inner is not None else _FIX
    return BadRecordError(f"{name} is an object with {quoted(value)}, not a string", advice)


def _load(record: bytes) -> Any:
    try:
        return orjson.loads(record)
    except orjson.JSONDecodeError as error:
        if "memory" in error.msg:  # it takes sixteen times the record; that is not bad for it
            raise MemoryError from None
        try:
            record.decode()
        except UnicodeDecodeError as bad:
            what, advice = encoding_advice(record) or ("", _FIX)
            raise BadRecordError(f"not UTF-8 (byte {bad.start + 1}){what}", advice) from None
        raise BadRecordError(f"not valid JSON: {error.msg} (column {error.colno})", _FIX) from None
