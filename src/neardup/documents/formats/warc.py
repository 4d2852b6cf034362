"""Web archives: WARC with its responses, WET with texts; kept records are copied as they are.

A record of a .warc.gz is a gzip member of its own, so that the stretch of the file that it takes is
known, and nothing is written again. FastWARC reads what HTTP made of a response.
"""

from __future__ import annotations

import functools
import io
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from neardup.documents.batch import Gathered, ReadOptions, too_long
from neardup.documents.files.compression import SHOWN_BYTES, ByteReader, codec_of_path
from neardup.documents.files.encodings import decoded_as
from neardup.documents.files.foreign import kind_of_bytes
from neardup.documents.files.problems import BadRecordError
from neardup.documents.formats.field_spans import Spans
from neardup.documents.formats.jsonl import RecordParser
from neardup.documents.formats.kept_runs import copy_runs
from neardup.documents.markup import declared_encoding
from neardup.documents.rejects import refuse
from neardup.documents.source import Source, check_flags
from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from neardup.documents.batch import Batch
    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.input_bytes import Input
    from neardup.documents.rejects import Rejects

__all__ = ["WarcSource"]

_PIECE_BYTES: Final = 1 << 18
_HEADER_BYTES: Final = 1 << 20
_BEGINS: Final = (b"WARC/1.", b"WARC/0.")
_PAGES: Final = ("text/html", "application/xhtml+xml")
_GOOD: Final = range(200, 300)
_FIX: Final = "cut the record out or pass --on-error skip"


@dataclass(frozen=True, slots=True)
class _Record:
    """One record.

    Args:
        nbytes: That it takes in the file, compressed as it is, with the blank lines behind it.
        header: Its fields, by their names in small letters; empty if there is none.
        content: Its block, or the begin of one that is too long.
        size: Of the whole block.
    """

    nbytes: int
    header: dict[str, str]
    content: bytes
    size: int

    @property
    def is_document(self) -> bool:
        """Whether it is one by its type: an answer of a server, a file or a text."""
        kind = self.header.get("warc-type")
        if kind == "resource":
            return self.header.get("content-type", "").startswith("text/")
        return kind in {"response", "conversion", None}


@dataclass(frozen=True, slots=True)
class _Page:
    """The fields of a document, and whether it is HTML."""

    fields: dict[str, Any]
    is_page: bool


class WarcSource(Source):
    """A WARC or WET file; its documents are answers of servers that are text, and texts.

    Other records are kept, unless they belong to a dropped one: its request and its metadata.
    """

    format: ClassVar[str] = "warc"
    takes_edits: ClassVar[bool] = False

    def __init__(self, origin: Input) -> None:
        """Take the input; UsageError for a stream, or without FastWARC."""
        super().__init__(origin)
        if origin.nbytes is None:
            raise UsageError(f"{self.name}: a WARC file cannot be a stream; use a file")
        self._codec = codec_of_path(self.name)
        if self._codec == "zstd":
            raise UsageError(
                f"{self.name}: WARC files are read as they are or with gzip: zstd -d, and name that"
            )
        _archive_iterator()
        self.has_pages = ".wet" not in self.name.lower()
        self._begin()

    def _begin(self) -> None:
        self._spans = Spans()
        self._are_documents: list[bool] = []  # of records that may be kept
        self._ids: list[tuple[int, int]] = []  # of these too: its own, and which it belongs to
        self._flags: list[bool] = []
        self._others = 0

    def layout(self) -> str:
        """The compression of the file."""
        return self._codec or "none"

    def check_output(self, out: str) -> None:
        """See Source.check_output: records are copied, compressed as they are."""
        if out != "-" and codec_of_path(out) != self._codec:
            ending = ".warc" if self._codec is None else ".warc.gz"
            raise UsageError(f"{out}: records stay compressed as they are; name it {ending}")

    def are_pages(self, batch: Batch) -> list[bool] | None:  # noqa: ARG002
        """See Source.are_pages; of the batch that was given last."""
        return self._flags

    def noted(self) -> list[str]:
        """See Source.noted."""
        line = (
            f"{self._others:,} records of {self.name} are not documents (requests, images, errors);"
            " they are kept, except those that belong to a dropped record"
        )
        return [line] if self._others else []

    def records(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the documents; see Source.records. Their row is the record's number, from 1."""
        parser = RecordParser(replace(options, date_format=None))
        self._begin()
        gathered, rows, size, passed, flags = Gathered(options), [], 0, 0, list[bool]()
        for row, record in enumerate(self._records(options.record_bytes), 1):
            passed += record.nbytes
            try:
                page = _page(record, options.record_bytes)
                if page is not None:
                    gathered.add(*parser.of(page.fields))
            except BadRecordError as bad:
                self._spans.add(np.array([record.nbytes]), np.zeros(1, np.bool_))
                shown = record.content[:SHOWN_BYTES]
                refuse(self.name, row, bad, shown, options, rejects)
                continue
            self._add(record, is_document=page is not None)
            if page is None:
                continue
            rows.append(row)
            flags.append(page.is_page)
            size += record.size
            if size >= options.batch_bytes:
                self._flags = flags
                yield gathered.columns().batch(np.array(rows), passed)
                gathered, rows, size, passed, flags = Gathered(options), [], 0, 0, []
        if rows:
            self._flags = flags
            yield gathered.columns().batch(np.array(rows), passed)
        self._input.check_unchanged()

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """See Source.rows."""
        longest = ReadOptions().record_bytes
        for row, record in enumerate(self._records(longest), 1):
            try:
                page = _page(record, longest)
            except BadRecordError as bad:
                raise self.broken(row, bad) from None
            if page is not None:
                yield row, page.fields
        self._input.check_unchanged()

    @classmethod
    def write_joined(
        cls,
        sources: Sequence[WarcSource],
        keeps: Sequence[npt.NDArray[np.bool_]],
        target: AtomicFile,
    ) -> None:
        """Copy the kept records, compressed as they are."""
        target.takes_compressed()
        for source, keep in zip(sources, keeps, strict=True):
            source.copy_records(keep, target)

    def copy_records(self, keep: npt.NDArray[np.bool_], target: AtomicFile) -> None:
        """Copy the kept documents, and the other records that do not belong to a dropped one."""
        documents = np.array(self._are_documents, np.bool_)
        check_flags(self, keep, int(np.count_nonzero(documents)))
        self._input.check_unchanged()
        stays = ~documents
        stays[documents] = keep
        gone = [self._ids[i] for i in np.flatnonzero(~stays).tolist()]
        theirs = {own for own, _ in gone} | {other for _, other in gone} - {0}
        for i in np.flatnonzero(~documents).tolist():
            own, other = self._ids[i]
            stays[i] = own not in theirs and other not in theirs
        with ByteReader(self.name, self._input.open_file()) as reader:
            copy_runs(reader, self._spans.runs(stays), target, self.went_to)
        self._input.check_unchanged()

    def _add(self, record: _Record, *, is_document: bool) -> None:
        self._spans.add(np.array([record.nbytes]), np.ones(1, np.bool_))
        self._are_documents.append(is_document)
        names = (record.header.get(x) for x in ("warc-record-id", "warc-concurrent-to"))
        own, other = (0 if name is None else hash(name) or 1 for name in names)
        self._ids.append((own, other))
        self._others += not is_document

    def _records(self, longest: int) -> Iterator[_Record]:
        """Every record in order; DataError where it cannot be told where one ends."""
        with self._input.open_file() as file:
            members = _Members(file, self._codec)
            number = 0
            while members.begin():
                number += 1
                try:
                    yield _one(members, longest, is_member=self._codec is not None)
                except (_BrokenWarcError, zlib.error) as error:
                    raise DataError(
                        f"{self.name}:{number}: the WARC file is broken here: {error}; fetch it"
                        " again"
                    ) from None


class _BrokenWarcError(Exception):
    """A record whose end is unknown; raised and caught in this module."""


class _Members:
    """The bytes of a file, member by member where it is compressed, else as one."""

    def __init__(self, file: io.RawIOBase, codec: str | None) -> None:
        self._file, self._codec = file, codec
        self._raw = b""  # of the file, not looked at yet
        self._plain = b""  # of the member, not taken yet
        self._stream: Any = None
        self._read_bytes = self._first_byte = 0

    def begin(self) -> bool:
        """Go to the next record; False at the end of the file."""
        self._first_byte = self._at()
        if self._codec is None:
            return bool(self._plain or self._more())
        if not self._raw:
            self._fetch()
        self._stream = zlib.decompressobj(wbits=31)
        return bool(self._raw)

    def taken(self) -> int:
        """Bytes of the file since `begin`."""
        return self._at() - self._first_byte

    def _at(self) -> int:
        return self._read_bytes - len(self._raw) - (len(self._plain) if not self._codec else 0)

    def line(self) -> bytes:
        """The next line with its end; what is left at the end of the member."""
        while b"\n" not in self._plain:
            if len(self._plain) > _HEADER_BYTES:
                raise _BrokenWarcError("a header is too long")
            if not self._more():
                break
        line, end, self._plain = self._plain.partition(b"\n")
        return line + end

    def take(self, nbytes: int, longest: int) -> bytes:
        """Read `nbytes` and return the first `longest` of them."""
        parts, size, left = list[bytes](), 0, nbytes
        while left:
            if not self._plain and not self._more():
                raise _BrokenWarcError("it ends too early")
            part, self._plain = self._plain[:left], self._plain[left:]
            left -= len(part)
            if size < longest:
                parts.append(part)
                size += len(part)
        return b"".join(parts)[:longest]

    def skip_line_ends(self) -> bool:
        """Go to the next byte that ends no line; whether there is one."""
        # All of a piece at once: a member of a few kilobytes may have gigabytes of them.
        self._plain = self._plain.lstrip(b"\r\n")
        while not self._plain:
            if not self._more():
                return False
            self._plain = self._plain.lstrip(b"\r\n")
        return True

    def rest(self) -> bytes:
        """The first bytes of the rest of a member that is not a record."""
        begin = b""
        while self._plain or self._more():
            begin = (begin + self._plain)[:SHOWN_BYTES]
            self._plain = b""
        return begin

    def _fetch(self) -> bool:
        more = self._file.read(_PIECE_BYTES) or b""
        self._read_bytes += len(more)
        self._raw += more
        return bool(more)

    def _more(self) -> bool:
        """Get more bytes of the member; False at its end."""
        if self._codec is None:
            if not self._fetch():
                return False
            self._plain, self._raw = self._plain + self._raw, b""
            return True
        while not self._stream.eof:
            if not self._raw and not self._fetch():
                raise _BrokenWarcError("its gzip stream ends too early")
            plain = self._stream.decompress(self._raw, _PIECE_BYTES)
            self._raw = self._stream.unused_data or self._stream.unconsumed_tail
            self._plain += plain
            if plain:
                return True
        return False


def _one(members: _Members, longest: int, *, is_member: bool) -> _Record:
    """Read one record, or a member that is none: its header is then empty."""
    members.skip_line_ends()
    line = members.line()
    header = _header(members) if line.startswith(_BEGINS) else {}
    length = header.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        if not is_member:
            raise _BrokenWarcError(
                "no line WARC/1.0" if not header else "the record has no Content-Length"
            )
        content = line + members.rest()
        return _Record(members.taken(), {}, content, len(content))
    content = members.take(int(length), longest)
    is_more = members.skip_line_ends()
    if is_member and is_more:
        raise _BrokenWarcError(
            "a gzip member has more than one record, so that none can be copied; write it again"
            " with `fastwarc recompress` or `warcio recompress`"
        )
    return _Record(members.taken(), header, content, int(length))


def _header(members: _Members) -> dict[str, str]:
    fields: dict[str, str] = {}
    size = 0
    while (line := members.line()).strip():
        name, _, value = line.decode(errors="replace").partition(":")
        fields.setdefault(name.strip().lower(), value.strip())
        size += len(line)
        if size > _HEADER_BYTES:
            raise _BrokenWarcError("a header is too long")
    return fields


def _page(record: _Record, longest: int) -> _Page | None:
    """The document that a record is; None if it is none.

    Raises:
        BadRecordError: If it is broken, or too long.
    """
    if not record.is_document:
        return None
    if not record.header:
        raise BadRecordError("not a WARC record", _FIX)
    kind = record.header.get("content-type", "").partition(";")[0].strip().lower()
    content, charset = record.content, None
    if record.header.get("warc-type") == "response":
        answer = _answer(record, longest)
        if answer is None:
            return None
        content, kind, charset = answer
    if max(record.size, len(content)) > longest:
        raise too_long(max(record.size, len(content)), longest)
    foreign = kind_of_bytes(content)
    if foreign is not None:
        raise BadRecordError(f"its Content-Type is {kind}, but it is {foreign.name}", _FIX)
    is_page = kind in _PAGES
    declared = charset or (declared_encoding(content) if is_page else None)
    fields = {
        "id": record.header.get("warc-record-id"),
        "url": _bare(record.header.get("warc-target-uri")),
        "date": record.header.get("warc-date"),
        "type": kind,
        "text": decoded_as(content, declared).removeprefix("\ufeff"),
    }
    return _Page(fields, is_page)


def _answer(record: _Record, longest: int) -> tuple[bytes, str, str | None] | None:
    """Body, media type and encoding of an answer of a server; None unless it is a text."""
    try:
        return _parsed(record, "all" if record.size <= longest else "none", longest)
    except OSError:  # bodies are often decoded already, and their headers as they were
        try:
            return _parsed(record, "none", longest)
        except OSError as error:
            raise BadRecordError(f"its HTTP answer is broken: {error}", _FIX) from None


def _parsed(record: _Record, decode: str, longest: int) -> tuple[bytes, str, str | None] | None:
    head = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\n"
    block = b"%sContent-Length: %d\r\n\r\n%s\r\n\r\n" % (head, len(record.content), record.content)
    reading = _archive_iterator()(
        io.BytesIO(block), parse_http=True, auto_decode=decode, quirks_mode=True
    )
    first = next(iter(reading))  # which is read before the next one is looked for
    if first.http_headers is None or first.http_headers.status_code is None:
        raise BadRecordError("its content is not an HTTP answer", _FIX)
    kind = (first.http_content_type or "").lower()
    if first.http_headers.status_code not in _GOOD or not (
        kind in _PAGES or kind.startswith("text/plain")
    ):
        return None
    body: bytes = first.reader.read(longest + 1)
    return body, kind, first.http_charset


@functools.cache
def _archive_iterator() -> Callable[..., Any]:
    """FastWARC's reader; UsageError without the extra."""
    try:
        from fastwarc.warc import ArchiveIterator
    except ImportError:
        raise UsageError(
            "WARC files need an extra: install it with `pip install 'neardup[warc]'`"
        ) from None
    return ArchiveIterator


def _bare(address: str | None) -> str | None:
    """An address without the angle brackets of WARC 1.0's grammar, which wget follows."""
    if address and address.startswith("<") and address.endswith(">"):
        return address[1:-1]
    return address
