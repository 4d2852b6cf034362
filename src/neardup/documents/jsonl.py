"""JSON lines: one object a line."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from neardup.documents.batch import Joiner, string_array
from neardup.documents.problems import BadRecordError, missing_field, refuse
from neardup.documents.source import BOM, TextSource
from neardup.documents.spans import Spans
from neardup.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.documents.batch import Batch, ReadOptions
    from neardup.documents.rejects import Rejects

__all__ = ["JsonlSource"]

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
_PART_BYTES = 1 << 19  # lines, objects and texts of a part stay in the cache; 1.5 times as fast
_FIX = "fix the line or pass --on-error skip"


class JsonlSource(TextSource):
    """A file of JSON lines. Blank lines are no records, but count as lines."""

    format = "jsonl"

    def layout(self) -> None:
        """Any JSON lines may follow any others."""

    def batches(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the documents; see Source.batches."""
        parser = _Parser(options)
        row = 1
        joiner = Joiner()
        self._spans = Spans()
        start = 0
        with self._input.open() as reader:
            while lines := reader.lines(min(options.batch_bytes, _PART_BYTES), row - 1):
                if row == 1:
                    self._begin(lines)
                texts, ids, accepted = self._parse(parser, lines, row, rejects)
                lengths = np.fromiter(map(len, lines), np.int64, len(lines))
                self._spans.add(lengths, accepted)
                joiner.add(texts, ids, np.flatnonzero(accepted) + row)
                row += len(lines)
                if self._spans.end - start >= options.batch_bytes:
                    yield from joiner.take(reader.consumed)
                    start = self._spans.end
            yield from joiner.take(reader.consumed)
        self._input.check_unchanged()

    def _begin(self, lines: list[bytes]) -> None:
        if lines[0].startswith(BOM):
            lines[0] = lines[0][len(BOM) :]
            self._spans = Spans(len(BOM))
        plain = self.name.lower().removesuffix(".gz").removesuffix(".zst")
        first = next((line for line in lines if line.strip(_BLANK)), b"")
        if plain.endswith(".json") and first.lstrip(_BLANK).startswith(b"["):
            raise DataError(
                f"{self.name}:1: it is one JSON array, and JSON lines are wanted;"
                f" convert it: jq -c '.[]' {self.name}"
            )

    def _parse(
        self, parser: _Parser, lines: list[bytes], row: int, rejects: Rejects | None
    ) -> tuple[pa.LargeStringArray, pa.LargeStringArray | None, np.ndarray[Any, Any]]:
        if (parsed := parser.all_of(lines)) is not None:
            return *parsed, np.ones(len(lines), np.bool_)
        accepted = np.zeros(len(lines), np.bool_)
        texts: list[str] = []
        ids: list[str] = []
        for i, line in enumerate(lines):
            record = line.strip(_BLANK)
            if not record:
                continue
            try:
                text, identity = parser.one(record)
            except BadRecordError as bad:
                refuse(self.name, row + i, bad, line.rstrip(b"\r\n"), parser.options, rejects)
                continue
            texts.append(text)
            ids.append(identity)
            accepted[i] = True
        has_ids = parser.options.id is not None
        return string_array(texts), string_array(ids) if has_ids else None, accepted


class _Parser:
    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._pick = itemgetter(*options.fields)

    def all_of(
        self, lines: list[bytes]
    ) -> tuple[pa.LargeStringArray, pa.LargeStringArray | None] | None:
        """Parse lines that are all good, quickly; None if one is not, or is blank."""
        try:
            picked = list(map(self._pick, map(orjson.loads, lines)))
            if len(self.options.fields) == 1:
                texts: pa.LargeStringArray = string_array(picked)
                ids: pa.LargeStringArray | None = None
            else:
                texts, ids = self._columns(picked)
        except (ValueError, TypeError, LookupError, OverflowError):
            return None
        if texts.null_count or (ids is not None and ids.null_count):
            return None
        return texts, ids

    def _columns(
        self, picked: list[tuple[Any, ...]]
    ) -> tuple[pa.LargeStringArray, pa.LargeStringArray | None]:
        columns = list(zip(*picked, strict=True))
        ids = None
        if self.options.id is not None:
            ids = pa.array(columns.pop())
            if not (pa.types.is_integer(ids.type) or pa.types.is_string(ids.type)):
                raise TypeError("an id is neither a string nor a whole number")
            ids = ids.cast(pa.large_string())
        if len(columns) == 1:
            return string_array(columns[0]), ids
        return string_array(["\n".join(parts) for parts in zip(*columns, strict=True)]), ids

    def one(self, record: bytes) -> tuple[str, str]:
        """Parse one record: its text and id ("" without an id field), or say what is wrong."""
        value = _load(record)
        if not isinstance(value, dict):
            raise BadRecordError(f"{_KINDS[type(value)]}, not a JSON object", _FIX)
        parts = [_field(value, name, "--text") for name in self.options.text]
        for name, part in zip(self.options.text, parts, strict=True):
            if not isinstance(part, str):
                raise BadRecordError(f"{name} is {_KINDS[type(part)]}, not a string", _FIX)
        if self.options.id is None:
            return "\n".join(parts), ""
        identity = _field(value, self.options.id, "--id")
        if type(identity) not in {str, int}:
            kind = _KINDS[type(identity)]
            raise BadRecordError(
                f"{self.options.id} is {kind}, not a string or a whole number", _FIX
            )
        return "\n".join(parts), str(identity)


def _field(record: dict[str, Any], name: str, option: str) -> Any:
    try:
        return record[name]
    except KeyError:
        raise missing_field(name, record, option, "field") from None


def _load(record: bytes) -> Any:
    try:
        return orjson.loads(record)
    except orjson.JSONDecodeError as error:
        try:
            record.decode()
        except UnicodeDecodeError as undecodable:
            raise BadRecordError(f"not UTF-8 (byte {undecodable.start + 1})", _FIX) from None
        raise BadRecordError(f"not valid JSON: {error.msg} (column {error.colno})", _FIX) from None
