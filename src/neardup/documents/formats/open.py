"""The table of formats, and opening inputs by it. A new format is one file and one row here."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.documents.extensions import (
    KNOWN_EXTENSIONS,
    InputFormat,
    ending_of,
    format_of_path,
    is_text,
)
from neardup.documents.files.archives import ARCHIVES, EntryInput, find_documents, is_archive
from neardup.documents.files.compression import CODECS
from neardup.documents.files.encodings import UTF8, DecodedInput, encoding_of_bom
from neardup.documents.files.foreign import HEAD_BYTES, kind_of_path
from neardup.documents.files.input_bytes import RegularInput, find_input
from neardup.documents.files.remote import is_uri
from neardup.documents.formats.arrow import ArrowSource
from neardup.documents.formats.csv import CsvSource, TsvSource
from neardup.documents.formats.excel import ExcelSource
from neardup.documents.formats.json_array import JsonArraySource, begins_array
from neardup.documents.formats.jsonl import JsonlSource
from neardup.documents.formats.mbox import MboxSource
from neardup.documents.formats.parquet import ParquetSource
from neardup.documents.formats.text_files import TextFilesSource
from neardup.documents.formats.warc import WarcSource
from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from neardup.documents.files.finding import InputFile
    from neardup.documents.files.input_bytes import Input
    from neardup.documents.source import Source

__all__ = ["FORMATS", "open_records", "open_sources", "read_table"]

FORMATS: Final[dict[str, Callable[[Input], Source]]] = {
    "jsonl": JsonlSource,
    "json": JsonArraySource,
    "csv": CsvSource,
    "tsv": TsvSource,
    "parquet": ParquetSource,
    "arrow": ArrowSource,
    "excel": ExcelSource,
    "mbox": MboxSource,
    "warc": WarcSource,
}
_TEXT: Final = "text"
_OF_TEXT: Final = ("jsonl", "json", "csv", "tsv")
_HEAD_BYTES: Final = 4


def open_sources(
    paths: Sequence[str],
    tmp: str | None = None,
    format: InputFormat | str | None = None,  # noqa: A002
) -> list[Source]:
    """Find every input and check it before any is read.

    Args:
        paths: Files, folders, archives, patterns in glob's language, URIs, or "-" for standard
            input (JSON lines unless `format` says otherwise). Files with none of EXTENSIONS are
            documents, one each, if all are; folders, archives and patterns may hold any, others
            must be TEXT_EXTENSIONS.
        tmp: Folder for copies of streams and unpacked archives; the system's own if None.
        format: A key of FORMATS that overrides the extensions, or "text": each file is a document;
            or more, as an InputFormat. A .json file that begins with [ is one JSON array.

    Files of folders and patterns whose path there has a name that begins with "_" are passed over
    where others hold records.

    Raises:
        UsageError: For an unknown format, files that are documents among files of records, or
            an input named twice.
        DataError: For a folder without files.
        FileError: If an input is missing or not readable.

    Example:
        >>> open_sources(["-"])[0].name
        '<stdin>'
    """
    input_format = InputFormat.of(format)
    name = input_format.name
    if name is not None and name not in {*FORMATS, _TEXT}:
        raise UsageError(f"unknown format {name!r}: use one of {', '.join([*FORMATS, _TEXT])}")
    if list(paths).count("-") > 1:
        raise UsageError("standard input (-) is named twice; name it once")
    files = [file for path in paths for file in find_documents(path, tmp)]
    if name != _TEXT:
        files = _without_marks(files)
    _check_once(files)
    if name == _TEXT or (name is None and _are_documents(files)):
        return [_open_text(files, tmp, input_format)] if files else []
    return [open_records(file, tmp, input_format) for file in files]


def read_table(
    path: str, is_cut: Callable[[bytes], bool] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    r"""The rows of a table: where each is, for messages, and its fields; values of CSV are texts.

    Args:
        path: As for `open_sources`; a file whose name does not tell is JSON lines.
        is_cut: Whether a line of JSON is passed over: neardup appended it, and a part of it only
            was written.

    Raises:
        UsageError: If it is not a table.
        DataError: At the first row that is broken.
        FileError: If it cannot be read.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "labels.csv")
        ...     _ = file.write_text("id1;id2\n7;8\n")
        ...     [row for _, row in read_table(str(file))]
        [{'id1': '7', 'id2': '8'}]
    """
    is_told = format_of_path(path) is not None or Path(path).is_dir()
    for source in open_sources([path], format=None if is_told else "jsonl"):
        if isinstance(source, JsonlSource):
            source.is_cut = is_cut
        try:
            for number, row in source.rows():
                yield f"{source.name}:{number}", row
        finally:
            source.close()


def _without_marks(files: list[InputFile]) -> list[InputFile]:
    """Skip the files of Spark, Delta and others next to tables: names that begin with "_".

    Among texts such a name is a document, and so is each that is named itself.
    """
    marked = [not x.is_named and any(p[:1] == "_" for p in x.relative.split("/")) for x in files]
    others = [file for file, is_mark in zip(files, marked, strict=True) if not is_mark]
    return others if any(map(_holds_records, others)) else files


def _check_once(files: Sequence[InputFile]) -> None:
    """Refuse what would make every document of a file its own duplicate."""
    first: dict[str, str] = {}
    for file in files:
        real = file.path if is_uri(file.path) else os.path.realpath(file.path)
        if real in first:
            also = "" if first[real] == file.path else f", once as {first[real]}"
            raise UsageError(
                f"{file.path} is named twice{also}: all of its documents would be duplicates; name"
                " it once"
            )
        first[real] = file.path


def _are_documents(files: Sequence[InputFile]) -> bool:
    """Whether the extensions say that each file is a document; UsageError for a mixture."""
    documents = [file for file in files if not _holds_records(file)]
    for file in documents:
        if file.is_named and not is_text(file.path):
            _check_foreign(find_input(file.path))
            raise UsageError(
                f"{file.path}: unknown extension; known are {', '.join(KNOWN_EXTENSIONS)},"
                f" the text ones also with {' or '.join(CODECS)}; archives: {', '.join(ARCHIVES)};"
                " to read the whole file as one document, pass --format text"
            )
    if documents and len(documents) < len(files):
        records = next(file for file in files if _holds_records(file))
        nested = next((x for x in documents if x.inside and is_archive(x.path)), None)
        if nested is not None:
            raise DataError(
                f"{nested.path} is an archive in an archive, which is not read: unpack the outer"
                " one, and name its folder"
            )
        raise UsageError(
            f"{records.path} holds records, and {documents[0].path} is one document; name"
            " those that you mean, such as 'folder/**/*.parquet', or pass --format text to read"
            " every file as one document"
        )
    return bool(documents)


def _check_foreign(origin: Input) -> None:
    """Raise DataError for what other programs read: as one document it would help nobody."""
    kind = kind_of_path(origin.name)
    if kind is not None:
        raise DataError(f"{origin.name}: it is {kind.name}, which cannot be read: {kind.advice}")
    if isinstance(origin, RegularInput):
        with origin.open() as reader:
            reader.piece(HEAD_BYTES, 0)


def _holds_records(file: InputFile) -> bool:
    return file.path == "-" or format_of_path(file.path) is not None


def _open_text(files: Sequence[InputFile], tmp: str | None, input_format: InputFormat) -> Source:
    sized = []
    for file in files:
        nbytes: int | None = file.nbytes
        if file.is_named:
            nbytes = find_input(file.path, tmp).nbytes
            if nbytes is None:
                raise UsageError(f"{file.path}: a text file cannot be a stream; use a file")
        sized.append(replace(file, nbytes=nbytes or 0))
    return TextFilesSource(sized, input_format.encoding)


def open_records(file: InputFile, tmp: str | None, input_format: InputFormat) -> Source:
    """Open one file of records; FileError if it is not readable."""
    name = (
        input_format.name or ("jsonl" if file.path == "-" else format_of_path(file.path)) or "jsonl"
    )
    origin = _input_of(file, tmp)
    if name in _OF_TEXT:
        head = _head(origin)
        encoding = input_format.encoding or encoding_of_bom(head)
        if encoding is not None and encoding not in UTF8:
            origin = DecodedInput(origin, _byte_order(encoding, head))
        if (
            input_format.name is None
            and head
            and ending_of(file.path) == ".json"
            and begins_array(origin)
        ):
            name = "json"
    source = FORMATS[name](origin)
    if isinstance(source, CsvSource):
        source.delimiter_given = input_format.delimiter
    elif isinstance(source, ExcelSource):
        source.sheet_given = input_format.sheet
    elif isinstance(source, JsonArraySource):
        source.records_given = input_format.records
    if file.inside is not None:
        source.archive = file.inside.archive_path
    if file.path != "-":
        source.relative = source.named(file.relative)
    return source


def _input_of(file: InputFile, tmp: str | None) -> Input:
    if file.inside is not None:
        return EntryInput(file.path, file.inside, tmp)
    return find_input(file.path, tmp, file.at)


def _head(origin: Input) -> bytes:
    """The first bytes of a file here; none of what would have to be fetched or is a stream."""
    if not isinstance(origin, (RegularInput, EntryInput)):
        return b""
    with origin.open() as reader:
        return reader.read(_HEAD_BYTES)


def _byte_order(encoding: str, head: bytes) -> str:
    """UTF-16 and UTF-32 with their byte order, so that its mark is a character like others."""
    if encoding not in {"utf-16", "utf-32"}:
        return encoding
    return encoding_of_bom(head) or f"{encoding}-{sys.byteorder[0]}e"
