"""Runs of `neardup dedup` over all options, each in a process of its own that may be ended."""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import shutil
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

import neardup as nd
import neardup.documents
import neardup.pipeline.run.read_documents
import neardup.pipeline.run.transaction
from damage import in_victim
from moments import KILLED, Moments
from neardup.cli import main

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

STATE = "run.state"
ALWAYS = 10**9
LEFT = re.compile(r"\..*\.(tmp|old)", re.DOTALL)


class Run:
    """Inputs in a folder, perhaps an index, and a command over them.

    Args:
        folder: Made anew.
        rng: Chooses documents and options.
    """

    def __init__(self, folder: Path, rng: Random) -> None:
        folder.mkdir()
        self.folder, self.is_copy = folder, False
        self.resumes = rng.random() < 0.8
        self.updates = rng.random() < 0.6
        texts = [self._text(rng) for _ in range(rng.randrange(3, 30))]
        inputs = self._inputs(rng, texts)
        decides = [["--similarity", "0.6"], ["--distance", "3"], ["--distance=9", "--verify=0.6"]]
        options = [*rng.choice(decides), "--ngram", "1", "--workers", rng.choice("12")]
        if self.updates:
            self._make_index(rng, options)
            options += ["--against", "seen.index", "--update"]
        elif rng.random() < 0.3:
            options += ["--policy", "components"]
        elif rng.random() < 0.5:
            options += ["--within", "lang"] if inputs != ["docs"] else []
        if rng.random() < 0.3:
            options += ["--keep", rng.choice(["last", "longest"])]
        if inputs != ["docs"] and rng.random() < 0.7:
            options += ["--id", "id"]
        self.outputs = ["dropped.jsonl", "clusters.csv", "rejects.jsonl"]
        options += ["--duplicates", "dropped.jsonl", "--clusters", "clusters.csv"]
        options += ["--on-error", "skip", "--rejects", "rejects.jsonl"]
        self.kept = "out/" if inputs == ["docs"] or rng.random() < 0.4 else "out.jsonl"
        options += ["--resume", STATE] if self.resumes else []
        self.command = ["dedup", *inputs, "-o", self.kept, *options]

    @staticmethod
    def _text(rng: Random) -> str:
        return " ".join(rng.choices("abcdef", k=rng.choice([0, 2, 3, 4, 5])))

    def _inputs(self, rng: Random, texts: list[str]) -> list[str]:
        if rng.random() < 0.3:
            (self.folder / "docs" / "below").mkdir(parents=True)
            for i, text in enumerate(texts):
                (self.folder / "docs" / ("below" if i % 3 else "") / f"{i}.txt").write_text(text)
            return ["docs"]
        records = [
            {"id": f"t{i}", "text": text, "lang": rng.choice(["de", "en"])}
            for i, text in enumerate(texts)
        ]
        lines = [json.dumps(record).encode() + b"\n" for record in records]
        lines.insert(rng.randrange(len(lines)), b"{bad\n")
        cut = rng.randrange(len(lines))
        (self.folder / "one.jsonl").write_bytes(b"".join(lines[:cut]))
        with gzip.open(self.folder / "two.jsonl.gz", "wb") as packed:
            packed.write(b"".join(lines[cut:]))
        return ["one.jsonl", "two.jsonl.gz"]

    def _make_index(self, rng: Random, decides: list[str]) -> None:
        by_features = "--distance" not in decides
        kinds = ["features", "text"] if by_features else ["features", "text", "none"]
        store, recipe = rng.choice(kinds), nd.Recipe(ngram=1)
        texts = [self._text(rng) + " a" for _ in range(rng.randrange(5))]
        index = self.folder / "seen.index"
        made_for: dict[str, Any] = {"distance": 9, "store": store}
        if "0.6" in decides and rng.random() < 0.5:
            made_for = {"similarity": 0.6}
        with nd.DurableIndex.create(index, recipe=recipe, **made_for) as writer:
            writer.add([f"m{i}" for i in range(len(texts))], texts)

    def copy(self, folder: Path) -> Run:
        """The same in another folder."""
        other = object.__new__(Run)
        is_copy = (self.folder / STATE).exists()
        other.__dict__ = self.__dict__ | {"folder": folder, "is_copy": is_copy}
        shutil.copytree(self.folder, folder)
        return other

    @property
    def is_known(self) -> bool:
        """Whether there is a state to go on with."""
        return (self.folder / STATE / "journal").exists()

    def go(self, at: int = ALWAYS, *, kills: bool = True) -> int:
        """Run in a process of its own until a moment; its exit code, or KILLED."""
        return in_victim(lambda: self._go(at, kills), self.log)

    def moments(self) -> int:
        """How many there are in a run that goes to its end."""
        read, write = os.pipe()

        def work() -> int:
            moments = Moments(ALWAYS, kills=True)
            code = self._main(moments)
            os.write(write, b"%d" % moments.count)
            return code

        assert in_victim(work, self.log) == 0, self.log_text
        count = int(os.read(read, 32))
        os.close(read)
        os.close(write)
        return count

    def _go(self, at: int, kills: bool) -> int:
        return self._main(Moments(at, kills))

    def _main(self, moments: Moments) -> int:
        os.chdir(self.folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        sys.argv = ["neardup", *self.command]
        patch = pytest.MonkeyPatch()
        patch.setattr(neardup.pipeline.run.transaction, "WAITING_BYTES", 1)
        patch.setattr(neardup.pipeline.run.transaction, "ROWS_A_CALL", 3)
        patch.setattr(neardup.pipeline.run.read_documents, "SECONDS", 0.0)
        small = functools.partial(neardup.documents.ReadOptions, batch_bytes=30)
        patch.setattr(neardup.documents, "ReadOptions", small)
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(os, "sync", lambda: None)
        with moments:
            try:
                main()
            except SystemExit as end:
                sys.stderr.flush()
                return int(end.code or 0)
        return 0

    @property
    def log(self) -> Path:
        """What the last process said."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def log_text(self) -> str:
        """What the last process said, and what it was asked."""
        return f"{' '.join(self.command)}: {self.log.read_text()}"

    def files(self) -> dict[str, Any]:
        """Every file that a run wrote, and what the index holds in which order.

        Temporary files do not count without --resume, when a process that is killed leaves them,
        nor in a copy, whose state knows those of another folder.
        """
        names = [path for path in self.folder.rglob("*") if path.is_file()]
        if not self.resumes or self.is_copy:
            names = [path for path in names if not any(map(LEFT.fullmatch, path.parts))]
        files: dict[str, Any] = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in names
            if "seen.index" not in path.parts
        }
        if self.updates:
            with nd.DurableIndex.open(self.folder / "seen.index", readonly=True) as index:
                rows = [
                    (name, index.number(name))
                    for ids, *_ in index.documents()
                    for name in ids.to_pylist()
                ]
                files["index"] = rows, index.check()
        return files


__all__ = ["ALWAYS", "KILLED", "STATE", "Run"]
