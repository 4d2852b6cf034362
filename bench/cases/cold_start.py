"""What a person feels: import, --help, and first runs on a few and on many documents."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import neardup
from harness.model import OURS, Measurement, Row
from harness.processes import timed

CASE = "cold_start"
FEW, MANY = 10, 2_000
KINDS = """
dedup docs.jsonl -o first.jsonl
dedup docs.jsonl -o components.jsonl --policy components
dedup docs.jsonl -o against.jsonl --against docs.jsonl
dedup docs.jsonl -o reported.jsonl --report report.html
dedup docs.jsonl -o distance.jsonl --distance 3
index add seen docs.jsonl
"""
"""Kinds of runs, each of which needs kernels of its own, in this order."""


def rows(quick: bool) -> list[Row]:
    """The same in both modes, except that --quick leaves out what compiles."""
    seconds: dict[str, Any] = {"better": "lower", "unit": "s"}
    started = Measurement.of(CASE, "start", OURS)
    table = [
        Row("import neardup", started, target=0.15, key="import", **seconds),
        Row("every name of neardup, beyond numpy and pyarrow", started, **seconds),
        Row("neardup --help", started, (), 0.5, "lower", "help", "s"),
    ]
    for count in (FEW,) if quick else (FEW, MANY):
        runs = Measurement.of(CASE, "first_runs", OURS, n=count)
        few = count == FEW
        name = f"{count:,} documents, processor"
        table += [
            Row(f"{name}: six first runs", runs, target=15 if few else None, **seconds),
            Row(f"{name}: the first of them", runs, key="first", **seconds),
            Row(f"{name}: again", runs, target=0.5 if few else None, key="again", **seconds),
        ]
    return table


def program() -> str:
    return str(Path(sys.executable).parent / "neardup")


def seconds_of(command: list[str], environment: dict[str, str] | None = None) -> float:
    """Wall seconds of a command.

    Raises:
        RuntimeError: If it fails.
    """
    start = time.perf_counter()
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, env=environment, check=False
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
    return seconds


def start() -> dict[str, Any]:
    base = fastest([sys.executable, "-c", "import numpy, pyarrow"])
    return {
        "value": fastest([sys.executable, "-c", "from neardup import *"]) - base,
        "import": fastest([sys.executable, "-c", "import neardup"]),
        "base": base,
        "help": fastest([program(), "--help"]),
    }


def fastest(command: list[str], rounds: int = 3) -> float:
    return min(seconds_of(command) for _ in range(rounds))


def first_runs(n: int) -> dict[str, Any]:
    """Processor seconds of a run of each kind where nothing is compiled, and of a second `dedup`.

    The package is copied without kernels, since a run looks for them next to it.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_documents(folder / "docs.jsonl", n)
        package = Path(neardup.__file__).parent
        shutil.copytree(
            package, folder / "site" / "neardup", ignore=shutil.ignore_patterns("*.nb[ci]")
        )
        own = {"PYTHONPATH": str(folder / "site"), "HOME": name, "TMPDIR": name}
        left_out = {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "XDG_CACHE_HOME"}
        kept = {name: value for name, value in os.environ.items() if name not in left_out}

        def run(line: str) -> float:
            command = ["env", "-C", str(folder), sys.executable, "-m", "neardup", *line.split()]
            return float(timed(command, kept | own)["cpu_seconds"])

        run("index create seen")
        costs = [run(line) for line in KINDS.strip().splitlines()]
        again = min(run("dedup docs.jsonl -o again.jsonl") for _ in range(3))
        return {"value": sum(costs), "first": costs[0], "again": again, "kinds": costs}


def write_documents(path: Path, n: int) -> None:
    """Texts of 60 words, half of them nearly the same as the one before."""
    draw, words = random.Random(1), [f"word{number}" for number in range(1000)]
    with path.open("w", encoding="utf8") as file:
        for row in range(n):
            if row % 2 == 0:
                text = draw.choices(words, k=60)
            text[draw.randrange(60)] = f"other{row}"
            file.write(json.dumps({"id": row, "text": " ".join(text)}) + "\n")
