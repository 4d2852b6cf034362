"""How a run grows with its documents: corpora of `harness/growing_texts.py`, doubled six times.

A series is one process. It begins with a 64th of the most documents of the shape and goes on, twice
as many each time, until a run takes a minute of the processor (`NEARDUP_BENCH_SECONDS`). "value" is
the power by which these seconds grew over the last three doublings: 1 is linear. "highest" is the
largest power of one doubling that took `LEAST_SECONDS` or more; "n", "seconds" and "found"
(documents dropped, or pairs) are those of each size. "system" are those of "seconds" that the
system took, mostly to provide memory, and "alone" is the power without them. A run under 0.3 s
counts with the least of three.

Ways, by the default recipe: greedy (`dedup` of texts in a list), components, pairs (`similar_pairs`
without its table; ends where there are too many), index (each text is added and asked for). Whole
commands on a file of JSON lines, without their start, which a run of ten documents takes: file
(`neardup dedup`), report, calibrate, sail; and folder, on files of two documents each.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import growing_texts
from harness.model import OURS, OURS_SPARK, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Callable

CASE = "growth"
MOST_ROUNDS = 1
SIMILARITIES = (0.5, 0.8)
DOUBLINGS = 6
MOST = 1_000_000
FEWER = {"code": 256_000, "articles": 16_000}
"""The most documents of the shapes of which a million are too much text."""
MOST_SECONDS = float(os.environ.get("NEARDUP_BENCH_SECONDS", "60"))
LEAST_SECONDS = 0.2
LEAST_OF_THREE = 0.3
LEAST_ALONE = 0.001
MOST_PAIRS = 20_000_000
FEWER_PAIRS = 8
"""Pairs are counted for an eighth of the documents."""
WORST = (("templates", 0.5), ("revisions", 0.5), ("code", 0.5))
"""The series of which one thing is changed at a time."""
MEASURES = ("cosine", "containment")
OTHER_WAYS = ("components", "index", "file", "calibrate", "report", "sail")
HUGE, HUGE_SHAPES = 10_000_000, ("titles", "records")
IN_FILES, A_FILE = 32_000, 2
"""Documents of the way "folder", and those of one file."""


class Run(NamedTuple):
    """Processor seconds of a run, those of them that the system took, and what was found."""

    seconds: float
    system: float
    found: int = 0
    peak_gib: float = 0.0
    """Of a whole command."""


NOTHING = Run(0.0, 0.0)


def rows(quick: bool) -> list[Row]:
    """The power of each series, of the worst with one thing changed, and of ten million."""
    found = [
        _row(quick, shape=shape, similarity=similarity, way=way)
        for shape in growing_texts.SHAPES
        for similarity in SIMILARITIES
        for way in ("greedy", "pairs")
    ]
    for shape, similarity in WORST[:1] if quick else WORST:
        same: dict[str, Any] = {"shape": shape, "similarity": similarity}
        found += [_row(quick, **same, way="greedy", measure=measure) for measure in MEASURES]
        found += [_row(quick, **same, way=way) for way in OTHER_WAYS[: 3 if quick else None]]
    found.append(
        _row(quick, shape="titles", similarity=0.8, way="folder", most=IN_FILES, doublings=4)
    )
    huge: dict[str, Any] = {"similarity": 0.8, "way": "file", "most": HUGE, "doublings": 3}
    return found + [_row(quick, shape=shape, **huge) for shape in (() if quick else HUGE_SHAPES)]


def _row(quick: bool, **options: Any) -> Row:
    if quick:
        options |= {"most": 2_000 if options["shape"] != "articles" else 100, "doublings": 2}
    environment = OURS_SPARK if options["way"] == "sail" else OURS
    run = Measurement.of(CASE, "series", environment, **options)
    name = "{shape}, similarity {similarity}, {way}".format_map(options)
    name += "".join(f", {options[each]:,}" for each in ("most",) if each in options)
    name += f", {options['measure']}" if "measure" in options else ""
    return Row(name, run, better="lower", unit="power")


def series(
    shape: str,
    similarity: float,
    way: str,
    measure: str = "jaccard",
    most: int | None = None,
    doublings: int = DOUBLINGS,
) -> dict[str, Any]:
    """Seconds and findings of each size; the power of the last doublings."""
    most = most or FEWER.get(shape, MOST) // (FEWER_PAIRS if way == "pairs" else 1)
    sizes = [most >> (doublings - step) for step in range(doublings + 1)]
    with tempfile.TemporaryDirectory() as folder:
        run = _run_of(way, similarity, measure, Path(folder))
        start = run(growing_texts.make(shape, 10)) if way in FILE_WAYS else NOTHING
        runs: list[Run] = []
        every: list[str] = []
        if way not in FILE_WAYS:
            run(growing_texts.make(shape, min(sizes[0], 500)))
        for n in sizes:
            growing_texts.extend(every, shape, n)
            texts = every[:n]
            took = run(texts)
            for _ in range(2 if took.seconds < LEAST_OF_THREE else 0):
                took = min(took, run(texts))
            runs.append(took)
            if took.seconds > MOST_SECONDS or (way == "pairs" and 4 * took.found > MOST_PAIRS):
                break
    seconds = [each.seconds - start.seconds for each in runs]
    system = [each.system - start.system for each in runs]
    alone = [max(a - b, LEAST_ALONE) for a, b in zip(seconds, system, strict=True)]
    return powers(seconds) | {
        "n": sizes[: len(runs)],
        "seconds": seconds,
        "system": system,
        "alone": powers(alone)["value"],
        "found": [each.found for each in runs],
        "start": start.seconds,
        "peak_gib": [each.peak_gib for each in runs],
    }


def powers(seconds: list[float]) -> dict[str, float]:
    """The power over the last three doublings, or those there are, and the highest of one."""
    if len(seconds) < 2:
        return {"value": math.nan, "highest": math.nan}
    last = seconds[-4:]
    each = [
        math.log2(after / before)
        for before, after in itertools.pairwise(seconds)
        if after >= LEAST_SECONDS
    ]
    value = math.log2(last[-1] / last[0]) / (len(last) - 1)
    return {"value": value, "highest": max(each, default=value)}


def _run_of(way: str, similarity: float, measure: str, folder: Path) -> Callable[[list[str]], Run]:
    """A function of texts that runs once."""
    if way in FILE_WAYS:
        return lambda texts: _command(texts, similarity, way, folder)
    return lambda texts: _in_process(texts, similarity, way, measure)


def _in_process(texts: list[str], similarity: float, way: str, measure: str) -> Run:
    from resource import RUSAGE_SELF, getrusage

    import neardup as nd

    options: dict[str, Any] = {
        "similarity": similarity,
        "measure": measure,
        "recipe": nd.Recipe(),
    }
    begun = getrusage(RUSAGE_SELF)
    if way == "pairs":
        found = _pairs(texts, **options)
    elif way == "index":
        index = nd.Index(**options)
        index.add(range(len(texts)), texts)
        found = index.query_batch(texts).num_rows
    else:
        found = nd.dedup(texts, policy=way, **options).duplicates.num_rows
    ended = getrusage(RUSAGE_SELF)
    system = ended.ru_stime - begun.ru_stime
    return Run(ended.ru_utime - begun.ru_utime + system, system, found)


def _pairs(texts: list[str], similarity: float, measure: str, recipe: Any) -> int:
    """How many pairs match; they are not kept."""
    import numpy as np

    from neardup.fingerprinting.sets_of_texts import feature_sets
    from neardup.similarity.feature_sets import FeatureSets, Match
    from neardup.similarity.join import similar_sets

    features, offsets = feature_sets(texts, recipe)
    sets = FeatureSets(features, offsets, np.zeros((len(texts), 1), np.uint64))
    return sum(len(pairs) for pairs in similar_sets(sets, Match(similarity, measure=measure)))


FILE_WAYS = {
    "file": ("dedup", "-o", "{folder}/kept.jsonl", "-s", "{similarity}", "--memory", "6G"),
    "folder": ("dedup", "-o", "{folder}/kept/", "-s", "{similarity}"),
    "report": (
        "dedup", "-o", "{folder}/kept.jsonl", "-s", "{similarity}",
        "--report", "{folder}/report.html",
    ),
    "calibrate": ("calibrate",),
    "sail": (
        "dedup", "-o", "{folder}/kept/", "-s", "{similarity}", "--engine", "spark",
    ),
}  # fmt: skip
"""The command of each way on a file, after its name and before the input."""


def _command(texts: list[str], similarity: float, way: str, folder: Path) -> Run:
    """A whole command: processor seconds of all its processes; nothing is counted."""
    import shutil

    from harness.processes import program, timed

    lines = (json.dumps({"text": text}) + "\n" for text in texts)
    given = folder / "texts"
    if way == "folder":
        given.mkdir(exist_ok=True)
        for number in range(-(-len(texts) // A_FILE)):
            some = "".join(itertools.islice(lines, A_FILE))
            (given / f"{number}.jsonl").write_text(some, "utf8")
    else:
        given = given.with_suffix(".jsonl")
        with given.open("w", encoding="utf8") as file:
            file.writelines(lines)
    shutil.rmtree(folder / "kept", ignore_errors=True)
    (folder / "kept.jsonl").unlink(missing_ok=True)
    (folder / "report.html").unlink(missing_ok=True)
    words = [word.format(folder=folder, similarity=similarity) for word in FILE_WAYS[way]]
    took = timed([program(), words[0], str(given), *words[1:]])
    return Run(took["cpu_seconds"], took["system_seconds"], peak_gib=took["peak_gib"])
