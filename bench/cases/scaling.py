"""Whole runs of `neardup dedup` on 1, 2, 4 and more cores of this machine, step by step.

`cores` reckons on two cores what many would give at most; this measures it, on a machine that has
them. The command is pinned to processors, and takes as many workers as it finds. Figures are the
seconds that a step takes beyond those of the same command on a thousand documents. The file is that
of the case `large`, one gigabyte unless more is asked for:

    NEARDUP_BENCH_GB=4 python bench/run.py scaling
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from cases import large
from cases.cores import KINDS, QUESTION, input_of
from harness import corpora, processes
from harness.model import OURS, Measurement, Row

CASE = "scaling"
STEPS = ("read", "match", "write", "total")


def rows(quick: bool) -> list[Row]:
    """Seconds of each step on so many cores, against one."""
    gb = 0.006 if quick else float(os.environ.get("NEARDUP_BENCH_GB", "1"))
    report_rows = []
    for kind in KINDS:
        one, *more = (
            Measurement.of(CASE, "seconds", OURS, gb=gb, kind=kind, cores=cores)
            for cores in counts(len(os.sched_getaffinity(0)))
        )
        for many in more:
            cores = json.loads(many.options)["cores"]
            name = f"dedup of {gb:g} GB, .{kind}"
            report_rows += [
                Row(f"{name}, {step}: {cores} cores against one", many, (one,), None, "lower",
                    step, "s")
                for step in STEPS
            ]  # fmt: skip
    return report_rows


def counts(most: int) -> list[int]:
    """1, 2, 4 and so on, and all the cores there are."""
    return sorted({1 << power for power in range(most.bit_length())} | {most})


def seconds(gb: float, kind: str, cores: int) -> dict[str, Any]:
    """Seconds of each step, by the command's own clock."""
    path = input_of(gb, kind)
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    pinned = ["taskset", "-c", ",".join(map(str, chosen)), processes.program(), "dedup"]
    with tempfile.TemporaryDirectory(dir=corpora.CACHE) as folder:
        few = processes.first_lines(str(large.made(gb, "jsonl")), Path(folder, "few.jsonl"), 1000)

        def run(given: str, ending: str) -> dict[str, Any]:
            output = Path(folder, f"out.{ending}")
            output.unlink(missing_ok=True)  # removing it is not the run's work
            full = [*pinned, given, "-o", str(output), *QUESTION, "--json"]
            outcome = processes.timed(full)
            return {"cpu": outcome["cpu_seconds"], **json.loads(outcome["printed"])["seconds"]}

        processes.touch(str(path))
        run(few, "jsonl")  # compiles
        starting, whole = run(few, "jsonl"), run(str(path), kind)
    net = {step: whole[step] - starting[step] for step in whole}
    return {"value": net["total"], **net}
