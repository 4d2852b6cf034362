"""Run a command as a process of its own: seconds, peak memory, and what it prints."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

OWN: Final = re.compile(r"RssAnon:\s*(\d+)")


def timed(command: list[str], environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Measure one whole process, from its start to its end.

    The peak is that of the largest single process where the command starts others. Call it from a
    small process: a child's peak begins with the memory of the process that started it. It counts
    pages of mapped files, which the system takes back when it needs them; the peak of the rest, of
    this process alone, is looked at every 20 ms where the system is Linux.

    Returns:
        seconds, cpu_seconds (of all its processes), system_seconds (those of them that the system
        took), peak_gib, own_gib (without pages of files; 0 where it is not told), printed (its
        standard output).

    Raises:
        RuntimeError: With the end of its error output, if it fails.
    """
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complaints:
        start = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603
            command, stdout=printed, stderr=complaints, env=environment
        )
        watch = Watch(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        own = watch.end()
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        complaints.seek(0)
        text, complaint = printed.read().decode(), complaints.read().decode(errors="replace")
    if process.returncode:
        raise RuntimeError(f"{command} exited with {process.returncode}: {complaint[-400:]}")
    scale = 2**30 if sys.platform == "darwin" else 2**20
    return {
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "system_seconds": usage.ru_stime,
        "peak_gib": usage.ru_maxrss / scale,
        "own_gib": own / 2**20,
        "printed": text,
    }


class Watch:
    """Looks at the memory of a process that is not of files, until it is ended."""

    def __init__(self, process: int) -> None:
        self.path = Path(f"/proc/{process}/status")
        self.most = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self) -> None:
        """Keep the largest figure, in KiB."""
        with contextlib.suppress(OSError):
            while not self.over.wait(0.02):
                match = OWN.search(self.path.read_text())
                self.most = max(self.most, int(match[1]) if match else 0)

    def end(self) -> int:
        """The peak seen, in KiB."""
        self.over.set()
        self.thread.join()
        return self.most


def program() -> str:
    """The `neardup` of this interpreter."""
    return str(Path(sys.executable).parent / "neardup")


def touch(path: str) -> None:
    """Read a file to its end, so that it is in the page cache."""
    with Path(path).open("rb") as data:
        while data.read(1 << 24):
            pass


def first_lines(path: str, target: Path, count: int = 10) -> str:
    """Write the first lines of a file to another one; returns its path."""
    with Path(path).open("rb") as lines:
        target.write_bytes(b"".join(next(lines) for _ in range(count)))
    return str(target)
