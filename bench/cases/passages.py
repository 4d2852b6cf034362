"""Peers' deduplication of a million real passages: processor seconds, memory, what is found.

Whole processes, start-up included, each with the settings that its documentation has for 0.8
(`harness/pipelines.py`), on the same file (`harness/passages.py`). "value" is processor seconds of
all threads, so that other programs on the machine matter little. "recall" is the share of the pairs
at 0.8 of which not both documents are kept; the pairs are those of neardup's exact search, and
"checked" compares a sample of them with a plain count of common shingles. "planted" is the recall
of the planted twins alone; "alone" the share of what is dropped that has no partner at 0.8.
datatrove and datasketch are slow, and get the smaller numbers.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from harness import passages, pipelines, planted, processes
from harness.model import OURS, Measurement, Row

CASE = "passages"
MOST_ROUNDS = 1
LIMIT_SECONDS = 3_600
SIZES = (100_000, 200_000, 1_000_000)
SLOW = {"datasketch": SIZES, "datatrove": SIZES[:2]}
PIPELINES = pipelines.__file__
SAMPLE = 300
"""Documents whose pairs are counted in plain Python."""


def rows(quick: bool) -> list[Row]:
    """Processor seconds and memory by number, ours and peers'."""
    table = []
    whole = passages.corpus(2_000 if quick else SIZES[-1])
    for n in (2_000,) if quick else SIZES:
        about = {"path": (passages.part(whole, n) if n < whole["documents"] else whole)["path"]}
        mine = Measurement.of(CASE, "ours", OURS, workers=1, **about)
        names = ("rensa", "gaoya", "datasketch", "datatrove")
        peers = tuple(
            Measurement.of(CASE, "pipeline", name, name=name, **about)
            for name in names
            if n in SLOW.get(name, (*SIZES, n))
        )
        title = f"{n:,} passages, dedup at 0.8"
        table += [
            Row(title, mine, peers, None, "lower", unit="cpu s"),
            Row(f"{title}: peak memory", mine, peers, None, "lower", "peak_gib", "GiB"),
        ]
        if n == SIZES[1]:
            checked = Measurement.of(CASE, "checked", OURS, **about)
            table.append(Row("pairs of a sample that both searches have", checked, unit=""))
    return table


def ours(path: str, workers: int) -> dict[str, Any]:
    """`neardup dedup` of a file, kernels compiled."""
    processes.touch(path)
    with tempfile.TemporaryDirectory() as folder:
        few, target = processes.first_lines(path, Path(folder, "few.jsonl")), f"{folder}/out.jsonl"
        for source, out in ((few, f"{folder}/few-out.jsonl"), (path, target)):
            command = [processes.program(), "dedup", source, "-o", out, "--similarity", "0.8"]
            outcome = processes.timed([*command, "--workers", str(workers)])
        return judged(outcome, path, target)


def pipeline(path: str, name: str) -> dict[str, Any]:
    """A peer's own."""
    processes.touch(path)
    with tempfile.TemporaryDirectory() as folder:
        target = f"{folder}/out.jsonl"
        outcome = processes.timed([sys.executable, PIPELINES, name, path, target])
        return judged(outcome, path, target)


def judged(outcome: dict[str, Any], path: str, target: str) -> dict[str, Any]:
    """What a run took, and what it kept of near pairs."""
    outcome.pop("printed")
    every, kept = ids_of(path), set(ids_of(target))
    near = json.loads(passages.pairs_of(path).read_text(encoding="utf8"))
    dropped, partnered = len(every) - len(kept), {name for pair in near for name in pair}
    twins = [pair for pair in near if is_twin(*pair)]
    return outcome | {
        "value": outcome["cpu_seconds"],
        "read": len(every),
        "kept": len(kept),
        "pairs": len(near),
        "recall": share(near, kept),
        "planted": share(twins, kept),
        "alone": sum(x not in kept and x not in partnered for x in every) / max(dropped, 1),
    }


def share(pairs: list[list[str]], kept: set[str]) -> float:
    """Of pairs, that of which not both are kept."""
    return sum(not (a in kept and b in kept) for a, b in pairs) / max(len(pairs), 1)


def is_twin(first: str, second: str) -> bool:
    """Whether one of two ids is the planted twin of the other."""
    return first + planted.NEAR == second or second + planted.NEAR == first


def ids_of(path: str) -> list[str]:
    """The ids of a file, in its order."""
    with Path(path).open(encoding="utf8") as lines:
        return [json.loads(line)["id"] for line in lines]


def checked(path: str) -> dict[str, Any]:
    """The pairs of some documents, counted in plain Python, beside those of the exact search."""
    with Path(path).open(encoding="utf8") as lines:
        texts = {x["id"]: x["text"] for x in map(json.loads, lines)}
    near = [tuple(pair) for pair in json.loads(passages.pairs_of(path).read_text(encoding="utf8"))]
    known = sorted({name for pair in near for name in pair})
    chosen = set(random.Random(3).sample(known, min(SAMPLE, len(known))))
    chosen |= set(random.Random(4).sample(sorted(texts), SAMPLE))
    features = {name: set(pipelines.shingles(texts[name])) for name in chosen}
    holders = defaultdict[str, list[str]](list)
    for name, each in features.items():
        for feature in each:
            holders[feature].append(name)
    counted = set()
    for name, text in texts.items():
        mine, common = set(pipelines.shingles(text)), defaultdict[str, int](int)
        for feature in mine & holders.keys():
            for other in holders[feature]:
                common[other] += 1
        for other, number in common.items():
            both = len(mine) + len(features[other]) - number
            if other != name and number >= passages.THRESHOLD * both:
                counted.add(frozenset((name, other)))
    found = {frozenset(pair) for pair in near if not chosen.isdisjoint(pair)}
    return {
        "value": len(found & counted) / max(len(found | counted), 1),
        "counted": len(counted),
        "only_counted": len(counted - found),
        "only_found": len(found - counted),
    }
