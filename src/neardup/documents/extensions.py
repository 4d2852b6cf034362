"""Formats by the extension of a path, and the hints about inputs that callers give."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from neardup.documents.files.archives import is_archive
from neardup.documents.files.compression import CODECS
from neardup.documents.sheets import check_writer
from neardup.errors import UsageError

__all__ = [
    "EXTENSIONS",
    "KEPT_EXTENSIONS",
    "KNOWN_EXTENSIONS",
    "PAGE_EXTENSIONS",
    "READ_EXTENSIONS",
    "TEXT_EXTENSIONS",
    "InputFormat",
    "check_extension",
    "check_page",
    "ending_of",
    "format_of_path",
    "is_page",
    "is_text",
]

_COMPRESSED: Final = ("jsonl", "csv", "tsv", "mbox", "warc")


EXTENSIONS: Final = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".xlsx": "excel",
}
READ_EXTENSIONS: Final = {".xlsm": "excel", ".xlsb": "excel", ".xls": "excel", ".ods": "excel"}
"""Extensions that can only be read: spreadsheets are written as .xlsx."""
KEPT_EXTENSIONS: Final = {".mbox": "mbox", ".warc": "warc", ".wet": "warc"}
"""Of inputs and of what is kept of them; no table is written so."""
PAGE_EXTENSIONS: Final = (".html", ".htm", ".xhtml")
TEXT_EXTENSIONS: Final = (".txt", ".text", ".log", ".md", ".markdown", ".rst", *PAGE_EXTENSIONS)
_FORMATS: Final = EXTENSIONS | READ_EXTENSIONS | KEPT_EXTENSIONS
KNOWN_EXTENSIONS: Final = (*_FORMATS, *TEXT_EXTENSIONS)
"""Of all files that are read but archives."""


@dataclass(frozen=True, slots=True)
class InputFormat:
    r"""Hints about all inputs in addition to their names; None means detection.

    Args:
        name: A key of FORMATS, or "text": each file is a document. "excel:SHEET" names a sheet too.
        delimiter: The character between the fields of CSV, "tab" or "\t" for a tab.
        encoding: Of texts: a name that Python knows, such as "cp1252".
        sheet: Of a workbook; by default the first that is not empty.
        records: Path of the list of records in a JSON document, such as "data" or "result.items".

    Raises:
        UsageError: For a delimiter that is not one character, an unknown encoding, or a path of
            records with another format.

    Example:
        >>> InputFormat(delimiter="tab").delimiter
        '\t'
    """

    name: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    records: str | None = None

    def __post_init__(self) -> None:
        """Check the hints, and shorten their names."""
        kind, colon, sheet = (self.name or "").partition(":")
        if kind == "excel" and colon:
            object.__setattr__(self, "name", kind)
            object.__setattr__(self, "sheet", sheet)
        mark = self.delimiter
        if mark is not None:
            mark = {"tab": "\t", "\\t": "\t"}.get(mark, mark)
            if len(mark) != 1 or not mark.isascii() or mark in '"\r\n':
                raise UsageError(
                    f"delimiter is {self.delimiter!r}: use one ASCII character, such as ; or tab"
                )
            object.__setattr__(self, "delimiter", mark)
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _known_encoding(self.encoding))
        if self.records is not None:
            if "" in self.records.split("."):
                raise UsageError(
                    f"records is {self.records!r}: name a list, such as data or result.items"
                )
            if self.name not in {None, "json"}:
                raise UsageError(
                    f"records is {self.records!r}, and the format is {self.name}: only a JSON"
                    " document has a list at a path"
                )
            object.__setattr__(self, "name", "json")

    @classmethod
    def of(cls, value: InputFormat | str | None) -> InputFormat:
        """The format, also from its name."""
        return value if isinstance(value, InputFormat) else cls(value)


def check_extension(path: str, *, keeps: bool = False) -> None:
    """Raise UsageError for an output with an extension in which nothing can be written.

    Args:
        path: Of the output.
        keeps: Whether it is for kept records; otherwise for a table.
    """
    ending = ending_of(path)
    if path == "-" or not ending:
        return
    if ending in READ_EXTENSIONS:
        raise UsageError(f"{path}: {ending} can be read but not written; name it .xlsx or .csv")
    if is_archive(path):
        raise UsageError(
            f"{path}: archives can be read but not written; name a folder, as in kept/"
        )
    if ending in KEPT_EXTENSIONS and not keeps:
        raise UsageError(f"{path}: {ending} is for kept records, not for tables; name it .csv")
    if format_of_path(path) == "excel":
        check_writer(path)
    if format_of_path(path) is None:
        raise UsageError(
            f"{path}: unknown extension {ending}; an output is one of {', '.join(EXTENSIONS)}, the"
            f" text ones also with {' or '.join(CODECS)}, or a folder, whose name ends in /"
        )


def check_page(path: str | None) -> None:
    """Raise UsageError for the path of a report whose extension says that it is not a page.

    Example:
        >>> check_page("report.html")
    """
    ending = "" if path is None else PurePath(path).suffix
    if ending.lower() not in {"", ".html", ".htm"}:
        raise UsageError(f"{path}: a report is an HTML page, not {ending}; name it .html")


def _known_encoding(name: str) -> str:
    try:
        codec = codecs.lookup(name)
        if isinstance("".encode(codec.name), bytes):
            return codec.name
    except (LookupError, TypeError, AttributeError, ValueError):
        pass
    raise UsageError(
        f"encoding is {name!r}: use one that Python knows, such as utf-8, utf-16, cp1252, latin-1,"
        " cp1254, gb18030 or shift_jis"
    )


def format_of_path(path: str) -> str | None:
    """Name the format that a path's extensions stand for, or None.

    Example:
        >>> format_of_path("news.JSONL.gz")
        'jsonl'
    """
    lowered = path.lower()
    for extension, name in _FORMATS.items():
        if lowered.endswith(extension):
            return name
        if name in _COMPRESSED and lowered.endswith(tuple(extension + end for end in CODECS)):
            return name
    return None


def ending_of(path: str) -> str:
    """The last extension of a path's name, compression left out, in small letters; "" without one.

    Example:
        >>> ending_of("out/News.JSONL.gz"), ending_of("out.d/news"), ending_of(".hidden")
        ('.jsonl', '', '')
    """
    name = _uncompressed(path).rstrip("/").rpartition("/")[2].lstrip(".")
    return "." + name.rpartition(".")[2] if "." in name else ""


def is_text(path: str) -> bool:
    """Whether the extension says that a whole file is one document."""
    return _uncompressed(path).endswith(TEXT_EXTENSIONS)


def is_page(path: str) -> bool:
    """Whether the extension says that a file is HTML."""
    return _uncompressed(path).endswith(PAGE_EXTENSIONS)


def _uncompressed(path: str) -> str:
    plain = path.lower()
    for ending in CODECS:
        plain = plain.removesuffix(ending)
    return plain
