"""What the second core gives: whole commands pinned to one core, and on two, step by step.

One worker beside a reading thread keeps more than one core busy, so workers are not compared but
cores: `taskset -c 0` with one worker, against the default. Figures are the seconds that a step
takes beyond those of the same command on ten documents: importing Numba and loading the compiled
kernels comes once in every run.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from harness import corpora, processes
from harness.model import OURS, Measurement, Row

CASE = "cores"
COMMANDS = {
    "dedup .jsonl": ("read", "match", "write", "total"),
    "dedup .jsonl --distance 3": ("read", "total"),
    "dedup .jsonl.gz --distance 3": ("write", "total"),
    "fingerprint .parquet": ("total",),
    "fingerprint .parquet --bits 128": ("total",),
    "pairs .parquet": ("match", "total"),
}
TARGET = 1.8


def rows(quick: bool) -> list[Row]:
    """How many times quicker each step is on two cores."""
    path = corpora.speed_corpus(3 if quick else 300)["path"]
    found = []
    for command, steps in COMMANDS.items():
        one, two = (
            Measurement.of(CASE, "seconds", OURS, path=path, command=command, cores=cores)
            for cores in (1, 2)
        )
        found += [
            Row(
                f"{command}, {step}: two cores against one", two, (one,), TARGET, "lower", step, "s"
            )
            for step in steps
        ]
    return found


def seconds(path: str, command: str, cores: int) -> dict[str, Any]:
    """Seconds of each step, by the command's own clock."""
    name, ending, *options = command.split()
    pinned = ["taskset", "-c", "0"] if cores == 1 else []
    with tempfile.TemporaryDirectory() as folder:
        few = str(processes.first_lines(path, Path(folder, "few.jsonl")))
        source = path
        if name == "pairs":
            count = Path(path).stat().st_size // 20
            few, source = random_fingerprints(folder, 1 << 10), random_fingerprints(folder, count)
        processes.touch(source)

        def run(given: str) -> dict[str, float]:
            full = [*pinned, processes.program(), name, given, *options]
            full += ["-o", str(Path(folder, "out" + ending)), "--workers", str(cores), "--json"]
            found: dict[str, float] = json.loads(processes.timed(full)["printed"])["seconds"]
            return found

        run(source)  # compiles
        starting, whole = run(few), run(source)
    net = {step: whole[step] - starting[step] for step in whole}
    return {"value": net["total"], **net}


def random_fingerprints(folder: str, n: int) -> str:
    """A fingerprint file without ids."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = np.random.default_rng(5).integers(0, 2**64, n, dtype=np.uint64)
    path = str(Path(folder, f"{n}.parquet"))
    pq.write_table(pa.table({"fingerprint": values}), path)
    return path
