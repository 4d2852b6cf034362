"""The table of formats, and opening inputs by it. A new format is one file and one row here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.documents.compression import CODECS
from neardup.documents.csv import CsvSource, TsvSource
from neardup.documents.jsonl import JsonlSource
from neardup.documents.parquet import ParquetSource
from neardup.documents.spool import find_input
from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents.source import Source

__all__ = ["EXTENSIONS", "FORMATS", "format_of_path", "open_sources"]

FORMATS: Final[dict[str, type[Source]]] = {
    "jsonl": JsonlSource,
    "csv": CsvSource,
    "tsv": TsvSource,
    "parquet": ParquetSource,
}
EXTENSIONS: Final = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSED: Final = ("jsonl", "csv", "tsv")


def format_of_path(path: str) -> str | None:
    """Name the format that a path's extensions stand for, or None.

    Example:
        >>> format_of_path("news.JSONL.gz")
        'jsonl'
    """
    lowered = path.lower()
    for extension, name in EXTENSIONS.items():
        if lowered.endswith(extension):
            return name
        if name in _COMPRESSED and lowered.endswith(tuple(extension + end for end in CODECS)):
            return name
    return None


def open_sources(
    paths: Sequence[str],
    tmp: str | None = None,
    format: str | None = None,  # noqa: A002
) -> list[Source]:
    """Check every input before any is read.

    Args:
        paths: Files, or "-" for standard input (JSON lines unless `format` says otherwise).
        tmp: Folder for the temporary copy of a stream; the system's own if None.
        format: A key of FORMATS that overrides the extensions.

    Raises:
        UsageError: For an unknown format, or standard input named twice.
        FileError: If an input is missing, a folder, or not readable.

    Example:
        >>> open_sources(["-"])[0].name
        '<stdin>'
    """
    if format is not None and format not in FORMATS:
        raise UsageError(f"unknown format {format!r}: use one of {', '.join(FORMATS)}")
    if list(paths).count("-") > 1:
        raise UsageError("standard input (-) is named twice; name it once")
    return [_open_source(path, tmp, format) for path in paths]


def _open_source(path: str, tmp: str | None, forced: str | None) -> Source:
    origin = find_input(path, tmp)
    name = forced or ("jsonl" if path == "-" else format_of_path(path))
    if name is None:
        raise UsageError(
            f"{path}: unknown extension; known are {', '.join(EXTENSIONS)},"
            f" the text ones also with {' or '.join(CODECS)}"
        )
    return FORMATS[name](origin)
