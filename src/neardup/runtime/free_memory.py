"""The memory budget: its default, and its form on the command line."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from neardup.errors import UsageError
from neardup.runtime.limits import allowed_memory, unused_memory

__all__ = ["default_memory", "free_memory", "memory_bytes"]

LEAST: Final = 64 << 20
_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def default_memory() -> int:
    """Half of the memory of the machine or container, at most 4 GiB; bytes."""
    physical = _physical()
    return max(LEAST, min(4 << 30, min(physical, allowed_memory() or physical) // 2))


def free_memory() -> int:
    """The bytes free now; half of the machine's memory where the system does not say.

    In a container, no more than is left of what it may take.
    """
    left, free = unused_memory(), _free_of_machine()
    return free if left is None else min(free, left)


def _free_of_machine() -> int:
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = dict(line.split(":") for line in meminfo.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) << 10
    return _physical() // 2


def _physical() -> int:
    """The machine's memory; 4 GiB where the system does not say."""
    if not hasattr(os, "sysconf"):
        return 4 << 30
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_bytes(size: str | int | None) -> int:
    """The bytes of a budget such as "2G"; None means the default.

    Raises:
        UsageError: If it is not a size, or below 64M.

    Example:
        >>> memory_bytes("1.5G")
        1610612736
    """
    if size is None:
        return default_memory()
    match = _SIZE.fullmatch(str(size).strip())
    if match is None:
        raise UsageError(f"memory is {size!r}: use a size such as 500M or 4G")
    nbytes = int(float(match[1]) * (1 << _UNITS[match[2].lower()]))
    if nbytes < LEAST:
        raise UsageError(f"memory is {size!r}: use at least {LEAST >> 20}M")
    return nbytes
