"""SIGINT or SIGTERM, once or twice, at a random moment of commands in processes of their own."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import neardup as nd
from commands import TIMEOUT
from suite import ATTACKS, needs_jit

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = max(8, ATTACKS // 2)
INPUTS = {"d.jsonl", "e.jsonl", "fps.parquet", "x"}
COMMANDS = {
    "query": ("index query y d.jsonl --id id -o", "found.jsonl"),
    "add": ("index add y d.jsonl --id id", ""),
    "fold": ("dedup d.jsonl e.jsonl -o", "out"),
    "resume": ("dedup d.jsonl e.jsonl --resume state -o", "out"),
    "update": ("dedup d.jsonl --against y --update --distance 3 --id id -o", "kept.jsonl"),
    "fingerprint": ("fingerprint d.jsonl -o", "made.parquet"),
    "pairs": ("pairs fps.parquet -o", "pairs.csv"),
}
# Begins as `python -m neardup` does, and says when it handles signals.
PROGRAM = """
import os, signal, sys
from neardup.runtime import signals
told = int(sys.argv.pop(1))
class Told(signals.Interrupts):
    def begin(self):
        super().begin()
        os.write(told, b".")
signals.Interrupts = Told
from neardup.__main__ import main
main()
"""


def is_left(path: Path) -> bool:
    """Whether it is a file of ours; `tempfile` tries a folder with one that says "blat"."""
    return path.is_file() and path.read_bytes() not in {b"", b"blat"}


class Place:
    """A folder with inputs and an index; commands in it, each from the same beginning."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rng = Random(7)
        words = [f"w{i}" for i in range(300)]
        for name in "de":
            texts = [" ".join(rng.choices(words, k=40)) for _ in range(300)]
            records = [{"id": f"{name}{i}", "text": rng.choice(texts)} for i in range(400)]
            lines = b"\n".join(orjson.dumps(record) for record in records)
            (folder / f"{name}.jsonl").write_bytes(lines)
        for command in ("index create x --distance 3", "index add x e.jsonl --id id"):
            self.run(command.split())
        self.run(["fingerprint", "d.jsonl", "-o", "fps.parquet"])
        self.whole: dict[str, dict[str, bytes]] = {}
        self.seconds: dict[str, float] = {}
        for name in COMMANDS:
            self.reset()
            begun = time.monotonic()
            self.run(self.command(name))
            self.seconds[name] = time.monotonic() - begun
            self.whole[name] = self.outputs()

    @staticmethod
    def command(name: str) -> list[str]:
        options, output = COMMANDS[name]
        return [*options.split(), *filter(None, [output])]

    def run(self, command: list[str]) -> None:
        program = [sys.executable, "-m", "neardup", *command]
        subprocess.run(program, cwd=self.folder, check=True, capture_output=True, timeout=TIMEOUT)

    def reset(self) -> None:
        for path in self.folder.iterdir():
            if path.is_dir() and path.name not in INPUTS:
                shutil.rmtree(path)
            elif path.name not in INPUTS:
                path.unlink()
        shutil.copytree(self.folder / "x", self.folder / "y")
        (self.folder / "tmp").mkdir()

    def outputs(self) -> dict[str, bytes]:
        names = {output for _, output in COMMANDS.values() if output}
        paths = [path for name in names for path in (self.folder / name).glob("**/*")]
        paths += [self.folder / name for name in names]
        return {str(path): path.read_bytes() for path in paths if path.is_file()}

    def interrupted(
        self, name: str, signals: list[tuple[float, signal.Signals]]
    ) -> tuple[int, bool, str]:
        """Exit code, whether it handled signals when the first came, standard error."""
        read, write = os.pipe()
        program = [sys.executable, "-c", PROGRAM, str(write), *self.command(name)]
        pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        env = os.environ | {"TMPDIR": str(self.folder / "tmp")}
        with subprocess.Popen(
            program, cwd=self.folder, pass_fds=[write], env=env, **pipes
        ) as process:
            handled = None
            for seconds, number in signals:
                time.sleep(seconds)
                if handled is None:
                    handled = bool(select.select([read], [], [], 0)[0])
                process.send_signal(number)
            _, err = process.communicate(timeout=TIMEOUT)
        os.close(read)
        os.close(write)
        return process.returncode, bool(handled), err.decode()

    def check(self, name: str, code: int, err: str, *, at_once: bool) -> None:
        """What is there is whole, and said; nothing else is but what the end at once leaves."""
        outputs = self.outputs()
        assert outputs in ({}, self.whole[name])
        assert outputs == self.whole[name] or code
        assert not (outputs and "no file was written" in err)
        assert nd.DurableIndex.open(self.folder / "y", readonly=True).check() == []
        allowed = INPUTS | {"y", "tmp", "state"} | {output for _, output in COMMANDS.values()}
        if not at_once:
            assert {path.name for path in self.folder.iterdir()} <= allowed
            assert [path for path in (self.folder / "tmp").rglob("*") if is_left(path)] == []


@needs_jit
@pytest.mark.timeout(7200)
def test_at_any_moment_it_is_the_signals_code_or_done_and_all_is_whole(tmp_path: Path) -> None:
    place, rng = Place(tmp_path), Random(ROUNDS)
    counts: Counter[str] = Counter()
    for _ in range(ROUNDS):
        name = rng.choice(list(COMMANDS))
        place.reset()
        at = rng.uniform(0, place.seconds[name] * rng.choice([0.2, 1.1, 1.1]))
        signals = [(at, rng.choice([signal.SIGINT, signal.SIGTERM]))]
        if rng.random() < 0.3:
            signals.append((rng.uniform(0, 0.05), rng.choice([signal.SIGINT, signal.SIGTERM])))
        code, handled, err = place.interrupted(name, signals)
        message = f"{place.command(name)} {signals} {handled}: {code} {err}"
        codes = {0, *(128 + number for _, number in signals)}
        if not handled:  # Python begins: it dies of the signal itself, or cannot load its `site`
            codes |= {1, *(-number for _, number in signals)}
        assert code in codes, message
        if handled:
            assert "Traceback" not in err, message
            assert "ignored" not in err, message
        place.check(name, code, err, at_once=len(signals) > 1)
        if name in {"resume", "update"} and rng.random() < 0.3:
            place.run(place.command(name)) if name == "resume" or not place.outputs() else None
            assert place.outputs() == place.whole[name], message
        counts[f"{'handled' if handled else 'before'} {code}"] += 1
    print(sorted(counts.items()))  # noqa: T201 - of the long form, with -s
