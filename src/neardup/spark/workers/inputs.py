"""Inputs as rows that travel: a file of records, or some text files, each of them a document."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from neardup.documents import Rejects, open_sources
from neardup.documents.files.below import path_below
from neardup.documents.files.finding import FoundFile
from neardup.documents.files.problems import file_error
from neardup.documents.formats.text_files import TextFilesSource
from neardup.features.frequencies import load_table
from neardup.fingerprinting.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, Source

__all__ = ["FILE", "Folder", "NamedRejects", "Shipped", "file_rows", "opened"]

FILE: Final = "path string, name string, format string, relative string"
"""`path` and `relative` are JSON, which can hold names that are not UTF-8. Of text files `path` is
a list: path, relative path, size, path as it was named."""

TEXT: Final = "text"
FILES_A_ROW: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Shipped:
    """A recipe on its way to the workers.

    Args:
        recipe: As JSON.
        table: Path of the document frequencies that it names, where the workers see it.
    """

    recipe: str
    table: str | None = None

    def made(self) -> Recipe:
        """The recipe, its table loaded."""
        if self.table is not None:
            _loaded(self.table)
        return Recipe.from_json(self.recipe)


@functools.cache
def _loaded(path: str) -> Any:
    return load_table(path)


def file_rows(sources: Sequence[Source]) -> list[tuple[str, str, str, str]]:
    """The rows (FILE) of inputs, in order; that of text files is several."""
    rows = []
    for source in sources:
        if source.format != TEXT:
            path, relative = json.dumps(_whole(source.path or "")), json.dumps(source.relative)
            rows.append((path, source.name, source.format, relative))
            continue
        found = cast("TextFilesSource", source).files
        files = [(_whole(x.path), x.relative, x.nbytes, x.path) for x in found]
        parts = (files[i : i + FILES_A_ROW] for i in range(0, len(files), FILES_A_ROW))
        rows += [(json.dumps(part), source.name, TEXT, "") for part in parts]
    return rows


def opened(file: dict[str, Any], told: InputFormat) -> Source:
    """Open a row (FILE) of `file_rows`, with its name there."""
    if file["format"] == TEXT:
        found = [FoundFile(*each[:3]) for each in json.loads(file["path"])]
        return TextFilesSource(found, told.encoding)
    path, relative = json.loads(file["path"]), json.loads(file["relative"])
    (source,) = open_sources([path], None, replace(told, name=file["format"]))
    source.name, source.relative = file["name"], relative
    return source


class NamedRejects(Rejects):
    """The rejects of a row (FILE), whose text files are called as they were named."""

    def __init__(self, path: str | None, file: dict[str, Any]) -> None:
        """Open the file aside; FileError if it cannot be created."""
        super().__init__(path)
        is_text = file["format"] == TEXT
        self._names = {x[0]: x[3] for x in json.loads(file["path"])} if is_text else {}

    def add(self, source_name: str, row: int, reason: str, record: bytes) -> None:
        """Count one bad record and write it down."""
        super().add(self._names.get(source_name, source_name), row, reason, record)


def _whole(path: str) -> str:
    return path if "://" in path else str(Path(path).absolute())


class Folder:
    """Where several tasks write kept text files; one that is written twice has the same bytes.

    Args:
        path: The folder.
    """

    def __init__(self, path: str) -> None:
        """Nothing is written yet."""
        self.path = path

    def add(self, relative: str, data: bytes) -> None:
        """Write one file; DataError if its name leads out of the folder, FileError if it fails."""
        target = Path(path_below(self.path, relative))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as error:
            raise file_error(relative, "write", error) from None
