"""A copy of a live index: links to its files, which never change, and a copy of its log.

The log is copied as one transaction left it. Its manifest names the files; if a merge replaces one
before it is linked, the log is copied again. The folder gets its name when everything is in it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING, Final

from neardup.errors import FileError
from neardup.index.durable.log_entries import Manifest
from neardup.index.durable.log_store import LogStore
from neardup.runtime.storage.durable_files import file_failure, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["back_up"]

TRIES: Final = 20
LOG: Final = "log-1.mdb"


def back_up(store: LogStore, target: Path) -> None:
    """Make a folder with the last commit.

    Args:
        store: The index.
        target: A folder that does not exist or is empty; on another disk files are copied.

    Raises:
        FileError: If it exists, or cannot be written.
    """
    if store.path.resolve() in target.resolve().parents:
        raise FileError(f"{target} is in the index: back up to a folder elsewhere")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileError(f"{target} exists and is not empty: name a new folder")
    aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(TRIES):
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            with contextlib.closing(store.pin()) as reading:  # which keeps the file open
                reading.environment.copy(aside / LOG)
            if _linked(store, aside):
                break
        else:
            raise FileError(
                f"cannot back up {store.path}: it kept changing during the read; try again"
            )
        sync_folder(aside)
        if target.exists():
            target.rmdir()
        aside.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise file_failure("write", target, error) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _linked(store: LogStore, aside: Path) -> bool:
    """Whether all files that the copied log names are next to it now."""
    copied = LogStore(aside, readonly=True)
    try:
        manifest = copied.changes(-1, 0).manifest or Manifest()
    finally:
        copied.close()
    with contextlib.suppress(OSError):
        (aside / f"{LOG}-lock").unlink()
    for entry in manifest.files:
        try:
            _link(store.file(entry.name), aside / entry.name)
        except FileNotFoundError:
            return False
    return True


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or one without links
        shutil.copyfile(source, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())
