"""Processor seconds of each thread of a run, by phase, and how many cores they could use.

Linux only. Another process looks at /proc while the run goes on; the run itself looks when a phase
begins (`phased.py`), so that phases are cut exactly. What the process has used and no look shows is
of threads that ended between two looks.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness import phased

START: Final = "start"
SECONDS_A_LOOK: Final = 0.02
FUTEX: Final = "202"  # on x86-64
PROCESS_CLOCK: Final = 2
STATE_BYTES: Final = 1 << 20  # more than the interpreter's state takes


@dataclass
class Phase:
    """What threads used in a phase, in seconds.

    Args:
        threads: By thread.
        unseen: Of threads that ended between two looks.
        waiting: All threads together, for the interpreter's lock.
        wall: From its beginning to its end.
    """

    threads: dict[str, float] = field(default_factory=dict)
    unseen: float = 0.0
    waiting: float = 0.0
    wall: float = 0.0

    @property
    def total(self) -> float:
        """Processor seconds of all threads."""
        return sum(self.threads.values()) + self.unseen

    @property
    def largest(self) -> float:
        """Those of the thread that used most."""
        return max(self.threads.values(), default=0.0)

    def facts(self) -> dict[str, float]:
        """What a record has of it."""
        return {
            "all": round(self.total, 3),
            "largest": round(self.largest, 3),
            "ended unseen": round(self.unseen, 3),
            "waiting for the lock": round(self.waiting, 3),
            "wall": round(self.wall, 3),
        }

    def least(self, cores: int) -> float:
        """The seconds that the phase takes at least on so many cores."""
        return max(self.largest, self.total / cores)


def work(run: dict[str, Phase]) -> float:
    """Processor seconds of a run, start apart."""
    return sum(phase.total for name, phase in run.items() if name != START)


def bound(one: dict[str, Phase], many: dict[str, Phase], cores: int) -> float:
    """How many times as quick as one worker a run may be on some cores at most, start apart."""
    return work(one) / sum(phase.least(cores) for name, phase in many.items() if name != START)


def of_run(arguments: list[str]) -> dict[str, Phase]:
    """The phases of a run of `neardup`, in their order.

    Raises:
        RuntimeError: With the end of its error output, if it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        marks, complaints = Path(folder, "marks"), Path(folder, "complaints")
        command = [sys.executable, phased.__file__, str(marks), *arguments]
        with complaints.open("wb") as errors:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)  # noqa: S603
        looks = watched(process.pid)
        process.wait()
        if process.returncode:
            raise RuntimeError(f"{command}: {complaints.read_text()[-400:]}")
        state, *start = marks.read_text().splitlines()
        looks += map(json.loads, start)
    return phases(sorted(looks, key=lambda look: float(look["at"])), int(state))


def watched(process: int) -> list[dict[str, Any]]:
    """Look at a process until it ends."""
    looks: list[dict[str, Any]] = []
    tasks, clock = Path(f"/proc/{process}/task"), (~process << 3) | PROCESS_CLOCK
    # The process is ours and has not been waited for, so its number is not given to another one.
    while (state := state_of(process)) is not None and state != "Z":
        seen, waiting = {}, []
        for task in tasks.iterdir():
            with contextlib.suppress(OSError):
                seen[task.name] = phased.nanoseconds(task)
                waiting.append(waits_at(task))
        with contextlib.suppress(OSError):
            used = time.clock_gettime_ns(clock)
            looks.append(
                {"at": time.monotonic(), "threads": seen, "waiting": waiting, "process": used}
            )
        time.sleep(SECONDS_A_LOOK)
    return looks


def state_of(process: int) -> str | None:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return None


def waits_at(task: Path) -> int:
    """The address of the lock that a thread waits for, if its wait has a time limit; else 0."""
    call = (task / "syscall").read_text().split()
    return int(call[1], 16) if call[0] == FUTEX and int(call[4], 16) else 0


def phases(looks: list[dict[str, Any]], state: int) -> dict[str, Phase]:
    """What was used between each two looks, by the phase that it was in.

    The interpreter's lock is in its state, other locks are not.
    """
    result: dict[str, Phase] = {START: Phase()}
    phase, used, process, at = result[START], dict[str, int](), 0, looks[0]["at"]
    for look in looks:
        before = sum(used.values())
        for thread, now in look["threads"].items():
            more = max(now - used.get(thread, 0), 0)
            phase.threads[thread] = phase.threads.get(thread, 0.0) + more / 1e9
            used[thread] = max(now, used.get(thread, 0))
        seen = sum(used.values()) - before
        phase.unseen += (look["process"] - process - seen) / 1e9
        process = look["process"]
        waiting = [x for x in look.get("waiting", ()) if 0 <= x - state < STATE_BYTES]
        phase.waiting += len(waiting) * (look["at"] - at)
        phase.wall += look["at"] - at
        at = look["at"]
        if "phase" in look:
            phase = result.setdefault(look["phase"], Phase())
    return result
