"""Where a file that was found somewhere is written in an output folder: in it, whatever its name.

Names come from listings of buckets and servers, from archives and from folders that others filled.
They are data, so each goes through `path_below`, the one place that makes an output's path of one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from neardup.documents.files.problems import quoted
from neardup.documents.files.remote import is_uri
from neardup.errors import DataError

__all__ = ["check_relative", "is_chained", "path_below"]

_SEPARATORS: Final = re.compile(r"[/\\]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_CHAIN: Final = "::"


def path_below(folder: str, relative: str) -> str:
    """The path of a file in an output folder.

    Args:
        folder: A path or a URI.
        relative: The file's path below what was named, with slashes.

    Raises:
        DataError: If it would lie outside, by its name or through a symbolic link in the folder.

    Example:
        >>> path_below("s3://bucket/out/", "a.jsonl"), path_below("out/", "b/a.jsonl")
        ('s3://bucket/out/a.jsonl', 'out/b/a.jsonl')
    """
    check_relative(relative, folder)
    if is_uri(folder):
        return f"{folder.rstrip('/')}/{relative}"
    path = Path(folder, relative)
    if not path.resolve().is_relative_to(Path(folder).resolve()):
        raise _refused(relative, folder, "a symbolic link leads there")
    return str(path)


def check_relative(relative: str, folder: str) -> None:
    r"""Raise DataError if a name leads out of a folder; "/" and "\" separate on any system."""
    first, *others = _SEPARATORS.split(relative)
    parts = [first, *others]
    if not relative.strip("."):
        raise _refused(relative, folder, "it is no name of a file")
    if not first or _DRIVE.match(first):
        raise _refused(relative, folder, "it begins at a root")
    if ".." in parts:
        raise _refused(relative, folder, '".." is in it')
    if not parts[-1] or parts[-1] == "." or "\0" in relative:
        raise _refused(relative, folder, "it is no name of a file")
    if is_uri(folder) and is_chained(relative):
        raise _refused(relative, folder, f'"{_CHAIN}" in a URI begins another one')


def is_chained(name: str) -> bool:
    """Whether a name within a URI would be read as a URI of its own (fsspec's chains)."""
    return _CHAIN in name or "://" in name


def _refused(relative: str, folder: str, why: str) -> DataError:
    return DataError(
        f"{quoted([relative])} would be written outside of {folder} ({why}): rename it, or write to"
        " one file"
    )
