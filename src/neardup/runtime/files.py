"""Local files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from neardup.errors import FileError

__all__ = ["sync_folder", "write_whole"]


def write_whole(path: str, data: bytes) -> None:
    """Write a file aside, sync it, and rename it to its path.

    Raises:
        FileError: If that fails; what was at the path before is still there then.
    """
    final = Path(path).resolve()
    aside = final.with_name(f".{final.name[:50]}.{secrets.token_hex(4)}.tmp")
    try:
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(final)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from None
    finally:
        aside.unlink(missing_ok=True)
    sync_folder(final.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
