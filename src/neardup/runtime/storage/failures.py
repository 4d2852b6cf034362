"""One wording for what the system refuses: what failed, on what, why, and what to do next."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from neardup.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["disk_full", "file_failure"]

_FULL: Final = {errno.ENOSPC, errno.EDQUOT}


def file_failure(action: str, what: str | Path, error: OSError, instead: str = "") -> FileError:
    """Word a failed system call.

    Args:
        action: What could not be done: "write".
        what: To a path, or to what else has a name.
        error: Its reason.
        instead: What a user may do instead, beside mending the reason.

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
    """Word a full disk; `then` goes on after "free some space"."""
    return FileError(f"cannot {action} {what}: no space left on device; free some space{then}")
