"""Run `neardup dedup` and note what its threads had used when each phase began.

`phased.py LOOKS ARGUMENT...` appends to the file LOOKS, at the beginning of each phase, a line of
JSON: time, phase, and the processor nanoseconds of each thread. The first line has the address of
the interpreter's own state instead. Loading the kernels with a few documents is part of the start.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = Path("/proc/self/task")


def main() -> None:
    """Mark the phases and call the command line."""
    path = sys.argv.pop(1)
    from neardup.__main__ import main as command
    from neardup.cli import screen
    from neardup.pipeline import deduplicate
    from neardup.pipeline.run.read_documents import Reader
    from neardup.pipeline.run.transaction import Transaction
    from neardup.runtime.progress import Stopwatch

    state = ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")
    with Path(path).open("w", encoding="utf8") as looks:
        looks.write(f"{ctypes.addressof(state)}\n")
        has_started = False

        def mark(phase: str) -> None:
            if not has_started:
                return
            seen = {}
            for task in TASKS.iterdir():
                with suppress(OSError):  # it has ended
                    seen[task.name] = nanoseconds(task)
            record = {"at": time.monotonic(), "phase": phase, "threads": seen}
            looks.write(json.dumps(record | {"process": time.process_time_ns()}) + "\n")
            looks.flush()

        warm_up = screen.warm_up

        def warms_up(work: Callable[[], object], *, by_features: bool = False) -> None:
            nonlocal has_started
            warm_up(work, by_features=by_features)
            has_started = True

        screen.warm_up = warms_up
        begin: Any = Stopwatch.begin

        def begins(watch: Stopwatch, step: str, total: int | None = None) -> None:
            mark(step)
            begin(watch, step, total)

        Stopwatch.begin = begins  # type: ignore[method-assign]
        marked(Reader, "finish", mark, "end of reading")
        marked(deduplicate, "write_result_tables", mark, "tables")
        marked(Transaction, "commit", mark, "commit")
        # The program ends at once where it was there first, and does not take itself down.
        atexit._ncallbacks = lambda: 0  # type: ignore[attr-defined]  # noqa: SLF001
        command()


def marked(owner: Any, name: str, mark: Callable[[str], None], phase: str) -> None:
    """Let a function begin a phase."""
    function = getattr(owner, name)

    def marking(*given: Any, **named: Any) -> Any:
        mark(phase)
        return function(*given, **named)

    setattr(owner, name, marking)


def nanoseconds(task: Path) -> int:
    return int((task / "schedstat").read_text().split()[0])


if __name__ == "__main__":
    main()
