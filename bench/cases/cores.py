"""What the second core gives, measured; and what up to 64 cores would give at most, reckoned.

Measured: whole commands pinned to one core, and on two, step by step.
One worker beside a reading thread keeps more than one core busy, so workers are not compared but
cores: `taskset -c 0` with one worker, against the default. Figures are the seconds that a step
takes beyond those of the same command on ten documents: importing Numba and loading the compiled
kernels comes once in every run.

Reckoned: no phase of a run is shorter than its busiest thread, nor than its share of each core
(`harness/thread_times.py`). So two cores tell what stands in the way of many. The input has one
gigabyte unless more is asked for, as in a full run:

    NEARDUP_BENCH_GB=4 python bench/run.py cores --rounds 1 --where function=reckoned
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from cases import large
from harness import corpora, processes, thread_times
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
CORES = (2, 4, 8, 16, 32, 64)
GOAL_OF_16 = 12
QUESTION = ("-s", "0.8")
KINDS = ("jsonl", "jsonl.zst", "parquet")


def rows(quick: bool) -> list[Row]:
    """Two cores against one, and what more would give."""
    return [*measured(quick), *reckoned_rows(quick)]


def reckoned_rows(quick: bool) -> list[Row]:
    """The most that each number of cores could give, and what one worker takes."""
    gb = 0.006 if quick else float(os.environ.get("NEARDUP_BENCH_GB", "1"))
    report_rows = []
    for kind in KINDS:
        for tables in (False, True):
            run = Measurement.of(CASE, "reckoned", OURS, gb=gb, kind=kind, tables=tables)
            name = f"dedup of {gb:g} GB, .{kind}" + (", with tables" if tables else "")
            report_rows += [
                Row(f"{name}: {cores} cores, at most times one", run, (),
                    GOAL_OF_16 if cores == 16 else None, "higher", f"bound_{cores}", "x")
                for cores in CORES
            ]  # fmt: skip
            report_rows += [
                Row(f"{name}: one worker a GB", run, (), None, "lower", "cpu_a_gb", "s"),
                Row(f"{name}: 16 workers take", run, (), 1.1, "lower", "more_work", "x"),
            ]
    return report_rows


def reckoned(gb: float, kind: str, tables: bool) -> dict[str, Any]:
    """Bounds for each number of cores, and the phases that they come from."""
    path = input_of(gb, kind)
    with tempfile.TemporaryDirectory(dir=corpora.CACHE) as folder:
        asks = ["dedup", str(path), "-o", f"{folder}/out.{kind}", *QUESTION]
        if tables:
            asks += ["--duplicates", f"{folder}/dropped.jsonl"]
            asks += ["--clusters", f"{folder}/clusters.jsonl"]
        few = processes.first_lines(str(large.made(gb, "jsonl")), Path(folder, "few.jsonl"), 1000)
        processes.timed([processes.program(), *asks[:1], few, "-o", f"{folder}/few", *QUESTION])
        processes.touch(str(path))
        runs = {}
        for workers in (1, *CORES):
            Path(folder, f"out.{kind}").unlink(missing_ok=True)  # removing it is not the run's work
            runs[workers] = thread_times.of_run([*asks, "--workers", str(workers)])
    one = thread_times.work(runs[1])
    bounds = {f"bound_{cores}": thread_times.bound(runs[1], runs[cores], cores) for cores in CORES}
    phases = {
        workers: {name: phase.facts() for name, phase in run.items()}
        for workers, run in runs.items()
    }
    facts = {"cpu_a_gb": one / gb, "more_work": thread_times.work(runs[16]) / one, "phases": phases}
    return {"value": bounds["bound_16"], **bounds, **facts}


def input_of(gb: float, kind: str) -> Path:
    """The file of a kind, made once."""
    if kind.endswith(".zst"):
        return packed(large.made(gb, "jsonl"))
    return large.made(gb, kind)


def packed(path: Path) -> Path:
    """The same file as one frame of zstd, made once, with the checksum that zstd adds."""
    target = path.with_suffix(path.suffix + ".zst")
    if not target.exists():
        aside = target.with_suffix(".partial")
        subprocess.run(["zstd", "-q", "-f", str(path), "-o", str(aside)], check=True)  # noqa: S603, S607
        aside.replace(target)
    return target


def measured(quick: bool) -> list[Row]:
    """How many times quicker each step is on two cores."""
    path = corpora.speed_corpus(3 if quick else 300)["path"]
    report_rows = []
    for command, steps in COMMANDS.items():
        one, two = (
            Measurement.of(CASE, "seconds", OURS, path=path, command=command, cores=cores)
            for cores in (1, 2)
        )
        report_rows += [
            Row(
                f"{command}, {step}: two cores against one", two, (one,), TARGET, "lower", step, "s"
            )
            for step in steps
        ]
    return report_rows


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
            result: dict[str, float] = json.loads(processes.timed(full)["printed"])["seconds"]
            return result

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
