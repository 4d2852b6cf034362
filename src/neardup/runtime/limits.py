"""Limits of a container: memory and processors of its control groups, version 1 or 2."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["allowed_memory", "allowed_processors", "unused_memory"]

ROOT: Final = Path("/")
UNLIMITED: Final = 1 << 60
"""The value of a group without limit in version 1 is about 2**63."""


def allowed_memory(root: Path = ROOT) -> int | None:
    """The most bytes that this process may take; None without a limit.

    Args:
        root: Of the file system that /proc and /sys are looked for in.
    """
    return min((limit for limit, _ in _memory(root)), default=None)


def unused_memory(root: Path = ROOT) -> int | None:
    """The bytes of `allowed_memory` not taken; droppable file pages count as free."""
    return min((max(0, limit - used) for limit, used in _memory(root)), default=None)


def allowed_processors(root: Path = ROOT) -> int | None:
    """The number of processors that this process may use, at least 1; None without a limit."""
    quotas = []
    for folder in _folders(root, "cpu"):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        with contextlib.suppress(ValueError):  # "max", or nothing
            if int(quota) > 0 and int(period) > 0:
                quotas.append(max(1, math.ceil(int(quota) / int(period))))
    return min(quotas, default=None)


def _memory(root: Path) -> Iterator[tuple[int, int]]:
    """The limit and the taken memory of each limited group."""
    for folder in _folders(root, "memory"):
        first = (folder / "memory.max").exists()
        limit = _number(folder / ("memory.max" if first else "memory.limit_in_bytes"))
        if limit is None or limit >= UNLIMITED:
            continue
        used = _number(folder / ("memory.current" if first else "memory.usage_in_bytes")) or 0
        names = {"inactive_file", "active_file"}
        if not first:
            names = {f"total_{name}" for name in names}
        counts = dict(line.split() for line in _text(folder / "memory.stat").splitlines())
        yield limit, max(0, used - sum(int(counts.get(name, 0)) for name in names))


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's groups and of their parents."""
    mounted = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = mounted / controller if controllers else mounted
        path = top / name.lstrip("/")
        while True:
            yield path
            if path == top:
                break
            path = path.parent


def _number(path: Path) -> int | None:
    try:
        return int(_text(path))
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
