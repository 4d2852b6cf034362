"""The folder of a durable index: which LMDB file counts, who holds the lock, what can go."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from neardup.errors import DataError, FileError
from neardup.runtime.storage.files import LockHeldError, lock_file

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "ENVIRONMENTS",
    "current_environment",
    "locked",
    "remove_environment",
    "remove_files",
]

ENVIRONMENTS: Final = "log-*.mdb"


def current_environment(path: Path) -> Path:
    """The LMDB file that counts.

    Raises:
        FileNotFoundError: If there is no folder or it is empty.
        DataError: If it is no index.
    """
    if path.exists() and not path.is_dir():
        raise DataError(f"{path} is a file, so it is no index: an index is a folder")
    found = sorted(path.glob(ENVIRONMENTS), key=lambda x: int(x.stem.partition("-")[2]))
    if found:
        return found[-1]
    raise FileNotFoundError(path)


def locked(path: Path) -> int:
    """Take the writer's lock; the descriptor holds it until it is closed."""
    try:
        return lock_file(path / "lock")
    except OSError as error:
        raise FileError(
            f"cannot write {path}: {error.strerror or error}; open it with readonly=True"
        ) from None
    except LockHeldError as error:
        raise FileError(
            f"{path} is open for writing in process {error.holder}: wait until it closes the index,"
            " or open it with readonly=True"
        ) from None


def remove_files(paths: list[Path]) -> None:
    """Remove files, as far as that can be done."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def remove_environment(path: Path) -> None:
    """Remove an LMDB file and its lock, as far as that can be done."""
    for each in (path, path.with_name(path.name + "-lock")):
        with contextlib.suppress(OSError):
            each.unlink()
