"""Kills, interrupts and damage between the runs of one command: the same result, or one line."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from runs import KILLED, STATE, Run
from suite import JIT, LONG

if TYPE_CHECKING:
    from pathlib import Path

needs_jit = pytest.mark.skipif(not JIT, reason="hundreds of processes: the compiled kernels only")
STORIES = int(os.environ.get("NEARDUP_RESUME_ROUNDS", "4"))
DAMAGES = 2000 if LONG else 12
WHOLE = 2
"""The exit code of a run into a folder that has its outputs."""
REFUSED = (STATE, "out/ is not empty", "after this run's outputs were written; the outputs stay")
"""What a damaged state is refused with, by what it still says was done."""


@needs_jit
@pytest.mark.timeout(4 * 3600)
def test_a_chain_of_kills_and_interrupts_over_all_options_ends_in_the_same(tmp_path: Path) -> None:
    first = random.SystemRandom().getrandbits(32) if LONG else 1
    for seed in range(first, first + STORIES):
        rng, folder = random.Random(seed), tmp_path / str(seed)
        folder.mkdir()
        fresh = Run(folder / "fresh", rng)
        whole = fresh.copy(folder / "whole")
        count = whole.moments()
        expected = whole.files()
        run, ends = fresh.copy(folder / "run"), []
        for _ in range(rng.choice([1, 1, 2, 3])):
            at, kills = rng.randrange(1, count + 1), rng.random() < 0.6
            ends.append((at, kills, run.go(at, kills=kills)))
            message = f"{seed=}, {ends} of {count}: {run.log_text}"
            if len(ends) > 1 and ends[-1][2] == WHOLE and not run.is_known:
                break  # the one before ended when all was there, as the last one will say as well
            assert ends[-1][2] in ({KILLED, 0} if kills else {130, 0}), message
        is_known, code = run.is_known, run.go()
        message = f"{seed=}, {ends} of {count}: {run.log_text}"
        actual = run.files()
        if code == WHOLE and run.command[1] == "docs" and not is_known:
            assert (
                "out/ is not empty" in message
            )  # it is whole, and the index has got nothing, or all
            indexes = [each.get("index") for each in (fresh.files(), expected)]
            assert actual.get("index") in indexes, message
            kept = {name: data for name, data in expected.items() if name.startswith("out/")}
            assert {name: actual[name] for name in kept} == kept, message
        else:
            assert code == 0, message
            assert actual == expected, message
        shutil.rmtree(folder)


def damage(path: Path, rng: random.Random) -> str:
    """Flip, cut, zero or overwrite something of a file; what was done."""
    data = bytearray(path.read_bytes())
    at, what = (
        rng.randrange(len(data)),
        rng.choice(["flip", "flip", "cut", "zero", "noise", "more"]),
    )
    if what == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif what == "cut":
        del data[at:]
    elif what == "more":
        data += rng.randbytes(rng.randrange(1, 99))
    else:
        count = min(rng.choice([8, 4096]), len(data) - at)
        data[at : at + count] = bytes(count) if what == "zero" else rng.randbytes(count)
    path.write_bytes(data)
    return f"{what} at {at} of {path.name}"


@needs_jit
@pytest.mark.timeout(4 * 3600)
def test_a_damaged_state_is_refused_in_one_line_or_the_result_is_the_same(tmp_path: Path) -> None:
    first = random.SystemRandom().getrandbits(32) if LONG else 1
    refused = rounds = 0
    for seed in itertools.count(first):
        rng, folder = random.Random(seed), tmp_path / str(seed)
        folder.mkdir()
        fresh = Run(folder / "fresh", rng)
        if not fresh.resumes:
            continue
        whole = fresh.copy(folder / "whole")
        count = whole.moments()
        expected = whole.files()
        left = fresh.copy(folder / "left")
        left.go(rng.randrange(count // 3, count))
        files = [path for path in sorted((left.folder / STATE).glob("*")) if path.stat().st_size]
        if not any(path.name.startswith("journal") for path in files):
            files = []  # all is done, and the same command in a copy's folder is another one
        for path in files * (4 if LONG else 1):
            run = left.copy(folder / f"{path.name}-{rounds}")
            what = damage(run.folder / STATE / path.name, rng)
            code = run.go()
            message = f"{seed=}, {what}, {run.log_text}"
            rounds += 1
            if code == 0:
                assert run.files() == expected, message
                continue
            refused += 1
            assert code in {1, 2}, message
            lines = run.log.read_text().splitlines()
            assert len(lines) == 1, message
            assert lines[0].startswith("neardup: "), message
            assert any(each in lines[0] for each in REFUSED), message
        shutil.rmtree(folder)
        if rounds >= DAMAGES:
            break
    assert refused
    print(f"{rounds:,} rounds, {refused:,} refused, the others as without damage")  # noqa: T201 - of the long form, with -s
