"""Small inputs, for which a command runs its kernels as plain Python and compiles nothing.

Compiling takes 15 seconds of a first run, and loading what is compiled a third of a later one.
Plain kernels compute the same bytes, a hundred times slower (decision 0024).
"""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from neardup.cli.signatures import Command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "FIRST",
    "MOST_FILES",
    "OWN_PROCESS",
    "SMALL",
    "PlainIfSmall",
    "has_plain_kernels",
    "is_small",
]

OWN_PROCESS: Final = {"has_own_process": True}
"""The object of a Click context whose process ends with the command."""


class Size(NamedTuple):
    """The size of all that a run reads, with a bound on its documents."""

    nbytes: int
    documents: int

    def fits(self, limit: int) -> bool:
        """Whether the bytes are within a limit, and those of all pairs within 128 times as many.

        A few kinds of runs compare all pairs of documents that are alike.
        """
        return self.nbytes <= limit and self.nbytes * self.documents <= 128 * limit


SMALL: Final = 1 << 15
"""Bytes up to which plain kernels are about as quick as it is to load compiled ones."""
FIRST: Final = 1 << 18
"""Bytes up to which they are quicker than compiling, where nothing is compiled yet."""

_SWITCH: Final = "NUMBA_DISABLE_JIT"
_READ: Final = ("against",)
"""Options that name inputs, as arguments do."""
_WRITTEN: Final = frozenset(
    ("clusters", "cut", "duplicates", "found", "output", "rejects", "report", "summary", "tmp")
)
"""Options whose files, where they exist, are replaced or not read."""
_OF_INDEX: Final = ".mdb"
_LOCK: Final = "-lock"
_TINY: Final = 16
"""Bytes of the head of an index; whatever is in so few of any file does not matter."""
MOST_FILES: Final = 200


class PlainIfSmall(Command):
    """A command of a process of its own that runs its kernels plain on small inputs."""

    def invoke(self, ctx: Any) -> Any:
        """Set the switch, which Numba and the kernels read when they are imported."""
        if ctx.obj is OWN_PROCESS and _SWITCH not in os.environ and is_small(self, ctx.params):
            os.environ[_SWITCH] = "1"
            # Hashes wrap modulo 2**64, of which NumPy warns and compiled code does not.
            warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
        return super().invoke(ctx)


def has_plain_kernels() -> bool:
    """Whether kernels run as plain Python in this process, so that none is loaded or compiled."""
    return os.environ.get(_SWITCH, "0") not in {"", "0"}


def is_small(command: Any, values: Mapping[str, Any]) -> bool:
    """Whether all that a command reads is small, as text and as an index."""
    if values.get("engine", "local") != "local":
        return False
    arguments = {each.name for each in command.params if each.param_type_name == "argument"}
    read = [path for name in (*arguments, *_READ) for path in _texts(values.get(name))]
    others = [
        path
        for name, value in values.items()
        if name not in arguments and name not in _READ and name not in _WRITTEN
        for path in _texts(value)
        if os.path.exists(path)  # noqa: PTH110 - any text, such as one with a null byte
    ]
    size = _size_of([*read, *others], by_line=values.get("format_name") is not None)
    return size is not None and (size.fits(SMALL) or (size.fits(FIRST) and not _has_kernels()))


def _texts(value: Any) -> list[str]:
    """The texts in the value of an option."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [each for each in values if isinstance(each, str)]


def _size_of(paths: list[str], *, by_line: bool) -> Size | None:
    """The size of all files; None where one is missing, too large, or of another kind.

    Args:
        paths: Files and folders.
        by_line: Whether text files have a document in each line too.
    """
    nbytes = documents = 0
    try:
        for path in paths:
            for file in _files(path):
                one = _size_of_file(file, FIRST - nbytes, by_line=by_line)
                if one is None:
                    return None
                nbytes, documents = nbytes + one.nbytes, documents + one.documents
    except (OSError, ValueError):
        return None
    return Size(nbytes, documents)


def _files(path: str) -> Iterator[str]:
    """A file, or those in a folder.

    Raises:
        OSError: Where a folder has too many.
    """
    if not os.path.isdir(path):  # noqa: PTH112
        yield path
        return
    with os.scandir(path) as entries:
        for count, entry in enumerate(entries):
            if count >= MOST_FILES:
                raise OSError(f"{path} has many files")
            if not entry.name.endswith(_LOCK):
                yield entry.path


def _size_of_file(path: str, most: int, *, by_line: bool) -> Size | None:
    """The size of a file of plain text or of an index of at most this size; None for another."""
    status = os.stat(path)  # noqa: PTH116
    if not stat.S_ISREG(status.st_mode) or status.st_size > most:
        return None
    ending = PurePath(path).suffix.lower()
    if ending == _OF_INDEX or status.st_size <= _TINY:
        return Size(status.st_size, 1)
    from neardup.documents.extensions import EXTENSIONS, TEXT_EXTENSIONS
    from neardup.documents.files.compression import MAGIC_BYTES, codec_of_bytes

    is_text = ending in TEXT_EXTENSIONS
    if not is_text and EXTENSIONS.get(ending) not in {"jsonl", "csv", "tsv"}:
        return None
    with open(path, "rb") as file:  # noqa: PTH123
        data = file.read()
    if codec_of_bytes(data[:MAGIC_BYTES]) is not None:
        return None
    if is_text and not by_line:
        return Size(len(data), 1)
    return Size(len(data), 1 + max(data.count(b"\n"), data.count(b"{")))


def _has_kernels() -> bool:
    from neardup.kernels.folders import hold_kernels

    return hold_kernels()
