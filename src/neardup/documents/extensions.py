"""Which format the extension of a path stands for."""

from __future__ import annotations

from typing import Final

from neardup.documents.files.compression import CODECS

__all__ = ["EXTENSIONS", "format_of_path"]

_COMPRESSED: Final = ("jsonl", "csv", "tsv")


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
}


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
