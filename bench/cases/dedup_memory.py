"""Two gigabytes of JSON lines through `neardup dedup --memory 2G`: peak memory and rate.

The speed corpus, then copies of it in which the letters of each text are permuted, another
permutation a copy: the words are new, their statistics and the share of duplicates stay. The file
lies in the cache folder and is made once.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import corpora, processes
from harness.model import OURS, Measurement, Row
from harness.planted import alphabet

if TYPE_CHECKING:
    from collections.abc import Iterator

CASE = "dedup_memory"
BUDGET = "2G"
ROOM = 3
MOST_ROUNDS = 1


def rows(quick: bool) -> list[Row]:
    """The peak is judged, the rate is told."""
    whole = Measurement.of(CASE, "ours", OURS, target_mb=6 if quick else 2_000, memory=BUDGET)
    name = f"dedup of {6 if quick else 2_000} MB, --memory {BUDGET}"
    return [
        Row(f"{name}: peak memory", whole, (), 2, "lower", "peak_gib", "GiB"),
        Row(name, whole),
    ]


def permuted_corpus(target_mb: float) -> dict[str, Any]:
    """Facts of a corpus of at least `target_mb`.

    Raises:
        RuntimeError: If the disk has no room for it and for the run's outputs.
    """
    base = corpora.speed_corpus(min(300, target_mb / 2))
    free = shutil.disk_usage(corpora.CACHE).free
    if free < ROOM * target_mb * 1e6:
        raise RuntimeError(f"{free / 1e9:.1f} GB free in {corpora.CACHE}: too little")
    what = f"{base['what']}; copies with permuted letters"
    return corpora.cached(f"permuted-{target_mb:g}", what, permuted(Path(base["path"])), target_mb)


def permuted(path: Path) -> Iterator[tuple[str, str]]:
    """Ids and texts of the corpus, then of one copy after another, without an end."""
    copy = 0
    while True:
        table = alphabet(copy)
        with path.open(encoding="utf8") as lines:
            for line in lines:
                record = json.loads(line)
                yield f"{copy}:{record['id']}", record["text"].translate(table)
        copy += 1


def ours(target_mb: float, memory: str) -> dict[str, Any]:
    facts = permuted_corpus(target_mb)
    processes.touch(facts["path"])
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder, "out.jsonl"))
        command = [processes.program(), "dedup", facts["path"], "-o", target, "--memory", memory]
        outcome = processes.timed([*command, "--json"])
    summary = json.loads(outcome.pop("printed"))
    rate = Path(facts["path"]).stat().st_size / 1e6 / outcome["seconds"]
    return outcome | {"value": rate, "summary": summary, "corpus": facts}
