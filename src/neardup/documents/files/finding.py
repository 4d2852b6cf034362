"""Files for the names on the command line: folders are listed, patterns expanded."""

from __future__ import annotations

import errno
import glob
import os
import posixpath
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from neardup.documents.files.problems import file_error, quoted
from neardup.documents.files.remote import as_local, is_uri, locate, remote_errors
from neardup.errors import DataError, FileError

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

__all__ = ["ArchivedFile", "InputFile", "check_relative", "find_files", "is_chained", "path_below"]

_SEPARATORS: Final = re.compile(r"[/\\]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_CHAIN: Final = "::"


def path_below(folder: str, relative: str) -> str:
    """The path of a file in an output folder.

    Args:
        folder: A path or a URI.
        relative: The file's path below the named folder, with slashes.

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
        raise _refused(relative, folder, "it is not a name of a file")
    if not first or _DRIVE.match(first):
        raise _refused(relative, folder, "it begins at a root")
    if ".." in parts:
        raise _refused(relative, folder, '".." is in it')
    if not parts[-1] or parts[-1] == "." or "\0" in relative:
        raise _refused(relative, folder, "it is not a name of a file")
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


class ArchivedFile(Protocol):
    """A file in an archive."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""

    @property
    def archive_path(self) -> str:
        """The path of the archive."""

    def open(self) -> io.RawIOBase:
        """Start reading it; DataError at damage."""

    def stamp(self) -> tuple[int, int | str]:
        """The size, and the archive's time of change."""

    def check_unchanged(self) -> None:
        """Raise FileError if the archive changed."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file.

    Args:
        path: A path, a URI or "-", as messages call it.
        relative: Its path below the folder or pattern that was named, with slashes; its base name
            if it was named itself.
        nbytes: Its size as it was listed; 0 if it was named itself.
        is_named: Whether it was named itself.
        at: The path at which it is opened, for a process of another working folder; by default
            `path`.
        inside: The file in an archive, if it is in one.
    """

    path: str
    relative: str
    nbytes: int = 0
    is_named: bool = False
    at: str | None = None
    inside: ArchivedFile | None = None

    @property
    def place(self) -> str:
        """The path at which it is opened."""
        return self.path if self.at is None else self.at


def find_files(path: str) -> list[InputFile]:
    """Expand one argument: a file, a folder, a pattern, each also as a URI.

    Folders give every regular file at any depth, patterns (*, ?, [...], and ** for folders at any
    depth) the files that match, both sorted by path and without hidden ones.

    Raises:
        DataError: For a folder without files.
        FileError: If no file matches, or a folder cannot be read.
    """
    path = as_local(path)
    if path == "-":
        return [InputFile(path, path, is_named=True)]
    if is_uri(path):
        return _find_remote(path)
    if os.path.isdir(path):  # noqa: PTH112
        return _checked(path, sorted(_walk(path, ""), key=_relative))
    if not glob.has_magic(path) or os.path.lexists(path):
        return [InputFile(path, os.path.basename(path), is_named=True)]  # noqa: PTH119
    base = _fixed_part(path)
    return _checked(path, [_local(x, base) for x in sorted(glob.glob(path, recursive=True))  # noqa: PTH207
                           if os.path.isfile(x)], is_pattern=True)  # noqa: PTH113  # fmt: skip


def _walk(folder: str, prefix: str) -> Iterator[InputFile]:
    folders = [(folder, prefix)]
    while folders:
        folder, prefix = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append((entry.path, f"{prefix}{entry.name}/"))
                    elif _is_file(entry):
                        nbytes = entry.stat().st_size
                        yield InputFile(entry.path, prefix + entry.name, nbytes)
        except OSError as error:
            raise file_error(folder, "read", error) from None


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is a regular file, or a link to one; a link to itself counts as broken."""
    try:
        return entry.is_file()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise


def _local(path: str, base: str) -> InputFile:
    try:
        nbytes = os.stat(path)[stat.ST_SIZE]  # noqa: PTH116
    except OSError as error:
        raise file_error(path, "read", error) from None
    return InputFile(path, os.path.relpath(path, base or ".").replace(os.sep, "/"), nbytes)


def _find_remote(uri: str) -> list[InputFile]:
    fs, key = locate(uri)
    with remote_errors(uri, "read"):
        if glob.has_magic(key) and not fs.exists(key):
            listed, base, is_pattern = fs.glob(key, detail=True), _fixed_part(key), True
        elif uri.endswith("/") or (not fs.isfile(key) and fs.isdir(key)):
            if not fs.isdir(key):
                raise FileError(f"cannot read {uri}: No such file or directory")
            listed, base, is_pattern = fs.find(key, detail=True), key, False
        else:
            return [InputFile(uri, posixpath.basename(key), is_named=True)]
    prefix = f"{base.rstrip('/')}/" if base else ""
    files = []
    for name, info in listed.items():
        if info["type"] != "file":
            continue
        if not name.startswith(prefix) or is_chained(name[len(prefix) :]):
            raise DataError(
                f"{uri}: its listing names {quoted([name])}, which would be read from elsewhere;"
                " name the files that you want"
            )
        relative = name[len(prefix) :]
        if not _is_hidden(relative):
            files.append(InputFile(fs.unstrip_protocol(name), relative, _size(info)))
    return _checked(uri, sorted(files, key=_relative), is_pattern=is_pattern)


def _checked(path: str, files: list[InputFile], *, is_pattern: bool = False) -> list[InputFile]:
    if not files and is_pattern:
        raise FileError(f"cannot read {path}: no file matches the pattern")
    if not files:
        raise DataError(f"{path}: the folder has no documents; name one with files")
    return files


def _fixed_part(pattern: str) -> str:
    """The folder above the first part of the path that is a pattern."""
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:first]) or ("/" if pattern.startswith("/") else "")


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(".") for part in relative.split("/"))


def _size(info: dict[str, Any]) -> int:
    return int(info.get("size") or 0)


def _relative(file: InputFile) -> str:
    return file.relative
