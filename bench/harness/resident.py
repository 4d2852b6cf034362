"""How much memory of its own a process takes while something runs: not what is mapped of files."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY_SECONDS = 0.02


@dataclass
class Peak:
    """The most so far, less what there was at first."""

    bytes: int = 0


@contextlib.contextmanager
def peak_of_own_memory() -> Iterator[Peak]:
    """The most that is added meanwhile, looked at every 20 ms."""
    peak, done, before = Peak(), threading.Event(), _own_bytes()

    def watch() -> None:
        while not done.wait(EVERY_SECONDS):
            peak.bytes = max(peak.bytes, _own_bytes() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _own_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))
