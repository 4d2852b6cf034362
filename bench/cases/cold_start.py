"""What a person feels: import, --help, ten documents with cold and with warm kernel caches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "cold_start"


def rows(quick: bool) -> list[Row]:
    """The same in both modes, except that --quick leaves out the cold compile."""
    seconds: dict[str, Any] = {"better": "lower", "unit": "s"}
    started = Measurement.of(CASE, "start", OURS)
    table = [
        Row("import neardup", started, target=0.15, key="import", **seconds),
        Row("every name of neardup, beyond numpy and pyarrow", started, **seconds),
        Row("neardup --help", started, (), 0.5, "lower", "help", "s"),
    ]
    if not quick:
        ten = Measurement.of(CASE, "ten_documents", OURS)
        table.append(Row("ten documents, cold", ten, (), 15, "lower", "cold", "s"))
        table.append(Row("ten documents, warm", ten, target=1.5, **seconds))
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


def ten_documents() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "ten.jsonl")
        words = "the quick brown fox jumps over the lazy dog number"
        texts = [{"id": str(row), "text": f"{words} {row // 2}"} for row in range(10)]
        source.write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="utf8")
        environment = os.environ | {"NUMBA_CACHE_DIR": str(Path(folder, "cache"))}

        def dedup(name: str) -> float:
            command = [program(), "dedup", str(source), "-o", str(Path(folder, name))]
            return seconds_of(command, environment)

        cold = dedup("cold.jsonl")
        return {"value": min(dedup(f"warm{round_}.jsonl") for round_ in range(3)), "cold": cold}
