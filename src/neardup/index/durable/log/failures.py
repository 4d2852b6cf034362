"""What goes wrong with an LMDB file, in plain words."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Final

import lmdb

from neardup.errors import DataError, FileError, UsageError
from neardup.index.segment_files import damaged
from neardup.runtime.storage.failures import disk_full, file_failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["TornReadError", "check_pages", "is_sound", "lmdb_errors"]

LITTLE_ROOM: Final = 1 << 16
MOST_CHECKED: Final = 4 << 20
"""Bytes of a file whose pages are looked at whenever it is opened, 15 ms a megabyte at most."""
TRIES: Final = 20
MOMENT: Final = 0.01
"""Seconds in which the time of a file's last change moves on if it is written."""


class TornReadError(FileError):
    """A file changed while it was read by one who has no place among its readers."""


@contextlib.contextmanager
def lmdb_errors(path: Path, action: str) -> Iterator[None]:
    """Word what LMDB and the system raise.

    Raises:
        FileError: For a failed call.
        DataError: For a damaged or foreign file.
        UsageError: For an index that is used after a fork.
    """
    try:
        yield
    except (
        lmdb.BadTxnError,  # what comes after one of the others
        lmdb.CorruptedError,
        lmdb.PageNotFoundError,
        lmdb.InvalidError,
        lmdb.NotFoundError,
    ) as e:
        raise damaged(path, str(e)) from None
    except lmdb.VersionMismatchError as error:
        raise DataError(f"{path} was written by another version of LMDB: {error}") from None
    except lmdb.BadRslotError as error:
        raise UsageError(
            f"{path} was opened before a fork: open it in the child: {error}"
        ) from None
    except lmdb.Error as error:
        if isinstance(error, lmdb.DiskError) or _is_full(path):
            then = " and commit again: what was committed is safe"
            raise disk_full(action, path, then) from None
        raise FileError(f"cannot {action} {path}: {error}; what was committed is safe") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise file_failure(action, path, error) from None


def _is_full(path: Path) -> bool:
    """Whether there is next to no room: LMDB calls a write that was cut short an I/O error."""
    with contextlib.suppress(OSError):
        room = os.statvfs(path.parent)
        return room.f_bavail * room.f_frsize < LITTLE_ROOM
    return False


def check_pages(path: Path, most: float = MOST_CHECKED) -> None:
    """Refuse a file with a page that LMDB would end the process for, before it sees the file.

    Somebody may write to it meanwhile: it is damaged if it was so twice and did not change between.

    Args:
        path: The file.
        most: Bytes of a file that is looked at.

    Raises:
        DataError: If it is damaged.
    """
    before = None
    for _ in range(TRIES):
        found = path.stat()
        if not 0 < found.st_size <= most or is_sound(path):
            return
        if before is not None and found.st_mtime_ns == before:
            raise damaged(path, "its pages do not agree")
        before = found.st_mtime_ns
        time.sleep(MOMENT)


def is_sound(path: Path) -> bool:
    """Whether every page that the file refers to is there and right."""
    try:
        from lmdb.verify import verify
    except ImportError:
        return True
    try:
        return not verify(str(path), subdir=False)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001  # whatever it stumbles over
        return False
