"""A stream of lines through an index: new ones are written at once."""

from __future__ import annotations

import os
import stat
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import orjson
import pyarrow as pa

from neardup.documents.batch import too_long
from neardup.documents.files.problems import BadRecordError
from neardup.documents.formats.jsonl import RecordParser
from neardup.errors import DataError, UsageError
from neardup.pipeline.index_files import PASSED, offered
from neardup.pipeline.run.summary import FilterSummary
from neardup.pipeline.run.transaction import ids_of_kind
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.documents import ReadOptions
    from neardup.index import Answer, Stored
    from neardup.index.durable.durable_index import DurableIndex

__all__ = ["Passing", "filter_lines"]

READ_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Passing:
    """Options of a stream of lines.

    Args:
        is_json: Whether a line is a JSON object, not a text; None if the first line decides.
        is_marked: Whether all lines are written, each with its answer.
        every: Lines of a commit; None for all that can be read at once.
        stored: What happens to an id that is stored with other content: "replace", "keep" or
            "error".
    """

    is_json: bool | None = None
    is_marked: bool = False
    every: int | None = None
    stored: Stored = "replace"


class _Line(NamedTuple):
    """A line that is a document: its number, bytes without the end, text, and id if it has one."""

    number: int
    data: bytes
    text: str
    identity: str | None


def filter_lines(
    index: DurableIndex, source: int, target: BinaryIO, read: ReadOptions, passing: Passing
) -> FilterSummary:
    """Write the lines whose documents are new, and store those documents.

    A line is written and flushed, and synced where the target is a file, before its document is
    committed. So after a kill or a power cut the same lines can be passed again: some come twice,
    none is missing.

    Args:
        index: With a recipe.
        source: Descriptor to read; a pipe is read as lines arrive.
        target: Descriptor to write.
        read: Which fields of JSON have text and id, and what to do with bad lines.
        passing: The options.

    Raises:
        UsageError: If an id field is named for lines that are texts, or lines cannot be numbered.
        DataError: For a line that cannot be read, unless these are skipped; those before it are
            written and stored.
    """
    if index.recipe is None:
        raise UsageError(
            "the index has no recipe, and lines are texts: make an index without --no-recipe"
        )
    watch, counts = Stopwatch(Quiet()), Counter[str]()
    parser = _Parser(read, passing.is_json)
    is_file = stat.S_ISREG(os.fstat(target.fileno()).st_mode)
    number = index.next_id if read.id is None else 0
    if read.id is None and index.id_kind == "str":
        raise UsageError(
            "the ids of the index are texts, so lines cannot be numbered: pass --id FIELD"
        )
    watch.begin("filter", None)
    for raw in _batches(source, passing.every, read.record_bytes):
        lines, problem = parser.documents(raw, counts)
        if lines:
            names: Any = list(range(number, number + len(lines)))
            if read.id is not None:
                ids = pa.array([line.identity for line in lines], pa.large_string())
                names = ids_of_kind(ids, index.id_kind)
            number += len(lines)
            with index.transaction() as t:
                prepared = t.prepare(names, [line.text for line in lines])
                answers = offered(t, prepared, passing.stored, partial(_place, lines))
                target.write(b"".join(_passed(lines, answers, parser, passing)))
                target.flush()
                if is_file:
                    os.fsync(target.fileno())
            counts.update(answer.state for answer in answers)
        if problem is not None:
            raise problem
    return FilterSummary(
        counts.total(), counts["new"] + counts["replaced"], counts["stored"], counts["seen"],
        counts["empty"], counts["rejected"], len(index), watch.stop(),
    )  # fmt: skip


class _Parser:
    """Parses lines to documents.

    Args:
        read: Which fields of JSON have text and id, and what to do with bad lines.
        is_json: As in Passing.
    """

    def __init__(self, read: ReadOptions, is_json: bool | None) -> None:
        self._read, self.is_json = read, is_json
        self._records = RecordParser(read)
        self._number = 0

    def documents(
        self, raw: list[bytes], counts: Counter[str]
    ) -> tuple[list[_Line], DataError | None]:
        """The documents of lines, up to and with a bad one, unless bad ones are skipped."""
        lines = list[_Line]()
        for data in raw:
            self._number += 1
            if self.is_json is None and data.strip():
                self.is_json = data.lstrip()[:1] == b"{"
            has_ids = self._read.id is not None
            if has_ids and self.is_json is False:
                raise UsageError("--id names a field of JSON, and the lines are texts")
            if (has_ids or self.is_json) and not data.strip():
                continue  # as in a file of JSON lines, where it is not a record
            try:
                lines.append(self._line(data))
            except BadRecordError as error:
                if not self._read.skip_errors:
                    return lines, DataError(f"-:{self._number}: {error}")
                counts["rejected"] += 1
        return lines, None

    def _line(self, data: bytes) -> _Line:
        longest = self._read.record_bytes
        if len(data) > longest:
            raise too_long(len(data), longest)
        if self.is_json:
            text, identity, *_ = self._records.one(data)
            return _Line(self._number, data, text, identity)
        try:
            return _Line(self._number, data, data.decode(), None)
        except UnicodeDecodeError as error:
            raise BadRecordError(f"it is not UTF-8 ({error}): pass --on-error skip") from None


def _place(lines: list[_Line], row: int) -> str:
    return f"-:{lines[row].number}"


def _passed(
    lines: list[_Line], answers: list[Answer], parser: _Parser, passing: Passing
) -> Iterator[bytes]:
    """The lines to write."""
    for line, answer in zip(lines, answers, strict=True):
        if passing.is_marked:
            yield _marked(line.data, answer, is_json=bool(parser.is_json))
        elif answer.state in PASSED:
            yield line.data + b"\n"


def _marked(data: bytes, answer: Answer, *, is_json: bool) -> bytes:
    """A line with its answer: a last field of its object, or fields before it."""
    near, score = answer.near or (None, None)
    if not is_json:
        near_and_score = "\t" if near is None else f"{near}\t{score}"
        return f"{answer.state}\t{near_and_score}\t".encode() + data + b"\n"
    mark: dict[str, Any] = {"state": answer.state}
    if near is not None:
        name = "distance" if isinstance(score, int) else "similarity"
        mark |= {"id": near, name: score}
    body = data.strip()[:-1].rstrip()
    comma = b"" if body.endswith(b"{") else b","
    return body + comma + b'"neardup":' + orjson.dumps(mark) + b"}\n"


def _batches(source: int, every: int | None, longest: int) -> Iterator[list[bytes]]:
    """Lines as they arrive: all that can be read at once, or batches of `every` lines."""
    waiting, rest = list[bytes](), list[bytes]()
    size = 0
    while part := os.read(source, READ_BYTES):
        first, *others = part.split(b"\n")
        rest.append(first)
        size += len(first)
        if not others:
            if size > longest:
                raise DataError(f"-: {too_long(None, longest)}")
            continue
        *middle, last = others
        waiting += [b"".join(rest), *middle]
        rest, size = [last], len(last)
        if every is None:
            yield waiting
            waiting = []
        while every is not None and len(waiting) >= every:
            yield waiting[:every]
            waiting = waiting[every:]
    last = b"".join(rest)
    if waiting or last:
        yield [*waiting, last] if last else waiting
