"""Inputs as rows for the workers: a file of records, or text files, each of them a document."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from neardup.documents.files.finding import InputFile, path_below
from neardup.documents.files.problems import file_error
from neardup.documents.formats.open import open_records
from neardup.documents.formats.text_files import TextFilesSource
from neardup.features.frequency_table import load_table
from neardup.fingerprinting.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, Source

__all__ = ["FILE", "FailedRanks", "Folder", "Shipped", "file_rows", "opened"]

FILE: Final = "path string, name string, format string, relative string"
"""`path` and `relative` are JSON, which can hold names that are not UTF-8. `path` is a list of
files: the path as it was named, relative path, size, and where workers open it."""

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

    def load(self) -> Recipe:
        """The recipe, its table loaded."""
        if self.table is not None:
            _loaded(self.table)
        return Recipe.from_json(self.recipe)


@functools.cache
def _loaded(path: str) -> Any:
    return load_table(path)


def file_rows(sources: Sequence[Source]) -> list[tuple[str, str, str, str]]:
    """The rows (FILE) of inputs, in order; an input of text files has one or more rows."""
    rows = []
    for source in sources:
        if source.format != TEXT:
            file = InputFile(source.path or "", source.relative, source.nbytes or 0)
            rows.append((_sent([file]), source.name, source.format, json.dumps(source.relative)))
            continue
        files = cast("TextFilesSource", source).files
        parts = (files[i : i + FILES_A_ROW] for i in range(0, len(files), FILES_A_ROW))
        rows += [(_sent(part), source.name, TEXT, "") for part in parts]
    return rows


def _sent(files: Sequence[InputFile]) -> str:
    return json.dumps([(x.path, x.relative, x.nbytes, _whole(x.path)) for x in files])


def opened(file: dict[str, Any], input_format: InputFormat) -> Source:
    """Open a row (FILE) of `file_rows`, with its name there."""
    files = json.loads(file["path"])
    input_files = [InputFile(path, relative, size, at=at) for path, relative, size, at in files]
    if file["format"] == TEXT:
        return TextFilesSource(input_files, input_format.encoding)
    source = open_records(input_files[0], None, replace(input_format, name=file["format"]))
    source.relative = json.loads(file["relative"])
    return source


def _whole(path: str) -> str:
    return path if "://" in path else str(Path(path).absolute())


class FailedRanks:
    """The inputs of a run that failed, shared between its tasks as files in a folder.

    Args:
        folder: Of the run; all workers see it.
    """

    def __init__(self, folder: str) -> None:
        """Name the folder of the run in which the tasks note failed inputs."""
        self._folder = Path(folder, "failed")

    def add(self, rank: int) -> None:
        """Let the other tasks know of the input at a place."""
        # Only ever added to: a task that sees too few of them reads more than it must, no less.
        self._folder.mkdir(exist_ok=True)
        Path(self._folder, f"{rank}").touch()

    def before(self, rank: int) -> bool:
        """Whether an input before a place is known to have failed."""
        return self._folder.is_dir() and any(int(x.name) < rank for x in self._folder.iterdir())


class Folder:
    """A folder in which tasks write kept text files; one that is written twice has the same bytes.

    Args:
        path: The folder.
    """

    def __init__(self, path: str) -> None:
        """Name the folder; it is made at the first write."""
        self.path = path

    def add(self, relative: str, data: bytes) -> None:
        """Write one file; DataError if its name leads out of the folder, FileError if it fails."""
        target = Path(path_below(self.path, relative))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as error:
            raise file_error(relative, "write", error) from None
