"""Stretches taken out of the text field of records while they are written; no other byte changes.

A record's text stands in it as a literal: of JSON with escapes, of CSV with doubled quotes. What is
taken out of the text is taken out of the literal, so that the rest stays as it was written.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.encodings import EncodedFile

__all__ = ["Cutter", "EditedRecords", "TextEdits", "without", "without_csv", "without_json"]

Stretches = list[tuple[int, int]]
"""First character and the one behind the last of what goes, ascending, without overlaps."""

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_JSON_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
)
_QUOTES: Final = re.compile('""')


class Cutter(Protocol):
    """A source of the stretches to cut; documents are taken in order."""

    @property
    def document(self) -> int:
        """The next document that it has to see, -1 after the last one."""

    def take(self, text: str) -> Stretches:
        """The stretches to cut from the next document's text."""


class TextEdits:
    """The edits of one input's accepted records, in order.

    Args:
        cutter: Says what goes.
        first: The number of the input's first document.
        field: That holds the text.
        name: The input's, for messages.
    """

    def __init__(self, cutter: Cutter, first: int, field: str, name: str) -> None:
        """Begin before the first record."""
        self.field = field
        self._cutter, self._number, self._name = cutter, first, name

    def of_next(self, count: int = 1) -> int:
        """Go on to the next record that is edited, by at most `count`; how many are passed over."""
        behind = self._cutter.document - self._number
        passed = count if behind < 0 else min(behind, count)
        self._number += passed
        return passed

    def take(self, text: Any) -> Stretches:
        """The stretches to cut from the text of the record at which `of_next` stopped."""
        if not isinstance(text, str):
            raise self.error(
                f'"{self.field}" is a list of texts: passages are cut out of one text; join it'
                " first, or pass --text FIELD"
            )
        self._number += 1
        return self._cutter.take(text)

    def error(self, problem: str) -> DataError:
        """Word what cannot be edited."""
        return DataError(f"{self._name}: {problem}")

    def apply(self, record: str, edit: Callable[[str, TextEdits], str]) -> str:
        """Edit a record, if it is the next one to be edited."""
        return record if self.of_next() else edit(record, self)

    def column(self, table: pa.Table) -> pa.Table:
        """Edit the texts of successive rows of a table."""
        new: dict[int, str] = {}
        at = self.of_next(table.num_rows)
        texts = None
        while at < table.num_rows:
            if texts is None:
                texts = _texts(table, self.field)
            text = texts[at].as_py()
            new[at] = without(text, self.take(text))
            at += 1
            at += self.of_next(table.num_rows - at)
        return _with_texts(table, self.field, new) if new else table


class EditedRecords:
    """A target that takes records, one behind the other, and passes them on edited.

    Args:
        target: Where they go.
        lengths: int64: the bytes of each record.
        edits: Of these records.
        edit: How the text of one is edited.
    """

    ends_line = True

    def __init__(
        self,
        target: AtomicFile | EncodedFile,
        lengths: npt.NDArray[np.int64],
        edits: TextEdits,
        edit: Callable[[str, TextEdits], str],
    ) -> None:
        """Take nothing yet."""
        self.path = target.path
        self._target, self._lengths, self._edits, self._edit = target, lengths, edits, edit
        self._rest = b""
        self._record = 0
        self._passing = 0
        self._advance()

    def write(self, data: bytes | memoryview) -> int:
        """Take bytes, which may end within a record."""
        data = self._rest + data if self._rest else data
        view, at = memoryview(data), 0
        while at < len(view):
            if self._passing:
                size = min(self._passing, len(view) - at)
                self._target.write(view[at : at + size])
                self._passing -= size
                at += size
                continue
            size = int(self._lengths[self._record])
            if len(view) - at < size:
                break
            record = bytes(view[at : at + size]).decode()
            self._target.write(self._edit(record, self._edits).encode())
            at += size
            self._record += 1
            self._advance()
        self._rest = bytes(view[at:])
        return len(data)

    def _advance(self) -> None:
        """Find how many bytes are passed on before the next record that is edited."""
        passed = self._edits.of_next(len(self._lengths) - self._record)
        self._passing = int(self._lengths[self._record : self._record + passed].sum())
        self._record += passed


def without(text: str, stretches: Stretches) -> str:
    """A text without some stretches.

    Example:
        >>> without("abcdef", [(0, 1), (3, 5)])
        'bcf'
    """
    kept, at = [], 0
    for begin, end in stretches:
        kept.append(text[at:begin])
        at = end
    return "".join([*kept, text[at:]])


def without_json(record: str, edits: TextEdits) -> str:
    r"""A JSON object without stretches of its text field; escapes stay as they are."""
    try:
        begin, end = _json_value(record, edits.field)
    except RecursionError:
        raise edits.error("a record is too deeply nested; take it out") from None
    literal = record[begin:end]
    stretches = edits.take(json.loads(literal))
    inner = _without_raw(literal[1:-1], stretches, _JSON_ESCAPE)
    return f'{record[: begin + 1]}{inner}"{record[end:]}'


def without_csv(record: str, edits: TextEdits, column: int, delimiter: str) -> str:
    """A CSV record without stretches of one of its cells; quotes stay as they are."""
    cells = re.compile(rf'"([^"]*(?:""[^"]*)*)"|([^{re.escape(delimiter)}\r\n]*)')
    at = 0
    for _ in range(column):
        cell = cells.match(record, at)
        at = (cell.end() if cell else at) + 1
    cell = cells.match(record, at)
    assert cell is not None  # noqa: S101  # an empty cell matches as well
    if cell[1] is not None:
        raw = _without_raw(cell[1], edits.take(cell[1].replace('""', '"')), _QUOTES)
        return f'{record[: cell.start()]}"{raw}"{record[cell.end() :]}'
    raw = without(cell[2], edits.take(cell[2]))
    is_blank = not (record[: cell.start()] + raw + record[cell.end() :]).strip("\r\n")
    if is_blank or raw.startswith('"'):  # a blank line would be no record
        raw = '"' + raw.replace('"', '""') + '"'
    return record[: cell.start()] + raw + record[cell.end() :]


def _without_raw(raw: str, stretches: Stretches, escape: re.Pattern[str]) -> str:
    """A literal without stretches of the text that it stands for; an escape is one character."""
    places = [place for stretch in stretches for place in stretch]
    members, shift = [], 0
    escapes = escape.finditer(raw)
    following = next(escapes, None)
    for place in places:
        while following is not None and following.start() - shift < place:
            shift += len(following[0]) - 1
            following = next(escapes, None)
        members.append(place + shift)
    return without(raw, list(zip(members[::2], members[1::2], strict=True)))


def _json_value(record: str, field: str) -> tuple[int, int]:
    """The begin and end in an object of the value of a field, or of a field in a field."""
    members = _json_members(record, 0)
    if field in members:
        return members[field]
    begin = 0
    for name in field.split("."):
        begin, end = _json_members(record, begin)[name]
    return begin, end


def _json_members(record: str, at: int) -> dict[str, tuple[int, int]]:
    """The begin and end of each member's value in an object; of two equal names the last counts."""
    scan = json.JSONDecoder(strict=False).raw_decode
    members: dict[str, tuple[int, int]] = {}
    at = _behind_space(record, record.index("{", at) + 1)
    while record[at] != "}":
        name, at = scan(record, at)
        begin = _behind_space(record, _behind_space(record, at) + 1)  # behind the colon
        _, at = scan(record, begin)
        members[name] = (begin, at)
        at = _behind_space(record, at)
        if record[at] == ",":
            at = _behind_space(record, at + 1)
    return members


def _behind_space(record: str, at: int) -> int:
    match = _SPACE.match(record, at)
    return match.end() if match else at


def _texts(table: pa.Table, field: str) -> Any:
    """The texts of a column, or of a field in one, as strings."""
    column = table.column(_top(table.schema, field)).combine_chunks()
    for name in _inner(table.schema, field):
        column = pc.struct_field(column, name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if pa.types.is_nested(column.type) else column.cast(pa.large_string())


def _top(schema: pa.Schema, field: str) -> str:
    return field if field in schema.names else field.partition(".")[0]


def _inner(schema: pa.Schema, field: str) -> list[str]:
    return [] if field in schema.names else field.split(".")[1:]


def _with_texts(table: pa.Table, field: str, new: dict[int, str]) -> pa.Table:
    """The table with other texts in some rows, in the types that its columns have."""
    name = _top(table.schema, field)
    column = table.column(name).combine_chunks()
    changed = _replaced(column, _inner(table.schema, field), _texts(table, field), new)
    return table.set_column(table.schema.names.index(name), table.schema.field(name), changed)


def _replaced(column: Any, path: list[str], texts: Any, new: dict[int, str]) -> Any:
    if path:
        fields = list(column.type)
        parts = [
            _replaced(part, path[1:], texts, new) if each.name == path[0] else part
            for each, part in zip(fields, column.flatten(), strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=column.is_null())
    is_new = [False] * len(texts)
    for row in new:
        is_new[row] = True
    values = pa.array([new[row] for row in sorted(new)], pa.large_string())
    replaced = pc.replace_with_mask(texts, pa.array(is_new), values)
    if pa.types.is_dictionary(column.type):
        return replaced.cast(column.type.value_type).dictionary_encode().cast(column.type)
    return replaced.cast(column.type)
