"""One JSON document with a list of objects: what is around kept elements stays as it is."""

from __future__ import annotations

import json
import re
from array import array
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.documents.batch import HELD_RECORDS, Gathered, ReadOptions
from neardup.documents.files.encodings import EncodedFile
from neardup.documents.files.problems import BadRecordError, quoted
from neardup.documents.formats.jsonl import RecordParser, parsed_object
from neardup.documents.record_edits import without_json
from neardup.documents.rejects import refuse
from neardup.documents.source import BOM, Source, check_flags
from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from neardup.documents.batch import Batch
    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.input_bytes import Input
    from neardup.documents.rejects import Rejects

__all__ = ["JsonArraySource", "begins_array"]

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_READ_BYTES: Final = 1 << 24
_HEAD_BYTES: Final = 1 << 12
_SCAN: Final = json.JSONDecoder().raw_decode
_ADVICE: Final = "pass --records PATH, such as data or result.items"


def begins_array(origin: Input) -> bool:
    """Whether the first thing in a file is [."""
    with origin.open() as reader:
        head = reader.read(_HEAD_BYTES)
    return head.removeprefix(BOM).lstrip(b" \t\r\n").startswith(b"[")


class JsonArraySource(Source):
    """A file that is one JSON document; it is held in memory while it is read, and to write."""

    format = "json"
    records_given: str | None = None
    """Path of the list in the document, such as "data"; by default the document is the list."""

    def __init__(self, origin: Input) -> None:
        """Take the input; nothing is read yet."""
        super().__init__(origin)
        self._spans = np.zeros((0, 2), np.int64)
        self._longest = 0

    def layout(self) -> None:
        """Any array may follow any other."""

    def records(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the documents; see Source.records. Their row is their place in the array, from 1."""
        parser = RecordParser(options)
        self._longest = HELD_RECORDS * options.record_bytes
        text = self._text()
        gathered, rows, size, done = Gathered(options), [], 0, 0
        spans = array("q")
        nbytes = self.nbytes or len(text)
        for row, (start, stop) in enumerate(_elements(self.name, text, self.records_given), 1):
            record = text[start:stop].encode()
            try:
                gathered.add(*parser.one(record))
            except BadRecordError as bad:
                refuse(self.name, row, bad, record, options, rejects)
                continue
            spans.extend((start, stop))
            rows.append(row)
            size += len(record)
            if size >= options.batch_bytes:
                share = nbytes * stop // len(text)
                yield gathered.columns().batch(np.array(rows), share - done)
                gathered, rows, size, done = Gathered(options), [], 0, share
        if rows:
            yield gathered.columns().batch(np.array(rows), nbytes - done)
        self._spans = np.array(spans, np.int64).reshape(-1, 2)
        self._input.check_unchanged()

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """See Source.rows."""
        self._longest = HELD_RECORDS * ReadOptions().record_bytes
        text = self._text()
        for row, (start, stop) in enumerate(_elements(self.name, text, self.records_given), 1):
            try:
                yield row, parsed_object(text[start:stop].encode())
            except BadRecordError as bad:
                raise self.broken(row, bad) from None
        self._input.check_unchanged()

    @classmethod
    def write_joined(
        cls,
        sources: Sequence[JsonArraySource],
        keeps: Sequence[npt.NDArray[np.bool_]],
        target: AtomicFile,
    ) -> None:
        """Write one array of the kept elements, with what is between the first input's elements."""
        encoding = sources[0].encoding
        written = target if encoding is None else EncodedFile(target, encoding)
        begin, between, end = sources[0].frame()
        written.write(begin.encode())
        count = 0
        for source, keep in zip(sources, keeps, strict=True):
            for element in source.kept_elements(keep):
                written.write(((between if count else "") + element).encode())
                count += 1
        written.write(end.encode())

    def frame(self) -> tuple[str, str, str]:
        """The text before the first element, between the first two, and after the last."""
        self._input.check_unchanged()
        return _frame(self.name, self._text(), self.records_given)

    def kept_elements(self, keep: npt.NDArray[np.bool_]) -> Iterator[str]:
        """Read the kept elements a second time, as they stand in the file."""
        check_flags(self, keep, len(self._spans))
        self._input.check_unchanged()
        text = self._text()
        for start, stop in self._spans[keep].tolist():
            element = text[start:stop]
            yield element if self.edits is None else self.edits.apply(element, without_json)
        self._input.check_unchanged()

    def _text(self) -> str:
        with self._input.open() as reader:
            parts, size = [], 0
            while block := reader.piece(_READ_BYTES, 0):
                parts.append(block)
                self.is_unchecked = reader.is_unchecked
                size += len(block)
                if size > self._longest:
                    raise DataError(
                        f"{self.name}: a JSON array is held in memory, and more than"
                        f" {self._longest / 10**6:,.1f} MB do not fit: pass a larger --memory, or"
                        f" write one object a line: jq -c '.{self.records_given or ''}[]'"
                    )
        data = b"".join(parts)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"{self.name}:{line}: not UTF-8 (byte {error.start + 1} of the file); pass"
                " --encoding NAME"
            ) from None


def _elements(name: str, text: str, path: str | None) -> Iterator[tuple[int, int]]:
    """The begin and end of each element of the list; DataError if the document is broken."""
    at = _first(text)
    if at == len(text):
        return
    at, around = (at, []) if path is None else _list_at(name, text, at, path)
    if text[at] != "[":
        raise UsageError(
            f"{name} is not a JSON array: it begins with {text[at]!r}; pass --records PATH for a"
            " list in it, or try --format jsonl"
        )
    at = _after_blank(text, at + 1)
    if text[at : at + 1] == "]":
        _check_end(name, text, at + 1, around)
        return
    while True:
        stop = _value_end(name, text, at)
        yield at, stop
        at = _after_blank(text, stop)
        if text[at : at + 1] == "]":
            _check_end(name, text, at + 1, around)
            return
        if text[at : at + 1] != ",":
            raise _broken(name, text, at, "a comma or ] is expected")
        at = _after_blank(text, at + 1)


def _list_at(name: str, text: str, at: int, path: str) -> tuple[int, list[str]]:
    """The place where the list at a path begins, and the names that lead to it.

    A name may have dots of its own.

    Raises:
        UsageError: If there is none.
        DataError: If the document is broken before it.
    """
    around: list[str] = []
    rest = path
    while text[at] == "{":
        lists: list[str] = []
        others: list[str] = []
        for key, value in _members(name, text, at):
            if key and f"{rest}.".startswith(f"{key}."):
                around.append(key)
                at, rest = value, rest[len(key) + 1 :]
                break
            (lists if text[value] == "[" else others).append(".".join([*around, key]))
        else:
            raise _no_list(name, path, lists, others)
    if text[at] != "[" or rest:
        kind = {"[": "a list", "{": "an object", '"': "a string"}.get(text[at], "a number or null")
        begin = f'"{".".join(around)}"' if around else "the document"
        raise UsageError(f"{name}: no list at {quoted([path])}: {begin} is {kind}; {_ADVICE}")
    return at, around


def _no_list(name: str, path: str, lists: list[str], others: list[str]) -> UsageError:
    there = quoted([*lists, *others]) or "nothing"
    plain = next((x for x in lists if x.isprintable() and " " not in x), None)
    advice = _ADVICE if plain is None else f"pass --records {plain}"
    return UsageError(f"{name}: no list at {quoted([path])}: there is {there}; {advice}")


def _members(name: str, text: str, at: int) -> Iterator[tuple[str, int]]:
    """The name of each member of the object that begins there, and where its value begins."""
    at = _after_blank(text, at + 1)
    if text[at : at + 1] == "}":
        return
    while True:
        key, at = _member(name, text, at)
        yield key, at
        at = _after_blank(text, _value_end(name, text, at))
        if text[at : at + 1] == "}":
            return
        if text[at : at + 1] != ",":
            raise _broken(name, text, at, "a comma or } is expected")
        at = _after_blank(text, at + 1)


def _member(name: str, text: str, at: int) -> tuple[str, int]:
    """A member's name, and where its value begins."""
    if text[at : at + 1] != '"':
        raise _broken(name, text, at, "a name in double quotes is expected")
    stop = _value_end(name, text, at)
    colon = _after_blank(text, stop)
    value = _after_blank(text, colon + 1)
    if text[colon : colon + 1] != ":" or value == len(text):
        raise _broken(name, text, colon, "a colon and a value are expected")
    return str(json.loads(text[at:stop])), value


def _value_end(name: str, text: str, at: int) -> int:
    try:
        return _SCAN(text, at)[1]
    except (json.JSONDecodeError, RecursionError) as error:
        place = error.pos if isinstance(error, json.JSONDecodeError) else at
        what = error.msg if isinstance(error, json.JSONDecodeError) else "too deeply nested"
        raise _broken(name, text, place, what) from None


def _check_end(name: str, text: str, at: int, around: Sequence[str]) -> None:
    """Read what follows the list: the rest of each object around it, and then nothing."""
    for own in reversed(around):
        at = _after_blank(text, at)
        while text[at : at + 1] == ",":
            key, at = _member(name, text, _after_blank(text, at + 1))
            if key == own:
                raise _broken(name, text, at, f"{quoted([own])} is there twice")
            at = _after_blank(text, _value_end(name, text, at))
        if text[at : at + 1] != "}":
            raise _broken(name, text, at, "a comma or } is expected")
        at += 1
    if _after_blank(text, at) != len(text):
        raise _broken(name, text, at, "more text follows the document")


def _broken(name: str, text: str, at: int, what: str) -> DataError:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return DataError(f"{name}:{line}: not valid JSON: {what} (column {column}); fix the file")


def _frame(name: str, text: str, path: str | None) -> tuple[str, str, str]:
    spans = _elements(name, text, path)
    if (first := next(spans, None)) is None:
        return _empty_frame(name, text, path)
    second = next(spans, None)
    rest = deque(spans, maxlen=1)
    last = rest[0] if rest else second or first
    between = ", " if second is None else text[first[1] : second[0]]
    return text[: first[0]], between, text[last[1] :]


def _empty_frame(name: str, text: str, path: str | None) -> tuple[str, str, str]:
    begin = _first(text)
    if path is None or begin == len(text):
        return "[", ", ", "]\n"
    at = _list_at(name, text, begin, path)[0] + 1
    return text[:at], ", ", text[at:]


def _first(text: str) -> int:
    """The place of what comes first, behind a byte-order mark and white space."""
    return _after_blank(text, 1 if text.startswith("\ufeff") else 0)


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return at if match is None else match.end()
