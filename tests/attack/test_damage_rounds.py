"""Random damage to each file of an index and each entry of its log: refused, or answered right."""

from __future__ import annotations

import functools
import os
import random
import shutil
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from damage import (
    REFUSED,
    RIGHT,
    SECONDS,
    SILENT,
    WRONG,
    compacted,
    damaged_copy,
    damaged_entry,
    in_victim,
    make_index,
    verdict,
)
from suite import ATTACKS, LONG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 300
A_VICTIM = 100
DATABASES = ("meta/settings", "meta/manifest", "meta/ledger", "log", "removed", "content")
KINDS = ("int", "str", "similar")
NAMES = {RIGHT: "right", REFUSED: "refused", WRONG: "found by check"}


def rounds(kind: str, where: str, folder: Path, damaged: Callable[..., str]) -> Counter[int]:
    """Damage copies of an index of a kind, and ask each: how many said what.

    A process does it to many, for to fork takes longer than to look at most of them. A damage that
    was met before is counted with what it said then.
    """
    seed = random.SystemRandom().getrandbits(32) if LONG else 1
    rng, index, copy, log = random.Random(seed), folder / "index", folder / "copy", folder / "log"
    expected = make_index(index, kind, rng, ROWS)
    shutil.copytree(index, copy)
    assert in_victim(lambda: verdict(copy, expected), log) == RIGHT, log.read_text()
    compacted(copy)  # so that every kernel is compiled before the forks
    known: dict[str, int] = {}
    counts: Counter[int] = Counter()
    read, write = os.pipe()

    def part(count: int) -> int:
        for _ in range(count):
            signal.alarm(SECONDS)
            what = damaged(index, copy, where, rng)
            os.write(2, f"{what}\n".encode())  # the last one of the log is at fault
            known[what] = known[what] if what in known else verdict(copy, expected)
            os.write(write, f"{known[what]} {what}\n".encode())
            if known[what] >= SILENT:
                return SILENT
        return RIGHT

    for begin in range(0, ATTACKS, A_VICTIM):
        code = in_victim(functools.partial(part, min(A_VICTIM, ATTACKS - begin)), log)
        assert code == RIGHT, f"{code} after {begin:,} rounds, {seed=}: {log.read_text()[-2000:]}"
        for line in os.read(read, 1 << 16).decode().splitlines():
            code, _, what = line.partition(" ")
            known[what] = int(code)
            counts[int(code)] += 1
        rng.seed(seed + begin + 1)  # the victim's went on, and this one did not
    os.close(read)
    os.close(write)
    message = ", ".join(f"{counts[code]:,} {name}" for code, name in NAMES.items())
    print(f"{kind}, {where}: {counts.total():,} rounds, {len(known):,} kinds of damage: {message}")  # noqa: T201 - of the long form, with -s
    return counts


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("pattern", ["segment-*.nds", "log-*.mdb", "head"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_refused_or_the_answers_are_right(
    kind: str, pattern: str, tmp_path: Path
) -> None:
    counts = rounds(kind, pattern, tmp_path, damaged_copy)
    assert counts[REFUSED] > 0 or pattern == "head"


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_entry_is_refused_or_the_answers_are_right(
    kind: str, database: str, tmp_path: Path
) -> None:
    if (kind, database) == ("similar", "content"):
        pytest.skip("an index by similarity keeps nothing beside its feature sets")
    counts = rounds(kind, database, tmp_path, damaged_entry)
    assert counts[REFUSED] > 0
