"""The table of formats, and opening inputs by it. A new format is one file and one row here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from neardup.documents.extensions import EXTENSIONS, format_of_path
from neardup.documents.files.compression import CODECS
from neardup.documents.files.finding import find_files
from neardup.documents.files.inputs import find_input
from neardup.documents.formats.arrow import ArrowSource
from neardup.documents.formats.csv import CsvSource, TsvSource
from neardup.documents.formats.jsonl import JsonlSource
from neardup.documents.formats.parquet import ParquetSource
from neardup.documents.formats.text_files import TEXT_EXTENSIONS, TextFilesSource
from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neardup.documents.files.finding import FoundFile
    from neardup.documents.files.inputs import Input
    from neardup.documents.source import Source

__all__ = ["FORMATS", "open_sources"]

FORMATS: Final[dict[str, Callable[[Input], Source]]] = {
    "jsonl": JsonlSource,
    "csv": CsvSource,
    "tsv": TsvSource,
    "parquet": ParquetSource,
    "arrow": ArrowSource,
}
_TEXT: Final = "text"


def open_sources(
    paths: Sequence[str],
    tmp: str | None = None,
    format: str | None = None,  # noqa: A002
) -> list[Source]:
    """Find every input and check it before any is read.

    Args:
        paths: Files, folders, patterns in glob's language, URIs, or "-" for standard input (JSON
            lines unless `format` says otherwise). Files with none of EXTENSIONS are documents, one
            each, if all are; folders and patterns may hold any, others must be TEXT_EXTENSIONS.
        tmp: Folder for the temporary copy of a stream; the system's own if None.
        format: A key of FORMATS that overrides the extensions, or "text": each file is a document.

    Raises:
        UsageError: For an unknown format, files that are documents among files of records, or
            standard input named twice.
        DataError: For a folder without files.
        FileError: If an input is missing or not readable.

    Example:
        >>> open_sources(["-"])[0].name
        '<stdin>'
    """
    if format is not None and format not in {*FORMATS, _TEXT}:
        raise UsageError(f"unknown format {format!r}: use one of {', '.join([*FORMATS, _TEXT])}")
    if list(paths).count("-") > 1:
        raise UsageError("standard input (-) is named twice; name it once")
    files = [file for path in paths for file in find_files(path)]
    if format == _TEXT or (format is None and _are_documents(files)):
        return [_open_text(files, tmp)] if files else []
    return [_open_records(file, tmp, format) for file in files]


def _are_documents(files: Sequence[FoundFile]) -> bool:
    """Whether the extensions say that each file is a document; UsageError for a mixture."""
    documents = [file for file in files if not _holds_records(file)]
    for file in documents:
        if file.is_named and not _is_text(file.path):
            find_input(file.path)
            raise UsageError(
                f"{file.path}: unknown extension; known are {', '.join(EXTENSIONS)},"
                f" the text ones also with {' or '.join(CODECS)};"
                " to read the whole file as one document, pass --format text"
            )
    if documents and len(documents) < len(files):
        records = next(file for file in files if _holds_records(file))
        raise UsageError(
            f"{records.path} holds records, and {documents[0].path} is one document; name them in"
            " two runs, or pass --format text to read every file as one document"
        )
    return bool(documents)


def _holds_records(file: FoundFile) -> bool:
    return file.path == "-" or format_of_path(file.path) is not None


def _is_text(path: str) -> bool:
    plain = path.lower()
    for ending in CODECS:
        plain = plain.removesuffix(ending)
    return plain.endswith(TEXT_EXTENSIONS)


def _open_text(files: Sequence[FoundFile], tmp: str | None) -> Source:
    sized = []
    for file in files:
        nbytes: int | None = file.nbytes
        if file.is_named:
            nbytes = find_input(file.path, tmp).nbytes
            if nbytes is None:
                raise UsageError(f"{file.path}: a text file cannot be a stream; use a file")
        sized.append(replace(file, nbytes=nbytes or 0))
    return TextFilesSource(sized)


def _open_records(file: FoundFile, tmp: str | None, forced: str | None) -> Source:
    name = forced or ("jsonl" if file.path == "-" else format_of_path(file.path)) or "jsonl"
    source = FORMATS[name](find_input(file.path, tmp))
    if file.path != "-":
        source.relative = file.relative
    return source
