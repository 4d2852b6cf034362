"""Python imports this at its start: it writes down which lines of neardup a child process runs.

`tools/mutants.py` sets CHILD_LINES: the folder of the source, and one with the number of the test
that runs. Each line is written at once, since tests kill many of their processes.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import threading
from typing import Any

IN_FUNCTIONS = 1  # inspect.CO_OPTIMIZED: what an import runs belongs to no test
source, _, folder = os.environ["CHILD_LINES"].partition(":")
with open(f"{folder}/test", "rb") as file:  # noqa: PTH123 - without imports that a test may count
    number = mmap.mmap(file.fileno(), 4, access=mmap.ACCESS_READ)
lines = os.open(f"{folder}/lines", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
seen = set()


def trace_call(frame: Any, _event: str, _argument: Any) -> Any:
    """Trace the lines of a function of neardup."""
    code = frame.f_code
    is_own = code.co_flags & IN_FUNCTIONS and code.co_filename.startswith(source)
    return trace_line if is_own else None


def trace_line(frame: Any, _event: str, _argument: Any) -> Any:
    """Write a line that is new in this test."""
    key = (number[:], frame.f_lineno, frame.f_code.co_filename)
    if key not in seen:
        seen.add(key)
        test = int.from_bytes(key[0], "little")
        # A process may be allowed no larger files: then a line is cut, or there is none.
        with contextlib.suppress(OSError):
            os.write(lines, f"\n{test} {key[1]} {key[2]}\n".encode())
    return trace_line


threading.settrace(trace_call)
sys.settrace(trace_call)
