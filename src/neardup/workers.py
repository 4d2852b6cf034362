"""How many threads to use."""

from __future__ import annotations

import os

from neardup.errors import UsageError

__all__ = ["worker_count"]


def worker_count(workers: int | None) -> int:
    """Check a number of threads; None means the processors that this process may use.

    Raises:
        UsageError: If it is not 1 or more.

    Example:
        >>> worker_count(2)
        2
    """
    if workers is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if not isinstance(workers, int) or workers < 1:
        raise UsageError(f"workers is {workers!r}: use a whole number from 1 up")
    return workers
