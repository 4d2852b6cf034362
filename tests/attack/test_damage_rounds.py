"""Random damage to each file of an index and each entry of its log: refused, or answered right."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from damage import (
    REFUSED,
    RIGHT,
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
DATABASES = ("meta/settings", "meta/manifest", "meta/ledger", "log", "removed", "content")
KINDS = ("int", "str", "similar")
NAMES = {RIGHT: "right", REFUSED: "refused", WRONG: "found by check"}


def rounds(
    kind: str, folder: Path, damaged: Callable[[Path, Path, random.Random], str]
) -> Counter[int]:
    """Damage copies of an index of a kind, and ask each: how many said what.

    A damage that was met before is counted with what it said then.
    """
    seed = random.SystemRandom().getrandbits(32) if LONG else 1
    rng, index, copy, log = random.Random(seed), folder / "index", folder / "copy", folder / "log"
    expected = make_index(index, kind, rng, ROWS)
    shutil.copytree(index, copy)
    assert in_victim(lambda: verdict(copy, expected), log) == RIGHT, log.read_text()
    compacted(copy)  # so that every kernel is compiled before the forks
    known: dict[str, int] = {}
    found: Counter[int] = Counter()
    for _ in range(ATTACKS):
        what = damaged(index, copy, rng)
        if what not in known:
            known[what] = code = in_victim(lambda: verdict(copy, expected), log)
            assert 0 <= code < SILENT, f"{code} after {what}, {seed=}: {log.read_text()}"
        found[known[what]] += 1
    told = ", ".join(f"{found[code]:,} {name}" for code, name in NAMES.items())
    print(f"{folder.name}: {found.total():,} rounds, {len(known):,} kinds of damage: {told}")  # noqa: T201 - of the long form, with -s
    return found


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("pattern", ["segment-*.nds", "log-*.mdb", "head"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_refused_or_the_answers_are_right(
    kind: str, pattern: str, tmp_path: Path
) -> None:
    found = rounds(kind, tmp_path, lambda *paths: damaged_copy(*paths[:2], pattern, paths[2]))
    assert found[REFUSED] > 0 or pattern == "head"


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_entry_is_refused_or_the_answers_are_right(
    kind: str, database: str, tmp_path: Path
) -> None:
    if (kind, database) == ("similar", "content"):
        pytest.skip("an index by similarity keeps nothing beside its feature sets")
    found = rounds(kind, tmp_path, lambda *paths: damaged_entry(*paths[:2], database, paths[2]))
    assert found[REFUSED] > 0
