"""Durable local files: written whole or not at all, with synced folders, and locks."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import FileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "HAS_PLACED_IO",
    "LockHeldError",
    "check_system",
    "disk_full",
    "file_failure",
    "lock_file",
    "name_as_text",
    "path_of",
    "sync_folder",
    "unlock",
    "write_whole",
    "written_aside",
]

HAS_PLACED_IO: Final = hasattr(os, "preadv") and hasattr(os, "pwritev")
"""Whether the system reads and writes files at an offset; Windows does not."""
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_locks: Final[set[int]] = set()
"""The descriptors of the locks that this process holds."""


def name_as_text(path: str) -> str:
    r"""A file name as text for any output; bytes that are not UTF-8 become escapes.

    Example:
        >>> name_as_text("caf\udce9.jsonl")
        'caf\\xe9.jsonl'
    """
    try:
        return os.fsencode(path).decode(errors="backslashreplace")
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        return path.encode(errors="backslashreplace").decode()


def path_of(path: Any) -> Path:
    """The local path that a caller names, of an index's folder or a file.

    Raises:
        UsageError: If it is not a path, or an address such as http://host/index.

    Example:
        >>> path_of(None)
        Traceback (most recent call last):
        neardup.errors.UsageError: path is NoneType: None: use a string or a pathlib.Path
    """
    if isinstance(path, str) and _ADDRESS.match(path):
        raise UsageError(
            f"{path} is an address, and an index is a folder on this machine: copy it here and name"
            " the folder"
        )
    try:
        return Path(path)
    except TypeError:
        raise UsageError(
            f"path is {type(path).__name__}: {path!r:.60}: use a string or a pathlib.Path"
        ) from None


def write_whole(path: str, data: bytes) -> None:
    """Write a file aside, sync it, and rename it to its path.

    Raises:
        FileError: If that fails; what was at the path before is still there then.
    """
    final = Path(path).resolve()
    try:
        with written_aside(final, secrets.token_hex(4)) as aside, aside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise file_failure("write", path, error) from None


@contextlib.contextmanager
def written_aside(final: Path, mark: str | None = None) -> Iterator[Path]:
    """A context with a temporary path, whose file is then synced and renamed, or removed.

    Args:
        final: Its path.
        mark: Part of the name; by default the number of the process.

    Raises:
        OSError: If it cannot be renamed.
    """
    aside = final.with_name(f".{final.name[:50]}.{mark or os.getpid()}.tmp")
    try:
        yield aside
        aside.replace(final)
        sync_folder(final.parent)
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system allows it.

    Raises:
        OSError: If the disk fails.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return  # a folder may take files and not be readable
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_system(what: str) -> None:
    """Refuse, with UsageError, a system without locks or reads at an offset.

    Example:
        >>> check_system("an index folder")
    """
    if not HAS_PLACED_IO:
        raise UsageError(f"{what} needs a POSIX system: use Linux, macOS or WSL")


class LockHeldError(Exception):
    """The error of a lock that another process holds.

    Args:
        holder: Its number, and what else is known of it.
    """

    def __init__(self, holder: str) -> None:
        """Store the process that holds the lock."""
        super().__init__(holder)
        self.holder = holder


def lock_file(path: Path) -> int:
    """Lock a file, created if missing, until `unlock` or the end of this process.

    A child that is forked does not hold it on.

    Returns:
        Its descriptor.

    Raises:
        LockHeldError: If another process holds it.
        OSError: If it cannot be opened.
        UsageError: If the system has no locks.
    """
    check_system(f"{path}, a file lock,")
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise LockHeldError(_described(holder)) from None
    with contextlib.suppress(OSError):  # the number is for a message only; the disk may be full
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    _locks.add(descriptor)
    return descriptor


def unlock(descriptor: int) -> None:
    """Release a lock."""
    if descriptor in _locks:  # else a child has closed it
        _locks.discard(descriptor)
        os.close(descriptor)


def _described(holder: str) -> str:
    """The number of a process, as text, and whether it has ended."""
    if not holder.isdigit():
        return "unknown"
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return f"{holder}, which has ended, or in one that it started"
    except OSError:
        pass
    return holder


def _close_locks() -> None:
    """Close the locks in a child process; the parent keeps its own."""
    for descriptor in _locks:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_locks)


_FULL: Final = {errno.ENOSPC, errno.EDQUOT}


def file_failure(action: str, what: str | Path, error: OSError, instead: str = "") -> FileError:
    """The error about a failed system call on a file.

    Args:
        action: What could not be done: "write".
        what: To a path, or to what else has a name.
        error: Its reason.
        instead: What a user may do instead of mending the reason.

    Example:
        >>> str(file_failure("write", "a.csv", OSError(errno.EACCES, "Permission denied")))
        'cannot write a.csv: Permission denied'
        >>> full = OSError(errno.ENOSPC, "No space left on device")
        >>> str(file_failure("write", "a.csv", full, "choose another folder"))
        'cannot write a.csv: no space left on device; free some space, or choose another folder'
    """
    if error.errno in _FULL:
        return disk_full(action, what, f", or {instead}" if instead else "")
    reason = error.strerror or str(error)
    return FileError(f"cannot {action} {what}: {reason}{'; ' * bool(instead)}{instead}")


def disk_full(action: str, what: str | Path, then: str = "") -> FileError:
    """The error about a full disk; `then` follows "free some space"."""
    return FileError(f"cannot {action} {what}: no space left on device; free some space{then}")
