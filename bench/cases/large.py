"""Large files through `neardup dedup --memory 4G`: time, processor time, memory, none missed.

The text is made by `harness/planted.py`: copies of the speed corpus with other letters, and changed
texts of a similarity of 0.8 or more. A changed text must be dropped wherever its original is kept:
what is not, is "missed". Rates are of text, not of the compressed files of Parquet. One gigabyte
unless asked for more:

    NEARDUP_BENCH_GB=20 python bench/run.py large --rounds 1
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import corpora, planted, processes
from harness.model import OURS, Measurement, Row

CASE = "large"
BUDGET = "4G"
BUDGET_GIB = 4
ROOM = 2.5
MOST_ROUNDS = 1
CORE_SECONDS_A_GB = 10.8
"""Three core-hours a terabyte."""


def rows(quick: bool) -> list[Row]:
    """The rate, the processor time a gigabyte, the peak and what was missed, of each format."""
    gb = 0.006 if quick else float(os.environ.get("NEARDUP_BENCH_GB", "1"))
    table = []
    for kind in ("jsonl", "parquet"):
        measured = Measurement.of(CASE, "ours", OURS, gb=gb, kind=kind)
        name = f"dedup of {gb:g} GB of {kind}, --memory {BUDGET}"
        seconds, lower = f"{name}: processor time a GB of text", "lower"
        table += [
            Row(name, measured),
            Row(seconds, measured, (), CORE_SECONDS_A_GB, lower, "cpu_a_gb", "s"),
            Row(f"{name}: peak, pages of files too", measured, (), None, lower, "peak_gib", "GiB"),
            Row(f"{name}: peak without them", measured, (), BUDGET_GIB, lower, "own_gib", "GiB"),
            Row(f"{name}: planted and missed", measured, (), 0, lower, "missed", ""),
        ]
    return table


def made(gb: float, kind: str) -> Path:
    """The file with the text, made once.

    Raises:
        RuntimeError: If the disk has no room for it and for the run's outputs.
    """
    path = corpora.CACHE / f"planted-{gb:g}.{kind}"
    if not path.exists():
        base = corpora.speed_corpus(min(300, gb * 1e3 / 2))
        free = shutil.disk_usage(corpora.CACHE).free
        if free < ROOM * gb * 1e9:
            raise RuntimeError(f"{free / 1e9:.1f} GB free in {corpora.CACHE}: too little")
        aside = path.with_stem(path.stem + "-partial")
        # In a process of its own: the peak of a child begins with the memory of this one.
        program = [sys.executable, planted.__file__, base["path"], str(aside), "--gb", str(gb)]
        subprocess.run(program, check=True)  # noqa: S603
        aside.replace(path)
    return path


def ours(gb: float, kind: str) -> dict[str, Any]:
    path = made(gb, kind)
    with tempfile.TemporaryDirectory(dir=corpora.CACHE) as folder:
        dropped, kept = Path(folder, "dropped.jsonl"), Path(folder, f"out.{kind}")
        command = [processes.program(), "dedup", str(path), "-o", str(kept), "--id", "id"]
        command += ["--memory", BUDGET, "--duplicates", str(dropped), "--json"]
        outcome = processes.timed(command)
        with dropped.open(encoding="utf8") as lines:
            removed = {json.loads(line)["dropped"] for line in lines}
        names = set(near_names(path))
    judged = {name for name in names if name.removesuffix(planted.NEAR) not in removed}
    summary = json.loads(outcome.pop("printed"))
    return outcome | {
        "value": gb * 1e3 / outcome["seconds"],
        "cpu_a_gb": outcome["cpu_seconds"] / gb,
        "planted": len(names),
        "judged": len(judged),
        "missed": len(judged - removed),
        "exact": judged <= removed,
        "file_gb": path.stat().st_size / 1e9,
        "summary": summary,
    }


def near_names(path: Path) -> list[str]:
    """The ids of the changed texts."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        names = pq.read_table(path, columns=["id"])["id"].to_pylist()
        return [name for name in names if name.endswith(planted.NEAR)]
    mark = planted.NEAR + '",'
    with path.open(encoding="utf8") as lines:
        heads = (line[:64] for line in lines)
        return [json.loads(head.split(", ")[0] + "}")["id"] for head in heads if mark in head]
