"""`neardup dedup IN.jsonl -o OUT.jsonl` (similarity 0.8) against peers' pipelines, whole processes.

The pipelines are in `pipelines.py`; text-dedup is run by its own command line, which writes an
Arrow data set instead of JSON lines. The slow ones get the first part of the corpus; rates are
million bytes of JSON lines a second, wall time from start to end of the process.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import corpora, processes
from harness.model import OURS, Measurement, Row

CASE = "dedup_similarity"
PIPELINES = Path(__file__).resolve().parent.parent / "harness" / "pipelines.py"


def rows(quick: bool) -> list[Row]:
    """The rate and the memory, and the rate against each peer."""
    path = corpora.speed_corpus(3 if quick else 300)["path"]
    part = path if quick else corpora.speed_corpus(30)["path"]
    ours_all = Measurement.of(CASE, "ours", OURS, path=path, workers=None)
    one = Measurement.of(CASE, "ours", OURS, path=path, workers=1)
    fast = [
        Measurement.of(CASE, "pipeline", "rensa", path=path, name=name)
        for name in ("rensa", "rensa_processes", "rensa_rho")
    ]
    datasketch = Measurement.of(CASE, "pipeline", "datasketch", path=part, name="datasketch")
    text_dedup = Measurement.of(CASE, "text_dedup", "text-dedup", path=part)
    name = "dedup at similarity 0.8, JSON lines"
    return [
        Row(name, ours_all, target=120),
        Row(f"{name}: peak memory", ours_all, (), None, "lower", "peak_gib", "GiB"),
        Row(f"{name}: default against one worker", ours_all, (one,)),
        Row(f"{name}, against rensa", ours_all, (fast[0],), 4),
        Row(f"{name}, against rensa in two processes", ours_all, (fast[1],)),
        Row(f"{name}, against rensa's rho flags (no pairs, samples)", ours_all, (fast[2],)),
        Row(f"{name}, against datasketch", ours_all, (datasketch,), 4),
        Row(f"{name}, against text-dedup, two processes", ours_all, (text_dedup,), 4),
    ]


def ours(path: str, workers: int | None) -> dict[str, Any]:
    processes.touch(path)
    more = [] if workers is None else ["--workers", str(workers)]
    with tempfile.TemporaryDirectory() as folder:
        few = processes.first_lines(path, Path(folder, "few.jsonl"))
        for source, target in ((few, "few-out.jsonl"), (path, "out.jsonl")):
            command = [processes.program(), "dedup", source, "-o", str(Path(folder, target))]
            outcome = processes.timed([*command, "--json", *more])
    summary = json.loads(outcome.pop("printed"))
    return rated(path, outcome) | {"summary": summary}


def pipeline(path: str, name: str) -> dict[str, Any]:
    processes.touch(path)
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder, "out.jsonl"))
        outcome = processes.timed([sys.executable, str(PIPELINES), name, path, target])
    read, kept = map(int, outcome.pop("printed").split())
    return rated(path, outcome) | {"read": read, "kept": kept}


def text_dedup(path: str) -> dict[str, Any]:
    processes.touch(path)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files", path,
            "--split", "train", "--column", "text", "--ngram", "3", "--min_length", "3",
            "--num_perm", "128", "--threshold", "0.8", "--hash_func", "xxh3", "--num_proc", "2",
            "--cache_dir", str(Path(folder, "cache")), "--output", str(Path(folder, "out")),
        ]  # fmt: skip
        outcome = processes.timed(command)
    outcome.pop("printed")
    return rated(path, outcome)


def rated(path: str, outcome: dict[str, Any]) -> dict[str, Any]:
    return outcome | {"value": Path(path).stat().st_size / 1e6 / outcome["seconds"]}
