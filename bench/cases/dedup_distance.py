"""`neardup dedup IN.jsonl -o OUT.jsonl --distance 3` on the speed corpus, as a whole process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import corpora
from harness.model import OURS, Measurement, Row

CASE = "dedup_distance"


def rows(quick: bool) -> list[Row]:
    """The rate with all workers and with one, and the memory."""
    path = corpora.speed_corpus(3 if quick else 300)["path"]
    default = Measurement.of(CASE, "ours", OURS, path=path, workers=None)
    one = Measurement.of(CASE, "ours", OURS, path=path, workers=1)
    name = "dedup --distance 3, JSON lines"
    return [
        Row(name, default, target=150),
        Row(f"{name}: peak memory", default, (), None, "lower", "peak_gib", "GiB"),
        Row(f"{name}: default against one worker", default, (one,)),
    ]


def ours(path: str, workers: int | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder, "few.jsonl")
        with Path(path).open("rb") as lines:
            few.write_bytes(b"".join(next(lines) for _ in range(10)))
            while lines.read(1 << 24):  # the input is in the page cache for every round
                pass
        dedup(str(few), str(Path(folder, "few-out.jsonl")), workers)
        outcome = dedup(path, str(Path(folder, "out.jsonl")), workers)
    return outcome | {"value": Path(path).stat().st_size / 1e6 / outcome["seconds"]}


def dedup(source: str, target: str, workers: int | None) -> dict[str, Any]:
    """Wall seconds, peak memory and the printed JSON of one run."""
    program = str(Path(sys.executable).parent / "neardup")
    command = [program, "dedup", source, "-o", target, "--distance", "3", "--json"]
    if workers is not None:
        command += ["--workers", str(workers)]
    with tempfile.TemporaryFile() as printed:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=printed)  # noqa: S603
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        text = printed.read().decode()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} exited with {process.returncode}")
    return {"seconds": seconds, "peak_gib": usage.ru_maxrss / 2**20, "summary": json.loads(text)}
